"""Verified labels: somebody says, at any time later, what a row really is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from driftvote.errors import FeedbackError
from driftvote.inputs import Batch, plain_id, to_list
from driftvote.models.engine import Engine
from driftvote.models.families import Families
from driftvote.models.tally_engine import ConfusionEngine
from driftvote.votes import Roster, VoteFormat, is_missing

if TYPE_CHECKING:
    from driftvote.models.id_book import IdBook


class Feedback:
    """`feedback`, and the reading of ids and verified labels that come with the rows."""

    _form: VoteFormat
    _roster: Roster
    _families: Families
    _engine: Engine | None

    def feedback(self, row_or_id: Any, label: Any = None, *, by: str | None = None, replace: bool = False) -> None:
        """Say what rows really are; the model learns from it from now on.

        Parameters
        ----------
        row_or_id
            Which row: its number in the stream, from 0 (`model.n_rows` before it was fed), or its id. Many at once: a
            list or an array of them, or a dict {row_or_id: label}. As far back as the largest window reaches.
        label
            The class of the row; of many rows, a list or array as long.
        by
            `"row"` or `"id"`. Without it numbers are rows and text is an id; say it if your ids are numbers.
        replace
            Correct what was verified before. Without it a row that is verified already is refused.

        All or nothing: if anything is refused, nothing has changed. Needs `estimator="confusion"`.

        Examples
        --------
        >>> from driftvote import AdaptiveLabelModel
        >>> model = AdaptiveLabelModel(classes=["ham", "spam"])
        >>> _ = model.update(["ham", "spam", "ham"], id="mail-1")
        >>> _ = model.update(["ham", "ham", "ham"], id="mail-2")
        >>> model.feedback("mail-1", "spam")
        >>> model.feedback({1: "ham"})
        >>> model.verified
        {0: 'spam', 1: 'ham'}
        """
        engine = self._learner()
        if by not in (None, "row", "id"):
            raise FeedbackError(f"by must be 'row' or 'id', not {by!r}")
        keys, labels = _pairs(row_or_id, label)
        if engine is None:
            raise FeedbackError("there is no row to verify yet: the model has seen no rows")
        rows = [_row_of(key, by, engine) for key in keys]
        codes = [self._class_code(value, row) for value, row in zip(labels, rows, strict=True)]
        _check_new(rows, engine, replace, self._form)
        if rows:
            engine.verify(np.array(rows, np.int64), np.array(codes, np.int64))

    @property
    def verified(self) -> dict[int, Any]:
        """The rows that are verified and still remembered: {row number: class}."""
        if not isinstance(self._engine, ConfusionEngine):
            return {}
        rows, codes = self._engine.verified()
        return {row: self._form.decode_one(code) for row, code in zip(rows.tolist(), codes.tolist(), strict=True)}

    def _learner(self) -> ConfusionEngine | None:
        """The engine, of a model that learns from verified labels."""
        if getattr(self, "estimator", None) != "confusion":
            raise FeedbackError(
                f"{type(self).__name__} as it is set does not learn from verified labels; use"
                " AdaptiveLabelModel(estimator='confusion'), the default"
            )
        return self._engine if isinstance(self._engine, ConfusionEngine) else None

    def _class_code(self, value: Any, row: int) -> int:
        code = -1 if is_missing(value) else self._form.code_of(value)
        if code < 0:
            what = "the abstention" if code == -1 and not is_missing(value) else "not a class"
            raise FeedbackError(
                f"row {row} cannot be verified as {value!r}: it is {what}; the classes are {self._form.show_classes()}"
            )
        return code

    def _read(self, data: Any, **keys: Any) -> Batch:
        """A batch with its ids and verified labels."""
        if keys.get("ids") is not None or keys.get("verified") is not None:
            self._learner()
        batch = self._families.read(data, self._form, self._roster, **keys)
        if getattr(self, "estimator", None) != "confusion":
            batch.ids = None  # tasks are ids, but this model has no use for them
        return batch


def _pairs(row_or_id: Any, label: Any) -> tuple[list[Any], list[Any]]:
    """Keys and labels side by side, whether one was given or many."""
    if isinstance(row_or_id, Mapping):
        if label is not None:
            raise FeedbackError("a dict holds rows and labels already; leave the second argument out")
        return list(row_or_id), list(row_or_id.values())
    if isinstance(row_or_id, (str, bytes, int, float, np.generic)) or not hasattr(row_or_id, "__iter__"):
        return [row_or_id], [label]
    keys = to_list(row_or_id)
    if isinstance(label, (str, bytes)) or not hasattr(label, "__iter__"):
        raise FeedbackError(f"{len(keys)} rows need as many labels in a list, not {label!r}")
    labels = to_list(label)
    if len(labels) != len(keys):
        raise FeedbackError(f"{len(keys)} rows need as many labels, not {len(labels)}")
    return keys, labels


def _row_of(key: Any, by: str | None, engine: ConfusionEngine) -> int:
    """The number of a row that is remembered."""
    if is_missing(key):
        raise FeedbackError(f"{key!r} is neither a row number nor an id")
    value = plain_id(key)
    assert value is not None
    book = engine.ids
    if by == "row" and not isinstance(value, int):
        raise FeedbackError(f"rows are whole numbers from 0, not {key!r}; say by='id' if it is an id")
    if by == "id" or not isinstance(value, int):
        return _row_of_id(value, book, engine)
    if by is None and book.n_numbers:
        raise FeedbackError(
            f"{value} may be a row number or an id, because ids of this stream are numbers; say by='row' or by='id'"
        )
    n_rows, reach = engine.n_rows, engine.reach
    if value < 0:
        raise FeedbackError(f"row {value}: rows are counted from 0, the first row of the stream")
    if value >= n_rows:
        raise FeedbackError(
            f"row {value} is not there yet: {n_rows} rows have been seen, the last one is row {n_rows - 1}"
        )
    if value < n_rows - reach:
        raise FeedbackError(
            f"row {value} is too long past: the largest window is {reach} rows, so rows before {n_rows - reach} are"
            " forgotten"
        )
    return value


def _row_of_id(value: str | int, book: IdBook, engine: ConfusionEngine) -> int:
    found = [row for row in book.find(value) if row >= engine.n_rows - engine.reach]
    if not found:
        why = "no row has come with an id; pass ids= (or id=) with the rows"
        if len(book):
            why = f"of the last {min(engine.n_rows, engine.reach)} rows, which are remembered, none has it"
        raise FeedbackError(f"id {value!r} is unknown: {why}")
    if len(found) > 1:
        raise FeedbackError(
            f"id {value!r} is ambiguous: rows {found[-2]} and {found[-1]} both have it; verify by row number"
        )
    return found[0]


def _check_new(rows: list[int], engine: ConfusionEngine, replace: bool, form: VoteFormat) -> None:
    """Nobody twice in one call, and nobody again without saying so."""
    seen: set[int] = set()
    for row in rows:
        if row in seen:
            raise FeedbackError(f"row {row} is verified twice in this call; keep one of them")
        seen.add(row)
        code = engine.verified_class(row)
        if code >= 0 and not replace:
            raise FeedbackError(
                f"row {row} is verified already, as {form.decode_one(code)!r}; pass replace=True to correct it"
            )
