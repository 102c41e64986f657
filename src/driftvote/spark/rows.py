"""Arrow batches in tasks: votes to codes, what is wrong with a row, and results to Arrow arrays.

No pyspark here: a task gets Arrow and gives Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.errors import DriftvoteError, OrderError, VoteError
from driftvote.kernels.layout import Bools, Codes, code_dtype
from driftvote.models import LabeledStream
from driftvote.spark.columns import CERTIFIED, Plan
from driftvote.votes import BAD, VoteFormat, check_first_batch


@dataclass(frozen=True)
class Problem:
    """A row that cannot be labeled, and the sentence about it."""

    row: int
    error: DriftvoteError


class RowReader:
    """Reads batches of one plan, and knows a bad row when it sees one."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.form = plan.model.form
        self.dtype = code_dtype(self.form.n_classes)

    def codes(self, batch: Any) -> Codes:
        """Rows x labelers in C order, `BAD` where a value has no meaning."""
        # Kernels run along rows, and sums of floats in another order would differ in their last bits.
        codes = np.empty((batch.num_rows, len(self.plan.labelers)), self.dtype)
        for place, name in enumerate(self.plan.labelers):
            codes[:, place] = encoded(batch.column(name), self.form)
        return codes

    def problems(self, batch: Any, codes: Codes) -> list[Problem]:
        """Rows without a stream or a time, or with a vote that has no meaning, in the order of the rows."""
        found: dict[int, Problem] = {}
        for name in (*self.plan.key, self.plan.time):
            array = batch.column(name)
            for row in np.flatnonzero(missing(array)).tolist():
                found.setdefault(row, Problem(row, self._no_place(batch, row, name)))
        if codes.size and codes.min() <= BAD:
            rows, places = np.nonzero(codes == BAD)
            for row, place in zip(rows.tolist(), places.tolist(), strict=True):
                if row not in found:
                    found[row] = Problem(row, self._no_vote(batch, row, self.plan.labelers[place]))
        return [found[row] for row in sorted(found)]

    def where(self, batch: Any, row: int) -> str:
        """A row by its stream and time, for a sentence."""
        names = (*self.plan.key, self.plan.time)
        return ", ".join(f"{name} {shown(batch.column(name), row)}" for name in names)

    def _no_place(self, batch: Any, row: int, name: str) -> DriftvoteError:
        what = "time" if name == self.plan.time else "key"
        others = [self.where(batch, row)] if len(self.plan.key) else []
        place = f" ({others[0]})" if others else ""
        return OrderError(
            f"{what} column {name!r} is {shown(batch.column(name), row)}{place}; every row needs a {what}: fill it in,"
            " leave such rows out, or pass rejected='reason' to have them set apart"
        )

    def _no_vote(self, batch: Any, row: int, name: str) -> DriftvoteError:
        value = batch.column(name)[row].as_py()
        told = self.form.refuse_at(self.where(batch, row), name, value)
        return VoteError(f"{told}, or pass rejected='reason' to have such rows set apart")

    def repeated(self, batch: Any, row: int) -> DriftvoteError:
        """The error for a row that nothing but its votes tells from the one before."""
        by = f" and {', '.join(self.plan.order)}" if self.plan.order else ""
        return OrderError(
            f"{self.where(batch, row)}: two rows have this time{by}, and nothing says which comes first; name columns"
            " that do with order=[...], or pass duplicates='sort' (ordered by their votes) or rejected='reason'"
        )


def encoded(array: Any, form: VoteFormat) -> Codes:
    """Codes of a column of votes; a null abstains, and so does NaN, as in every frame."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), -1, code_dtype(form.n_classes))
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
        kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = (array.fill_null(0) if array.null_count else array).to_numpy()
        codes = form.encode(values)
        absent = missing(array)
        if absent.any():
            codes[absent] = -1
        return codes
    array = array.dictionary_encode()
    table = np.array([*(form.code_of(value) for value in array.dictionary.to_pylist()), -1], np.int16)
    places = array.indices.fill_null(len(table) - 1) if array.null_count else array.indices
    return table[places.to_numpy()].astype(code_dtype(form.n_classes))


def missing(array: Any) -> Bools:
    """Where an array is null or NaN."""
    if pa.types.is_floating(array.type):
        values = array.to_numpy(zero_copy_only=False)  # null becomes NaN
        return np.asarray(np.isnan(values))
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def shown(array: Any, row: int) -> str:
    """One cell, for a sentence."""
    value = array[row].as_py()
    if value is None:
        return "null"
    text = str(value) if hasattr(value, "isoformat") else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def changes(arrays: Sequence[Any], n_rows: int) -> Bools:
    """Rows, from the second on, at which any of the columns differs from the row before."""
    found = np.zeros(max(0, n_rows - 1), np.bool_)
    for array in arrays:
        now, before = array.slice(1), array.slice(0, n_rows - 1)
        differs = pc.not_equal(now, before)
        if pa.types.is_floating(array.type):  # to Spark NaN is equal to NaN
            differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(now), pc.is_nan(before))))
        if array.null_count:
            differs = pc.or_(differs.fill_null(False), pc.not_equal(now.is_null(), before.is_null()))
        found |= differs.to_numpy(zero_copy_only=False)
    return found


class FormatCheck:
    """Whether the assumed format can be meant, over all rows of a task: see `check_first_batch`."""

    def __init__(self, form: VoteFormat) -> None:
        self.form = form
        self.doubtful = not form.declared and form.n_classes == 2  # a single vote for class 0 settles it
        self.n_rows = 0
        self.ones = self.written = False

    def look(self, batch: Any, labelers: Sequence[str], codes: Codes) -> None:
        """Note what the rows hold."""
        if not self.doubtful:
            return
        self.doubtful = not (codes == 0).any()
        self.ones |= bool((codes == 1).any())
        self.written |= int((codes == -1).sum()) > sum(int(missing(batch.column(name)).sum()) for name in labelers)
        self.n_rows += len(codes)

    def settle(self) -> None:
        """At the end of the task."""
        if self.doubtful and self.ones and self.written:
            check_first_batch(self.form, np.broadcast_to(np.int8(1), (self.n_rows, 1)), literal=True)


def result_columns(parts: Sequence[LabeledStream], plan: Plan) -> list[Any]:
    """What the models said of rows, one after the other, as Arrow arrays in the order of the plan's outputs."""
    return [_column(name, parts, plan.model.form) for name in plan.outputs]


def _column(name: str, parts: Sequence[LabeledStream], form: VoteFormat) -> Any:
    if name == "label":
        return labels_of(_joined("codes", parts), form)
    if name == "probability":
        return pa.array(_joined("probability", parts))
    if name == CERTIFIED:
        return pa.array(_joined("error_bounds", parts))
    if name == "window":
        return pa.array(_joined("windows", parts))
    if name == "n_votes":
        return pa.array(_joined("n_votes", parts).astype(np.int32))
    return lists_of(_joined(name, parts))


def _joined(name: str, parts: Sequence[LabeledStream]) -> npt.NDArray[Any]:
    if len(parts) == 1:
        return np.asarray(getattr(parts[0], name))
    return np.concatenate([getattr(part, name) for part in parts])


def labels_of(codes: npt.NDArray[np.int64], form: VoteFormat) -> Any:
    """Class values; a tie has the declared abstention, or null where that is of another type."""
    if form.name == "snorkel":
        return pa.array(codes)
    classes = pa.array(list(form.classes))
    fits = form.abstain is not None and type(form.abstain) in {type(value) for value in form.classes}
    table = pa.array([*form.classes, form.abstain if fits else None], classes.type)
    return table.take(pa.array(np.where(codes < 0, len(form.classes), codes)))


def lists_of(table: npt.NDArray[np.float64]) -> Any:
    """Rows of a table as lists."""
    n_rows, width = table.shape
    offsets = pa.array(np.arange(n_rows + 1, dtype=np.int32) * np.int32(width))
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(table).ravel()))
