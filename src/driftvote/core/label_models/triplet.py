"""The paper's label model: one accuracy for each labeler, from the agreements of three.

If errors are independent given the truth, the agreement of two labelers is the product of their skills,
C_ij = q_i q_j, where q = (K p - 1) / (K - 1) is 0 for a blind guess and 1 for a labeler that is always right. Three
labelers then give q_h = sqrt(C_ih C_jh / C_ij) (Algorithm 1, lines 8 to 12). With independent errors the best vote
weighs each labeler by the log-odds of its accuracy, ln((K - 1) p / (1 - p)); the accuracy is clipped first, so that no
labeler is ever beyond doubt. The class with the largest weight wins among the classes with a vote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from driftvote import settings as checks
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import inner, jit
from driftvote.core.label_models.interface import KERNELS, SHARES, Estimator, always_follow
from driftvote.core.state import StreamState, n_pairs_of, vote_of
from driftvote.core.voting import largest, pick_class, undilute

# Where sums of weights decide (many labelers), weights are rounded to a multiple of 2^-42 (2e-13): sums below 2^11
# are then exact in a double, their order does not matter, and a tie is a tie.
GRAIN = 2.0**42


class TripletSettings(NamedTuple):
    """The settings in the form that kernels need."""

    n_classes: int
    clip_low: float
    clip_high: float
    diluted: bool  # weigh by the diluted accuracy (abstentions are random votes)
    by_logs: bool  # so many labelers that products of their odds could overflow


class TripletFit(NamedTuple):
    """The accuracies of one window."""

    weighing: Floats  # (labelers,): the accuracy that weighs a vote: when voting, or diluted
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


class TripletTables(NamedTuple):
    """What each vote counts."""

    odds: Floats  # (labelers,): odds, or their logarithms
    scores: Floats  # (classes,): working array
    ready: Ints  # (1,)


@inner
def pair_index(i: int, j: int, n: int) -> int:
    """Return the place of a pair in lexicographic order, whichever way round it is named."""
    if i > j:
        i, j = j, i
    return i * n - i * (i + 1) // 2 + j - i - 1


@inner
def strongest_pair(sums: Ints, n: int, without: int) -> tuple[int, int]:
    """Return the first pair, in lexicographic order, with the largest |sum|, leaving one labeler out."""
    best = -1
    best_i = -1
    best_j = -1
    pair = 0
    for i in range(n):
        for j in range(i + 1, n):
            size = abs(sums[pair])
            if size > best and i != without and j != without:
                best = size
                best_i = i
                best_j = j
            pair += 1
    return best_i, best_j


@inner
def accuracy_of(left: int, right: int, across: int, votes: int, window: int, settings: TripletSettings) -> float:
    """Return the accuracy that weighs a vote, from three pair sums; 1/K for a labeler that never votes.

    q = sqrt |C_ih C_jh / C_ij|, and 0 if C_ij is 0; the sums are C times window (K - 1).
    """
    k = settings.n_classes
    q = 0.0
    if across != 0:
        # Products below 2^53 (for two classes: windows up to 2^26) are exact, so equal ratios give equal floats,
        # equal odds, and ties of the vote that are real ties.
        scale = float(window) * (k - 1)
        q = math.sqrt(abs(float(left) * float(right)) / (abs(float(across)) * scale))
    if not settings.diluted and votes != window:
        if votes == 0:
            return 1.0 / k
        q = q * window / votes
    return min(1.0, (1.0 + (k - 1) * q) / k)


@inner
def triplet_accuracies(sums: Ints, votes: Ints, window: int, settings: TripletSettings, out: Floats) -> None:
    """Fill in the accuracy of every labeler, each from the strongest pair of others (Algorithm 1, lines 8 to 12).

    The strongest pair overall is the strongest without h for every h but its own two, so this costs three scans of
    the pairs and not one for each labeler.
    """
    n = out.shape[0]
    top_i, top_j = strongest_pair(sums, n, -1)
    for h in range(n):
        i, j = top_i, top_j
        if h == top_i or h == top_j:
            i, j = strongest_pair(sums, n, h)
        left, right = sums[pair_index(i, h, n)], sums[pair_index(j, h, n)]
        out[h] = accuracy_of(left, right, sums[pair_index(i, j, n)], votes[h], window, settings)


@inner
def odds_of(accuracy: float, settings: TripletSettings) -> float:
    """Return (K - 1) p / (1 - p) of the clipped accuracy: how much a vote multiplies the odds of its class."""
    p = min(max(accuracy, settings.clip_low), settings.clip_high)
    return (settings.n_classes - 1) * p / (1.0 - p)


@inner
def weight_of(accuracy: float, settings: TripletSettings) -> float:
    """Return the logarithm of the odds, on the exact grid."""
    return round(math.log(odds_of(accuracy, settings)) * GRAIN) / GRAIN


@jit
def weigh_rows(weighing: Floats, settings: TripletSettings, out: Floats) -> None:
    """Fill in the weights of a table of accuracies."""
    for t in range(weighing.shape[0]):
        for h in range(weighing.shape[1]):
            out[t, h] = weight_of(weighing[t, h], settings)


def select_fit(settings: TripletSettings, fits: TripletFit, place: int) -> TripletFit:
    """Return one of many fits."""
    return TripletFit(fits.weighing[place], fits.votes[place], fits.window[place])


def fit_window(
    settings: TripletSettings,
    state: StreamState,
    level: int,
    window: int,
    begun: bool,
    room: Floats,
    tables: TripletTables,
    fit: TripletFit,
) -> None:
    """Estimate the accuracies of the labelers over the last `window` rows."""
    sums, n = state.sums[level], fit.votes.shape[0]
    for h in range(n):
        fit.votes[h] = sums[sums.shape[0] - n + h]
    triplet_accuracies(sums[: n_pairs_of(state)], fit.votes, window, settings, fit.weighing)
    fit.window[0] = window


def fill_tables(settings: TripletSettings, fit: TripletFit, tables: TripletTables) -> None:
    """Turn accuracies into odds, or into weights where products of odds could overflow."""
    for h in range(fit.weighing.shape[0]):
        accuracy = fit.weighing[h]
        tables.odds[h] = weight_of(accuracy, settings) if settings.by_logs else odds_of(accuracy, settings)
    tables.ready[0] = 1


def label_row(
    settings: TripletSettings, tables: TripletTables, row: Codes, draw: float, support: Ints, proba: Floats
) -> int:
    """Return the label of one row by the weighted vote, and fill in the probabilities under an even class balance."""
    scores = tables.scores
    for c in range(scores.shape[0]):
        scores[c] = 0.0 if settings.by_logs else 1.0
        support[c] = 0
    for i in range(row.shape[0]):
        vote = vote_of(row[i])
        if vote >= 0:
            support[vote] += 1
            if settings.by_logs:
                scores[vote] += tables.odds[i]
            else:
                scores[vote] *= tables.odds[i]
    if settings.by_logs:
        best = largest(scores)
        for c in range(scores.shape[0]):
            scores[c] = math.exp(scores[c] - best)
    total = 0.0
    for c in range(scores.shape[0]):
        total += scores[c]
    for c in range(scores.shape[0]):
        proba[c] = scores[c] / total
    return pick_class(scores, support, draw)


KERNELS.register(
    TripletSettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    follows_agreements=always_follow,
    label_row=label_row,
)


@dataclass(frozen=True)
class Triplet(Estimator):
    """One accuracy for each labeler from the agreements of three, at every row, as in the paper.

    Parameters
    ----------
    clip
        Accuracies are limited to this range before they become weights.
    """

    clip: tuple[float, float] = (0.1, 0.9)
    name: ClassVar[str] = "triplet"
    fits_every_row: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False
    bands: ClassVar[str | None] = "triplet"
    fit_range: ClassVar[tuple[float, float]] = SHARES

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", checks.clip_range(self.clip))

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> TripletSettings:
        """Return the settings as kernels need them."""
        low, high = self.clip
        overflow = n_labelers * math.log((n_classes - 1) * high / (1.0 - high)) > 600.0
        # The lower end of the clip never lifts a labeler above blind guessing.
        return TripletSettings(n_classes, min(low, 1.0 / n_classes), high, diluted, overflow)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> TripletFit:
        """Return arrays for so many fits."""
        return TripletFit(
            weighing=np.zeros((n_fits, n_labelers)),
            votes=np.zeros((n_fits, n_labelers), np.int64),
            window=np.zeros((n_fits, 1), np.int64),
        )

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says about a labeler that joined later."""
        return {"weighing": 1.0 / n_classes}

    def new_tables(self, settings: TripletSettings, n_labelers: int) -> TripletTables:
        """Return room for what `fill_tables` prepares."""
        return TripletTables(np.empty(n_labelers), np.empty(settings.n_classes), np.zeros(1, np.int64))

    def accuracies(self, settings: TripletSettings, fits: TripletFit) -> Floats:
        """Return the accuracy of each labeler when it votes: fits x labelers."""
        if not settings.diluted:
            return fits.weighing
        return undilute(fits.weighing, fits.votes / np.maximum(1, fits.window), settings.n_classes)

    def diluted_accuracies(self, settings: TripletSettings, fits: TripletFit, n_classes: int) -> Floats:
        """Return the accuracy of each labeler with abstentions counted as blind guesses: fits x labelers."""
        return fits.weighing if settings.diluted else super().diluted_accuracies(settings, fits, n_classes)

    def vote_weights(self, settings: TripletSettings, fits: TripletFit, places: Ints, rows: Codes) -> Floats:
        """Return the log-odds that each vote added to its class on its row."""
        weights = np.empty(fits.weighing.shape)
        weigh_rows(np.ascontiguousarray(fits.weighing), settings, weights)
        return np.where(rows >= 0, weights[places], 0.0)
