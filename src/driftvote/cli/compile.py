"""`driftvote compile`: compile all kernels now instead of on first use."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import typer

from driftvote.arrays import Codes
from driftvote.core.jit import on_compilation
from driftvote.core.label_models import ESTIMATORS, Mixture
from driftvote.drift.detector import DriftDetector
from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.models.base import LabelModel
from driftvote.report import from_arrays
from driftvote.streams import simulate

ROWS = 3000


def compile(quiet: bool = typer.Option(False, "--quiet", help="Print errors only.")) -> None:
    """Compile the kernels for this machine and cache them, so that the first call does not wait: for container images.

    Example: driftvote compile
    """
    names: list[str] = []
    on_compilation(names.append)
    start = time.monotonic()
    for what in exercise():
        if not quiet:
            typer.echo(f"{time.monotonic() - start:5.1f} s  {what}", err=True)
    if not quiet:
        done = f"compiled {len(names)} functions" if names else "everything was compiled before"
        typer.echo(f"{done}; NUMBA_CACHE_DIR sets the folder of the cache")


def exercise() -> Iterator[str]:
    """Use every kernel once on short streams with and without abstentions; yields what was used."""
    for n_classes in (2, 3):
        for votes in _streams(n_classes):
            for model in _models(n_classes):
                _use(model, votes)
            yield f"{n_classes} classes, {'some abstain' if (votes < 0).any() else 'all vote'}"
    votes = next(_streams(2))
    rarer = np.repeat(np.array([[0.5, 0.5], [0.9, 0.1]]), 2 * ROWS, axis=0)  # a class gets rare
    rare = simulate(np.full((4 * ROWS, 5), 0.85), 0, class_balance=rarer).votes.astype(np.int8)
    for rows in (votes, votes.astype(np.int64), rare):
        DriftDetector(rows.shape[1]).update(rows)
    yield "the drift detector without a model"
    from_arrays(votes, gold=votes[:, 0])
    yield "the report"


def _streams(n_classes: int) -> Iterator[Codes]:
    """Votes whose first labeler gets worse half-way; in the second stream others also vote less from there on."""
    accuracies = np.full((ROWS, 5), 0.85)
    accuracies[ROWS // 2 :, 0] = 0.3
    votes = simulate(accuracies, 0, n_classes=n_classes).votes.astype(np.int8)
    yield votes
    silent = np.random.default_rng(0).random(votes.shape) < 0.1
    silent[ROWS // 2 :, 1] |= np.random.default_rng(1).random(ROWS // 2) < 0.5
    yield np.where(silent, np.int8(-1), votes)


def _models(n_classes: int) -> Iterator[LabelModel]:
    for estimator in ESTIMATORS:
        yield AdaptiveLabelModel(n_classes=n_classes, estimator=estimator)
        yield AdaptiveLabelModel(n_classes=n_classes, estimator=estimator, false_event_rate=None)
    yield AdaptiveLabelModel.paper(n_classes)
    yield FixedWindowLabelModel(n_classes=n_classes, window=128)
    yield MajorityLabelModel(n_classes=n_classes)


def _use(model: LabelModel, votes: Codes) -> None:
    """Call every method that uses a kernel of its own."""
    model.update(votes[0])
    model.update(votes[1])
    model.label_stream(votes[2:100])
    out = model.label_stream(votes[100:1600])
    for begin in range(1600, len(votes), 64):  # an event that ends a batch
        model.label_stream(votes[begin : begin + 64])
    model.partial_fit(votes[:300]).partial_fit(votes[:50])
    model.predict(votes[:10])
    assert len(out.weights) == len(out.labels)
    if isinstance(model, AdaptiveLabelModel):
        out.explain()
        model.why_window()
        model.dependence()
        if model.estimator.learns_from_verified:
            model.update(votes[0], id="first")
            model.feedback("first", 1)
            model.update(votes[1], verified=0)
        if isinstance(model.estimator, Mixture):
            model.ask(1)
