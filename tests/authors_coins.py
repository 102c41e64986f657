"""The image table by the authors' own arithmetic and coins.

Their code adds floats, so that some real ties come out as a last bit and are decided by it, and tosses its coins from
the generator that drew the stream, one strategy after the other at every row. This restates that, to show that the
lines of the paper's table with many ties are that one draw.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from driftvote.streams.awa2 import BLOCK, FIRST_GROUP, RATIOS, SECOND_GROUP, Awa2

WINDOWS = [2**k for k in range(15)]


def table(data: Awa2, seeds: range) -> dict[object, float]:
    """Per cent right of every strategy, mean over the streams."""
    runs = [one_stream(data, seed) for seed in seeds]
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def one_stream(data: Awa2, seed: int) -> dict[object, float]:
    rng = np.random.RandomState(seed)
    rows, truth = [], []
    for ratio in RATIOS:
        for _ in range(BLOCK):
            group, second = int(rng.binomial(1, 0.5)), int(rng.binomial(1, ratio))
            images = data.votes[(FIRST_GROUP, SECOND_GROUP)[group][second]]
            rows.append(images[rng.choice(len(images))])
            truth.append(2 * group - 1)
    votes, truth = 2 * np.array(rows, np.int64) - 1, np.array(truth)
    sums = {"majority": votes.sum(axis=1).astype(float)}
    sums |= {window: weighted_sums(votes, window) for window in WINDOWS}
    sums["all past"] = weighted_sums(votes, len(votes))
    said = {name: np.sign(values) for name, values in sums.items()}
    for row in range(len(votes)):
        for name, values in sums.items():
            if values[row] == 0:
                said[name][row] = rng.choice([-1, 1], [1])[0]
    return {name: float(100 * (labels == truth).mean()) for name, labels in said.items()}


def weighted_sums(votes: np.ndarray, window: int) -> np.ndarray:
    """The weighted vote of every row in floats, weights from the last `window` rows."""
    n_rows, n = votes.shape
    running = np.concatenate([np.zeros((1, n, n)), np.cumsum(votes[:, :, None] * votes[:, None, :], axis=0)])
    times = np.arange(1, n_rows + 1)
    used = np.minimum(times, window)
    matrix = (running[times] - running[times - used]) / used[:, None, None]
    total = np.zeros(n_rows)
    for h in range(n):
        pairs = list(combinations([x for x in range(n) if x != h], 2))
        strength = np.stack([np.abs(matrix[:, i, j]) for i, j in pairs], axis=1)
        best = strength.argmax(axis=1)
        i, j = np.array(pairs)[best].T
        at = np.arange(n_rows)
        across = matrix[at, i, j]
        ratio = np.abs(matrix[at, i, h] * matrix[at, j, h] / np.where(across == 0, 1, across))
        p = np.where(across == 0, 0.5, np.minimum(0.9, (1 + np.sqrt(ratio)) / 2))
        total += votes[:, h].astype(np.float32) * np.log(p / (1 - p))
    return total
