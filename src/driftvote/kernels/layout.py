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
Bytes = npt.NDArray[np.uint8]


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
    """The recent past of a stream as bits and running sums, for chunks of many rows. Made from the rows, never saved.

    Time is counted from the oldest row that was remembered when the history was made; before it lie rows without
    votes (or, where nobody ever abstains, rows on which everybody said class 0). Group g is the eight rows from
    time 8 g on. Lines: a pair's agreements (times K - 1) and, when somebody abstains, a labeler's votes. Sums wrap
    around at 32 bits: only differences are used, and those fit.
    """

    planes: Bytes  # (planes, bytes): group g in slot g mod n_bytes; the first slots are repeated behind the last
    table: Sums  # (lines, slots): sum of a line over all rows before group g, in slot g mod n_slots; as above
    past: Bytes  # (lagged windows, planes, groups): the planes as they were a window earlier, for one stretch
    lagged: Sums  # (lagged windows, lines, groups): the sums as they were a window earlier
    ends: Sums  # (lagged windows, lines): where these go on after the stretch
    places: Ints  # (lines, 2): the labelers of a pair, or -1 and the labeler whose votes are counted
    lag_of: Ints  # (windows,): place among the lagged windows, -1 for a window that is read off the table
    n_labelers: int
    n_digits: int  # binary digits of a class code
    masked: bool  # somebody abstains
    n_bytes: int
    n_slots: int


class Span(NamedTuple):
    """Which rows of a stretch to label: the history's times `first` .. `last` - 1."""

    first: int
    last: int
    group: int  # at which the stretch begins
    origin: int  # rows of the stream before time 0 of the history
    row: int  # place in the outputs of the row at time 0


class Block(NamedTuple):
    """Groups that are worked on at once."""

    group: int  # the first one
    place: int  # of it in the stretch
    slot: int  # of it in the table
    byte: int  # of it in the planes


class Scratch(NamedTuple):
    """Working arrays of one block.

    Row l of group g stands at place l G + g (G groups a block): the first rows of all groups, then the second rows
    and so on. So every step is one operation over neighbouring places, bits included.
    """

    level: Sums  # (places,)
    alive: Bytes  # (groups,): rows for which larger windows are still accepted, as bits
    gaps: Sums  # (groups + 1,): largest gap of all pairs before each group
    wide_gaps: Ints  # the same where 32 bits are too few
    agree: Bytes  # (2, groups): now and a window earlier
    both: Bytes  # (2, groups)
    running: Sums  # (groups,)
    sums: Sums  # (lines, places): over the chosen window
    other_sums: Sums  # the same, where rows of the block chose several windows
    best: Sums  # (places,)
    top: Sums  # (places,): strongest pair
    chosen: Sums  # (places,): what a search for the strongest pair found
    picked: Sums  # (3, places): sums of the pairs behind a skill
    scale: Floats  # (places,): window times K - 1
    odds: Floats  # (places,)
    estimates: Floats  # (labelers, places)
    codes: Codes  # (places,): votes of one labeler
    scores: Floats  # (classes, places): products of odds
    support: Sums  # (classes, places): votes
    row_scores: Floats  # (classes,)
    row_support: Ints  # (classes,)
