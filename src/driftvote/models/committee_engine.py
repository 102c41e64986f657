"""The engine of the committee model: the adaptive window, and a committee that is searched again as rows go by.

When a committee is searched is a function of the row's number and of the windows, and everything a search needs lies
within the last r_m rows (see `Plan`): so the model keeps to the finite memory of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote import theory
from driftvote.agreements import StreamState, n_pairs
from driftvote.committee.search import Found, Search
from driftvote.kernels.accuracies import triplet_accuracies
from driftvote.kernels.agreements import recount
from driftvote.kernels.committees import Facts, fill_agreements, fill_coverages
from driftvote.kernels.layout import Codes, Floats, Ints, Rule
from driftvote.labels import plain_vote
from driftvote.models.committee_estimates import CommitteeEstimates, Record, one_after_the_other
from driftvote.models.engine import Arrays, Engine, Labeled, WindowEngine
from driftvote.models.estimates import EqualEstimates, Estimates

CARRIES = 32
"""Every so many re-searches the programs are solved anew even if the proofs carried so far still serve."""

WORSE = 0.01
"""A bound that the carried proofs cannot keep within this of the last solved one is solved anew."""


@dataclass(frozen=True)
class Plan:
    """Settings of the search, and the rows at which it is due.

    The programs are solved at *anchors* (multiples of `period`, and powers of four before the first one) and where the
    window falls to half or less of what it was at the last search. At the other multiples of `refresh` they are solved
    if the window has grown fourfold since or the bound would get worse by `WORSE`; otherwise their multipliers are
    applied to the new agreements, which gives valid bounds for every committee in microseconds. Searches use windows
    of at most `cap` rows; since cap + period <= r_m + 1, the last r_m rows hold all they need.
    """

    refresh: int
    period: int
    cap: int
    largest: int
    allowance: float | None
    delta: float
    accuracy_low: Floats
    accuracy_high: Floats
    estimated: bool  # take the window's own estimates, less the allowance, in place of the lower ends

    @classmethod
    def made(cls, sizes: Ints, refresh: int, **rest: Any) -> Plan:
        """The plan for a grid of windows; short grids shorten the schedule."""
        reach = int(sizes[-1])
        period = max(1, min(CARRIES * refresh, reach // 2))
        within = [int(size) for size in sizes if size <= reach - period + 1]
        # Where even the smallest window is too long for the schedule, its last part is used.
        cap = within[-1] if within else reach - period + 1
        return cls(refresh=min(refresh, period), period=period, cap=cap, **rest)

    def is_anchor(self, row: int) -> bool:
        """Whether the programs are solved at this row whatever happens."""
        return row % self.period == 0 or (row < self.period and row == _power_of_four(row))

    def last_anchor(self, row: int) -> int:
        """The last anchor up to this row (from 1)."""
        return row - row % self.period if row >= self.period else _power_of_four(row)

    def next_due(self, row: int) -> int:
        """The next row after this one at which a search is due."""
        due = row - row % self.refresh + self.refresh
        anchor = row - row % self.period + self.period
        power = 4 * _power_of_four(row) if row else 1
        return min(due, anchor, power) if power < self.period else min(due, anchor)


def _power_of_four(row: int) -> int:
    """The largest power of four up to a row.

    >>> [_power_of_four(row) for row in (1, 3, 4, 63, 64)]
    [1, 1, 4, 16, 64]
    """
    return int(4 ** ((row.bit_length() - 1) // 2))


class CommitteeEngine(Engine):
    """A window engine, and the committee on top of it."""

    def __init__(self, inner: WindowEngine, plan: Plan) -> None:
        self.inner = inner
        self.plan = plan
        self.n_labelers = inner.n_labelers
        self.n_classes = inner.n_classes
        self.record: Record = Record.nobody_knows(inner.n_labelers)  # of the last search
        self.solved: Record = self.record  # of the last one that solved the programs
        self._found: Found | None = None  # its proofs; made again from `solved` when they are missing
        self._search = Search(inner.n_classes)
        pairs, windows = n_pairs(self.n_labelers), len(inner.rule.sizes)
        # Agreements only, or coverages too where somebody abstains: so many statistics share the failure probability.
        counts = (pairs, pairs + self.n_labelers)
        self._factors = [theory.statistics_factor(count, windows, plan.delta) for count in counts]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": None}

    @property
    def n_rows(self) -> int:
        return self.inner.n_rows

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes + self.record.nbytes + self.solved.nbytes

    @property
    def rule(self) -> Rule:
        return self.inner.rule

    @property
    def state(self) -> StreamState:
        return self.inner.state

    def remembered(self) -> int:
        return self.inner.remembered()

    # -- rows ----------------------------------------------------------------------------------

    def label(self, rows: Codes, draws: Floats) -> Labeled:
        parts, spans, records = [], np.empty(len(rows), np.int64), [self.record]
        at = 0
        while at < len(rows):
            end = min(len(rows), at + self.plan.next_due(self.n_rows) - self.n_rows)
            begin = self.n_rows
            part = self.inner.label(rows[at:end], draws[at:end])
            parts.append(part.estimates)
            spans[at:end] = len(records) - 1
            for row, window in self._due(part.estimates.windows, begin):
                self._search_at(row, window)
                records.append(self.record)
                spans[at + row - begin - 1 : end] = len(records) - 1
            at = end
        told = CommitteeEstimates(one_after_the_other(parts), spans, records)
        labels, proba = plain_vote(np.where(told.membership, rows, rows.dtype.type(-1)), draws, self.n_classes)
        return Labeled(labels, proba, told)

    def learn(self, rows: Codes) -> None:
        self.label(rows, np.full(len(rows), -1.0))  # the windows of all rows are needed, not only the last one

    def _due(self, windows: Ints, begin: int) -> Iterator[tuple[int, int]]:
        """Rows of a part (counted from 1 over the stream) at which a search is due, and their windows."""
        windows = np.minimum(windows, self.plan.cap)
        end, place = begin + len(windows), 0
        while True:
            fallen = np.flatnonzero(2 * windows[place:] <= self.record.window)
            if not len(fallen):
                break
            place += int(fallen[0])
            yield begin + place + 1, int(windows[place])
            place += 1
        if self.record.row != end and (end % self.plan.refresh == 0 or self.plan.is_anchor(end)):
            yield end, int(windows[-1])

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return plain_vote(np.where(self.record.members, rows, rows.dtype.type(-1)), draws, self.n_classes)

    def current(self) -> Estimates:
        if not self.n_rows:
            return EqualEstimates(1, self.n_labelers, self.n_classes, window=0)
        now: Any = self.inner.current()
        return CommitteeEstimates(now, np.zeros(1, np.int64), [self.record])

    # -- searches ------------------------------------------------------------------------------

    def facts(self, record: Record) -> tuple[Facts, float]:
        """What the window of a search says of the panel, and the allowance for its agreements."""
        n, plan, window = self.n_labelers, self.plan, record.window
        allowance, stray = self._allowances(record)
        low, high = plan.accuracy_low, plan.accuracy_high
        if plan.estimated:
            low = np.empty(n)
            triplet_accuracies(record.sums, record.votes, window, self.n_classes, False, low)
            low = np.maximum(low - allowance, 1.0 / self.n_classes)
        facts = Facts(low, high, np.ones((n, n)), np.ones((n, n)), np.empty(n), np.empty(n))
        fill_agreements(record.sums, float(window * (self.n_classes - 1)), allowance, facts)
        fill_coverages(record.votes, window, stray, facts)
        return (_filled(facts, 1.0 / self.n_classes) if self.rule.diluted else facts), allowance

    def _allowances(self, record: Record) -> tuple[float, float]:
        """How far agreements and coverages may be off: what the user says, or the bound of the window."""
        if self.plan.allowance is not None:
            return self.plan.allowance, self.plan.allowance / 2.0
        factor = self._factors[bool(record.votes.min() < record.window)]
        return theory.window_allowances(factor, record.window, self.n_classes)

    def _search_at(self, row: int, window: int) -> None:
        """Search the committee with the window of a row that is this one or not long past."""
        record = Record.of_window(row, window, *self._counted(row, window))
        facts, allowance = self.facts(record)
        fallen, grown = 2 * window <= self.record.window, window >= 4 * self.solved.window
        places: tuple[int, ...] = ()
        if not (fallen or grown or self.plan.is_anchor(row)):
            places, bound = self._carried(facts)
        if places:
            self.record = record.decided(places, bound, allowance)
        else:
            self._found = self._search.run(facts, self.plan.largest)
            self.record = self.solved = record.decided(*self._found.winner, allowance)

    def _carried(self, facts: Facts) -> tuple[tuple[int, ...], float]:
        """The best committee by the proofs of the last programs; nobody where they say too little of these facts."""
        if self._found is None:
            self._found = self._search.run(self.facts(self.solved)[0], self.plan.largest)
        if self._found.can_carry(facts):
            places, bound = self._found.best(facts)
            if bound <= self.solved.bound + WORSE:
                return places, bound
        return (), 1.0

    def _counted(self, row: int, window: int) -> tuple[Ints, Ints]:
        """Pair sums and votes of the window of a row: kept ones, or counted from the rows."""
        memory, sizes = self.state.memory, self.rule.sizes
        level = int(np.searchsorted(sizes, window))
        if row == self.n_rows and window in (int(sizes[level]), row):
            return memory.sums[level].copy(), memory.votes[level].copy()
        rows = memory.ring[np.arange(row - window, row) % len(memory.ring)]
        sums, votes = np.empty((1, n_pairs(self.n_labelers)), np.int64), np.empty((1, self.n_labelers), np.int64)
        recount(rows, self.n_classes, np.array([window]), sums, votes)
        return sums[0], votes[0]

    # -- labelers that join, state -------------------------------------------------------------

    def joined_by(self, newcomers: Codes, rule: Rule, plan: Plan) -> CommitteeEngine:
        """The engine as if newcomers had always been there: searches since the last anchor are made again."""
        wider = CommitteeEngine(self.inner.joined_by(newcomers, rule), plan)
        wider.search_again(wider.state.recent_rows())
        return wider

    def search_again(self, rows: Codes) -> None:
        """Make the searches since the last anchor again, from the last rows."""
        now, plan = self.n_rows, self.plan
        if not now:
            return
        anchor = plan.last_anchor(now)
        past = rows[: len(rows) - (now - anchor)]
        replay = CommitteeEngine(window_engine_at(self.rule, past, anchor, self.n_labelers), plan)
        window = min(int(replay.inner.current().windows[0]), plan.cap)
        replay._search_at(anchor, window)
        if now > anchor:
            replay.learn(rows[len(past) :])
        self.record, self.solved, self._found = replay.record, replay.solved, replay._found

    def arrays(self) -> Arrays:
        return self.inner.arrays() | self.record.arrays("committee") | self.solved.arrays("solved")

    def restore(self, arrays: Arrays) -> None:
        self.inner.restore(arrays)
        self.record = Record.restored(arrays, "committee", self.n_labelers)
        self.solved = Record.restored(arrays, "solved", self.n_labelers)
        self._found = None


def window_engine_at(rule: Rule, past: Codes, row: int, n_labelers: int) -> WindowEngine:
    """A window engine as of an earlier row. Windows longer than the rows given are short of some, and not used."""
    engine = WindowEngine(rule, n_labelers, 1)
    memory = engine.state.memory
    memory.clock[0] = row
    engine.state.set_recent_rows(past)
    recount(past, rule.n_classes, rule.sizes, memory.sums, memory.votes)
    return engine


def _filled(facts: Facts, chance: float) -> Facts:
    """Once abstentions are random votes everybody votes, and is right as often as that leaves possible."""
    low, high, least, most = facts.accuracy_low, facts.accuracy_high, facts.coverage_low, facts.coverage_high
    low = chance + np.where(low > chance, least, most) * (low - chance)
    high = chance + np.where(high > chance, most, least) * (high - chance)
    always = np.ones(len(low))
    return facts._replace(accuracy_low=low, accuracy_high=high, coverage_low=always, coverage_high=always)
