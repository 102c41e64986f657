"""Random numbers that belong to a cell, not to a moment.

A draw is a hash of (seed, row number, labeler). So the same stream gets the same draws whatever the
chunks, a block of it can be labeled anywhere, and no generator of the caller's is touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Codes, Floats, Ints

_Words = npt.NDArray[np.uint64]


def _mix(words: _Words) -> _Words:
    """The splitmix64 finaliser: every input bit moves every output bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def uniforms(seed: int, rows: Ints, columns: npt.NDArray[np.signedinteger[Any]]) -> Floats:
    """Draws in [0, 1) for row numbers and columns that broadcast against each other."""
    step = np.uint64(0x9E3779B97F4A7C15)
    start = np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64)
    words = _mix(_mix(start + step) ^ rows.astype(np.uint64))
    words = _mix((words + step) ^ columns.astype(np.int64).astype(np.uint64))
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, np.float64)


def fill_abstentions(codes: Codes, seed: int, first_row: int, n_classes: int, first_column: int = 0) -> Codes:
    """Give every abstention a random class c, written -2 - c so that it still counts as unsaid.

    >>> filled = fill_abstentions(np.array([[1, -1, 0]], np.int8), seed=0, first_row=0, n_classes=2)
    >>> filled[0, 0], filled[0, 2], filled[0, 1] in (-2, -3)
    (np.int8(1), np.int8(0), True)
    """
    rows = np.arange(first_row, first_row + codes.shape[0])[:, None]
    columns = np.arange(first_column, first_column + codes.shape[1])[None, :]
    guesses = (uniforms(seed, rows, columns) * n_classes).astype(codes.dtype)
    return np.where(codes < 0, -2 - guesses, codes)
