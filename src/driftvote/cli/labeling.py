"""Batches of votes to answers: one model, or one for each stream."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.doors import Batch, Origin
from driftvote.errors import DriftvoteError
from driftvote.files.clock import ClockReader
from driftvote.files.rows import VoteRows
from driftvote.files.table import Table
from driftvote.kernels.layout import Floats, Ints
from driftvote.models import LabeledStream, LabelModel

Names = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What the models say of a batch, row by row; labelers are in the order of `labelers`."""

    labelers: Names
    codes: Ints
    proba: Floats
    windows: Ints
    n_votes: Ints
    accuracies: Floats | None
    weights: Floats | None
    stream: LabeledStream | None  # of a single stream


class Streams:
    """The models of all streams of a file; a file without streams is one stream, named None."""

    def __init__(self, make: Callable[[], LabelModel], models: dict[Hashable, LabelModel] | None = None) -> None:
        self._make = make
        self.models = models or {}

    def model(self, name: Hashable) -> LabelModel:
        if name not in self.models:
            self.models[name] = self._make()
        return self.models[name]

    def example(self) -> LabelModel:
        """One of the models, for what they have in common."""
        return next(iter(self.models.values())) if self.models else self._make()


class Labeling:
    """Labels batches in time order; `wants` names the per-labeler figures that are asked for."""

    def __init__(self, streams: Streams, table: Table, time: str | None, many: bool, wants: frozenset[str]) -> None:
        self.streams = streams
        self.table = table
        self.many = many
        self.wants = wants
        self._clocks = ClockReader(table, time) if time is not None else None

    def label(self, rows: VoteRows) -> Answer:
        """Learn from these rows and label them."""
        if not self.many:
            return self._answer(self._label_one(self.streams.model(None), rows, ""))
        return self._label_many(rows)

    def _label_one(self, model: LabelModel, rows: VoteRows, where: str) -> LabeledStream:
        if len(rows.labelers) < 3 and not model.labelers:
            raise DriftvoteError(
                f"{self.table.shown}: at least 3 labelers are needed to tell who is right, and there are"
                f" {len(rows.labelers)}: {', '.join(rows.labelers)}"
            )
        times = None
        if rows.clock is not None:
            if self._clocks is not None:
                self._clocks.check_order(rows.clock, rows.rows, model._last_time, where)
            times = rows.clock.ends()
        # The file's reader is a door like those of `driftvote.doors`; what it read goes where they lead to.
        return model._label(Batch(rows.labelers, rows.codes, rows.literal, times, Origin("wide")))

    def _answer(self, out: LabeledStream) -> Answer:
        accuracies = out.accuracies if "accuracies" in self.wants else None
        weights = out.weights if "weights" in self.wants else None
        return Answer(out.labelers, out.codes, out.proba, out.windows, out.n_votes, accuracies, weights, out)

    def _label_many(self, rows: VoteRows) -> Answer:
        if rows.streams.null_count:
            row = int(rows.rows[np.argmax(rows.streams.is_null().to_numpy(zero_copy_only=False))])
            raise DriftvoteError(
                f"{self.table.shown}: {self.table.place(row)}: the stream is empty; every row needs one"
            )
        named = rows.streams.dictionary_encode()
        names, member = named.dictionary.to_pylist(), named.indices.to_numpy()
        order = np.argsort(member, kind="stable")
        borders = np.searchsorted(member[order], np.arange(len(names) + 1))
        parts = []
        for place, name in enumerate(names):
            chosen = order[borders[place] : borders[place + 1]]
            model = self.streams.model(name)
            out = self._label_one(model, rows.take(chosen), f" in stream {name!r}")
            parts.append((chosen, self._answer(out)))
            if len(self.streams.models) > 1:
                # A shallow copy leaves the history of running sums behind: tens of MB that each stream would hold.
                model._engine = copy.copy(model._engine)
        return _joined(parts, len(rows))


def _joined(parts: list[tuple[Ints, Answer]], n_rows: int) -> Answer:
    """Answers of several streams in the order of the rows."""
    labelers = tuple(dict.fromkeys(name for _, answer in parts for name in answer.labelers))

    def gather(field: str) -> Any:
        first = getattr(parts[0][1], field)
        whole = np.empty((n_rows, *first.shape[1:]), first.dtype)
        for chosen, answer in parts:
            whole[chosen] = getattr(answer, field)
        return whole

    def by_labeler(field: str) -> Any:
        if getattr(parts[0][1], field) is None:
            return None
        whole = np.zeros((n_rows, len(labelers)))
        for chosen, answer in parts:
            places = [labelers.index(name) for name in answer.labelers]
            whole[chosen[:, None], places] = getattr(answer, field)
        return whole

    codes, proba, windows, n_votes = (gather(field) for field in ("codes", "proba", "windows", "n_votes"))
    return Answer(labelers, codes, proba, windows, n_votes, by_labeler("accuracies"), by_labeler("weights"), None)
