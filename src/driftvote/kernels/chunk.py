"""The chunk kernel: rows in, state advanced, outputs filled. Every door leads here.

Short chunks go row by row (`label_rows`). Long ones go by blocks of time (`kernels/blocks.py`), which give the same
bits: both take the same integer sums through the same formulas in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import triplet_accuracies
from driftvote.kernels.agreements import Terms, absorb_row, room_for_changes
from driftvote.kernels.labels import add_logs, draw_of, multiply_odds, normalise, pick_class, vote_shares
from driftvote.kernels.layout import Codes, Floats, Ints, Memory, Outputs, Rule
from driftvote.kernels.weights import odds_of, weight_of
from driftvote.kernels.windows import choose_level, nothing_known


class Desk(NamedTuple):
    """Working arrays for single rows."""

    known: Ints  # for each level: until which row its test is settled
    work: Terms
    votes: Ints  # (labelers,)
    odds: Floats  # (labelers,)
    scores: Floats  # (classes,)
    support: Ints  # (classes,)


@jit
def new_desk(n: int, rule: Rule) -> Desk:
    """A desk on which nothing lies."""
    return Desk(
        nothing_known(rule),
        room_for_changes(n, rule.sizes.shape[0]),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(rule.n_classes),
        np.empty(rule.n_classes, np.int64),
    )


@jit
def estimate(memory: Memory, rule: Rule, known: Ints, estimates: Floats, votes: Ints) -> int:
    """Window, accuracies and vote counts after the rows seen so far; returns the window."""
    level = choose_level(memory, rule, known)
    window = min(rule.sizes[level], memory.clock[0])
    for h in range(votes.shape[0]):
        votes[h] = memory.votes[level, h]
    triplet_accuracies(memory.sums[level], votes, window, rule.n_classes, rule.diluted, estimates)
    return int(window)


@jit
def score(row: Codes, estimates: Floats, rule: Rule, work: Floats, scores: Floats, support: Ints) -> None:
    """Scores of the classes from the accuracies of the labelers."""
    for h in range(row.shape[0]):
        work[h] = weight_of(estimates[h], rule) if rule.by_logs else odds_of(estimates[h], rule)
    if rule.by_logs:
        add_logs(row, work, scores, support)
    else:
        multiply_odds(row, work, scores, support)


@jit
def label_row(
    row: Codes, draw: float, memory: Memory, rule: Rule, desk: Desk, estimates: Floats, proba: Floats
) -> tuple[int, int]:
    """Learn from a row, then label it: class code and window; vote counts stay on the desk."""
    absorb_row(row, rule.n_classes, rule.sizes, memory, desk.work)
    window = estimate(memory, rule, desk.known, estimates, desk.votes)
    score(row, estimates, rule, desk.odds, desk.scores, desk.support)
    normalise(desk.scores, proba)
    return pick_class(desk.scores, desk.support, draw), window


@jit
def label_rows(rows: Codes, draws: Floats, memory: Memory, rule: Rule, out: Outputs) -> None:
    """Learn from each row, then label it; one row after the other."""
    desk = new_desk(rows.shape[1], rule)
    for t in range(rows.shape[0]):
        label, window = label_row(rows[t], draw_of(draws, t), memory, rule, desk, out.estimates[t], out.proba[t])
        out.labels[t] = label
        out.windows[t] = window
        if out.votes.shape[0] > 0:
            out.votes[t] = desk.votes


@jit
def learn_chunk(rows: Codes, memory: Memory, rule: Rule) -> None:
    """Learn from each row; label none."""
    work = room_for_changes(rows.shape[1], rule.sizes.shape[0])
    for t in range(rows.shape[0]):
        absorb_row(rows[t], rule.n_classes, rule.sizes, memory, work)


@jit
def vote_chunk(rows: Codes, draws: Floats, estimates: Floats, rule: Rule, labels: Ints, proba: Floats) -> None:
    """Label rows by given accuracies; learn nothing."""
    work = np.empty(rows.shape[1])
    scores = np.empty(rule.n_classes)
    support = np.empty(rule.n_classes, dtype=np.int64)
    for t in range(rows.shape[0]):
        score(rows[t], estimates, rule, work, scores, support)
        labels[t] = pick_class(scores, support, draw_of(draws, t))
        normalise(scores, proba[t])


@jit
def majority_chunk(rows: Codes, draws: Floats, labels: Ints, proba: Floats) -> None:
    """The plain vote of each row, with the shares of the votes."""
    n_classes = proba.shape[1]
    odds = np.full(rows.shape[1], 1.0)
    scores = np.empty(n_classes)
    support = np.empty(n_classes, dtype=np.int64)
    for t in range(rows.shape[0]):
        multiply_odds(rows[t], odds, scores, support)
        for c in range(n_classes):
            scores[c] = float(support[c])
        labels[t] = pick_class(scores, support, draw_of(draws, t))
        vote_shares(support, proba[t])
