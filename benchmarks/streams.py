"""Votes to measure on: noisy labelers whose accuracies jump from time to time, made block by block."""

from __future__ import annotations

import numpy as np

from benchmarks.plan import STREAMS, Case

BLOCK = 1 << 16


def make_votes(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Class codes (rows x labelers, int8, -1 abstains) and the true classes.

    Random numbers are drawn for a block of rows at a time: the floats of ten million rows would be
    larger than everything that is measured on them.
    """
    rng = np.random.default_rng(case.seed)
    codes = np.empty((case.rows, case.labelers), np.int8)
    truth = np.empty(case.rows, np.int8)
    every = STREAMS[case.stream] or case.rows
    accuracies = rng.uniform(0.6, 0.9, size=(-(-case.rows // every), case.labelers)).astype(np.float32)
    for start in range(0, case.rows, BLOCK):
        rows = np.arange(start, min(start + BLOCK, case.rows))
        shape = (len(rows), case.labelers)
        right = rng.random(shape, np.float32) < accuracies[rows // every]
        true = rng.integers(case.classes, size=(len(rows), 1), dtype=np.int8)
        wrong = (true + rng.integers(1, case.classes, size=shape, dtype=np.int8)) % case.classes
        block = np.where(right, true, wrong)
        if case.abstain:
            block[rng.random(shape, np.float32) < case.abstain] = -1
        codes[rows[0] : rows[-1] + 1] = block
        truth[rows[0] : rows[-1] + 1] = true[:, 0]
    return codes, truth


def signed(codes: np.ndarray) -> np.ndarray:
    """The same votes as -1 and +1 (0 abstains), int8: what the majority line reads.

    With more than two classes odd classes count as +1. A majority of many classes costs more than this
    line; the line is kept so that every table has one yardstick.
    """
    return np.where(codes < 0, 0, np.where(codes % 2 == 1, 1, -1)).astype(np.int8)


def majority(votes: np.ndarray) -> np.ndarray:
    """The line that a user would write."""
    return np.sign(votes.sum(axis=1))


def pair_agreements(codes: np.ndarray) -> list[list[int]]:
    """For every row, whether each pair of labelers agrees: what one detector per pair is fed with."""
    left, right = np.triu_indices(codes.shape[1], 1)
    return (codes[:, left] == codes[:, right]).astype(int).tolist()
