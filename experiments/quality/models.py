"""The models that are measured: a name and a function that makes the model for a number of classes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, LabelModel, MajorityLabelModel

Factory = Callable[[int], LabelModel]

DEFAULT, PAPER, PAPER_ZERO, MAJORITY = "default", "paper", "paper, abstentions as zero", "majority"
ALL_PAST, ALL_PAST_DEFAULT = "all past, paper's estimator", "all past, default's estimator"
LONGER_THAN_ANY_STREAM = 2**19
TRUE_WEIGHTS = "true weights"
"""Not a model: the vote weighted by the true accuracies, where they are known."""


def adaptive(n_classes: int, **settings: Any) -> AdaptiveLabelModel:
    """The default model, with some settings changed."""
    return AdaptiveLabelModel(n_classes=n_classes, votes="snorkel", **settings)


def paper(n_classes: int, **settings: Any) -> AdaptiveLabelModel:
    """The published method, with some settings changed."""
    return AdaptiveLabelModel.paper(n_classes=n_classes, votes="snorkel", **settings)


def paper_zero(n_classes: int) -> AdaptiveLabelModel:
    """The published method without randomness: abstentions count as zero, ties abstain."""
    return paper(n_classes, abstentions="zero", tie_break_policy="abstain")


MODELS: dict[str, Factory] = {
    DEFAULT: adaptive,
    PAPER: paper,
    PAPER_ZERO: paper_zero,
    ALL_PAST: lambda n_classes: FixedWindowLabelModel(window=None, n_classes=n_classes, votes="snorkel"),
    ALL_PAST_DEFAULT: lambda n_classes: adaptive(n_classes, windows=[LONGER_THAN_ANY_STREAM]),
    "window 256": lambda n_classes: adaptive(n_classes, windows=[256]),
    "window 1024": lambda n_classes: adaptive(n_classes, windows=[1024]),
    "window 4096": lambda n_classes: adaptive(n_classes, windows=[4096]),
    "default, bernstein": lambda n_classes: adaptive(n_classes, bound="bernstein"),
    "paper's estimator, default's window": lambda n_classes: adaptive(n_classes, estimator="triplet"),
    MAJORITY: lambda n_classes: MajorityLabelModel(n_classes=n_classes, votes="snorkel"),
}


def draws_randomly(model: LabelModel) -> bool:
    """Whether its labels depend on draws that are not averaged out; those of ties are."""
    return model.abstentions == "random"


def settings_of(model: LabelModel) -> dict[str, Any]:
    """The class and the settings of a model in plain values; two names with the same settings are one model."""
    kind = type(model)
    made = {"kind": kind.__name__, **{name: _to_plain(value) for name, value in model.get_params().items()}}
    # The code of a class outside the package may change between two calls: such a model is never the same.
    return made if kind.__module__.startswith("driftvote.") else {**made, "own": uuid.uuid4().hex}


def _to_plain(value: Any) -> Any:
    if isinstance(value, int | float | str | bool | None):
        return value
    return [_to_plain(part) for part in value] if hasattr(value, "__iter__") else repr(value)
