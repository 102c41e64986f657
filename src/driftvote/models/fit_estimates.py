"""Estimates from fits of class-conditional labelers: a fit serves many rows, so rows point at fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from driftvote import accuracies, weights
from driftvote.kernels.confusion import Fit
from driftvote.kernels.fits import CROWDING, MISFIT, look_up
from driftvote.kernels.layout import Codes, Floats, Ints, Rule
from driftvote.kernels.refits import kept
from driftvote.models.estimates import Estimates


class FitEstimates(Estimates):
    """Per row the fit that labeled it; what it says of each labeler is spread over the rows when it is asked for."""

    def __init__(self, fits: Fit, places: Ints, rule: Rule) -> None:
        self.fits = fits
        self.places = places
        self.rule = rule

    @cached_property
    def windows(self) -> Ints:  # type: ignore[override]
        return np.asarray(self.fits.window[self.places, 0])

    @cached_property
    def accuracies(self) -> Floats:
        return np.asarray(self.fits.accuracy[self.places])

    @cached_property
    def diluted_accuracies(self) -> Floats:
        return accuracies.diluted(self.accuracies, self.coverage, self.rule.n_classes)

    @cached_property
    def weights(self) -> Floats:
        return np.asarray(weights.weights_of(self.fits.accuracy, self.rule)[self.places])

    def vote_weights(self, rows: Codes) -> Floats:
        """Log-odds that each vote added to its class, against the other classes on average."""
        out = np.zeros(rows.shape)
        for t, place in enumerate(self.places.tolist()):
            fit: Any = kept(self.fits, place)
            looks = np.empty(fit.theta.shape)
            look_up(fit, looks, np.empty((2, self.rule.n_classes)))
            voters = np.flatnonzero(rows[t] >= 0)
            crowd = 1.0 + CROWDING * fit.doubts[MISFIT] * max(0, len(voters) - 1)
            for h in voters.tolist():
                said = looks[h, :, rows[t, h]]
                others = np.delete(said, rows[t, h])
                out[t, h] = (said[rows[t, h]] - np.log(np.exp(others).mean())) / crowd
        return out

    @cached_property
    def coverage(self) -> Floats:
        return np.asarray((self.fits.votes / np.maximum(1, self.fits.window))[self.places])

    @cached_property
    def class_balance(self) -> Floats:
        """Rows x classes."""
        return np.asarray(self.fits.balance[self.places])

    def __getitem__(self, rows: slice) -> FitEstimates:
        return FitEstimates(self.fits, self.places[rows], self.rule)

    @classmethod
    def joined(cls, parts: Sequence[FitEstimates]) -> FitEstimates:
        width = parts[-1].fits.coin.shape[1]
        tables = [_widened(part.fits, width) for part in parts]
        offsets = np.cumsum([0] + [len(part.fits.coin) for part in parts])
        places = [part.places + offset for part, offset in zip(parts, offsets, strict=False)]
        fits: Any = (np.concatenate(column) for column in zip(*tables, strict=True))
        return cls(Fit(*fits), np.concatenate(places), parts[-1].rule)


def _widened(fits: Fit, width: int) -> Fit:
    """Labelers that joined later: chance, silent."""
    n_fits, n, n_classes = fits.theta.shape[:3]
    more = width - n
    theta = np.zeros((n_fits, more, n_classes, n_classes + 1))
    theta[..., n_classes] = 1.0
    chance = np.full((n_fits, more), 1.0 / n_classes)
    return Fit(
        theta=np.concatenate([fits.theta, theta], axis=1),
        coin=np.concatenate([fits.coin, chance], axis=1),
        balance=fits.balance,
        doubts=fits.doubts,
        accuracy=np.concatenate([fits.accuracy, chance], axis=1),
        votes=np.concatenate([fits.votes, np.zeros((n_fits, more), np.int64)], axis=1),
        window=fits.window,
    )
