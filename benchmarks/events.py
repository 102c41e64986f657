"""Drift events against what is known to have happened: false alarms, delays, names, and real streams beside ADWIN.

`make events-bench` writes the tables of docs/events.md between their marks; figures are never typed in. The
detector sees only the votes, whatever the model, so long runs use the detector alone (at the default setting), and the
last table compares the events of the models on some of the same streams.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from driftvote import AccuracyEstimate, AdaptiveLabelModel, DriftDetector
from driftvote.drift.diagnosis import Change as Detected
from driftvote.drift.statistics import BLOCK
from driftvote.streams import permute
from driftvote.streams.wrench import load_wrench

PAGE = Path(__file__).parents[1] / "docs" / "events.md"
RATE = float(inspect.signature(AdaptiveLabelModel).parameters["false_event_rate"].default)
WITHIN = 1000
"""Rows after a shuffle within which an event counts as its discovery, unless the next shuffle comes first."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated."""

    quiet_streams: int
    quiet_rows: int
    runs: int
    slow_runs: int
    shuffles: int
    same: int


PLANS = {
    "full": Plan(400, 20_000, 400, 300, 10, 20),
    "quick": Plan(3, 4_000, 6, 2, 1, 1),
}


def votes_of(
    rng: np.random.Generator, accuracy: Any, n_classes: int = 2, coverage: Any = 1.0, balance: Any = None
) -> Any:
    """Votes of labelers with these accuracies (rows x labelers), wrong ones spread evenly over the other classes."""
    shape = accuracy.shape
    truth = rng.choice(n_classes, size=(shape[0], 1), p=balance)
    wrong = (truth + rng.integers(1, n_classes, shape)) % n_classes
    votes = np.where(rng.random(shape) < accuracy, truth, wrong).astype(np.int8)
    votes[rng.random(shape) >= coverage] = -1
    return votes


def detect(votes: Any, n_classes: int = 2) -> list[Detected]:
    """Changes that the detector finds; accuracies, which nothing here asks for, are not estimated."""
    n = votes.shape[1]
    unknown = AccuracyEstimate(np.zeros(n), np.ones(n))
    return DriftDetector(n, n_classes, false_event_rate=RATE, estimate=lambda rows: unknown).scan(votes)


def quiet_streams(n_rows: int) -> Iterator[tuple[str, str, int, Callable[[np.random.Generator], Any]]]:
    """Streams in which nothing changes: the ones of the promise, then others than the rule was tried on."""
    for n in (3, 6, 20):
        flat = np.full((n_rows, n), 0.8)
        yield "promise", f"{n} labelers at 0.8", 2, lambda rng, p=flat: votes_of(rng, p)
        yield "promise", f"{n} labelers at 0.8, 30% abstentions", 2, lambda rng, p=flat: votes_of(rng, p, coverage=0.7)
    for n in (4, 10):
        spread = np.tile(np.linspace(0.52, 0.97, n), (n_rows, 1))
        yield "other", f"{n} labelers from 0.52 to 0.97", 2, lambda rng, p=spread: votes_of(rng, p)
        some = np.linspace(0.1, 1.0, n)
        yield "other", f"{n} labelers, the same, voting on 10% to 100% of the rows", 2, (
            lambda rng, p=spread, c=some: votes_of(rng, p, coverage=c)
        )  # fmt: skip
    rare = np.full((n_rows, 6), 0.9)
    yield "other", "6 labelers at 0.9, one class in 30 rows", 2, (
        lambda rng: votes_of(rng, rare, balance=[29 / 30, 1 / 30])
    )  # fmt: skip
    four = np.tile(np.linspace(0.4, 0.9, 5), (n_rows, 1))
    yield "other", "5 labelers from 0.4 to 0.9, 4 uneven classes, 20% abstentions", 4, (
        lambda rng: votes_of(rng, four, 4, 0.8, [0.6, 0.25, 0.1, 0.05])
    )  # fmt: skip
    yield "other", "6 labelers at 0.99", 2, lambda rng: votes_of(rng, np.full((n_rows, 6), 0.99))


def false_alarms(plan: Plan) -> tuple[list[str], dict[str, bool]]:
    """Events in streams without drift."""
    lines = ["| stream without a change | rows | events | in 500,000 rows |", "|---|---|---|---|"]
    good: dict[str, bool] = {"promise": True, "other": True}
    for group, title, n_classes, make in quiet_streams(plan.quiet_rows):
        count = sum(
            len(detect(make(np.random.default_rng([1, seed])), n_classes)) for seed in range(plan.quiet_streams)
        )
        rows = plan.quiet_streams * plan.quiet_rows
        per = count / rows * 500_000
        good[group] &= per <= 1.0
        lines.append(f"| {title} | {rows:,} | {count} | {per:.2f} |")
    return lines, {
        "no drift: at most 1 false event in 500,000 rows (3, 6, 20 labelers; with and without abstentions)": good[
            "promise"
        ],
        "the same on streams of other shapes than the rule was tried on": good["other"],
    }


@dataclass(frozen=True)
class Change:
    """A stream that changes at a row, and what should be said of it."""

    title: str
    accuracy: Any
    at: int
    names: frozenset[int]
    kinds: tuple[str, ...]
    coverage: Any = 1.0
    balance: Callable[[np.random.Generator], Any] | None = None
    median: float | None = None
    named: float | None = None


def step(before: list[float], after: list[float], at: int, n_rows: int) -> Any:
    """Accuracies that change at one row."""
    return np.where(np.arange(n_rows)[:, None] < at, before, after)


BALANCE = ("class balance",)
LABELER = ("labeler worse", "labeler better", "labelers changed", "everything")


def changes() -> list[Change]:
    eight, at, rows = [0.8] * 4, 4000, 7000
    one = step([0.9, *eight, 0.8], [0.6, *eight, 0.8], at, rows)
    swap = step([0.9, 0.6, *eight], [0.6, 0.9, *eight], at, rows)
    flat = np.full((rows, 6), 0.8)
    less = np.where(np.arange(rows)[:, None] < at, 0.9, [0.4, *[0.9] * 5])
    first, none = frozenset({0}), frozenset[int]()
    return [
        Change("one of six, 0.9 to 0.6", one, at, first, LABELER, median=250, named=0.95),
        Change("the same, 30% abstentions", one, at, first, LABELER, coverage=0.7, median=900, named=0.95),
        Change("one of six, 0.6 to 0.9", one[::-1], rows - at, first, LABELER),
        Change("two of six swap 0.9 and 0.6", swap, at, frozenset({0, 1}), LABELER, named=0.9),
        Change(
            "the same, 30% abstentions", swap, at, frozenset({0, 1}), LABELER, coverage=0.7
        ),
        Change("one of three, 0.9 to 0.6", one[:, :3], at, first, LABELER),
        Change("one of twenty, 0.9 to 0.6", np.hstack([one, *[flat] * 2, flat[:, :2]]), at, first, LABELER),
        Change("one votes on 40% of the rows, not 90%", flat, at, first, ("coverage",), coverage=less),
        Change("class 1 on 70% of the rows, not 50%", flat, at, none, BALANCE, balance=_moved(at, rows, 0.8, 0.8)),
        Change("the same, right by class 0.95 and 0.7", flat, at, none, BALANCE, balance=_moved(at, rows, 0.95, 0.7)),
    ]  # fmt: skip


def _moved(at: int, rows: int, zero: float, one: float) -> Callable[[np.random.Generator], Any]:
    """Six labelers that are right on class 0 and on class 1 so often; class 1 becomes more common."""

    def make(rng: np.random.Generator) -> Any:
        truth = (rng.random((rows, 1)) < np.where(np.arange(rows)[:, None] < at, 0.5, 0.7)).astype(np.int64)
        return np.where(rng.random((rows, 6)) < np.where(truth == 0, zero, one), truth, 1 - truth).astype(np.int8)

    return make


def detections(plan: Plan) -> tuple[list[str], dict[str, bool]]:
    """Noticed, how soon, and who was named."""
    lines = [
        "| what changes | noticed | delay: median, 9 in 10 | right kind | exactly the right labelers"
        " | all of them | `since` holds the row | false events |",
        "|---|---|---|---|---|---|---|---|",
    ]
    told: dict[str, bool] = {}
    for place, change in enumerate(changes()):
        runs = [_one_run(change, place, seed) for seed in range(plan.runs)]
        seen = [run for run in runs if run.delay is not None]
        share = len(seen) / len(runs)
        delays = [run.delay for run in seen if run.delay is not None] or [10**9]
        exact, every, kind, inside = (
            np.mean([getattr(run, what) for run in seen]) if seen else 0.0
            for what in ("exact", "every", "kind", "inside")
        )
        false = sum(run.false for run in runs)
        middle, most = np.median(delays), np.percentile(delays, 90)
        lines.append(
            f"| {change.title} | {share:.1%} | {middle:.0f}, {most:.0f} rows | {kind:.1%} | {exact:.1%} | {every:.1%}"
            f" | {inside:.1%} | {false} |"
        )
        name = (
            change.title
            if change.title != "the same, 30% abstentions"
            else f"{changes()[place - 1].title}, 30% abstentions"
        )
        if change.median is not None:
            told[f"{name}: noticed in 99% of runs, median delay under {change.median:g} rows"] = share >= 0.99 and bool(
                middle < change.median
            )
        if change.named is not None:
            what = "the right labeler, and no other, named" if len(change.names) == 1 else "both named"
            told[f"{name}: {what} in {change.named:.0%} of the noticed"] = bool(
                (exact if len(change.names) == 1 else every) >= change.named
            )
    return lines, told


@dataclass(frozen=True)
class Run:
    """What was said of one stream."""

    delay: int | None
    exact: bool
    every: bool
    kind: bool
    inside: bool
    false: int


def _one_run(change: Change, place: int, seed: int) -> Run:
    rng = np.random.default_rng([2, place, seed])
    votes = change.balance(rng) if change.balance else votes_of(rng, change.accuracy, coverage=change.coverage)
    events = detect(votes)
    after = [event for event in events if event.row >= change.at]
    if not after:
        return Run(None, False, False, False, False, len(events))
    first = after[0]
    named = set(first.coverage if change.kinds == ("coverage",) else first.agreement)
    return Run(
        delay=first.row - change.at,
        exact=named == change.names,
        every=named >= change.names,
        kind=first.kind in change.kinds,
        inside=first.since[0] <= change.at <= first.since[1],
        false=len(events) - 1,
    )


def slow_decline(plan: Plan) -> tuple[list[str], dict[str, bool]]:
    """A decline over 20,000 rows: how far it had come when it was noticed."""
    head = "| one of six declines from 0.9 to 0.6 over 20,000 rows | noticed before it is over"
    lines = [f"{head} | after how many rows: median, 9 in 10 |", "|---|---|---|"]
    good = True
    for title, coverage in (("everybody votes", 1.0), ("30% abstentions", 0.7)):
        delays = []
        accuracy = np.full((24_000, 6), 0.8)
        accuracy[:, 0] = np.interp(np.arange(24_000), [4000, 23_999], [0.9, 0.6])
        for seed in range(plan.slow_runs):
            events = detect(votes_of(np.random.default_rng([3, seed]), accuracy, coverage=coverage))
            delays += [next((event.row - 4000 for event in events if 0 in event.agreement), 10**9)]
        share = float(np.mean([delay < 20_000 for delay in delays]))
        good &= share >= 0.99
        lines.append(f"| {title} | {share:.1%} | {np.median(delays):,.0f}, {np.percentile(delays, 90):,.0f} |")
    return lines, {"a slow decline over 20,000 rows: noticed before it is over, in 99% of runs": good}


def adwin_rows(votes: Any) -> list[int] | None:
    """Rows at which river's ADWIN, one for each pair's agreement on the rows where both vote, sees a change."""
    try:
        from river.drift import ADWIN
    except ImportError:
        return None
    found: set[int] = set()
    for i, j in combinations(range(votes.shape[1]), 2):
        watch = ADWIN()
        both = np.flatnonzero((votes[:, i] >= 0) & (votes[:, j] >= 0))
        for row, alike in zip(both.tolist(), (votes[both, i] == votes[both, j]).astype(float).tolist(), strict=True):
            watch.update(alike)
            if watch.drift_detected:
                found.add(row)
    return sorted(found)


def _found(shuffles: list[int], events: list[int], n_rows: int) -> int:
    """Shuffles after which an event came, within `WITHIN` rows and before the next shuffle."""
    ends = [*shuffles[1:], n_rows]
    return sum(
        any(row <= event < min(end, row + WITHIN) for event in events) for row, end in zip(shuffles, ends, strict=True)
    )


def shuffled(plan: Plan, data: Path) -> list[str]:
    """Real votes whose labelers change names at known rows."""
    lines = ["| stream | | shuffles | events | recall | precision |", "|---|---|---|---|---|---|"]
    for name in ("tennis", "commercial"):
        votes = np.ascontiguousarray(load_wrench(data / "wrench" / name).votes)
        counts: dict[str, Counter[str]] = {}
        for seed in range(plan.shuffles):
            moved, at = permute(votes, seed)
            moved = np.ascontiguousarray(moved)
            every = detect(moved)
            ways: dict[str, list[int] | None] = {
                "driftvote, every event": [event.row for event in every],
                "driftvote, without class balance": [e.row for e in every if e.kind != "class balance"],
                "river's ADWIN, any pair": adwin_rows(moved),
                "fires after every 64 rows": list(range(BLOCK - 1, len(moved), BLOCK)),
            }
            for way, events in ways.items():
                if events is not None:
                    found = _found(at.tolist(), events, len(moved))
                    counts.setdefault(way, Counter()).update(shuffles=len(at), events=len(events), found=found)
        for way, count in counts.items():
            recall, precision = count["found"] / max(1, count["shuffles"]), count["found"] / max(1, count["events"])
            counted = f"{count['shuffles']} | {count['events']}"
            lines.append(f"| {name}, permuted | {way} | {counted} | {recall:.2f} | {precision:.2f} |")
        lines.append(f"| {name} as it is | driftvote, every event | 0 | {len(detect(votes))} | | |")
    return lines


def same_events(plan: Plan) -> tuple[list[str], dict[str, bool]]:
    """The models on some of the streams: the same rows, kinds and names as the detector alone."""
    same = total = 0
    for place, change in enumerate(changes()[:4]):
        for seed in range(plan.same):
            rng = np.random.default_rng([2, place, seed])
            votes = votes_of(rng, change.accuracy, coverage=change.coverage)
            alone = [(one.row, one.about, one.kind) for one in detect(votes)]
            for model in (AdaptiveLabelModel(), AdaptiveLabelModel.paper()):
                events = [(one.row, one.about, one.kind) for one in model.label_stream(votes).events]
                same += events == alone
                total += 1
    return [
        f"{same} of {total} runs of the default model and of the paper's gave exactly the events of the detector alone."
    ], {"both models give the events of the detector": same == total}


def written(page: str, name: str, lines: list[str]) -> str:
    """The page with new lines between the marks of a table."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    assert pattern.search(page), f"the page has no place for {name}"
    return pattern.sub(lambda _: "\n".join([begin, *lines, end]), page)


def tables(plan: Plan, data: Path | None) -> dict[str, list[str]]:
    """Every table of the page by name, the summary too."""
    passed: dict[str, bool] = {}
    found: dict[str, list[str]] = {}
    for name, work in (
        ("quiet", false_alarms),
        ("changes", detections),
        ("slow", slow_decline),
        ("models", same_events),
    ):
        found[name], told = work(plan)
        passed |= told
    if data is not None:
        found["shuffled"] = shuffled(plan, data)
    found["summary"] = ["| must hold | |", "|---|---|"]
    found["summary"] += [f"| {what} | {'holds' if holds else '**does not hold**'} |" for what, holds in passed.items()]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", choices=sorted(PLANS), default="full")
    parser.add_argument("--data", type=Path, default=None, help="folder with wrench/tennis and wrench/commercial")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    page = given.page.read_text()
    for name, lines in tables(PLANS[given.plan], given.data).items():
        page = written(page, name, lines)
        print("\n".join(lines), flush=True)
    given.page.write_text(page)


if __name__ == "__main__":
    main()
