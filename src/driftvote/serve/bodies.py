"""Bodies of requests: JSON to rows of encoded votes, or an error that names the row and what is wrong with it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from driftvote.errors import DriftvoteError
from driftvote.models import AdaptiveLabelModel
from driftvote.serve import Limits
from driftvote.votes import BAD, VoteFormat, show_name

EXAMPLE = '{"rows": [{"id": "m1", "votes": {"a": "safe", "b": "unsafe", "c": null}}]}'
SERVER_ID = "row:"
"""Ids that the server gives to rows without one begin like this."""

DEEPEST = 32
"""How deeply objects and lists of the field "data" may be nested."""

_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class RequestError(DriftvoteError):
    """A request that is refused: an HTTP status, a code for programs, a sentence for people, and the row."""

    def __init__(self, status: int, code: str, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.row = row

    def body(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return {"error": {"code": self.code, "message": str(self), "row": self.row}}


class RowsIn(NamedTuple):
    """Rows of requests, by columns: each has an entry for each row."""

    ids: list[str | None]
    times: list[str | int | float | None]
    data: list[str | None]  # JSON
    names: list[tuple[str, ...]]  # of the labelers
    codes: list[list[int]]  # their votes as class codes, -1 abstains

    def votes_of(self, place: int) -> dict[str, int]:
        """Return the votes that were cast in a row."""
        return {name: code for name, code in zip(self.names[place], self.codes[place], strict=True) if code >= 0}

    def extend(self, more: RowsIn) -> None:
        """Append rows."""
        columns: Any = zip(self, more, strict=True)
        for column, added in columns:
            column.extend(added)

    def take(self, places: list[int]) -> RowsIn:
        """Return some of the rows."""
        columns: Any = self
        return RowsIn(*([column[place] for place in places] for column in columns))


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON text; every way of being wrong is one sentence."""
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
        if _ESCAPED_HALF.search(body):
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(400, "not_utf8", "the body is not UTF-8; write it as UTF-8") from None
    except UnicodeEncodeError:
        raise RequestError(400, "not_text", "a text of the body holds half a character (a lone surrogate)") from None
    except RecursionError:
        raise RequestError(400, "too_deep", "the body is nested too deeply") from None
    except ValueError as problem:
        raise RequestError(400, "not_json", f"the body is not JSON ({str(problem)[:200]})") from None
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RequestError(400, "repeated_key", f"{show(twice)} appears twice in one object; keep one of them")
    return found


def _constant(name: str) -> None:
    """None for NaN, which programs write for a missing number."""
    if name != "NaN":
        raise RequestError(400, "not_json", f"{name} is not a value of JSON; write a class, or null")


def show(value: Any) -> str:
    """Return a value for a message: JSON, cut short."""
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "something that is nested too deeply"
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_fields(found: Any, known: Iterable[str], what: str, example: str, row: int | None = None) -> dict[str, Any]:
    """Return an object after a look at its keys; a misspelled field must not be ignored."""
    if not isinstance(found, dict):
        raise RequestError(422, "wrong_type", f"{what} must be an object such as {example}, not {show(found)}", row)
    for name in found:
        if name not in known:
            allowed = ", ".join(known)
            raise RequestError(422, "unknown_field", f"{what} has no field {show(name)}; its fields are {allowed}", row)
    return found


def check_name(name: Any, what: str, limits: Limits, row: int | None = None) -> str:
    """Return the name of a stream, a labeler or a row: readable text of limited length."""
    if not isinstance(name, str) or not name.strip():
        raise RequestError(422, "bad_name", f"{what} must be text, not {show(name)}", row)
    if len(name) > limits.name_length:
        raise RequestError(
            422, "name_too_long", f"{what} has {len(name):,} characters; at most {limits.name_length:,} are taken", row
        )
    if not name.isprintable():
        raise RequestError(
            422, "bad_name", f"{what} must be readable text, without control characters: {show(name)}", row
        )
    return name


class BodyReader:
    """Reads the rows of one stream: names and classes are checked, votes become class codes."""

    def __init__(self, form: VoteFormat, limits: Limits) -> None:
        self._form = form
        self._limits = limits
        self._codes: dict[str | int | None, int] = {None: -1}  # of votes, as they are met
        self._names: set[tuple[str, ...]] = set()  # those that were checked before

    def read_body(self, body: bytes) -> RowsIn:
        """Return the rows of a JSON body."""
        found = self._read_plain(body)
        return found or self.read(check_fields(parse_json(body), ("rows",), "the body", EXAMPLE).get("rows"))

    def _read_plain(self, body: bytes) -> RowsIn | None:
        """Return the rows of a body in half the time; None where it needs a closer look.

        That no key appears twice is seen by counting: without a backslash, a colon stands behind a key or in a text.
        """
        if b"\\" in body:
            return None
        try:
            rows = json.loads(body.decode())["rows"]
            found = self.read(rows)
        except (ValueError, RecursionError, LookupError, TypeError, RequestError):
            return None
        keys = 1 + sum(map(len, rows)) + sum(map(len, found.names))
        texts = "".join(one for one in (*found.ids, *found.times, *found.data) if type(one) is str)
        return found if body.count(b":") == keys + texts.count(":") else None

    def read_lines(self, lines: Sequence[bytes]) -> RowsIn:
        """Return the rows of lines of JSON, one a line."""
        found = []
        for place, line in enumerate(lines):
            try:
                found.append(parse_json(line))
            except RequestError as refusal:  # noqa: PERF203
                message = str(refusal).replace("the body", "the line")
                raise RequestError(refusal.status, refusal.code, f"row {place}: {message}", place) from None
        return self.read(found)

    def read(self, rows: Any) -> RowsIn:
        """Return encoded rows; the first one that is wrong is named in the error."""
        if not isinstance(rows, list) or not rows:
            raise RequestError(422, "no_rows", f"there are no rows; the body is an object such as {EXAMPLE}")
        if len(rows) > self._limits.rows:
            raise RequestError(
                413,
                "too_many_rows",
                f"{len(rows):,} rows are more than the {self._limits.rows:,} of one request; send several, or lines of"
                " JSON (application/x-ndjson)",
            )
        found = [self._read_row(place, row) for place, row in enumerate(rows)]
        seen: dict[str, int] = {}
        for place, (row_id, *_) in enumerate(found):
            if row_id is not None and seen.setdefault(row_id, place) != place:
                raise RequestError(
                    422, "repeated_id", f"row {place}: its id is that of row {seen[row_id]} of this request", place
                )
        return RowsIn(*(list(column) for column in zip(*found, strict=True)))

    def _read_row(self, place: int, row: Any) -> tuple[Any, Any, Any, tuple[str, ...], list[int]]:
        if type(row) is not dict or not row.keys() <= _FIELDS:
            check_fields(row, ("id", "time", "votes", "data"), f"row {place}", '{"votes": {"a": 1}}', place)
        votes = row.get("votes")
        if not isinstance(votes, dict) or not votes:
            message = f'row {place}: "votes" must be an object of labelers and votes, not {show(votes)}'
            raise RequestError(422, "no_votes", message, place)
        names, known = tuple(votes), self._codes
        if names not in self._names:
            self._check_names(names, place)
        codes = []
        for name, value in votes.items():
            code = known.get(value) if type(value) in _KINDS else None
            codes.append(self._encode(place, name, value) if code is None else code)
        row_id, time, data = row.get("id"), row.get("time"), row.get("data")
        return (
            None if row_id is None else self._check_id(place, row_id),
            None if time is None else self._check_time(place, time),
            None if data is None else self._check_data(place, data),
            names,
            codes,
        )

    def _check_names(self, names: tuple[str, ...], place: int) -> None:
        if len(names) > self._limits.labelers:
            message = f"row {place}: {len(names)} labelers are more than {self._limits.labelers}"
            raise RequestError(422, "too_many_labelers", message, place)
        for name in names:
            check_name(name, f"row {place}: the name of a labeler", self._limits, place)
        if len(self._names) < 1_000:
            self._names.add(names)

    def _encode(self, place: int, name: str, value: Any) -> int:
        code = self._form.code_of(value, lenient=True) if isinstance(value, (str, int, float)) else BAD
        if code == BAD or (isinstance(value, float) and not math.isfinite(value)):
            raise RequestError(
                422,
                "unknown_class",
                f"row {place}, labeler {show_name(name)}: {show(str(value) if isinstance(value, float) else value)} is"
                f" not a vote; votes are {self._form.describe_values('null')}",
                place,
            )
        if type(value) in _KINDS and len(str(value)) <= self._limits.name_length and len(self._codes) < 10_000:
            self._codes[value] = code
        return code

    def _check_id(self, place: int, value: Any) -> str:
        if type(value) is str and value.isalnum() and len(value) <= self._limits.name_length:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
            value = str(value)
        row_id = check_name(value, f"row {place}: the id", self._limits, place)
        if row_id.startswith(SERVER_ID):
            message = f"row {place}: ids that begin with {SERVER_ID} are given by the server"
            raise RequestError(422, "reserved_id", message, place)
        return row_id

    def _check_time(self, place: int, value: Any) -> str | int | float:
        if isinstance(value, str):
            return check_name(value, f"row {place}: the time", self._limits, place)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1 << 53:
            return value
        raise RequestError(
            422, "bad_time", f"row {place}: the time must be text or a number, not {show(str(value))}", place
        )

    def _check_data(self, place: int, value: Any) -> str:
        found = check_fields(value, value, f'row {place}: "data"', '{"text": "..."}', place)
        if not _is_flat(found):
            message = (
                f'row {place}: "data" is nested too deeply; at most {DEEPEST} objects and lists may hold each other'
            )
            raise RequestError(422, "bad_data", message, place)
        try:
            text = json.dumps(found, allow_nan=False)
        except ValueError:
            raise RequestError(422, "bad_data", f'row {place}: "data" holds a number without an end', place) from None
        if len(text) > self._limits.data_bytes:
            raise RequestError(
                413,
                "data_too_large",
                f'row {place}: "data" has {len(text):,} bytes; at most {self._limits.data_bytes:,} are taken',
                place,
            )
        return text


_FIELDS = {"id", "time", "votes", "data"}
_KINDS = {str, int, type(None)}  # of votes whose codes are remembered


def _is_flat(value: Any) -> bool:
    """Whether objects and lists are nested little: what is stored must be readable inside of any answer."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return True
    return False


# -- settings of a stream ------------------------------------------------------------------------

MODEL_SETTINGS = (
    "classes",
    "n_classes",
    "votes",
    "abstain",
    "labelers",
    "estimator",
    "windows",
    "bound",
    "beta",
    "delta",
    "refresh",
    "class_balance",
    "clip",
    "abstentions",
    "tie_break_policy",
    "seed",
    "false_event_rate",
)
"""Settings of `AdaptiveLabelModel` that a stream may have."""

KEEPING = {"keep_rows": 1, "keep_days": 0, "review_below": 0}
"""Settings of the service, and their least values."""


def read_settings(body: bytes, limits: Limits) -> dict[str, Any]:
    """Return the settings of a new stream, checked: a model can be made of them."""
    found = parse_json(body) if body.strip() else {}
    settings = check_fields(found, (*MODEL_SETTINGS, *KEEPING), "the stream", '{"classes": ["safe", "unsafe"]}')
    # null is as good as nothing, but for events: there it says not to look for them.
    settings = {name: value for name, value in settings.items() if value is not None or name == "false_event_rate"}
    if "classes" not in settings and "votes" not in settings:
        raise RequestError(
            422,
            "no_classes",
            'a stream needs its classes, such as {"classes": ["safe", "unsafe"]}, or {"votes": "snorkel"} for 0, 1 and'
            " -1 (no vote)",
        )
    for name, least in KEEPING.items():
        value = settings.get(name, 1)
        whole = name == "keep_rows" and not isinstance(value, int)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or whole or not least <= value < 1e15:
            kind = "a whole number" if name == "keep_rows" else "a number"
            raise RequestError(422, "bad_setting", f"{name} must be {kind} from {least}, not {show(settings[name])}")
    _check_lists(settings, limits)
    model = make_model(settings)
    if model.vote_format.n_classes > limits.classes:
        found_classes = model.vote_format.n_classes
        raise RequestError(422, "too_many_classes", f"{found_classes:,} classes are more than {limits.classes:,}")
    if (model.memory_rows or 0) > 2 * limits.window:
        raise RequestError(
            422, "window_too_large", f"windows of more than {limits.window:,} rows would take too much memory"
        )
    return settings


def _check_lists(settings: dict[str, Any], limits: Limits) -> None:
    for name, most in (("classes", limits.classes), ("labelers", limits.labelers), ("windows", 64)):
        values = settings.get(name, [])
        if not isinstance(values, list):
            raise RequestError(422, "bad_setting", f"{name} must be a list, not {show(values)}")
        if len(values) > most:
            raise RequestError(422, f"too_many_{name}", f"{len(values):,} {name} are more than {most:,}")
        for value in values:
            if name == "windows":
                if type(value) is not int or not 0 < value <= limits.window:
                    message = f"windows are whole numbers from 1 to {limits.window:,}, not {show(value)}"
                    raise RequestError(422, "bad_setting", message)
            elif name == "labelers" or isinstance(value, str):
                check_name(value, f"one of the {name}", limits)
            elif isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1 << 53:
                raise RequestError(422, "bad_setting", f"classes are texts or numbers, not {show(str(value))}")
    n_classes = settings.get("n_classes", 2)
    if type(n_classes) is not int or n_classes > limits.classes:
        raise RequestError(
            422, "too_many_classes", f"n_classes must be at most {limits.classes:,}, not {show(n_classes)}"
        )


def make_model(settings: dict[str, Any]) -> AdaptiveLabelModel:
    """Return a new model of a stream's settings."""
    chosen = {name: value for name, value in settings.items() if name in MODEL_SETTINGS}
    if "clip" in chosen and isinstance(chosen["clip"], list):
        chosen["clip"] = tuple(chosen["clip"])
    try:
        return AdaptiveLabelModel(**chosen)
    except DriftvoteError as problem:
        raise RequestError(422, "bad_setting", str(problem)) from None
    except (TypeError, ValueError, OverflowError) as problem:  # values of a kind that nobody thought of
        raise RequestError(422, "bad_setting", f"a setting cannot be used ({str(problem)[:200]})") from None
