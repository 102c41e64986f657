"""How each labeler votes, or abstains, on each class: tables fitted to a window by EM from the majority vote.

Given the class, labelers vote independently of each other. A labeler that is right as often on every class
(`one_coin.py`) is the special case in which the tables are pooled over the classes; it shares all kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftvote import settings as checks
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import inner, summing
from driftvote.core.label_models.interface import KERNELS, SHARES, Estimator, always_follow, tables_fit
from driftvote.core.patterns import FEW_CLASSES, Patterns, find_patterns, new_patterns, start_from_majority
from driftvote.core.state import StreamState, vote_of
from driftvote.core.voting import add_majority, count_votes, pick_likeliest, to_probabilities
from driftvote.errors import SettingError

STEPS = 24
EVEN_STEPS = 4  # first steps with all classes as likely: a lopsided majority must not settle the balance
SMOOTHING = 4.0  # rows' worth of "right 7 times in 10", for each labeler and class
PRIOR_SKILL = 0.7
BALANCE_ROWS = 5.0  # rows' worth of "all classes as likely"
MOST_FACTORS = 48  # labelers whose votes are multiplied; those of more are added as logs
MOST_LOG = 640.0  # of the product of their odds: numbers end at exp(709), and the class balance and silence add to it
SETTLED = 2e-3  # no probability moves by more: the fit is done


class EmSettings(NamedTuple):
    """The settings in the form that kernels need."""

    pooled: bool  # one accuracy for each labeler, whatever the class
    silence: bool  # abstaining depends on the class; otherwise it says nothing
    estimated: bool  # the class balance is estimated; otherwise it is `given`
    even_steps: int  # first steps with all classes as likely, where the balance is estimated
    steps: int
    pull: float  # log-odds that the majority of a row adds to its class
    given: Floats  # (classes,)


class EmFit(NamedTuple):
    """What a window says about the labelers and the classes."""

    theta: Floats  # (labelers, classes, classes + 1): P(vote | class), the last column for abstaining
    balance: Floats  # (classes,): how likely each class is before the votes are read
    shares: Floats  # (classes,): share of each class among the rows
    accuracy: Floats  # (labelers,): on the rows where the labeler votes
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


class EmRoom(NamedTuple):
    """Room for the work of a fit."""

    patterns: Patterns
    cast: Floats  # (labelers, classes + 1): votes for each class, and all of them
    counts: Floats  # (labelers, classes, classes + 1): the same by the class of the rows
    odds: Floats  # (labelers, classes, classes + 1): see `compare_classes`
    none: Floats  # empty: every vote counts alike


class EmTables(NamedTuple):
    """Logarithms of a fit, taken once for all rows that it labels."""

    logs: Floats  # (labelers, classes, classes + 1): what a vote, or an abstention, adds to the score of each class
    start: Floats  # (2, classes): what the class balance adds, and the abstention of all labelers
    active: Ints  # (1,): labelers that vote at all
    ready: Ints  # (1,)


@summing
def sum_where(values: Floats, codes: Any, code: int, count: int) -> float:
    """Return the sum of the first `count` values that have this code."""
    total = 0.0
    for q in range(count):
        value = values[q]
        total += value if codes[q] == code else 0.0
    return total


@summing
def sum_first(values: Floats, count: int) -> float:
    """Return the sum of the first `count` values."""
    total = 0.0
    for q in range(count):
        total += values[q]
    return total


@inner
def count_cast(patterns: Patterns, cast: Floats) -> None:
    """Fill in the votes of each labeler for each class, and in the last column all of them."""
    codes, rows, last, size = patterns.codes, patterns.rows, cast.shape[1] - 1, patterns.size[0]
    for h in range(cast.shape[0]):
        for v in range(last + 1):
            cast[h, v] = sum_where(rows, codes[h], v + 1, size) if v < last and last <= FEW_CLASSES else 0.0
        for q in range(size if last > FEW_CLASSES else 0):
            if codes[h, q] > 0:
                cast[h, codes[h, q] - 1] += rows[q]
        for v in range(last):
            cast[h, last] += cast[h, v]


@inner
def count_by_class(patterns: Patterns, total: float, cast: Floats, counts: Floats, mass: Floats) -> None:
    """Share the votes among the classes by `work`, the probabilities of the classes times rows.

    The last column of `counts` is the sum of the others, and `mass` gets the rows of each class. The first class has
    what the others leave of all votes, `cast`.
    """
    work, n_classes, size = patterns.work, mass.shape[0], patterns.size[0]
    mass[0] = total
    for c in range(1, n_classes):
        mass[c] = sum_first(work[c], size)
        mass[0] = max(0.0, mass[0] - mass[c])
    all_codes = patterns.codes
    for h in range(counts.shape[0]):
        codes = all_codes[h]
        everywhere = cast[h, n_classes] == total  # it never abstains, so its votes add up to the rows of a class
        for v in range(n_classes):
            counts[h, 0, v] = cast[h, v]
        counts[h, 0, n_classes] = cast[h, n_classes]
        for c in range(1, n_classes):
            if n_classes > FEW_CLASSES:
                for v in range(n_classes):
                    counts[h, c, v] = 0.0
                for q in range(size):
                    if codes[q] > 0:
                        counts[h, c, codes[q] - 1] += work[c, q]
            else:
                counts[h, c, 0] = mass[c] if everywhere else sum_where(work[c], codes, 1, size)
                for v in range(1, n_classes):
                    counts[h, c, v] = sum_where(work[c], codes, v + 1, size)
                    if everywhere:
                        counts[h, c, 0] = max(0.0, counts[h, c, 0] - counts[h, c, v])
            counts[h, c, n_classes] = 0.0
            for v in range(n_classes):
                counts[h, c, n_classes] += counts[h, c, v]
                counts[h, 0, v] = max(0.0, counts[h, 0, v] - counts[h, c, v])
            counts[h, 0, n_classes] = max(0.0, counts[h, 0, n_classes] - counts[h, c, n_classes])


@inner
def maximise(settings: EmSettings, total: float, cast: Floats, counts: Floats, mass: Floats, fit: EmFit) -> None:
    """M step: tables and class balance from the counts."""
    theta, n_classes = fit.theta, mass.shape[0]
    other = (1.0 - PRIOR_SKILL) / (n_classes - 1)
    for h in range(theta.shape[0]):
        silent = (total - cast[h, n_classes] + 1.0) / (total + 2.0)
        hits = SMOOTHING * PRIOR_SKILL
        for c in range(n_classes):
            hits += counts[h, c, c]
        coin = hits / (cast[h, n_classes] + SMOOTHING)
        right, wrong = (1.0 - silent) * coin, (1.0 - silent) * (1.0 - coin) / (n_classes - 1)
        for c in range(n_classes):
            voted = counts[h, c, n_classes]
            rows = mass[c] if settings.silence else voted / (1.0 - silent)
            share, prior = 1.0 / (rows + SMOOTHING), SMOOTHING * (1.0 - silent)
            for v in range(n_classes):
                if settings.pooled:
                    theta[h, c, v] = right if v == c else wrong
                else:
                    theta[h, c, v] = (counts[h, c, v] + prior * (PRIOR_SKILL if v == c else other)) * share
            absent = (max(0.0, mass[c] - voted) + SMOOTHING * silent) * share
            theta[h, c, n_classes] = absent if settings.silence else silent
    for c in range(n_classes):
        share = (mass[c] + BALANCE_ROWS / n_classes) / (total + BALANCE_ROWS)
        fit.balance[c] = share if settings.estimated else settings.given[c]


@inner
def silence_weight(active: int, votes: int) -> float:
    """Return the weight of each abstention of a row: together they are one piece of evidence, with a common reason."""
    return 1.0 / max(1.0, float(active - votes))


@inner
def take_logs(theta: Floats, votes: Ints, logs: Floats, absent: Floats) -> int:
    """Fill in the logarithms of a table and of all abstaining; return how many labelers vote at all."""
    active, n_classes = 0, theta.shape[1]
    for c in range(n_classes):
        absent[c] = 0.0
    for h in range(theta.shape[0]):
        for c in range(n_classes):
            for v in range(n_classes):
                logs[h, c, v] = math.log(theta[h, c, v])
            # Of one that never votes, silence says nothing.
            logs[h, c, n_classes] = math.log(theta[h, c, n_classes]) if votes[h] > 0 else 0.0
            absent[c] += logs[h, c, n_classes]
        active += votes[h] > 0
    return active


@inner
def compare_classes(
    settings: EmSettings, patterns: Patterns, cast: Floats, worth: Floats, theta: Floats, odds: Floats
) -> None:
    """Fill in how much likelier each vote makes each class than the first class; first, the log of that for silence.

    For more than MOST_FACTORS labelers, whose product would leave the range of numbers, all of it is logs.
    """
    n_classes, logs, most = theta.shape[1], theta.shape[0] > MOST_FACTORS, math.exp(MOST_LOG / theta.shape[0])
    silence = settings.silence and patterns.size[2] > 0
    for h in range(theta.shape[0]):
        right = theta[h, 0, 0] / theta[h, 0, 1] if settings.pooled else 1.0
        if worth.shape[0] > 0 and worth[h] != 1.0:
            right = math.exp(worth[h] * math.log(right))
        for c in range(1, n_classes):
            odds[h, c, 0] = 0.0
            if silence and cast[h, n_classes] > 0.0:  # of one that never votes, silence says nothing
                odds[h, c, 0] = math.log(theta[h, c, n_classes] / theta[h, 0, n_classes])
            for v in range(n_classes):
                said = right if v == c else 1.0 / right if v == 0 else 1.0
                if not settings.pooled:
                    said = theta[h, c, v] / theta[h, 0, v] if cast[h, v] > 0.0 else 1.0
                odds[h, c, v + 1] = math.log(said) if logs else min(said, most)


@summing
def multiply_votes(one: float, two: float, codes: Any, size: int, scores: Floats) -> None:
    """Multiply scores by what a labeler's vote for the first or the second class says; of two classes."""
    for q in range(size):
        scores[q] *= two if codes[q] == 2 else (one if codes[q] == 1 else 1.0)


@inner
def score_patterns(settings: EmSettings, start: float, patterns: Patterns, c: int, odds: Floats) -> None:
    """Fill in how much likelier each pattern makes class `c` than the first class; logs for many labelers."""
    scores, majority, size, n = patterns.work[c], patterns.majority, patterns.size[0], odds.shape[0]
    all_codes, quiet = patterns.codes, patterns.quiet
    pull, logs, plain = settings.pull, n > MOST_FACTORS, True
    for h in range(n if patterns.size[2] > 0 else 0):
        plain = plain and odds[h, c, 0] == 0.0
    if plain:
        first = math.log(start) if logs else start
        for q in range(size):
            scores[q] = first
    else:
        for q in range(size):
            scores[q] = math.log(start)
        for h in range(n):
            absent, codes = odds[h, c, 0], all_codes[h]
            if absent != 0.0:
                for q in range(size):
                    scores[q] += absent * quiet[q] if codes[q] == 0 else 0.0
        for q in range(0 if logs else size):
            scores[q] = math.exp(scores[q])
    if pull > 0.0:
        more, less = math.exp(pull), math.exp(-pull)
        for q in range(size):
            ahead = majority[c, q] - majority[0, q]
            if logs:
                scores[q] += pull * ahead
            elif ahead != 0.0:
                scores[q] *= more if ahead == 1.0 else less if ahead == -1.0 else math.exp(pull * ahead)
    for h in range(n):
        codes = all_codes[h]
        if odds.shape[1] == 2 and not logs:
            multiply_votes(odds[h, c, 1], odds[h, c, 2], codes, size, scores)
        else:
            for q in range(size):
                if codes[q] > 0:
                    said = odds[h, c, codes[q]]
                    scores[q] = scores[q] + said if logs else scores[q] * said


@summing
def share_class(scores: Floats, totals: Floats, rows: Floats, post: Floats, size: int) -> float:
    """Turn the scores of a class into its probabilities, then into these times rows; return how many have moved."""
    moved = 0.0
    for q in range(size):
        share = scores[q] / totals[q]
        moved += 1.0 if abs(share - post[q]) >= SETTLED else 0.0
        post[q] = share
        scores[q] = share * rows[q]
    return moved


@inner
def expect(settings: EmSettings, even: bool, patterns: Patterns, odds: Floats, balance: Floats) -> float:
    """E step: fill in the classes' probabilities, and `work` with them times rows; return how many have moved.

    Verified rows keep their class. Of two classes, only the second is filled in: the first has the rest.
    """
    work, totals, size = patterns.work, patterns.totals, patterns.size[0]
    n_classes = work.shape[0]
    for c in range(1, n_classes):
        score_patterns(settings, 1.0 if even else balance[c] / balance[0], patterns, c, odds)
    for q in range(size):
        work[0, q] = totals[q] = 1.0
    if odds.shape[0] > MOST_FACTORS:
        for q in range(size):
            best = 0.0
            for c in range(1, n_classes):
                best = max(best, work[c, q])
            for c in range(n_classes):
                work[c, q] = math.exp(work[c, q] - best if c > 0 else -best)
            totals[q] = work[0, q]
    for c in range(1, n_classes):
        for q in range(size):
            totals[q] += work[c, q]
    moved = 0.0
    for c in range(1 if n_classes == 2 else 0, n_classes):
        for q in range(size if patterns.size[1] > 0 else 0):
            if patterns.truth[q] >= 0:
                work[c, q] = totals[q] if patterns.truth[q] == c else 0.0
        moved += share_class(work[c], totals, patterns.rows, patterns.post[c], size)
    return moved


@inner
def start_em(patterns: Patterns) -> None:
    """Begin with the majority vote: fill in probabilities, and these times rows."""
    majority, rows, post, work, size = patterns.majority, patterns.rows, patterns.post, patterns.work, patterns.size[0]
    for c in range(post.shape[0]):
        for q in range(size):
            post[c, q] = majority[c, q]
            work[c, q] = majority[c, q] * rows[q]


@inner
def doubt_lone_votes(patterns: Patterns) -> None:
    """Take a vote that is alone in its row for right PRIOR_SKILL of the time: it does not tell how good its labeler is.

    Taken for right, it would make a labeler that often votes alone look good.
    """
    n_classes, votes, truth = patterns.post.shape[0], patterns.votes, patterns.truth
    for q in range(patterns.size[0]):
        if votes[q] == 1.0 and truth[q] < 0:
            for c in range(n_classes):
                share = PRIOR_SKILL if patterns.majority[c, q] > 0.0 else (1.0 - PRIOR_SKILL) / (n_classes - 1)
                patterns.post[c, q], patterns.work[c, q] = share, share * patterns.rows[q]


@inner
def run_em(
    settings: EmSettings,
    patterns: Patterns,
    total: float,
    cast: Floats,
    worth: Floats,
    counts: Floats,
    odds: Floats,
    fit: EmFit,
) -> None:
    """Fit the tables from the majority vote; `counts` become the votes by class that the fit ends with."""
    mass, n_classes = fit.shares, fit.balance.shape[0]
    start_em(patterns)
    if settings.pooled:
        doubt_lone_votes(patterns)
    count_by_class(patterns, total, cast, counts, mass)
    step, moved = 0, 1.0
    while step < settings.steps and (moved > 0.0 or step <= settings.even_steps):
        maximise(settings, total, cast, counts, mass, fit)
        compare_classes(settings, patterns, cast, worth, fit.theta, odds)
        even = settings.estimated and step < settings.even_steps
        moved = expect(settings, even, patterns, odds, fit.balance)
        count_by_class(patterns, total, cast, counts, mass)
        step += 1
    for h in range(cast.shape[0]):
        hits = SMOOTHING * PRIOR_SKILL
        for c in range(n_classes):
            hits += counts[h, c, c]
        votes = cast[h, n_classes]
        fit.accuracy[h] = hits / (votes + SMOOTHING) if votes > 0.0 else 1.0 / n_classes
    for c in range(n_classes):
        mass[c] /= total


@inner
def weigh_silence(patterns: Patterns, cast: Floats) -> None:
    """Fill in the weight of each abstention of a pattern."""
    last, active = cast.shape[1] - 1, 0
    for h in range(cast.shape[0]):
        active += cast[h, last] > 0.0
    for q in range(patterns.size[0]):
        patterns.quiet[q] = silence_weight(active, int(patterns.votes[q]))


@inner
def score_row(
    logs: Floats, start: Floats, active: int, pull: float, row: Codes, support: Ints, votes: int, proba: Floats
) -> None:
    """Fill in the probabilities of the classes by the tables of a fit; `support` holds the votes for each."""
    n_classes = proba.shape[0]
    quiet = silence_weight(active, votes) if votes < active else 0.0
    for c in range(n_classes):
        score, absent = start[0, c], start[1, c]
        for h in range(row.shape[0]):
            vote = vote_of(row[h])
            if vote >= 0:
                score += logs[h, c, vote]
                absent -= logs[h, c, n_classes]
        proba[c] = score + quiet * absent
    if pull > 0.0 and votes > 0:
        add_majority(support, pull, proba)
    to_probabilities(proba)


def select_fit(settings: EmSettings, fits: EmFit, place: int) -> EmFit:
    """Return one of many fits."""
    return EmFit(
        fits.theta[place],
        fits.balance[place],
        fits.shares[place],
        fits.accuracy[place],
        fits.votes[place],
        fits.window[place],
    )


def fit_window(
    settings: EmSettings,
    state: StreamState,
    level: int,
    window: int,
    begun: bool,
    room: EmRoom,
    tables: EmTables,
    fit: EmFit,
) -> None:
    """Fit the last `window` rows."""
    n = fit.theta.shape[0]
    total = find_patterns(state, window, room.patterns)
    start_from_majority(room.patterns)
    count_cast(room.patterns, room.cast)
    weigh_silence(room.patterns, room.cast)
    run_em(settings, room.patterns, total, room.cast, room.none, room.counts, room.odds, fit)
    for h in range(n):
        fit.votes[h] = state.sums[level, state.sums.shape[1] - n + h]
    fit.window[0] = window


def fill_tables(settings: EmSettings, fit: EmFit, tables: EmTables) -> None:
    """Take the logarithms of a fit."""
    tables.active[0] = take_logs(fit.theta, fit.votes, tables.logs, tables.start[1])
    for c in range(fit.balance.shape[0]):
        tables.start[0, c] = math.log(fit.balance[c])
    tables.ready[0] = 1


def label_row(settings: EmSettings, tables: EmTables, row: Codes, draw: float, support: Ints, proba: Floats) -> int:
    """Return the label of one row: the likeliest class, but never another one than all its votes agree on."""
    votes = count_votes(row, support)
    score_row(tables.logs, tables.start, tables.active[0], settings.pull, row, support, votes, proba)
    return pick_likeliest(support, votes, draw, proba)


KERNELS.register(
    EmSettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    follows_agreements=always_follow,
    label_row=label_row,
)


class EmEstimator(Estimator):
    """What the label models that are fitted by EM share."""

    refresh: int
    class_balance: str | Sequence[float]
    bands: ClassVar[str | None] = "em"
    fit_range: ClassVar[tuple[float, float]] = SHARES
    learns_from_verified: ClassVar[bool] = True

    def check_size(self, n_labelers: int, n_classes: int) -> None:
        """Refuse more labelers and classes than tables can be held for."""
        if not tables_fit(n_labelers, n_classes):
            raise SettingError(
                f"estimator={self.name!r} holds tables of labelers x classes x classes, and {n_labelers} labelers with"
                f" {n_classes:,} classes need too much memory; use estimator='wawa' or 'majority', which need none, or"
                " declare fewer classes"
            )

    def check(self, n_classes: int) -> None:
        """Refuse too many classes, and a class balance of another number of classes."""
        self.check_size(self.min_labelers, n_classes)
        shares = self.class_balance
        if not isinstance(shares, str) and len(shares) != n_classes:
            raise SettingError(f"class_balance must be {n_classes} shares, one for each class, not {shares!r}")

    def given_balance(self, n_classes: int) -> Floats:
        """Return the class balance before the votes are read; even where it is estimated."""
        shares = self.class_balance
        return np.full(n_classes, 1.0 / n_classes) if isinstance(shares, str) else np.array(shares)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> EmFit:
        """Return arrays for so many fits."""
        return EmFit(
            theta=np.zeros((n_fits, n_labelers, n_classes, n_classes + 1)),
            balance=np.zeros((n_fits, n_classes)),
            shares=np.zeros((n_fits, n_classes)),
            accuracy=np.zeros((n_fits, n_labelers)),
            votes=np.zeros((n_fits, n_labelers), np.int64),
            window=np.zeros((n_fits, 1), np.int64),
        )

    def new_tables(self, settings: EmSettings, n_labelers: int) -> EmTables:
        """Return room for what `fill_tables` prepares."""
        n_classes = len(settings.given)
        return EmTables(
            logs=np.empty((n_labelers, n_classes, n_classes + 1)),
            start=np.empty((2, n_classes)),
            active=np.zeros(1, np.int64),
            ready=np.zeros(1, np.int64),
        )

    def new_room(self, n_labelers: int, n_classes: int) -> Any:
        """Return room for the work of a fit."""
        return new_room(n_labelers, n_classes)

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says about a labeler that joined later."""
        return {"theta": 1.0 / (n_classes + 1), "accuracy": 1.0 / n_classes}

    def accuracies(self, settings: EmSettings, fits: EmFit) -> Floats:
        """Return the accuracy of each labeler when it votes: fits x labelers."""
        return fits.accuracy

    def confusions(self, fits: EmFit) -> Floats:
        """Return P(vote | class), the last column for abstaining: fits x labelers x classes x (classes + 1)."""
        return fits.theta

    def class_shares(self, fits: EmFit) -> Floats:
        """Return the share of each class: fits x classes."""
        return fits.shares

    def vote_weights(self, settings: Any, fits: Any, places: Ints, rows: Codes) -> Floats:
        """Return the log-odds that each vote adds to its class, against the other classes on average."""
        labelers = np.arange(rows.shape[1])
        weights = self.class_weights(fits)[places[:, None], labelers, np.maximum(rows, 0)]
        return np.where(rows >= 0, weights, 0.0)

    def class_weights(self, fits: Any) -> Floats:
        """Return the log-odds that a vote for each class adds to it: fits x labelers x classes."""
        return log_ratios(fits.theta)


def log_ratios(theta: Floats) -> Floats:
    """Return ln P(vote for a class | that class) less ln of its mean over the other classes."""
    n_classes = theta.shape[-2]
    shares = theta[..., :n_classes]
    own = np.einsum("...vv->...v", shares)
    others = (shares.sum(axis=-2) - own) / (n_classes - 1)
    return np.asarray(np.log(np.maximum(own, 1e-300)) - np.log(np.maximum(others, 1e-300)))


def new_room(n_labelers: int, n_classes: int) -> EmRoom:
    """Return room for the work of a fit."""
    table = n_labelers, n_classes, n_classes + 1
    cast, none = np.empty((n_labelers, n_classes + 1)), np.empty(0)
    return EmRoom(new_patterns(n_labelers, n_classes), cast, np.empty(table), np.empty(table), none)


@dataclass(frozen=True)
class Confusion(EmEstimator):
    """How each labeler votes on each class, with the class balance, fitted by EM.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when an eighth of its rows is new.
    class_balance
        `"estimated"`; `"even"`: all classes are as likely; or the shares of the classes, if you know them.
    abstentions
        `"outcome"`: how often a labeler abstains may depend on the class; `"ignored"`: abstaining says nothing.
    even_start
        Whether the first steps take all classes as equally likely, so that a lopsided majority does not settle the
        balance. Without it, a rare class stays rare.
    """

    refresh: int = 32
    class_balance: str | Sequence[float] = "estimated"
    abstentions: str = "outcome"
    even_start: bool = True
    name: ClassVar[str] = "confusion"

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", checks.n_rows("refresh", self.refresh, 2**20))
        object.__setattr__(self, "class_balance", checks.class_balance(self.class_balance))
        checks.one_of("abstentions", self.abstentions, ("outcome", "ignored"))
        checks.boolean("even_start", self.even_start)

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> EmSettings:
        """Return the settings as kernels need them."""
        return EmSettings(
            pooled=False,
            silence=self.abstentions == "outcome",
            estimated=self.class_balance == "estimated",
            even_steps=EVEN_STEPS if self.even_start else 0,
            steps=STEPS,
            pull=0.0,
            given=self.given_balance(n_classes),
        )
