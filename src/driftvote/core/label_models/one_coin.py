"""One accuracy for each labeler, whatever the class, fitted by EM with all classes as likely.

Unlike the triplets it uses every vote, not only agreements of pairs; unlike the confusion model it cannot tell a
labeler that is good at one class from one that is good at another, and needs fewer rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from driftvote import settings as checks
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import inner
from driftvote.core.label_models.interface import KERNELS, Estimator
from driftvote.core.patterns import find_patterns, start_from_majority
from driftvote.core.state import StreamState, vote_of
from driftvote.core.voting import count_votes, pick_likeliest, to_probabilities

STEPS = 24
SMOOTHING = 4.0  # rows' worth of "right 7 times in 10", for each labeler
PRIOR_ACCURACY = 0.7
SETTLED = 1e-3  # no probability moves by more: the fit is done


class OneCoinSettings(NamedTuple):
    """The number of classes."""

    n_classes: int


class OneCoinFit(NamedTuple):
    """The accuracies of one window."""

    accuracy: Floats  # (labelers,)
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


class OneCoinTables(NamedTuple):
    """What each vote counts."""

    weights: Floats  # (labelers,): ln((K - 1) p / (1 - p))
    ready: Ints  # (1,)


@inner
def log_odds(accuracy: float, n_classes: int) -> float:
    """Return what a vote adds to the log score of its class."""
    return math.log((n_classes - 1) * accuracy / (1.0 - accuracy))


def select_fit(settings: OneCoinSettings, fits: OneCoinFit, place: int) -> OneCoinFit:
    """Return one of many fits."""
    return OneCoinFit(fits.accuracy[place], fits.votes[place], fits.window[place])


def fit_window(
    settings: OneCoinSettings, state: StreamState, level: int, window: int, tables: OneCoinTables, fit: OneCoinFit
) -> None:
    """Fit the last `window` rows by EM from the majority vote."""
    n, k = fit.accuracy.shape[0], settings.n_classes
    patterns = find_patterns(state, window)
    post = np.empty((patterns.rows.shape[0], k))
    scores, cast = np.empty(k), np.zeros(n, np.int64)
    for q in range(post.shape[0]):
        for at in range(patterns.start[q], patterns.start[q + 1]):
            cast[patterns.who[at]] += patterns.rows[q]
    start_from_majority(patterns, post)
    for _ in range(STEPS):
        for h in range(n):
            fit.accuracy[h] = SMOOTHING * PRIOR_ACCURACY
        for q in range(post.shape[0]):
            for at in range(patterns.start[q], patterns.start[q + 1]):
                fit.accuracy[patterns.who[at]] += patterns.rows[q] * post[q, patterns.what[at]]
        for h in range(n):
            fit.accuracy[h] /= cast[h] + SMOOTHING
        change = 0.0
        for q in range(post.shape[0]):
            if patterns.truth[q] >= 0:
                continue
            for c in range(k):
                scores[c] = 0.0
            for at in range(patterns.start[q], patterns.start[q + 1]):
                scores[patterns.what[at]] += log_odds(fit.accuracy[patterns.who[at]], k)
            to_probabilities(scores)
            for c in range(k):
                change = max(change, abs(scores[c] - post[q, c]))
                post[q, c] = scores[c]
        if change < SETTLED:
            break
    for h in range(n):
        fit.votes[h] = state.sums[level, state.sums.shape[1] - n + h]
        if cast[h] == 0:
            fit.accuracy[h] = 1.0 / k
    fit.window[0] = window


def fill_tables(settings: OneCoinSettings, fit: OneCoinFit, tables: OneCoinTables) -> None:
    """Turn accuracies into log-odds."""
    for h in range(fit.accuracy.shape[0]):
        tables.weights[h] = log_odds(fit.accuracy[h], settings.n_classes)
    tables.ready[0] = 1


def label_row(
    settings: OneCoinSettings,
    fit: OneCoinFit,
    tables: OneCoinTables,
    row: Codes,
    draw: float,
    support: Ints,
    proba: Floats,
) -> int:
    """Return the label of one row: the likeliest class, but never another one than all its votes agree on."""
    votes = count_votes(row, support)
    for c in range(proba.shape[0]):
        proba[c] = 0.0
    for h in range(row.shape[0]):
        vote = vote_of(row[h])
        if vote >= 0:
            proba[vote] += tables.weights[h]
    to_probabilities(proba)
    return pick_likeliest(support, votes, draw, proba)


KERNELS.register(
    OneCoinSettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    label_row=label_row,
)


@dataclass(frozen=True)
class OneCoin(Estimator):
    """One accuracy for each labeler, fitted by EM.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when a sixteenth of its rows is new.
    """

    refresh: int = 32
    name: ClassVar[str] = "one_coin"
    bands: ClassVar[str | None] = "confusion"
    learns_from_verified: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", checks.n_rows("refresh", self.refresh, 2**20))

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> OneCoinSettings:
        """Return the settings as kernels need them."""
        return OneCoinSettings(n_classes)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> OneCoinFit:
        """Return arrays for so many fits."""
        return OneCoinFit(
            accuracy=np.zeros((n_fits, n_labelers)),
            votes=np.zeros((n_fits, n_labelers), np.int64),
            window=np.zeros((n_fits, 1), np.int64),
        )

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says about a labeler that joined later."""
        return {"accuracy": 1.0 / n_classes}

    def new_tables(self, settings: OneCoinSettings, n_labelers: int) -> OneCoinTables:
        """Return room for what `fill_tables` prepares."""
        return OneCoinTables(np.empty(n_labelers), np.zeros(1, np.int64))

    def accuracies(self, settings: OneCoinSettings, fits: OneCoinFit) -> Floats:
        """Return the accuracy of each labeler when it votes: fits x labelers."""
        return fits.accuracy

    def vote_weights(self, settings: OneCoinSettings, fits: OneCoinFit, places: Ints, rows: Codes) -> Floats:
        """Return the log-odds that each vote added to its class on its row."""
        accuracy = fits.accuracy[places]
        weights = np.log((settings.n_classes - 1) * accuracy / (1.0 - accuracy))
        return np.where(rows >= 0, weights, 0.0)
