"""Small random streams, the data folder, and whether kernels are compiled."""

from __future__ import annotations

import os
from pathlib import Path

import numba
import numpy as np
import pytest

PAPERS_RULE = {"estimator": "triplet", "bound": "mcdiarmid"}
"""Settings of the paper's method, which tests/naive.py restates; abstentions stay as they are."""

COMPILED = not numba.config.DISABLE_JIT

DATA = Path(os.environ.get("DRIFTVOTE_DATA", Path(__file__).parents[2] / "shared" / "data"))

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real vote streams at {DATA}; set DRIFTVOTE_DATA to their folder"
)


def rows_for(compiled: int, plain: int) -> int:
    """Rows of a test stream: many when kernels are compiled, few when Python runs them."""
    return compiled if COMPILED else plain


def random_stream(
    seed: int, n_rows: int, n_labelers: int, n_classes: int = 2, abstain: float = 0.0, blocks: int = 3
) -> np.ndarray:
    """Votes of labelers whose accuracies jump between blocks; class codes, -1 abstains."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_rows)
    accuracy = rng.uniform(1 / n_classes, 0.98, size=(blocks, n_labelers))
    block = np.minimum(np.arange(n_rows) * blocks // n_rows, blocks - 1)
    right = rng.random((n_rows, n_labelers)) < accuracy[block]
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=right.shape)) % n_classes
    votes = np.where(right, truth[:, None], wrong)
    votes[rng.random(votes.shape) < abstain] = -1
    return votes.astype(np.int8)


def random_chunks(seed: int, n_rows: int, largest: int = 700) -> list[slice]:
    """Borders that cut a stream into chunks of random length, single rows among them."""
    rng = np.random.default_rng(seed)
    borders = [0]
    while borders[-1] < n_rows:
        borders.append(min(n_rows, borders[-1] + int(rng.choice([1, 2, rng.integers(1, largest)]))))
    return [slice(a, b) for a, b in zip(borders, borders[1:], strict=False)]
