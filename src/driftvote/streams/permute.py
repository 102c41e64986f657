"""Drift by renaming: every now and then the labelers change places."""

from __future__ import annotations

import numpy as np

from driftvote.errors import SettingError
from driftvote.kernels.layout import Codes, Ints


def permuted(votes: Codes, seed: int, rate: float = 1e-3) -> tuple[Codes, Ints]:
    """Votes under shuffled names, and the rows at which names were shuffled (the paper's "permute").

    Before each row, with probability `rate`, the labelers' names are shuffled anew; they stay so until the next
    time.

    >>> votes = np.arange(12).reshape(4, 3)
    >>> moved, rows = permuted(votes, seed=1, rate=1.0)
    >>> rows, bool((np.sort(moved, axis=1) == votes).all())
    (array([0, 1, 2, 3]), True)
    """
    if not 0.0 <= rate <= 1.0:
        raise SettingError(f"rate must lie between 0 and 1, not {rate!r}")
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(votes)) < rate)
    moved = votes.copy()
    for first, last in zip(rows, [*rows[1:], len(votes)], strict=False):
        moved[first:last] = votes[first:last, rng.permutation(votes.shape[1])]
    return moved, rows
