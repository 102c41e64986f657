"""The default label model: how each labeler votes, or abstains, on each class, fitted to a window by EM.

Three corrections follow the fit (docs/estimators.md has the reason and the measurement of each): class-conditional and
one-coin labelers are blended by the evidence for either; rows lean on their majority as far as the fit fails to
explain the agreements (the misfit); and where labelers err together, further votes of a row count less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from driftvote import settings as checks
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import inner, jit
from driftvote.core.label_models import interface
from driftvote.core.label_models.interface import KERNELS, Estimator
from driftvote.core.patterns import Patterns, find_patterns, start_from_majority
from driftvote.core.state import StreamState, n_pairs_of, vote_of
from driftvote.core.voting import count_votes, largest, pick_likeliest, to_probabilities
from driftvote.errors import SettingError

# Each figure is argued for in docs/estimators.md, from the streams of docs/quality.md.
STEPS = 24
EVEN_STEPS = 4  # first steps with all classes as likely: a lopsided majority must not settle the balance
SMOOTHING = 4.0  # rows' worth of "right 7 times in 10", for each labeler and class
PRIOR_SKILL = 0.7
BALANCE_ROWS = 5.0  # rows' worth of "all classes as likely"
CHECKED = 0.1  # share of a labeler's votes that two others must have voted on, or it is trusted less
VERIFIED = 2.0  # rows that a verified row counts as, of how labelers vote on its class
FEW, ENOUGH = 0.01, 0.05  # shares of verified rows up to which it counts as one, and from which it counts as so many
SETTLED = 1e-3  # no probability moves by more: the fit is done

ANCHOR = 40.0  # log-odds that the majority of a row adds, for each unit of misfit
HEAVIEST_ANCHOR = 4.0  # and at most: no majority is beyond doubt
ANCHOR_ROWS = 4.0  # the misfit of a handful of rows is noise: so many rows halve it
CROWDING = 2.0  # how much a unit of misfit makes each further vote of a row a repetition
CHANCE_SHARE = 0.25  # share of the binomial variance that a fit leaves in an agreement
ANCHOR_SHARES = (1.0, 0.5, 0.25, 0.0)  # shares of the misfit that verified rows can choose from
CLEARLY = 2.0  # standard deviations by which a smaller share must label more of them right


class ConfusionSettings(NamedTuple):
    """The settings in the form that kernels need."""

    given: Floats  # (classes,): the class balance, or -1 to estimate it


class ConfusionFit(NamedTuple):
    """What a window says about the labelers and the classes."""

    theta: Floats  # (labelers, classes, classes + 1): P(vote | class), the last column for abstaining
    coin: Floats  # (labelers,): the one accuracy that explains the votes best if classes do not matter
    balance: Floats  # (classes,)
    misfit: Floats  # (1,): root mean square of what the fit leaves unexplained in the agreements
    evidence: Floats  # (1,): probability of class-conditional over one-coin labelers
    accuracy: Floats  # (labelers,): on the rows where the labeler votes
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


class ConfusionTables(NamedTuple):
    """Logarithms of a fit, taken once for all rows that it labels."""

    logs: Floats  # (labelers, classes, classes + 1): what a vote, or an abstention, adds to the score of each class
    start: Floats  # (2, classes): what the abstention of all labelers adds, and the class balance
    active: Ints  # (1,): labelers that vote at all
    ready: Ints  # (1,)


@inner
def prior_rows(patterns: Patterns, window: int, cast: Ints, rows: Floats) -> float:
    """Fill in the votes of each labeler, and how many rows its prior counts: more, where few others check it.

    Return how many rows a verified row counts as: a handful by luck must not outweigh the window, many may.
    """
    n = cast.shape[0]
    checked = np.zeros(n, np.int64)
    for h in range(n):
        cast[h] = 0
    verified = 0
    for q in range(patterns.rows.shape[0]):
        first, last = patterns.start[q], patterns.start[q + 1]
        verified += patterns.rows[q] if patterns.truth[q] >= 0 else 0
        for at in range(first, last):
            cast[patterns.who[at]] += patterns.rows[q]
            if last - first >= 3 or patterns.truth[q] >= 0:
                checked[patterns.who[at]] += patterns.rows[q]
    for h in range(n):
        short = CHECKED * cast[h] / max(float(checked[h]), 1e-4) if cast[h] else 1.0
        rows[h] = SMOOTHING * min(max(1.0, short), 1e6)
    share = verified / window
    return 1.0 + (VERIFIED - 1.0) * min(1.0, max(0.0, (share - FEW) / (ENOUGH - FEW)))


@inner
def maximise(
    patterns: Patterns,
    window: int,
    post: Floats,
    cast: Ints,
    trust: Floats,
    worth: float,
    given: Floats,
    fit: ConfusionFit,
) -> None:
    """M step: confusion rows and class balance from the classes' probabilities. `given` below 0 is estimated."""
    theta, balance = fit.theta, fit.balance
    n, n_classes = theta.shape[0], theta.shape[1]
    rows = float(window)
    flat = theta.reshape(theta.size)
    for at in range(flat.shape[0]):
        flat[at] = 0.0
    for c in range(n_classes):
        balance[c] = 0.0
    mass = np.zeros(n_classes)
    # Votes are shared among the classes by their probabilities. A verified row counts more there, but not in the
    # class balance: people pick what they verify.
    for q in range(post.shape[0]):
        first, last = patterns.start[q], patterns.start[q + 1]
        counts_as = worth if patterns.truth[q] >= 0 else 1.0
        if n_classes == 2:
            # The same sums, both classes in one pass: most of the time of a fit goes here and into `expect`.
            one, two = post[q, 0] * patterns.rows[q], post[q, 1] * patterns.rows[q]
            balance[0] += one
            balance[1] += two
            one *= counts_as
            two *= counts_as
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
            balance[c] += part
            part *= counts_as
            mass[c] += part
            step = c * (n_classes + 1)
            for at in range(first, last):
                flat[patterns.cell[at] + step] += part
    for h in range(n):
        silent = (rows - cast[h] + 1.0) / (rows + 2.0)
        for c in range(n_classes):
            voted = 0.0
            for v in range(n_classes):
                voted += theta[h, c, v]
            total = trust[h] + mass[c]
            for v in range(n_classes):
                skill = PRIOR_SKILL if v == c else (1.0 - PRIOR_SKILL) / (n_classes - 1)
                theta[h, c, v] = (theta[h, c, v] + trust[h] * (1.0 - silent) * skill) / total
            theta[h, c, n_classes] = (max(0.0, mass[c] - voted) + trust[h] * silent) / total
    for c in range(n_classes):
        share = (balance[c] + BALANCE_ROWS / n_classes) / (rows + BALANCE_ROWS)
        balance[c] = given[c] if given[c] >= 0.0 else share


@inner
def silence_weight(active: int, votes: int) -> float:
    """Return the weight of each abstention of a row: together they are one piece of evidence, with a common reason."""
    return 1.0 / max(1.0, float(active - votes))


@inner
def expect(patterns: Patterns, logs: Floats, prior: Floats, absent: Floats, active: int, post: Floats) -> float:
    """E step: fill in the classes' probabilities; return the largest change.

    `absent` is the log-probability that all labelers abstain.
    """
    n_classes = post.shape[1]
    flat = logs.reshape(logs.size)
    scores = np.empty(n_classes)
    change = 0.0
    for q in range(post.shape[0]):
        if patterns.truth[q] >= 0:
            continue
        first, last = patterns.start[q], patterns.start[q + 1]
        if n_classes == 2:
            one, two = prior[0], prior[1]
            for at in range(first, last):
                cell = patterns.cell[at]
                one += flat[cell]
                two += flat[cell + 3]
            scores[0], scores[1] = one, two
        else:
            for c in range(n_classes):
                step = c * (n_classes + 1)
                score = prior[c]
                for at in range(first, last):
                    score += flat[patterns.cell[at] + step]
                scores[c] = score
        if last - first < active:
            weight = silence_weight(active, last - first)
            for c in range(n_classes):
                step = c * (n_classes + 1)
                quiet = absent[c]
                for at in range(first, last):
                    quiet -= flat[patterns.cell[at] - patterns.what[at] + step + n_classes]
                scores[c] += weight * quiet
        to_probabilities(scores)
        for c in range(n_classes):
            change = max(change, abs(scores[c] - post[q, c]))
            post[q, c] = scores[c]
    return change


@inner
def take_logs(theta: Floats, cast: Ints, logs: Floats, absent: Floats) -> int:
    """Fill in the logarithms of a confusion table and of all abstaining; return how many labelers vote at all."""
    active = 0
    for c in range(theta.shape[1]):
        absent[c] = 0.0
    for h in range(theta.shape[0]):
        for c in range(theta.shape[1]):
            for v in range(theta.shape[2]):
                logs[h, c, v] = math.log(theta[h, c, v])
        if cast[h] > 0:
            active += 1
            for c in range(theta.shape[1]):
                absent[c] += logs[h, c, theta.shape[1]]
    return active


@inner
def misfit_of(fit: ConfusionFit, sums: Ints, both: Ints) -> float:
    """Return how far pairs agree more or less often than independent labelers of this kind: a root mean square."""
    theta, n_classes = fit.theta, fit.theta.shape[1]
    squares, rows, pair = 0.0, 0.0, 0
    for i in range(theta.shape[0]):
        for j in range(i + 1, theta.shape[0]):
            together = both[pair]
            agreed = (sums[pair] + together) / n_classes
            pair += 1
            if together == 0:
                continue
            likely, joint = 0.0, 0.0
            for c in range(n_classes):
                same = 0.0
                for v in range(n_classes):
                    same += theta[i, c, v] * theta[j, c, v]
                likely += fit.balance[c] * same
                joint += fit.balance[c] * (1.0 - theta[i, c, n_classes]) * (1.0 - theta[j, c, n_classes])
            share = min(1.0, likely / max(joint, 1e-300))
            beyond = agreed / together - share
            squares += together * beyond * beyond - CHANCE_SHARE * share * (1.0 - share)
            rows += together
    return math.sqrt(max(0.0, squares) / rows) if rows > 0.0 else 0.0


@inner
def pool_classes(patterns: Patterns, post: Floats, cast: Ints, coin: Floats) -> None:
    """Fill in one accuracy for each labeler, whatever the class."""
    for h in range(coin.shape[0]):
        coin[h] = SMOOTHING * PRIOR_SKILL
    for q in range(post.shape[0]):
        for at in range(patterns.start[q], patterns.start[q + 1]):
            coin[patterns.who[at]] += patterns.rows[q] * post[q, patterns.what[at]]
    for h in range(coin.shape[0]):
        coin[h] /= cast[h] + SMOOTHING


@inner
def coin_share(fit: ConfusionFit, h: int, c: int, v: int) -> float:
    """Return P(vote v | class c) of a labeler that is right as often on every class, and abstains as fitted."""
    n_classes = fit.theta.shape[1]
    p = fit.coin[h] if v == c else (1.0 - fit.coin[h]) / (n_classes - 1)
    return (1.0 - fit.theta[h, c, n_classes]) * p


@inner
def evidence_for_classes(patterns: Patterns, window: int, cast: Ints, fit: ConfusionFit) -> float:
    """Return the probability, by the Bayesian information criterion, of class-conditional over one-coin labelers."""
    n, n_classes = fit.theta.shape[0], fit.theta.shape[1]
    logs, coins = np.empty(fit.theta.shape), np.empty(fit.theta.shape)
    absent = np.empty(n_classes)
    active = take_logs(fit.theta, cast, logs, absent)
    for h in range(n):
        for c in range(n_classes):
            for v in range(n_classes):
                coins[h, c, v] = math.log(coin_share(fit, h, c, v))
    gain = 0.0
    full, plain = np.empty(n_classes), np.empty(n_classes)
    for q in range(patterns.rows.shape[0]):
        for c in range(n_classes):
            full[c] = plain[c] = math.log(fit.balance[c]) + absent[c]
            for at in range(patterns.start[q], patterns.start[q + 1]):
                h, v = patterns.who[at], patterns.what[at]
                full[c] += logs[h, c, v] - logs[h, c, n_classes]
                plain[c] += coins[h, c, v] - logs[h, c, n_classes]
        seen = patterns.truth[q]
        if seen >= 0:
            gain += patterns.rows[q] * (full[seen] - plain[seen])
        else:
            gain += patterns.rows[q] * (log_of_sum(full) - log_of_sum(plain))
    extra = active * (n_classes * (n_classes - 1) - 1)
    gain -= 0.5 * math.log(window + 1.0) * extra
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, gain))))


@inner
def log_of_sum(scores: Floats) -> float:
    """Return ln of the sum of exponentials."""
    best, total = largest(scores), 0.0
    for c in range(scores.shape[0]):
        total += math.exp(scores[c] - best) if scores[c] < best else 1.0
    return best + math.log(total)


def select_fit(settings: ConfusionSettings, fits: ConfusionFit, place: int) -> ConfusionFit:
    """Return one of many fits."""
    return ConfusionFit(
        fits.theta[place],
        fits.coin[place],
        fits.balance[place],
        fits.misfit[place],
        fits.evidence[place],
        fits.accuracy[place],
        fits.votes[place],
        fits.window[place],
    )


def fit_window(
    settings: ConfusionSettings, state: StreamState, level: int, window: int, tables: ConfusionTables, fit: ConfusionFit
) -> None:
    """Fit the last `window` rows, those of the grid's window `level`, whose sums are there."""
    n, n_classes = fit.theta.shape[0], fit.theta.shape[1]
    patterns = find_patterns(state, window)
    post, logs = np.empty((patterns.rows.shape[0], n_classes)), np.empty((n, n_classes, n_classes + 1))
    cast, trust = np.empty(n, np.int64), np.empty(n)
    absent, prior = np.empty(n_classes), np.empty(n_classes)
    worth = prior_rows(patterns, window, cast, trust)
    start_from_majority(patterns, post)
    step, change = 0, 1.0
    while step < STEPS and (change >= SETTLED or step <= EVEN_STEPS):
        maximise(patterns, window, post, cast, trust, worth, settings.given, fit)
        active = take_logs(fit.theta, cast, logs, absent)
        for c in range(n_classes):
            even = step < EVEN_STEPS and settings.given[c] < 0.0
            prior[c] = 0.0 if even else math.log(fit.balance[c])
        change = expect(patterns, logs, prior, absent, active, post)
        step += 1
    maximise(patterns, window, post, cast, trust, worth, settings.given, fit)
    pool_classes(patterns, post, cast, fit.coin)
    pairs = n_pairs_of(state)
    sums = state.sums[level]
    fit.misfit[0] = misfit_of(fit, sums[:pairs], sums[pairs : 2 * pairs])
    fit.evidence[0] = evidence = evidence_for_classes(patterns, window, cast, fit)
    for h in range(n):
        right, voting = 0.0, 0.0
        for c in range(n_classes):
            right += fit.balance[c] * fit.theta[h, c, c]
            voting += fit.balance[c] * (1.0 - fit.theta[h, c, n_classes])
        accuracy = evidence * right / voting + (1.0 - evidence) * fit.coin[h]
        fit.accuracy[h] = min(1.0, accuracy) if cast[h] > 0 else 1.0 / n_classes
        fit.votes[h] = sums[2 * pairs + n * n_classes + h]
    fit.window[0] = window
    shrink_anchor(settings, state, patterns, tables, fit)


def fill_tables(settings: ConfusionSettings, fit: ConfusionFit, tables: ConfusionTables) -> None:
    """Fill in what each vote, and each abstention, adds to the log score of each class."""
    logs, evidence = tables.logs, fit.evidence[0]
    tables.active[0] = take_logs(fit.theta, fit.votes, logs, tables.start[0])
    for c in range(logs.shape[1]):
        tables.start[1, c] = math.log(fit.balance[c])
    for h in range(logs.shape[0]):
        for c in range(logs.shape[1]):
            for v in range(logs.shape[1]):
                coin = math.log(coin_share(fit, h, c, v))
                logs[h, c, v] = evidence * logs[h, c, v] + (1.0 - evidence) * coin
    tables.ready[0] = 1


@jit
def vote_logs(settings: ConfusionSettings, fit: ConfusionFit, tables: ConfusionTables) -> None:
    """Fill the tables of a fit, for Python."""
    interface.fill_tables(settings, fit, tables)


@inner
def score_row(
    misfit: float, fit: ConfusionFit, tables: ConfusionTables, row: Codes, support: Ints, proba: Floats
) -> int:
    """Fill in the probabilities of the classes of one row, and its votes by class; return how many votes there are."""
    n_classes, active = proba.shape[0], tables.active[0]
    votes, top = count_votes(row, support), 0
    for c in range(n_classes):
        top = max(top, support[c])
    familiar = 0  # votes of labelers that voted in the window
    for h in range(row.shape[0]):
        familiar += vote_of(row[h]) >= 0 and fit.votes[h] > 0
    leaders = 0
    for c in range(n_classes):
        leaders += support[c] == top
    weight = 1.0 / (1.0 + CROWDING * misfit * max(0.0, votes - 1.0))
    lean = min(ANCHOR * misfit, HEAVIEST_ANCHOR) * fit.window[0] / (fit.window[0] + ANCHOR_ROWS)
    silence = silence_weight(active, familiar)
    for c in range(n_classes):
        quiet, voiced = tables.start[0, c] if familiar < active else 0.0, 0.0
        for h in range(row.shape[0]):
            vote = vote_of(row[h])
            if vote >= 0:
                voiced += tables.logs[h, c, vote]
                if familiar < active and fit.votes[h] > 0:
                    quiet -= tables.logs[h, c, n_classes]
        anchor = lean / leaders if votes > 0 and support[c] == top else 0.0
        proba[c] = tables.start[1, c] + silence * quiet + weight * voiced + anchor
    to_probabilities(proba)
    return votes


@inner
def shrink_anchor(
    settings: ConfusionSettings, state: StreamState, patterns: Patterns, tables: ConfusionTables, fit: ConfusionFit
) -> None:
    """Lean on the majority less, if that labels clearly more of the verified rows right.

    The misfit says that labelers depend on each other, not which of them to believe; without better knowledge the
    majority is the safe choice. Unanimous rows do not count: their label is settled.
    """
    verified = False
    for q in range(patterns.truth.shape[0]):
        verified = verified or patterns.truth[q] >= 0
    if not verified or fit.misfit[0] == 0.0:
        return
    n, n_classes = fit.theta.shape[0], fit.theta.shape[1]
    interface.fill_tables(settings, fit, tables)
    row, support, proba = np.empty(n, state.ring.dtype), np.empty(n_classes, np.int64), np.empty(n_classes)
    usual = np.zeros(patterns.rows.shape[0], np.bool_)
    most, chosen = 0, 1.0
    for share in ANCHOR_SHARES:
        won, lost = 0, 0
        for q in range(patterns.rows.shape[0]):
            if patterns.truth[q] < 0:
                continue
            for h in range(n):
                row[h] = -1
            for at in range(patterns.start[q], patterns.start[q + 1]):
                row[patterns.who[at]] = patterns.what[at]
            votes = score_row(share * fit.misfit[0], fit, tables, row, support, proba)
            unanimous = False
            for c in range(n_classes):
                unanimous = unanimous or support[c] == votes
            right = not unanimous and proba[patterns.truth[q]] == largest(proba)
            if share == 1.0:
                usual[q] = right
            elif right and not usual[q]:
                won += patterns.rows[q]
            elif usual[q] and not right:
                lost += patterns.rows[q]
        if won - lost > max(float(most), CLEARLY * math.sqrt(won + lost)):
            most, chosen = won - lost, share
    fit.misfit[0] *= chosen


def label_row(
    settings: ConfusionSettings,
    fit: ConfusionFit,
    tables: ConfusionTables,
    row: Codes,
    draw: float,
    support: Ints,
    proba: Floats,
) -> int:
    """Return the label of one row: the likeliest class, but never another one than all its votes agree on."""
    votes = score_row(fit.misfit[0], fit, tables, row, support, proba)
    return pick_likeliest(support, votes, draw, proba)


KERNELS.register(
    ConfusionSettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    label_row=label_row,
)


@dataclass(frozen=True)
class Confusion(Estimator):
    """How each labeler votes on each class, with the class balance: the default.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when a sixteenth of its rows is new.
    class_balance
        Shares of the classes, if you know them; otherwise they are estimated.
    """

    refresh: int = 32
    class_balance: Sequence[float] | None = None
    name: ClassVar[str] = "confusion"
    bands: ClassVar[str | None] = "confusion"
    learns_from_verified: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", checks.n_rows("refresh", self.refresh, 2**20))
        object.__setattr__(self, "class_balance", checks.class_shares(self.class_balance))

    def check(self, n_classes: int) -> None:
        """Refuse a class balance of another number of classes."""
        shares = self.class_balance
        if shares is not None and len(shares) != n_classes:
            raise SettingError(f"class_balance must be {n_classes} shares, one for each class, not {shares!r}")

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> ConfusionSettings:
        """Return the settings as kernels need them."""
        given = np.full(n_classes, -1.0) if self.class_balance is None else np.array(self.class_balance)
        return ConfusionSettings(given)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> ConfusionFit:
        """Return arrays for so many fits."""
        return ConfusionFit(
            theta=np.zeros((n_fits, n_labelers, n_classes, n_classes + 1)),
            coin=np.zeros((n_fits, n_labelers)),
            balance=np.zeros((n_fits, n_classes)),
            misfit=np.zeros((n_fits, 1)),
            evidence=np.zeros((n_fits, 1)),
            accuracy=np.zeros((n_fits, n_labelers)),
            votes=np.zeros((n_fits, n_labelers), np.int64),
            window=np.zeros((n_fits, 1), np.int64),
        )

    def new_tables(self, settings: ConfusionSettings, n_labelers: int) -> ConfusionTables:
        """Return room for what `fill_tables` prepares."""
        k = len(settings.given)
        return ConfusionTables(
            logs=np.empty((n_labelers, k, k + 1)),
            start=np.empty((2, k)),
            active=np.zeros(1, np.int64),
            ready=np.zeros(1, np.int64),
        )

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says about a labeler that joined later."""
        return {"theta": 1.0 / (n_classes + 1), "coin": 1.0 / n_classes, "accuracy": 1.0 / n_classes}

    def accuracies(self, settings: ConfusionSettings, fits: ConfusionFit) -> Floats:
        """Return the accuracy of each labeler when it votes: fits x labelers."""
        return fits.accuracy

    def vote_weights(self, settings: ConfusionSettings, fits: ConfusionFit, places: Ints, rows: Codes) -> Floats:
        """Return the log-odds that each vote added to its class, against the other classes on average."""
        n, k = fits.theta.shape[1:3]
        weights = np.zeros(rows.shape)
        tables = self.new_tables(settings, n)
        labelers, own, other = np.arange(n), np.eye(k, dtype=bool), 1.0 - np.eye(k)
        starts = np.flatnonzero(np.diff(places, prepend=-1))  # rows that one fit labeled follow each other
        for first, last in zip(starts, [*starts[1:], len(places)], strict=True):
            fit = select_fit(settings, fits, places[first])
            vote_logs(settings, fit, tables)
            logs = tables.logs[:, :, :k]
            by_vote = logs[:, own] - np.log((np.exp(logs) * other).sum(axis=1) / (k - 1))  # labelers x votes
            votes = rows[first:last]
            crowd = 1.0 + CROWDING * fit.misfit[0] * np.maximum(0, (votes >= 0).sum(axis=1) - 1)
            weights[first:last] = np.where(votes >= 0, by_vote[labelers, votes], 0.0) / crowd[:, None]
        return weights
