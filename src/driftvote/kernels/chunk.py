"""The chunk kernel: rows in, state advanced, outputs filled. Every door leads here."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import triplet_skills
from driftvote.kernels.agreements import absorb_row
from driftvote.kernels.labels import add_scores, pick_class, softmax, vote_shares
from driftvote.kernels.layout import Codes, Floats, Ints, Memory, Outputs, Rule
from driftvote.kernels.weights import weigh
from driftvote.kernels.windows import choose_level


@jit
def estimate(memory: Memory, rule: Rule, skills: Floats, votes: Ints) -> int:
    """Window, skills and vote counts after the rows seen so far; returns the window."""
    level = choose_level(memory, rule)
    window = min(rule.sizes[level], memory.clock[0])
    triplet_skills(memory.sums[level], float(window) * (rule.n_classes - 1), skills)
    for h in range(votes.shape[0]):
        votes[h] = memory.votes[level, h]
    return int(window)


@jit
def label_chunk(rows: Codes, draws: Floats, memory: Memory, rule: Rule, out: Outputs) -> None:
    """Learn from each row, then label it."""
    weights = np.empty(rows.shape[1])
    scores = np.empty(rule.n_classes)
    support = np.empty(rule.n_classes, dtype=np.int64)
    for t in range(rows.shape[0]):
        absorb_row(rows[t], rule.n_classes, rule.sizes, memory)
        window = estimate(memory, rule, out.skills[t], out.votes[t])
        out.windows[t] = window
        weigh(out.skills[t], out.votes[t], window, rule, weights)
        add_scores(rows[t], weights, scores, support)
        out.labels[t] = pick_class(scores, support, draws[t])
        softmax(scores, out.proba[t])


@jit
def learn_chunk(rows: Codes, memory: Memory, rule: Rule) -> None:
    """Learn from each row; label none."""
    for t in range(rows.shape[0]):
        absorb_row(rows[t], rule.n_classes, rule.sizes, memory)


@jit
def vote_chunk(rows: Codes, draws: Floats, weights: Floats, shares: bool, labels: Ints, proba: Floats) -> None:
    """Label rows with given weights; learn nothing.

    Probabilities are vote shares (`shares`) or those of the weights.
    """
    n_classes = proba.shape[1]
    scores = np.empty(n_classes)
    support = np.empty(n_classes, dtype=np.int64)
    for t in range(rows.shape[0]):
        add_scores(rows[t], weights, scores, support)
        labels[t] = pick_class(scores, support, draws[t])
        if shares:
            vote_shares(support, proba[t])
        else:
            softmax(scores, proba[t])
