"""A whole fit of a window: EM, how well it explains the agreements, and what a row then is."""

from __future__ import annotations

import math

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.confusion import (
    PRIOR_SKILL,
    SMOOTHING,
    Fit,
    largest,
    run_em,
    silence_weight,
    take_logs,
    to_probabilities,
)
from driftvote.kernels.labels import pick_class
from driftvote.kernels.layout import Codes, Floats, Ints
from driftvote.kernels.patterns import Patterns, find_patterns
from driftvote.kernels.tallies import Tally, n_pairs_of

# Argued for in docs/estimators.md, like the figures of the EM.
ANCHOR = 40.0  # log-odds that the majority of a row adds, for each unit of misfit
HEAVIEST_ANCHOR = 4.0  # and at most: no majority is beyond doubt
ANCHOR_ROWS = 4.0  # the misfit of a handful of rows is noise: so many rows halve it
CROWDING = 2.0  # how much a unit of misfit makes each further vote of a row a repetition
CHANCE_SHARE = 0.25  # share of the binomial variance that a fit leaves in an agreement

LEAN = (1.0, 0.5, 0.25, 0.0)  # shares of the misfit that verified rows can choose from
CLEARLY = 2.0  # standard deviations by which a smaller share must label more of them right

MISFIT, EVIDENCE = 0, 1


@jit
def misfit_of(fit: Fit, sums: Ints, both: Ints) -> float:
    """How far the pairs agree more or less often than independent labelers of this kind would: a root mean square."""
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


@jit
def pool_classes(patterns: Patterns, post: Floats, cast: Ints, coin: Floats) -> None:
    """One accuracy for each labeler, whatever the class."""
    coin[:] = SMOOTHING * PRIOR_SKILL
    for q in range(post.shape[0]):
        for at in range(patterns.start[q], patterns.start[q + 1]):
            coin[patterns.who[at]] += patterns.rows[q] * post[q, patterns.what[at]]
    for h in range(coin.shape[0]):
        coin[h] /= cast[h] + SMOOTHING


@jit
def coin_share(fit: Fit, h: int, c: int, v: int) -> float:
    """P(vote v | class c) of a labeler that is right as often on every class, and abstains as the fit says."""
    n_classes = fit.theta.shape[1]
    p = fit.coin[h] if v == c else (1.0 - fit.coin[h]) / (n_classes - 1)
    return (1.0 - fit.theta[h, c, n_classes]) * p


@jit
def evidence_for_classes(patterns: Patterns, cast: Ints, fit: Fit) -> float:
    """Probability, by the Bayesian information criterion, that classes matter: 0 one-coin, 1 class-conditional."""
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
    gain -= 0.5 * math.log(patterns.rows.sum() + 1.0) * extra
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, gain))))


@jit
def log_of_sum(scores: Floats) -> float:
    """ln of the sum of exponentials."""
    best, total = largest(scores), 0.0
    for c in range(scores.shape[0]):
        total += math.exp(scores[c] - best) if scores[c] < best else 1.0
    return best + math.log(total)


@jit
def fit_window(tally: Tally, level: int, window: int, given: Floats, fit: Fit) -> None:
    """Fit the last `window` rows, those of the grid's window `level`, whose sums are there."""
    n, n_classes = fit.theta.shape[0], fit.theta.shape[1]
    patterns = find_patterns(tally, window)
    post = np.empty((patterns.rows.shape[0], n_classes))
    cast = np.empty(n, np.int64)
    run_em(patterns, cast, given, fit, post)
    pool_classes(patterns, post, cast, fit.coin)
    pairs = n_pairs_of(tally)
    sums = tally.stats[level]
    fit.doubts[MISFIT] = misfit_of(fit, sums[:pairs], sums[pairs : 2 * pairs])
    fit.doubts[EVIDENCE] = evidence_for_classes(patterns, cast, fit)
    for h in range(n):
        right, voting = 0.0, 0.0
        for c in range(n_classes):
            right += fit.balance[c] * fit.theta[h, c, c]
            voting += fit.balance[c] * (1.0 - fit.theta[h, c, n_classes])
        known = fit.doubts[EVIDENCE] * right / voting + (1.0 - fit.doubts[EVIDENCE]) * fit.coin[h]
        fit.accuracy[h] = min(1.0, known) if cast[h] > 0 else 1.0 / n_classes
        fit.votes[h] = sums[2 * pairs + n * n_classes + h]
    fit.window[0] = window
    heed_verified(tally, patterns, fit)


@jit
def look_up(fit: Fit, looks: Floats, start: Floats) -> int:
    """What each vote adds to the log score of each class, and each abstention; returns how many labelers vote.

    `start` (2, classes): what all abstaining adds, and the shares of the classes.
    """
    active = take_logs(fit.theta, fit.votes, looks, start[0])
    for c in range(looks.shape[1]):
        start[1, c] = math.log(fit.balance[c])
    for h in range(looks.shape[0]):
        for c in range(looks.shape[1]):
            for v in range(looks.shape[1]):
                coin = math.log(coin_share(fit, h, c, v))
                looks[h, c, v] = fit.doubts[EVIDENCE] * looks[h, c, v] + (1.0 - fit.doubts[EVIDENCE]) * coin
    return active


@jit
def score_row(row: Codes, fit: Fit, looks: Floats, start: Floats, active: int, support: Ints, proba: Floats) -> None:
    """Probabilities of the classes of one row, and its votes by class."""
    n_classes = proba.shape[0]
    support[:] = 0
    known = 0
    for h in range(row.shape[0]):
        vote = vote_of(row[h])
        if vote >= 0:
            support[vote] += 1
            known += fit.votes[h] > 0
    votes, top = support.sum(), support.max()
    leaders = 0
    for c in range(n_classes):
        leaders += support[c] == top
    misfit = fit.doubts[MISFIT]
    weight = 1.0 / (1.0 + CROWDING * misfit * max(0.0, votes - 1.0))
    lean = min(ANCHOR * misfit, HEAVIEST_ANCHOR) * fit.window[0] / (fit.window[0] + ANCHOR_ROWS)
    silence = silence_weight(active, known)
    for c in range(n_classes):
        quiet, said = start[0, c] if known < active else 0.0, 0.0
        for h in range(row.shape[0]):
            vote = vote_of(row[h])
            if vote >= 0:
                said += looks[h, c, vote]
                if known < active and fit.votes[h] > 0:
                    quiet -= looks[h, c, n_classes]
        anchor = lean / leaders if votes > 0 and support[c] == top else 0.0
        proba[c] = start[1, c] + silence * quiet + weight * said + anchor
    to_probabilities(proba)


@jit
def heed_verified(tally: Tally, patterns: Patterns, fit: Fit) -> None:
    """Lean on the majority less, if that labels clearly more of the verified rows right.

    Misfit says that labelers depend on each other, not whom to believe then; without better knowledge the majority is
    the safe choice. Unanimous rows have no say: their label is settled.
    """
    if patterns.truth.max() < 0 or fit.doubts[MISFIT] == 0.0:
        return
    n, n_classes = fit.theta.shape[0], fit.theta.shape[1]
    looks, start = np.empty(fit.theta.shape), np.empty((2, n_classes))
    active = look_up(fit, looks, start)
    row, support, proba = np.empty(n, tally.ring.dtype), np.empty(n_classes, np.int64), np.empty(n_classes)
    usual = np.zeros(patterns.rows.shape[0], np.bool_)
    misfit, most, chosen = fit.doubts[MISFIT], 0, 1.0
    for share in LEAN:
        fit.doubts[MISFIT] = share * misfit
        won, lost = 0, 0
        for q in range(patterns.rows.shape[0]):
            if patterns.truth[q] < 0:
                continue
            row[:] = -1
            for at in range(patterns.start[q], patterns.start[q + 1]):
                row[patterns.who[at]] = patterns.what[at]
            score_row(row, fit, looks, start, active, support, proba)
            right = support.max() < support.sum() and proba[patterns.truth[q]] == proba.max()
            if share == 1.0:
                usual[q] = right
            elif right and not usual[q]:
                won += patterns.rows[q]
            elif usual[q] and not right:
                lost += patterns.rows[q]
        if won - lost > max(float(most), CLEARLY * math.sqrt(won + lost)):
            most, chosen = won - lost, share
    fit.doubts[MISFIT] = chosen * misfit


@jit
def settle_row(support: Ints, draw: float, proba: Floats) -> int:
    """The label: the likeliest class, but never another one than all who voted agree on."""
    n_classes = proba.shape[0]
    votes = support.sum()
    for c in range(n_classes):
        if votes > 0 and support[c] == votes:
            # The model doubts a unanimous row: its class wins all the same, and the probability says that it is close.
            if proba[c] < proba.max():
                proba[c] = proba.max()
                proba /= proba.sum()
            return c
    for c in range(n_classes):
        support[c] = 1
    return pick_class(proba, support, draw)
