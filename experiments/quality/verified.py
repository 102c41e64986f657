"""The default model when somebody verifies a few rows, some time after they were labeled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.quality import measures
from experiments.quality.measures import Numbers
from experiments.quality.models import DEFAULT, MODELS
from experiments.quality.streams import Measured, Spec
from experiments.quality.work import QualityRun, loaded

SHARES = (0.01, 0.05, 0.1)
"""Of the rows, verified; none at all is the default model's own run."""

DELAY = 100
"""A row is verified when at least so many more have come."""

PICKS = 3
"""Draws of the rows that are verified; of streams that are drawn themselves, each draw has its own."""


def runs_of(
    data: Path, specs: Sequence[Spec], settings: Any, limit: int | None
) -> dict[tuple[str, float], list[QualityRun]]:
    """Runs by stream and share."""
    made: dict[tuple[str, float], list[QualityRun]] = {}
    for spec in specs:
        picks = [spec.seed] if spec.fresh_rows else range(PICKS)
        for share in SHARES:
            made.setdefault((spec.name, share), []).extend(
                _run_of(data, spec, settings, share, pick, limit) for pick in picks
            )
    return made


def _run_of(data: Path, spec: Spec, settings: Any, share: float, pick: int, limit: int | None) -> QualityRun:
    rows = "" if limit is None else f"-{limit}"
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    name = f"verified-{spec.group}-{spec.name}-{spec.seed}{rows}-{digest}-{share:g}-{pick}"
    arguments: dict[str, Any] = {"data": str(data), **{f"stream_{key}": value for key, value in asdict(spec).items()}}
    arguments |= {"model": DEFAULT, "settings": settings, "share": share, "pick": pick, "limit": limit}
    return QualityRun("quality.verified", name, arguments)


def run(
    data: str,
    stream_name: str,
    stream_group: str,
    stream_seed: int,
    model: str,
    settings: Any,
    share: float,
    pick: int,
    limit: int | None,
) -> Numbers:
    """Called by the name of this module, in whatever process."""
    stream = loaded(data, Spec(stream_name, stream_group, stream_seed)).first(limit)
    return {"accuracy": accuracy(stream, MODELS[model](stream.n_classes), share, pick)}


def accuracy(stream: Measured, model: Any, share: float, pick: int) -> float:
    """Accuracy of the labels as they came out, before their rows were verified; in per cent."""
    n_rows = len(stream.truth)
    # The rows of a smaller share are among those of a larger one: more is really more.
    picked = np.random.default_rng([pick, 11]).random(n_rows) < share
    codes, proba = [], []
    for begin in range(0, n_rows, DELAY):
        out = model.label_stream(stream.votes[begin : begin + DELAY])
        codes.append(out.codes)
        proba.append(out.proba)
        first = max(0, begin - DELAY, model.n_rows - model.windows[-1])
        rows = np.flatnonzero(picked[first:begin]) + first
        if len(rows):
            model.feedback(rows, stream.truth[rows])
    parts = measures.shares(np.concatenate(codes), np.concatenate(proba), drawn=False)
    return 100 * float(measures.credits_of(parts, stream.truth).mean())


def summed_up(
    plain: Mapping[str, Any], planned: Mapping[tuple[str, float], Sequence[QualityRun]], found: Mapping[str, Numbers]
) -> dict[str, Any]:
    """Of each stream the mean accuracy by share, and its lowest draw."""
    made: dict[str, Any] = {}
    for name, entry in plain.items():
        own = entry["models"][DEFAULT]
        made[name] = {"0": {"accuracy": own["accuracy"], "lowest": own["lowest"], "runs": own["seeds"]}}
        for share in SHARES:
            values = [found[run.name]["accuracy"] for run in planned[name, share]]
            made[name][f"{share:g}"] = {
                "accuracy": float(np.mean(values)),
                "lowest": min(values),
                "runs": len(values),
            }
    return made


def losses(verified: Mapping[str, Any]) -> dict[str, float]:
    """Of each stream how much was ever lost by verifying more rows: 0 if nothing was."""
    made = {}
    for name, entry in verified.items():
        means = [found["accuracy"] for found in entry.values()]
        made[name] = max(0.0, max(max(means[: place + 1]) - mean for place, mean in enumerate(means)))
    return made
