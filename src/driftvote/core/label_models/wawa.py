"""Agreement-weighted majority (Wawa): each vote weighs as much as its labeler agrees with the majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftvote import settings as checks
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.label_models.interface import KERNELS, SHARES, Estimator, always_follow
from driftvote.core.patterns import Patterns, find_patterns, new_patterns, start_from_majority
from driftvote.core.state import StreamState, vote_of
from driftvote.core.voting import count_votes, pick_likeliest


class WawaSettings(NamedTuple):
    """The number of classes."""

    n_classes: int


class WawaFit(NamedTuple):
    """The agreement of each labeler with the majority of the rows that it votes on."""

    accuracy: Floats  # (labelers,)
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


class WawaTables(NamedTuple):
    """What labeling needs of a fit."""

    weights: Floats  # (labelers,)
    ready: Ints  # (1,)


def select_fit(settings: WawaSettings, fits: WawaFit, place: int) -> WawaFit:
    """Return one of many fits."""
    return WawaFit(fits.accuracy[place], fits.votes[place], fits.window[place])


def fit_window(
    settings: WawaSettings,
    state: StreamState,
    level: int,
    window: int,
    begun: bool,
    patterns: Patterns,
    tables: WawaTables,
    fit: WawaFit,
) -> None:
    """Count how often each labeler votes as the majority does; verified rows count by their class."""
    n = fit.accuracy.shape[0]
    find_patterns(state, window, patterns)
    start_from_majority(patterns)
    for h in range(n):
        fit.votes[h] = state.sums[level, state.sums.shape[1] - n + h]
        hits, cast = 0.0, 0.0
        for q in range(patterns.size[0]):
            code = patterns.codes[h, q]
            if code > 0:
                cast += patterns.rows[q]
                hits += patterns.rows[q] * patterns.majority[code - 1, q]
        fit.accuracy[h] = hits / cast if cast > 0.0 else 1.0 / settings.n_classes
    fit.window[0] = window


def fill_tables(settings: WawaSettings, fit: WawaFit, tables: WawaTables) -> None:
    """Take over the weights."""
    for h in range(fit.accuracy.shape[0]):
        tables.weights[h] = fit.accuracy[h]
    tables.ready[0] = 1


def label_row(settings: WawaSettings, tables: WawaTables, row: Codes, draw: float, support: Ints, proba: Floats) -> int:
    """Return the class with the largest sum of weights; probabilities are shares of the weights."""
    votes = count_votes(row, support)
    total = 0.0
    for c in range(proba.shape[0]):
        proba[c] = 0.0
    for h in range(row.shape[0]):
        vote = vote_of(row[h])
        if vote >= 0:
            proba[vote] += tables.weights[h]
            total += tables.weights[h]
    for c in range(proba.shape[0]):
        proba[c] = proba[c] / total if total > 0.0 else 1.0 / proba.shape[0]
    return pick_likeliest(support, votes, draw, proba)


KERNELS.register(
    WawaSettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    follows_agreements=always_follow,
    label_row=label_row,
)


@dataclass(frozen=True)
class Wawa(Estimator):
    """Majority in which each labeler weighs as much as it agrees with the plain majority.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when an eighth of its rows is new.
    """

    refresh: int = 32
    name: ClassVar[str] = "wawa"
    bands: ClassVar[str | None] = "em"
    fit_range: ClassVar[tuple[float, float]] = SHARES
    counts_votes: ClassVar[bool] = True
    learns_from_verified: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", checks.n_rows("refresh", self.refresh, 2**20))

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> WawaSettings:
        """Return the settings as kernels need them."""
        return WawaSettings(n_classes)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> WawaFit:
        """Return arrays for so many fits."""
        return WawaFit(
            accuracy=np.zeros((n_fits, n_labelers)),
            votes=np.zeros((n_fits, n_labelers), np.int64),
            window=np.zeros((n_fits, 1), np.int64),
        )

    def new_tables(self, settings: WawaSettings, n_labelers: int) -> WawaTables:
        """Return room for what `fill_tables` prepares."""
        return WawaTables(np.empty(n_labelers), np.zeros(1, np.int64))

    def new_room(self, n_labelers: int, n_classes: int) -> Patterns:
        """Return room for the work of a fit."""
        return new_patterns(n_labelers, n_classes)

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says about a labeler that joined later."""
        return {"accuracy": 1.0 / n_classes}

    def accuracies(self, settings: WawaSettings, fits: WawaFit) -> Floats:
        """Return the agreement with the majority: fits x labelers."""
        return fits.accuracy

    def vote_weights(self, settings: Any, fits: WawaFit, places: Ints, rows: Codes) -> Floats:
        """Return what each vote added to the sum of its class on its row."""
        return np.where(rows >= 0, fits.accuracy[places], 0.0)
