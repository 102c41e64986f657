"""Long chunks: stretches of rows enter a history of bits and running sums, then blocks of them are labeled, on threads.

Nothing here decides anything: the results are those of going row by row, to the last bit. The history is made from
the remembered rows, costs a bounded amount of memory, and is never saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np

from driftvote.agreements import StreamState
from driftvote.kernels.bits import GROUP, pack_rows, repeat_first_bytes, shift_planes
from driftvote.kernels.blocks import label_blocks
from driftvote.kernels.history import begin_history, extend_lines, settle_sums
from driftvote.kernels.layout import Codes, Floats, History, Outputs, Rule, Scratch, Span
from driftvote.windows import ALL_PAST

Piece = Callable[[int], None]
"""Something to do, told which worker does it."""

GROUPS = (64, 128)
"""Groups of eight rows in a block: the larger number where its working arrays still fit into the second-level cache."""

BLOCK_BYTES = 1 << 18
"""Room there for window sums."""

STRETCH = 1 << 17
"""Rows that enter the history at once for each thread, at most: threads wait for each other after every stretch."""

PIECES = 4
"""Pieces of a stretch for each thread: one that is held up leaves the rest to the others."""

HISTORY_BYTES = 1 << 26
"""Memory for running sums; windows that do not fit are followed from the bits themselves."""

MOST_LABELERS = 128
"""Beyond this the sums of one row outgrow the cache, and going row by row is as good."""


def fits(rule: Rule, n_labelers: int) -> bool:
    """Whether blocks can serve this model: sums fit 32 bits, products of odds fit a double, rows are kept."""
    largest = int(rule.sizes[-1])
    small = 4 * (rule.n_classes - 1) * largest < 2**31
    return largest != ALL_PAST and small and not rule.by_logs and n_labelers <= MOST_LABELERS


class LongChunks:
    """The history of one stream, and the threads that work on it."""

    def __init__(self, rule: Rule, n_labelers: int, counts_votes: bool, n_jobs: int) -> None:
        self.rule = rule
        self.counts_votes = counts_votes
        self.n_jobs = n_jobs
        self.clock = -1  # rows of the stream at which the history ends; -1: nowhere
        self.origin = 0  # rows of the stream before time 0 of the history
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
        self.rows = max(block, min(STRETCH * min(n_jobs, 8), room // block * block))
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
        self.scratches = [_scratch(self.groups, lines, n_labelers, rule.n_classes) for _ in range(n_jobs)]

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

    def label(self, rows: Codes, draws: Floats, state: StreamState, out: Outputs) -> None:
        """Learn from each row, then label it."""

        def work(first: int, last: int, group: int, row: int) -> list[Piece]:
            blocks = self._whole_blocks(-(-last // GROUP)) // self.groups - group // self.groups
            share = -(-blocks // (self.n_jobs * PIECES)) * self.groups * GROUP
            borders = [first, *range(group * GROUP + share, last, share), last]
            spans = [
                Span(begin, end, group, self.origin, row) for begin, end in zip(borders, borders[1:], strict=False)
            ]
            return [
                lambda worker, span=span: label_blocks(  # type: ignore[misc]
                    span, draws, self.history, self.rule, self.scratches[worker], out
                )
                for span in spans
            ]

        self._go_through(rows, state, work)

    def learn(self, rows: Codes, state: StreamState) -> None:
        """Learn from each row."""
        self._go_through(rows, state, lambda *_: [])

    def _go_through(self, rows: Codes, state: StreamState, work: Callable[[int, int, int, int], list[Piece]]) -> None:
        with _Threads(self.n_jobs) as threads:
            if self.clock != state.n_rows:
                self._rebuild(state, threads)
            time = state.n_rows - self.origin
            done = 0
            while done < len(rows):
                n_rows = min(self.rows, len(rows) - done)
                if self.origin + time < self.early_until:
                    n_rows = min(n_rows, self.early_until - self.origin - time)
                group = self._extend(rows, done, n_rows, time, threads)
                threads.run(work(time, time + n_rows, group, done - time))
                time += n_rows
                done += n_rows
        settle_sums(time, self.origin, time // GROUP - group, self.history, state.memory, self.rule)
        state.keep_rows(rows)
        self.clock = state.n_rows

    def _extend(self, rows: Codes, done: int, n_rows: int, time: int, threads: _Threads) -> int:
        """Rows enter the history at `time`; returns the group at which the stretch begins."""
        history, n_classes = self.history, self.rule.n_classes
        share = -(-n_rows // (self.n_jobs * GROUP)) * GROUP
        borders = [0, *range(share - time % GROUP, n_rows, share), n_rows] if share < n_rows else [0, n_rows]
        part = rows[done : done + n_rows]
        threads.run(
            [
                lambda _, first=first, last=last: pack_rows(part, first, last, time, history)  # type: ignore[misc]
                for first, last in zip(borders, borders[1:], strict=False)
            ]
        )
        repeat_first_bytes(history)
        group = time // GROUP // self.groups * self.groups
        n_groups = self._whole_blocks(-(-(time + n_rows) // GROUP)) - group
        full = (time + n_rows) // GROUP // self.groups * self.groups - group
        active = self.active[self.origin + time >= self.early_until]
        for f in active:
            shift_planes(group, n_groups, self.lag_sizes[f], history, history.past[f])
        lines = len(history.places)
        each = -(-lines // self.n_jobs)
        threads.run(
            [
                lambda _, first=first: extend_lines(  # type: ignore[misc]
                    first, min(lines, first + each), group, n_groups, full, active, history, n_classes
                )
                for first in range(0, lines, each)
            ]
        )
        return group

    def _rebuild(self, state: StreamState, threads: _Threads) -> None:
        """Make the history from the remembered rows, as if the stream had begun with them."""
        rows = state.recent_rows()
        self.origin = state.n_rows - len(rows)
        begin_history(self.rule.sizes, self.history, self.rule.n_classes)
        for done in range(0, len(rows), self.rows):
            self._extend(rows, done, min(self.rows, len(rows) - done), done, threads)


class _Threads:
    """Several pieces of work at once; kernels leave Python's lock, so threads are enough."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.pool = ThreadPoolExecutor(n_jobs - 1) if n_jobs > 1 else None

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def run(self, pieces: list[Piece]) -> None:
        """Whoever is free takes the next piece; the caller works too."""
        waiting = deque(pieces)
        others = []
        if self.pool is not None:
            others = [self.pool.submit(_take, waiting, worker) for worker in range(1, min(self.n_jobs, len(pieces)))]
        _take(waiting, 0)
        for other in others:
            other.result()


def _take(waiting: deque[Piece], worker: int) -> None:
    while True:
        try:
            piece = waiting.popleft()
        except IndexError:
            return
        piece(worker)


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
