"""Long chunks: stretches of rows enter a history of running sums, then blocks of them are labeled, on several threads.

Nothing here decides anything: the results are those of going row by row, to the last bit. The history is made from
the remembered rows, costs a bounded amount of memory, and is never saved.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np

from driftvote.agreements import StreamState
from driftvote.kernels.blocks import label_blocks
from driftvote.kernels.history import extend_lines, rebuild, settle, turn
from driftvote.kernels.layout import Block, Codes, Floats, History, Outputs, Rule, Scratch, Stretch, code_dtype
from driftvote.windows import ALL_PAST

BLOCK = 512
"""Rows of a block: its working arrays stay in the second-level cache."""

STRETCH = 1 << 14
"""Rows that enter the history at once, at most."""

HISTORY_BYTES = 1 << 26
"""Memory for running sums; windows that do not fit are followed from the rows themselves."""

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
        self.clock = -1  # the time at which the history ends; -1: nowhere
        places = [*combinations(range(n_labelers), 2)] + [(-1, h) for h in range(n_labelers if counts_votes else 0)]
        lines, sizes = len(places), rule.sizes
        n_near = max(1, int((sizes * lines * 4 <= HISTORY_BYTES).sum()))
        n_far = len(sizes) - n_near
        self.rows = STRETCH
        if n_far:
            # The rows that leave a far window must have come before the stretch.
            self.rows = int(max(64, min(STRETCH, sizes[n_near], HISTORY_BYTES // (4 * lines * n_far))))
        self.depth = int(sizes[n_near - 1])
        capacity = self.depth + self.rows + 1
        self.history = History(
            table=np.zeros((lines, capacity + BLOCK), np.int32),
            lagged=np.zeros((n_far, lines, self.rows), np.int32),
            places=np.array(places, np.int64),
            capacity=capacity,
            n_near=n_near,
        )
        dtype = code_dtype(rule.n_classes)
        self.stretch = Stretch(
            counted=np.zeros((n_labelers, self.rows), dtype),
            cast=np.zeros((n_labelers, self.rows if counts_votes else 0), dtype),
            left_counted=np.zeros((n_far, n_labelers, self.rows), dtype),
            left_cast=np.zeros((n_far, n_labelers, self.rows if counts_votes else 0), dtype),
        )
        self.scratches = [_scratch(lines, n_labelers, rule.n_classes) for _ in range(n_jobs)]

    def label(self, rows: Codes, draws: Floats, state: StreamState, out: Outputs) -> None:
        """Learn from each row, then label it."""

        def blocks(done: int, n_rows: int, seen: int) -> list[Callable[[], None]]:
            share = -(-n_rows // (self.n_jobs * BLOCK)) * BLOCK
            spans = [
                Block(seen + 1 + first, first, done + first, min(share, n_rows - first))
                for first in range(0, n_rows, share)
            ]
            return [
                lambda span=span, scratch=scratch: label_blocks(  # type: ignore[misc]
                    span, self.stretch, draws, self.history, self.rule, scratch, out
                )
                for span, scratch in zip(spans, self.scratches, strict=False)
            ]

        self._go_through(rows, state, blocks)

    def learn(self, rows: Codes, state: StreamState) -> None:
        """Learn from each row."""
        self._go_through(rows, state, lambda done, n_rows, seen: [])

    def _go_through(
        self, rows: Codes, state: StreamState, work: Callable[[int, int, int], list[Callable[[], None]]]
    ) -> None:
        if self.clock != state.n_rows:
            self._rebuild(state)
        sizes = self.rule.sizes
        with _Threads(self.n_jobs) as threads:
            for done in range(0, len(rows), self.rows):
                part = rows[done : done + self.rows]
                seen = state.n_rows
                turn(rows, done, len(part), self.stretch.counted, self.stretch.cast)
                for f in range(len(self.stretch.left_counted)):
                    first = seen - int(sizes[self.history.n_near + f])
                    left = self.stretch.left_counted[f], self.stretch.left_cast[f]
                    turn(state.memory.ring, first, len(part), *left)
                threads.run(self._extensions(len(part), state))
                threads.run(work(done, len(part), seen))
                settle(part, self.history, state.memory, sizes, self.counts_votes)
        self.clock = state.n_rows

    def _extensions(self, n_rows: int, state: StreamState) -> list[Callable[[], None]]:
        """The lines of the history, shared among the threads."""
        lines = len(self.history.places)
        share = -(-lines // self.n_jobs)
        return [
            lambda first=first: extend_lines(  # type: ignore[misc]
                first, min(lines, first + share), n_rows, self.stretch, self.history, state.memory, self.rule
            )
            for first in range(0, lines, share)
        ]

    def _rebuild(self, state: StreamState) -> None:
        rows = state.recent_rows()[-self.depth :]
        n_rows, n = rows.shape
        counted = np.empty((n, max(1, n_rows)), rows.dtype)
        cast = np.empty((n, max(1, n_rows) if self.counts_votes else 0), rows.dtype)
        if n_rows:
            turn(rows, 0, n_rows, counted, cast)
        rebuild(n_rows, self.history, state.memory, self.rule.n_classes, counted, cast)
        self.clock = state.n_rows


class _Threads:
    """Several pieces of work at once; kernels leave Python's lock, so threads are enough."""

    def __init__(self, n_jobs: int) -> None:
        self.pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def run(self, pieces: list[Callable[[], None]]) -> None:
        if self.pool is None:
            for piece in pieces:
                piece()
            return
        for done in [self.pool.submit(piece) for piece in pieces]:
            done.result()


def _scratch(lines: int, n_labelers: int, n_classes: int) -> Scratch:
    def ints(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        return np.zeros(shape, np.int32)

    return Scratch(
        level=ints(BLOCK),
        alive=ints(BLOCK),
        fail=ints(BLOCK),
        sums=ints(lines, BLOCK),
        best=ints(BLOCK),
        top=ints(BLOCK),
        chosen=ints(BLOCK),
        scale=np.zeros(BLOCK),
        odds=np.zeros(BLOCK),
        estimates=np.zeros((n_labelers, BLOCK)),
        scores=np.zeros((n_classes, BLOCK)),
        support=ints(n_classes, BLOCK),
        row_scores=np.zeros(n_classes),
        row_support=np.zeros(n_classes, np.int64),
    )
