"""`LabelModel`: what all models share. A model reads votes and owns one stream.

A stream is an engine (window and label model), a drift detector, and a book of row ids for feedback. The model turns
votes into a `Batch`, gives it to the engine, shows the same rows to the detector, and wraps the results.
"""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import numpy as np
import numpy.typing as npt

from driftvote import settings
from driftvote.arrays import Arrays, Codes, Floats, Ints, code_dtype
from driftvote.core.engine import (
    NO_CLASSES,
    Engine,
    Estimates,
    Floor,
    Known,
    Labeled,
    check_fit,
    equal_vote,
    estimate_rows,
)
from driftvote.core.label_models import Estimator, Mixture, Wawa
from driftvote.core.label_models.interface import tables_fit
from driftvote.core.state import agreement_matrix
from driftvote.core.voting import NO_DRAWS, TIE_POLICIES, tie_draws
from driftvote.core.windows import FixedWindow, WindowRule
from driftvote.drift.bands import AccuracyEstimate
from driftvote.drift.dependence import Dependence, dependence
from driftvote.drift.detector import REMEMBERED, DriftDetector
from driftvote.drift.diagnosis import Change
from driftvote.drift.events import LABELER_KINDS, DriftEvent, DriftWarning
from driftvote.drift.statistics import BLOCK
from driftvote.errors import DriftvoteError, FeedbackError, NotFittedError, SettingError, StateError
from driftvote.files.state import read_state, write_state
from driftvote.inputs import (
    ARRAY,
    Batch,
    Id,
    Origin,
    align_for_prediction,
    align_rows,
    check_times,
    is_empty_chunk,
    is_iterator_of_chunks,
    make_frame,
    make_series,
    read_batch,
    read_row,
    refuse_newcomers,
    refuse_values_for_chunks,
    split_by_roster,
)
from driftvote.models.feedback import FeedbackBook
from driftvote.models.groups import Groups
from driftvote.models.results import (
    Explanation,
    LabeledStream,
    MemberWeight,
    Step,
    accuracy_bands,
    explain_row,
    member_weights,
)
from driftvote.models.show import html_note, html_table
from driftvote.randomness import fill_abstentions
from driftvote.times import LastTime
from driftvote.votes import Roster, SignedVotesCheck, VoteFormat, check_first_batch, declare_votes, show_names

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame, IntoSeries

Self = TypeVar("Self", bound="LabelModel")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Prediction: TypeAlias = "npt.NDArray[Any] | IntoSeries | IntoDataFrame"
"""An array for an array; a column or a frame of its library for a frame."""
Chunks = Iterator[Any]

SLICE = 1 << 16
"""Rows that are learned from at once, so that labels that are dropped take little memory."""

MOST_LABELERS = 20_000
"""Labelers of a state: the agreements of more pairs would not fit into memory."""

DESCRIBED = 30
"""Labelers up to which `describe` looks for dependence: the pairs of more take seconds."""


@dataclass
class Stream:
    """Everything that belongs to the rows seen so far."""

    roster: Roster
    members: Roster  # the labelers behind groups
    engine: Engine | None = None
    detector: DriftDetector | None = None
    ids: FeedbackBook = field(default_factory=FeedbackBook)
    last_time: LastTime = None
    known: list[Known] = field(default_factory=list)  # verified rows of stretches that are still to come
    before: Before | None = None  # while rows are learned: the way back
    format_check: SignedVotesCheck = field(default_factory=SignedVotesCheck)


class Before(NamedTuple):
    """A stream before a batch: what takes the rows of the batch back if anything fails, or on Ctrl-C."""

    roster: Roster
    members: Roster
    engine: Engine | None
    detector: DriftDetector | None
    last_time: LastTime
    format_check: SignedVotesCheck
    mark: Any  # of the engine
    n_rows: int
    dropped_ids: dict[int, Id]  # those that the batch pushed out


def serialized(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """Let one thread at a time use the stream of a model; the others wait.

    Rows of an earlier call that Ctrl-C ended, and that a second Ctrl-C kept from being taken back, are taken back now.
    """

    @wraps(method)
    def call(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            if self._stream.before is not None:
                if self._learning:
                    raise DriftvoteError(f"this {type(self).__name__} is in the middle of a call; use it after that")
                self._take_back()
            return method(self, *args, **kwargs)

    return call


class LabelModel:
    """What all models share: reading votes, names, state, events, feedback. See `AdaptiveLabelModel`."""

    _kinds: ClassVar[dict[str, type[LabelModel]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        LabelModel._kinds[cls.__name__] = cls
        if "__init__" in cls.__dict__:
            cls.__init__ = _hint_at_settings(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        params: dict[str, Any],
        rule: WindowRule | FixedWindow,
        estimator: Estimator,
        on_event: Callable[[DriftEvent], Any] | None,
    ) -> None:
        """Check the parameters that all models share; `params` are all keywords of the constructor but `on_event`."""
        get = params.get
        self._form = declare_votes(get("votes"), get("n_classes"), get("classes"), get("abstain"))
        self._rule, self._estimator = rule, estimator
        estimator.check(self._form.n_classes)
        self.abstentions = settings.one_of("abstentions", get("abstentions", "zero"), ("zero", "random"))
        self.tie_break_policy = settings.one_of("tie_break_policy", get("tie_break_policy", "abstain"), TIE_POLICIES)
        self.seed = settings.whole("seed", get("seed", 0))
        self.n_jobs = settings.n_threads("n_jobs", get("n_jobs", 1))
        self.false_event_rate = settings.event_rate(get("false_event_rate"))
        if on_event is not None and not callable(on_event):
            raise SettingError(f"on_event must be a function of one event, or None, not {on_event!r}")
        self.on_event = on_event
        self._lock, self._learning = threading.RLock(), False
        declared = Roster.declared(get("labelers"), estimator.min_labelers)
        self._groups = None if get("groups") is None else Groups(get("groups"))
        roster = declared if self._groups is None else self._groups.roster(declared)
        self._stream = Stream(roster, declared, format_check=SignedVotesCheck.of(self._form))
        named = get("classes") is not None
        self._params = params | {
            "n_classes": None if named else self._form.n_classes,
            "classes": keep_given(params.get("classes"), list(self._form.classes) if named else None),
            "abstain": self._form.abstain if named else None,
            "labelers": keep_given(get("labelers"), None if get("labelers") is None else list(declared.names)),
            "abstentions": self.abstentions,
            "tie_break_policy": self.tie_break_policy,
            "seed": self.seed,
            "n_jobs": self.n_jobs,
            "groups": None if self._groups is None else keep_given(get("groups"), self._groups.group_of),
            "false_event_rate": self.false_event_rate,
        }

    # -- learn and label -----------------------------------------------------------------------

    def update(
        self, row: Any, *, id: Any = None, verified: Any = None, time: Any = None, time_format: str | None = None
    ) -> Step:
        """Learn from one row, then return its label.

        `row` is a sequence of votes, one for each labeler, or a dict {labeler: vote} in which a missing labeler
        abstains and a new labeler joins. `id` names the row in a later `feedback`. `verified` is its class, if it is
        known: it becomes the label, and the model learns from it. `time` (a number, a date, or text) must not
        decrease; events report it. `time_format` is the format of a time that is text, such as `"%d.%m.%Y"`.
        """
        if id is not None or verified is not None:
            self.check_learns_from_verified()
        out, events = self._update(row, id, verified, time, time_format)
        if events:
            self._call_back(events)
        return Step(out, 0)

    @serialized
    def _update(
        self, row: Any, id: Any, verified: Any, time: Any, time_format: str | None
    ) -> tuple[LabeledStream, list[DriftEvent]]:
        if self._groups is None:
            batch = read_row(
                row, self._form, self._stream.roster, id=id, verified=verified, time=time, time_format=time_format
            )
        else:
            members, keys = self._stream.members, {"id": id, "verified": verified, "time": time}
            batch = self._collapse(read_row(row, self._form, members, **keys, time_format=time_format))
        return self._label(batch)

    @overload
    def label_stream(
        self,
        data: Chunks,
        *,
        time: str | None = None,
        time_format: str | None = None,
        task: str | None = None,
        labeler: str | None = None,
        label: str | None = None,
        ids: str | None = None,
        verified: str | None = None,
    ) -> Iterator[LabeledStream]: ...
    @overload
    def label_stream(
        self,
        data: Any,
        *,
        time: str | None = None,
        time_format: str | None = None,
        task: str | None = None,
        labeler: str | None = None,
        label: str | None = None,
        ids: Any = None,
        verified: Any = None,
    ) -> LabeledStream: ...
    def label_stream(
        self,
        data: Any,
        *,
        time: str | None = None,
        time_format: str | None = None,
        task: str | None = None,
        labeler: str | None = None,
        label: str | None = None,
        ids: Any = None,
        verified: Any = None,
        **unknown: Any,
    ) -> LabeledStream | Iterator[LabeledStream]:
        """Learn from rows in time order and label each one; continues where the stream stopped.

        Parameters
        ----------
        data
            Rows x labelers (array or nested lists), a wide frame with a column for each labeler (missing
            cells abstain), a list of dicts {labeler: vote}, or a long frame with one vote per line. An
            *iterator* of such chunks gives an iterator of results, so that a long stream is never held
            in memory.
        time
            Column of a frame that must not decrease; a long frame needs one.
        time_format
            Format of times that are text, such as `"%d.%m.%Y %H:%M"`; needed only where it cannot be detected.
        task, labeler, label
            Columns of a long frame. A task becomes a row when its last vote is in.
        ids
            Names of the rows for a later `feedback`: one value per row, or a column. Tasks of a long frame are ids.
        verified
            Verified classes, one value per row or a column, missing where there is none. Such a row comes out with
            this label and probability 1, and is learned from (not by `estimator="triplet"` or `"majority"`).

        Returns
        -------
        LabeledStream, or an iterator of them.
        """
        columns = {"time": time, "task": task, "labeler": labeler, "label": label, "ids": ids, "verified": verified}
        columns |= {"time_format": time_format, **unknown}  # reading refuses what is unknown
        if is_iterator_of_chunks(data):
            refuse_values_for_chunks(ids, verified)
            return self._label_chunks(data, columns)
        return self._read_and_label(data, columns)

    def _label_chunks(self, chunks: Chunks, columns: dict[str, Any]) -> Iterator[LabeledStream]:
        for chunk in chunks:
            if is_empty_chunk(chunk):
                yield self._empty_result()
            else:
                yield self._read_and_label(chunk, columns)

    def _read_and_label(self, data: Any, columns: dict[str, Any]) -> LabeledStream:
        out, events = self._label_data(data, columns)
        self._call_back(events)
        return out

    @serialized
    def _label_data(self, data: Any, columns: dict[str, Any]) -> tuple[LabeledStream, list[DriftEvent]]:
        return self._label(self._read(data, **columns))

    def _empty_result(self) -> LabeledStream:
        """Return the result of a chunk without rows, so that chunks and results stay side by side."""
        k, names = self._form.n_classes, self.labelers
        labeled = Labeled(np.zeros(0, np.int64), np.zeros((0, k)), Estimates.unknown(0, len(names), k))
        return LabeledStream(labeled, np.zeros((0, len(names)), code_dtype(k)), self._form, names)

    def label_batch(self, batch: Batch) -> LabeledStream:
        """Learn from encoded rows and label each one: the streaming interface behind all others.

        `driftvote.inputs` and `driftvote.files` make batches. Everything is checked before anything changes, and if
        labeling fails, or Ctrl-C ends it, the rows are taken back.
        """
        out, events = self._label_batch(batch)
        self._call_back(events)
        return out

    @serialized
    def _label_batch(self, batch: Batch) -> tuple[LabeledStream, list[DriftEvent]]:
        return self._label(self._collapse(batch) if self._groups is not None and batch.members is None else batch)

    def _label(self, batch: Batch) -> tuple[LabeledStream, list[DriftEvent]]:
        """Learn from a batch and label it, or leave everything as it was."""
        stream, events = self._stream, list[DriftEvent]()
        first = 0 if stream.engine is None else stream.engine.n_rows
        try:
            parts = list(self._advance(batch, events))
            labeled = parts[0] if len(parts) == 1 else Labeled.join(parts)
            votes = batch.codes if batch.names is None else align_rows(batch, stream.roster)
            detected = None if self.false_event_rate is None else events
            names, ids = stream.roster.names, batch.ids
            out = LabeledStream(labeled, votes, self._form, names, batch.origin, detected, first, batch.times, ids)
        except BaseException:
            self._learning = False  # comes before any call: Ctrl-C raises between calls
            self._take_back()
            raise
        self._stream.before, self._learning = None, False  # from here on, the rows are learned
        return out, events

    def partial_fit(self: Self, data: Any, y: Any = None, **columns: Any) -> Self:
        """Learn from more rows without labeling them. Takes what `label_stream` takes; `y` is ignored."""
        chunks = data if is_iterator_of_chunks(data) else [data]
        if chunks is data:
            refuse_values_for_chunks(**columns)
        for chunk in chunks:
            if chunk is not data and is_empty_chunk(chunk):
                continue
            self._call_back(self._learn_data(chunk, columns))
        return self

    @serialized
    def _learn_data(self, data: Any, columns: dict[str, Any]) -> list[DriftEvent]:
        """Learn from rows and return the events that they bring, or leave everything as it was."""
        batch, events = self._read(data, **columns), list[DriftEvent]()
        try:
            for _ in self._advance(batch, events, SLICE):
                pass
        except BaseException:
            self._learning = False  # comes before any call: Ctrl-C raises between calls
            self._take_back()
            raise
        self._stream.before, self._learning = None, False  # from here on, the rows are learned
        return events

    def fit(self: Self, data: Any, y: Any = None, **columns: Any) -> Self:
        """Reset, then learn from rows without labeling them. Takes what `label_stream` takes; `y` is ignored."""
        self._become(self.clone().partial_fit(data, **columns))
        self._call_back(self.events)
        return self

    def fit_predict(self, data: Any, y: Any = None, **columns: Any) -> npt.NDArray[Any]:
        """Reset, then return the label that each row gets when it arrives; `y` is ignored."""
        fresh = self.clone()
        out = fresh.label_stream(data, **columns)
        labels = out.labels if isinstance(out, LabeledStream) else np.concatenate([part.labels for part in out])
        self._become(fresh)
        self._call_back(self.events)
        return labels

    @serialized
    def _become(self, other: LabelModel) -> None:
        self._stream = other._stream

    def _read(self, data: Any, **columns: Any) -> Batch:
        if columns.get("ids") is not None or columns.get("verified") is not None:
            self.check_learns_from_verified()
        if self._groups is None:
            return read_batch(data, self._form, self._stream.roster, **columns)
        batch = read_batch(data, self._form, self._stream.members, **columns)
        return self._collapse(batch)

    def _read_row(self, row: Any) -> Batch:
        if self._groups is None:
            return read_row(row, self._form, self._stream.roster)
        return self._collapse(read_row(row, self._form, self._stream.members))

    def _collapse(self, batch: Batch) -> Batch:
        assert self._groups is not None
        return self._groups.collapse(batch, self._form.n_classes, self._stream.members, self._stream.roster)

    def _advance(self, batch: Batch, events: list[DriftEvent], step: int | None = None) -> Iterator[Labeled]:
        """Check a batch, then learn from it and yield its labels in parts: where labelers join, and after `step` rows.

        Drift events are added to `events`. If it is not read to its end, `_take_back` the rows.
        """
        stream, last_time = self._stream, self._stream.last_time
        if batch.times is not None or batch.origin is not ARRAY:
            last_time = check_times(batch, last_time)
        if batch.names is None and batch.codes.shape[1] == len(stream.roster.names):
            parts = [(slice(0, len(batch.codes)), stream.roster)]
        else:
            parts = split_by_roster(stream.roster, batch)
            if stream.engine is not None and not stream.engine.keeps_rows and self.abstentions == "random":
                refuse_newcomers(stream.roster, parts[-1][1])
        format_check = stream.format_check
        if not format_check.done:
            stream.format_check = replace(
                format_check, votes=format_check.votes.copy(), pairs=format_check.pairs.copy()
            )
            n_rows = 0 if stream.engine is None else stream.engine.n_rows
            places = {name: place for place, name in enumerate(parts[-1][1].names)}
            labelers = range(len(places)) if batch.names is None else [places[name] for name in batch.names]
            stream.format_check.look(self._form, batch.codes, labelers, batch.literal, n_rows)
        several_parts = len(parts) > 1 or parts[0][1] is not stream.roster or step is not None
        self._prepare(len(batch.codes), several_parts, format_check)
        for rows, roster in parts:
            for begin in range(rows.start, rows.stop, step or rows.stop):
                part = slice(begin, rows.stop if step is None else min(rows.stop, begin + step))
                yield self._label_part(batch, part, roster, events)
        stream.last_time = last_time
        if batch.members is not None:
            stream.members = replace(stream.members, names=batch.members)

    def _label_part(self, batch: Batch, part: slice, roster: Roster, events: list[DriftEvent]) -> Labeled:
        stream, engine = self._stream, self._stream.engine
        if engine is None or roster is not stream.roster:
            engine = self._engine_for(roster)
        codes = (batch.codes if batch.names is None else align_rows(batch, roster))[part]
        first, draws, verified = engine.n_rows, NO_DRAWS, NO_CLASSES
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, first, self._form.n_classes)
        if self.tie_break_policy == "random":
            draws = tie_draws("random", self.seed, first, len(codes))
        if batch.verified is not None and self._estimator.learns_from_verified:
            verified = batch.verified[part]
        detector, changes = stream.detector, list[Change]()
        if detector is not None:  # it sees the rows first: after an event, windows begin anew
            changes = detector.scan(codes)
            if self._rule.restarts:
                moved = [change for change in changes if change.kind in LABELER_KINDS]
                engine.add_floors([Floor(change.row + 1, change.settled) for change in moved])
        labeled = engine.label(codes, draws, verified, self.n_jobs)
        stream.roster, stream.engine = roster, engine
        if batch.ids is not None and self._estimator.learns_from_verified:
            stream.ids.add(first, batch.ids[part])
        if stream.ids.by_row and stream.before is not None:
            stream.ids.forget(engine.n_rows - engine.largest_window, stream.before.dropped_ids)
        if detector is not None and first // BLOCK != (first + len(codes)) // BLOCK:
            times = None if batch.times is None else batch.times[part]
            events += detector.report(changes, labeled.estimates.windows, times)
        return labeled

    def _prepare(self, n_rows: int, several_parts: bool, format_check: SignedVotesCheck) -> None:
        """Make sure that the next `n_rows` rows can be taken back; `format_check` has not seen them."""
        stream = self._stream
        engine, detector, mark, seen = stream.engine, stream.detector, None, 0
        if engine is not None:
            mark, seen = engine.mark(n_rows), engine.n_rows
        before = Before(stream.roster, stream.members, engine, detector, stream.last_time, format_check, mark, seen, {})
        self._learning = True
        stream.before = before
        if detector is not None and (several_parts or seen // BLOCK != (seen + n_rows) // BLOCK):
            stream.detector = detector.fork(n_rows)

    def _take_back(self) -> None:
        """Be as before the batch: also if Ctrl-C came half-way, and once more if it came half-way in here."""
        stream, before = self._stream, self._stream.before
        if before is None:
            return
        if before.engine is not None:
            before.engine.rewind(before.mark)
        if before.detector is not None:
            before.detector.rewind(before.n_rows)
        stream.ids = stream.ids.before(before.n_rows, before.dropped_ids)
        stream.roster, stream.members, stream.engine, stream.detector = before[:4]
        stream.last_time, stream.format_check, stream.before = before.last_time, before.format_check, None

    def _call_back(self, events: list[DriftEvent]) -> None:
        """Call `on_event`, once everything is in its place: an exception in it leaves a whole state behind."""
        if self.on_event is not None:
            for event in events:
                self.on_event(event)

    # -- the engine of the stream --------------------------------------------------------------

    def _engine_for(self, roster: Roster) -> Engine:
        """Return the engine for these labelers; a detector for them stands ready."""
        engine, detector = self._stream.engine, self._stream.detector
        if engine is None:
            engine = self._new_engine(roster)
            engine.know(self._stream.known)
        elif engine.n_labelers != len(roster):
            engine = self._widen_engine(engine, roster)
        if self.false_event_rate is not None:
            if detector is None:
                self._stream.detector = self._new_detector(roster, engine.n_rows)
            elif detector.n_labelers != len(roster):
                names, n_rows = roster.names[detector.n_labelers :], min(detector.n_rows, REMEMBERED)
                past = self._past_votes(len(names), detector.n_labelers, detector.n_rows - n_rows, n_rows)
                detector.add_labelers(names, past)
        return engine

    def _new_engine(self, roster: Roster) -> Engine:
        random = self.abstentions == "random"
        return Engine(self._estimator, self._rule, len(roster), self._form.n_classes, random)

    def _widen_engine(self, engine: Engine, roster: Roster) -> Engine:
        """Return the engine with newcomers: their past is all abstentions, filled by the same draws as at the time."""
        remembered, n = engine.remembered_rows, engine.n_labelers
        return engine.with_labelers(self._past_votes(len(roster) - n, n, engine.n_rows - remembered, remembered))

    def _past_votes(self, newcomers: int, n_before: int, first_row: int, n_rows: int) -> Codes:
        """Return what stands for the votes of newcomers on earlier rows: abstentions, or the draws in their place."""
        past = np.full((n_rows, newcomers), -1, code_dtype(self._form.n_classes))
        if self.abstentions == "random":
            past = fill_abstentions(past, self.seed, first_row, self._form.n_classes, n_before)
        return past

    def _new_detector(self, roster: Roster, first_row: int) -> DriftDetector:
        assert self.false_event_rate is not None
        judge: Estimator = Mixture() if tables_fit(len(roster), self._form.n_classes) else Wawa()
        return DriftDetector(
            len(roster),
            self._form.n_classes,
            false_event_rate=self.false_event_rate,
            labelers=roster.names,
            classes=self._form.classes,
            first_row=first_row,
            estimate=partial(
                _estimate_accuracies,
                self._estimator if self._estimator.bands else judge,
                self._form.n_classes,
                self.abstentions == "random",
            ),
        )

    def _fitted_engine(self) -> Engine:
        engine = self._stream.engine
        if engine is None or not engine.n_rows:
            raise NotFittedError(
                f"this {type(self).__name__} has seen no rows yet; call fit, update or label_stream first"
            )
        return engine

    @serialized
    def start_at(self, row: int, before: Codes) -> None:
        """Move a model without rows to row `row` of a stream, of which `before` are the last rows before it.

        `before` holds class codes, -1 for an abstention, with a column for each declared labeler (with `groups`, for
        each member): all rows of the stream so far, or at least `memory_rows` of them. The labels that follow are
        those of a model that has seen all rows, unless windows begin anew at drift events that came before.

        >>> from driftvote import FixedWindowLabelModel
        >>> votes = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(np.int8)
        >>> whole = FixedWindowLabelModel(window=8).label_stream(votes)
        >>> model = FixedWindowLabelModel(window=8, labelers=["a", "b", "c"])
        >>> model.start_at(50, votes[42:50])
        >>> bool((model.label_stream(votes[50:]).proba == whole.proba[50:]).all())
        True
        """
        if self.n_rows:
            raise SettingError(f"the model has seen {self.n_rows} rows; only a new one can start in the middle")
        memory = self.memory_rows
        if len(before) < row and (memory is None or len(before) < memory):
            needed = "all" if memory is None else f"{min(row, memory)}"
            raise SettingError(f"{len(before)} rows before row {row} are not enough: {needed} are needed")
        if not row:
            return
        codes = np.ascontiguousarray(before[-(row if memory is None else min(row, memory)) :])
        if self._groups is not None:
            codes = self._collapse(Batch(self._stream.members.names, codes, literal=False)).codes
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, row - len(codes), self._form.n_classes)
        roster = self._stream.roster.for_width(codes.shape[1])
        engine = self._new_engine(roster)
        engine.start_at(row, codes)
        detector = None if self.false_event_rate is None else self._new_detector(roster, row)
        self._stream.roster, self._stream.engine, self._stream.detector = roster, engine, detector

    # -- use what is known, change nothing -----------------------------------------------------

    @overload
    def predict(
        self,
        /,
        data: Any,
        return_probs: Literal[False] = False,
        tie_break_policy: str | None = None,
        **columns: str | None,
    ) -> Prediction: ...
    @overload
    def predict(
        self, /, data: Any, return_probs: Literal[True], tie_break_policy: str | None = None, **columns: str | None
    ) -> tuple[Prediction, Prediction]: ...
    @serialized
    def predict(
        self, /, data: Any, return_probs: bool = False, tie_break_policy: str | None = None, **columns: str | None
    ) -> Prediction | tuple[Prediction, Prediction]:
        """Return the labels of rows by the current fit; the model does not change.

        An array gives an array. A wide frame gives a column of its library (with its index, in
        pandas), a long frame gives a frame of task and label. With `return_probs`, a pair of labels
        and probabilities.
        """
        self._fitted_engine()
        batch = self._read(data, **columns)
        codes, proba = self._vote(batch, tie_break_policy)
        labels = _shape_labels(self._form.decode(codes), batch.origin)
        return (labels, self._shape_proba(proba, batch.origin)) if return_probs else labels

    @serialized
    def predict_proba(self, /, data: Any, **columns: str | None) -> Prediction:
        """Return the class probabilities of rows by the current fit; a column for each class."""
        self._fitted_engine()
        batch = self._read(data, **columns)
        return self._shape_proba(self._vote(batch, None)[1], batch.origin)

    @serialized
    def explain(self, row: Any) -> Explanation:
        """Return why a row would get its label by the current fit; the model does not change.

        >>> from driftvote import AdaptiveLabelModel
        >>> model = AdaptiveLabelModel(classes=["safe", "unsafe"])
        >>> _ = model.update({"judge-a": "safe", "judge-b": "safe", "judge-c": "unsafe"})
        >>> why = model.explain({"judge-a": "unsafe", "judge-c": "unsafe", "judge-b": "safe"})
        >>> why.label, why.majority, why.window, len(why.votes)
        ('unsafe', 'unsafe', 1, 3)
        """
        batch = self._read_row(row)
        codes, proba = self._vote(batch, None)
        roster = self._stream.roster
        if not roster.names:
            roster = Roster(batch.names or (), least=1).for_width(batch.codes.shape[1])
        now = self._current() if self.n_rows else Estimates.unknown(1, len(roster), self._form.n_classes)
        return explain_row(align_rows(batch, roster)[0], int(codes[0]), proba[0], now, self._form, roster.names)

    def learn_one(self, row: Any) -> None:
        """Learn from one row, as in river."""
        self.update(row)

    @serialized
    def predict_one(self, row: Any) -> Hashable:
        """Return the label of one row by the current fit, as in river; before the first row, by majority."""
        codes, _ = self._vote(self._read_row(row), None)
        return self._form.decode_one(int(codes[0]))

    @serialized
    def predict_proba_one(self, row: Any) -> dict[Any, float]:
        """Return {class: probability} of one row by the current fit, as in river."""
        _, proba = self._vote(self._read_row(row), None)
        return dict(zip(self._form.classes, proba[0].tolist(), strict=True))

    def _vote(self, batch: Batch, policy: str | None) -> tuple[Ints, Floats]:
        """Return labels and probabilities of rows by the current fit."""
        stream, seen = self._stream, self.n_rows
        if not seen:
            check_first_batch(self._form, batch.codes, batch.literal)
        codes = align_for_prediction(batch, stream.roster)
        if self.abstentions == "random":
            codes = fill_abstentions(codes, self.seed, seen, self._form.n_classes)
        policy = settings.one_of("tie_break_policy", policy or self.tie_break_policy, TIE_POLICIES)
        draws = tie_draws(policy, self.seed, seen, len(codes))
        if stream.engine is not None and seen:
            return stream.engine.predict(codes, draws)
        return self._first_vote(codes, draws)

    def _first_vote(self, codes: Codes, draws: Floats) -> tuple[Ints, Floats]:
        """Return labels and probabilities before the first row."""
        return equal_vote(codes, draws, self._form.n_classes)

    def _shape_proba(self, proba: Floats, origin: Origin) -> Any:
        if origin.backend is None:
            return proba
        columns: dict[str, Any] = {} if origin.layout != "long" else {origin.task_column: origin.tasks}
        columns |= self._form.by_class(proba)
        return make_frame(columns, origin.backend, origin.index)

    # -- verified labels -----------------------------------------------------------------------

    @serialized
    def feedback(self, row_or_id: Any, label: Any = None, *, by: str | None = None, replace: bool = False) -> None:
        """Add verified classes of rows that the model has seen; it learns from them from now on.

        All or nothing: if anything is refused, nothing has changed. Not for `"triplet"` and `"majority"`.

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
        self.check_learns_from_verified()
        if self._stream.engine is None:
            raise FeedbackError("there is no row to verify yet: the model has seen no rows")
        self._stream.ids.verify(row_or_id, label, by, replace, self._stream.engine, self._form)

    @property
    @serialized
    def verified(self) -> dict[int, Any]:
        """The rows that are verified and still remembered: {row number: class}."""
        if self._stream.engine is None or not self._estimator.learns_from_verified:
            return {}
        rows, codes = self._stream.engine.verified()
        return {row: self._form.decode_one(code) for row, code in zip(rows.tolist(), codes.tolist(), strict=True)}

    @serialized
    def know(self, known: Sequence[Known]) -> None:
        """Use verified rows for whole stretches of rows that are still to come; see `questions.known_stretches`."""
        self._stream.known = list(known)
        if self._stream.engine is not None:
            self._stream.engine.know(self._stream.known)

    def check_learns_from_verified(self) -> None:
        """Raise a `FeedbackError` unless this model learns from verified labels."""
        if not self._estimator.learns_from_verified:
            raise FeedbackError(
                f"{type(self).__name__} as it is set does not learn from verified labels; use"
                " AdaptiveLabelModel(estimator='mixture'), the default"
            )

    # -- drift ---------------------------------------------------------------------------------

    @property
    @serialized
    def events(self) -> list[DriftEvent]:
        """The latest drift events, oldest first (at most 256 are remembered)."""
        return [] if self._stream.detector is None else self._stream.detector.events

    @property
    @serialized
    def n_events(self) -> int:
        """How many drift events there were."""
        return 0 if self._stream.detector is None else self._stream.detector.n_events

    @property
    @serialized
    def warnings(self) -> list[DriftWarning]:
        """What is wrong with the panel now, by the agreements of the current window: labelers that err together."""
        if not self.n_rows or self._estimator.bands is None:
            return []
        return self.dependence().warnings(self.n_rows)

    @serialized
    def new_warnings(self) -> list[DriftWarning]:
        """Return the warnings that were not given before: each once, and again only after it was gone."""
        now, detector = self.warnings, self._stream.detector
        return now if detector is None else detector.new_warnings(now)

    @serialized
    def dependence(self) -> Dependence:
        """Return whether labelers err independently, as far as the agreements of the current window show.

        Pairs that agree more than independent errors explain, near-copies, and how many independent labelers the
        panel is worth; see `driftvote.drift.dependence` for what cannot be seen.
        """
        sums, votes, window = self._fitted_engine().window_sums()
        if self.abstentions == "random":  # random votes stand for abstentions, as the paper's protocol asks
            votes = np.full(len(votes), window)
        return dependence(sums, votes, window, self._form.n_classes, self.labelers)

    @property
    @serialized
    def agreements(self) -> Floats:
        """Agreement matrix over the current window: 1 always agree, 0 as by chance, 1 on the diagonal."""
        sums, votes, window = self._fitted_engine().window_sums()
        return agreement_matrix(sums, len(votes), window, self._form.n_classes)

    # -- what is known now ---------------------------------------------------------------------

    @serialized
    def _current(self) -> Estimates:
        engine = self._stream.engine
        if engine is None:
            return Estimates.unknown(1, len(self._stream.roster), self._form.n_classes)
        return engine.current()

    @property
    def labelers(self) -> tuple[str, ...]:
        """Names of the labelers (with `groups=`, of the groups), in the order of every array."""
        return self._stream.roster.names

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the labelers behind the groups of `groups=`; without groups, the labelers."""
        return self._stream.members.names if self._groups is not None else self.labelers

    @property
    def min_labelers(self) -> int:
        """The smallest number of labelers that the model can work with."""
        return self._estimator.min_labelers

    @property
    def vote_format(self) -> VoteFormat:
        """How votes are read: class values, their codes, and the value that abstains."""
        return self._form

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class values, in the order of `predict_proba`."""
        return self._form.classes

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class values as an array, as in scikit-learn."""
        return self._form.decode(np.arange(self._form.n_classes))

    @property
    @serialized
    def n_rows(self) -> int:
        """Rows learned from."""
        engine = self._stream.engine
        return 0 if engine is None else engine.n_rows

    @property
    def last_time(self) -> LastTime:
        """Kind and value of the time of the last row; None where rows have no times."""
        return self._stream.last_time

    @property
    def window(self) -> int:
        """Number of the last rows that count now; 0 before the first row."""
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
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._current().coverage[0]

    @property
    def label_models(self) -> list[MemberWeight]:
        """Weight of each label model of the mixture, now and by the votes alone; empty for other models."""
        return member_weights(self._current()) if self.n_rows else []

    def bands(self) -> tuple[Floats, Floats]:
        """Return lower and upper ends of the calibrated 95% band around `accuracies`, now."""
        low, high = accuracy_bands(self._current())
        return low[0], high[0]

    @property
    @serialized
    def memory_rows(self) -> int | None:
        """How many of the rows before it can influence the label of a row; None: all of them."""
        engine = self._stream.engine or Engine(self._estimator, self._rule, 3, self._form.n_classes, False)
        return engine.memory_rows

    @property
    @serialized
    def state_nbytes(self) -> int:
        """Bytes of state; bounded by the largest window, whatever the number of rows."""
        engine = self._stream.engine
        return 0 if engine is None else engine.nbytes + self._stream.ids.nbytes

    @serialized
    def describe(self) -> str:
        """Return a summary in a few lines: settings, vote format, labelers and their accuracies."""
        lines = [
            repr(self),
            f"votes: {self._form.describe()}",
            f"labelers: {show_names(self.labelers) if self.labelers else 'named by the first votes'}",
            *([] if self._groups is None else self._groups.describe()),
            f"rows: {self.n_rows}, window: {self.window}",
        ]
        return "\n".join(lines + (self._describe_labelers() if self.n_rows else []))

    def _describe_labelers(self) -> list[str]:
        """Return a line for each labeler, and what is known of their dependence."""
        now = self._current()
        if self._estimator.bands is None:
            return ["  every labeler counts the same; accuracies are not estimated"]
        lines = [
            f"  {name}: accuracy {now.accuracies[0, place]:.3f} when it votes, coverage {now.coverage[0, place]:.3f}"
            for place, name in enumerate(self.labelers)
        ]
        if self.label_models:
            weights = ", ".join(f"{one.name} {one.weight:.2f}" for one in self.label_models)
            lines.append(f"label models: {weights}")
        if len(self.labelers) > DESCRIBED:
            return [*lines, f"dependence: dependence() looks at all pairs of {len(self.labelers)} labelers"]
        return lines + self.dependence().lines()

    # -- settings ------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, as keywords that make the same model again; with `deep` also `windows__beta` etc."""
        params = dict(self._params)
        for name, value in self._params.items() if deep else ():
            if is_dataclass(value):
                params |= {f"{name}__{part.name}": getattr(value, part.name) for part in fields(value)}
        return params

    @serialized
    def set_params(self: Self, /, **params: Any) -> Self:
        """Change settings of a model without rows; `windows__beta=0.2` changes one setting of an object."""
        if self.n_rows:
            raise SettingError(f"the model has seen {self.n_rows} rows; reset() it before you change its settings")
        new = self.get_params(deep=False)
        for name, value in params.items():
            outer, nested, inner = name.partition("__")
            if not nested:
                new[name] = value
            elif is_dataclass(new.get(outer)) and inner in {part.name for part in fields(new[outer])}:
                new[outer] = replace(new[outer], **{inner: value})
            else:
                raise SettingError(f"{type(self).__name__} has no setting {name!r}")
        changed = type(self)(**new, on_event=self.on_event).__dict__
        self.__dict__.update(changed | {"_lock": self._lock})  # all or nothing
        return self

    @serialized
    def _repr_html_(self) -> str:
        lines = [f"votes: {self._form.describe()}", f"rows: {self.n_rows:,}, window: {self.window:,}"]
        if not self.n_rows:
            return html_note(repr(self), *lines)
        lines += [event.sentence for event in self.events[-3:]]
        now, (low, high) = self._current(), self.bands()
        head, rows = (
            ["labeler", "coverage"],
            [[name, f"{now.coverage[0, h]:.0%}"] for h, name in enumerate(self.labelers)],
        )
        if self._estimator.bands is not None:  # accuracies are estimated
            head += ["accuracy", "95% range"]
            for h, row in enumerate(rows):
                row += [f"{now.accuracies[0, h]:.1%}", f"{low[h]:.1%} to {high[h]:.1%}"]
        return html_note(repr(self), *lines, after=html_table(head, rows))

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        shown = []
        for name, value in self._params.items():
            default = usual[name].default
            if value != default and value != getattr(self, "_resolved_defaults", {}).get(name, default):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # -- state ---------------------------------------------------------------------------------

    def clone(self: Self) -> Self:
        """Return a new model with the same settings that has seen no rows."""
        return type(self)(**self.get_params(deep=False))

    def copy(self: Self) -> Self:
        """Return an independent model with the same state."""
        return copy.deepcopy(self)

    __copy__ = copy  # half a copy would share its rows, but not its lock

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        state = self.__getstate__()
        stream, twin = state.pop("_stream"), type(self).__new__(type(self))
        twin.__setstate__(copy.deepcopy(state, memo) | {"_stream": stream})
        return twin

    @serialized
    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle holds: a stream of its own, which no other thread can change meanwhile.

        Copies and pickles do not call back: two models that report the same stream would be one too many.
        """
        own = {name: value for name, value in self.__dict__.items() if name != "_lock"}
        return own | {"on_event": None, "_stream": copy.deepcopy(self._stream)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @serialized
    def reset(self: Self) -> Self:
        """Forget all rows, and all names that came with votes; keep the settings."""
        self._stream = self.clone()._stream
        return self

    def save(self, path: str | Path) -> None:
        """Write settings and state to one file, atomically; a loaded model continues with identical results."""
        write_state(path, *self.to_state())

    @classmethod
    def load(cls: type[Self], path: str | Path) -> Self:
        """Return the model in a file that `save` wrote.

        Refuses a file of another version or model, and one that is incomplete or was changed.
        """
        return cls.from_state(*read_state(path), name=str(path))

    @serialized
    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return settings and state as a header of plain values and named arrays; `from_state` resumes from them."""
        for value in (*self._form.classes, self._form.abstain):
            if not isinstance(value, (str, int, float, type(None))):
                raise StateError(f"class {value!r} cannot be written to a state file; use text or numbers as classes")
        stream = self._stream
        header: dict[str, Any] = {
            "model": type(self).__name__,
            "settings": {name: _to_plain(value) for name, value in self._params.items()},
            "labelers": list(stream.roster.names),
            "members": list(stream.members.names),
            "last_time": stream.last_time,
        }
        if stream.engine is None:
            return header, {}
        arrays = stream.engine.to_arrays()
        if self._estimator.learns_from_verified:
            arrays |= stream.ids.to_arrays()
        if stream.detector is not None:
            header["drift"], drift_arrays = stream.detector.to_state()
            arrays |= drift_arrays
        return header, arrays

    @classmethod
    def from_state(cls: type[Self], header: dict[str, Any], arrays: Arrays, *, name: str = "the state") -> Self:
        """Return the model of a header and arrays from `to_state`; `name` is how messages call it.

        Every value is checked; a state that does not fit raises a `StateError`.
        """
        kind = LabelModel._kinds.get(str(header["model"]))
        if kind is None or not issubclass(kind, cls):
            raise StateError(
                f"{name}: this is the state of {header['model']}, not of {cls.__name__}; load it with that"
            )
        try:
            return kind._restored(header, arrays)  # type: ignore[return-value]
        except Exception as problem:  # a settings or a field of any kind may stand anywhere
            what = problem if isinstance(problem, DriftvoteError) else f"{type(problem).__name__}: {problem}"
            raise StateError(f"{name}: the state does not fit {header['model']}: {what}") from problem

    @classmethod
    def _restored(cls, header: dict[str, Any], arrays: Arrays) -> LabelModel:
        """Return the model of a state; whatever it raises says that the state does not fit."""
        model: Any = cls._from_settings(header["settings"])
        stream: Stream = model._stream
        stream.roster = replace(stream.roster, names=_check_names(header, "labelers"))
        stream.members = replace(stream.members, names=_check_names(header, "members"))
        stream.last_time = _check_last_time(header["last_time"])
        if not arrays:
            return cast("LabelModel", model)
        check_fit(arrays, model._estimator, len(stream.roster), model._form.n_classes)  # before there is room for it
        stream.engine = model._new_engine(stream.roster)
        stream.engine.restore(arrays)
        if model._estimator.learns_from_verified:
            stream.ids = FeedbackBook.from_arrays(arrays, stream.engine.n_rows)
        if model.false_event_rate is not None:
            stream.detector = model._new_detector(stream.roster, stream.engine.n_rows)
            stream.detector.restore(header["drift"], arrays)
            if stream.detector.n_rows != stream.engine.n_rows:
                raise StateError(f"its detector has seen {stream.detector.n_rows} rows, not {stream.engine.n_rows}")
        return cast("LabelModel", model)

    @classmethod
    def _from_settings(cls: type[Self], plain: dict[str, Any]) -> Self:
        """Return the model of the settings in a state file."""
        return cls(**plain)


def _estimate_accuracies(estimator: Estimator, n_classes: int, diluted: bool, rows: Codes) -> AccuracyEstimate:
    """Return the accuracies of the labelers by these rows alone, for a drift event."""
    assert estimator.bands is not None
    return AccuracyEstimate.of_fit(estimate_rows(estimator, rows, n_classes, diluted), diluted, estimator.bands)


def _check_names(header: dict[str, Any], field: str) -> tuple[str, ...]:
    """Return the names in a header: text, each once, and not more than there can be sums of pairs for."""
    names = header[field]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        raise StateError(f"{field} must be a list of different names")
    if len(names) > MOST_LABELERS:
        raise StateError(f"{len(names)} {field} are more than {MOST_LABELERS}")
    return tuple(names)


def _check_last_time(saved: Any) -> LastTime:
    """Return the last time in a header."""
    if saved is None:
        return None
    kind, value = saved
    types = {"number": (int, float), "duration": (int, float), "datetime": (int,), "text": (str,)}
    if type(value) not in types[kind]:
        raise StateError(f"last_time {value!r} is not of the kind {kind!r}")
    return kind, value


def _hint_at_settings(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that refuses a keyword that it does not have with the one that was probably meant."""
    known = inspect.signature(init).parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())

    @wraps(init)
    def call(self: LabelModel, /, *args: Any, **keywords: Any) -> None:
        for name in keywords:
            if name not in known:
                raise settings.unknown_keyword(type(self).__name__, name, known, settings.SETTING_HINTS, "setting")
        init(self, *args, **keywords)

    return init if takes_any else call


def keep_given(given: Any, checked: Any) -> Any:
    """Return the given object where it equals the checked one: scikit-learn's `clone` looks for the same object."""
    return given if type(given) is type(checked) and given == checked else checked


def _to_plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else value


def _shape_labels(labels: Any, origin: Origin) -> Any:
    if origin.backend is None:
        return labels
    if origin.layout == "long":
        return make_frame({origin.task_column: origin.tasks, "label": labels.tolist()}, origin.backend)
    return make_series("label", labels.tolist(), origin.backend, origin.index)


def load(path: str | Path) -> LabelModel:
    """Return any saved model, whatever its kind."""
    return LabelModel.load(path)
