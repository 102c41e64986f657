"""`label_stream` with all outputs beside the majority line: tables over one property at a time, and the ratios."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child
from benchmarks.ours import can_thread, label_all, warm_up
from benchmarks.plan import Case, Plan
from benchmarks.streams import majority, make_votes, signed
from benchmarks.timing import interleave, middle, ratio

MEMORY_AXES = ("rows", "labelers", "classes")
"""Where peak memory is measured too; abstentions, grids and drift do not change what is held."""


def timed(codes: np.ndarray, case: Case, rounds: int, budget: float) -> dict[str, Any]:
    """Time and ratio of one case."""
    votes = signed(codes)
    warm_up(codes, case)
    sides = {"majority": lambda: majority(votes), "ours": lambda: label_all(codes, case)}
    times = interleave(sides, rounds, budget)
    seconds = middle(times["ours"])
    return {
        **case.as_dict(),
        "seconds": seconds,
        "rows_per_second": case.rows / seconds,
        "majority_seconds": middle(times["majority"]),
        "ratio": ratio(times, "ours", "majority"),
        "rounds": len(times["ours"]),
    }


def measure(case: Case, plan: Plan, memory: bool) -> dict[str, Any]:
    """Time, ratio and, if asked for, the peak memory of a process that does nothing else."""
    codes, _ = make_votes(case)
    found = timed(codes, case, plan.rounds, plan.budget)
    if not memory:
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.npy"
        np.save(path, codes)
        found |= child.measure("batch", {"votes": str(path), "case": case.as_dict()})
    return {**found, "votes_mb": codes.nbytes / 1e6}


def axes(plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Every table: rows, labelers, classes, abstentions, grids, drift."""
    found: dict[str, list[dict[str, Any]]] = {}
    for axis, cases in plan.axes().items():
        found[axis] = []
        for case in cases:
            line = measure(case, plan, memory=axis in MEMORY_AXES)
            found[axis].append(line)
            print(f"  {axis} {line[axis]}: {line['rows_per_second']:,.0f} rows/s, {line['ratio']:.1f} x majority")
    return found


def threads(plan: Plan) -> dict[str, Any]:
    """One thread, two threads and the majority line, taking turns on the same votes."""
    case = Case(plan.base_rows)
    codes, _ = make_votes(case)
    votes = signed(codes)
    sides = {"majority": lambda: majority(votes), "one": lambda: label_all(codes, case)}
    if can_thread():
        sides["two"] = lambda: label_all(codes, case, jobs=2)
    warm_up(codes, case, (1, 2))
    # Rounds are short and one in four is disturbed by neighbours: many of them make the median a steady one.
    times = interleave(sides, 5 * plan.rounds, 4 * plan.budget, uncounted=3)
    return {
        **case.as_dict(),
        "rounds": len(times["one"]),
        "seconds": {name: middle(values) for name, values in times.items()},
        "over_majority": ratio(times, "one", "majority"),
        "two_over_majority": ratio(times, "two", "majority") if "two" in times else None,
        "speed_up": ratio(times, "one", "two") if "two" in times else None,
    }


def growth(plan: Plan) -> dict[str, Any]:
    """How the cost grows with labelers (6 to 20) and with rows (tenfold), each pair taking turns."""
    base = Case(plan.base_rows)
    found: dict[str, Any] = {}
    for name, other in {"labelers": Case(plan.base_rows, labelers=20), "rows": Case(plan.long_rows)}.items():
        small, large = make_votes(base)[0], make_votes(other)[0]
        warm_up(small, base)
        warm_up(large, other)
        sides = {
            "base": lambda votes=small: label_all(votes, base),
            "other": lambda votes=large, case=other: label_all(votes, case),
        }
        times = interleave(sides, plan.rounds, 5 * plan.budget, uncounted=1)
        found[name] = {
            "base": base.as_dict(),
            "other": other.as_dict(),
            "base_seconds": middle(times["base"]),
            "other_seconds": middle(times["other"]),
            "ratio": ratio(times, "other", "base"),
            "rounds": len(times["base"]),
        }
    return found
