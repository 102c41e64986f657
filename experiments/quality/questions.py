"""What answers are worth: verified rows chosen by `ask`, at random, or at random among rows in dispute.

A real stream is labeled, asked about as `driftvote ask` does, and labeled again with the answers, as `driftvote label
--verified` does. Gains are measured on the rows that were not asked for. Of each stream the first 6,000 rows.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.core.engine import Estimates
from driftvote.models import AdaptiveLabelModel, LabeledStream
from driftvote.models.questions import Pool, Scores, known_stretches, score, stretch_starts
from experiments.quality.models import adaptive
from experiments.quality.scoring import credit_labels, credit_majority
from experiments.quality.streams import Floats, GoldStream, load
from experiments.runs import Numbers, Run

ROWS = 6_000
ASK, DISPUTED, ANY = "ask", "random rows in dispute", "random rows"
PLANS: dict[tuple[str, float], dict[int, int]] = {
    (ASK, 0.0): {5: 4, 10: 2, 20: 4, 50: 2},
    (ASK, 0.1): {5: 2, 20: 6},
    (DISPUTED, 0.0): {5: 2, 20: 2},
    (ANY, 0.0): {10: 2, 20: 2, 40: 2},
}
"""By way of choosing and share of wrong answers: how many rows are verified, and by how many seeds."""
CODE = ("quality.questions", "quality.models", "quality.scoring", "quality.streams")

STRETCH = 5_000
"""Rows between two changes of the simulated stream."""
ASKED = (0, 5, 10, 20, 50)


def plan_streams(data: Path, names: list[str], limit: int | None) -> list[Run]:
    """A run for each stream."""
    rows = ROWS if limit is None else min(limit, ROWS)
    return [
        Run("quality.questions", f"{name}-{rows}", {"data": str(data), "stream": name, "rows": rows}, CODE)
        for name in names
    ]


def plan_drift(seeds: int = 48) -> list[Run]:
    """A run for each simulated stream."""
    return [Run("quality.questions", f"drift-{seed}", {"seed": seed}, CODE) for seed in range(seeds)]


def run(data: str = "", stream: str = "", rows: int = 0, seed: int | None = None) -> Numbers:
    """Gains on a real stream, by plan and number of verified rows; or on a simulated one."""
    return ask_while_it_drifts(seed) if seed is not None else ask_stream(load(data, stream).first(rows))


def ask_stream(stream: GoldStream) -> Numbers:
    """Gains over majority on rows that were not asked for, and what `ask` expected to change."""
    first = adaptive(stream.n_classes).label_stream(stream.votes)
    scores, starts = score(first._estimates, first.votes), stretch_starts(first.events)
    of_majority = credit_majority(stream.votes, stream.truth, stream.n_classes)
    gains = credit_labels(first.codes, stream.truth, of_majority) - of_majority
    found: Numbers = {"free": 100 * float(gains.mean()), "disputed": float(scores.disputed.mean())}
    for (way, wrong), counts in PLANS.items():
        for count, seeds in counts.items():
            made = [
                relabel(stream, first, scores, starts, choose(way, count, scores, starts, seed), wrong, seed)
                for seed in range(seeds)
            ]
            name = f"{way}, {wrong:.0%} wrong, {count}"
            found[name] = 100 * float(np.mean([(credit - of_majority)[keep].mean() for credit, keep, _ in made]))
            if (way, wrong, count) == (ASK, 0.0, 20):
                pool = fill_pool(scores, 0)
                found["expected"] = 100 * pool.choose(20, starts).expected_change
                found["changed"] = 100 * float(np.mean([changed for _, _, changed in made]))
    return found


def fill_pool(scores: Scores, seed: int) -> Pool:
    pool = Pool(seed)
    pool.add(np.arange(len(scores.doubt)), scores)
    return pool


def choose(way: str, count: int, scores: Scores, starts: list[int], seed: int) -> npt.NDArray[np.int64]:
    """Row numbers in order."""
    if way == ASK:
        return np.sort(np.array(fill_pool(scores, seed).choose(count, starts).rows, np.int64))
    among = np.flatnonzero(scores.disputed) if way == DISPUTED else np.arange(len(scores.doubt))
    most = len(among) // 3 if way == DISPUTED else len(among)
    return np.sort(np.random.default_rng([seed, 17]).permutation(among)[: min(count, most)])


def relabel(
    stream: GoldStream,
    first: LabeledStream,
    scores: Scores,
    starts: list[int],
    rows: npt.NDArray[np.int64],
    wrong: float,
    seed: int,
) -> tuple[Floats, Any, float]:
    """How right the labels are with these rows verified, which rows were not, and the share of labels that changed."""
    rng = np.random.default_rng([seed, 18])
    answers = stream.truth[rows].astype(np.int64)
    slips = rng.random(len(rows)) < wrong
    answers[slips] = (answers[slips] + rng.integers(1, stream.n_classes, int(slips.sum()))) % stream.n_classes
    verified = np.full(len(stream.truth), -1)
    verified[rows] = answers
    model = adaptive(stream.n_classes)
    estimates = Estimates(first._estimates.panel, first._estimates.fits, first._estimates.places[rows])
    model.know(known_stretches(rows, score(estimates, first.votes[rows]), answers, starts))
    out = model.label_stream(stream.votes, verified=[None if code < 0 else int(code) for code in verified])
    keep = verified < 0
    of_majority = credit_majority(stream.votes, stream.truth, stream.n_classes)
    return credit_labels(out.codes, stream.truth, of_majority), keep, float((out.codes != first.codes)[keep].mean())


def drifting_stream(seed: int) -> GoldStream:
    """Four labelers take part of one class for the other, on the same rows, four err alone; other ones every stretch.

    Votes alone cannot tell whether those that agree are right.
    """
    rng = np.random.default_rng([seed, 19])
    votes, truth = [], []
    for stretch in range(4):
        true = rng.integers(2, size=STRETCH)
        together = (true == rng.integers(2)) & (rng.random(STRETCH) < 0.35)
        shared = np.where(together, 1 - true, true)
        four = np.where(rng.random((STRETCH, 4)) < 0.93, shared[:, None], 1 - shared[:, None])
        alone = np.where(rng.random((STRETCH, 4)) < np.array([0.6, 0.7, 0.8, 0.85]), true[:, None], 1 - true[:, None])
        votes.append(np.roll(np.hstack([four, alone]), 2 * stretch, axis=1))
        truth.append(true)
    return GoldStream(np.concatenate(votes).astype(np.int8), np.concatenate(truth), 2)


def measure_time(rows: int = 100_000, labelers: int = 20) -> Numbers:
    """Seconds to label a stream and to ask about it: the least of three each."""
    rng = np.random.default_rng(20)
    truth = rng.integers(2, size=rows)
    right = rng.random((rows, labelers)) < np.linspace(0.55, 0.85, labelers)
    votes = np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int8)
    AdaptiveLabelModel().label_stream(votes[:2_000])
    labels, questions = [], []
    for _ in range(3):
        model, start = AdaptiveLabelModel(), perf_counter()
        model.label_stream(votes)
        labels.append(perf_counter() - start)
        model.ask(20)  # compiled once
        start = perf_counter()
        model.ask(20)
        questions.append(perf_counter() - start)
    return {"label": min(labels), "ask": min(questions)}


def ask_while_it_drifts(seed: int) -> Numbers:
    """Gains by answers a stretch: before the first change, and after the later ones; questions in the stream itself.

    A thousand rows into every stretch the model is asked and answered; the rest of the stretch counts.
    """
    stream = drifting_stream(seed)
    begin = 1_000
    found: Numbers = {}
    for count in ASKED:
        model, right = AdaptiveLabelModel(), np.zeros(len(stream.truth))
        for start in range(0, len(stream.truth), STRETCH):
            for rows in (slice(start, start + begin), slice(start + begin, start + STRETCH)):
                right[rows] = model.label_stream(stream.votes[rows]).codes == stream.truth[rows]
                if count and rows.start == start:
                    model.feedback({q.row: int(stream.truth[q.row]) for q in model.ask(count)})
        by_stretch = [100 * float(right[s + begin : s + STRETCH].mean()) for s in range(0, len(right), STRETCH)]
        found[str(count)] = {"before": by_stretch[0], "after": float(np.mean(by_stretch[1:]))}
    return found
