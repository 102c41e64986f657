"""The default: a mixture of label models that fail on different streams.

Votes alone cannot tell whether a class is common or the labelers favour it, whether labelers err together, or whether
an abstention means anything. So six label models read the same window, each with another answer, and the probabilities
of a row are the weighted mean of theirs. The cautious one counts twice, the others begin with the same weight. Three
things that votes do show change that (docs/estimators.md):

- **What explains the agreements.** If the labels of a model were the truth, and labelers erred independently, pairs
  would agree so and so often. What the labels of the majority leave unexplained is divided into noise, what labelers
  with one accuracy explain, and what labelers with an accuracy for each class explain beyond that. What a kind
  explains adds to its weight.
- **Copies.** A pair that agrees more than independent errors allow repeats itself. The members with one accuracy count
  such votes less; the others take errors as independent.
- **Specialists.** Where knowing who votes tells what is voted (rules that know one class only), neither one accuracy
  nor the class balance can be read from the votes, and the models that do so lose weight.

Tables and accuracies come from the whole window, the class balance from its latest rows: classes come in runs.

Verified rows tell more than votes can. Each one speaks for the label models that were right on it, which moves their
weights, and for rows on which the label models name the same classes, which moves the probabilities of these rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from driftvote import settings as checks
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import by_address, inner, jit
from driftvote.core.label_models.confusion import (
    BALANCE_ROWS,
    EVEN_STEPS,
    STEPS,
    EmEstimator,
    EmFit,
    EmRoom,
    EmSettings,
    compare_classes,
    count_by_class,
    count_cast,
    expect,
    log_ratios,
    new_room,
    run_em,
    silence_weight,
    start_em,
    sum_first,
    weigh_silence,
)
from driftvote.core.label_models.interface import KERNELS
from driftvote.core.label_models.interface import fill_tables as fill
from driftvote.core.label_models.interface import select_fit as select
from driftvote.core.patterns import find_patterns, start_from_majority
from driftvote.core.state import Classes, StreamState, vote_of
from driftvote.core.voting import add_majority, count_votes, largest, pick_likeliest, to_probabilities

MEMBERS = ("majority", "one_coin", "one_coin_balance", "confusion", "confusion_plain", "cautious")
"""Majority; one accuracy for each labeler with even classes, and with the class balance estimated; confusion tables
that begin with even classes, and that begin with the majority's; confusion tables close to the majority."""
ONE_COIN, ONE_COIN_BALANCE, CONFUSION, CONFUSION_PLAIN, CAUTIOUS = range(5)
"""Places of the members that are fitted; the majority needs no fit."""

NOISE = 5
"""Place of what chance leaves unexplained, after the misfits of the majority and of four members."""

ONE_EVIDENCE = (
    3.0  # each of two members: if they explain all of the agreements, they outvote the others by three to two
)
CLASS_EVIDENCE = (
    10.0  # for one member: it outvotes all others if it explains more than half of what the majority leaves
)
FOLLOW = 0.25  # share of the misfit that accuracies must explain, or the window does not follow the agreements
SURELY = 2.0  # standard errors by which a pair must agree beyond chance before its votes count as repetitions
CAUTION = 2.0  # weight of the cautious member, which fails hardly anywhere, over that of any other one
RECENT_PART = 16  # of a window, the latest such part tells the class balance: the rows since the fit before
RECENT_ROWS = 256  # at least so many: a share of them is known to within 0.03
SHARED = 0.02  # share of disagreements that is missing where errors count as shared: ten votes are then worth 8.5
CHANCE_VOTES = 0.25  # beyond those of a row, cast by chance: one vote is not certain, many nearly
MIXTURE_VOTES = 0.05  # the same, cast by the mixture: it orders rows whose votes are alike, and hardly moves them
OVERRULED_PART = 0.5  # of the way to the mixture's own probabilities, where it overrules the votes: it is often wrong
CAUTIOUS_STEPS = 4  # steps from the majority that the cautious member takes
ANSWERS = 64  # verified rows of a window, the latest ones, that move weights and probabilities
ANSWER_SHARE = 1.0 / 3.0  # of a verified row's log-likelihood counts for the weights: rows alike repeat each other
MIXTURE_ROWS = (
    1.75  # verified rows of its kind that the mixture's own probabilities are worth; more if it explains more
)
ALIKE = 0.3  # what a verified row counts for another, for each member that names another class there
CAUTIOUS_PULL = 2.0  # log-odds that the majority of a row adds to its class: 0.88 if nothing else were known


class MixtureSettings(NamedTuple):
    """The settings in the form that kernels need."""

    estimated: bool  # the class balance is estimated by the members that do so; otherwise it is `given` for all
    given: Floats  # (classes,)
    answer_errors: float  # share of verified rows whose class is taken to be wrong


class MixtureFit(NamedTuple):
    """The fits of the members, and their weights."""

    theta: Floats  # (confusion members and the cautious one, labelers, classes, classes + 1): see `EmFit`
    coins: Floats  # (members with one accuracy, labelers)
    balance: Floats  # (fitted members, classes)
    shares: Floats  # (fitted members, classes)
    weights: Floats  # (members,): their sum is 1
    free: Floats  # (members,): the weights that the votes alone give
    answers: Classes  # (ANSWERS, members + 1): what members name on verified rows in dispute, and the verified class
    explained: Floats  # (4,): shares of the agreements' misfit: noise, by one accuracy, by an accuracy for each class;
    # and how far errors are independent, from 0 to 1: see `weigh_members`
    worth: Floats  # (labelers,): how much a vote counts for the members with one accuracy: 1, or less for a copy
    accuracy: Floats  # (labelers,): on the rows where the labeler votes
    votes: Ints  # (labelers,): votes in the window
    window: Ints  # (1,)


class MixtureTables(NamedTuple):
    """What labeling needs of a fit; logarithms are taken once for all rows that it labels."""

    logs: Floats  # (labelers, classes + 1, fitted members x classes): of votes, the last line of abstaining
    start: Floats  # (2, fitted members x classes): of the class balance, and of all labelers abstaining
    active: Ints  # (1,): labelers that vote at all
    weights: Floats  # (members,): see `MixtureFit`, as the next two
    answers: Classes
    explained: Floats
    scores: Floats  # (2, fitted members x classes): for work, of votes and of abstaining
    parts: Floats  # (members, classes): probabilities of one row by each member, for work
    named: Classes  # (members,): the class that each member names on one row, for work
    ready: Ints  # (1,)


class MixtureRoom(NamedTuple):
    """Room for the work of a fit, and verified rows that are given from outside."""

    em: EmRoom
    known: Floats  # (ANSWERS, 2 members + 2): verified rows that count wherever they stand in the stream, see `tell`
    pooled: Floats  # (labelers, classes, classes + 1): the table of a member with one accuracy
    mass: Floats  # (classes,)
    misfits: Floats  # (NOISE + 1,)
    shared: Floats  # (members - 1,)
    accuracies: Floats  # (fitted members, labelers)
    votes: Floats  # (2, classes)
    support: Ints  # (classes,)


@inner
def member_settings(settings: MixtureSettings, m: int) -> EmSettings:
    """Return the settings of one member that is fitted."""
    pooled = m <= ONE_COIN_BALANCE
    return EmSettings(
        pooled,
        not pooled,
        settings.estimated and (m == ONE_COIN_BALANCE or m == CONFUSION or m == CONFUSION_PLAIN),
        EVEN_STEPS if m == CONFUSION else 0,
        CAUTIOUS_STEPS if m == CAUTIOUS else STEPS,
        CAUTIOUS_PULL if m == CAUTIOUS else 0.0,
        settings.given,
    )


@inner
def misfit_of(counts: Floats, mass: Floats, sums: Ints, read: float, repeats: Floats) -> tuple[float, float, float]:
    """Return what labels leave unexplained in the agreements of pairs, what chance would leave, and what is shared.

    `counts` are the votes of each labeler by the class of the labels (the last column: all its votes). If errors were
    independent, a pair would agree on a share of its common rows that follows from them; the misfit is the mean square
    of the difference, weighted by common rows. `repeats`, if not empty, gets for each labeler the sum over the others
    of the share of independent disagreements that is missing: 1 for each exact copy. `read` is the share of the
    window's rows that the counts are made from. What is shared is the same share over all pairs together; one row on
    which a pair agrees although it should not is added, so where pairs cannot disagree, all is.
    """
    n, n_classes = counts.shape[0], mass.shape[0]
    pairs = n * (n - 1) // 2
    squares, noise, rows, pair = 0.0, 0.0, 0.0, 0
    excess, apart = 1.0, 1.0
    for h in range(repeats.shape[0]):
        repeats[h] = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            together = float(sums[pairs + pair])
            agreed = (sums[pair] + together) / n_classes
            pair += 1
            if together == 0.0:
                continue
            same, joint = 0.0, 0.0
            for c in range(n_classes):
                if mass[c] > 0.0:
                    alike = 0.0
                    for v in range(n_classes):
                        alike += counts[i, c, v] * counts[j, c, v]
                    same += alike / mass[c]
                    joint += counts[i, c, n_classes] * counts[j, c, n_classes] / mass[c]
            share = min(1.0, same / max(joint, 1e-300))
            beyond = agreed / together - share
            squares += together * beyond * beyond
            noise += share * (1.0 - share)
            rows += together
            excess += together * beyond
            apart += together * (1.0 - share)
            if repeats.shape[0] > 0 and share < 1.0 - 1e-6:
                both = max(1.0, read * together)
                error = math.sqrt(max(share * (1.0 - share), 0.25 / both) / both)
                missing = max(0.0, beyond - SURELY * error) / (1.0 - share)
                repeats[i] += missing
                repeats[j] += missing
    return squares / max(rows, 1.0), noise / max(rows, 1.0), max(0.0, excess / apart)


@inner
def entropy(counts: Floats) -> float:
    """Return the entropy of counts."""
    total, result = 0.0, 0.0
    for c in range(counts.shape[0]):
        total += counts[c]
    for c in range(counts.shape[0]):
        if counts[c] > 0.0:
            result -= counts[c] / total * math.log(counts[c] / total)
    return result


@inner
def generality(sums: Ints, n: int, work: Floats) -> float:
    """Return 1 where all labelers vote for the same classes, 0 where each knows one only.

    It is the part of the votes' entropy that is left when one knows who votes.
    """
    own, all_votes, n_classes = work[0], work[1], work.shape[1]
    left, total = 0.0, 0.0
    for c in range(n_classes):
        all_votes[c] = 0.0
    for h in range(n):
        votes = 0.0
        for c in range(n_classes):
            own[c] = float(sums[n * (n - 1) + h * n_classes + c])
            all_votes[c] += own[c]
            votes += own[c]
        left += votes * entropy(own)
        total += votes
    whole = total * entropy(all_votes)
    return min(1.0, left / whole) if whole > 0.0 else 1.0


@inner
def weigh_members(misfits: Floats, shared: Floats, general: float, fit: MixtureFit) -> None:
    """Fill in the weights; `misfits` are those of all members, the majority first, and what chance leaves last.

    `shared` are the shares of disagreements that are missing, by member. Errors are independent as far as few are, and
    as far as labelers are no specialists, whose agreements follow from who votes.
    """
    total, one = misfits[0] + misfits[NOISE] + 1e-12, fit.explained[1]
    classes = max(0.0, min(1.0, (misfits[0] - min(misfits[3], misfits[4])) / total) - one)
    fit.explained[2] = classes
    # Tables take few votes for certain, and a third of the weight then outvotes softer members. Where one accuracy
    # explains nearly everything, and tables little of what it leaves, they are not needed: the square spares the rest.
    needless = one * max(0.0, 1.0 - classes / max(1.0 - fit.explained[0] - one, 1e-12))
    needed = 1.0 - needless * needless
    weights = fit.weights
    weights[0] = 1.0
    weights[1] = general * (1.0 + ONE_EVIDENCE * one)
    weights[2] = general * (1.0 + ONE_EVIDENCE * one)
    even = misfits[3] <= misfits[4]  # of the two that know classes, the one that explains more gets the weight
    weights[3] = needed * (1.0 + CLASS_EVIDENCE * classes if even else 1.0)
    weights[4] = needed * general * (1.0 if even else 1.0 + CLASS_EVIDENCE * classes)
    weights[5] = needed * CAUTION
    total = 0.0
    for m in range(weights.shape[0]):
        total += weights[m]
    for m in range(weights.shape[0]):
        weights[m] /= total
    # The median, because a member whose labels are far off also misjudges what is shared, however much it weighs.
    missing = 0.0
    for m in range(shared.shape[0]):
        before = 0
        for o in range(shared.shape[0]):
            before += shared[o] < shared[m] or (shared[o] == shared[m] and o < m)
        if before == shared.shape[0] // 2:
            missing = shared[m]
    fit.explained[3] = general * max(0.0, 1.0 - missing / SHARED)


@inner
def follow_balance(
    settings: MixtureSettings, state: StreamState, window: int, room: MixtureRoom, fit: MixtureFit
) -> None:
    """Estimate the class balance of the latest rows by EM, for each member that has one, its tables as they are."""
    em, n_classes = room.em, fit.balance.shape[1]
    patterns, cast = em.patterns, em.cast
    total = find_patterns(state, max(RECENT_ROWS, window // RECENT_PART), patterns)
    start_from_majority(patterns)
    weigh_silence(patterns, cast)
    for h in range(cast.shape[0]):
        for q in range(patterns.size[0]):  # of a long window, a fit may not have read these rows
            if patterns.codes[h, q] > 0:
                cast[h, patterns.codes[h, q] - 1] = max(1.0, cast[h, patterns.codes[h, q] - 1])
    even = False
    for m in range(ONE_COIN_BALANCE, CAUTIOUS):
        own, balance = by_address(member_settings(settings, m)), fit.balance[m]
        theta = room.pooled if own.pooled else fit.theta[m - CONFUSION]  # the last one with pooled tables is m
        compare_classes(own, patterns, cast, fit.worth if own.pooled else em.none, theta, em.odds)
        start_em(patterns)
        step, moved = 0, 1.0
        while step < STEPS and moved > 0.0:
            moved = expect(own, even, patterns, em.odds, balance)
            for c in range(n_classes):
                rows = sum_first(patterns.work[c], patterns.size[0]) if n_classes > 2 or c > 0 else 0.0
                balance[c] = (rows + BALANCE_ROWS / n_classes) / (total + BALANCE_ROWS)
            if n_classes == 2:
                balance[0] = 1.0 - balance[1]
            step += 1


def select_fit(settings: MixtureSettings, fits: MixtureFit, place: int) -> MixtureFit:
    """Return one of many fits."""
    return MixtureFit(
        fits.theta[place],
        fits.coins[place],
        fits.balance[place],
        fits.shares[place],
        fits.weights[place],
        fits.free[place],
        fits.answers[place],
        fits.explained[place],
        fits.worth[place],
        fits.accuracy[place],
        fits.votes[place],
        fits.window[place],
    )


@inner
def fit_member(m: int, settings: MixtureSettings, total: float, sums: Ints, room: MixtureRoom, fit: MixtureFit) -> None:
    """Fit one member to the patterns of the window, and find what it leaves unexplained."""
    n_classes, em, own = fit.theta.shape[2], room.em, by_address(member_settings(settings, m))
    theta = room.pooled if own.pooled else fit.theta[m - CONFUSION]
    part = by_address(EmFit(theta, fit.balance[m], fit.shares[m], room.accuracies[m], fit.votes, fit.window))
    run_em(own, em.patterns, total, em.cast, fit.worth if own.pooled else em.none, em.counts, em.odds, part)
    if own.pooled:
        for h in range(theta.shape[0]):
            fit.coins[m, h] = theta[h, 0, 0] / (theta[h, 0, 0] + (n_classes - 1) * theta[h, 0, 1])
    if m < CAUTIOUS:
        for c in range(n_classes):
            room.mass[c] = fit.shares[m, c] * total
        misfit, _, shared = misfit_of(em.counts, room.mass, sums, total / fit.window[0], em.none)
        room.misfits[m + 1], room.shared[m + 1] = misfit, shared


@inner
def begin_fit(
    settings: MixtureSettings, state: StreamState, level: int, window: int, room: MixtureRoom, fit: MixtureFit
) -> None:
    """Find the patterns of the last `window` rows, fit the members with one accuracy, and see what they explain."""
    em, mass, misfits, n = room.em, room.mass, room.misfits, fit.theta.shape[1]
    patterns, sums = em.patterns, state.sums[level]
    total = find_patterns(state, window, patterns)
    start_from_majority(patterns)
    count_cast(patterns, em.cast)
    weigh_silence(patterns, em.cast)
    start_em(patterns)
    count_by_class(patterns, total, em.cast, em.counts, mass)
    misfits[0], misfits[NOISE], room.shared[0] = misfit_of(em.counts, mass, sums, total / window, fit.worth)
    for h in range(n):
        fit.worth[h] = 1.0 / (1.0 + fit.worth[h])
        fit.votes[h] = sums[sums.shape[0] - n + h]
    fit.window[0] = window
    for m in range(CONFUSION):
        fit_member(m, settings, total, sums, room, fit)
    most = misfits[0] + misfits[NOISE] + 1e-12
    fit.explained[0] = misfits[NOISE] / most
    fit.explained[1] = min(1.0, max(0.0, misfits[0] - min(misfits[1], misfits[2])) / most)


def follows_agreements(
    settings: MixtureSettings, state: StreamState, level: int, window: int, room: MixtureRoom, fit: MixtureFit
) -> int:
    """Begin a fit; return 1 if a change of agreements means that an accuracy changed: if accuracies explain them."""
    begin_fit(settings, state, level, window, room, fit)
    return 1 if fit.explained[1] > FOLLOW else 0


def fit_window(
    settings: MixtureSettings,
    state: StreamState,
    level: int,
    window: int,
    begun: bool,
    room: MixtureRoom,
    tables: MixtureTables,
    fit: MixtureFit,
) -> None:
    """Fit every member to the last `window` rows, those of the grid's window `level`, whose sums are there."""
    if not begun:
        begin_fit(settings, state, level, window, room, fit)
    n, patterns, sums = fit.theta.shape[1], room.em.patterns, state.sums[level]
    total = sum_first(patterns.rows, patterns.size[0])
    for m in range(CONFUSION, CAUTIOUS + 1):
        fit_member(m, settings, total, sums, room, fit)
    weigh_members(room.misfits, room.shared, generality(sums, n, room.votes), fit)
    answered = patterns.size[1] > 0 or room.known[0, 2 * fit.weights.shape[0]] >= 0.0
    if settings.estimated and max(RECENT_ROWS, window // RECENT_PART) < window:
        follow_balance(settings, state, window, room, fit)
    for m in range(fit.weights.shape[0]):
        fit.free[m] = fit.weights[m]
    fit.answers[0, fit.weights.shape[0]] = -1
    if answered:
        count_answers(settings, state, window, room, tables, fit)
    for h in range(n):
        # The majority and the member close to it take most votes for right, so they do not judge labelers.
        accuracy, total = 0.0, 0.0
        for m in range(CAUTIOUS):
            accuracy += fit.weights[m + 1] * room.accuracies[m, h]
            total += fit.weights[m + 1]
        fit.accuracy[h] = accuracy / total


@inner
def score_members(tables: MixtureTables, row: Codes, support: Ints, parts: Floats) -> int:
    """Fill in the probabilities of a row by each member, the majority first; return how many vote."""
    n_classes, scores, active = support.shape[0], tables.scores[0], tables.active[0]
    votes = count_votes(row, support)
    for c in range(n_classes):
        parts[0, c] = 0.0 if votes > 0 else 1.0 / n_classes
    if votes > 0:
        add_majority(support, 1.0, parts[0])
    for s in range(scores.shape[0]):
        scores[s] = tables.start[0, s]
    for h in range(row.shape[0]):
        vote = vote_of(row[h])
        if vote >= 0:
            said = tables.logs[h, vote]
            for s in range(scores.shape[0]):
                scores[s] += said[s]
    if votes < active:
        quiet, absent = silence_weight(active, votes), tables.scores[1]
        for s in range(absent.shape[0]):
            absent[s] = tables.start[1, s]
        for h in range(row.shape[0]):
            if vote_of(row[h]) >= 0:
                for s in range(absent.shape[0]):
                    absent[s] -= tables.logs[h, n_classes, s]
        for s in range(absent.shape[0]):
            scores[s] += quiet * absent[s]
    if votes > 0:
        add_majority(support, CAUTIOUS_PULL, scores[CAUTIOUS * n_classes :])
    for m in range(parts.shape[0] - 1):
        for c in range(n_classes):
            parts[m + 1, c] = scores[m * n_classes + c]
        to_probabilities(parts[m + 1])
    return votes


@inner
def name_classes(parts: Floats, named: Classes) -> bool:
    """Fill in the likeliest class by each member, -1 where two are alike (a tie); return whether members disagree."""
    disputed = False
    for m in range(parts.shape[0]):
        best, named[m] = -1.0, -1
        for c in range(parts.shape[1]):
            if parts[m, c] > best + 1e-9:
                best, named[m] = parts[m, c], c
            elif parts[m, c] > best - 1e-9:
                named[m] = -1
        disputed = disputed or named[m] != named[0]
    return disputed


@inner
def add_answer(
    place: int, row: Codes, truth: int, strength: float, tables: MixtureTables, fit: MixtureFit, support: Ints
) -> int:
    """Take a verified row into a fit: what members name on it, and who is right, in `fit.weights` as log weights.

    Return the place of the next one. Where all members name one class, the row tells nothing about them, and nothing
    about rows in dispute.
    """
    parts, named, n_members = tables.parts, tables.named, tables.named.shape[0]
    score_members(tables, row, support, parts)
    if not name_classes(parts, named):
        return place
    for m in range(n_members):
        fit.answers[place, m] = named[m]
        if named[m] == truth:
            fit.weights[m] += strength
        elif named[m] < 0:
            fit.weights[m] += strength * parts[m, truth]
    fit.answers[place, n_members] = truth
    return place + 1


@inner
def count_answers(
    settings: MixtureSettings,
    state: StreamState,
    window: int,
    room: MixtureRoom,
    tables: MixtureTables,
    fit: MixtureFit,
) -> None:
    """Take verified rows into a fit: those that count everywhere, then the others in the window, latest first."""
    n_members, capacity = fit.weights.shape[0], state.ring.shape[0]
    fill(settings, fit, tables)
    support = room.support
    strength = ANSWER_SHARE * math.log((1.0 - settings.answer_errors) / settings.answer_errors)
    for m in range(n_members):
        fit.weights[m] = 0.0
    place, known, n_known, clock = 0, room.known, 0, state.clock[0]
    while n_known < ANSWERS and known[n_known, 2 * n_members] >= 0.0:
        for m in range(n_members):
            fit.answers[place, m] = known[n_known, m]
            fit.weights[m] += strength * known[n_known, n_members + m]
        fit.answers[place, n_members] = known[n_known, 2 * n_members + 1]
        place += 1
        n_known += 1
    for ago in range(1, window + 1 if capacity > 0 else 1):
        slot = (clock - ago) % capacity
        if state.verified[slot] >= 0 and place < ANSWERS:
            again = False
            for a in range(n_known):
                again = again or known[a, 2 * n_members] == clock - ago
            if not again:
                place = add_answer(place, state.ring[slot], state.verified[slot], strength, tables, fit, support)
    if place < ANSWERS:
        fit.answers[place, n_members] = -1
    best, total = largest(fit.weights), 0.0
    for m in range(n_members):
        fit.weights[m] = fit.free[m] * math.exp(fit.weights[m] - best)
        total += fit.weights[m]
    for m in range(n_members):
        fit.weights[m] /= total


@inner
def lean_on_answers(errors: float, tables: MixtureTables, proba: Floats) -> None:
    """Move the probabilities of a row on which members disagree towards the verified classes of rows like it.

    Rows are alike as far as the members name the same classes on them. The probabilities of the mixture count as
    MIXTURE_ROWS such rows where members explain nothing of the agreements, and as more rows the more they explain.
    """
    n_classes, n_members, named = proba.shape[0], tables.weights.shape[0], tables.named
    if not name_classes(tables.parts, named):
        return
    rows = MIXTURE_ROWS / max(0.05, 1.0 - tables.explained[1] - tables.explained[2])
    for c in range(n_classes):
        proba[c] *= rows
    for a in range(tables.answers.shape[0]):
        truth = tables.answers[a, n_members]
        if truth < 0:
            break
        alike = 1.0
        for m in range(n_members):
            if tables.answers[a, m] != named[m]:
                alike *= ALIKE
        rows += alike
        for c in range(n_classes):
            proba[c] += alike * errors / n_classes
        proba[truth] += alike * (1.0 - errors)
    for c in range(n_classes):
        proba[c] /= rows


def fill_tables(settings: MixtureSettings, fit: MixtureFit, tables: MixtureTables) -> None:
    """Take the logarithms of the members' fits."""
    n_classes, logs, start = fit.balance.shape[1], tables.logs, tables.start
    active = 0
    for m in range(fit.balance.shape[0]):
        for c in range(n_classes):
            start[0, m * n_classes + c], start[1, m * n_classes + c] = math.log(fit.balance[m, c]), 0.0
    for h in range(fit.votes.shape[0]):
        active += fit.votes[h] > 0
        for m in range(CONFUSION):
            # How often such a labeler votes does not depend on the class, so neither votes nor silence have to say it.
            right = fit.worth[h] * math.log(fit.coins[m, h])
            wrong = fit.worth[h] * math.log((1.0 - fit.coins[m, h]) / (n_classes - 1))
            for c in range(n_classes):
                for v in range(n_classes):
                    logs[h, v, m * n_classes + c] = right if v == c else wrong
                logs[h, n_classes, m * n_classes + c] = 0.0
        for m in range(CONFUSION, fit.balance.shape[0]):
            for c in range(n_classes):
                for v in range(n_classes):
                    logs[h, v, m * n_classes + c] = math.log(fit.theta[m - CONFUSION, h, c, v])
                # Of one that never votes, silence says nothing.
                absent = math.log(fit.theta[m - CONFUSION, h, c, n_classes]) if fit.votes[h] > 0 else 0.0
                logs[h, n_classes, m * n_classes + c] = absent
                start[1, m * n_classes + c] += absent
    for m in range(fit.weights.shape[0]):
        tables.weights[m] = fit.weights[m]
    for a in range(fit.answers.shape[0]):
        for m in range(fit.answers.shape[1]):
            tables.answers[a, m] = fit.answers[a, m]
        if fit.answers[a, fit.weights.shape[0]] < 0:
            break
    for e in range(fit.explained.shape[0]):
        tables.explained[e] = fit.explained[e]
    tables.active[0], tables.ready[0] = active, 1


@inner
def temper(support: Ints, votes: int, label: int, explained: Floats, shares: Floats, proba: Floats) -> None:
    """Lean the mixture's probabilities towards shares of the votes, as far as errors are not independent.

    Members multiply votes as if errors were independent. Where they are not, labelers find the same rows difficult, and
    the truth is about as likely as another vote for it. With `n` votes, `v` of them for a class of `k`, and the
    mixture's probability `m`, that is (v + m / 20 + 1 / 4k) / (n + 3 / 10). Where this would not name the label, the
    mixture overrules the votes: the probabilities move towards its own as far as it takes to name the label, and half
    of the rest of the way. So the label is always the likeliest class.
    """
    n_classes, trust = proba.shape[0], explained[3]
    for c in range(n_classes):
        share = support[c] + CHANCE_VOTES / n_classes + MIXTURE_VOTES * proba[c]
        shares[c] = trust * proba[c] + (1.0 - trust) * share / (votes + CHANCE_VOTES + MIXTURE_VOTES)
    way, rivals = 0.0, 0
    for c in range(n_classes):
        ahead, behind = shares[c] - shares[label], proba[label] - proba[c]
        if c != label and ahead > -1e-12:
            rivals += 1
            way = max(way, min(1.0, ahead / (ahead + behind)) if ahead + behind > 0.0 else 0.0)
    if rivals > 0:
        way += OVERRULED_PART * (1.0 - way)
    for c in range(n_classes):
        proba[c] = shares[c] + way * (proba[c] - shares[c])


def label_row(
    settings: MixtureSettings, tables: MixtureTables, row: Codes, draw: float, support: Ints, proba: Floats
) -> int:
    """Return the label of one row: the likeliest class, but never another one than all its votes agree on.

    The label is the mixture's; `temper` makes its probabilities honest.
    """
    parts = tables.parts
    votes = score_members(tables, row, support, parts)
    for c in range(proba.shape[0]):
        proba[c] = 0.0
        for m in range(parts.shape[0]):
            proba[c] += tables.weights[m] * parts[m, c]
    if tables.answers[0, parts.shape[0]] >= 0:
        lean_on_answers(settings.answer_errors, tables, proba)
    label = pick_likeliest(support, votes, draw, proba)
    if votes > 0 and label >= 0:
        count_votes(row, support)
        temper(support, votes, label, tables.explained, parts[0], proba)
    return label


KERNELS.register(
    MixtureSettings,
    select_fit=select_fit,
    fit_window=fit_window,
    fill_tables=fill_tables,
    follows_agreements=follows_agreements,
    label_row=label_row,
)


@jit
def score_rows(
    rows: Codes,
    places: Ints,
    settings: MixtureSettings,
    fits: MixtureFit,
    tables: MixtureTables,
    support: Ints,
    parts: Floats,
) -> None:
    """Fill in the probabilities of rows by each member (rows, members, classes); `places` are the fits of the rows."""
    settings, fits, tables, last = by_address(settings), by_address(fits), by_address(tables), -1
    for t in range(rows.shape[0]):
        if places[t] != last:
            last = places[t]
            fill(settings, by_address(select(settings, fits, last)), tables)
        score_members(tables, rows[t], support, parts[t])


@dataclass(frozen=True)
class Mixture(EmEstimator):
    """A mixture of label models: the default.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when an eighth of its rows is new.
    class_balance
        `"estimated"`: some members estimate it, others take all classes as equally likely; or the shares of the
        classes, if you know them, for all members.
    answer_errors
        Share of the verified rows whose class may be wrong: how far one of them is trusted.
    """

    refresh: int = 32
    class_balance: str | Sequence[float] = "estimated"
    answer_errors: float = 0.05
    name: ClassVar[str] = "mixture"
    ignores_silent: ClassVar[bool] = True
    gates_window: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", checks.n_rows("refresh", self.refresh, 2**20))
        object.__setattr__(self, "class_balance", checks.class_balance(self.class_balance, ("estimated",)))
        object.__setattr__(self, "answer_errors", checks.error_share("answer_errors", self.answer_errors))

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> MixtureSettings:
        """Return the settings as kernels need them."""
        return MixtureSettings(self.class_balance == "estimated", self.given_balance(n_classes), self.answer_errors)

    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> MixtureFit:  # type: ignore[override]
        """Return arrays for so many fits."""
        return MixtureFit(
            theta=np.zeros((n_fits, 3, n_labelers, n_classes, n_classes + 1)),
            coins=np.zeros((n_fits, 2, n_labelers)),
            balance=np.zeros((n_fits, 5, n_classes)),
            shares=np.zeros((n_fits, 5, n_classes)),
            weights=np.zeros((n_fits, len(MEMBERS))),
            free=np.zeros((n_fits, len(MEMBERS))),
            answers=np.zeros((n_fits, ANSWERS, len(MEMBERS) + 1), np.int16),
            explained=np.zeros((n_fits, 4)),
            worth=np.zeros((n_fits, n_labelers)),
            accuracy=np.zeros((n_fits, n_labelers)),
            votes=np.zeros((n_fits, n_labelers), np.int64),
            window=np.zeros((n_fits, 1), np.int64),
        )

    def widen_fits(self, fits: MixtureFit, n_labelers: int, n_classes: int) -> MixtureFit:
        """Return fits for more labelers, the newcomers at chance and without votes."""
        wide: MixtureFit = super().widen_fits(fits, n_labelers, n_classes)
        wide.theta[:, :, fits.votes.shape[1] :] = 1.0 / (n_classes + 1)
        wide.coins[:, :, fits.votes.shape[1] :] = 1.0 / n_classes
        return wide

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says about a labeler that joined later."""
        return {"worth": 1.0, "accuracy": 1.0 / n_classes}

    def score(self, settings: MixtureSettings, fits: MixtureFit, places: Ints, rows: Codes) -> Floats:
        """Return the probabilities of rows by each member: rows x members x classes."""
        parts = np.empty((len(rows), len(MEMBERS), len(settings.given)))
        support = np.empty(len(settings.given), np.int64)
        score_rows(rows, places, settings, fits, self.new_tables(settings, rows.shape[1]), support, parts)
        return parts

    def tell(self, room: MixtureRoom, numbers: Ints, named: Ints, right: Floats, classes: Ints) -> None:
        """Give fits verified rows that count wherever they stand in the stream.

        For each, its number, what members named on it at its time, who was right, and its class. Of many, the latest.
        """
        room.known[:] = -1.0
        if len(numbers):
            given = np.column_stack([named, right, numbers, classes])[-ANSWERS:]
            room.known[: len(given)] = given

    def new_tables(self, settings: MixtureSettings, n_labelers: int) -> MixtureTables:  # type: ignore[override]
        """Return room for what `fill_tables` prepares."""
        k = len(settings.given)
        return MixtureTables(
            logs=np.empty((n_labelers, k + 1, 5 * k)),
            start=np.empty((2, 5 * k)),
            active=np.zeros(1, np.int64),
            weights=np.empty(len(MEMBERS)),
            answers=np.full((ANSWERS, len(MEMBERS) + 1), -1, np.int16),
            explained=np.empty(4),
            scores=np.empty((2, 5 * k)),
            parts=np.empty((len(MEMBERS), k)),
            named=np.empty(len(MEMBERS), np.int16),
            ready=np.zeros(1, np.int64),
        )

    def new_room(self, n_labelers: int, n_classes: int) -> MixtureRoom:
        """Return room for the work of a fit."""
        return MixtureRoom(
            em=new_room(n_labelers, n_classes),
            known=np.full((ANSWERS, 2 * len(MEMBERS) + 2), -1.0),
            pooled=np.empty((n_labelers, n_classes, n_classes + 1)),
            mass=np.empty(n_classes),
            misfits=np.empty(NOISE + 1),
            shared=np.empty(len(MEMBERS) - 1),
            accuracies=np.empty((5, n_labelers)),
            votes=np.empty((2, n_classes)),
            support=np.empty(n_classes, np.int64),
        )

    def confusions(self, fits: MixtureFit) -> Floats:  # type: ignore[override]
        """Return P(vote | class) over the members that have tables, each class by the rows it has there."""
        rows = fits.weights[:, 1 + CONFUSION :, None] * fits.shares[:, CONFUSION:]
        parts = (rows[:, :, None, :, None] * fits.theta).sum(axis=1)
        return np.asarray(parts / np.maximum(rows.sum(axis=1), 1e-300)[:, None, :, None])

    def class_shares(self, fits: MixtureFit) -> Floats:  # type: ignore[override]
        """Return the share of each class, over the members that are fitted."""
        weights = fits.weights[:, 1:, None]
        return np.asarray((weights * fits.shares).sum(axis=1) / weights.sum(axis=1))

    def class_weights(self, fits: MixtureFit) -> Floats:
        """Return the log-odds that a vote for each class adds to it, as the mean over the members that are fitted."""
        weights = fits.weights[:, 1:] / np.maximum(fits.weights[:, 1:].sum(axis=1, keepdims=True), 1e-300)
        n_classes = fits.shares.shape[2]
        coins = np.clip(fits.coins, 1e-300, 1.0 - 1e-12)  # a place without a fit has none
        odds = fits.worth[:, None] * np.log((n_classes - 1) * coins / (1.0 - coins))
        pooled = (weights[:, :CONFUSION, None] * odds).sum(axis=1)[:, :, None]
        return np.asarray(pooled + (weights[:, CONFUSION:, None, None] * log_ratios(fits.theta)).sum(axis=1))
