"""The engine of a stream: state, window rule and label model behind one small interface, and the one row loop.

For each row: add it to the state; if a choice is due, choose the window; if a fit is due, fit the label model to the
window; label the row. Choices and fits are due at fixed row numbers, so labels do not depend on how rows are cut into
chunks, and a label depends on the last `memory_rows` rows and the row's number, on nothing older (verified rows and
drift events aside). A drift event sets a floor: from some row on, windows hold no row before it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from driftvote.arrays import Arrays, Codes, Floats, Ints, code_dtype
from driftvote.core.jit import by_address, inner, jit
from driftvote.core.label_models import Estimator, Majority, Triplet
from driftvote.core.label_models.interface import (
    LARGE_FIT,
    concat_fits,
    fill_tables,
    fit_period,
    fit_period_of,
    fit_window,
    follows_agreements,
    label_row,
    select_fit,
    tables_fit,
)
from driftvote.core.patterns import possible_rows
from driftvote.core.state import (
    ALL_PAST,
    Classes,
    StreamState,
    add_rows,
    check_array,
    empty_state,
    move_floor,
    n_pairs,
    rebuild_state,
    recent_slots,
    replay_rows,
    rows_of_window,
    rows_to_stride,
    set_floor,
    store_totals,
    sum_window,
    widen_totals,
)
from driftvote.core.voting import EQUAL_WEIGHT, NO_DRAWS, accuracy_at_weight, count_votes, log_odds
from driftvote.core.windows import (
    FixedWindow,
    WindowRule,
    WindowTest,
    WindowTests,
    choose_window,
    current_window,
    explain_choice,
    room_for,
)
from driftvote.errors import StateError

NO_CLASSES: Ints = np.empty(0, np.int64)
"""No row of a chunk is verified."""

NO_FLOORS: Ints = np.empty((0, 2), np.int64)
"""No floor takes effect inside of a chunk."""

FITS_BYTES, LONG = 1 << 31, 512
"""Room for the fits of a chunk; a chunk that needs more, and is longer than so many rows, is labeled in halves."""

ROOM_ROWS = 1024
"""Rows that there is room for in a fit to rows alone, at least."""

THREAD_ROWS = 1 << 19
"""Rows of a batch from which on threads share it: each begins with reading the rows that its windows hold."""

MIN_KEYS, REPEAT_KEYS = 27, 1 << 16
"""Distinct rows of three labelers and two classes; and distinct rows up to which labels are looked up."""


class Floor(NamedTuple):
    """From row `row` on, windows hold no row before `first`."""

    row: int
    first: int


class Known(NamedTuple):
    """Verified rows that count for every row of a stretch, before and after them: rows `begin` to `end` - 1."""

    begin: int
    end: int
    numbers: Ints  # of the verified rows
    named: Ints  # (rows, members): what the members of a mixture named on them at their time
    right: Floats  # (rows, members): 1 where that is the verified class, a share of it on a tie
    classes: Ints


class Mark(NamedTuple):
    """What `Engine.rewind` needs to take rows back: what they overwrite, and what cannot be made again from rows."""

    seen: int
    rows: Codes  # those that the next rows push out of the ring buffer
    verified: Classes
    totals: Ints | None  # of an engine that keeps no rows
    follows: int
    fit: Any
    stale: bool
    floors: list[Floor]
    known: Known | None


class Schedule(NamedTuple):
    """When the window is chosen and fitted, by row number."""

    refresh: int  # rows between two choices of the window
    periods: Ints  # (windows,): rows between two fits, by window; multiples of `refresh`
    per_window: int  # parts of a window after each of which it is fitted again
    gated: bool  # whether the label model decides if the window rule counts


class Targets(NamedTuple):
    """What labeling fills in, one entry a row."""

    labels: Ints
    proba: Floats  # (rows, classes)
    places: Ints  # which fit labeled the row

    def cut(self, rows: slice) -> Targets:
        """Return the entries of some rows."""
        return Targets(self.labels[rows], self.proba[rows], self.places[rows])


class Outputs(NamedTuple):
    """What the row loop fills in, one entry a row; and labels of distinct rows: most rows repeat an earlier one."""

    labels: Ints
    proba: Floats  # (rows, classes)
    places: Ints  # which fit labeled the row
    n_fits: int  # fits before those of this call
    known: Ints  # (keys,): by which fit a distinct row was labeled, plus 1; 0 for none. Empty where it would not pay
    known_label: Ints  # (keys,)
    known_proba: Floats  # (keys, classes)
    support: Ints  # (classes,): for work


@inner
def is_fit_due(row: int, level: int, sizes: Ints, floor: int, schedule: Schedule) -> bool:
    """Return whether a window is fitted again at this row: a part of it is new, or of the rows that count."""
    if row < schedule.refresh:
        return True
    period, before = schedule.periods[level], row - floor
    if before < sizes[level]:
        period = min(period, fit_period_of(before, schedule.refresh, schedule.per_window))
    return row % period == 0


@inner
def fit_if_due(
    anew: bool,
    row: int,
    state: StreamState,
    tests: WindowTests,
    schedule: Schedule,
    settings: Any,
    room: Any,
    tables: Any,
    fit: Any,
) -> bool:
    """Fit the label model if that is due, or `anew`; return whether it was.

    Where the label model decides if agreements tell about accuracies (`gated`), a fit of the largest window is begun
    first. If they do not, that is the fit, and the window rule is not asked until the largest window is due again.
    """
    largest = state.sizes.shape[0] - 1
    begun = schedule.gated and (anew or is_fit_due(row, largest, state.sizes, state.floor[0], schedule))
    if begun:
        sum_window(largest, state)
        state.follows[0] = follows_agreements(settings, state, largest, rows_of_window(largest, state), room, fit)
    level, limit = largest, largest + 1
    if not schedule.gated or state.follows[0] == 1:
        if not begun and not anew:  # longer windows are due no more often: the first that is not ends the search
            limit = 0
            while limit <= largest and is_fit_due(row, limit, state.sizes, state.floor[0], schedule):
                limit += 1
        level = choose_window(state, tests, limit)
    elif not begun:
        return False
    if level >= limit:
        return False
    rows = rows_of_window(level, state)
    begun = begun and rows == rows_of_window(largest, state)
    fit_window(settings, state, level, rows, begun, room, tables, fit)
    return True


@inner
def label_run(
    rows: Codes,
    begin: int,
    end: int,
    number: int,
    place: int,
    draws: Floats,
    state: StreamState,
    settings: Any,
    tables: Any,
    out: Outputs,
) -> None:
    """Label rows `begin` to `end` - 1, which were added last, by the fit at `place`; `number` is that of the first."""
    repeats = out.known.shape[0] > 0
    slot = number % state.keys.shape[0] if repeats else 0
    for t in range(begin, end):
        out.places[t] = out.n_fits + place
        key, proba = 0, out.proba[t]
        if repeats:
            key = state.keys[slot]
            slot = slot + 1 if slot + 1 < state.keys.shape[0] else 0
            proba = out.known_proba[key]
        if not repeats or out.known[key] != place + 1:
            draw = draws[t] if draws.shape[0] > 0 else -1.0
            out.labels[t] = label_row(settings, tables, rows[t], draw, out.support, proba)
            if repeats:
                out.known[key], out.known_label[key] = place + 1, out.labels[t]
        if repeats:
            out.labels[t] = out.known_label[key]
            for c in range(proba.shape[0]):
                out.proba[t, c] = proba[c]


@inner
def label_all(
    rows: Codes,
    verified: Ints,
    draws: Floats,
    floors: Ints,
    state: StreamState,
    tests: WindowTests,
    schedule: Schedule,
    settings: Any,
    fits: Any,
    room: Any,
    tables: Any,
    out: Outputs,
) -> int:
    """Do the work of `label_rows`, with arguments in their short form."""
    place = 0
    fit = by_address(select_fit(settings, fits, 0))
    fitted = fit.window[0] > 0
    if fitted and tables.ready[0] == 0:
        fill_tables(settings, fit, tables)
    n_rows, t, follow, floor = rows.shape[0], 0, True, 0
    if n_rows == 0:
        fit_if_due(not fitted, state.clock[0] - 1, state, tests, schedule, settings, room, tables, fit)
        return 0
    begin, labeled = state.clock[0], 0
    while t < n_rows:
        # Up to the next row at which a fit may be due, that row included; the stride is the schedule's `refresh`.
        alone = not fitted or begin + t < schedule.refresh
        end = t + 1 if alone else min(n_rows, t + rows_to_stride(begin + t, state.stride))
        if floor < floors.shape[0]:
            end = min(end, floors[floor, 0] - begin)
        add_rows(rows, t, end - t, state, follow)
        for v in range(t, end if verified.shape[0] > 0 else t):
            state.verified[(begin + v) % state.verified.shape[0]] = verified[v]
        t, row = end, begin + end - 1
        on_stride = row % state.stride == 0
        if on_stride:
            store_totals(state, row)
        if on_stride or alone:
            if fitted:
                label_run(rows, labeled, t - 1, begin + labeled, place, draws, state, settings, tables, out)
                labeled = t - 1
            next_fit = by_address(select_fit(settings, fits, place + 1))
            if fit_if_due(not fitted, row, state, tests, schedule, settings, room, tables, next_fit):
                place += 1
                fill_tables(settings, next_fit, tables)
                fitted = True
        if floor < floors.shape[0] and begin + t == floors[floor, 0]:
            label_run(rows, labeled, t, begin + labeled, place, draws, state, settings, tables, out)
            labeled = t
            move_floor(floors[floor, 1], state)
            place, floor, fitted = place + 1, floor + 1, False  # the fit holds rows from before the change
            next_fit = by_address(select_fit(settings, fits, place))
            fit_if_due(not fitted, row, state, tests, schedule, settings, room, tables, next_fit)
            fill_tables(settings, next_fit, tables)
            fitted = True
    label_run(rows, labeled, n_rows, begin + labeled, place, draws, state, settings, tables, out)
    return place


@jit
def label_rows(
    rows: Codes,
    verified: Ints,
    draws: Floats,
    floors: Ints,
    state: StreamState,
    tests: WindowTests,
    schedule: Schedule,
    settings: Any,
    fits: Any,
    room: Any,
    tables: Any,
    out: Outputs,
) -> int:
    """Learn from each row, then label it; return the place of the last fit.

    `fits` begins with the fit so far; new ones follow. `verified` holds the verified classes of the rows, or is
    empty; the caller gives such rows their labels. `draws` settle ties. `floors` are those that take effect inside of
    the rows: from which row on (not the first), and the first row that counts then. Without rows, the window is chosen
    after the rows seen so far and fitted; the result is the first fit.
    """
    return label_all(
        by_address(rows),
        by_address(verified),
        by_address(draws),
        by_address(floors),
        by_address(state),
        by_address(tests),
        by_address(schedule),
        by_address(settings),
        by_address(fits),
        by_address(room),
        by_address(tables),
        by_address(out),
    )


@jit
def predict_rows(
    rows: Codes, draws: Floats, settings: Any, fits: Any, tables: Any, support: Ints, labels: Ints, proba: Floats
) -> None:
    """Label rows by the first fit; learn nothing."""
    settings, tables = by_address(settings), by_address(tables)
    fit = by_address(select_fit(settings, by_address(fits), 0))
    if tables.ready[0] == 0:
        fill_tables(settings, fit, tables)
    for t in range(rows.shape[0]):
        draw = draws[t] if draws.shape[0] > 0 else -1.0
        labels[t] = label_row(settings, tables, rows[t], draw, support, proba[t])


@inner
def log_odds_if(
    settings: Any, tables: Any, counts_votes: bool, row: Codes, target: int, support: Ints, proba: Floats
) -> float:
    """Return the log-odds of the class `target` if these are the votes of a row; see `share_log_odds`."""
    label_row(settings, tables, row, -1.0, support, proba)
    p = proba[target]
    if counts_votes:
        n_classes, votes = proba.shape[0], count_votes(row, support)
        p = (votes * p + 1.0) / (votes + n_classes)
    return log_odds(p)


@jit
def share_log_odds(
    rows: Codes,
    alone: Codes,
    targets: Ints,
    counts_votes: bool,
    settings: Any,
    fits: Any,
    places: Ints,
    tables: Any,
    support: Ints,
    proba: Floats,
    base: Floats,
    shares: Floats,
) -> None:
    """Fill in what each vote adds to the log-odds of its row's target class, and what these are without any vote.

    The share of a vote is the mean of what it adds as the last one and as the first one. Where probabilities are shares
    of the votes (`counts_votes`), one vote alone would be certain, so every class gets one vote more. `alone` is a row
    of abstentions; it and `rows` are changed and come back as they were.
    """
    settings, fits, tables = by_address(settings), by_address(fits), by_address(tables)
    for t in range(rows.shape[0]):
        target, row = targets[t], rows[t]
        fill_tables(settings, by_address(select_fit(settings, fits, places[t])), tables)
        full = log_odds_if(settings, tables, counts_votes, row, target, support, proba)
        base[t] = log_odds_if(settings, tables, counts_votes, alone, target, support, proba)
        for h in range(row.shape[0]):
            vote = row[h]
            shares[t, h] = 0.0
            if vote >= 0:
                row[h], alone[h] = -1, vote
                without = log_odds_if(settings, tables, counts_votes, row, target, support, proba)
                first = log_odds_if(settings, tables, counts_votes, alone, target, support, proba)
                row[h], alone[h] = vote, -1
                shares[t, h] = 0.5 * ((full - without) + (first - base[t]))


class LogOdds(NamedTuple):
    """Why a class is as likely as it is, one entry a row: `total` is the sum of the other parts."""

    total: Floats  # ln p / (1 - p) of its probability
    base: Floats  # the same without any vote: class balance, and what it says that nobody votes
    shares: Floats  # (rows, labelers): what each vote adds; 0 for an abstention
    together: Floats  # the rest: votes that confirm or repeat each other, and random votes


@dataclass(frozen=True)
class Panel:
    """A label model, set up for a panel of labelers."""

    estimator: Estimator
    n_labelers: int
    n_classes: int
    diluted: bool  # abstentions were replaced by random votes (codes below -1), as the paper's protocol asks
    n_windows: int = 1  # that the window is chosen from

    @cached_property
    def settings(self) -> Any:
        """The settings of the label model, as kernels need them."""
        return self.estimator.settings(self.n_labelers, self.n_classes, self.diluted)

    def empty_fits(self, n_fits: int) -> Any:
        """Return arrays for so many fits."""
        return self.estimator.empty_fits(n_fits, self.n_labelers, self.n_classes)


class Estimates:
    """What labeled each row: the window, and for each labeler accuracy, coverage and vote weight.

    A fit serves many rows, so rows point at fits; arrays of rows x labelers are made when they are asked for.
    """

    def __init__(self, panel: Panel, fits: Any, places: Ints) -> None:
        self.panel = panel
        self.fits = fits
        self.places = places

    @classmethod
    def unknown(cls, n_rows: int, n_labelers: int, n_classes: int) -> Estimates:
        """Return estimates before the first row: every labeler alike, no window."""
        panel = Panel(Majority(), n_labelers, n_classes, diluted=False)
        return cls(panel, panel.empty_fits(1), np.zeros(n_rows, np.int64))

    @cached_property
    def windows(self) -> Ints:
        """Rows that the estimates were made from, at each row."""
        return np.asarray(self.fits.window[self.places, 0])

    @cached_property
    def coverage(self) -> Floats:
        """Share of the window's rows on which each labeler votes: rows x labelers."""
        return np.asarray((self.fits.votes / np.maximum(1, self.fits.window))[self.places])

    @cached_property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler on the rows where it votes: rows x labelers."""
        return np.asarray(self.panel.estimator.accuracies(self.panel.settings, self.fits)[self.places])

    @cached_property
    def diluted_accuracies(self) -> Floats:
        """Accuracy with abstentions counted as blind guesses: rows x labelers."""
        panel = self.panel
        return np.asarray(panel.estimator.diluted_accuracies(panel.settings, self.fits, panel.n_classes)[self.places])

    def vote_weights(self, rows: Codes) -> Floats:
        """Return the log-odds that each vote of these rows added to its class; 0 for an abstention."""
        return self.panel.estimator.vote_weights(self.panel.settings, self.fits, self.places, rows)

    def share_log_odds(self, rows: Codes, targets: Ints, proba: Floats) -> LogOdds:
        """Return what the log-odds of the class `targets` of each row are made of; `proba` are those it was given."""
        panel, estimator, (n_rows, n_labelers) = self.panel, self.panel.estimator, rows.shape
        base, shares, room = np.empty(n_rows), np.empty((n_rows, n_labelers)), np.empty(panel.n_classes)
        tables, codes = estimator.new_tables(panel.settings, n_labelers), np.array(rows, order="C")
        alone, support = np.full(n_labelers, -1, codes.dtype), np.empty(panel.n_classes, np.int64)
        model = estimator.counts_votes, panel.settings, self.fits, self.places, tables
        share_log_odds(codes, alone, targets, *model, support, room, base, shares)
        total = np.array([log_odds(p) for p in proba[np.arange(n_rows), targets].tolist()])
        return LogOdds(total, base, shares, total - base - shares.sum(axis=1))

    def __getitem__(self, rows: slice) -> Estimates:
        return Estimates(self.panel, self.fits, self.places[rows])

    @classmethod
    def join(cls, parts: Sequence[Any]) -> Estimates:
        """Return the estimates of one part after the other; a labeler that joined later is at chance before."""
        panel = parts[-1].panel
        tables = [
            part.fits
            if part.panel.n_labelers == panel.n_labelers
            else panel.estimator.widen_fits(part.fits, panel.n_labelers, panel.n_classes)
            for part in parts
        ]
        offsets = np.cumsum([0] + [len(part.fits.window) for part in parts])
        places = [part.places + offset for part, offset in zip(parts, offsets, strict=False)]
        return Estimates(panel, concat_fits(tables), np.concatenate(places))


@dataclass(frozen=True)
class Labeled:
    """Class codes and probabilities of a chunk of rows, and the estimates behind them."""

    labels: Ints
    proba: Floats
    estimates: Estimates
    verified: Ints = field(default_factory=lambda: NO_CLASSES)  # classes, -1 for none; empty if no row has one

    @staticmethod
    def join(parts: Sequence[Labeled]) -> Labeled:
        """Return parts of a batch as one."""
        if len(parts) == 1:
            return parts[0]
        labels = np.concatenate([part.labels for part in parts])
        proba = np.concatenate([part.proba for part in parts])
        estimates = [part.estimates for part in parts]
        verified = [part.verified if len(part.verified) else np.full(len(part.labels), -1) for part in parts]
        return Labeled(labels, proba, type(estimates[0]).join(estimates), np.concatenate(verified))


class Engine:
    """One stream of encoded rows for a fixed panel of labelers."""

    def __init__(
        self, estimator: Estimator, rule: WindowRule | FixedWindow, n_labelers: int, n_classes: int, diluted: bool
    ) -> None:
        estimator.check_size(n_labelers, n_classes)
        self.rule = rule
        self.panel = Panel(estimator, n_labelers, n_classes, diluted, len(rule.grid))
        self._tests = rule.tests(n_labelers, n_classes)
        self._settings = self.panel.settings
        sizes = np.array(rule.grid, np.int64)
        per_window = estimator.fits_per_window(room_for(n_labelers), n_classes)
        periods = estimator.fit_periods(rule.grid, per_window)
        self._schedule = Schedule(estimator.refresh, periods, per_window, estimator.gates_window)
        self._tables = estimator.new_tables(self._settings, n_labelers)
        self._room = estimator.new_room(n_labelers, n_classes)
        self._fit = self.panel.empty_fits(1)
        self._stale = False  # a row was verified, or a floor set, since the fit
        self._stretches: list[Known] = []
        self._known: Known | None = None  # of the stretch that the next row is in
        self._floors: list[Floor] = []  # those that a fit that still counts may have been made under
        self._state = empty_state(sizes, n_labelers, n_classes, estimator.refresh, self._spare_rows)

    @property
    def _spare_rows(self) -> int:
        """Rows that a fit of the largest window may be old."""
        return 0 if self.panel.estimator.fits_every_row else int(self._schedule.periods[-1])

    @property
    def n_labelers(self) -> int:
        """Labelers of the panel."""
        return self.panel.n_labelers

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return self._state.clock.item()

    @property
    def memory_rows(self) -> int | None:
        """How many rows before a row, with their numbers, decide its label; None: all of them."""
        return self.largest_window + self._spare_rows if self.keeps_rows else None

    @property
    def largest_window(self) -> int:
        """Rows as far back as a fit looks."""
        return int(self._state.sizes[-1])

    @property
    def remembered_rows(self) -> int:
        """Rows that are in the ring buffer now."""
        return min(self.n_rows, len(self._state.ring))

    @property
    def keeps_rows(self) -> bool:
        """Whether the last rows are kept; not for all the past."""
        return len(self._state.ring) > 0

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(part.nbytes for part in (*self._state, *self._fit) if isinstance(part, np.ndarray))

    def label(self, rows: Codes, draws: Floats, verified: Ints = NO_CLASSES, n_jobs: int = 1) -> Labeled:
        """Learn from each row, then label it; a row whose verified class is given (not -1) gets that label.

        Long batches are labeled in as many pieces as there are threads (`n_jobs`).
        """
        out = Targets(
            np.empty(len(rows), np.int64), np.empty((len(rows), self.panel.n_classes)), np.empty(len(rows), np.int64)
        )
        cuts = self._cut_for_threads(len(rows), n_jobs) if n_jobs > 1 else []
        if cuts:
            fits = self._label_pieces(rows, draws, verified, out, cuts)
        elif self._stretches:
            fits = self._label(rows, draws, verified, out)
        else:
            fits = self._label_segment(rows, draws, verified, out, 0)
        table = fits[0] if len(fits) == 1 else concat_fits(fits)
        return Labeled(out.labels, out.proba, Estimates(self.panel, table, out.places), verified)

    def _cut_for_threads(self, n_rows: int, n_jobs: int) -> list[int]:
        """Return where a batch is cut for threads: after a row at which every window is fitted, so nothing is lost.

        A piece begins with reading the rows that its windows hold, which must be worth it.
        """
        period, first = int(self._schedule.periods[-1]), self.n_rows
        if n_rows < THREAD_ROWS or not self.keeps_rows or self.panel.estimator.fits_every_row:
            return []
        wanted = [first + n_rows * job // n_jobs for job in range(1, n_jobs)]
        cuts = {round((row - 1) / period) * period + 1 - first for row in wanted}
        return sorted(cut for cut in cuts if 0 < cut < n_rows)

    def _label_pieces(self, rows: Codes, draws: Floats, verified: Ints, out: Targets, cuts: list[int]) -> list[Any]:
        """Label the pieces of a batch in threads, each with an engine of its own, and go on with that of the last."""
        first, memory = self.n_rows, len(self._state.ring)
        slots = recent_slots(self._state)
        before = self._state.ring[slots], self._state.verified[slots]
        bounds = list(pairwise([0, *cuts, len(rows)]))

        def work(begin: int, end: int) -> tuple[Engine, list[Any]]:
            engine = self
            if begin:
                engine = self._new(self.panel.n_labelers)
                engine._floors, engine._stretches = list(self._floors), self._stretches
                new = slice(max(0, begin - memory), begin)  # of the past, as much as the engine remembers
                known = verified[new] if len(verified) else np.full(new.stop - new.start, -1)
                past = np.concatenate([before[0], rows[new]])[-memory:]
                engine._resume(first + begin, past, np.concatenate([before[1], known])[-memory:])
            at = slice(begin, end)
            return engine, engine._label(rows[at], draws[at], verified[at], out.cut(at))

        with ThreadPoolExecutor(len(bounds) - 1) as pool:
            others = [pool.submit(work, *piece) for piece in bounds[1:]]
            done = [work(*bounds[0]), *(other.result() for other in others)]
        fits, n_fits = list[Any](), 0
        for (begin, end), (_, found) in zip(bounds, done, strict=True):
            out.places[begin:end] += n_fits
            n_fits += sum(len(table.window) for table in found)
            fits += found
        last = done[-1][0]
        for name in ("_state", "_fit", "_room", "_tables", "_stale", "_known", "_floors"):
            setattr(self, name, getattr(last, name))
        return fits

    def _label(self, rows: Codes, draws: Floats, verified: Ints, out: Targets) -> list[Any]:
        """Label rows in segments inside of which no stretch of known rows begins or ends."""
        first, fits, begin, n_fits = self.n_rows, list[Any](), 0, 0
        ends = {known.begin for known in self._stretches} | {known.end for known in self._stretches}
        for end in [*sorted(row - first for row in ends if 0 < row - first < len(rows)), len(rows)]:
            at = slice(begin, end)
            found = self._label_segment(rows[at], draws[at], verified[at], out.cut(at), n_fits)
            begin, n_fits = end, n_fits + sum(len(table.window) for table in found)
            fits += found
        return fits

    def know(self, stretches: Sequence[Known]) -> None:
        """Take over verified rows for stretches of rows that are still to come, in order and apart from each other."""
        self._stretches = list(stretches)

    def _enter_stretch(self) -> None:
        """Use the verified rows of the stretch that the next row is in."""
        known = next((one for one in self._stretches if one.begin <= self.n_rows < one.end), None)
        if known is not self._known:
            self._use(known)
            self._stale = self.n_rows > 0

    def _use(self, known: Known | None) -> None:
        """Give fits the verified rows of a stretch."""
        nothing = Known(0, 0, NO_CLASSES, np.empty((0, 0), np.int64), np.empty((0, 0)), NO_CLASSES)
        self.panel.estimator.tell(self._room, *(known or nothing)[2:])
        self._known = known

    def _label_segment(self, rows: Codes, draws: Floats, verified: Ints, target: Targets, n_fits: int) -> list[Any]:
        """Label rows under the same verified rows; return the fits, of which there were `n_fits` before."""
        if self._stretches:
            self._enter_stretch()
        if self._stale:
            self._refit()
        floors = self._floors_inside(len(rows)) if self._floors else NO_FLOORS
        n_rows, most = len(rows), self._most_fits(len(rows)) + len(floors)
        if n_rows > LONG and most * sum(part.nbytes for part in self._fit) > FITS_BYTES:
            found = list[Any]()
            for at in (slice(n_rows // 2), slice(n_rows // 2, None)):
                part, n_before = target.cut(at), sum(len(table.window) for table in found)
                found += self._label_segment(rows[at], draws[at], verified[at], part, n_fits + n_before)
            return found
        fits = self._fit
        if most or not self._fit.window[0, 0]:  # most single rows need no room for a new fit
            fits = self.panel.empty_fits(2 + most)
            for part, now in zip(fits, self._fit, strict=True):
                part[0] = now[0]
        parts = self._state, self._tests, self._schedule, self._settings, fits, self._room, self._tables
        last = label_rows(rows, verified, draws, floors, *parts, self._outputs(target, n_fits, len(draws) > 0))
        if last:
            kind = type(fits)
            self._fit = kind(*(part[last : last + 1].copy() for part in fits))
            fits = kind(*(part[: last + 1] for part in fits))
        if self._floors:
            self._apply_floors()
        if len(verified):
            known = np.flatnonzero(verified >= 0)
            target.labels[known] = verified[known]
            target.proba[known] = np.eye(self.panel.n_classes)[verified[known]]
        return [fits]

    def _outputs(self, target: Targets, n_fits: int, draws: bool) -> Outputs:
        """Return room for the labels of rows. A draw for ties belongs to its row, so such rows are no repetitions."""
        n_rows, n_classes, keys = len(target.labels), self.panel.n_classes, 0
        if not draws and self._schedule.refresh > 1 and n_rows >= 2 * MIN_KEYS:
            keys = possible_rows(self.panel.n_labelers, n_classes, min(REPEAT_KEYS, n_rows // 2))
        return Outputs(
            *target,
            n_fits=n_fits,
            known=np.zeros(keys, np.int64),
            known_label=np.empty(keys, np.int64),
            known_proba=np.empty((keys, n_classes)),
            support=np.empty(n_classes, np.int64),
        )

    def mark(self, n_rows: int) -> Mark:
        """Return what `rewind` needs to take back the next `n_rows` rows; it costs a copy of as many rows."""
        state = self._state
        seen, capacity = state.clock.item(), len(state.ring)
        first = seen % capacity if capacity else 0
        at: Any = slice(first, first + n_rows)  # quicker than slots one by one
        if first + n_rows > capacity:
            at = self._slots_after(seen, n_rows)
        rows, verified, totals = (
            state.ring[at].copy(),
            state.verified[at].copy(),
            None if capacity else state.now.copy(),
        )
        return Mark(
            seen, rows, verified, totals, state.follows.item(), self._fit, self._stale, [*self._floors], self._known
        )

    def rewind(self, mark: Mark) -> None:
        """Be as at the mark again. An engine that failed half-way may be rewound, and one that was rewound before."""
        state, seen = self._state, mark.seen
        at = self._slots_after(seen, len(mark.rows))
        state.ring[at], state.verified[at] = mark.rows, mark.verified
        state.clock[0] = seen
        self._floors = list(mark.floors)
        slots = recent_slots(state)
        self._set_rows(seen, state.ring[slots], state.verified[slots], mark.totals)
        self._state.follows[0] = mark.follows
        if mark.known is not self._known:
            self._use(mark.known)
        self._set_fit(mark.fit)
        self._stale = mark.stale

    def _slots_after(self, row: int, n_rows: int) -> Ints:
        """Return the slots of the ring for rows from `row` on, at most all of them."""
        capacity = len(self._state.ring)
        return (row + np.arange(min(n_rows, capacity))) % max(1, capacity)

    def add_floors(self, floors: Sequence[Floor]) -> None:
        """Add floors, in order, that take effect in the next chunk of rows or with the first row after it."""
        for row, first in floors:
            self._floors.append(Floor(row, max(first, self._floors[-1].first if self._floors else 0)))

    def _apply_floors(self) -> None:
        """Set the floor of the next row, and drop those that no fit needs again."""
        self._set_floor(self.n_rows)
        while len(self._floors) > 1 and self._floors[1].row < self.n_rows - self._spare_rows:
            del self._floors[0]

    def _floors_inside(self, n_rows: int) -> Ints:
        """Return the floors that take effect inside of the next rows and change something."""
        first, now, inside = self.n_rows, int(self._state.floor[0]), list[Floor]()
        for floor in self._floors:
            if first < floor.row < first + n_rows and floor.first != now:
                if inside and inside[-1].row == floor.row:
                    inside.pop()
                inside.append(floor)
                now = floor.first
        return np.array(inside, np.int64).reshape(-1, 2) if inside else NO_FLOORS

    def _set_floor(self, row: int) -> None:
        first = next((floor.first for floor in reversed(self._floors) if floor.row <= row), 0)
        if first != self._state.floor[0]:
            set_floor(first, self._state)
            self._stale = True  # the fit holds rows from before the change

    def _most_fits(self, n_rows: int) -> int:
        """Return at most how many fits a chunk of this length makes."""
        first, refresh = self.n_rows, self._schedule.refresh
        early = max(0, min(refresh, first + n_rows) - first)
        return early + (first + n_rows - 1) // refresh - (first - 1) // refresh

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        """Label rows by the current fit; learn nothing."""
        if self._stale:
            self._refit()
        labels, proba = np.empty(len(rows), np.int64), np.empty((len(rows), self.panel.n_classes))
        support = np.empty(self.panel.n_classes, np.int64)
        predict_rows(rows, draws, self._settings, self._fit, self._tables, support, labels, proba)
        return labels, proba

    def current(self) -> Estimates:
        """Return the estimates after the rows seen, as for one row."""
        if not self.n_rows:
            return Estimates.unknown(1, self.n_labelers, self.panel.n_classes)
        if self._stale:
            self._refit()
        return Estimates(self.panel, self._fit, np.zeros(1, np.int64))

    def window_sums(self) -> tuple[Ints, Ints, int]:
        """Return pair agreements times K - 1 and votes over the window that the rule chooses now, and its rows."""
        if self._stale:
            self._refit()
        level, rows = current_window(self._state, self._tests)
        sums = self._state.sums[level]
        agreements, votes = sums[: n_pairs(self.n_labelers)].copy(), sums[-self.n_labelers :].copy()
        return agreements, votes, rows

    def explain_window(self, names: Sequence[str]) -> list[WindowTest]:
        """Return the comparisons behind the current window."""
        if self._stale:
            self._refit()
        return explain_choice(self._state, self._tests, names)

    # -- verified rows -------------------------------------------------------------------------

    def verify(self, rows: Ints, classes: Ints) -> None:
        """Set the classes of remembered rows; the window is fitted again when it is next needed."""
        self._state.verified[rows % len(self._state.verified)] = classes
        self._stale = True

    def verified_class(self, row: int) -> int:
        """Return the verified class of a remembered row, or -1."""
        return int(self._state.verified[row % len(self._state.verified)])

    def verified(self) -> tuple[Ints, Ints]:
        """Return the verified rows that still count, oldest first, and their classes."""
        rows = np.arange(max(0, self.n_rows - self.largest_window), self.n_rows)
        classes = self._state.verified[rows % max(1, len(self._state.verified))].astype(np.int64)
        return rows[classes >= 0], classes[classes >= 0]

    def rows_at(self, numbers: Ints) -> tuple[Codes, Classes]:
        """Return remembered rows and their verified classes, -1 where there is none."""
        slots = numbers % max(1, len(self._state.ring))
        return self._state.ring[slots], self._state.verified[slots]

    def _refit(self) -> None:
        """Fit again after a row was verified or a floor set; the result is the same until the next row."""
        fit = self.panel.empty_fits(1)
        self._tables.ready[0] = 0
        fit_window_now(self._state, self._tests, self._schedule, self._settings, self._room, self._tables, fit)
        self._set_fit(fit)

    def _set_fit(self, fit: Any) -> None:
        self._fit, self._stale = fit, False
        self._tables.ready[0] = 0

    # -- other labelers, other places, other times ---------------------------------------------

    def with_labelers(self, newcomers: Codes) -> Engine:
        """Return the engine as if newcomers had always been there; `newcomers` are their votes on remembered rows.

        It starts again at the last row at which every window is fitted, so nothing older matters.
        """
        n = self.n_labelers + newcomers.shape[1]
        panel, room = self.panel, self._room_for(n)
        wide = RoomyEngine(self, n, room) if room > n else self._new(n)
        wide._floors, wide._stretches = list(self._floors), self._stretches
        if not self.keeps_rows:
            wide._state.now[:] = widen_totals(self._state.now, self.n_labelers, n, panel.n_classes)
            wide._state.clock[:] = self._state.clock
            wide._stale = self.n_rows > 0
            return wide
        slots = recent_slots(self._state)
        rows = np.hstack([self._state.ring[slots][:, : self.n_labelers], newcomers])
        wide._resume(self.n_rows, pad_rows(rows, room), self._state.verified[slots])
        return wide

    def _new(self, n_labelers: int) -> Engine:
        """Return an engine of the same settings without rows."""
        panel = self.panel
        return Engine(panel.estimator, self.rule, n_labelers, panel.n_classes, panel.diluted)

    def _room_for(self, n_labelers: int) -> int:
        """Return the columns for so many labelers: more, where a column without votes changes nothing."""
        panel, room = self.panel, room_for(n_labelers)
        changes_nothing = panel.estimator.ignores_silent and not panel.diluted and self.rule.tests_room
        return room if changes_nothing and self.keeps_rows and tables_fit(room, panel.n_classes) else n_labelers

    def start_at(self, row: int, before: Codes) -> None:
        """Move an engine without rows to row `row` of a stream whose last rows are `before`."""
        self._resume(row, np.ascontiguousarray(before), np.full(len(before), -1, np.int64))

    def _resume(self, row: int, rows: Codes, verified: Ints | Classes) -> None:
        if not self.keeps_rows:  # everything counts, and everything is there
            self.label(rows, np.zeros(0))
            return
        if self.panel.estimator.fits_every_row:  # so the fit at the last row is that of the state after it
            self._state = rebuild_state(rows, verified, row, self._state)
            self._set_floor(row)
            self._stale = row > 0
            return
        first = self._last_fit_of_all(row - 1)
        n_before = max(0, len(rows) - (row - first))
        self._state = rebuild_state(rows[:n_before], verified[:n_before], first, self._state)
        self._set_floor(first)
        if n_before < len(rows):
            self.label(rows[n_before:], np.zeros(0))
            self._state.verified[recent_slots(self._state)[n_before - len(rows) :]] = verified[n_before:]
        self._stale |= bool((verified >= 0).any())

    def _last_fit_of_all(self, row: int) -> int:
        """Return the last row, up to this one, at which every window is fitted; see `is_fit_due`."""
        refresh, most = self._schedule.refresh, int(self._schedule.periods[-1])
        if row < refresh:
            return max(0, row)
        period = refresh
        while period < most:
            first = row // period * period
            before = first - max((floor.first for floor in self._floors if floor.row <= first), default=0)
            shorter = fit_period(before, refresh, self._schedule.per_window)
            if before < self.largest_window and shorter <= period:
                return first
            period *= 2
        return row // most * most

    def to_arrays(self) -> Arrays:
        """Return the state as named arrays, rows oldest first."""
        if self._stale:
            self._refit()
        slots = recent_slots(self._state)
        state = {"rows": self._state.ring[slots], "verified": self._state.verified[slots], "clock": self._state.clock}
        if not self.keeps_rows:
            state["totals"] = self._state.now
        if self._schedule.gated:
            state["follows"] = self._state.follows
        if self._floors:
            state["floors"] = np.array(self._floors, np.int64)
        return state | {f"fit_{name}": part for name, part in self._fit._asdict().items()}

    def restore(self, arrays: Arrays) -> None:
        """Take over a saved state. Kernels check nothing, so every value is checked here."""
        n, n_classes = self.n_labelers, self.panel.n_classes
        check_array(arrays, "clock", np.int64, (1,), 1, ALL_PAST)
        seen = int(arrays["clock"][0])
        n_rows = min(seen, len(self._state.ring))
        lowest = -1 - n_classes if self.panel.diluted else -1
        check_array(arrays, "rows", code_dtype(n_classes), (n_rows, n), lowest, n_classes - 1)
        check_array(arrays, "verified", np.int16, (n_rows,), -1, n_classes - 1)
        floors = self._check_floors(arrays, seen)
        check_fit(arrays, self.panel.estimator, n, n_classes)
        check_array(arrays, "fit_window", np.int64, (1, 1), 0, seen)
        check_array(arrays, "fit_votes", np.int64, (1, n), 0, int(arrays["fit_window"][0, 0]))
        if not self.keeps_rows:
            most = (n_classes - 1) * seen
            check_array(arrays, "totals", np.int64, self._state.now.shape, -most, most)
        if self._schedule.gated:
            check_array(arrays, "follows", np.int64, (1,), 0, 1)
        self._floors = floors
        self._set_rows(seen, arrays["rows"], arrays["verified"], arrays.get("totals"))
        if self._schedule.gated:
            self._state.follows[:] = arrays["follows"]
        kind = type(self._fit)
        self._set_fit(kind(*(arrays[f"fit_{name}"].copy() for name in self._fit._fields)))

    def _check_floors(self, arrays: Arrays, seen: int) -> list[Floor]:
        """Return the floors of a saved state: each takes effect at a row that was seen, and leaves it in the window."""
        if "floors" not in arrays:
            return []
        check_array(arrays, "floors", np.int64, (len(arrays["floors"]), 2), 0, seen)
        floors = [Floor(*floor) for floor in arrays["floors"].tolist()]
        in_order = all(one.row <= two.row and one.first <= two.first for one, two in pairwise(floors))
        if not in_order or any(floor.first >= floor.row for floor in floors) or not self.keeps_rows:
            raise StateError("the state's array 'floors' holds rows out of order")
        return floors

    def _set_rows(self, seen: int, rows: Codes, verified: Classes, totals: Ints | None) -> None:
        """Be at row `seen` of a stream whose remembered rows are these, or whose totals are, if none are kept."""
        if totals is None or self.keeps_rows:
            self._state = rebuild_state(rows, verified, seen, self._state)
            self._set_floor(seen)
        else:
            self._state.now[:] = totals
            self._state.clock[:] = seen


class RoomyEngine(Engine):
    """An engine with empty columns for labelers that join, so that a join need not build the state anew.

    Columns without votes change no label (`Estimator.ignores_silent`). What comes in gets them, what goes out has
    them cut off: from outside it is an engine for `n_labelers`, bit for bit.
    """

    def __init__(self, before: Engine, n_labelers: int, room: int) -> None:
        wide, panel = before._new(room), before.panel
        self.__dict__.update(vars(wide))
        self._here = replace(panel, n_labelers=n_labelers, n_windows=len(before.rule.grid))

    @property
    def n_labelers(self) -> int:
        """Labelers of the panel, without the empty columns."""
        return self._here.n_labelers

    def label(self, rows: Codes, draws: Floats, verified: Ints = NO_CLASSES, n_jobs: int = 1) -> Labeled:
        """Learn from each row, then label it; see `Engine.label`."""
        labeled = super().label(pad_rows(rows, self.panel.n_labelers), draws, verified, n_jobs)
        return replace(labeled, estimates=self._cut(labeled.estimates))

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        """Label rows by the current fit; learn nothing."""
        return super().predict(pad_rows(rows, self.panel.n_labelers), draws)

    def current(self) -> Estimates:
        """Return the estimates after the rows seen, as for one row."""
        return self._cut(super().current())

    def window_sums(self) -> tuple[Ints, Ints, int]:
        """Return pair agreements times K - 1 and votes over the window that the rule chooses now, and its rows."""
        n, room = self.n_labelers, self.panel.n_labelers
        first, second = np.triu_indices(room, 1)
        if self._stale:
            self._refit()
        level, rows = current_window(self._state, self._tests)
        sums = self._state.sums[level]
        return sums[: len(first)][second < n].copy(), sums[-room:][:n].copy(), rows

    def explain_window(self, names: Sequence[str]) -> list[WindowTest]:
        """Return the comparisons behind the current window."""
        return super().explain_window([*names, *[""] * (self.panel.n_labelers - len(names))])

    def rows_at(self, numbers: Ints) -> tuple[Codes, Classes]:
        """Return remembered rows and their verified classes, -1 where there is none."""
        rows, verified = super().rows_at(numbers)
        return np.ascontiguousarray(rows[:, : self.n_labelers]), verified

    def with_labelers(self, newcomers: Codes) -> Engine:
        """Return the engine with newcomers: in columns that are there already, as long as there are enough."""
        n = self.n_labelers + newcomers.shape[1]
        if n > self.panel.n_labelers:
            return super().with_labelers(newcomers)
        wide = copy.copy(self)
        wide._here, wide._floors = replace(self._here, n_labelers=n), list(self._floors)
        wide._stale |= bool((self._state.verified[recent_slots(self._state)] >= 0).any())  # as where it is built anew
        return wide

    def to_arrays(self) -> Arrays:
        """Return the state as named arrays, rows oldest first."""
        arrays = super().to_arrays()
        fit = cut_fits(self._fit, self._here.empty_fits(1))
        return arrays | {
            "rows": np.ascontiguousarray(arrays["rows"][:, : self.n_labelers]),
            **{f"fit_{name}": part for name, part in fit._asdict().items()},
        }

    def _cut(self, estimates: Estimates) -> Estimates:
        if estimates.panel.n_labelers == self.n_labelers:
            return estimates
        fits = cut_fits(estimates.fits, self._here.empty_fits(0))
        return Estimates(self._here, fits, estimates.places)


def pad_rows(rows: Codes, width: int) -> Codes:
    """Return rows with empty columns up to this width."""
    wide = np.full((len(rows), width), -1, rows.dtype)
    wide[:, : rows.shape[1]] = rows
    return wide


def cut_fits(fits: Any, like: Any) -> Any:
    """Return fits without the columns that a fit like this one does not have."""
    parts = (
        np.ascontiguousarray(part[(slice(None), *(slice(0, size) for size in small.shape[1:]))])
        for part, small in zip(fits, like, strict=True)
    )
    return type(fits)(*parts)


def fit_window_now(
    state: StreamState, tests: WindowTests, schedule: Schedule, settings: Any, room: Any, tables: Any, fits: Any
) -> None:
    """Choose the window after the rows seen so far and fit it; the result is the first fit."""
    none, counts = np.empty((0, state.n_classes)), NO_CLASSES
    out = Outputs(counts, none, counts, 0, counts, counts, none, counts)
    label_rows(state.ring[:0], counts, NO_DRAWS, NO_FLOORS, state, tests, schedule, settings, fits, room, tables, out)


def check_fit(arrays: Arrays, estimator: Estimator, n_labelers: int, n_classes: int) -> None:
    """Refuse a saved fit that is not one of this label model for so many labelers and classes; nothing is allocated."""
    for name, part in estimator.empty_fits(0, n_labelers, n_classes)._asdict().items():
        low, high = estimator.fit_range if part.dtype == np.float64 else (-np.inf, np.inf)
        check_array(arrays, f"fit_{name}", part.dtype, (1, *part.shape[1:]), low, high)


class Alone(NamedTuple):
    """What fits to some rows alone are made in."""

    panel: Panel
    state: StreamState  # one window, which holds all rows
    tests: WindowTests
    schedule: Schedule
    room: Any
    tables: Any


_kept = threading.local()
"""That of the last fit in this thread: to make it takes longer than a fit to a few rows, and they come in turn."""


def _make_alone(panel: Panel, n_rows: int) -> Alone:
    """Return what a fit to so many rows is made in, without rows."""
    alone: Alone | None = getattr(_kept, "alone", None)
    n, k = panel.n_labelers, panel.n_classes
    if alone is None or alone.panel != panel or len(alone.state.ring) < n_rows:
        capacity = max(ROOM_ROWS, 1 << (n_rows - 1).bit_length())
        schedule = Schedule(panel.estimator.refresh, np.ones(1, np.int64), 1, False)
        # The window begins with the first row, so no totals are read that were stored on the way.
        state = empty_state([capacity], n, k, capacity + 1, 0)
        room, tables = panel.estimator.new_room(n, k), panel.estimator.new_tables(panel.settings, n)
        alone = Alone(panel, state, FixedWindow(capacity).tests(n, k), schedule, room, tables)
        _kept.alone = alone if n * k * (k + 1) < LARGE_FIT else None
    alone.state.now[:] = 0
    alone.state.clock[0] = 0
    return alone


def estimate_rows(estimator: Estimator, rows: Codes, n_classes: int, diluted: bool = False) -> Estimates:
    """Return the estimates of a label model from the given rows alone, as for one row."""
    alone = _make_alone(Panel(estimator, rows.shape[1], n_classes, diluted), len(rows))
    panel, state, tests, schedule, room, tables = alone
    fits = panel.empty_fits(1)
    replay_rows(np.ascontiguousarray(rows), state)
    fit_window_now(state, tests, schedule, panel.settings, room, tables, fits)
    return Estimates(panel, fits, np.zeros(1, np.int64))


def equal_vote(rows: Codes, draws: Floats, n_classes: int) -> tuple[Ints, Floats]:
    """Return the vote before anything is known: every labeler with the same weight."""
    panel = Panel(Triplet(), rows.shape[1], n_classes, diluted=False)
    fits, tables = panel.empty_fits(1), panel.estimator.new_tables(panel.settings, panel.n_labelers)
    fits.weighing[:] = accuracy_at_weight(EQUAL_WEIGHT, n_classes)
    labels, proba = np.empty(len(rows), np.int64), np.empty((len(rows), n_classes))
    predict_rows(rows, draws, panel.settings, fits, tables, np.empty(n_classes, np.int64), labels, proba)
    return labels, proba
