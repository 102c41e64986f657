"""Long chunks: stretches of rows enter a history of bits and running sums, then blocks of them are labeled.

Nothing here decides anything: the results are those of going row by row, to the last bit. The history is made from
the remembered rows, costs a bounded amount of memory, and is never saved.

Threads have a history each, and a part of the rows to label; what a history lacks of the rows before them it takes in
first, which is a tenth of the work. So nobody waits for anybody before the end: on a busy machine, waking up again can
take longer than the work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise
from threading import Lock
from typing import Any

import numpy as np

from driftvote.agreements import StreamState
from driftvote.kernels.bits import GROUP, pack_rows, repeat_first_bytes, shift_planes
from driftvote.kernels.block_labels import touch_rows
from driftvote.kernels.blocks import label_blocks
from driftvote.kernels.history import begin_history, extend_lines, settle_sums
from driftvote.kernels.layout import Codes, Floats, History, Ints, Outputs, Rule, Scratch, Span
from driftvote.windows import ALL_PAST

GROUPS = (64, 128)
"""Groups of eight rows in a block: the larger number where its working arrays still fit into the second-level cache."""

BLOCK_BYTES = 1 << 18
"""Room there for window sums."""

STRETCH = 1 << 17
"""Rows that enter the history at once, at most."""

PIECE = 1 << 15
"""The same where threads share the work: who is through early can take what another has not begun."""

HISTORY_BYTES = 1 << 26
"""Memory for running sums; windows that do not fit are followed from the bits themselves. A stretch takes no more than
half of that beside them."""

MOST_THREADS = 16
"""Each has a history of its own, and takes in rows of the others: with more, less and less is gained."""

ENTERING = 0.1
"""What it costs a row to enter a history, against being labeled."""

LEAST_ROWS = 1 << 12
"""Rows to label that are worth a thread."""

MOST_LABELERS = 128
"""Beyond this the sums of one row outgrow the cache, and going row by row is as good."""


def fits(rule: Rule, n_labelers: int) -> bool:
    """Whether blocks can serve this model: sums fit 32 bits, products of odds fit a double, rows are kept."""
    largest = int(rule.sizes[-1])
    small = 4 * (rule.n_classes - 1) * largest < 2**31
    return largest != ALL_PAST and small and not rule.by_logs and n_labelers <= MOST_LABELERS


class LongChunks:
    """The history of one stream, once for each thread that works on it."""

    def __init__(self, rule: Rule, n_labelers: int, counts_votes: bool, n_jobs: int) -> None:
        self.counts_votes = counts_votes
        self.histories = [Stretches(rule, n_labelers, counts_votes) for _ in range(min(n_jobs, MOST_THREADS))]

    def lacking(self, row: int) -> int:
        """How many rows have to enter a history before this one can be labeled."""
        return min(history.lacking(row) for history in self.histories)

    def forget(self) -> None:
        """The histories are made anew from the remembered rows when they are needed."""
        for history in self.histories:
            history.clock = None

    def label(
        self, rows: Codes, draws: Floats, state: StreamState, out: Outputs, work: Callable[[], None] = lambda: None
    ) -> None:
        """Learn from each row, then label it; somewhere on the way, and nobody knows where, other work is done."""
        before, after = state.n_rows, state.n_rows + len(rows)
        # Whoever is nearest to where the stream is begins with the first row, and labels all of them if nobody joins.
        hands = sorted(self.histories, key=lambda hand: hand.lacking(before))[: max(1, len(rows) // LEAST_ROWS)]
        shares = Shares(hands[0], (before, after), PIECE if len(hands) > 1 else STRETCH)
        todo = (shares, rows, draws, state, out)
        if len(hands) == 1:
            hands[0].label(*todo)
            work()
        else:
            # Never more threads than were asked for: one that has something else to do first joins the others later.
            with ThreadPoolExecutor(len(hands) - 1) as pool:
                others = [pool.submit(work), *(pool.submit(hand.label, *todo) for hand in hands[1:])]
                hands[0].label(*todo)
                for other in others:
                    other.result()
        state.take(*shares.at_the_end, rows)

    def learn(self, rows: Codes, state: StreamState) -> None:
        """Learn from each row."""
        nearest = min(self.histories, key=lambda hand: hand.lacking(state.n_rows))
        nearest.go_to(state.n_rows + len(rows), rows, state)
        state.take(*nearest.sums(state), rows)


class Shares:
    """Rows of the stream that wait to be labeled: a part for each thread, by its history.

    Whoever is through takes half of what the slowest has left: a thread may have less of a processor than another.
    """

    def __init__(self, owner: Stretches, part: tuple[int, int], piece: int) -> None:
        self.parts: dict[Stretches, list[int]] = {owner: [*part]}
        self.last = part[1]
        self.piece = piece
        self.lock, self.memory = Lock(), Lock()
        self.at_the_end: tuple[Ints, Ints]  # the sums and votes of all windows, from whoever labels the last row

    def next_rows(self, hand: Stretches) -> tuple[int, int] | None:
        """The next rows for a thread: of its own part, or of another's; None if there are none worth its while."""
        with self.lock:
            part = self.parts.get(hand, [0, 0])
            if part[0] == part[1]:
                largest = max(self.parts.values(), key=lambda part: part[1] - part[0])
                first, last = largest
                # Both are to end at the same time, and rows have to enter the history first. Parts that begin where
                # blocks do are labeled in whole blocks.
                middle = (first + last + int(ENTERING * hand.lacking((first + last) // 2))) // 2
                middle = min(last, max(first, middle // LEAST_ROWS * LEAST_ROWS))
                if last - middle < LEAST_ROWS:
                    return None
                largest[1] = middle
                self.parts[hand] = part = [middle, last]
            first = part[0]
            part[0] = min(part[1], first + self.piece)
            return first, part[0]


class Stretches:
    """A history, and a desk to label blocks of rows by it."""

    def __init__(self, rule: Rule, n_labelers: int, counts_votes: bool) -> None:
        self.rule = rule
        self.clock: int | None = None  # the row of the stream at which the history ends, if it is one of this stream
        self.origin = 0  # rows of the stream before time 0 of the history
        self.group = 0  # where the last stretch begins
        places = [*combinations(range(n_labelers), 2)] + [(-1, h) for h in range(n_labelers if counts_votes else 0)]
        lines, sizes = len(places), rule.sizes
        few, many = GROUPS
        self.groups = many if lines * many * GROUP * 4 <= BLOCK_BYTES else few
        fitting = sizes[sizes * lines * 4 // GROUP <= HISTORY_BYTES]
        self.depth = int(sizes[-1])
        near = int(fitting[-1]) if len(fitting) else 0
        # Read off the table: windows of whole groups that fit into it. The others lag behind with sums of their own.
        lagging = (sizes % GROUP != 0) | (sizes > near)
        self._find_active(lagging, sizes > near)
        n_lags = int(lagging.sum())
        room = HISTORY_BYTES // (4 * lines * max(1, n_lags)) * GROUP
        block = self.groups * GROUP
        room = min(room, HISTORY_BYTES // (8 * lines) * GROUP)
        self.rows = max(block, min(STRETCH, room // block * block))
        stretch = self.rows // GROUP + 2 * self.groups
        n_digits = max(1, int(rule.n_classes - 1).bit_length())
        planes = n_labelers * (n_digits + 2 * counts_votes)
        n_slots, n_bytes = (
            self._whole_blocks(near // GROUP + stretch),
            self._whole_blocks(self.depth // GROUP + stretch),
        )
        self.history = History(
            planes=np.empty((planes, n_bytes + self.groups), np.uint8),
            table=np.empty((lines, n_slots + self.groups + 1), np.int32),
            past=np.empty((n_lags, planes, stretch), np.uint8),
            lagged=np.empty((n_lags, lines, stretch + 1), np.int32),
            ends=np.empty((n_lags, lines), np.int32),
            places=np.array(places, np.int64),
            lag_of=np.where(lagging, np.cumsum(lagging) - 1, -1),
            n_labelers=n_labelers,
            n_digits=n_digits,
            masked=counts_votes,
            n_bytes=n_bytes,
            n_slots=n_slots,
        )
        self.scratch = _scratch(self.groups, lines, n_labelers, rule.n_classes)

    def _find_active(self, lagging: Any, far: Any) -> None:
        """Which lagging windows are ever looked at.

        A window whose test cannot fail, after one whose test cannot fail, is chosen only before the next one is full.
        """
        sizes, tested = self.rule.sizes, ~self.rule.certain.astype(bool)
        always = far | np.append(tested, True) | np.append(False, tested)
        early = lagging & ~always
        self.early_until = max((int(sizes[k + 1]) for k in np.flatnonzero(early)), default=0)
        places = np.cumsum(lagging) - 1
        self.active = [places[lagging].astype(np.int64), places[lagging & always].astype(np.int64)]
        self.lag_sizes = sizes[lagging]

    def _whole_blocks(self, groups: int) -> int:
        return -(-groups // self.groups) * self.groups

    def label(self, shares: Shares, rows: Codes, draws: Floats, state: StreamState, out: Outputs) -> None:
        """Label a share of the rows that follow on the state, which nobody changes meanwhile."""
        while (here := shares.next_rows(self)) is not None:
            self.go_to(here[0], rows, state)
            with shares.memory:
                touch_rows(out, here[0] - state.n_rows, here[1] - state.n_rows)
            for begin, end in self._cut(*here):
                self._label(begin, end, rows, draws, state.n_rows, out)
            if here[1] == shares.last:
                shares.at_the_end = self.sums(state)

    def _label(self, first: int, last: int, rows: Codes, draws: Floats, before: int, out: Outputs) -> None:
        """Label rows of the stream, of which `before` is the first in `rows`."""
        self._extend(rows[first - before : last - before], first)
        span = Span(first - self.origin, last - self.origin, self.group, self.origin, self.origin - before)
        label_blocks(span, draws, self.history, self.rule, self.scratch, out)

    def lacking(self, row: int) -> int:
        """How many rows have to enter before this one can be labeled: some more, or all that any window reaches."""
        more = row - self.clock if self.clock is not None and self.clock <= row else row
        return min(self.depth, more)

    def go_to(self, row: int, rows: Codes, state: StreamState) -> None:
        """Let rows enter up to this row of the stream: remembered ones, and then `rows`, which follow on the state."""
        first = row - self.lacking(row)
        if self.clock != first:  # as if the stream had begun with the rows that any window reaches
            self.clock = self.origin = first
            begin_history(self.rule.sizes, self.history, self.rule.n_classes)
        before = state.n_rows
        if self.clock < before:
            missing = state.rows_since(self.clock)
            for begin, end in self._cut(self.clock, before):
                self._extend(missing[begin - before : end - before or None], begin)
        for begin, end in self._cut(self.clock, row):
            self._extend(rows[begin - before : end - before], begin)

    def sums(self, state: StreamState) -> tuple[Ints, Ints]:
        """Sums and votes of all windows where the history ends."""
        assert self.clock is not None
        time = self.clock - self.origin
        memory = state.memory._replace(sums=state.memory.sums.copy(), votes=state.memory.votes.copy())
        settle_sums(time, self.origin, time // GROUP - self.group, self.history, memory, self.rule)
        return memory.sums, memory.votes

    def _cut(self, first: int, last: int) -> list[tuple[int, int]]:
        """Rows of the stream in stretches that can enter at once."""
        borders = [*range(first, last, self.rows), last]
        if first < self.early_until < last:
            borders = sorted({*borders, self.early_until})
        return list(pairwise(borders))

    def _extend(self, rows: Codes, first: int) -> None:
        """Rows enter the history, the first of them at row `first` of the stream."""
        history, n_classes, time, n_rows = self.history, self.rule.n_classes, first - self.origin, len(rows)
        self.clock = None  # should anything go wrong
        pack_rows(rows, 0, n_rows, time, history)
        repeat_first_bytes(history)
        group = time // GROUP // self.groups * self.groups
        n_groups = self._whole_blocks(-(-(time + n_rows) // GROUP)) - group
        full = (time + n_rows) // GROUP // self.groups * self.groups - group
        active = self.active[first >= self.early_until]
        for f in active:
            shift_planes(group, n_groups, self.lag_sizes[f], history, history.past[f])
        extend_lines(0, len(history.places), group, n_groups, full, active, history, n_classes)
        self.group, self.clock = group, first + n_rows


def _scratch(groups: int, lines: int, n_labelers: int, n_classes: int) -> Scratch:
    def ints(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        return np.zeros(shape, np.int32)

    rows = groups * GROUP
    return Scratch(
        level=ints(rows),
        alive=np.zeros(groups, np.uint8),
        gaps=ints(groups + 1),
        wide_gaps=np.zeros(groups + 1, np.int64),
        agree=np.zeros((2, groups), np.uint8),
        both=np.zeros((2, groups), np.uint8),
        running=ints(groups),
        sums=ints(lines, rows),
        other_sums=ints(lines, rows),
        best=ints(rows),
        top=ints(rows),
        chosen=ints(rows),
        picked=ints(3, rows),
        scale=np.zeros(rows),
        odds=np.zeros(rows),
        estimates=np.zeros((n_labelers, rows)),
        codes=np.zeros(rows, np.int16),
        scores=np.zeros((n_classes, rows)),
        support=ints(n_classes, rows),
        row_scores=np.zeros(n_classes),
        row_support=np.zeros(n_classes, np.int64),
    )
