"""The JSON twin of the page: the same dataclass as text, and back."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.report.context import FORMAT, Report


def to_plain(thing: Any) -> Any:
    """Dataclasses as dicts, all the way down."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        said = {"sentence": thing.sentence} if hasattr(thing, "sentence") else {}
        return said | {field.name: to_plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    if isinstance(thing, dict):
        return {key: to_plain(value) for key, value in thing.items()}
    return [to_plain(value) for value in thing] if isinstance(thing, (list, tuple)) else thing


def report_to_json(report: Report) -> str:
    """The report as JSON text; the same report gives the same bytes."""
    # NaN is not JSON; nothing in a report may be one, and an error here is better than a file nobody can read.
    return json.dumps(to_plain(report), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def report_from_json(text: str | Path) -> Report:
    """A report from JSON text or from a file of it."""
    said = text.read_text(encoding="utf-8") if isinstance(text, Path) else text
    try:
        plain = json.loads(said)
    except ValueError as problem:
        raise DriftvoteError(
            f"this is not the JSON of a report ({problem}); pass a file that write_report made"
        ) from None
    found = plain.get("format") if isinstance(plain, dict) else None
    if found != FORMAT:
        raise DriftvoteError(f"this is not a report of format {FORMAT} but of {found!r}; make the report again")
    try:
        return typing.cast("Report", _from_plain(Report, plain))
    except (KeyError, TypeError) as problem:
        raise DriftvoteError(f"the report is damaged ({problem}); make it again") from None


def _from_plain(kind: Any, plain: Any) -> Any:
    """Build what the annotation says."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        assert isinstance(kind, type)
        return kind(
            **{field.name: _from_plain(hints[field.name], plain[field.name]) for field in dataclasses.fields(kind)}
        )
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        if plain is None:
            return None
        inner = [a for a in arguments if dataclasses.is_dataclass(a) or typing.get_origin(a) in (list, tuple)]
        return _from_plain(inner[0], plain) if inner else plain
    if typing.get_origin(kind) is list:
        return [_from_plain(arguments[0], value) for value in plain]
    if typing.get_origin(kind) is tuple:
        many = len(arguments) == 2 and arguments[1] is Ellipsis
        kinds = [arguments[0]] * len(plain) if many else arguments
        return tuple(_from_plain(one, value) for one, value in zip(kinds, plain, strict=True))
    return plain
