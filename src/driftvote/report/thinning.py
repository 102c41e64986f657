"""A stream of any length in a bounded number of buckets, extremes kept.

Row t belongs to bucket t // step. When the buckets are full, neighbours are merged and the step doubles; so what a
bucket holds depends on the rows alone, never on the batches they came in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.kernels.buckets import (
    Buckets,
    GoldTotals,
    Rows,
    Totals,
    count_pairs,
    count_votes,
    tally_gold,
    tally_rows,
)

MOST_BUCKETS = 1024
LEAST_BUCKETS = 64
MOST_CELLS = 1 << 17
"""Buckets times labelers: a thousand labelers get fewer buckets, not more memory."""

_FAR = np.iinfo(np.int64).max
_EMPTY: dict[str, float] = {"window_low": _FAR, "low": np.inf, "high": -np.inf}
_MERGED_BY: dict[str, Any] = {
    "window_low": np.minimum,
    "window_high": np.maximum,
    "low": np.minimum,
    "high": np.maximum,
}


def buckets_for(n_labelers: int) -> int:
    """How many buckets a stream of so many labelers is given: even, and fewer for very many labelers."""
    return int(np.clip(MOST_CELLS // max(n_labelers, 1) // 2 * 2, LEAST_BUCKETS, MOST_BUCKETS))


class Thinned:
    """Buckets that never run out, and the counts of the whole stream beside them."""

    def __init__(self, n_labelers: int, n_classes_shown: int, most: int | None = None) -> None:
        self.most = most or buckets_for(n_labelers)
        self.step = 1
        self.n_rows = 0
        lines, table = (self.most,), (self.most, n_labelers)
        shapes = {
            "counts": ((self.most, 9), np.int64),
            **dict.fromkeys(("window_low", "window_high", "window_sum"), (lines, np.int64)),
            **dict.fromkeys(("low", "high", "total", "covered"), (table, np.float64)),
            **dict.fromkeys(("known", "cast"), (table, np.int64)),
        }
        self.buckets = Buckets(
            **{name: np.full(shape, _EMPTY.get(name, 0), dtype) for name, (shape, dtype) in shapes.items()}
        )
        pairs, shown = (n_labelers, n_labelers), n_classes_shown
        self.totals = Totals(
            both=np.zeros(pairs, np.int64),
            same=np.zeros(pairs, np.int64),
            with_label=np.zeros(n_labelers, np.int64),
            labeled=np.zeros(n_labelers, np.int64),
            votes_by_class=np.zeros((n_labelers, shown), np.int64),
            labels_by_class=np.zeros(shown, np.int64),
        )
        self.gold = GoldTotals(
            right=np.zeros((self.most, 3), np.int64),
            tied=np.zeros((self.most, 3), np.int64),
            hits=np.zeros(n_labelers, np.int64),
            tried=np.zeros(n_labelers, np.int64),
            confusion=np.zeros((shown, shown + 1), np.int64),
        )
        # Times of the first and the last row of each bucket, whatever their type.
        self.times: npt.NDArray[Any] | None = None

    @property
    def n_buckets(self) -> int:
        """Buckets that hold rows."""
        return -(-self.n_rows // self.step)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in (*self.buckets, *self.totals, *self.gold))

    def room(self) -> int:
        """How many rows fit before neighbours must be merged; merges them when there is no room left."""
        if self.n_rows == self.most * self.step:
            self._merge()
        return self.most * self.step - self.n_rows

    def add(self, rows: Rows, below: float) -> npt.NDArray[np.int8]:
        """Count rows for which there is room; returns each row's flags (see `tally_rows`)."""
        flags = np.zeros(len(rows.votes), np.int8)
        tally_rows(rows, self.n_rows, self.step, below, self.buckets, flags)
        columns = np.ascontiguousarray(rows.votes.T)
        count_pairs(columns, self.totals)
        count_votes(columns, rows.labels, self.totals)
        return flags

    def add_gold(self, votes: Any, gold: Any, said: Any) -> None:
        """Compare the same rows with true labels."""
        tally_gold(votes, gold, said, self.n_rows, self.step, self.buckets, self.gold)

    def add_times(self, times: npt.NDArray[Any]) -> None:
        """Note when the buckets of the same rows begin and end."""
        if self.times is None:
            self.times = np.empty((self.most, 2), object)
        first, end = self.n_rows, self.n_rows + len(times)
        lines = np.arange(first // self.step, (end - 1) // self.step + 1)
        begins, ends = np.maximum(lines * self.step, first), np.minimum((lines + 1) * self.step, end)
        for line, begin, stop in zip(lines.tolist(), begins.tolist(), ends.tolist(), strict=True):
            if begin == line * self.step:
                self.times[line, 0] = times[begin - first]
            self.times[line, 1] = times[stop - 1 - first]

    def passed(self, n_rows: int) -> None:
        """Rows that were added are behind us."""
        self.n_rows += n_rows

    def _merge(self) -> None:
        self.step *= 2
        for name, array in [*self.buckets._asdict().items(), *self.gold._asdict().items()]:
            if len(array) != self.most or name in ("hits", "tried", "confusion"):
                continue
            half = _MERGED_BY.get(name, np.add)(array[0::2], array[1::2])
            array[: self.most // 2] = half
            array[self.most // 2 :] = _EMPTY.get(name, 0)
        if self.times is not None:
            begins, ends = self.times[0::2, 0].copy(), self.times[1::2, 1].copy()
            self.times[: self.most // 2, 0], self.times[: self.most // 2, 1] = begins, ends
            self.times[self.most // 2 :] = None

    def widened(self, n_labelers: int) -> None:
        """Make room for labelers who joined: they have been silent so far."""
        more = n_labelers - self.buckets.low.shape[1]
        self.buckets = Buckets(
            **{
                name: _padded(array, more, _EMPTY.get(name, 0))
                if name in ("low", "high", "total", "known", "covered", "cast")
                else array
                for name, array in self.buckets._asdict().items()
            }
        )
        old, gold = self.totals, self.gold
        self.totals = Totals(
            both=np.pad(old.both, (0, more)),
            same=np.pad(old.same, (0, more)),
            with_label=np.pad(old.with_label, (0, more)),
            labeled=np.pad(old.labeled, (0, more)),
            votes_by_class=np.pad(old.votes_by_class, ((0, more), (0, 0))),
            labels_by_class=old.labels_by_class,
        )
        self.gold = gold._replace(hits=np.pad(gold.hits, (0, more)), tried=np.pad(gold.tried, (0, more)))


def _padded(table: Any, more: int, fill: float) -> Any:
    return np.pad(table, ((0, 0), (0, more)), constant_values=fill)
