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
from driftvote.core.jit import inner
from driftvote.core.label_models.interface import KERNELS, SHARES, Estimator, always_follow, tables_fit
from driftvote.core.patterns import Patterns, find_patterns, start_from_majority
from driftvote.core.state import StreamState, vote_of
from driftvote.core.voting import add_majority, count_votes, pick_likeliest, to_probabilities
from driftvote.errors import SettingError

STEPS = 24
EVEN_STEPS = 4  # first steps with all classes as likely: a lopsided majority must not settle the balance
SMOOTHING = 4.0  # rows' worth of "right 7 times in 10", for each labeler and class
PRIOR_SKILL = 0.7
BALANCE_ROWS = 5.0  # rows' worth of "all classes as likely"
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


class EmTables(NamedTuple):
    """Logarithms of a fit, taken once for all rows that it labels."""

    logs: Floats  # (labelers, classes, classes + 1): what a vote, or an abstention, adds to the score of each class
    start: Floats  # (2, classes): what the class balance adds, and the abstention of all labelers
    active: Ints  # (1,): labelers that vote at all
    ready: Ints  # (1,)


@inner
def count_cast(patterns: Patterns, cast: Ints) -> None:
    """Fill in the votes of each labeler for each class, and in the last column all of them."""
    for h in range(cast.shape[0]):
        for v in range(cast.shape[1]):
            cast[h, v] = 0
    for q in range(patterns.rows.shape[0]):
        for at in range(patterns.start[q], patterns.start[q + 1]):
            cast[patterns.who[at], patterns.what[at]] += patterns.rows[q]
            cast[patterns.who[at], cast.shape[1] - 1] += patterns.rows[q]


@inner
def count_by_class(patterns: Patterns, post: Floats, counts: Floats, mass: Floats) -> None:
    """Share the votes among the classes by their probabilities; the last column of `counts` is the sum of the others.

    `mass` gets the rows of each class.
    """
    n_classes = mass.shape[0]
    flat = counts.reshape(counts.size)
    for at in range(flat.shape[0]):
        flat[at] = 0.0
    for c in range(n_classes):
        mass[c] = 0.0
    for q in range(post.shape[0]):
        first, last = patterns.start[q], patterns.start[q + 1]
        if n_classes == 2:
            # The same sums, both classes in one pass: most of the time of a fit goes here and into `expect`.
            one, two = post[q, 0] * patterns.rows[q], post[q, 1] * patterns.rows[q]
            mass[0] += one
            mass[1] += two
            for at in range(first, last):
                cell = patterns.cell[at]
                flat[cell] += one
                flat[cell + 3] += two
            continue
        for c in range(n_classes):
            part = post[q, c] * patterns.rows[q]
            if part == 0.0:
                continue
            mass[c] += part
            step = c * (n_classes + 1)
            for at in range(first, last):
                flat[patterns.cell[at] + step] += part
    for h in range(counts.shape[0]):
        for c in range(n_classes):
            for v in range(n_classes):
                counts[h, c, n_classes] += counts[h, c, v]


@inner
def maximise(settings: EmSettings, window: int, cast: Ints, counts: Floats, mass: Floats, fit: EmFit) -> None:
    """M step: tables and class balance from the counts."""
    theta, n_classes = fit.theta, mass.shape[0]
    for h in range(theta.shape[0]):
        silent = (window - cast[h, n_classes] + 1.0) / (window + 2.0)
        hits = SMOOTHING * PRIOR_SKILL
        for c in range(n_classes):
            hits += counts[h, c, c]
        coin = hits / (cast[h, n_classes] + SMOOTHING)
        for c in range(n_classes):
            voted = counts[h, c, n_classes]
            rows = mass[c] if settings.silence else voted / (1.0 - silent)
            total = rows + SMOOTHING
            for v in range(n_classes):
                skill = PRIOR_SKILL if v == c else (1.0 - PRIOR_SKILL) / (n_classes - 1)
                share = (counts[h, c, v] + SMOOTHING * (1.0 - silent) * skill) / total
                if settings.pooled:
                    share = (1.0 - silent) * (coin if v == c else (1.0 - coin) / (n_classes - 1))
                theta[h, c, v] = share
            absent = (max(0.0, mass[c] - voted) + SMOOTHING * silent) / total
            theta[h, c, n_classes] = absent if settings.silence else silent
    for c in range(n_classes):
        share = (mass[c] + BALANCE_ROWS / n_classes) / (window + BALANCE_ROWS)
        fit.balance[c] = share if settings.estimated else settings.given[c]


@inner
def silence_weight(active: int, votes: int) -> float:
    """Return the weight of each abstention of a row: together they are one piece of evidence, with a common reason."""
    return 1.0 / max(1.0, float(active - votes))


@inner
def take_logs(theta: Floats, cast: Ints, worth: Floats, logs: Floats, absent: Floats) -> int:
    """Fill in the logarithms of a table and of all abstaining; return how many labelers vote at all.

    `cast` has the votes of each labeler, the sum last; with its votes for each class before that, only classes that it
    votes for are filled in. `worth` is how much a vote of each labeler counts; empty: all count alike.
    """
    active, n_classes, all_votes = 0, theta.shape[1], cast.shape[1] - 1
    for c in range(n_classes):
        absent[c] = 0.0
    for h in range(theta.shape[0]):
        for v in range(n_classes):
            if all_votes == 0 or cast[h, v] > 0:
                for c in range(n_classes):
                    logs[h, c, v] = math.log(theta[h, c, v])
                    if worth.shape[0] > 0:
                        logs[h, c, v] *= worth[h]
        for c in range(n_classes):
            # Of one that never votes, silence says nothing.
            logs[h, c, n_classes] = math.log(theta[h, c, n_classes]) if cast[h, all_votes] > 0 else 0.0
            absent[c] += logs[h, c, n_classes]
        active += cast[h, all_votes] > 0
    return active


@inner
def expect(
    patterns: Patterns, logs: Floats, start: Floats, active: int, pull: float, majority: Floats, post: Floats
) -> float:
    """E step: fill in the classes' probabilities; return the largest change. Verified rows keep theirs."""
    n_classes = post.shape[1]
    flat = logs.reshape(logs.size)
    scores = np.empty(n_classes)
    change = 0.0
    for q in range(post.shape[0]):
        if patterns.truth[q] >= 0:
            continue
        first, last = patterns.start[q], patterns.start[q + 1]
        if n_classes == 2:
            one, two = start[0, 0], start[0, 1]
            for at in range(first, last):
                cell = patterns.cell[at]
                one += flat[cell]
                two += flat[cell + 3]
            scores[0], scores[1] = one, two
        else:
            for c in range(n_classes):
                step = c * (n_classes + 1)
                score = start[0, c]
                for at in range(first, last):
                    score += flat[patterns.cell[at] + step]
                scores[c] = score
        if last - first < active:
            weight = silence_weight(active, last - first)
            for c in range(n_classes):
                step = c * (n_classes + 1)
                quiet = start[1, c]
                for at in range(first, last):
                    quiet -= flat[patterns.cell[at] - patterns.what[at] + step + n_classes]
                scores[c] += weight * quiet
        if pull > 0.0:
            for c in range(n_classes):
                scores[c] += pull * majority[q, c]
        to_probabilities(scores)
        for c in range(n_classes):
            change = max(change, abs(scores[c] - post[q, c]))
            post[q, c] = scores[c]
    return change


@inner
def run_em(
    settings: EmSettings,
    patterns: Patterns,
    window: int,
    cast: Ints,
    worth: Floats,
    majority: Floats,
    post: Floats,
    counts: Floats,
    tables: EmTables,
    fit: EmFit,
) -> None:
    """Fit the tables from the majority vote; `counts` become the votes by class that the fit ends with."""
    n_classes = fit.balance.shape[0]
    mass = fit.shares
    for q in range(post.shape[0]):
        for c in range(n_classes):
            post[q, c] = majority[q, c]
    count_by_class(patterns, post, counts, mass)
    step, change = 0, 1.0
    while step < settings.steps and (change >= SETTLED or step <= settings.even_steps):
        maximise(settings, window, cast, counts, mass, fit)
        tables.active[0] = take_logs(fit.theta, cast, worth, tables.logs, tables.start[1])
        even = settings.estimated and step < settings.even_steps
        for c in range(n_classes):
            tables.start[0, c] = 0.0 if even else math.log(fit.balance[c])
        change = expect(patterns, tables.logs, tables.start, tables.active[0], settings.pull, majority, post)
        count_by_class(patterns, post, counts, mass)
        step += 1
    for h in range(cast.shape[0]):
        hits = SMOOTHING * PRIOR_SKILL
        for c in range(n_classes):
            hits += counts[h, c, c]
        votes = cast[h, n_classes]
        fit.accuracy[h] = hits / (votes + SMOOTHING) if votes > 0 else 1.0 / n_classes
    for c in range(n_classes):
        mass[c] /= window


@inner
def score_row(tables: EmTables, pull: float, row: Codes, support: Ints, votes: int, proba: Floats) -> None:
    """Fill in the probabilities of the classes; `support` holds the votes for each."""
    n_classes = proba.shape[0]
    quiet = silence_weight(tables.active[0], votes) if votes < tables.active[0] else 0.0
    for c in range(n_classes):
        score, absent = tables.start[0, c], tables.start[1, c]
        for h in range(row.shape[0]):
            vote = vote_of(row[h])
            if vote >= 0:
                score += tables.logs[h, c, vote]
                absent -= tables.logs[h, c, n_classes]
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


def fit_window(settings: EmSettings, state: StreamState, level: int, window: int, tables: EmTables, fit: EmFit) -> None:
    """Fit the last `window` rows."""
    n, n_classes = fit.theta.shape[0], fit.theta.shape[1]
    patterns = find_patterns(state, window)
    majority, post = np.empty((patterns.rows.shape[0], n_classes)), np.empty((patterns.rows.shape[0], n_classes))
    cast, counts = np.empty((n, n_classes + 1), np.int64), np.empty((n, n_classes, n_classes + 1))
    start_from_majority(patterns, majority)
    count_cast(patterns, cast)
    run_em(settings, patterns, window, cast, np.empty(0), majority, post, counts, tables, fit)
    for h in range(n):
        fit.votes[h] = state.sums[level, state.sums.shape[1] - n + h]
    fit.window[0] = window


def fill_tables(settings: EmSettings, fit: EmFit, tables: EmTables) -> None:
    """Take the logarithms of a fit."""
    tables.active[0] = take_logs(fit.theta, fit.votes.reshape(-1, 1), np.empty(0), tables.logs, tables.start[1])
    for c in range(fit.balance.shape[0]):
        tables.start[0, c] = math.log(fit.balance[c])
    tables.ready[0] = 1


def label_row(
    settings: EmSettings, fit: EmFit, tables: EmTables, row: Codes, draw: float, support: Ints, proba: Floats
) -> int:
    """Return the label of one row: the likeliest class, but never another one than all its votes agree on."""
    votes = count_votes(row, support)
    score_row(tables, settings.pull, row, support, votes, proba)
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
        return new_em_tables(n_labelers, len(settings.given))

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


def new_em_tables(n_labelers: int, n_classes: int) -> EmTables:
    """Return room for the logarithms of a fit."""
    return EmTables(
        logs=np.empty((n_labelers, n_classes, n_classes + 1)),
        start=np.empty((2, n_classes)),
        active=np.zeros(1, np.int64),
        ready=np.zeros(1, np.int64),
    )


@dataclass(frozen=True)
class Confusion(EmEstimator):
    """How each labeler votes on each class, with the class balance, fitted by EM.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when a sixteenth of its rows is new.
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
