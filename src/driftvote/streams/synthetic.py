"""Simulated streams whose truth and accuracies are known at every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftvote.errors import SettingError
from driftvote.kernels.layout import Codes, Floats, Ints, code_dtype


@dataclass(frozen=True)
class SimulatedStream:
    """Votes with what nobody knows in real life: the true labels and the labelers' accuracies."""

    votes: Codes  # (rows, labelers): class codes, -1 abstains
    truth: Ints  # (rows,)
    accuracies: Floats  # (rows, labelers): when voting
    n_classes: int
    borders: tuple[int, ...] = ()  # rows at which a new regime begins

    def score(self, codes: Ints, part: slice = slice(None)) -> float:
        """Share of the rows in `part` that are labeled right; a tied row counts 1/K."""
        right = np.where(codes < 0, 1.0 / self.n_classes, codes == self.truth)
        return float(right[part].mean())


def simulate(
    accuracies: Floats,
    seed: int,
    n_classes: int = 2,
    coverage: float | Floats = 1.0,
    borders: tuple[int, ...] = (),
    class_balance: Floats | None = None,
) -> SimulatedStream:
    """Independent labelers with the given accuracies, row by row; wrong votes fall evenly on the other classes.

    `accuracies` is a table of rows x labelers, or of rows x labelers x classes when a labeler is better at one class
    than at another; the stream then holds what is right on average over the classes of that row. `class_balance`
    is a table of rows x classes, the shares of the classes; without it all classes are as likely.

    >>> stream = simulate(np.full((1000, 3), 0.9), seed=0)
    >>> bool(abs((stream.votes == stream.truth[:, None]).mean() - 0.9) < 0.02)
    True
    """
    accuracies = np.asarray(accuracies, np.float64)
    if accuracies.ndim not in (2, 3) or not ((accuracies >= 0) & (accuracies <= 1)).all():
        raise SettingError("accuracies must be a table of rows x labelers with values from 0 to 1")
    if accuracies.ndim == 3 and accuracies.shape[2] != n_classes:
        raise SettingError(f"accuracies by class must have {n_classes} classes, not {accuracies.shape[2]}")
    rng = np.random.default_rng(seed)
    truth = _truth(rng, len(accuracies), n_classes, class_balance)
    now, on_average = accuracies, accuracies
    if accuracies.ndim == 3:
        shares = np.full((len(truth), n_classes), 1 / n_classes) if class_balance is None else class_balance
        now = np.take_along_axis(accuracies, truth[:, None, None], axis=2)[:, :, 0]
        on_average = (accuracies * shares[:, None, :]).sum(axis=2)
    right = rng.random(now.shape) < now
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=now.shape)) % n_classes
    votes = np.where(right, truth[:, None], wrong)
    votes[rng.random(now.shape) >= coverage] = -1
    return SimulatedStream(votes.astype(code_dtype(n_classes)), truth, on_average, n_classes, borders)


def _truth(rng: np.random.Generator, n_rows: int, n_classes: int, balance: Floats | None) -> Ints:
    if balance is None:
        return rng.integers(n_classes, size=n_rows)
    if balance.shape != (n_rows, n_classes) or (balance < 0).any() or not np.allclose(balance.sum(axis=1), 1):
        raise SettingError("class_balance must be a table of rows x classes, each row adding up to 1")
    below = np.cumsum(balance, axis=1)[:, :-1]
    return (rng.random((n_rows, 1)) >= below).sum(axis=1)


def swap(n_rows: int = 20_000, seed: int = 0) -> SimulatedStream:
    """Three good labelers and two poor ones that change places half-way.

    The stream on which a label model fitted to all the data does worse than a majority vote.
    """
    half = n_rows // 2
    before, after = [0.9, 0.9, 0.9, 0.55, 0.55], [0.55, 0.55, 0.55, 0.9, 0.9]
    return simulate(np.array([before] * half + [after] * (n_rows - half)), seed, borders=(half,))


def paper_blocks(block: int = 5_000, seed: int = 0) -> SimulatedStream:
    """The paper's synthetic stream: blocks of T, 2T and T rows, one labeler of three poor in each."""
    regimes = [([0.6, 0.9, 0.9], block), ([0.9, 0.6, 0.9], 2 * block), ([0.9, 0.9, 0.6], block)]
    rows = np.concatenate([np.tile(accuracy, (length, 1)) for accuracy, length in regimes])
    return simulate(rows, seed, borders=(block, 3 * block))
