"""A model as a file: its settings, its names and its engine's arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftvote.errors import StateError
from driftvote.files.state import Arrays, read_state, write_state
from driftvote.votes import Roster


def write_model(model: Any, path: str | Path) -> None:
    """Write settings and state, whole or not at all."""
    write_state(path, *state_of(model))


def state_of(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Settings and state as a header and arrays."""
    for value in (*model._form.classes, model._form.abstain):
        if not isinstance(value, (str, int, float, type(None))):
            raise StateError(f"class {value!r} cannot be written to a state file; use text or numbers as classes")
    header = {
        "model": type(model).__name__,
        "settings": model._settings,
        "labelers": list(model._roster.names),
        "last_time": model._last_time,
        "members": list(model._families.members.names),
    }
    arrays = {} if model._engine is None else model._engine.arrays()
    if model._detector is not None:
        header["drift"], more = model._detector.to_state()
        arrays = arrays | more
    return header, arrays


def read_model(path: str | Path, wanted: type, kinds: dict[str, Any]) -> Any:
    """The model in a file; a file of another kind than wanted, or that does not fit, is refused."""
    header, arrays = read_state(path)
    kind = kinds.get(header["model"])
    if kind is None or not issubclass(kind, wanted):
        raise StateError(f"{path}: this is the state of {header['model']}, not of {wanted.__name__}; load it with that")
    return restore(kind, header, arrays, path)


def restore(kind: Any, header: dict[str, Any], arrays: Arrays, shown: str | Path) -> Any:
    """The model of a header and arrays that `state_of` made; `shown` names it in messages."""
    try:
        model = kind(**header["settings"])
        model._roster = Roster(tuple(header["labelers"]), model._roster.closed)
        model._families.members = Roster(tuple(header.get("members", ())), model._roster.closed)
        model._last_time = None if header["last_time"] is None else tuple(header["last_time"])
        if arrays:
            model._engine = model._new_engine(len(model._roster))
            model._engine.restore(arrays)
            model._resume_detector(header.get("drift"), arrays)
    except (TypeError, ValueError) as problem:
        raise StateError(f"{shown}: the state does not fit {header['model']}: {problem}") from problem
    return model
