"""The method restated by definition: loops, fractions, no state. Slow, and easy to check by eye.

Nothing here is imported from the package. A stream is an array of class codes (-1 abstains), already
filled where abstentions are random votes (`counted`), beside the codes as they were cast (`cast`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np


@dataclass
class Settings:
    n_classes: int = 2
    windows: tuple[int, ...] = tuple(2**k for k in range(20))
    beta: float = 0.1
    delta: float = 0.1
    clip: tuple[float, float] = (0.1, 0.9)
    random_abstentions: bool = False


@dataclass
class Row:
    window: int
    accuracies: list[float]
    diluted: list[float]
    coverage: list[float]
    vote_weights: list[float]  # what each vote added to the log-odds of its class; 0 for an abstention
    label: int
    proba: list[float]


def agreement_table(counted: np.ndarray, n_classes: int) -> np.ndarray:
    """Per row and pair: 1 if they agree, -1/(K-1) if not, 0 with an abstention, all times K - 1."""
    left, right = counted[:, :, None], counted[:, None, :]
    agree = np.where(left == right, n_classes - 1, -1)
    return np.where((left < 0) | (right < 0), 0, agree).astype(np.int64)


def threshold(k: int, n: int, settings: Settings) -> float:
    sizes, m = settings.windows, len(settings.windows)
    a = math.sqrt(2 * math.log((2 * m - 1) * n * (n - 1) / settings.delta))
    return a * (2 * settings.beta / math.sqrt(sizes[k]) + math.sqrt((1 - sizes[k] / sizes[k + 1]) / sizes[k]))


def choose_window(table: np.ndarray, t: int, settings: Settings, first: int = 0) -> int:
    """Algorithm 1, lines 2 to 6, after t rows; `table` holds the rows' pair agreements. Rows before `first` are out."""
    sizes, n_classes = settings.windows, settings.n_classes
    n = table.shape[1]
    upper = np.triu_indices(n, 1)
    shrink = Fraction(n_classes, 2 * (n_classes - 1))
    k = 0
    while k < len(sizes) - 1 and sizes[k + 1] <= t - first:
        small, large = sizes[k], sizes[k + 1]
        near = table[t - small : t].sum(axis=0)[upper]
        wide = table[t - large : t].sum(axis=0)[upper]
        # |C_large - C_small| over a common denominator, compared without rounding.
        largest = int(np.abs(wide * small - near * large).max())
        difference = Fraction(largest, small * large * (n_classes - 1))
        if difference <= Fraction(threshold(k, n, settings)) * shrink:
            k += 1
        else:
            break
    return min(sizes[k], t - first)


def windows_of_stream(votes: np.ndarray, settings: Settings) -> np.ndarray:
    """`choose_window` after every row of a long stream: the same comparisons, in integers, for all rows at once."""
    sizes, k, n = settings.windows, settings.n_classes, votes.shape[1]
    rows = np.arange(1, len(votes) + 1)
    limits = [
        math.floor(Fraction(threshold(step, n, settings)) * Fraction(k, 2) * sizes[step] * sizes[step + 1])
        for step in range(len(sizes) - 1)
    ]
    refused = np.zeros((len(sizes) - 1, len(votes)), bool)
    for i, j in combinations(range(n), 2):
        both = (votes[:, i] >= 0) & (votes[:, j] >= 0)
        agreement = np.where(both, np.where(votes[:, i] == votes[:, j], k - 1, -1), 0)
        total = np.concatenate([[0], np.cumsum(agreement)])
        for step, (small, large) in enumerate(zip(sizes, sizes[1:], strict=False)):
            if large <= len(votes):
                near = total[large:] - total[large - small : -small]
                wide = total[large:] - total[:-large]
                refused[step, large - 1 :] |= np.abs(wide * small - near * large) > limits[step]
    windows = np.minimum(sizes[0], rows)
    growing = np.ones(len(votes), bool)
    for step, large in enumerate(sizes[1:]):
        growing &= (large <= rows) & ~refused[step]
        windows[growing] = large
    return windows


def skills(sums: np.ndarray, window: int, n_classes: int) -> list[float]:
    """Lines 8 to 12 with q = (K p - 1) / (K - 1) in place of 2 p - 1."""
    n = sums.shape[0]
    out = []
    for h in range(n):
        best = None
        for i, j in combinations([x for x in range(n) if x != h], 2):
            if best is None or abs(int(sums[i, j])) > abs(int(sums[best])):
                best = (i, j)
        i, j = best
        if sums[i, j] == 0:
            out.append(0.0)
            continue
        ratio = Fraction(int(sums[i, h]) * int(sums[j, h]), int(sums[i, j]) * window * (n_classes - 1))
        out.append(math.sqrt(abs(ratio)))
    return out


def label_row(table: np.ndarray, counted: np.ndarray, cast: np.ndarray, t: int, settings: Settings, window: int) -> Row:
    n_classes, n = settings.n_classes, cast.shape[1]
    q = skills(table[t - window : t].sum(axis=0), window, n_classes)
    coverage = [(cast[t - window : t, h] >= 0).sum() / window for h in range(n)]
    accuracies = [
        min(1.0, (1 + (n_classes - 1) * x / c) / n_classes) if c > 0 else 1 / n_classes
        for x, c in zip(q, coverage, strict=True)
    ]
    if settings.random_abstentions:
        diluted = [min(1.0, (1 + (n_classes - 1) * x) / n_classes) for x in q]
    else:
        diluted = [1 / n_classes + c * (p - 1 / n_classes) for p, c in zip(accuracies, coverage, strict=True)]
    low, high = min(settings.clip[0], 1 / n_classes), settings.clip[1]
    chosen = diluted if settings.random_abstentions else accuracies
    clipped = [min(max(p, low), high) for p in chosen]
    weights = [math.log((n_classes - 1) * p / (1 - p)) for p in clipped]
    label, proba = weighted_vote(counted[t - 1], weights, n_classes)
    added = [weight if vote >= 0 else 0.0 for vote, weight in zip(cast[t - 1], weights, strict=True)]
    return Row(window, accuracies, diluted, coverage, added, label, proba)


def weighted_vote(row: np.ndarray, weights: list[float], n_classes: int) -> tuple[int, list[float]]:
    """Label (-1 on a tie) and softmax of the summed weights."""
    scores = [math.fsum(w for v, w in zip(row, weights, strict=True) if v == c) for c in range(n_classes)]
    voted = [c for c in range(n_classes) if (row == c).any()]
    top = max((scores[c] for c in voted), default=0.0)
    close = [c for c in voted if abs(scores[c] - top) < 1e-9]
    label = close[0] if len(close) == 1 else -1
    exps = [math.exp(s - max(scores)) for s in scores]
    return label, [e / math.fsum(exps) for e in exps]


def adaptive(
    counted: np.ndarray, cast: np.ndarray, settings: Settings, floors: list[tuple[int, int]] | None = None
) -> list[Row]:
    """Every row of a stream, each from scratch. Floors (row, first): from that row on, no row before the first counts."""
    table = agreement_table(counted, settings.n_classes)
    rows = []
    for t in range(1, len(cast) + 1):
        first = max((first for row, first in floors or [] if row < t), default=0)
        window = choose_window(table, t, settings, first)
        rows.append(label_row(table, counted, cast, t, settings, window))
    return rows


def fixed(counted: np.ndarray, cast: np.ndarray, window: int | None, settings: Settings) -> list[Row]:
    """The same estimator on the last `window` rows (None: all the past)."""
    table = agreement_table(counted, settings.n_classes)
    rows = []
    for t in range(1, len(cast) + 1):
        size = t if window is None else min(window, t)
        rows.append(label_row(table, counted, cast, t, settings, size))
    return rows


def majority(counted: np.ndarray, n_classes: int) -> list[tuple[int, list[float]]]:
    """Plurality of each row among its votes; vote shares."""
    out = []
    for row in counted:
        counts = [int((row == c).sum()) for c in range(n_classes)]
        total = sum(counts)
        best = [c for c in range(n_classes) if counts[c] == max(counts) and total]
        shares = [c / total for c in counts] if total else [1 / n_classes] * n_classes
        out.append((best[0] if len(best) == 1 else -1, shares))
    return out
