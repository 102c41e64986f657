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
def triplet_skills(sums: Ints, scale: float, out: Floats) -> None:
    """Skill q of every labeler: sqrt |C_ih C_jh / C_ij| for the strongest pair (i, j) without h.

    `sums` are C times `scale`. The strongest pair overall is the strongest without h for every h
    but its own two, so this costs three scans of the pairs and not one a labeler.
    """
    n = out.shape[0]
    top_i, top_j = strongest_pair(sums, n, -1)
    for h in range(n):
        i, j = top_i, top_j
        if h == top_i or h == top_j:
            i, j = strongest_pair(sums, n, h)
        divisor = abs(sums[pair_index(i, j, n)])
        if divisor == 0:
            out[h] = 0.0
            continue
        # Products below 2^53 (for two classes: windows up to 2^26) are exact, so equal ratios give equal
        # floats and equal weights, and ties of the vote are real ties.
        product = float(sums[pair_index(i, h, n)]) * float(sums[pair_index(j, h, n)])
        out[h] = math.sqrt(abs(product) / (float(divisor) * scale))


@jit
def accuracy_when_voting(skill: float, votes: int, window: int, n_classes: int) -> float:
    """Accuracy on the rows where the labeler votes; 1/K when it never does."""
    if votes == 0:
        return 1.0 / n_classes
    # A labeler without abstentions keeps its skill to the last bit.
    inside = skill if votes == window else skill * window / votes
    return min(1.0, (1.0 + (n_classes - 1) * inside) / n_classes)


@jit
def diluted_accuracy(skill: float, n_classes: int) -> float:
    """Accuracy when every abstention is counted as a blind guess."""
    return min(1.0, (1.0 + (n_classes - 1) * skill) / n_classes)


@jit
def accuracies_when_voting(skills: Floats, votes: Ints, windows: Ints, n_classes: int, out: Floats) -> None:
    """Accuracy of every labeler on every row of a chunk."""
    for t in range(skills.shape[0]):
        for h in range(skills.shape[1]):
            out[t, h] = accuracy_when_voting(skills[t, h], votes[t, h], windows[t], n_classes)
