"""One run: a model on one stream, all at once or with some of its rows verified."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.models import LabelModel, MajorityLabelModel
from experiments.quality import measures
from experiments.quality.models import DEFAULT, MODELS, TRUE_WEIGHTS, draws_randomly
from experiments.quality.streams import GoldStream, StreamSpec, load
from experiments.runs import Numbers, Run

CODE = ("quality.measures", "quality.streams", "quality.work")
"""Modules whose code results depend on. Models are recognised by their settings: a new one makes no result stale."""

SHARES = (0.01, 0.05, 0.1)
"""Of the rows, verified; 0 is the default model's own run."""

DELAY = 100
"""A row is verified when at least so many more have come."""

PICKS = 3
"""Draws of the rows that are verified; of streams that are drawn themselves, each draw has its own."""


def plan_run(data: Path, spec: StreamSpec, model: str, settings: Any, limit: int | None, **more: Any) -> Run:
    """The run of a model with these settings.

    `more` is `seed`, or `share` and `pick` of verified rows. The name holds the settings, so that models with the same
    settings share a run; the model's own name does not matter.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    parts = [spec.group, spec.name, spec.seed, *([] if limit is None else [limit]), digest, *more.values()]
    name = "-".join(["verified"] * ("share" in more) + [str(part) for part in parts])
    arguments = {"data": str(data), "stream": asdict(spec), "model": model, "settings": settings, "limit": limit}
    return Run("quality.work", name, arguments | more, CODE, labels=("model",))


def plan_verified(data: Path, spec: StreamSpec, settings: Any, limit: int | None) -> dict[float, list[Run]]:
    """Runs of the default model with verified rows, by their share."""
    picks = [spec.seed] if spec.fresh_rows else range(PICKS)
    return {
        share: [plan_run(data, spec, DEFAULT, settings, limit, share=share, pick=pick) for pick in picks]
        for share in SHARES
    }


def run(
    data: str,
    stream: dict[str, Any],
    model: str,
    settings: Any,
    limit: int | None,
    seed: int = 0,
    share: float = 0.0,
    pick: int = 0,
) -> Numbers:
    votes = load_cached(data, StreamSpec(**stream)).first(limit)
    if model == TRUE_WEIGHTS:
        assert votes.accuracies is not None
        return measures.measure_labels(
            votes, *measures.true_weight_vote(votes.votes, votes.accuracies, votes.n_classes)
        )
    made = MODELS[model](votes.n_classes)
    if share:
        return {"accuracy": accuracy_with_verified(votes, made, share, pick)}
    return measure_model(votes, with_seed(made, seed))


@lru_cache(maxsize=2)
def load_cached(data: str, spec: StreamSpec) -> GoldStream:
    """The stream; runs on one stream follow each other, so the last two stay in memory."""
    return load(data, spec)


def with_seed(model: LabelModel, seed: int) -> LabelModel:
    """The same model with other draws, if it makes any."""
    return model.clone().set_params(seed=seed) if draws_randomly(model) else model


def measure_model(stream: GoldStream, model: LabelModel) -> Numbers:
    """All measures of what a fresh model makes of a stream."""
    out = model.label_stream(stream.votes)
    # A majority vote estimates no accuracies.
    estimates = None if isinstance(model, MajorityLabelModel) else out.accuracies
    numbers = measures.measure_labels(stream, out.codes, out.proba, estimates, model.tie_break_policy == "random")
    return numbers | {"window": float(np.median(out.windows))}


def accuracy_with_verified(stream: GoldStream, model: Any, share: float, pick: int) -> float:
    """Accuracy of the labels as they came out, before their rows were verified; in per cent."""
    n_rows = len(stream.truth)
    # The rows of a smaller share are among those of a larger one: more is really more.
    picked = np.random.default_rng([pick, 11]).random(n_rows) < share
    codes, proba = [], []
    for begin in range(0, n_rows, DELAY):
        out = model.label_stream(stream.votes[begin : begin + DELAY])
        codes.append(out.codes)
        proba.append(out.proba)
        first = max(0, begin - DELAY, model.n_rows - model.windows.grid[-1])
        rows = np.flatnonzero(picked[first:begin]) + first
        if len(rows):
            model.feedback(rows, stream.truth[rows])
    parts = measures.shares(np.concatenate(codes), np.concatenate(proba), drawn=False)
    return 100 * float(measures.credit(parts, stream.truth).mean())
