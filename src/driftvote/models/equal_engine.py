"""The engine of a plain majority vote."""

from __future__ import annotations

import numpy as np

from driftvote.kernels.layout import Codes, Floats, Ints, code_dtype
from driftvote.labels import plain_vote
from driftvote.models.engine import Arrays, Engine, Labeled, expect
from driftvote.models.estimates import EqualEstimates, Estimates


class EqualEngine(Engine):
    """Everybody counts the same: nothing to learn but how many rows went by."""

    def __init__(self, n_labelers: int, n_classes: int) -> None:
        self.n_labelers = n_labelers
        self.n_classes = n_classes
        self.clock = np.zeros(1, np.int64)
        self.last = np.full((1, n_labelers), -1, code_dtype(n_classes))  # the window: one row

    @property
    def n_rows(self) -> int:
        return int(self.clock[0])

    @property
    def nbytes(self) -> int:
        return self.clock.nbytes + self.last.nbytes

    def label(self, rows: Codes, draws: Floats) -> Labeled:
        self.learn(rows)
        labels, proba = self.predict(rows, draws)
        return Labeled(labels, proba, EqualEstimates(len(rows), self.n_labelers, self.n_classes, rows=rows))

    def learn(self, rows: Codes) -> None:
        self.clock += len(rows)
        self.last[:] = rows[-1]

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return plain_vote(rows, draws, self.n_classes)

    def current(self) -> Estimates:
        return EqualEstimates(1, self.n_labelers, self.n_classes, window=min(1, self.n_rows), rows=self.last)

    def remembered(self) -> int:
        return 0

    def joined_by(self, n_newcomers: int) -> EqualEngine:
        """The engine with more labelers, who were silent so far."""
        wider = EqualEngine(self.n_labelers + n_newcomers, self.n_classes)
        wider.clock[:] = self.clock
        wider.last[:, : self.n_labelers] = self.last
        return wider

    def arrays(self) -> Arrays:
        return {"clock": self.clock, "rows": self.last}

    def restore(self, arrays: Arrays) -> None:
        expect(arrays, "clock", np.int64, (1,))
        expect(arrays, "rows", code_dtype(self.n_classes), (1, self.n_labelers))
        self.clock[:] = arrays["clock"]
        self.last[:] = arrays["rows"]
