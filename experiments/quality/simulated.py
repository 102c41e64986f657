"""Simulated streams, whose truth is known: rare classes, random panels, drift, classes in runs.

Each part is a few runs that are cached. One random stream is measured again with its seed:

    python -m experiments.quality.simulated 1234
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from driftvote.models.results import LabeledStream
from driftvote.streams import SCENARIOS, scenario
from experiments.quality.models import adaptive
from experiments.quality.scoring import credit_labels, credit_majority
from experiments.quality.streams import Codes, Floats, GoldStream, Ints
from experiments.runs import Numbers, Run

CODE = ("quality.models", "quality.scoring", "quality.simulated", "quality.streams")

RARE, RANDOM, DRIFT, ABRUPT, RUNS = "rare", "random", "drift", "abrupt", "runs"

# Rare classes: every labeler has the same accuracy and no labeler changes.
LABELERS, ACCURACIES = (3, 5, 10, 20), (0.6, 0.7, 0.8, 0.9)
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
ABSENT = ((3, 2), (5, 2), (10, 1))  # declared classes, and those that occur
RARE_ROWS, FIRST_ROWS, RUN_OF_CLASS, RUN_ROWS = 6_000, 500, 5_000, 20_000
SEEDS, MORE_SEEDS, DOUBTFUL = 4, 24, (-1.5, -0.2)  # a cell whose loss is in this range is measured with more seeds

RANDOM_STREAMS, RANDOM_STEP = 3_000, 100
WEAKEST = 0.1  # least accuracy, as a share of the way from chance to 1: 0.55 with two classes, 0.19 with ten
DRIFT_SEEDS = 10
ABRUPT_SEEDS, CHANGE_ROW, AFTER = 40, 3_000, (200, 400, 1_000, 2_000)
RUN_LENGTHS, LONG_ROWS = (10, 50, 200, 5_000), 400_000


def plan(part: str) -> list[Run]:
    """The runs of one part."""
    pieces: dict[str, list[dict[str, Any]]] = {
        RARE: [{"kind": kind, "labelers": n} for kind in ("share", "absent", "runs") for n in LABELERS],
        RANDOM: [{"first": first, "count": RANDOM_STEP} for first in range(0, RANDOM_STREAMS, RANDOM_STEP)],
        DRIFT: [{"name": name, "seeds": DRIFT_SEEDS} for name in SCENARIOS],
        ABRUPT: [{"sparse": sparse, "seeds": ABRUPT_SEEDS} for sparse in (False, True)],
        RUNS: [{"length": length, "by_class": by} for length in (1, *RUN_LENGTHS) for by in (False, True)],
    }
    return [
        Run("quality.simulated", "-".join([part, *map(str, piece.values())]), {"part": part, **piece}, CODE)
        for piece in pieces[part]
    ]


def run(part: str, **piece: Any) -> Numbers:
    """The figures of one piece of a part."""
    measures: dict[str, Callable[..., Numbers]] = {
        RARE: rare,
        RANDOM: random,
        DRIFT: drift,
        ABRUPT: abrupt,
        RUNS: runs,
    }
    return measures[part](**piece)


def label(stream: GoldStream, **settings: Any) -> LabeledStream:
    """What the default model makes of a stream."""
    return adaptive(stream.n_classes, **settings).label_stream(stream.votes)


def compare(stream: GoldStream, codes: Ints, first: int = 0) -> tuple[float, float]:
    """How often labels and the majority are right, in per cent of the rows from `first` on."""
    of_majority = credit_majority(stream.votes, stream.truth, stream.n_classes)
    right = credit_labels(codes, stream.truth, of_majority)
    return 100 * float(right[first:].mean()), 100 * float(of_majority[first:].mean())


# -- rare classes ----------------------------------------------------------------------------------


def even_votes(rng: np.random.Generator, truth: Ints, labelers: int, accuracy: float, n_classes: int) -> GoldStream:
    """Independent labelers of one accuracy; wrong votes fall evenly on the other classes."""
    shape = (len(truth), labelers)
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=shape)) % n_classes
    votes = np.where(rng.random(shape) < accuracy, truth[:, None], wrong)
    return GoldStream(votes.astype(np.int8), truth, n_classes)


def rare_stream(kind: str, labelers: int, accuracy: float, case: Sequence[float], seed: int) -> GoldStream:
    """A stream of the grid. `case` is (share of class 1,), or (declared classes, classes that occur), or (run,)."""
    rng = np.random.default_rng([seed, labelers, round(100 * accuracy), *(round(1000 * x) for x in case)])
    if kind == "share":
        return even_votes(rng, (rng.random(RARE_ROWS) < case[0]).astype(np.int64), labelers, accuracy, 2)
    if kind == "absent":
        declared, occur = int(case[0]), int(case[1])
        return even_votes(rng, rng.integers(occur, size=RARE_ROWS), labelers, accuracy, declared)
    truth = np.arange(RUN_ROWS) // int(case[0]) % 2
    return even_votes(rng, truth, labelers, accuracy, 2)


def rare(kind: str, labelers: int, accuracies: Sequence[float] = ACCURACIES, seeds: int = SEEDS) -> Numbers:
    """Gains over majority after the first rows, for each accuracy and case."""
    cases: dict[str, Sequence[tuple[float, ...]]] = {
        "share": [(share,) for share in SHARES],
        "absent": ABSENT,
        "runs": [(RUN_OF_CLASS,)],
    }
    cells = []
    for accuracy in accuracies:
        for case in cases[kind]:
            found: list[tuple[float, float]] = []
            for goal in (seeds, MORE_SEEDS):
                for seed in range(len(found), goal):
                    stream = rare_stream(kind, labelers, accuracy, case, seed)
                    found.append(compare(stream, label(stream).codes, FIRST_ROWS))
                ours, majority = np.mean(found, axis=0).tolist()
                if not DOUBTFUL[0] < ours - majority < DOUBTFUL[1]:
                    break
            cell = {"kind": kind, "labelers": labelers, "accuracy": accuracy, "case": list(case)}
            cells.append(cell | {"seeds": len(found), "majority": majority, "ours": ours, "gain": ours - majority})
    return {"cells": cells}


# -- random panels -----------------------------------------------------------------------------------


def random_stream(seed: int) -> GoldStream:
    """Independent labelers, each likeliest to vote for the true class, whatever it is.

    2 to 10 classes of any balance, 3 to 20 labelers, 150 to 8,000 rows. One accuracy for each labeler and errors that
    fall evenly, or a confusion table for each; everybody votes, or each on a share of the rows of their own.
    """
    rng = np.random.default_rng([seed, 2])
    n_classes, labelers = int(rng.integers(2, 11)), int(rng.integers(3, 21))
    rows = round(150 * (8_000 / 150) ** (rng.random() ** 1.5))  # mostly short: they are hard, and long ones take time
    balance = rng.dirichlet(np.full(n_classes, np.exp(rng.uniform(np.log(0.1), np.log(20)))))
    truth = rng.choice(n_classes, size=rows, p=balance)
    tables = random_tables(rng, labelers, n_classes, by_class=rng.random() < 0.5)
    below = np.cumsum(tables, axis=2)[:, :, :-1]
    draws = rng.random((rows, labelers))
    votes = np.stack([(draws[:, j, None] >= below[j, truth]).sum(axis=1) for j in range(labelers)], axis=1)
    coverage = rng.uniform(0.1, 1.0, labelers) if rng.random() < 0.5 else np.ones(labelers)
    votes[rng.random((rows, labelers)) >= coverage] = -1
    return GoldStream(votes.astype(np.int8), truth, n_classes)


def random_tables(rng: np.random.Generator, labelers: int, n_classes: int, by_class: bool) -> Floats:
    """Confusion tables (labelers x true class x vote) whose true class is the likeliest vote in each row."""
    chance = 1 / n_classes
    weakest, best = chance + WEAKEST * (1 - chance), 0.95
    right = rng.uniform(weakest, best, (labelers, n_classes if by_class else 1)) * np.ones(n_classes)
    even = (1 - np.eye(n_classes)) / (n_classes - 1)
    tables = np.empty((labelers, n_classes, n_classes))
    for labeler in range(labelers):
        for label_ in range(n_classes):
            errors = even[label_].copy()
            if by_class and n_classes > 2:
                errors[errors > 0] = rng.dirichlet(np.ones(n_classes - 1))
            skill = right[labeler, label_]
            # Errors that favour another class above the true one are made more even.
            while (1 - skill) * errors.max() >= skill:
                errors = (errors + even[label_]) / 2
            tables[labeler, label_] = (1 - skill) * errors
            tables[labeler, label_, label_] = skill
    return tables


def random(first: int, count: int) -> Numbers:
    """Gains over majority on random streams by their seeds."""
    return {"gains": {str(seed): random_gain(seed) for seed in range(first, first + count)}}


def random_gain(seed: int) -> float:
    """The gain over majority on one random stream."""
    stream = random_stream(seed)
    ours, majority = compare(stream, label(stream).codes)
    return ours - majority


# -- drift -------------------------------------------------------------------------------------------


def drift(name: str, seeds: int) -> Numbers:
    """How often labels are right in a scenario of drift, and how often the majority is, by seed."""
    found = []
    for seed in range(seeds):
        drawn = scenario(name, seed=seed)
        stream = GoldStream(drawn.votes, drawn.truth, drawn.n_classes)
        found.append(compare(stream, label(stream).codes))
    return {"ours": [ours for ours, _ in found], "majority": [majority for _, majority in found]}


def abrupt_stream(sparse: bool, seed: int) -> tuple[GoldStream, Floats]:
    """Six labelers, the first of which falls from 0.85 to 0.40; with its accuracies. Sparse: 4 vote, of 3 classes."""
    rng = np.random.default_rng([seed, 40])
    rows, n_classes = CHANGE_ROW + AFTER[-1] + 1, 3 if sparse else 2
    accuracies = np.tile(rng.uniform(0.65, 0.9, 6), (rows, 1))
    accuracies[:CHANGE_ROW, 0], accuracies[CHANGE_ROW:, 0] = 0.85, 0.40
    truth = rng.integers(n_classes, size=rows)
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=accuracies.shape)) % n_classes
    votes = np.where(rng.random(accuracies.shape) < accuracies, truth[:, None], wrong)
    if sparse:
        votes[rng.random(votes.shape).argsort(axis=1).argsort(axis=1) >= 4] = -1
    return GoldStream(votes.astype(np.int8), truth, n_classes), accuracies


def abrupt(sparse: bool, seeds: int) -> Numbers:
    """What is known of the labeler that fell: the error of its accuracy, whether its band holds the truth.

    `error` is the mean over the rows from 200 to 2,000 after the change, `held` the share of the streams whose band
    holds the truth so many rows after it, `across` the share of the rows after an event whose window reaches back
    across it, `detected` the share of the streams with an event.
    """
    errors, others, across, events = [], [], [], 0
    held: dict[int, list[bool]] = {after: [] for after in AFTER}
    for seed in range(seeds):
        stream, accuracies = abrupt_stream(sparse, seed)
        out = label(stream)
        later = slice(CHANGE_ROW + AFTER[0], CHANGE_ROW + AFTER[-1] + 1)
        gaps = np.abs(out.accuracies - accuracies)[later]
        errors.append(float(gaps[:, 0].mean()))
        others.append(float(gaps[:, 1:].mean()))
        low, high = out.bands()
        for after, found in held.items():
            row = CHANGE_ROW + after
            found.append(bool(low[row, 0] <= accuracies[row, 0] <= high[row, 0]))
        crossing = rows_across(out)
        events += any(event.row >= CHANGE_ROW for event in out.events)
        across.append(crossing)
    return {
        "error": float(np.mean(errors)),
        "error_others": float(np.mean(others)),
        "held": {str(after): float(np.mean(found)) for after, found in held.items()},
        "across": float(np.concatenate(across).mean()) if any(map(len, across)) else 0.0,
        "detected": events / seeds,
    }


def rows_across(out: LabeledStream) -> Codes:
    """For each row after an event: 1 if its window reaches back beyond the first row that the event may have begun."""
    rows = np.arange(len(out))
    starts = rows - out.windows + 1
    found = [np.zeros(0, np.int64)]
    for event, upcoming in zip(out.events, [*out.events[1:], None], strict=True):
        after = slice(event.row + 1, None if upcoming is None else upcoming.row + 1)
        found.append((starts[after] < event.since[0]).astype(np.int64))
    return np.concatenate(found)


# -- classes in runs ---------------------------------------------------------------------------------


def runs_stream(length: int, by_class: bool, seed: int = 0, rows: int = LONG_ROWS) -> GoldStream:
    """Two classes in runs of about `length` rows; six labelers that never change, some better at one class."""
    rng = np.random.default_rng([seed, 200, length])
    changes = rng.random(rows) < 1 / length
    truth = rng.integers(2, size=rows)[np.maximum.accumulate(np.where(changes, np.arange(rows), 0))]
    accuracy = np.stack([np.linspace(0.6, 0.9, 6)] * 2)
    if by_class:
        accuracy = np.array([[0.95, 0.9, 0.85, 0.6, 0.55, 0.75], [0.55, 0.6, 0.65, 0.9, 0.95, 0.75]])
    votes = np.where(rng.random((rows, 6)) < accuracy[truth], truth[:, None], 1 - truth[:, None])
    return GoldStream(votes.astype(np.int8), truth, 2)


def runs(length: int, by_class: bool) -> Numbers:
    """The median window and the number of events where nobody changes; rows of length 1 are independent."""
    out = label(runs_stream(length, by_class))
    return {"window": float(np.median(out.windows)), "events": len(out.events)}


if __name__ == "__main__":
    for given in sys.argv[1:]:
        drawn = random_stream(int(given))
        print(f"random stream {given}: {drawn.votes.shape[0]} rows, {drawn.votes.shape[1]} labelers,", end=" ")
        print(f"{drawn.n_classes} classes, gain {random_gain(int(given)):+.2f}")
