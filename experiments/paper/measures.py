"""Models, measures and claims that the experiments share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, LabelModel, MajorityLabelModel

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

PROTOCOL: dict[str, Any] = {"abstentions": "random", "tie_break_policy": "random"}
"""What the paper does with abstentions and ties."""

ALL_PAST = "all past"
HOLDS, DIFFERS, WITHIN_CHANCE = "holds", "**differs**", "holds within the coin tosses"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper with its figure, and ours."""

    statement: str
    paper: str
    ours: str
    verdict: str
    note: str = ""


def verdict_of(holds: bool) -> str:
    return HOLDS if holds else DIFFERS


def accuracy(codes: Ints, truth: Ints) -> float:
    """Per cent of rows labeled right."""
    return float(100.0 * (codes == truth).mean())


def f1(codes: Ints, truth: Ints) -> float:
    """Per cent; harmonic mean of precision and recall for class 1."""
    hits = np.sum((codes == 1) & (truth == 1))
    named = np.sum(codes == 1) + np.sum(truth == 1)
    return float(200.0 * hits / named) if named else 0.0


def mean_and_spread(values: Iterable[float]) -> dict[str, float]:
    """Mean, standard deviation over runs, and standard error of the mean."""
    array = np.array(list(values), np.float64)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return {"mean": float(array.mean()), "sd": deviation, "se": deviation / math.sqrt(len(array)), "n": len(array)}


def mean_of_next(right: npt.NDArray[np.bool_], span: int) -> Floats:
    """At each row, the mean over it and the rows after it, `span` in all; the last rows have no full span.

    >>> mean_of_next(np.array([True, False, True, True]), 2)
    array([0.5, 0.5, 1. ])
    """
    sums = np.concatenate([[0], np.cumsum(right)])
    return (sums[span:] - sums[:-span]) / span


def thin_out(values: npt.NDArray[Any], most: int = 1000) -> list[Any]:
    """At most about `most` values at even steps, for drawing."""
    step = max(1, math.ceil(len(values) / most))
    return np.round(values[::step].astype(np.float64), 5).tolist()


def make_models(n_rows: int, seed: int) -> dict[str, LabelModel]:
    """Every strategy that the paper compares, by name; fixed windows are powers of two that fit into the stream."""
    models: dict[str, LabelModel] = {
        "adaptive": AdaptiveLabelModel.paper(seed=seed),
        "majority": MajorityLabelModel(**PROTOCOL, seed=seed),
        ALL_PAST: FixedWindowLabelModel(window=None, **PROTOCOL, seed=seed),
    }
    for size in (2**k for k in range(20) if 2**k <= n_rows):
        models[str(size)] = FixedWindowLabelModel(window=size, **PROTOCOL, seed=seed)
    return models


def best_fixed(table: dict[str, dict[str, float]]) -> tuple[str, float]:
    """The fixed window (or all past) with the best mean in hindsight."""
    fixed = {name: row["mean"] for name, row in table.items() if name == ALL_PAST or name.isdigit()}
    name = max(fixed, key=fixed.__getitem__)
    return name, fixed[name]


def fixed_windows(names: Iterable[str]) -> list[str]:
    """The names of fixed windows among those of all strategies, all past at the end."""
    return [*(name for name in names if name.isdigit()), ALL_PAST]


def sort_strategies(names: Sequence[str]) -> list[str]:
    """Strategies in the order of the paper's table: adaptive, all past, majority, then windows by size."""
    rank = {"adaptive": -3, ALL_PAST: -2, "majority": -1}
    return sorted(names, key=lambda name: rank.get(name, int(name) if name.isdigit() else -1))
