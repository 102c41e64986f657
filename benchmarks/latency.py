"""`update()` one row at a time, beside river's ADWIN fed once per pair of labelers.

Run as `python -m benchmarks.latency PLAN` by an interpreter that has river, so that both sides take turns in
one process; without river our side is measured alone. Prints JSON.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from itertools import combinations, cycle, islice
from statistics import median
from typing import Any

import numba
import numpy as np

from benchmarks.common import Case, interleave, make_votes, new_model, ratio
from benchmarks.throughput import PLANS, SuitePlan

try:
    import river
    from river.drift import ADWIN
except ImportError:
    river = None

PERCENTILES = {"median": 50, "p90": 90, "p99": 99, "max": 100}
ROUNDS = 21


def pair_agreements(codes: np.ndarray) -> list[list[int]]:
    """For every row, whether each pair of labelers agrees: the input of one detector per pair."""
    left, right = np.triu_indices(codes.shape[1], 1)
    return (codes[:, left] == codes[:, right]).astype(int).tolist()


def distribution(feed: Callable[[Any], Any], rows: Iterable[Any]) -> dict[str, float]:
    """Microseconds of single calls: median, percentiles, largest."""
    taken = []
    for row in rows:
        start = time.perf_counter_ns()
        feed(row)
        taken.append(time.perf_counter_ns() - start)
    found = np.percentile(taken, list(PERCENTILES.values())) / 1e3
    return {name: float(value) for name, value in zip(PERCENTILES, found, strict=True)}


def our_sides(codes: np.ndarray, warm_rows: int) -> dict[str, Callable[[Any], Any]]:
    """`update` alone, and with every output of the step read; the model has seen `warm_rows` rows."""
    model = new_model()
    model.partial_fit(codes[:warm_rows])

    def read(row: np.ndarray) -> tuple[Any, ...]:
        step = model.update(row)
        return step.label, step.proba, step.window, step.accuracies

    return {"update": model.update, "update, all outputs read": read}


def detector_sides(warm: np.ndarray) -> dict[str, Callable[[Any], Any]]:
    """One ADWIN per pair, warm: fed with ready-made agreements (the strict side), or with a row of votes."""
    pairs = list(combinations(range(warm.shape[1]), 2))
    bank = [ADWIN() for _ in pairs]

    def feed(agreements: list[int]) -> None:
        for detector, agree in zip(bank, agreements, strict=True):
            detector.update(agree)

    def feed_votes(row: np.ndarray) -> None:
        votes = row.tolist()
        for detector, (i, j) in zip(bank, pairs, strict=True):
            detector.update(votes[i] == votes[j])

    for agreements in pair_agreements(warm):
        feed(agreements)
    return {"adwin": feed, "adwin, fed from the votes": feed_votes}


def block_of(feed: Callable[[Any], Any], rows: list[Any], size: int) -> Callable[[], None]:
    """A piece of work: the next `size` rows, round and round."""
    endless = cycle(rows)

    def work() -> None:
        for row in islice(endless, size):
            feed(row)

    return work


def latency(labelers: int, plan: SuitePlan) -> dict[str, Any]:
    """Cost of a row in blocks that take turns, then the distribution over single rows."""
    fresh = max(plan.latency_rows, plan.latency_block)
    codes, _ = make_votes(Case(plan.warm_rows + fresh, labelers))
    last = codes[plan.warm_rows :]
    feeds = our_sides(codes, plan.warm_rows)
    rows: dict[str, list[Any]] = {name: list(last) for name in feeds}
    if river is not None:
        warm = codes[plan.warm_rows - plan.adwin_warm_rows : plan.warm_rows]
        feeds |= detector_sides(warm)
        rows |= {"adwin": pair_agreements(last), "adwin, fed from the votes": list(last)}
    for name, feed in feeds.items():
        block_of(feed, rows[name], plan.latency_block)()
    sides = {name: block_of(feed, rows[name], plan.latency_block) for name, feed in feeds.items()}
    times = interleave(sides, ROUNDS, 4 * plan.budget)
    found: dict[str, Any] = {
        "labelers": labelers,
        "pairs": labelers * (labelers - 1) // 2,
        "rounds": len(times["update"]),
        "microseconds": {name: median(values) / plan.latency_block * 1e6 for name, values in times.items()},
        "distribution": {name: distribution(feed, rows[name][: plan.latency_rows]) for name, feed in feeds.items()},
    }
    for key, name in {"ratio": "update", "ratio_read": "update, all outputs read"}.items():
        found[key] = ratio(times, name, "adwin") if river is not None else None
    return found


def main() -> None:
    plan = PLANS[sys.argv[1]]
    versions = {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}
    if river is not None:
        versions["river"] = river.__version__
    lines = [latency(labelers, plan) for labelers in (6, 20)]
    settings = {"warm_rows": plan.warm_rows, "adwin_warm_rows": plan.adwin_warm_rows, "block": plan.latency_block}
    print(json.dumps({**settings, "rows": plan.latency_rows, "lines": lines, "versions": versions}))


if __name__ == "__main__":
    main()
