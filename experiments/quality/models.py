"""The label models of this package that are measured on real streams, and one run of one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.models import AdaptiveLabelModel, LabelModel
from experiments.quality.scoring import describe, score
from experiments.quality.streams import load
from experiments.runs import Numbers, Run

DEFAULT, ALL_PAST, PAPER = "AdaptiveLabelModel()", "the same on all past", "the paper"
LONGER_THAN_ANY_STREAM = 2**19
PAPER_SEEDS = (0, 1)  # the paper's method draws at random
SHUFFLES = (1, 2)
CODE = ("quality.models", "quality.scoring", "quality.streams")
"""Modules beside the package that results depend on."""


def adaptive(n_classes: int, **settings: Any) -> AdaptiveLabelModel:
    """The default model, with some settings changed."""
    return AdaptiveLabelModel(n_classes=n_classes, votes="snorkel", **settings)


MODELS: dict[str, Callable[[int, int], LabelModel]] = {
    DEFAULT: lambda n_classes, seed: adaptive(n_classes),
    ALL_PAST: lambda n_classes, seed: adaptive(n_classes, windows=[LONGER_THAN_ANY_STREAM]),
    PAPER: lambda n_classes, seed: AdaptiveLabelModel.paper(n_classes, votes="snorkel", seed=seed),
}
"""By name, a function of the number of classes and of the seed."""


def plan_run(data: Path, stream: str, model: str, seed: int = 0, shuffle: int = 0, limit: int | None = None) -> Run:
    """A run whose result is cached; `shuffle` is the seed of a random order of the rows, 0 leaves them as they are."""
    arguments = {
        "data": str(data),
        "stream": stream,
        "model": model,
        "seed": seed,
        "shuffle": shuffle,
        "limit": limit,
    }
    place = list(MODELS).index(model)
    name = f"{stream}-{place}-{seed}-{shuffle}" + ("" if limit is None else f"-{limit}")
    return Run("quality.models", name, arguments, CODE)


def run(data: str, stream: str, model: str, seed: int, shuffle: int, limit: int | None) -> Numbers:
    """Figures of a label model on a stream."""
    votes = load(data, stream).first(limit)
    if shuffle:
        votes = votes.shuffled(shuffle)
    made = MODELS[model](votes.n_classes, seed)
    out = made.label_stream(votes.votes)
    found = score(votes, out.codes, out.proba) | {"window": float(np.median(out.windows)), "events": len(out.events)}
    return describe(votes) | found
