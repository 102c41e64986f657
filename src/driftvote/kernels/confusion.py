"""Class-conditional labelers: how each votes on each class, fitted to the patterns of a window by EM."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Floats, Ints
from driftvote.kernels.patterns import Patterns

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


class Fit(NamedTuple):
    """What a window says of the labelers and the classes."""

    theta: Floats  # (labelers, classes, classes + 1): P(vote | class), the last column for abstaining
    coin: Floats  # (labelers,): the one accuracy that explains the votes best if classes do not matter
    balance: Floats  # (classes,)
    doubts: Floats  # (2,): misfit of the agreements; evidence for class-conditional over one-coin labelers
    accuracy: Floats  # (labelers,): on the rows where the labeler votes
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


@jit
def start_from_majority(patterns: Patterns, post: Floats) -> None:
    """Every pattern's most voted classes, alike; verified rows as verified."""
    n_classes = post.shape[1]
    support = np.zeros(n_classes, np.int64)
    for q in range(post.shape[0]):
        support[:] = 0
        for at in range(patterns.start[q], patterns.start[q + 1]):
            support[patterns.what[at]] += 1
        top = support.max()
        if patterns.truth[q] >= 0:
            support[:] = 0
            support[patterns.truth[q]] = top = 1
        leaders = 0
        for c in range(n_classes):
            leaders += support[c] == top
        for c in range(n_classes):
            post[q, c] = 1.0 / leaders if support[c] == top else 0.0


@jit
def trust_in_priors(patterns: Patterns, cast: Ints, trust: Floats) -> None:
    """Votes of each labeler, and how many rows its prior counts: more, where hardly anybody checks it."""
    n = cast.shape[0]
    checked = np.zeros(n, np.int64)
    cast[:] = 0
    for q in range(patterns.rows.shape[0]):
        first, last = patterns.start[q], patterns.start[q + 1]
        for at in range(first, last):
            cast[patterns.who[at]] += patterns.rows[q]
            if last - first >= 3 or patterns.truth[q] >= 0:
                checked[patterns.who[at]] += patterns.rows[q]
    for h in range(n):
        short = CHECKED * cast[h] / max(float(checked[h]), 1e-4) if cast[h] else 1.0
        trust[h] = SMOOTHING * min(max(1.0, short), 1e6)


@jit
def worth_of_verified(patterns: Patterns) -> float:
    """How many rows a verified row counts as: the luck of a handful must not outweigh the window, many may."""
    verified = 0
    for q in range(patterns.rows.shape[0]):
        if patterns.truth[q] >= 0:
            verified += patterns.rows[q]
    share = verified / patterns.rows.sum()
    return 1.0 + (VERIFIED - 1.0) * min(1.0, max(0.0, (share - FEW) / (ENOUGH - FEW)))


@jit
def count_softly(patterns: Patterns, post: Floats, worth: float, theta: Floats, mass: Floats, rows: Floats) -> None:
    """Add the votes to `theta` (flattened), shared among the classes by their probabilities, and the rows to `mass`.

    A verified row counts more there, but not in `rows`, the class balance: people pick what they verify.
    """
    n_classes = post.shape[1]
    for q in range(post.shape[0]):
        first, last = patterns.start[q], patterns.start[q + 1]
        counts_as = worth if patterns.truth[q] >= 0 else 1.0
        if n_classes == 2:
            # The same sums, both classes in one pass: here, and in `expect`, goes most of the time of a fit.
            one, two = post[q, 0] * patterns.rows[q], post[q, 1] * patterns.rows[q]
            rows[0] += one
            rows[1] += two
            one *= counts_as
            two *= counts_as
            mass[0] += one
            mass[1] += two
            for at in range(first, last):
                cell = patterns.cell[at]
                theta[cell] += one
                theta[cell + 3] += two
            continue
        for c in range(n_classes):
            part = post[q, c] * patterns.rows[q]
            if part == 0.0:
                continue
            rows[c] += part
            part *= counts_as
            mass[c] += part
            step = c * (n_classes + 1)
            for at in range(first, last):
                theta[patterns.cell[at] + step] += part


@jit
def maximise(
    patterns: Patterns, post: Floats, cast: Ints, trust: Floats, worth: float, fit: Fit, given: Floats
) -> None:
    """M step: confusion rows and class balance from the classes' probabilities. `given` below 0 is estimated."""
    theta, balance = fit.theta, fit.balance
    n, n_classes = theta.shape[0], theta.shape[1]
    rows = float(patterns.rows.sum())
    theta[:] = 0.0
    balance[:] = 0.0
    mass = np.zeros(n_classes)
    count_softly(patterns, post, worth, theta.reshape(theta.size), mass, balance)
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


@jit
def expect(patterns: Patterns, logs: Floats, prior: Floats, absent: Floats, active: int, post: Floats) -> float:
    """E step: the classes' probabilities; returns the largest change. `absent`: log-probability that all abstain."""
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
                said = prior[c]
                for at in range(first, last):
                    said += flat[patterns.cell[at] + step]
                scores[c] = said
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


@jit
def silence_weight(active: int, votes: int) -> float:
    """Abstentions of one row are one piece of evidence, not many: labelers are silent for the same reason."""
    return 1.0 / max(1.0, float(active - votes))


@jit
def largest(scores: Floats) -> float:
    """The largest of a few numbers; of so few, NumPy's own takes as long as an exponential."""
    best = scores[0]
    for c in range(1, scores.shape[0]):
        best = max(best, scores[c])
    return best


@jit
def to_probabilities(scores: Floats) -> None:
    """Log scores to probabilities, in place."""
    best = largest(scores)
    total = 0.0
    for c in range(scores.shape[0]):
        scores[c] = math.exp(scores[c] - best) if scores[c] < best else 1.0
        total += scores[c]
    for c in range(scores.shape[0]):
        scores[c] /= total


@jit
def take_logs(theta: Floats, cast: Ints, logs: Floats, absent: Floats) -> int:
    """Logarithms of a confusion table, and of everybody abstaining; returns how many labelers vote at all."""
    active = 0
    absent[:] = 0.0
    for h in range(theta.shape[0]):
        for c in range(theta.shape[1]):
            for v in range(theta.shape[2]):
                logs[h, c, v] = math.log(theta[h, c, v])
        if cast[h] > 0:
            active += 1
            for c in range(theta.shape[1]):
                absent[c] += logs[h, c, theta.shape[1]]
    return active


@jit
def run_em(patterns: Patterns, cast: Ints, given: Floats, fit: Fit, post: Floats) -> None:
    """EM from the majority vote: the start that cannot exchange the classes."""
    n_classes = post.shape[1]
    logs = np.empty(fit.theta.shape)
    absent, prior = np.empty(n_classes), np.empty(n_classes)
    trust = np.empty(cast.shape[0])
    trust_in_priors(patterns, cast, trust)
    worth = worth_of_verified(patterns)
    start_from_majority(patterns, post)
    for step in range(STEPS):
        maximise(patterns, post, cast, trust, worth, fit, given)
        active = take_logs(fit.theta, cast, logs, absent)
        for c in range(n_classes):
            even = step < EVEN_STEPS and given[c] < 0.0
            prior[c] = 0.0 if even else math.log(fit.balance[c])
        if expect(patterns, logs, prior, absent, active, post) < SETTLED and step >= EVEN_STEPS:
            break
    maximise(patterns, post, cast, trust, worth, fit, given)
