"""What a task does with a block of one long stream: learn from the halo, label the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftvote.errors import DriftvoteError
from driftvote.kernels.layout import Bools, Codes
from driftvote.models import LabelModel
from driftvote.models.replay import start_at
from driftvote.spark.blocks import PART, Block
from driftvote.spark.columns import Plan
from driftvote.spark.rows import FormatCheck, RowReader
from driftvote.spark.tasks import SortedRows, as_batch, label_codes, results


class BlockLabeler:
    """One block: rows come sorted, those of the halo first."""

    def __init__(self, plan: Plan, block: Block) -> None:
        self.plan = plan
        self.block = block
        self.rows = SortedRows(plan)
        self.check = FormatCheck(plan.model.form)
        self.model: LabelModel | None = None
        self._halo: list[Codes] = []
        self._labeled = 0

    def label(self, batch: Any, own: Bools) -> Any:
        """Results for the block's own rows; None if there are none among these."""
        codes, good, _, problems = self.rows.read(batch)
        self._halo.append(codes[good & ~own])
        if not own.any():
            return None
        if self.model is None:
            self.model = self._started()
        mine = good & own
        self._labeled += int(mine.sum())
        said = [label_codes(self.model, codes[mine])] if mine.any() else []
        first = int(np.argmax(own))  # own rows are the last ones
        kept = batch.slice(first)
        if self.block.row == 0:
            self.check.look(kept, self.plan.labelers, codes[own])
        told = [replace(problem, row=problem.row - first) for problem in problems if problem.row >= first]
        return results(kept, said, good[own], told, self.plan)

    def _started(self) -> LabelModel:
        model = self.plan.model.new()
        halo = np.concatenate(self._halo)
        self._halo = []
        if len(halo) != self.block.n_halo:
            raise _changed(self.block.row - self.block.n_halo, self.block.n_halo, len(halo))
        if len(halo):
            start_at(model, self.block.row, as_batch(model, halo).codes)
        return model

    def finish(self) -> None:
        """After the last row."""
        if self._labeled != self.block.n_rows:
            raise _changed(self.block.row, self.block.n_rows, self._labeled)
        self.check.settle()


def label_block_rows(batches: Iterable[Any], plan: Plan, blocks: Sequence[Block]) -> Iterator[Any]:
    """Batches of a partition, sorted by block, halo before block, and the plan; to batches of results."""
    at, labeler = -1, None
    for batch in batches:
        parts = batch.column(PART).to_numpy()
        borders = [0, *(np.flatnonzero(np.diff(parts // 2)) + 1).tolist(), len(parts)]
        for first, last in zip(borders, borders[1:], strict=False):
            if first == last:
                continue
            if labeler is None or parts[first] // 2 != at:
                if labeler is not None:
                    labeler.finish()
                at = int(parts[first]) // 2
                labeler = BlockLabeler(plan, blocks[at])
            said = labeler.label(batch.slice(first, last - first), parts[first:last] % 2 == 1)
            if said is not None:
                yield said
    if labeler is not None:
        labeler.finish()


def reasons_only(batches: Iterable[Any], plan: Plan) -> Iterator[Any]:
    """Rows that were found bad, with the reason."""
    reader = RowReader(plan)
    for batch in batches:
        problems = reader.problems(batch, reader.codes(batch))
        if len(problems) < batch.num_rows:
            raise DriftvoteError("a row was set apart in which nothing is wrong; please report it")
        if batch.num_rows:
            yield results(batch, [], np.zeros(batch.num_rows, np.bool_), problems, plan)


def _changed(row: int, counted: int, found: int) -> DriftvoteError:
    return DriftvoteError(
        f"from row {row} of the stream on {counted} rows were counted, and {found} came: the DataFrame is not the same"
        " each time it is read; write it to a file, or persist() it, and label that"
    )
