"""The contract that every label model keeps."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from driftvote.inputs import (
    Batch,
    align_for_prediction,
    align_rows,
    check_times,
    is_empty_chunk,
    is_iterator_of_chunks,
    refuse_newcomers,
    refuse_values_for_chunks,
    split_by_roster,
)
from driftvote.kernels.layout import Codes, Floats, Ints, code_dtype
from driftvote.labels import tie_draws
from driftvote.models.engine import Engine, joined
from driftvote.models.estimates import EqualEstimates
from driftvote.models.families import Families
from driftvote.models.feedback import Feedback
from driftvote.models.id_book import Marks
from driftvote.models.known import KnownNow
from driftvote.models.quick import ShortWay
from driftvote.models.results import LabeledStream
from driftvote.models.saving import read_model, write_model
from driftvote.models.settings import ABSTENTIONS, one_of, tie_policy, whole
from driftvote.models.step import Step
from driftvote.models.words import FamiliarWords
from driftvote.randomness import fill_abstentions
from driftvote.times import LastTime
from driftvote.votes import Roster, check_first_batch, declare_votes

Self = TypeVar("Self", bound="LabelModel")


@dataclass(frozen=True)
class Admitted:
    """A batch that has passed every check, cut where labelers join."""

    batch: Batch
    parts: list[tuple[slice, Roster]]
    last_time: LastTime


class LabelModel(FamiliarWords, KnownNow, Feedback, ShortWay, ABC):
    """What all models share: doors, names, state. Subclasses say how votes are weighed.

    Parameters are those of the subclasses; see `AdaptiveLabelModel`.
    """

    _kinds: ClassVar[dict[str, type[LabelModel]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        LabelModel._kinds[cls.__name__] = cls

    def __init__(
        self,
        *,
        n_classes: int | None,
        votes: str | None,
        classes: Sequence[Hashable] | None,
        abstain: Hashable,
        labelers: Sequence[object] | None,
        abstentions: str,
        tie_break_policy: str,
        seed: int,
        groups: Any = None,
    ) -> None:
        self._form = declare_votes(votes, n_classes, classes, abstain)
        self.abstentions = one_of("abstentions", abstentions, ABSTENTIONS)
        self.tie_break_policy = tie_policy(tie_break_policy)
        self.seed = whole("seed", seed)
        declared = Roster.declared(labelers)
        self._families = Families(groups, declared)
        self._roster = self._families.roster(declared)
        self._engine: Engine | None = None
        self._last_time: tuple[str, Any] | None = None
        self._settings: dict[str, Any] = {
            "n_classes": None if classes is not None else self._form.n_classes,
            "votes": votes,
            "classes": None if classes is None else list(self._form.classes),
            "abstain": None if classes is None else self._form.abstain,
            "labelers": None if labelers is None else list(declared.names),
            "abstentions": self.abstentions,
            "tie_break_policy": self.tie_break_policy,
            "seed": self.seed,
            "groups": self._families.family or None,
        }

    # -- what a subclass provides --------------------------------------------------------------

    @abstractmethod
    def _new_engine(self, n_labelers: int) -> Engine:
        """An engine that has seen nothing."""

    @abstractmethod
    def _grown(self, engine: Engine, newcomers: Codes) -> Engine:
        """The engine after labelers joined."""

    @abstractmethod
    def _first_vote(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        """Labels and probabilities before anything was learned."""

    # -- learn and label -----------------------------------------------------------------------

    def update(self, row: Any, *, id: Any = None, verified: Any = None, time: Any = None) -> Step:
        """Learn from one row, then label it.

        `row` is a sequence of votes, one for each labeler, or a dict {labeler: vote} in which who is
        missing abstains and a new name joins. `id` is what `feedback` may call it by later; `verified` is its
        class, if somebody has said it: the label then, and something to learn from. `time` (a number, a date, text
        that sorts) must not decrease; events tell it.
        """
        marked = id is not None or verified is not None
        if marked:
            self._learner()
        step = None if marked else self._by_short_way(row, time)
        if step is None:
            batch = self._families.read_row(row, self._form, self._roster, id=id, verified=verified, time=time)
            step = self._label(batch)[0]
            self._look_for_short_way()
        return step

    def label_stream(
        self,
        data: Any,
        *,
        time: str | None = None,
        task: str | None = None,
        labeler: str | None = None,
        label: str | None = None,
        ids: Any = None,
        verified: Any = None,
    ) -> Any:
        """Learn from rows in time order and label each one; continues where the stream stopped.

        Parameters
        ----------
        data
            Rows x labelers (array or nested lists), a wide frame with a column for each labeler (missing
            cells abstain), a list of dicts {labeler: vote}, or a long frame with one vote a line. An
            *iterator* of such chunks gives an iterator of results, so that a long stream is never held
            in memory.
        time
            Column of a frame that must not decrease; a long frame needs one.
        task, labeler, label
            Columns of a long frame. A task becomes a row when its last vote is in.
        ids
            What `feedback` may call the rows by later: one value a row, or a column. Tasks of a long frame are ids.
        verified
            Classes that somebody has verified, one value a row or a column, missing where nobody has. Such a row comes
            out with this label and probability 1, and is learned from (`estimator="confusion"`).

        Returns
        -------
        LabeledStream, or an iterator of them.
        """
        keys = {"time": time, "task": task, "labeler": labeler, "label": label, "ids": ids, "verified": verified}
        if is_iterator_of_chunks(data):
            refuse_values_for_chunks(ids, verified)
            return self._label_chunks(data, keys)
        return self._label(self._read(data, **keys))

    def _label_chunks(self, chunks: Iterator[Any], keys: dict[str, Any]) -> Iterator[LabeledStream]:
        for chunk in chunks:
            if is_empty_chunk(chunk):
                yield self._nothing()
            else:
                yield self._label(self._read(chunk, **keys))

    def _nothing(self) -> LabeledStream:
        """The result of a chunk without rows, so that chunks and results stay side by side."""
        width, none = len(self._roster), np.zeros(0, np.int64)
        rows = np.zeros((0, width), code_dtype(self._form.n_classes))
        estimates = EqualEstimates(0, width, self._form.n_classes)
        return LabeledStream(none, np.zeros((0, self._form.n_classes)), estimates, rows, self._form, self._roster.names)

    def _label(self, batch: Batch) -> LabeledStream:
        admitted, first, marks = self._admit(batch), self.n_rows, Marks.of(batch)
        parts, events = [], []
        for part, roster in admitted.parts:
            codes, engine = self._prepared(admitted.batch, part, roster)
            draws = tie_draws(self.tie_break_policy, self.seed, engine.n_rows, len(codes))
            parts.append(self._labeled(engine, codes, draws, None if marks is None else marks[part], roster.names))
            self._roster, self._engine = roster, engine
            events += self._noticed(codes, parts[-1].estimates, None if batch.times is None else batch.times[part])
        self._settle(admitted)
        said, roster = joined(parts), self._roster
        context = (align_rows(batch, roster), self._form, roster.names, batch.origin)
        out = LabeledStream(said.labels, said.proba, said.estimates, *context, self._if_watched(events), first)
        self._tell(events)
        return out

    def _settle(self, admitted: Admitted) -> None:
        self._last_time = admitted.last_time
        self._families.settle(admitted.batch)

    def partial_fit(self: Self, data: Any, **keys: Any) -> Self:
        """Learn from more rows, label none. Takes what `label_stream` takes."""
        chunks = data if is_iterator_of_chunks(data) else [data]
        if chunks is data:
            refuse_values_for_chunks(**keys)
        for chunk in chunks:
            if chunk is not data and is_empty_chunk(chunk):
                continue
            batch = self._read(chunk, **keys)
            admitted, events, marks = self._admit(batch), [], Marks.of(batch)
            for part, roster in admitted.parts:
                codes, engine = self._prepared(admitted.batch, part, roster)
                here, self._roster, self._engine = None if marks is None else marks[part], roster, engine
                events += self._learn(engine, codes, here, None if batch.times is None else batch.times[part])
            self._settle(admitted)
            self._tell(events)
        return self

    def fit(self: Self, data: Any, **keys: Any) -> Self:
        """Forget everything, then learn from rows, label none. Takes what `label_stream` takes."""
        self._become(self.clone().partial_fit(data, **keys))
        self._tell(self.events)
        return self

    # -- use what is known, change nothing -----------------------------------------------------

    def _vote(self, batch: Batch, policy: str | None) -> tuple[Ints, Floats]:
        """Labels and probabilities of rows under the current weights."""
        if not self.n_rows:
            check_first_batch(self._form, batch.codes, batch.literal)
        codes = align_for_prediction(batch, self._roster)
        seen = self.n_rows
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, seen, self._form.n_classes)
        draws = tie_draws(tie_policy(policy or self.tie_break_policy), self.seed, seen, len(codes))
        if self._engine is None or not seen:
            return self._first_vote(codes, draws)
        return self._engine.predict(codes, draws)

    # -- admission: every check before anything changes ----------------------------------------

    def _admit(self, batch: Batch) -> Admitted:
        if not self.n_rows:
            check_first_batch(self._form, batch.codes, batch.literal)
        last_time = check_times(batch, self._last_time)
        parts = split_by_roster(self._roster, batch)
        if self._engine is not None and not self._engine.can_grow and self.abstentions == "random":
            refuse_newcomers(self._roster, parts[-1][1])
        return Admitted(batch, parts, last_time)

    def _prepared(self, batch: Batch, part: slice, roster: Roster) -> tuple[Codes, Engine]:
        """The rows of one part as the engine wants them, and the engine for its labelers."""
        engine = self._engine_for(roster)
        codes = align_rows(batch, roster)[part]
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, engine.n_rows, self._form.n_classes)
        return codes, engine

    def _engine_for(self, roster: Roster) -> Engine:
        if self._engine is None:
            return self._new_engine(len(roster))
        joining = len(roster) - self._engine.n_labelers
        if not joining:
            return self._engine
        # The past of a newcomer is all abstentions, filled by the same draws as if it had been there.
        remembered = self._engine.remembered()
        past = np.full((remembered, joining), -1, code_dtype(self._form.n_classes))
        if self.abstentions == "random":
            first = self.n_rows - remembered
            past = fill_abstentions(past, self.seed, first, self._form.n_classes, self._engine.n_labelers)
        return self._grown(self._engine, past)

    # -- state ---------------------------------------------------------------------------------

    def clone(self: Self) -> Self:
        """A new model with the same settings that has seen nothing."""
        return type(self)(**self.get_params())

    def copy(self: Self) -> Self:
        """The same model with the same state, independent of this one."""
        return copy.deepcopy(self)

    def reset(self: Self) -> Self:
        """Forget every row and every name that the votes brought; settings stay."""
        self._become(self.clone())
        return self

    def save(self, path: str | Path) -> None:
        """Write settings and state to one file, whole or not at all; `load` resumes bit for bit."""
        write_model(self, path)

    @classmethod
    def load(cls: type[Self], path: str | Path) -> Self:
        """Read a model from a file that `save` wrote.

        A file of another version, of another model, cut short or tampered with is refused.
        """
        model: Self = read_model(path, cls, LabelModel._kinds)
        return model


def load(path: str | Path) -> LabelModel:
    """Read any saved model, whatever its kind."""
    return LabelModel.load(path)
