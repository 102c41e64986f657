"""What a line says: the votes on a row, or the verified class of an earlier one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.times import parse_time
from driftvote.votes import BAD, VoteFormat, show_names

EXAMPLE = '{"id": "m-1", "votes": {"judge-a": "safe", "judge-b": "unsafe", "judge-c": null}}'
MOST_LABELERS = 1000
"""Names beyond this are no panel but something else in the wrong place, and each would cost a sum with every other."""

LATE, UNKNOWN = ("take", "refuse"), ("refuse", "abstain")


class LineError(DriftvoteError, ValueError):
    """A line that cannot be taken; the stream goes on without it."""


@dataclass(frozen=True)
class Row:
    """A line with votes, in the values of the declared format; None does not vote."""

    votes: dict[str, Any]
    id: Any = None
    time: Any = None
    verified: Any = None
    unknown: dict[str, Any] = field(default_factory=dict)  # votes without a meaning, where these count as none


@dataclass(frozen=True)
class Verification:
    """A line without votes: an earlier row, by its id or its number, is of this class."""

    key: Any
    by: str
    label: Any


class LineReader:
    """Reads lines under one declared format.

    Parameters
    ----------
    form
        How votes are written.
    labelers
        Who may vote; empty: whoever is named.
    unknown
        What a vote without a meaning does: `"refuse"` the line, or `"abstain"`.
    """

    def __init__(self, form: VoteFormat, labelers: Sequence[str] = (), unknown: str = "refuse") -> None:
        self.form = form
        self.labelers = tuple(labelers)
        self.unknown = unknown

    def read(self, line: bytes) -> Row | Verification:
        """The line's meaning, or a `LineError` that says what is wrong with it."""
        found = self._parsed(line)
        row_id = _id(found.get("id"))
        if "votes" not in found:
            return self._verification(found, row_id)
        votes = found["votes"]
        if not isinstance(votes, dict):
            raise LineError(f'"votes" must be an object of labelers and votes, not {_shown(votes)}; such as {EXAMPLE}')
        unknown: dict[str, Any] = {}
        read = {name: self._vote(name, value, unknown) for name, value in votes.items()}
        return Row(read, row_id, _time(found.get("time")), self._verified(found.get("verified")), unknown)

    def id_in(self, line: bytes) -> Any:
        """The id of a line that was refused, if it can be told."""
        try:
            return _id(self._parsed(line).get("id"))
        except LineError:
            return None

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line.decode(), object_pairs_hook=_object, parse_constant=_constant)
        except UnicodeDecodeError:
            raise LineError("it is not UTF-8; write the lines as UTF-8") from None
        except LineError:
            raise
        except (ValueError, RecursionError) as problem:
            raise LineError(f"it is not JSON ({problem}); a line is one object such as {EXAMPLE}") from None
        if not isinstance(found, dict):
            raise LineError(f"it is {_shown(found)}, not an object such as {EXAMPLE}")
        return found

    def _vote(self, name: str, value: Any, unknown: dict[str, Any]) -> Any:
        if self.labelers and name not in self.labelers:
            raise LineError(
                f"{name!r} is not one of the labelers {show_names(self.labelers)}; declare it with --labelers too"
            )
        if not isinstance(value, (str, int, float, type(None))):
            raise LineError(f"labeler {name!r}: {_shown(value)} is not a vote; write one class, or null")
        code = self.form.code_of(value, lenient=True)
        if code != BAD:
            return None if code < 0 else self.form.classes[code]
        if self.unknown == "abstain":
            unknown[name] = str(value) if isinstance(value, float) else value  # JSON has no infinity
            return None
        written = self.form.describe_values("null")
        raise LineError(
            f"labeler {name!r}: {_shown(value)} is not a vote; read as {written}; correct it, or pass"
            " --unknown abstain to count such a vote as none"
        )

    def _verified(self, value: Any) -> Any:
        if value is None:
            return None
        code = self.form.code_of(value, lenient=True) if isinstance(value, (str, int, float)) else BAD
        if code < 0:
            raise LineError(f"verified as {_shown(value)}, which is none of the classes {self.form.show_classes()}")
        return self.form.classes[code]

    def _verification(self, found: dict[str, Any], row_id: Any) -> Verification:
        label, row = self._verified(found.get("verified")), found.get("row")
        if label is None:
            raise LineError(f'there are no "votes"; a line is an object such as {EXAMPLE}')
        if (row is None) == (row_id is None):
            raise LineError('"verified" without votes needs the earlier row: its "id", or the "row" of its answer')
        if row is None:
            return Verification(row_id, "id", label)
        if not isinstance(row, int) or isinstance(row, bool):
            raise LineError(f'"row" is {_shown(row)}; name the whole number that the answer had')
        return Verification(row, "row", label)


def check_names(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Who is new among these names, or an error if they cannot join."""
    new = [name for name in names if name not in known]
    for name in new:
        if not name.strip() or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise LineError(f"{name!r} cannot be the name of a labeler; write text that can be read")
    if len(known) + len(new) < 3:
        raise LineError(
            f"at least 3 labelers are needed to tell who is right, and {len(known) + len(new)} are named so far; name"
            " all in the first line (null for no vote), or with --labelers"
        )
    if len(known) + len(new) > MOST_LABELERS:
        raise LineError(
            f"labeler {new[0]!r} would be one of more than {MOST_LABELERS:,}; are names and votes in their places?"
            " Declare them with --labelers if they are"
        )
    return new


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, each of whose keys is there once: of two votes of one labeler none is better."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise LineError(f"{twice!r} is there twice; keep one of them")
    return found


def _constant(name: str) -> None:
    """NaN is how programs write a missing number; infinities mean nothing here."""
    if name != "NaN":
        raise LineError(f"{name} is no value; write a class, or null")


def _id(value: Any) -> Any:
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise LineError(f'"id" is {_shown(value)}; write text or a number')


def _time(value: Any) -> Any:
    """A number, a moment in UTC (ISO 8601), or text that sorts."""
    if isinstance(value, str):
        return parse_time(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise LineError(f'"time" is {_shown(value)}; write a number, or a time such as "2026-05-31T14:20:00Z"')


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
