"""From pair agreements to the skill of each labeler: Algorithm 1, lines 8 to 12."""

from __future__ import annotations

import math

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Floats, Ints


@jit
def pair_index(i: int, j: int, n: int) -> int:
    """Place of the pair in lexicographic order, whichever way round it is named."""
    if i > j:
        i, j = j, i
    return i * n - i * (i + 1) // 2 + j - i - 1


@jit
def strongest_pair(sums: Ints, n: int, without: int) -> tuple[int, int]:
    """The first pair, in lexicographic order, with the largest |sum|, leaving one labeler out."""
    best = -1
    best_i = -1
    best_j = -1
    pair = 0
    for i in range(n):
        for j in range(i + 1, n):
            size = abs(sums[pair])
            if size > best and i != without and j != without:
                best = size
                best_i = i
                best_j = j
            pair += 1
    return best_i, best_j


@jit
def skill(left: int, right: int, across: int, scale: float) -> float:
    """q = sqrt |C_ih C_jh / C_ij| from the three pair sums, which are C times `scale`; 0 if C_ij is 0."""
    if across == 0:
        return 0.0
    # Products below 2^53 (for two classes: windows up to 2^26) are exact, so equal ratios give equal floats, equal
    # odds, and ties of the vote that are real ties.
    return math.sqrt(abs(float(left) * float(right)) / (abs(float(across)) * scale))


@jit
def accuracy_of(q: float, votes: int, window: int, n_classes: int, diluted: bool) -> float:
    """The accuracy that weighs a vote: when voting, or diluted by the abstentions; 1/K for who never votes."""
    if not diluted and votes != window:
        if votes == 0:
            return 1.0 / n_classes
        q = q * window / votes
    return min(1.0, (1.0 + (n_classes - 1) * q) / n_classes)


@jit
def triplet_accuracies(sums: Ints, votes: Ints, window: int, n_classes: int, diluted: bool, out: Floats) -> None:
    """Accuracy of every labeler, each from the strongest pair of others (Algorithm 1, lines 8 to 12).

    The strongest pair overall is the strongest without h for every h but its own two, so this costs three scans of
    the pairs and not one a labeler.
    """
    n = out.shape[0]
    scale = float(window) * (n_classes - 1)
    top_i, top_j = strongest_pair(sums, n, -1)
    for h in range(n):
        i, j = top_i, top_j
        if h == top_i or h == top_j:
            i, j = strongest_pair(sums, n, h)
        left, right = sums[pair_index(i, h, n)], sums[pair_index(j, h, n)]
        q = skill(left, right, sums[pair_index(i, j, n)], scale)
        out[h] = accuracy_of(q, votes[h], window, n_classes, diluted)
