"""What a Spark task does: rows come sorted by stream and time, one model at a time labels them.

Memory is one Arrow batch and one state, whatever the length of a stream and however many streams there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.inputs import Batch
from driftvote.kernels.layout import Bools, Codes
from driftvote.models import LabeledStream, LabelModel
from driftvote.models.replay import begin_again
from driftvote.spark.columns import Plan
from driftvote.spark.rows import FormatCheck, Problem, RowReader, changes, result_columns


class SortedRows:
    """Checks rows that come in order: bad ones, streams that begin, times that are there already.

    Remembers one row, so it does not matter where batches are cut.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.reader = RowReader(plan)
        self._last: list[Any] | None = None  # stream, time and order of the last good row, as arrays of one

    def read(self, batch: Any) -> tuple[Codes, Bools, Bools, list[Problem]]:
        """Codes of all rows; which rows are good; which of the good ones begin a stream; and what is wrong with
        the others. Without a column for rejected rows the first problem is raised."""
        codes = self.reader.codes(batch)
        problems = self.reader.problems(batch, codes)
        good = np.ones(batch.num_rows, np.bool_)
        good[[problem.row for problem in problems]] = False
        begins, repeats = self._compare(batch, good)
        if self.plan.duplicates == "error" and repeats.any():
            rows = np.flatnonzero(good)[repeats]
            problems += [Problem(row, self.reader.repeated(batch, row)) for row in rows.tolist()]
            good[rows] = False
            begins = begins[~repeats]
        if problems and self.plan.rejected is None:
            raise min(problems, key=lambda problem: problem.row).error
        return codes, good, begins, problems

    def _compare(self, batch: Any, good: Bools) -> tuple[Bools, Bools]:
        """Which good rows begin a stream, and which have the place of the good row before."""
        arrays = [batch.column(name) for name in self.plan.place]
        if not good.all():
            mask = pa.array(good)
            arrays = [array.filter(mask) for array in arrays]
        n_rows = int(good.sum())
        if not n_rows:
            return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
        last, self._last = self._last, [array.take([n_rows - 1]) for array in arrays]
        if last is not None:
            arrays = [pa.concat_arrays(pair) for pair in zip(last, arrays, strict=True)]
        n_keys = len(self.plan.key)
        begins = changes(arrays[:n_keys], len(arrays[0]))
        moved = begins | changes(arrays[n_keys:], len(arrays[0]))
        if last is None:  # the very first row is the beginning of something
            begins, moved = np.append(True, begins), np.append(True, moved)
        return begins, ~moved


class StreamLabeler:
    """One model at a time; a new one wherever a stream begins."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.model: LabelModel | None = None

    def label(self, codes: Codes, begins: Bools) -> list[LabeledStream]:
        """Learn from the rows and label them, stream after stream."""
        starts = np.flatnonzero(begins).tolist()
        borders = sorted({0, *starts, len(codes)})
        parts = []
        for first, last in zip(borders, borders[1:], strict=False):
            if self.model is None:
                self.model = self.plan.model.new()
            elif begins[first]:
                begin_again(self.model)
            parts.append(label_codes(self.model, codes[first:last]))
        return parts


def label_codes(model: LabelModel, codes: Codes) -> LabeledStream:
    """Learn from encoded rows, columns in the order of the model's declared labelers, and label them."""
    return model._label(as_batch(model, codes))


def as_batch(model: LabelModel, codes: Codes) -> Batch:
    """Encoded rows as what the doors make of votes."""
    families = model._families
    if not families.family:
        return Batch(None, codes, literal=False)
    batch = Batch(families.members.names, codes, literal=False)
    return families._collapsed(batch, model._form.n_classes, model._roster)


def label_sorted(batches: Iterable[Any], plan: Plan) -> Iterator[Any]:
    """Batches of a partition, sorted by the plan, to batches of results."""
    rows, streams, check = SortedRows(plan), StreamLabeler(plan), FormatCheck(plan.model.form)
    for batch in batches:
        if not batch.num_rows:
            continue
        codes, good, begins, problems = rows.read(batch)
        check.look(batch, plan.labelers, codes)
        said = streams.label(codes if not problems else codes[good], begins) if good.any() else []
        yield results(batch, said, good, problems, plan)
    check.settle()


def results(batch: Any, said: list[LabeledStream], good: Bools, problems: list[Problem], plan: Plan) -> Any:
    """The columns that pass through, and what the models said; nulls and the reason where a row was rejected."""
    said = said or [plan.model.new()._nothing()]
    added = result_columns(said, plan)
    if problems:
        places = pa.array(np.cumsum(good) - 1, mask=~good)
        added = [array.take(places) for array in added]
    if plan.rejected is not None:
        reasons: list[str | None] = [None] * batch.num_rows
        for problem in problems:
            reasons[problem.row] = str(problem.error)
        added.append(pa.array(reasons, pa.string()))
    arrays = [batch.column(name) for name in plan.passing] + added
    names = [*plan.passing, *(plan.prefix + name for name in plan.outputs)]
    return pa.RecordBatch.from_arrays(arrays, names=names if plan.rejected is None else [*names, plan.rejected])
