"""Finds lasting changes in a stream of votes; needs no model.

A block is 64 rows by their absolute numbers. At the end of every block the last 1, 2, 4 ... 128 blocks are compared
with all blocks before them since the last event (an episode), in every statistic of `statistics.py`. What is found is
reported one block later: with more rows since the change, it is clearer which labelers changed. Memory is bounded: the
last rows, a line of running totals for each of the last blocks, and one for the beginning of the episode.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from driftvote import settings
from driftvote.arrays import Arrays, Bools, Codes, Floats, Ints, code_dtype
from driftvote.core.engine import estimate_rows
from driftvote.core.jit import inner, jit
from driftvote.core.label_models import Mixture
from driftvote.core.state import ALL_PAST, Words, check_array, count_bits
from driftvote.drift.bands import AccuracyEstimate
from driftvote.drift.diagnosis import SIDE_ROWS, Change, EstimateFunction, Finding, diagnose, labeler_changes
from driftvote.drift.events import BALANCE as BALANCE_EVENT
from driftvote.drift.events import DriftEvent, DriftWarning, Time
from driftvote.drift.statistics import (
    AGREEMENT,
    BALANCE,
    BLOCK,
    COVERAGE,
    HITS,
    LEAST,
    TRIES,
    find_majority,
    flag_rows,
    list_statistics,
    normal_deviate,
    pack_votes,
    spread,
    surprise,
)
from driftvote.errors import LabelerError, SettingError, StateError, VoteError
from driftvote.times import Times
from driftvote.votes import MOST_CLASSES

SPANS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Blocks that are taken for "since the change", each in its turn."""
FINE = 4
"""A span of this many blocks or fewer is compared after every block, a longer one after every quarter of it."""
LINES = SPANS[-1] + 1
"""Lines of running totals, one a block."""
REMEMBERED = 2 * SIDE_ROWS
"""Rows that a diagnosis can look at: the longest span, and as many before it."""
STEP = 4096
"""Rows that are taken in at once. A change may be found at the first of them, so the ring buffer holds so many more."""
MOST_EVENTS = 256
"""Events that are remembered: the latest ones."""
MOST_SHARES = 20
"""Classes whose shares an event lists; of more, those that moved most."""

PERIOD, PERIODS = 8, 256
"""The class shares of this many periods of so many blocks are known."""
LOW, HIGH = 0, 1
"""Places in the last axis of `DetectorState.shares`."""

START, STAGE, STATISTIC, SPAN, HEAD = 0, 1, 2, 3, 4
"""Places in `DetectorState.head`: the block at which the episode began; whether a change was found, in which statistic
and how many blocks ago."""
QUIET, PENDING, DUE = 0, 1, 2
"""Stages: nothing found; found at the last block; to be diagnosed now."""


class DetectorState(NamedTuple):
    """What is remembered of a stream. Its size depends on labelers and classes, never on the rows."""

    ring: Codes  # (REMEMBERED + STEP, labelers): row t in slot t modulo the number of slots
    totals: Ints  # (LINES, 2, statistics): hits and tries of all rows before block b, in line b modulo LINES
    base: Ints  # (2, statistics): the same where the episode begins
    born: Ints  # (labelers,): the block in which a labeler first voted, -1 before that
    prior: Floats  # (statistics,): how much each varied in earlier episodes, against coins
    head: Ints  # (HEAD,)
    shares: Floats  # (PERIODS, shares, spans, 2): lowest and highest share of a class, over stretches of so many blocks
    kind: Ints  # (statistics,): see `Statistics`
    member: Ints
    panel: Bools  # (labelers,): everybody
    votes: Words  # (classes, labelers): for work, as all below; see `find_majority`
    digits: Words
    leads: Words
    margins: Words


def new_state(n_labelers: int, n_classes: int) -> DetectorState:
    """Return the state of a stream without rows."""
    kind, member = list_statistics(n_labelers, n_classes)
    return DetectorState(
        ring=np.zeros((REMEMBERED + STEP, n_labelers), code_dtype(n_classes)),  # pages come as rows reach them
        totals=np.zeros((LINES, 2, len(kind)), np.int64),
        base=np.zeros((2, len(kind)), np.int64),
        born=np.full(n_labelers, -1),
        prior=np.ones(len(kind)),
        head=np.zeros(HEAD, np.int64),
        shares=np.tile([2.0, -1.0], (PERIODS, int((kind == BALANCE).sum()), len(SPANS) - 2, 1)),
        kind=kind,
        member=member,
        panel=np.ones(n_labelers, np.bool_),
        votes=np.empty((n_classes, n_labelers), np.uint64),
        digits=np.empty((n_classes + 1, n_labelers.bit_length()), np.uint64),
        leads=np.empty(n_classes, np.uint64),
        margins=np.empty(3, np.uint64),
    )


def used_lines(n_rows: int) -> int:
    """Return how many lines of running totals rows have reached; memory of the others is not touched."""
    return min(LINES, n_rows // BLOCK + 1)


def surprise_threshold(n_statistics: int, false_event_rate: float) -> float:
    """Return the surprise from which a difference is an event, so that chance makes at most so many events per row.

    All comparisons of a block share the probability: each span, each statistic.

    >>> round(surprise_threshold(13, 1e-6), 1)
    23.5
    """
    comparisons = sum(1.0 if span <= FINE else FINE / span for span in SPANS)
    return normal_deviate(min(0.5, false_event_rate * BLOCK / (comparisons * n_statistics))) ** 2


class BlockLog:
    """The model's window and the time at the last row of each of the last blocks, from block `first` on."""

    def __init__(self, first: int = 0, entries: Sequence[tuple[int | None, Time]] = ()) -> None:
        self.first = first
        self.entries = [(window, time) for window, time in entries]

    def fits(self, block: int) -> bool:
        """Whether this can be the log at the end of so many blocks: windows and times of the last ones."""
        return self.first + len(self.entries) in (self.first, block) and all(
            type(window) in (int, type(None)) and type(time) in (int, float, str, type(None))
            for window, time in self.entries
        )

    def add(self, block: int, entries: Sequence[tuple[int | None, Time]]) -> None:
        """Add blocks from this one on; after a gap, earlier ones are dropped."""
        if block != self.first + len(self.entries):
            self.first, self.entries = block, []
        self.entries += entries

    def trim(self) -> None:
        """Drop the blocks that no event can reach any more."""
        extra = max(0, len(self.entries) - REMEMBERED // BLOCK - 1)
        self.first += extra
        del self.entries[:extra]

    def at(self, row: int) -> tuple[int | None, Time]:
        """Return window and time at the end of the block of a row, or of the nearest block that is in the log."""
        return self.entries[max(0, min(row // BLOCK - self.first, len(self.entries) - 1))]


class DriftDetector:
    """Finds lasting changes in a stream of votes; works without a model.

    Parameters
    ----------
    n_labelers
        Columns of the votes.
    n_classes
        Classes; votes are codes from 0 to n_classes - 1, and -1 abstains. Default: as many as `classes`, or 2.
    false_event_rate
        Events per row that chance may make while nothing drifts.
    labelers, classes
        Names for events; default: labeler_0, labeler_1 ... and the class codes.
    first_row
        Number of the first row that comes; blocks of 64 rows go by these numbers.
    estimate
        Function from rows (class codes) to an `AccuracyEstimate`; default: the default label model's fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, (6000, 1))
    >>> accuracy = np.full((6000, 6), 0.8)
    >>> accuracy[:, 0] = np.where(np.arange(6000) < 4000, 0.9, 0.6)
    >>> votes = np.where(rng.random((6000, 6)) < accuracy, truth, 1 - truth)
    >>> [(event.row, event.about, event.kind, event.names) for event in DriftDetector(6).update(votes)]
    [(4159, 4036, 'labeler worse', ('labeler_0',))]
    """

    def __init__(
        self,
        n_labelers: int,
        n_classes: int | None = None,
        *,
        false_event_rate: float = 2e-7,
        labelers: Sequence[str] | None = None,
        classes: Sequence[object] | None = None,
        first_row: int = 0,
        estimate: EstimateFunction | None = None,
    ) -> None:
        if n_classes is None:
            n_classes = 2 if classes is None else len(classes)
        rate = settings.event_rate(false_event_rate)
        if rate is None:
            raise SettingError("false_event_rate is None; a detector needs a rate")
        if not 2 <= settings.whole("n_classes", n_classes) <= MOST_CLASSES:
            raise SettingError(f"n_classes must be a whole number from 2 to {MOST_CLASSES}, not {n_classes!r}")
        if classes is not None and len(classes) != n_classes:
            raise SettingError(f"n_classes={n_classes} but classes names {len(classes)}; leave n_classes out")
        if settings.whole("n_labelers", n_labelers) < 1:
            raise SettingError(f"n_labelers must be at least 1, not {n_labelers!r}")
        if labelers is not None and len(labelers) != n_labelers:
            raise SettingError(f"n_labelers={n_labelers} but labelers names {len(labelers)}")
        if settings.whole("first_row", first_row) < 0:
            raise SettingError(f"first_row must be 0 or more, not {first_row!r}")
        self.n_classes = n_classes
        self.false_event_rate = rate
        self.labelers = tuple(labelers or (f"labeler_{h}" for h in range(n_labelers)))
        self.classes = tuple(range(n_classes) if classes is None else classes)
        self.estimate: EstimateFunction = estimate or partial(_estimate_by_default_model, n_classes)
        self.n_rows = first_row
        self.n_events = 0
        self.warned: list[str] = []
        self._events: list[DriftEvent] = []
        self._log = BlockLog()
        self._n_reported = first_row
        self._set_state(new_state(n_labelers, n_classes))
        self._state.head[START] = -(-first_row // BLOCK)

    def _set_state(self, state: DetectorState) -> None:
        self._state = state
        self._threshold = surprise_threshold(len(state.kind), self.false_event_rate)

    @property
    def n_labelers(self) -> int:
        """Columns of the votes."""
        return len(self.labelers)

    @property
    def events(self) -> list[DriftEvent]:
        """The latest events, oldest first (at most 256)."""
        return list(self._events)

    @property
    def nbytes(self) -> int:
        """Bytes of state, whatever the number of rows."""
        return sum(part.nbytes for part in self._state)

    def update(
        self, votes: Any, *, windows: Sequence[int] | Ints | None = None, times: Times | None = None
    ) -> list[DriftEvent]:
        """Take in rows and return the events that they bring, in order.

        `votes` are class codes: rows x labelers, or one row. `windows` are the windows of a model and `times` the times
        of the rows, one per row; events then report them.
        """
        rows = self._check(votes)
        if windows is not None and len(windows) != len(rows):
            raise VoteError(f"there are {len(windows)} windows for {len(rows)} rows; pass one for each row")
        if times is not None and len(times) != len(rows):
            raise VoteError(f"there are {len(times)} times for {len(rows)} rows; pass one for each row")
        return self.report(self.scan(rows), windows, times)

    def scan(self, rows: Codes) -> list[Change]:
        """Take in rows of class codes, which are not checked, and return the changes that they bring to light.

        `report` makes events of them. It must be called after each scan that ends a block, with what is known of the
        same rows; other scans have nothing to report.
        """
        n_rows = len(rows) if rows.ndim == 2 else 1
        if self.n_rows % BLOCK + n_rows < BLOCK:  # no block ends, and so the ring buffer does not either
            slot = self.n_rows % (REMEMBERED + STEP)
            self._state.ring[slot : slot + n_rows] = rows
            self.n_rows += n_rows
            self._n_reported = self.n_rows
            return []
        changes: list[Change] = []
        rows = rows.reshape(n_rows, -1)
        for begin in range(0, n_rows, STEP):
            part = rows[begin : begin + STEP]
            block = self.n_rows // BLOCK
            self._write(self.n_rows, part)
            self.n_rows += len(part)
            while block < self.n_rows // BLOCK:
                block = scan_blocks(self._state, block, self.n_rows // BLOCK, self._threshold)
                if self._state.head[STAGE] == DUE:
                    self._state.head[STAGE] = QUIET
                    change = self._diagnose(block)
                    changes += [] if change is None else [change]
        return changes

    def report(
        self, changes: list[Change], windows: Sequence[int] | Ints | None = None, times: Times | None = None
    ) -> list[DriftEvent]:
        """Return the events for the changes that `scan` found in the last rows, and remember them."""
        first, self._n_reported = self._n_reported, self.n_rows
        if first // BLOCK == self.n_rows // BLOCK:
            return []
        ends = range(first // BLOCK * BLOCK + BLOCK - 1 - first, self.n_rows - first, BLOCK)
        ends_windows = [None if windows is None else int(windows[place]) for place in ends]
        ends_times = [None if times is None else times.format(place) for place in ends]
        self._log.add(first // BLOCK, list(zip(ends_windows, ends_times, strict=True)))
        events = [self._build_event(change) for change in changes]
        self._log.trim()
        self.n_events += len(events)
        self._events = (self._events + events)[-MOST_EVENTS:]
        return events

    def add_labelers(self, names: Sequence[str], past: Codes | None = None) -> None:
        """Add columns for labelers that have not voted so far; `past` stands for their votes on the last rows."""
        taken = [name for name in names if name in self.labelers]
        if taken:
            raise LabelerError(f"labeler {taken[0]!r} is there already; add labelers with new names")
        n, old = self.n_labelers, self._state
        self.labelers += tuple(names)
        new = new_state(self.n_labelers, self.n_classes)
        rows, lines = min(self.n_rows, len(old.ring)), used_lines(self.n_rows)  # the others are not read before written
        new.ring[:rows, :n], new.ring[:rows, n:] = old.ring[:rows], -1
        if past is not None:
            new.ring[np.arange(self.n_rows - len(past), self.n_rows) % len(new.ring), n:] = past
        new.born[:n] = old.born
        new.head[:] = old.head
        # As if they had abstained: all rows count for their coverage.
        coverage, first = new.kind == COVERAGE, list(old.kind).index(COVERAGE)
        new.totals[:lines, TRIES, coverage] = old.totals[:lines, TRIES, first, None]
        new.base[TRIES, coverage] = old.base[TRIES, first]
        of_labelers = (new.kind == AGREEMENT) | (new.kind == COVERAGE)
        columns = np.flatnonzero(~of_labelers | (new.member < n))  # those that there were, in their order
        new.totals[:lines, :, columns] = old.totals[:lines]
        new.base[:, columns] = old.base
        new.prior[columns] = old.prior
        new.shares[:] = old.shares
        new.head[STATISTIC] = columns[old.head[STATISTIC]]
        self._set_state(new)

    def new_warnings(self, warnings: list[DriftWarning]) -> list[DriftWarning]:
        """Return the warnings that were not among those of the last call."""
        new = [warning for warning in warnings if warning.key not in self.warned]
        self.warned = [warning.key for warning in warnings]
        return new

    def fork(self, n_rows: int) -> DriftDetector:
        """Return a detector to scan the next `n_rows` rows with, so that this one is left as it is if that fails.

        Only one of the two can go on: up to `STEP` rows fit into the shared ring buffer beside those remembered.
        """
        fork, state = copy.copy(self), self._state
        own = {name: getattr(state, name).copy() for name in ("base", "born", "prior", "head", "shares")}
        totals, lines = np.zeros(state.totals.shape, np.int64), used_lines(self.n_rows)
        totals[:lines] = state.totals[:lines]
        fork._state = state._replace(**own, totals=totals, ring=state.ring if n_rows <= STEP else state.ring.copy())
        fork._log = BlockLog(self._log.first, self._log.entries)
        return fork

    def time_of(self, row: int) -> Time:
        """Return the time of a row, to within its block; None where it has none or is no longer remembered."""
        log = self._log
        return log.at(row)[1] if log.entries and row // BLOCK >= log.first else None

    def rewind(self, n_rows: int) -> None:
        """Be as after so many rows again; no block has ended since, or a fork has gone on instead."""
        self.n_rows = self._n_reported = n_rows

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain values and as arrays; `restore` resumes from them."""
        header = {
            "n_rows": self.n_rows,
            "events": [event.to_dict() for event in self._events],
            "n_events": self.n_events,
            "log": [self._log.first, self._log.entries],
            "warned": list(self.warned),
        }
        return header, {name: np.array(part[index]) for name, (part, index) in self._parts(self.n_rows).items()}

    def restore(self, header: dict[str, Any], arrays: Arrays) -> None:
        """Resume from what `to_state` returned, in a detector of the same settings and labelers.

        Kernels check nothing, so every value is checked here.
        """
        n_rows = header["n_rows"]
        if type(n_rows) is not int or not 0 <= n_rows <= ALL_PAST:
            raise StateError(f"the state's detector cannot have seen {n_rows!r} rows")
        state, block, parts = self._state, n_rows // BLOCK, self._parts(n_rows)
        arrays = {"drift_shares": state.shares} | arrays  # states of 0.2.0 do not have it
        ranges = {
            "drift_rows": (-1 - self.n_classes, self.n_classes - 1),
            "drift_totals": (0, n_rows),
            "drift_base": (0, n_rows),
            "drift_born": (-1, block),
            "drift_prior": (0.0, np.inf),
            "drift_head": (0, block + 1 + len(state.kind)),
            "drift_shares": (-1.0, 2.0),
        }
        for name, (part, index) in parts.items():
            room = part[index]
            check_array(arrays, name, room.dtype, room.shape, *ranges[name])
        totals, base = arrays["drift_totals"], arrays["drift_base"]
        start, stage, statistic, span = arrays["drift_head"].tolist()
        # A change is found in blocks after the beginning of the episode, and diagnosed one block later.
        in_time = start + max(1, span) < block if stage == PENDING else stage == QUIET and start <= block + 1
        if not in_time or statistic >= len(state.kind) or span > SPANS[-1] + 1:
            raise StateError("the state's array 'drift_head' is not that of a detector")
        if (
            (np.diff(totals, axis=0) < 0).any()
            or (totals[:, HITS] > totals[:, TRIES]).any()
            or (base > totals[-1]).any()
        ):
            raise StateError("the state's array 'drift_totals' does not count")
        for name, (part, index) in parts.items():
            part[index] = arrays[name]
        self.n_rows = self._n_reported = n_rows
        self._events = [DriftEvent.from_dict(event, self.classes) for event in header["events"]]
        self.n_events, self.warned = int(header["n_events"]), [str(key) for key in header["warned"]]
        first, entries = header["log"]
        self._log = BlockLog(first, entries)
        in_order = all(type(event.row) is int and 0 <= event.row < self.n_rows for event in self._events)
        if not in_order or self.n_events < len(self._events) or not self._log.fits(block):
            raise StateError("the state's events are not those of a detector")

    def _parts(self, n_rows: int) -> dict[str, tuple[np.ndarray[Any, Any], Any]]:
        """Return the arrays of the state after so many rows, and which part of each is in use, oldest first."""
        state, last = self._state, n_rows // BLOCK
        slots = np.arange(max(0, n_rows - REMEMBERED), n_rows) % len(state.ring)
        lines = np.arange(max(0, last - LINES + 1), last + 1) % LINES
        whole = {f"drift_{name}": (getattr(state, name), ...) for name in ("base", "born", "prior", "head", "shares")}
        return {"drift_rows": (state.ring, slots), "drift_totals": (state.totals, lines), **whole}

    def _check(self, votes: Any) -> Codes:
        """Return votes as rows of class codes, or raise an error that says what is wrong with them."""
        try:
            rows = np.asarray(votes)
        except ValueError as problem:
            raise VoteError(f"votes must be a table of rows x labelers: {problem}") from None
        if rows.ndim == 1:
            rows = rows[None]
        if rows.ndim != 2 or rows.shape[1] != len(self.labelers):
            raise VoteError(f"votes must have {self.n_labelers} columns, one for each labeler, not shape {rows.shape}")
        if rows.dtype != self._state.ring.dtype:
            if not np.can_cast(rows.dtype, np.int64):
                raise VoteError(f"votes must be class codes, whole numbers of which -1 abstains, not {rows.dtype}")
            rows = rows.astype(np.int64)
        rows = np.ascontiguousarray(rows)
        bad = find_bad_code(rows, self.n_classes)
        if bad >= 0:
            row, column = divmod(bad, self.n_labelers)
            raise VoteError(
                f"row {row} of this batch (counting from 0), column {self.labelers[column]!r}: {rows[row, column]} is"
                f" neither a class code (0 to {self.n_classes - 1}) nor an abstention (-1)"
            )
        return rows

    def _write(self, first: int, rows: Codes) -> None:
        """Write rows, no more than `STEP`, into the ring buffer."""
        ring = self._state.ring
        slot = first % len(ring)
        before = min(len(rows), len(ring) - slot)
        ring[slot : slot + before] = rows[:before]
        ring[: len(rows) - before] = rows[before:]

    def _rows(self, first: int, last: int) -> Codes:
        """Return a copy of remembered rows."""
        ring = self._state.ring
        slot = first % len(ring)
        whole = ring[slot : slot + last - first]
        return np.concatenate([whole, ring[: last - first - len(whole)]])

    def _diagnose(self, block: int) -> Change | None:
        """Return the change that is due before this block, if its cause is clear, and begin a new episode."""
        state, seen = self._state, block * BLOCK
        start, _, statistic, span = state.head.tolist()
        first = max(start * BLOCK, seen - REMEMBERED)
        begin = seen - span * BLOCK
        finding = Finding(int(state.kind[statistic]), int(state.member[statistic]), begin - first)
        rows = self._rows(first, seen)
        change = diagnose(rows, first, self.n_classes, finding, self._threshold, self.estimate)
        if change is not None and change.kind == BALANCE_EVENT:
            since, shares = max(1, block - change.about // BLOCK - 1), np.flatnonzero(state.kind == BALANCE).tolist()
            change = change if any(is_new_share(state, s, block, since) for s in shares) else None
        end, new = (begin, seen) if change is None else change.since
        remember_spreads(state.totals, max(start, block - LINES + 1), end // BLOCK, FINE, state.prior)
        # The new episode begins with the first block that holds nothing older.
        state.head[START] = min(block, max(-(-new // BLOCK), block - SPANS[-1]))
        state.base[:] = state.totals[state.head[START] % LINES]
        return change

    def _build_event(self, change: Change) -> DriftEvent:
        """Return the event of a change, with names, windows and times."""
        window_before, time_before = self._log.at(change.since[0] - BLOCK)
        window_after, time = self._log.at(change.row)
        moved = np.argsort(-np.abs(change.balance[1] - change.balance[0]), kind="stable")[:MOST_SHARES]
        names = {int(c): str(self.classes[c]) for c in np.sort(moved)}
        before, after = ({name: float(shares[c]) for c, name in names.items()} for shares in change.balance)
        return DriftEvent(
            row=change.row,
            time=time,
            since=change.since,
            since_time=None if time is None else (time_before, self._log.at(change.since[1])[1]),
            about=change.about,
            about_time=None if time is None else self._log.at(change.about)[1],
            kind=change.kind,
            labelers=labeler_changes(change, self.labelers),
            pairs=tuple((self.labelers[i], self.labelers[j]) for i, j in change.pairs),
            window_before=window_before,
            window_after=window_after,
            balance_before=before,
            balance_after=after,
        )


def _estimate_by_default_model(n_classes: int, rows: Codes) -> AccuracyEstimate:
    """Return the accuracies by the default label model, fitted to these rows alone."""
    filled = bool(rows.min() < -1)
    return AccuracyEstimate.of_fit(estimate_rows(Mixture(), rows, n_classes, filled), filled, "em")


@jit
def find_bad_code(rows: Codes, n_classes: int) -> int:
    """Return the place of the first value that is no class code, abstention or random fill; -1 if there is none."""
    for t in range(rows.shape[0]):
        for h in range(rows.shape[1]):
            if rows[t, h] >= n_classes or rows[t, h] < -1 - n_classes:
                return t * rows.shape[1] + h
    return -1


@jit
def remember_spreads(totals: Ints, first: int, change: int, span: int, prior: Floats) -> None:
    """Take how much each statistic varied between two blocks into what is known of it; see `spread`."""
    for column in range(prior.shape[0]):
        prior[column] = spread(totals, column, first, change, span, prior[column])


@inner
def may_differ(hits: int, tries: int, hits_before: int, tries_before: int, threshold: float) -> bool:
    """Return whether the normal deviate, which takes no logarithm, comes near the threshold at all."""
    if tries < LEAST or tries_before < LEAST:
        return False
    both, all_hits = float(tries + tries_before), float(hits + hits_before)
    apart = float(hits) * tries_before - float(hits_before) * tries
    return apart * apart * both > 0.5 * threshold * all_hits * (both - all_hits) * tries * tries_before


@jit
def is_new_share(state: DetectorState, s: int, block: int, span: int) -> bool:
    """Return whether a class comes in a share, over the last blocks, that no earlier stretch a quarter as long had.

    Classes come in runs, and in streams that nobody would call drifting their shares go up and down: that is no news.
    (A change that passes the threshold over some rows is outside what chance does in a quarter of them.) The change may
    be up to twice the span old, because spans double: stretches count that ended before that.
    """
    span = min(span, SPANS[-1])
    now, then, place = block % LINES, (block - span) % LINES, 0
    while 8 * SPANS[place] <= span:
        place += 1
    tries = state.totals[now, TRIES, s] - state.totals[then, TRIES, s]
    rate = (state.totals[now, HITS, s] - state.totals[then, HITS, s]) / max(1, tries)
    low, high = 2.0, -1.0
    for period in range(max(0, block // PERIOD - PERIODS + 1), (block - 2 * span) // PERIOD):
        known = state.shares[period % PERIODS, state.member[s], place]
        low, high = min(low, known[LOW]), max(high, known[HIGH])
    return rate < low <= high or rate > high >= low


@inner
def note_shares(state: DetectorState, block: int) -> None:
    """Remember the class shares of the stretches that end before this block."""
    shares = state.shares[block // PERIOD % PERIODS]
    if block % PERIOD == 0:
        shares[:, :, LOW], shares[:, :, HIGH] = 2.0, -1.0
    for place in range(shares.shape[1]):
        length = SPANS[place]
        if length > block or (length > FINE and block % (length // FINE) != 0):
            break
        first, last = (block - length) % LINES, block % LINES
        for s in range(state.kind.shape[0] - shares.shape[0], state.kind.shape[0]):  # the last statistics
            tries = state.totals[last, TRIES, s] - state.totals[first, TRIES, s]
            if tries >= LEAST:
                rate = (state.totals[last, HITS, s] - state.totals[first, HITS, s]) / tries
                known = shares[state.member[s], place]
                known[LOW], known[HIGH] = min(known[LOW], rate), max(known[HIGH], rate)


@inner
def expected_hits(state: DetectorState, s: int, block: int, span: int, hits: int, tries: int) -> int:
    """Return the hits of all rows before the last blocks, if the classes had come in the shares of the last blocks.

    Labelers are better at one class than at another, so their rates follow the class shares: by how much, the blocks
    that are remembered show (a regression on the share that moved most).
    """
    totals, now, then = state.totals, block % LINES, (block - span) % LINES
    share, moved = -1, 0.0
    for c in range(state.kind.shape[0]):
        if state.kind[c] == BALANCE:
            near = totals[now, TRIES, c] - totals[then, TRIES, c]
            far = totals[then, TRIES, c] - state.base[TRIES, c]
            if near > 0 and far > 0:
                shift = (totals[now, HITS, c] - totals[then, HITS, c]) / near
                shift -= (totals[then, HITS, c] - state.base[HITS, c]) / far
                if abs(shift) > abs(moved):
                    share, moved = c, shift
    if share < 0:
        return hits
    n, x, y, xx, xy = 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(max(0, block - LINES + 1), block):
        low, high = b % LINES, (b + 1) % LINES
        seen, of = (
            totals[high, TRIES, s] - totals[low, TRIES, s],
            totals[high, TRIES, share] - totals[low, TRIES, share],
        )
        if seen > 0 and of > 0:
            rate = (totals[high, HITS, s] - totals[low, HITS, s]) / seen
            part = (totals[high, HITS, share] - totals[low, HITS, share]) / of
            n += seen
            x += seen * part
            y += seen * rate
            xx += seen * part * part
            xy += seen * part * rate
    if n * xx <= x * x:
        return hits
    slope = (n * xy - x * y) / (n * xx - x * x)
    return round(min(max(hits / tries + slope * moved, 0.0), 1.0) * tries)


@inner
def find_change(state: DetectorState, block: int, threshold: float) -> bool:
    """Return whether the last blocks before this one differ from those before them; `head` then says in what."""
    totals, base, prior, kinds, members = state.totals, state.base, state.prior, state.kind, state.member
    start, n_statistics = state.head[START], kinds.shape[0]
    for span in SPANS:
        change = block - span
        if change <= start or (span > FINE and block % (span // FINE) != 0):
            break  # longer spans are due no more often
        now, then = block % LINES, change % LINES
        near = False  # a cheap look that nearly always says no
        for s in range(n_statistics):
            hits, tries = totals[then, HITS, s], totals[then, TRIES, s]
            more_hits, more_tries = totals[now, HITS, s] - hits, totals[now, TRIES, s] - tries
            near |= may_differ(more_hits, more_tries, hits - base[HITS, s], tries - base[TRIES, s], threshold)
        best, found = threshold, -1
        for s in range(n_statistics if near else 0):
            since = start
            if kinds[s] == COVERAGE:  # of a labeler that joined, since its first vote
                born = state.born[members[s]]
                since = max(start, born)
                if born < 0 or since >= change:
                    continue
            if kinds[s] == BALANCE and not is_new_share(state, s, block, span):
                continue
            hits = totals[now, HITS, s] - totals[then, HITS, s]
            tries = totals[now, TRIES, s] - totals[then, TRIES, s]
            hits_before = totals[then, HITS, s] - base[HITS, s]
            tries_before = totals[then, TRIES, s] - base[TRIES, s] - (since - start) * BLOCK
            if may_differ(hits, tries, hits_before, tries_before, best):
                first = max(since, block - LINES + 1)
                ratio = spread(totals, s, first, change, span, prior[s])
                size = surprise(hits, tries, hits_before, tries_before) / ratio
                if size > best and kinds[s] != BALANCE:
                    expected = expected_hits(state, s, block, span, hits_before, tries_before)
                    size = min(size, surprise(hits, tries, expected, tries_before) / ratio)
                if size > best:
                    best, found = size, s
        if found >= 0:
            state.head[STATISTIC], state.head[SPAN] = found, span
            return True
    return False


@jit
def scan_blocks(state: DetectorState, block: int, last: int, threshold: float) -> int:
    """Count blocks block .. last - 1, and compare after each; return the block after the last that was counted.

    Stops after the block at which a change is due.
    """
    # Taken out of the tuple once: each access would count references.
    ring, totals, born, head, kinds, members = (
        state.ring,
        state.totals,
        state.born,
        state.head,
        state.kind,
        state.member,
    )
    votes, leads, margins = state.votes, state.leads, state.margins
    while block < last and head[STAGE] != DUE:
        if block < head[START]:  # the stream began inside this block
            block += 1
            continue
        slot = block * BLOCK % ring.shape[0]
        pack_votes(ring, slot, slot + BLOCK, votes)
        find_majority(votes, state.panel, state.digits, leads, margins)
        before, after = block % LINES, (block + 1) % LINES
        for s in range(kinds.shape[0]):
            hits, tries = flag_rows(kinds[s], members[s], votes, leads, margins)
            totals[after, HITS, s] = totals[before, HITS, s] + count_bits(hits)
            totals[after, TRIES, s] = totals[before, TRIES, s] + count_bits(tries)
            if kinds[s] == COVERAGE and born[members[s]] < 0 and hits != 0:
                born[members[s]] = block
        block += 1
        note_shares(state, block)
        if head[STAGE] == PENDING:
            head[STAGE] = DUE
            head[SPAN] += 1
        elif find_change(state, block, threshold):
            head[STAGE] = PENDING
    return block
