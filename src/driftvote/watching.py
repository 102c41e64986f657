"""The watch: rows go in, and what is known of a change comes out at the end of the block at which it is noticed.

Its record is its own, apart from the windows of the model: drift episodes may be older than any window. It is bounded
all the same: the last rows, a line of totals for each of the last blocks, and one for the beginning of the episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.agreements import ring_rows
from driftvote.diagnosis import Diagnosis, deviate, diagnose
from driftvote.errors import StateError
from driftvote.kernels.counting import BLOCK, CLASSES
from driftvote.kernels.layout import Codes, code_dtype
from driftvote.kernels.watching import (
    CLOCK,
    FINE,
    FIRED_SPAN,
    FIRED_WHAT,
    FIRED_WHO,
    HEAD,
    KEPT,
    PENDING,
    REMEMBERED,
    SPANS,
    START,
    Watched,
    end_episode,
    n_numbers,
    watch_rows,
)

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Noticed:
    """A change that was noticed: the row, what it was, and the rows on either side. Rows of the stream count from 0."""

    row: int
    about: int
    since: tuple[int, int]
    told: Diagnosis
    before: Codes
    after: Codes


def threshold(n_labelers: int, n_classes: int, rate: float) -> float:
    """The surprise from which a difference is an event, so that chance makes at most `rate` events a row.

    All comparisons of a block share the probability: each span, each labeler's agreement and votes, each class.

    >>> round(threshold(6, 2, 1e-6), 1)
    23.5
    """
    looks = sum(1.0 if span <= FINE else FINE / span for span in SPANS)
    watched = 2 * n_labelers + (1 if n_classes == 2 else min(n_classes, CLASSES))
    return deviate(min(0.5, rate * BLOCK / (looks * watched))) ** 2


class Watcher:
    """Watches a stream for drift, from row `first` on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, (6000, 1))
    >>> accuracy = np.full((6000, 6), 0.8)
    >>> accuracy[:, 0] = np.where(np.arange(6000) < 4000, 0.9, 0.6)
    >>> votes = np.where(rng.random((6000, 6)) < accuracy, truth, 1 - truth).astype(np.int8)
    >>> [(found.row, found.about, found.told.kind) for found in Watcher(6, 2, 1e-6).feed(votes)]
    [(4159, 4036, 'labeler worse')]
    """

    def __init__(self, n_labelers: int, n_classes: int, rate: float, first: int = 0) -> None:
        self.n_classes, self.rate = n_classes, rate
        numbers = n_numbers(n_labelers, min(n_classes, CLASSES))
        self.watched = Watched(
            ring=np.zeros((REMEMBERED, n_labelers), code_dtype(n_classes)),  # pages come as rows reach them
            totals=np.zeros((KEPT, numbers), np.int64),
            base=np.zeros(numbers, np.int64),
            born=np.full(n_labelers, -1, np.int64),
            prior=np.ones(numbers),
            head=np.zeros(HEAD, np.int64),
            n_classes=n_classes,
        )
        self.watched.head[CLOCK] = first
        self.watched.head[START] = -(-first // BLOCK)
        self.limit = threshold(n_labelers, n_classes, rate)

    @property
    def n_rows(self) -> int:
        """Rows seen, those before `first` included."""
        return int(self.watched.head[CLOCK])

    @property
    def start(self) -> int:
        """The row at which the present episode begins."""
        return int(self.watched.head[START]) * BLOCK

    @property
    def n_labelers(self) -> int:
        return int(self.watched.ring.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes held, whatever the number of rows."""
        return sum(part.nbytes for part in self.watched if isinstance(part, np.ndarray))

    def feed(self, rows: Codes) -> list[Noticed]:
        """Let rows in; what was noticed at them, in order."""
        rows = np.ascontiguousarray(rows, self.watched.ring.dtype)
        found: list[Noticed] = []
        done = 0
        while done < len(rows):
            done = watch_rows(rows, done, self.watched, self.limit)
            if self.watched.head[FIRED_WHAT] and not self.watched.head[PENDING]:
                noticed = self._diagnosed()
                found += [] if noticed is None else [noticed]
                self.watched.head[FIRED_WHAT] = 0
        return found

    def _diagnosed(self) -> Noticed | None:
        head, seen = self.watched.head, self.n_rows
        first = max(self.start, seen - REMEMBERED)
        rows = self._rows(first)
        change = seen - int(head[FIRED_SPAN]) * BLOCK
        found = (int(head[FIRED_WHAT]), int(head[FIRED_WHO]), change - first)
        told = diagnose(rows, self.n_classes, found, self.limit)
        if told is None:
            # Somebody joined, or several small things came together: nothing that anybody has to answer for.
            self._begin(seen, change)
            return None
        since = (first + told.since[0], first + told.since[1])
        self._begin(since[1], since[0])
        after = rows[told.about :]
        before = rows[max(0, told.about - REMEMBERED // 2) : told.about]
        return Noticed(seen - 1, first + told.about, since, told, before, after)

    def _rows(self, first: int) -> Codes:
        """Remembered rows from this one on (a copy)."""
        return ring_rows(self.watched.ring, first, self.n_rows).copy()

    def _begin(self, row: int, end: int) -> None:
        """A new episode begins at the first block that holds nothing older than `row`; the last one ended at `end`."""
        seen = self.n_rows // BLOCK
        end_episode(self.watched, end // BLOCK)
        block = min(seen, max(-(-row // BLOCK), seen - SPANS[-1]))
        self.watched.head[START] = block
        self.watched.base[:] = self.watched.totals[block % KEPT]

    def joined_by(self, newcomers: int) -> Watcher:
        """The watch with more labelers, who were silent so far."""
        n, more = self.n_labelers, self.n_labelers + newcomers
        wider = Watcher(more, self.n_classes, self.rate)
        old, new = self.watched, wider.watched
        new.ring[:, :n] = old.ring
        new.ring[:, n:] = -1
        new.born[:n] = old.born
        new.head[:] = old.head
        shares = min(self.n_classes, CLASSES)
        places, at = [], 0
        for width, by_labeler in [(n, True)] * 3 + [(shares + 2, False)]:
            places += list(range(at, at + width))
            at += width + (newcomers if by_labeler else 0)
        new.totals[:, places] = old.totals
        new.base[places] = old.base
        new.prior[places] = old.prior
        return wider

    def arrays(self) -> Arrays:
        """The state as named arrays: rows and lines of totals oldest first, only those that are there."""
        w, seen = self.watched, self.n_rows
        lines = np.arange(seen // BLOCK - self._lines() + 1, seen // BLOCK + 1)
        return {
            "watch_rows": self._rows(seen - min(seen, REMEMBERED)),
            "watch_totals": w.totals[lines % KEPT],
            "watch_base": w.base,
            "watch_born": w.born,
            "watch_prior": w.prior,
            "watch_head": w.head,
        }

    def _lines(self) -> int:
        """Lines of totals that are in use."""
        return min(self.n_rows // BLOCK + 1, KEPT)

    def restore(self, arrays: Arrays) -> None:
        """Take over a saved state; one that cannot be of such a watch is refused."""
        w = self.watched
        for name, part in (
            ("watch_base", w.base),
            ("watch_born", w.born),
            ("watch_prior", w.prior),
            ("watch_head", w.head),
        ):
            _expect(arrays, name, part.dtype, part.shape)
            part[:] = arrays[name]
        seen = self.n_rows
        kept, lines = min(seen, REMEMBERED), self._lines()
        _expect(arrays, "watch_rows", w.ring.dtype, (kept, self.n_labelers))
        _expect(arrays, "watch_totals", w.totals.dtype, (lines, w.totals.shape[1]))
        w.ring[np.arange(seen - kept, seen) % REMEMBERED] = arrays["watch_rows"]
        w.totals[np.arange(seen // BLOCK - lines + 1, seen // BLOCK + 1) % KEPT] = arrays["watch_totals"]


def _expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    """Refuse arrays that cannot belong to this watch."""
    found = arrays.get(name)
    if found is None or found.dtype != dtype or found.shape != shape:
        raise StateError(f"the state's array {name!r} does not fit {shape[-1]} numbers a line; it is damaged")
