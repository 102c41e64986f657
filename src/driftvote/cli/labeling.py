"""Batches of votes to answers: one model, or one for each stream."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.drift import DriftEvent
from driftvote.errors import DriftvoteError
from driftvote.files.rows import TimeColumn, VoteRows
from driftvote.files.table import Table
from driftvote.inputs import Batch, Origin
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
    events: tuple[tuple[Hashable, DriftEvent], ...] = ()  # with the name of their stream


class Streams:
    """The models of all streams of a file; a file without streams is one stream, named None.

    `passing` says that streams come one after the other and are not asked for again: then only one model is held.
    """

    def __init__(
        self, make: Callable[[], LabelModel], models: dict[Hashable, LabelModel] | None = None, passing: bool = False
    ) -> None:
        self._make = make
        self.models = models or {}
        self.passing = passing
        self.finished = 0

    def model(self, name: Hashable) -> LabelModel:
        if name not in self.models:
            if self.passing:
                self.finished += len(self.models)
                self.models.clear()
            self.models[name] = self._make()
        return self.models[name]

    def __len__(self) -> int:
        return len(self.models) + self.finished

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
        self._time_column = TimeColumn(table, time) if time is not None else None

    def label(self, rows: VoteRows) -> Answer:
        """Learn from these rows and label them."""
        if not self.many:
            return self._answer(None, self._label_one(self.streams.model(None), rows, ""))
        return self._label_many(rows)

    def _label_one(self, model: LabelModel, rows: VoteRows, where: str) -> LabeledStream:
        if len(rows.labelers) < 3 and not model.labelers:
            raise DriftvoteError(
                f"{self.table.shown}: at least 3 labelers are needed to tell who is right, and there are"
                f" {len(rows.labelers)}: {', '.join(rows.labelers)}"
            )
        if rows.times is not None and self._time_column is not None:
            self._time_column.check_order(rows.times, rows.rows, model._last_time, where)
        verified = None if rows.verified is None else rows.verified.astype(np.int64)
        return model._label(
            Batch(rows.labelers, rows.codes, rows.literal, rows.times, Origin("wide"), verified=verified)
        )

    def _answer(self, name: Hashable, out: LabeledStream) -> Answer:
        accuracies = out.accuracies if "accuracies" in self.wants else None
        weights = out.weights if "weights" in self.wants else None
        events = tuple((name, event) for event in out.events)
        return Answer(out.labelers, out.codes, out.proba, out.windows, out.n_votes, accuracies, weights, out, events)

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
        together = rows.votes_only(order)
        parts = []
        for name, first, last in zip(names, borders, borders[1:], strict=False):
            model = self.streams.model(name)
            parts.append(self._answer(name, self._label_one(model, together[first:last], f" in stream {name!r}")))
            if len(self.streams.models) > 1:
                # A shallow copy leaves the history of running sums behind: tens of MB that each stream would hold.
                model._engine = copy.copy(model._engine)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return _joined(parts, back)


def _joined(parts: list[Answer], back: Ints) -> Answer:
    """Answers of several streams, one after the other, in the order of the rows again."""
    labelers = tuple(dict.fromkeys(name for answer in parts for name in answer.labelers))

    def gather(field: str) -> Any:
        return np.concatenate([getattr(answer, field) for answer in parts])[back]

    def by_labeler(field: str) -> Any:
        if getattr(parts[0], field) is None:
            return None
        tables = []
        for answer in parts:
            table = getattr(answer, field)
            if answer.labelers != labelers:
                wide = np.zeros((len(table), len(labelers)))
                wide[:, [labelers.index(name) for name in answer.labelers]] = table
                table = wide
            tables.append(table)
        return np.concatenate(tables)[back]

    codes, proba, windows, n_votes = (gather(field) for field in ("codes", "proba", "windows", "n_votes"))
    figures = by_labeler("accuracies"), by_labeler("weights")
    events = tuple(event for answer in parts for event in answer.events)
    return Answer(labelers, codes, proba, windows, n_votes, *figures, None, events)
