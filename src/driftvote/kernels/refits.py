"""Chunks of rows under the sharper window rules, with either estimator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import triplet_accuracies
from driftvote.kernels.bounds import Watch, choose
from driftvote.kernels.chunk import score
from driftvote.kernels.confusion import Fit
from driftvote.kernels.fits import fit_window, look_up, score_row, settle_row
from driftvote.kernels.labels import draw_of, normalise, pick_class
from driftvote.kernels.layout import Codes, Floats, Ints, Outputs, Rule
from driftvote.kernels.patterns import few_keys
from driftvote.kernels.tallies import Tally, absorb, n_pairs_of

REFITS_A_WINDOW = 16
"""A window is fitted again when a sixteenth of its rows is new: the cost per row then does not grow with it."""


class Plan(NamedTuple):
    """When to fit, and what is given."""

    refresh: int  # rows between two looks at the window
    periods: Ints  # (windows,): rows between two fits, by window; multiples of `refresh`
    given: Floats  # (classes,): the class balance, or -1 to estimate it


class Said(NamedTuple):
    """What a chunk of rows comes back with, one entry a row."""

    labels: Ints
    proba: Floats
    fits: Ints  # which fit labeled the row


@jit
def kept(fits: Fit, place: int) -> Fit:
    """One of many fits."""
    return Fit(
        fits.theta[place],
        fits.coin[place],
        fits.balance[place],
        fits.doubts[place],
        fits.accuracy[place],
        fits.votes[place],
        fits.window[place],
    )


@jit
def is_look(row: int, refresh: int) -> bool:
    """Whether the window is chosen anew at this row (counted from 0): at first always, then every so often."""
    return row < refresh or row % refresh == 0


@jit
def is_due(row: int, level: int, sizes: Ints, plan: Plan) -> bool:
    """Whether the window is fitted again at this row: a sixteenth of it is new, or of the rows there are."""
    if row < plan.refresh:
        return True
    period = plan.periods[level]
    if row < sizes[level]:
        shorter = plan.refresh
        while 2 * shorter * REFITS_A_WINDOW <= row:
            shorter *= 2
        period = min(period, shorter)
    return row % period == 0


class Repeats(NamedTuple):
    """What the current fit said of rows that came before: most rows of a long chunk repeat an earlier one."""

    fit: Ints  # (different rows,): the place of the fit that said it
    label: Ints
    proba: Floats


@jit
def room_for_repeats(n_rows: int, tally: Tally) -> Repeats:
    """Empty, and of no size where it would not pay: for short chunks, or where rows rarely repeat."""
    keys = few_keys(tally)
    size = keys if n_rows >= 2 * keys else 0
    return Repeats(np.full(size, -1, np.int64), np.empty(size, np.int64), np.empty((size, tally.n_classes)))


@jit
def label_with_refits(
    rows: Codes, known: Ints, draws: Floats, tally: Tally, watch: Watch, plan: Plan, fits: Fit, said: Said
) -> int:
    """Learn from each row, then label it. `fits[0]` is the fit so far; new ones follow; returns the last one's place.

    `known` holds the verified classes, or is empty. What a verified row comes out as is the caller's business.
    """
    n, n_classes = rows.shape[1], said.proba.shape[1]
    looks, start = np.empty((n, n_classes, n_classes + 1)), np.empty((2, n_classes))
    support = np.empty(n_classes, np.int64)
    place = 0
    fit = kept(fits, 0)
    window = int(fit.window[0])
    active = look_up(fit, looks, start) if window > 0 else 0
    repeats = room_for_repeats(rows.shape[0], tally)
    for t in range(rows.shape[0]):
        row = tally.clock[0]
        absorb(rows, t, watch.sizes, tally)
        if known.shape[0] > 0:
            tally.known[row % tally.known.shape[0]] = known[t]
        if window == 0 or is_look(row, plan.refresh):
            level = choose(tally, watch)
            if window == 0 or is_due(row, level, watch.sizes, plan):
                place += 1
                fit = kept(fits, place)
                fit_window(tally, level, min(watch.sizes[level], tally.clock[0]), plan.given, fit)
                active = look_up(fit, looks, start)
                window = int(fit.window[0])
        said.fits[t] = place
        key = tally.keys[row % tally.keys.shape[0]]
        repeated = repeats.fit.shape[0] > 0 and draw_of(draws, t) < 0.0  # a draw for ties belongs to its row
        if repeated and repeats.fit[key] == place:
            said.labels[t] = repeats.label[key]
            said.proba[t] = repeats.proba[key]
            continue
        score_row(rows[t], fit, looks, start, active, support, said.proba[t])
        said.labels[t] = settle_row(support, draw_of(draws, t), said.proba[t])
        if repeated:
            repeats.fit[key], repeats.label[key] = place, said.labels[t]
            repeats.proba[key] = said.proba[t]
    return place


@jit
def vote_by_fit(rows: Codes, draws: Floats, fit: Fit, labels: Ints, proba: Floats) -> None:
    """Label rows by a given fit; learn nothing."""
    n, n_classes = rows.shape[1], proba.shape[1]
    looks, start = np.empty((n, n_classes, n_classes + 1)), np.empty((2, n_classes))
    support = np.empty(n_classes, np.int64)
    active = look_up(fit, looks, start)
    for t in range(rows.shape[0]):
        score_row(rows[t], fit, looks, start, active, support, proba[t])
        labels[t] = settle_row(support, draw_of(draws, t), proba[t])


@jit
def estimate_now(tally: Tally, watch: Watch, rule: Rule, estimates: Floats, votes: Ints) -> int:
    """Window, triplet accuracies and vote counts after the rows seen so far; returns the window."""
    level = choose(tally, watch)
    window = min(watch.sizes[level], tally.clock[0])
    n, pairs = votes.shape[0], n_pairs_of(tally)
    sums = tally.stats[level]
    for h in range(n):
        votes[h] = sums[2 * pairs + n * rule.n_classes + h]
    triplet_accuracies(sums[:pairs], votes, window, rule.n_classes, rule.diluted, estimates)
    return int(window)


@jit
def label_by_triplets(rows: Codes, draws: Floats, tally: Tally, watch: Watch, rule: Rule, out: Outputs) -> None:
    """Learn from each row, then label it by the paper's estimator."""
    n = rows.shape[1]
    work, scores = np.empty(n), np.empty(rule.n_classes)
    support = np.empty(rule.n_classes, np.int64)
    for t in range(rows.shape[0]):
        absorb(rows, t, watch.sizes, tally)
        out.windows[t] = estimate_now(tally, watch, rule, out.estimates[t], out.votes[t])
        score(rows[t], out.estimates[t], rule, work, scores, support)
        out.labels[t] = pick_class(scores, support, draw_of(draws, t))
        normalise(scores, out.proba[t])
