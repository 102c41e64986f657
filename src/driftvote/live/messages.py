"""Lines of a stream: parse a line of votes, check its time, format its answer."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.live import WatchOptions
from driftvote.models import Step
from driftvote.times import UTC, LastTime, given_form, parse_time, read_again, read_time, to_python
from driftvote.votes import BAD, VoteFormat, show_names

EXAMPLE = '{"id": "m-1", "votes": {"judge-a": "safe", "judge-b": "unsafe", "judge-c": null}}'
LONGEST_TEXT = 10_000
"""Characters of a name, an id or a time."""
MAX_LABELERS = 1000
"""More names than this are a mistake in the input; each new one would add a sum with every other labeler."""


class LineError(DriftvoteError, ValueError):
    """A line that is refused; the stream continues without it."""


@dataclass(frozen=True)
class VoteMessage:
    """A line with votes, as class values of the declared format; None is an abstention."""

    votes: dict[str, Any]
    id: Any = None
    time: Any = None
    verified: Any = None
    unknown: dict[str, Any] = field(default_factory=dict)  # votes that are no class, counted as abstentions


@dataclass(frozen=True)
class VerifyMessage:
    """A line without votes: the verified class of an earlier row, named by its id or its row number."""

    key: Any
    by: str  # "id" or "row"
    label: Any


class LineParser:
    """Parses lines of votes in one declared format; `options` names the labelers and what unknown votes do."""

    def __init__(self, form: VoteFormat, options: WatchOptions) -> None:
        self.form = form
        self.labelers = dict.fromkeys(options.labelers)
        self._unknown_abstain = options.unknown == "abstain"
        self._time_format = options.time_format
        if options.time_format is not None:
            given_form(options.time_format, "--time-format")  # refuses a pattern that is wrong

    def parse(self, line: bytes) -> VoteMessage | VerifyMessage:
        """The message in a line, or a `LineError` that says what is wrong with it."""
        found = _parse_object(line)
        row_id = _check_id(found.get("id"))
        if "votes" not in found:
            return self._parse_verification(found, row_id)
        votes = found["votes"]
        if not isinstance(votes, dict):
            raise LineError(f'"votes" must be an object of labelers and votes, not {_show(votes)}; such as {EXAMPLE}')
        unknown: dict[str, Any] = {}
        classes = {name: self._parse_vote(name, value, unknown) for name, value in votes.items()}
        verified = self._parse_verified(found.get("verified"))
        return VoteMessage(classes, row_id, _check_time(found.get("time"), self._time_format), verified, unknown)

    def id_of(self, line: bytes | None) -> Any:
        """The id of a refused line, None if it has none that can be read."""
        try:
            return None if line is None else _check_id(_parse_object(line).get("id"))
        except LineError:
            return None

    def is_unique(self, line: bytes | None) -> bool:
        """Whether a line has an id or a time, so that no other line is the same by chance."""
        try:
            return line is not None and not {"id", "time"}.isdisjoint(_parse_object(line))
        except LineError:
            return False

    def _parse_vote(self, name: str, value: Any, unknown: dict[str, Any]) -> Any:
        if self.labelers and name not in self.labelers:
            raise LineError(
                f"{_quote(name)} is not one of the labelers {show_names([*self.labelers])}; declare it with --labelers"
                " too"
            )
        if not isinstance(value, (str, int, float, type(None))):
            raise LineError(f"labeler {_quote(name)}: {_show(value)} is not a vote; write one class, or null")
        code = self.form.code_of(value, lenient=True)
        if code != BAD:
            return None if code < 0 else self.form.classes[code]
        if self._unknown_abstain:
            unknown[name] = str(value) if isinstance(value, float) else value  # JSON has no infinity
            return None
        raise LineError(
            f"labeler {_quote(name)}: {_show(value)} is not a vote; read as {self.form.describe_values('null')};"
            " correct it, or pass --unknown abstain to count such a vote as an abstention"
        )

    def _parse_verified(self, value: Any) -> Any:
        if value is None:
            return None
        code = self.form.code_of(value, lenient=True) if isinstance(value, (str, int, float)) else BAD
        if code < 0:
            raise LineError(f'"verified" is {_show(value)}, which is none of the classes {self.form.show_classes()}')
        return self.form.classes[code]

    def _parse_verification(self, found: dict[str, Any], row_id: Any) -> VerifyMessage:
        label, row = self._parse_verified(found.get("verified")), found.get("row")
        if label is None:
            raise LineError(f'there are no "votes"; a line is an object such as {EXAMPLE}')
        if (row is None) == (row_id is None):
            raise LineError('"verified" without votes needs the earlier row: its "id", or the "row" of its answer')
        if row is None:
            return VerifyMessage(row_id, "id", label)
        if not isinstance(row, int) or isinstance(row, bool):
            raise LineError(f'"row" is {_show(row)}; write the whole number of the answer')
        return VerifyMessage(row, "row", label)


def check_names(names: Sequence[str], known: Collection[str], least: int) -> list[str]:
    """The names that are not known yet, or an error if they cannot join; the model needs `least` labelers."""
    new = [name for name in names if name not in known]
    for name in new:
        if not name.strip() or len(name) > LONGEST_TEXT or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise LineError(f"{_quote(name)} cannot be the name of a labeler; write readable text")
    if len(known) + len(new) < least:
        raise LineError(
            f"at least {least} labelers are needed, and {len(known) + len(new)} are named so far; name all of them in"
            " the first line (null for no vote), or with --labelers"
        )
    if len(known) + len(new) > MAX_LABELERS:
        raise LineError(
            f"labeler {_quote(new[0])} would be one of more than {MAX_LABELERS:,}; check that names and votes are not"
            " swapped, or declare the names with --labelers"
        )
    return new


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode(), object_pairs_hook=_unique_keys, parse_constant=_check_constant)
    except UnicodeDecodeError:
        raise LineError("it is not UTF-8; write the lines as UTF-8") from None
    except LineError:
        raise
    except (ValueError, RecursionError) as problem:
        raise LineError(f"it is not JSON ({problem}); a line is one object such as {EXAMPLE}") from None
    if not isinstance(found, dict):
        raise LineError(f"it is {_show(found)}, not an object such as {EXAMPLE}")
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a repeated key is refused, because two votes of one labeler contradict each other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise LineError(f"{_quote(repeated)} appears twice; keep one of them")
    return found


def _check_constant(name: str) -> None:
    """None for NaN, which programs write for a missing number; infinities are refused."""
    if name != "NaN":
        raise LineError(f"{name} is not a vote; write a class, or null")


def _check_id(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise LineError(f'"id" has {len(value):,} characters; write at most {LONGEST_TEXT:,}')
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise LineError(f'"id" is {_show(value)}; write text or a number')


def _show(value: Any) -> str:
    return _shorten(json.dumps(value))


def _quote(name: str) -> str:
    return _shorten(repr(name))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- times ---------------------------------------------------------------------------------------


def _check_time(value: Any, time_format: str | None) -> Any:
    """A number, a datetime (from ISO 8601), text in the given format, or text that sorts."""
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return value if time_format is not None else parse_time(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise LineError(f'"time" is {_show(value)}; write a number, or a time such as "2026-05-31T14:20:00Z"')


def place_time(given: Any, last: LastTime, options: WatchOptions) -> tuple[Any, bool]:
    """The time of a row whose line has the time `given`, and whether the line was late.

    Times never decrease: a line whose time is before that of the `last` row gets the time of that row, or is refused
    (`options.late`). With `options.arrival` a line without a time gets the time of its arrival.
    """
    moment = datetime.datetime.now(UTC) if given is None and options.arrival else given
    if moment is None or last is None:
        return moment, False
    kind, value = read_time(moment, options.time_format if isinstance(moment, str) else None)
    last = read_again(last, kind)
    if kind != last[0]:
        raise LineError(f'"time" is a {kind}, and was a {last[0]} in the lines before; keep to one kind')
    if value >= last[1]:
        return moment, False
    if options.late == "refuse":
        raise LineError(
            f"its time {moment} is before {to_python(last)} of the row before it; send lines in time order, or pass"
            " --late take"
        )
    instead = to_python(last)
    if isinstance(instead, datetime.datetime) and getattr(moment, "tzinfo", None) is None:
        instead = instead.replace(tzinfo=None)  # as the times of the other lines
    return instead, given is not None


# -- answers -------------------------------------------------------------------------------------


def make_answer(number: int, row: VoteMessage, step: Step, options: WatchOptions) -> dict[str, Any]:
    """The answer to a line of votes; `number` is the row's number in the stream, from 0."""
    probability = step.probability
    answer: dict[str, Any] = {} if row.id is None else {"id": row.id}
    answer |= {
        "row": number,
        "label": step.label,
        "probability": probability,
        "window": step.window,
        "n_votes": sum(vote is not None for vote in row.votes.values()),
        "needs_review": step.code < 0 or probability < options.review_below,
    }
    if row.unknown:
        answer["unknown"] = row.unknown
    if row.verified is not None:
        answer["verified"] = row.verified
    if options.proba:
        answer["proba"] = dict(zip(map(str, step.classes), step.proba.tolist(), strict=True))
    if options.accuracies:
        answer["accuracies"] = dict(zip(step.labelers, step.accuracies.tolist(), strict=True))
    if options.weights:
        answer["weights"] = dict(zip(step.labelers, step.weights.tolist(), strict=True))
    if options.explain:
        explanation = step.explain().to_dict()
        shown = ("majority", "overruled", "explained", "log_odds", "base", "votes", "together")
        answer["explain"] = {key: explanation[key] for key in shown}
    return answer


def make_error(line: int, row_id: Any, problem: str) -> dict[str, Any]:
    """The answer to a refused line, so that every line has an answer."""
    return ({} if row_id is None else {"id": row_id}) | {"line": line, "error": problem}


def format_answer(answer: dict[str, Any]) -> bytes:
    """The answer as one line of ASCII JSON."""
    return json.dumps(answer, separators=(", ", ": ")).encode() + b"\n"
