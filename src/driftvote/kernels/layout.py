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
    certain: Bools  # levels whose test cannot fail
    n_classes: int
    clip_low: float
    clip_high: float
    diluted: bool  # weigh by the diluted accuracy (abstentions are random votes)


class Outputs(NamedTuple):
    """What a chunk of rows comes back with, one entry a row."""

    labels: Ints  # class code, -1 = abstain
    proba: Floats  # (rows, classes)
    windows: Ints
    skills: Floats  # (rows, labelers): diluted, 0 = chance, 1 = always right; may exceed 1
    votes: Ints  # (rows, labelers): votes inside the window
