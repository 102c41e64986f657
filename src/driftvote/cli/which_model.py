"""Models by the words of the command line."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, LabelModel, MajorityLabelModel
from driftvote.votes import VoteFormat

_DECLARED = ("n_classes", "votes", "classes", "abstain", "labelers", "window")


def make_model(spec: str, form: VoteFormat, settings: Sequence[str] | None = None) -> LabelModel:
    """The model that `--model` and `--set` describe, for votes in this format."""
    name, _, size = spec.partition(":")
    values = read_settings(settings or ())
    votes = format_settings(form)
    if name == "window" and size.isdigit():
        kind: Any = FixedWindowLabelModel
        votes["window"] = int(size)
    elif spec == "all-past":
        kind, votes["window"] = FixedWindowLabelModel, None
    elif spec == "paper":
        kind = AdaptiveLabelModel
        _refuse_unknown(kind, values)
        return AdaptiveLabelModel.paper(**(votes | values))
    elif spec in ("adaptive", "majority"):
        kind = AdaptiveLabelModel if spec == "adaptive" else MajorityLabelModel
    else:
        raise DriftvoteError(
            f"--model {spec}: there is no such model; choose adaptive, paper, majority, all-past or window:1024"
        )
    _refuse_unknown(kind, values)
    model: LabelModel = kind(**votes, **values)
    return model


def format_settings(form: VoteFormat) -> dict[str, Any]:
    """The settings that declare this format to a model."""
    if form.name == "classes":
        return {"classes": list(form.classes), "abstain": form.abstain}
    return {"votes": form.name if form.declared else None, "n_classes": form.n_classes}


def read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """The values of `--set`, by name."""
    values = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise DriftvoteError(f"--set {text}: write name=value, such as --set beta=0.2")
        try:
            values[key.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            values[key.strip().replace("-", "_")] = value.strip()
    return values


def _refuse_unknown(kind: type[LabelModel], values: dict[str, Any]) -> None:
    known = [name for name in inspect.signature(kind).parameters if name not in _DECLARED]
    for name in values:
        if name not in known:
            raise DriftvoteError(f"--set {name}: {kind.__name__} has no such setting; it has {', '.join(known)}")
