"""The method as one would first write it in NumPy: every window is computed anew at every row.

Algorithm 1 by its definition, votes -1 and +1, vectorised over the rows of a window. It is what the
incremental kernels are compared with, and doubles as a check: both must choose the same window and label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.ours import new_model, touch
from benchmarks.plan import Case, Plan
from benchmarks.streams import make_votes, signed
from benchmarks.timing import interleave, middle, ratio

SIZES = [2**k for k in range(20)]
BETA = DELTA = 0.1
CLIP = (0.1, 0.9)

Agreement = Callable[[np.ndarray], np.ndarray]


def by_definition(window: np.ndarray) -> np.ndarray:
    """The mean of l_i l_j over the rows of the window, for every pair."""
    return (window[:, :, None] * window[:, None, :]).mean(axis=0)


def by_matrix_product(window: np.ndarray) -> np.ndarray:
    """The same as a product of matrices in floating point, the fastest that NumPy can do."""
    rows = window.astype(np.float64)
    return rows.T @ rows / len(rows)


def threshold(small: int, large: int, labelers: int) -> float:
    """T(k) of Algorithm 1."""
    factor = math.sqrt(2 * math.log((2 * len(SIZES) - 1) * labelers * (labelers - 1) / DELTA))
    return factor * (2 * BETA / math.sqrt(small) + math.sqrt((1 - small / large) / small))


def choose(votes: np.ndarray, agreement: Agreement) -> tuple[int, np.ndarray]:
    """The window after the last row of `votes`, and the agreements in it."""
    rows, labelers = votes.shape
    k, near = 0, agreement(votes[-SIZES[0] :])
    while k + 1 < len(SIZES) and SIZES[k + 1] <= rows:
        wide = agreement(votes[-SIZES[k + 1] :])
        if np.abs(wide - near).max() > threshold(SIZES[k], SIZES[k + 1], labelers):
            break
        k, near = k + 1, wide
    return SIZES[k], near


def accuracies(agreements: np.ndarray) -> np.ndarray:
    """For each labeler the pair of others that agrees most, and the accuracy that follows from it."""
    labelers = len(agreements)
    found = np.full(labelers, 0.5)
    for h in range(labelers):
        strength = np.abs(agreements)
        strength[h, :] = strength[:, h] = -1.0
        np.fill_diagonal(strength, -1.0)
        i, j = np.unravel_index(np.argmax(strength), strength.shape)
        if agreements[i, j]:
            found[h] = (1 + math.sqrt(abs(agreements[i, h] * agreements[j, h] / agreements[i, j]))) / 2
    return found


def label_last(votes: np.ndarray, agreement: Agreement = by_definition) -> tuple[int, int, np.ndarray]:
    """Label (-1, +1, or 0 for a tie), window and accuracies of the last row, from all rows so far."""
    window, agreements = choose(votes, agreement)
    found = accuracies(agreements)
    right = np.clip(found, *CLIP)
    return int(np.sign(votes[-1] @ np.log(right / (1 - right)))), window, found


def recompute(plan: Plan, labelers: int = 10) -> dict[str, Any]:
    """Time of one row at row `plan.recompute_row`, beside `label_stream` on the rows that follow.

    The stream is steady: that lets the window grow as far as it can, which is where recomputing is dear.
    """
    at = plan.recompute_row
    codes, _ = make_votes(Case(2 * at, labelers, stream="steady"))
    past = signed(codes)[:at]
    model = new_model()
    model.partial_fit(codes[:at])
    warm = [model.copy() for _ in range(plan.rounds + 1)]
    touch(warm.pop().label_stream(codes[at:]))
    sides = {
        "definition": lambda: label_last(past),
        "product": lambda: label_last(past, by_matrix_product),
        "ours": lambda: touch(warm.pop().label_stream(codes[at:])),
    }
    times = interleave(sides, plan.rounds, 3 * plan.budget)
    rows = len(codes) - at
    return {
        "row": at,
        "labelers": labelers,
        "rounds": len(times["ours"]),
        "window": label_last(past)[1],
        "definition_ms": middle(times["definition"]) * 1e3,
        "product_ms": middle(times["product"]) * 1e3,
        "ours_us": middle(times["ours"]) / rows * 1e6,
        "times_faster": rows * ratio(times, "definition", "ours"),
        "times_faster_than_product": rows * ratio(times, "product", "ours"),
    }
