"""The arrays that kernels pass around, by name.

Numba compiles named tuples of arrays, so a kernel takes a handful of arguments that say what they
are instead of twenty that do not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.signedinteger[Any]]  # encoded votes: int8, or int16 beyond 126 classes
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Sums = npt.NDArray[np.int32]


def code_dtype(n_classes: int) -> np.dtype[np.signedinteger[Any]]:
    """The narrowest type that holds a class code, -1, and a random fill's -2 - class."""
    return np.dtype(np.int8 if n_classes <= 126 else np.int16)


class Memory(NamedTuple):
    """What a stream remembers. Its size depends on the grid and the labelers, never on the rows."""

    ring: Codes  # (largest window, labelers): row t (from 0) sits in slot t mod capacity
    sums: Ints  # (windows, pairs): pair agreements times K - 1, pairs in lexicographic order
    votes: Ints  # (windows, labelers): votes that were not abstentions
    clock: Ints  # (1,): rows seen


class Rule(NamedTuple):
    """The settings, in the form that kernels need."""

    sizes: Ints  # window sizes, increasing
    near: Ints  # level k compares |near S_(k+1) - far S_k| with limit, all integers
    far: Ints
    limit: Ints
    certain: Bools | Ints  # levels whose test cannot fail
    n_classes: int
    clip_low: float
    clip_high: float
    diluted: bool  # weigh by the diluted accuracy (abstentions are random votes)
    by_logs: bool  # so many labelers that products of their odds could overflow


class Outputs(NamedTuple):
    """What a chunk of rows comes back with, one entry a row."""

    labels: Ints  # class code, -1 = abstain
    proba: Floats  # (rows, classes)
    windows: Ints
    estimates: Floats  # (rows, labelers): the accuracy that weighs the vote
    votes: Ints  # (rows, labelers): votes inside the window; without rows when nobody ever abstained


class History(NamedTuple):
    """Running sums over the recent past, for chunks of many rows. Made from the rows, never saved.

    A line for each pair (agreements times K - 1) and, when somebody abstains, one for each labeler (votes).
    Sums wrap around at 32 bits: only differences are used, and those fit.
    """

    table: Sums  # (lines, slots): sum of a line over all rows up to time t, in slot t mod capacity
    lagged: Sums  # (far windows, lines, rows): the same a window earlier, for windows beyond the slots
    places: Ints  # (lines, 2): the labelers of a pair, or -1 and the labeler whose votes are counted
    capacity: int  # slots that count; the first ones are repeated behind them, so that slices never wrap
    n_near: int  # windows whose past is inside the slots


class Stretch(NamedTuple):
    """Rows that enter the history together, as columns."""

    counted: Codes  # (labelers, rows): the class that counts, -1 for none
    cast: Codes  # (labelers, rows): the class that was cast, -1 for none; without rows when nobody abstains
    left_counted: Codes  # (far windows, labelers, rows): of the rows that leave each far window meanwhile
    left_cast: Codes


class Block(NamedTuple):
    """Which rows: `time` rows have been seen after its first one."""

    time: int
    offset: int  # of its first row in the stretch
    row: int  # of its first row in the outputs
    n_rows: int


class Scratch(NamedTuple):
    """Working arrays of one block: time runs along the last axis, so that loops are contiguous."""

    level: Sums  # (rows,)
    alive: Sums  # (rows,): 1 while larger windows are still accepted
    fail: Sums  # (rows,)
    sums: Sums  # (lines, rows): over the chosen window
    best: Sums  # (rows,)
    top: Sums  # (rows,): strongest pair
    chosen: Sums  # (rows,): what a search for the strongest pair found
    scale: Floats  # (rows,): window times K - 1
    odds: Floats  # (rows,)
    estimates: Floats  # (labelers, rows)
    scores: Floats  # (classes, rows): products of odds
    support: Sums  # (classes, rows): votes
    row_scores: Floats  # (classes,)
    row_support: Ints  # (classes,)
