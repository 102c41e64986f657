"""The side that is measured: labeling with every output touched, on as many threads as asked for."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.plan import Case
from driftvote import AdaptiveLabelModel, WindowGrid

WARM_UP = 100_000
"""Rows that compile every kernel a long batch may take, before a clock starts; a fifth of it for many labelers."""


@lru_cache
def known_settings() -> frozenset[str]:
    """What this version of the model takes, looked up once: it is not what is measured."""
    return frozenset(inspect.signature(AdaptiveLabelModel).parameters)


def can_thread() -> bool:
    """Whether this version of the model takes `n_jobs`."""
    return "n_jobs" in known_settings()


def grid_of(name: str) -> WindowGrid:
    return {
        "default": WindowGrid.powers_of_two(20),
        "shorter": WindowGrid.powers_of_two(12),
        "geometric": WindowGrid.geometric(1, 2**19),
    }[name]


def new_model(classes: int = 2, grid: str = "default", jobs: int = 1, estimator: str = "triplet") -> AdaptiveLabelModel:
    """A model that has seen nothing, on `jobs` threads where the version can.

    Figures are of the paper's method unless they say otherwise: accuracies from triplets of labelers, in the window of
    Algorithm 1, with abstentions counted as zero.
    """
    settings: dict[str, Any] = {"n_classes": classes, "votes": "snorkel", "windows": grid_of(grid)}
    if "estimator" in known_settings() and estimator == "triplet":
        settings |= {"estimator": "triplet", "bound": "mcdiarmid", "watch": "agreements"}
    if can_thread():
        settings["n_jobs"] = jobs
    return AdaptiveLabelModel(**settings)


def touch(out: Any) -> tuple[np.ndarray, ...]:
    """Every output, so that one made on demand is made, and paid for, here."""
    return out.labels, out.codes, out.proba, out.windows, out.accuracies


def label_all(codes: np.ndarray, case: Case, jobs: int = 1) -> tuple[np.ndarray, ...]:
    """A new model labels the votes; all outputs."""
    return touch(new_model(case.classes, case.grid, jobs, case.estimator).label_stream(codes))


def warm_up(codes: np.ndarray, case: Case, jobs: Iterable[int] = (1,)) -> None:
    """Compile, or load from the cache, before anything is timed."""
    rows = WARM_UP if case.labelers <= 10 else WARM_UP // 5
    for threads in jobs:
        label_all(codes[:rows], case, threads)
