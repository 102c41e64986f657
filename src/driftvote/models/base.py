"""The contract that every label model keeps."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from driftvote.doors import Batch, is_iterator_of_chunks, read_batch, read_row
from driftvote.errors import OrderError, StateError
from driftvote.files.state import read_state, write_state
from driftvote.kernels.layout import Codes, Floats, Ints
from driftvote.labelers import Roster, show_names
from driftvote.labels import tie_draws
from driftvote.models.engine import Engine
from driftvote.models.estimates import Estimates
from driftvote.models.results import LabeledStream, Step
from driftvote.models.settings import ABSTENTIONS, one_of, tie_policy, whole
from driftvote.models.words import FamiliarWords
from driftvote.randomness import fill_abstentions
from driftvote.votes import check_first_batch, declare_votes

Self = TypeVar("Self", bound="LabelModel")


@dataclass(frozen=True)
class _Admitted:
    """A batch that has passed every check, with what the model will be once it is learned."""

    codes: Codes
    roster: Roster
    engine: Engine
    last_time: tuple[str, Any] | None


class LabelModel(FamiliarWords, ABC):
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
    ) -> None:
        self._form = declare_votes(votes, n_classes, classes, abstain)
        self.abstentions = one_of("abstentions", abstentions, ABSTENTIONS)
        self.tie_break_policy = tie_policy(tie_break_policy)
        self.seed = whole("seed", seed)
        self._roster = Roster.declared(labelers)
        self._engine: Engine | None = None
        self._last_time: tuple[str, Any] | None = None
        self._settings: dict[str, Any] = {
            "n_classes": None if classes is not None else self._form.n_classes,
            "votes": votes,
            "classes": None if classes is None else list(self._form.classes),
            "abstain": None if classes is None else self._form.abstain,
            "labelers": None if labelers is None else list(self._roster.names),
            "abstentions": self.abstentions,
            "tie_break_policy": self.tie_break_policy,
            "seed": self.seed,
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

    def update(self, row: Any) -> Step:
        """Learn from one row, then label it.

        `row` is a sequence of votes, one for each labeler, or a dict {labeler: vote} in which who is
        missing abstains and a new name joins.
        """
        batch = read_row(row, self._form, self._roster)
        return self._label(batch)[0]

    def label_stream(
        self,
        data: Any,
        *,
        time: str | None = None,
        task: str | None = None,
        labeler: str | None = None,
        label: str | None = None,
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

        Returns
        -------
        LabeledStream, or an iterator of them.
        """
        keys = {"time": time, "task": task, "labeler": labeler, "label": label}
        if is_iterator_of_chunks(data):
            return self._label_chunks(data, keys)
        return self._label(read_batch(data, self._form, self._roster, **keys))

    def _label_chunks(self, chunks: Iterator[Any], keys: dict[str, str | None]) -> Iterator[LabeledStream]:
        for chunk in chunks:
            yield self._label(read_batch(chunk, self._form, self._roster, **keys))

    def _label(self, batch: Batch) -> LabeledStream:
        admitted = self._admit(batch)
        draws = tie_draws(self.tie_break_policy, self.seed, admitted.engine.n_rows, len(admitted.codes))
        self._take(admitted)
        said = admitted.engine.label(admitted.codes, draws)
        n_votes = (admitted.codes >= 0).sum(axis=1)
        names = self._roster.names
        return LabeledStream(said.labels, said.proba, said.estimates, n_votes, self._form, names, batch.origin)

    def partial_fit(self: Self, data: Any, **keys: str | None) -> Self:
        """Learn from more rows, label none. Takes what `label_stream` takes."""
        chunks = data if is_iterator_of_chunks(data) else [data]
        for chunk in chunks:
            admitted = self._admit(read_batch(chunk, self._form, self._roster, **keys))
            self._take(admitted)
            admitted.engine.learn(admitted.codes)
        return self

    def fit(self: Self, data: Any, **keys: str | None) -> Self:
        """Forget everything, then learn from rows, label none. Takes what `label_stream` takes."""
        fresh = self.clone().partial_fit(data, **keys)
        self._roster, self._engine, self._last_time = fresh._roster, fresh._engine, fresh._last_time
        return self

    # -- use what is known, change nothing -----------------------------------------------------

    def _vote(self, batch: Batch, policy: str | None) -> tuple[Ints, Floats]:
        """Labels and probabilities of rows under the current weights."""
        codes = self._aligned_for_prediction(batch)
        seen = self.n_rows
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, seen, self._form.n_classes)
        draws = tie_draws(tie_policy(policy or self.tie_break_policy), self.seed, seen, len(codes))
        if self._engine is None or not seen:
            return self._first_vote(codes, draws)
        return self._engine.predict(codes, draws)

    def _aligned_for_prediction(self, batch: Batch) -> Codes:
        if batch.names is None:
            self._roster.for_width(batch.codes.shape[1])
            return batch.codes
        if self._roster.closed:
            self._roster.joined_by(batch.names)  # refuses unknown names
        roster = self._roster if self._roster.names else Roster(batch.names)
        return _aligned(batch, roster)

    # -- admission: every check before anything changes ----------------------------------------

    def _admit(self, batch: Batch) -> _Admitted:
        if batch.origin.door == "long" and batch.times is None:
            raise OrderError("a long frame needs time=, the column that says when each vote was cast")
        if not self.n_rows:
            check_first_batch(self._form, batch.codes, batch.literal)
        last_time = self._checked_times(batch)
        roster = (
            self._roster.for_width(batch.codes.shape[1])
            if batch.names is None
            else self._roster.joined_by(batch.names)
        )
        engine = self._engine_for(roster)
        codes = batch.codes if batch.names in (None, roster.names) else _aligned(batch, roster)
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, engine.n_rows, self._form.n_classes)
        return _Admitted(codes, roster, engine, last_time)

    def _engine_for(self, roster: Roster) -> Engine:
        if self._engine is None:
            return self._new_engine(len(roster))
        joining = len(roster) - self._engine.n_labelers
        if not joining:
            return self._engine
        # The past of a newcomer is all abstentions, filled by the same draws as if it had been there.
        remembered = self._engine.remembered()
        past = np.full((remembered, joining), -1, np.int16 if self._form.n_classes > 126 else np.int8)
        if self.abstentions == "random":
            first = self.n_rows - remembered
            past = fill_abstentions(past, self.seed, first, self._form.n_classes, self._engine.n_labelers)
        return self._grown(self._engine, past)

    def _checked_times(self, batch: Batch) -> tuple[str, Any] | None:
        if batch.times is None:
            return self._last_time
        times = batch.times
        kind, last = self._last_time or (times.kind, times.values[0])
        if kind != times.kind:
            raise OrderError(f"the time column held {kind}s so far and holds {times.kind}s now; keep to one kind")
        for row, value in enumerate(times.values):
            if not value >= last:
                before = f"row {row - 1}" if row else "the row before this batch"
                raise OrderError(
                    f"row {row} (counting from 0): time {times.show(value)} is before {times.show(last)} of"
                    f" {before}; sort the rows by time"
                )
            last = value
        return times.kind, last

    def _take(self, admitted: _Admitted) -> None:
        self._roster, self._engine, self._last_time = admitted.roster, admitted.engine, admitted.last_time

    # -- what is known now ---------------------------------------------------------------------

    def _current(self) -> Estimates:
        engine = self._engine or self._new_engine(len(self._roster))
        return engine.current()

    @property
    def labelers(self) -> tuple[str, ...]:
        """Names of the labelers, in the order of every array; empty until votes name them."""
        return self._roster.names

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class values, in the order of `predict_proba`."""
        return self._form.classes

    @property
    def n_rows(self) -> int:
        """Rows learned from."""
        return 0 if self._engine is None else self._engine.n_rows

    @property
    def window(self) -> int:
        """How many of the last rows count now; 0 before the first row."""
        return int(self._current().windows[0])

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler when it votes, now."""
        return self._current().accuracies[0]

    @property
    def diluted_accuracies(self) -> Floats:
        """Accuracy of each labeler with abstentions counted as blind guesses, now."""
        return self._current().diluted_accuracies[0]

    @property
    def weights(self) -> Floats:
        """What a vote of each labeler counts now."""
        return self._current().weights[0]

    @property
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._current().coverage[0]

    @property
    def state_nbytes(self) -> int:
        """Bytes of state; bounded by the largest window, whatever the number of rows."""
        return 0 if self._engine is None else self._engine.nbytes

    def get_params(self) -> dict[str, Any]:
        """The settings, as keywords that make the same model again."""
        return copy.deepcopy(self._settings)

    def describe(self) -> str:
        """What the model is, how it reads votes, and what it knows, in a few lines."""
        names = show_names(self.labelers) if self.labelers else "named by the first votes"
        lines = [
            repr(self),
            f"votes: {self._form.describe()}",
            f"labelers: {names}",
            f"rows: {self.n_rows}, window: {self.window}",
        ]
        if self.n_rows:
            now = self._current()
            for place, name in enumerate(self.labelers):
                lines.append(
                    f"  {name}: accuracy {now.accuracies[0, place]:.3f} when it votes,"
                    f" coverage {now.coverage[0, place]:.3f}, weight {now.weights[0, place]:.3f}"
                )
        return "\n".join(lines)

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        told = {key: value for key, value in self._settings.items() if value != usual[key].default}
        shown = [f"{key}={value!r}" for key, value in told.items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    # -- state ---------------------------------------------------------------------------------

    def clone(self: Self) -> Self:
        """A new model with the same settings that has seen nothing."""
        return type(self)(**self.get_params())

    def copy(self: Self) -> Self:
        """The same model with the same state, independent of this one."""
        return copy.deepcopy(self)

    def reset(self: Self) -> Self:
        """Forget every row and every name that the votes brought; settings stay."""
        fresh = self.clone()
        self._roster, self._engine, self._last_time = fresh._roster, None, None
        return self

    def save(self, path: str | Path) -> None:
        """Write settings and state to one file, whole or not at all; `load` resumes bit for bit."""
        for value in self._form.classes:
            if not isinstance(value, (str, int, float)):
                raise StateError(f"class {value!r} cannot be written to a state file; use text or numbers as classes")
        header = {
            "model": type(self).__name__,
            "settings": self._settings,
            "labelers": list(self._roster.names),
            "last_time": self._last_time,
        }
        write_state(path, header, {} if self._engine is None else self._engine.arrays())

    @classmethod
    def load(cls: type[Self], path: str | Path) -> Self:
        """Read a model from a file that `save` wrote.

        A file of another version, of another model, cut short or tampered with is refused.
        """
        header, arrays = read_state(path)
        kind = LabelModel._kinds.get(header["model"])
        if kind is None or not issubclass(kind, cls):
            raise StateError(f"{path}: this is the state of {header['model']}, not of {cls.__name__}; load it with that")
        try:
            model = kind(**header["settings"])
            model._roster = Roster(tuple(header["labelers"]), model._roster.closed)
            model._last_time = None if header["last_time"] is None else tuple(header["last_time"])
            if arrays:
                model._engine = model._new_engine(len(model._roster))
                model._engine.restore(arrays)
        except (TypeError, ValueError) as problem:
            raise StateError(f"{path}: the state does not fit {header['model']}: {problem}") from problem
        return model


def _aligned(batch: Batch, roster: Roster) -> Codes:
    """The batch's columns in the order of the roster; names it does not have are left out."""
    codes = np.full((len(batch.codes), len(roster)), -1, batch.codes.dtype)
    places = roster.places(batch.names or ())
    codes[:, places[places >= 0]] = batch.codes[:, places >= 0]
    return codes


def load(path: str | Path) -> LabelModel:
    """Read any saved model, whatever its kind."""
    return LabelModel.load(path)
