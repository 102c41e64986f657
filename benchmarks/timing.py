"""Clocks: sides of a comparison take turns in one process, and what counts is the ratio within a turn.

On a small, shared machine a time says little, because the next minute may be twice as slow. Two sides
timed one right after the other suffer the same neighbours, so their ratio is steady; its median over the
rounds is what the tables show.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Times = dict[str, list[float]]


def clock(work: Callable[[], Any]) -> float:
    """Seconds of one call; what it returns is freed after the clock stopped."""
    start = time.perf_counter()
    made = work()
    seconds = time.perf_counter() - start
    del made
    return seconds


def interleave(sides: Mapping[str, Callable[[], Any]], rounds: int, budget: float, uncounted: int = 0) -> Times:
    """Time every side once a round: A B C, A B C, ... until `rounds` or `budget` seconds are used up.

    Sides that need much fresh memory go some rounds `uncounted` first: a virtual machine gives memory that was not used
    for seconds back to its host, and getting it again can take longer than all the work.
    """
    times: Times = {name: [] for name in sides}
    for work in [*sides.values()] * uncounted:
        work()
    start = time.perf_counter()
    for _ in range(rounds):
        for name, work in sides.items():
            times[name].append(clock(work))
        if time.perf_counter() - start > budget:
            break
    return times


def ratio(times: Times, above: str, below: str) -> float:
    """Median over the rounds of the time of `above` divided by that of `below`."""
    return statistics.median(a / b for a, b in zip(times[above], times[below], strict=True))


def middle(values: list[float]) -> float:
    """The median, as a plain float."""
    return float(statistics.median(values))
