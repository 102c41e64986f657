"""What is measured and at which sizes: the full suite, a quick one of a minute or two, a tiny one for tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

GRIDS = {
    "default": "1, 2, 4 ... 2^19",
    "shorter": "1, 2, 4 ... 2^11",
    "geometric": "growing 5.83-fold up to 2^19",
}
ESTIMATORS = {
    "triplet": "the paper's, one accuracy from three labelers at every row",
    "confusion": "the default, class by class and fitted anew as the window moves",
}
STREAMS = {"steady": 0, "drifting": 100_000, "restless": 1_000}
"""After how many rows every labeler's accuracy is drawn anew; 0 is never."""


@dataclass(frozen=True)
class Case:
    """One stream of votes and the grid it is labeled with."""

    rows: int
    labelers: int = 6
    classes: int = 2
    abstain: float = 0.0
    grid: str = "default"
    stream: str = "drifting"
    estimator: str = "triplet"
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """Sizes of one run of the suite.

    `rounds` is how often an interleaved comparison goes round, and `budget` the seconds after which it
    starts no further round; the first round always runs, so slow code is measured once and not for hours.
    """

    name: str
    rows: tuple[int, ...]
    base_rows: int
    long_rows: int
    labelers: tuple[int, ...]
    labeler_rows: int
    classes: tuple[int, ...]
    abstain: tuple[float, ...]
    rounds: int
    budget: float
    check_rows: dict[int, int]
    warm_rows: int
    adwin_warm_rows: int
    latency_block: int
    latency_rows: int
    recompute_row: int
    chunked_rows: tuple[int, ...]
    chunk: int
    peer_rows: int
    slow_peer_rows: int
    peer_rounds: int

    def axes(self) -> dict[str, list[Case]]:
        """The cases of the throughput tables: one property varies, the others stay at the base."""
        base = Case(self.base_rows)
        narrow = Case(self.labeler_rows)
        return {
            "rows": [Case(rows) for rows in self.rows],
            "labelers": [replace(narrow, labelers=n) for n in self.labelers],
            "classes": [replace(base, classes=k) for k in self.classes],
            "abstain": [replace(base, abstain=rate) for rate in self.abstain],
            "estimator": [replace(base, estimator=estimator) for estimator in ESTIMATORS],
            "grid": [replace(base, grid=grid) for grid in GRIDS],
            "stream": [replace(base, stream=stream) for stream in STREAMS],
        }


FULL = Plan(
    name="full",
    rows=(10_000, 100_000, 1_000_000, 10_000_000),
    base_rows=1_000_000,
    long_rows=10_000_000,
    labelers=(3, 6, 10, 20, 32, 64),
    labeler_rows=100_000,
    classes=(2, 3, 5, 10),
    abstain=(0.0, 0.1, 0.3, 0.6),
    rounds=9,
    budget=6.0,
    check_rows={6: 1_000_000, 20: 200_000},
    warm_rows=2**19 + 1,
    adwin_warm_rows=50_000,
    latency_block=500,
    latency_rows=20_000,
    recompute_row=50_000,
    chunked_rows=(1_000_000, 10_000_000, 100_000_000),
    chunk=100_000,
    peer_rows=100_000,
    slow_peer_rows=10_000,
    peer_rounds=3,
)
QUICK = replace(
    FULL,
    name="quick",
    rows=(10_000, 100_000),
    base_rows=100_000,
    long_rows=1_000_000,
    labelers=(3, 6, 20),
    labeler_rows=20_000,
    classes=(2, 5),
    abstain=(0.0, 0.3),
    rounds=5,
    budget=2.0,
    check_rows={6: 100_000, 20: 20_000},
    warm_rows=20_000,
    adwin_warm_rows=5_000,
    latency_rows=2_000,
    chunked_rows=(100_000, 1_000_000),
    peer_rows=10_000,
    slow_peer_rows=2_000,
    peer_rounds=1,
)
TINY = replace(
    QUICK,
    name="tiny",
    rows=(200, 400),
    base_rows=300,
    long_rows=600,
    labelers=(3, 6),
    labeler_rows=200,
    rounds=2,
    budget=1.0,
    check_rows={6: 400, 20: 200},
    warm_rows=300,
    adwin_warm_rows=100,
    latency_block=20,
    latency_rows=50,
    recompute_row=200,
    chunked_rows=(1_000, 3_000),
    chunk=500,
    peer_rows=400,
    slow_peer_rows=200,
)
PLANS = {plan.name: plan for plan in (FULL, QUICK, TINY)}
