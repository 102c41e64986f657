"""The plain majority: every labeler counts the same, and nothing is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.label_models.interface import KERNELS, Estimator, always_follow
from driftvote.core.state import StreamState
from driftvote.core.voting import EQUAL_WEIGHT, accuracy_at_weight, majority_row


class MajoritySettings(NamedTuple):
    """The number of classes."""

    n_classes: int


class MajorityFit(NamedTuple):
    """Who voted in the window."""

    votes: Ints  # (labelers,)
    window: Ints  # (1,)


class MajorityTables(NamedTuple):
    """Nothing has to be prepared."""

    ready: Ints  # (1,)


def select_fit(settings: MajoritySettings, fits: MajorityFit, place: int) -> MajorityFit:
    """Return one of many fits."""
    return MajorityFit(fits.votes[place], fits.window[place])


def fit_window(
    settings: MajoritySettings,
    state: StreamState,
    level: int,
    window: int,
    begun: bool,
    room: Floats,
    tables: MajorityTables,
    fit: MajorityFit,
) -> None:
    """Count the votes of the window."""
    n = fit.votes.shape[0]
    for h in range(n):
        fit.votes[h] = state.sums[level, state.sums.shape[1] - n + h]
    fit.window[0] = window


def fill_tables(settings: MajoritySettings, fit: MajorityFit, tables: MajorityTables) -> None:
    """Nothing to do."""
    tables.ready[0] = 1


def label_row(
    settings: MajoritySettings, tables: MajorityTables, row: Codes, draw: float, support: Ints, proba: Floats
) -> int:
    """Return the majority of one row and fill in the shares of the votes."""
    return majority_row(row, draw, support, proba)


KERNELS.register(
    MajoritySettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    follows_agreements=always_follow,
    label_row=label_row,
)


@dataclass(frozen=True)
class Majority(Estimator):
    """The class with the most votes; every vote weighs 1, and accuracies are assumed, not estimated."""

    name: ClassVar[str] = "majority"
    fits_every_row: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False
    counts_votes: ClassVar[bool] = True
    min_labelers: ClassVar[int] = 1

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> MajoritySettings:
        """Return the settings as kernels need them."""
        return MajoritySettings(n_classes)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> MajorityFit:
        """Return arrays for so many fits."""
        return MajorityFit(np.zeros((n_fits, n_labelers), np.int64), np.zeros((n_fits, 1), np.int64))

    def new_tables(self, settings: MajoritySettings, n_labelers: int) -> MajorityTables:
        """Return room for what `fill_tables` prepares."""
        return MajorityTables(np.zeros(1, np.int64))

    def accuracies(self, settings: Any, fits: MajorityFit) -> Floats:
        """Return the one accuracy that a log-odds weight of 1 stands for."""
        return np.full(fits.votes.shape, accuracy_at_weight(EQUAL_WEIGHT, settings.n_classes))

    def vote_weights(self, settings: Any, fits: MajorityFit, places: Ints, rows: Codes) -> Floats:
        """Return the log-odds that each vote added to its class on its row."""
        return np.where(rows >= 0, EQUAL_WEIGHT, 0.0)
