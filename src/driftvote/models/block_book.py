"""What is written down at the end of every block, so that an event can tell windows and times of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driftvote.kernels.counting import BLOCK
from driftvote.kernels.watching import REMEMBERED

LINES = REMEMBERED // BLOCK + 1
"""Blocks that are remembered: as far back as an event can reach."""


class BlockBook:
    """The window and the time at the last row of each of the last blocks, from block `first` on."""

    def __init__(self, first: int = 0, windows: Sequence[int] = (), times: Sequence[Any] = ()) -> None:
        self.first = first
        self.windows = list(windows)
        self.times = list(times)  # plain values, None where a row came without

    def add(self, block: int, windows: Sequence[int], times: Sequence[Any]) -> None:
        """Blocks from this one on; a gap before them leaves what was known behind."""
        if not windows:
            return
        if block != self.first + len(self.windows):
            self.first, self.windows, self.times = block, [], []
        self.windows += windows
        self.times += times

    def trim(self) -> None:
        """Forget what no event can reach any more."""
        extra = len(self.windows) - LINES
        if extra > 0:
            self.first += extra
            del self.windows[:extra], self.times[:extra]

    def window_before(self, row: int) -> int:
        """The window at the end of the last block before a row; the oldest that is known where that is forgotten."""
        return self.windows[max(0, min(row // BLOCK - 1 - self.first, len(self.windows) - 1))]

    def window_at(self, row: int) -> int:
        """The window at a row that ends a block."""
        return self.windows[row // BLOCK - self.first]

    def time_at(self, row: int) -> Any:
        """The time at the end of the block that a row is in."""
        return self.times[max(0, min(row // BLOCK - self.first, len(self.times) - 1))]

    def time_before(self, row: int) -> Any:
        """A time at or before the row: that of the end of the block before."""
        return self.times[max(0, min(row // BLOCK - 1 - self.first, len(self.times) - 1))]

    def to_plain(self) -> dict[str, Any]:
        """Plain values, for a state file."""
        return {"first": self.first, "windows": self.windows, "times": self.times}


def ends_of_blocks(first: int, n_rows: int) -> slice:
    """Which of the rows that begin at row `first` of the stream end a block.

    >>> list(range(60, 200)[ends_of_blocks(60, 140)])
    [63, 127, 191]
    """
    return slice((BLOCK - 1 - first) % BLOCK, n_rows, BLOCK)
