"""The label models restated by definition: one row after the other, no patterns, no shortcuts, no running sums.

Nothing here is imported from the package; the constants are stated again on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

STEPS, EVEN_STEPS, SETTLED = 24, 4, 2e-3
SMOOTHING, SKILL, BALANCE_ROWS = 4.0, 0.7, 5.0
CAUTIOUS_STEPS, CAUTIOUS_PULL = 4, 2.0
ANSWERS, ANSWER_SHARE, MIXTURE_ROWS, ALIKE = 64, 1 / 3, 1.75, 0.3
CAUTION, RECENT_PART, RECENT_ROWS, OVERRULED_PART = 2.0, 16, 256, 0.5
SHARED, CHANCE_VOTES, MIXTURE_VOTES = 0.02, 0.25, 0.05
ONE_EVIDENCE, CLASS_EVIDENCE, FOLLOW, SURELY, FITS_PER_WINDOW = 3.0, 10.0, 0.25, 2.0, 8


class Kind(NamedTuple):
    """What a label model that is fitted by EM assumes."""

    pooled: bool = False  # one accuracy, whatever the class
    silence: bool = True  # abstaining depends on the class
    balance: str | Sequence[float] = "estimated"  # or "even", or the shares
    even_steps: int = EVEN_STEPS
    steps: int = STEPS
    pull: float = 0.0  # towards the majority of the row


def confusion(balance: str | Sequence[float] = "estimated", abstentions: str = "outcome", even_start: bool = True):
    return Kind(False, abstentions == "outcome", balance, EVEN_STEPS if even_start else 0)


def one_coin(balance: str | Sequence[float] = "even") -> Kind:
    return Kind(True, False, balance, 0)


@dataclass
class Fit:
    """What EM leaves: tables, balance before and shares after the last look at the rows, and those classes."""

    kind: Kind
    theta: np.ndarray  # labelers x classes x (classes + 1)
    balance: list[float]
    shares: list[float]
    accuracy: list[float]
    active: list[bool]
    worth: list[float]
    post: list[list[float]]


def softmax(scores: list[float]) -> list[float]:
    exps = [math.exp(s - max(scores)) for s in scores]
    return [e / sum(exps) for e in exps]


def majority(row: list[int], k: int) -> list[float]:
    counts = [row.count(c) for c in range(k)]
    leaders = [c for c in range(k) if counts[c] == max(counts)]
    return [1.0 / len(leaders) if c in leaders else 0.0 for c in range(k)]


def first_classes(rows: list[list[int]], k: int, truth: list[int]) -> list[list[float]]:
    """The majority of each row; the class of a verified row."""
    return [
        [float(c == true) for c in range(k)] if true >= 0 else majority(row, k)
        for row, true in zip(rows, truth, strict=True)
    ]


def votes_by_class(rows: list[list[int]], post: list[list[float]], k: int) -> np.ndarray:
    """How often each labeler votes for each class, or abstains (last), on rows of each class."""
    table, classes = np.array(rows), np.array(post)
    counts = np.zeros((len(rows[0]), k, k + 1))
    for h in range(len(rows[0])):
        for v in range(k + 1):
            counts[h, :, v] = classes[table[:, h] == (v if v < k else -1)].sum(axis=0)
    return counts


def maximise(kind: Kind, rows: list[list[int]], post: list[list[float]], k: int) -> tuple[np.ndarray, list[float]]:
    n, w = len(rows[0]), len(rows)
    counts, mass = votes_by_class(rows, post, k), np.sum(post, axis=0).tolist()
    theta = np.zeros((n, k, k + 1))
    for h in range(n):
        cast = int((np.array(rows)[:, h] >= 0).sum())
        silent = (w - cast + 1.0) / (w + 2.0)
        coin = (sum(counts[h, c, c] for c in range(k)) + SMOOTHING * SKILL) / (cast + SMOOTHING)
        for c in range(k):
            for v in range(k):
                if kind.pooled:
                    theta[h, c, v] = (1 - silent) * (coin if v == c else (1 - coin) / (k - 1))
                    continue
                skill = SKILL if v == c else (1 - SKILL) / (k - 1)
                if kind.silence:
                    theta[h, c, v] = (counts[h, c, v] + SMOOTHING * (1 - silent) * skill) / (mass[c] + SMOOTHING)
                else:  # P(vote | class, votes) times P(votes), with so many rows of prior, silent ones among them
                    spoken = SMOOTHING * (1 - silent)
                    voted = counts[h, c, :k].sum()
                    theta[h, c, v] = (1 - silent) * (counts[h, c, v] + spoken * skill) / (voted + spoken)
            theta[h, c, k] = silent
            if kind.silence and not kind.pooled:
                theta[h, c, k] = (counts[h, c, k] + SMOOTHING * silent) / (mass[c] + SMOOTHING)
    if kind.balance == "estimated":
        return theta, [(mass[c] + BALANCE_ROWS / k) / (w + BALANCE_ROWS) for c in range(k)]
    return theta, [1.0 / k] * k if kind.balance == "even" else list(kind.balance)


def class_scores(fit: Fit, row: list[int], prior: list[float]) -> list[float]:
    """Log prior, plus what the votes say, plus what silence says: all of it as one piece of evidence."""
    k = fit.theta.shape[1]
    quiet = [h for h in range(len(row)) if fit.active[h] and row[h] < 0]
    votes = sum(vote >= 0 for vote in row)
    scores = []
    for c in range(k):
        said = sum(fit.worth[h] * math.log(fit.theta[h, c, row[h]]) for h in range(len(row)) if row[h] >= 0)
        silence = sum(math.log(fit.theta[h, c, k]) for h in quiet)
        score = prior[c] + said + silence / max(1, sum(fit.active) - votes)
        scores.append(score + (fit.kind.pull * majority(row, k)[c] if votes else 0.0))
    return scores


def fit_em(
    kind: Kind, table: np.ndarray, k: int, truth: list[int] | None = None, worth: list[float] | None = None
) -> Fit:
    """Fit by EM from the majority vote; `truth` holds the verified classes, -1 where there is none."""
    rows: list[list[int]] = table.tolist()
    truth = truth or [-1] * len(rows)
    n, w = len(rows[0]), len(rows)
    cast = [sum(row[h] >= 0 for row in rows) for h in range(n)]
    post = first_classes(rows, k, truth)
    if kind.pooled:  # a vote that is alone begins as right 7 times in 10
        for row, true, p in zip(rows, truth, post, strict=True):
            if true < 0 and sum(vote >= 0 for vote in row) == 1:
                p[:] = [SKILL if c == max(row) else (1 - SKILL) / (k - 1) for c in range(k)]
    for step in range(kind.steps):
        theta, balance = maximise(kind, rows, post, k)
        fit = Fit(kind, theta, balance, [], [], [votes > 0 for votes in cast], worth or [1.0] * n, post)
        even = kind.balance == "estimated" and step < kind.even_steps
        prior = [0.0 if even else math.log(share) for share in balance]
        said = {tuple(row): softmax(class_scores(fit, row, prior)) for row in rows}  # equal rows, equal scores
        after = [p if true >= 0 else said[tuple(row)] for row, p, true in zip(rows, post, truth, strict=True)]
        moved = max(abs(x - y) for a, b in zip(after, post, strict=True) for x, y in zip(a, b, strict=True))
        fit.post = post = after
        if moved < SETTLED and step >= kind.even_steps:
            break
    fit.shares = [sum(p[c] for p in post) / w for c in range(k)]
    for h in range(n):
        right = sum(p[row[h]] for row, p in zip(rows, post, strict=True) if row[h] >= 0)
        fit.accuracy.append((right + SMOOTHING * SKILL) / (cast[h] + SMOOTHING) if cast[h] else 1.0 / k)
    return fit


def probabilities(fit: Fit, row: list[int]) -> list[float]:
    return softmax(class_scores(fit, row, [math.log(share) for share in fit.balance]))


def label(fit: Fit, row: list[int]) -> tuple[int, list[float]]:
    """Label (-1: tied) and probabilities of one row."""
    return settle(row, probabilities(fit, row))


def vote_ratio(theta: np.ndarray, h: int, vote: int) -> float:
    """Log-odds that a vote adds to its class, against the other classes on average."""
    others = [theta[h, c, vote] for c in range(theta.shape[1]) if c != vote]
    return math.log(theta[h, vote, vote] / (sum(others) / len(others)))


def settle(row: list[int], proba: list[float]) -> tuple[int, list[float]]:
    """The likeliest class, but on a unanimous row the class of the votes; -1 where classes tie."""
    votes = [v for v in row if v >= 0]
    if votes and len(set(votes)) == 1:
        kept = votes[0]
        proba = [max(proba) if c == kept else p for c, p in enumerate(proba)]
        return kept, [p / sum(proba) for p in proba]
    tied = [c for c, p in enumerate(proba) if p > max(proba) * (1 - 1e-10)]
    return (tied[0] if len(tied) == 1 else -1), proba


def fit_wawa(table: np.ndarray, k: int, truth: list[int] | None = None) -> list[float]:
    """How often each labeler votes for the majority of its rows, ties by their share."""
    rows: list[list[int]] = table.tolist()
    post = first_classes(rows, k, truth or [-1] * len(rows))
    agreement = []
    for h in range(len(rows[0])):
        votes = [p[row[h]] for row, p in zip(rows, post, strict=True) if row[h] >= 0]
        agreement.append(sum(votes) / len(votes) if votes else 1.0 / k)
    return agreement


def label_by_wawa(agreement: list[float], row: list[int], k: int) -> tuple[int, list[float]]:
    sums = [sum(a for a, vote in zip(agreement, row, strict=True) if vote == c) for c in range(k)]
    total = sum(sums)
    return settle(row, [s / total if total > 0 else 1.0 / k for s in sums])


# -- the mixture -------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Two labelers: the rows on which both vote, how often they agree, and how often independent errors would."""

    i: int
    j: int
    together: int
    agreed: float
    expected: float


def pairs_of(rows: list[list[int]], post: list[list[float]], k: int) -> list[Pair]:
    counts, mass = votes_by_class(rows, post, k), np.sum(post, axis=0).tolist()
    table = np.array(rows)
    found = []
    for i, j in combinations(range(len(rows[0])), 2):
        both = table[(table[:, i] >= 0) & (table[:, j] >= 0)]
        if not len(both):
            continue
        same = joint = 0.0
        for c in range(k):
            if mass[c] > 0:
                same += (counts[i, c, :k] * counts[j, c, :k]).sum() / mass[c]
                joint += counts[i, c, :k].sum() * counts[j, c, :k].sum() / mass[c]
        agreed = float((both[:, i] == both[:, j]).mean())
        found.append(Pair(i, j, len(both), agreed, min(1.0, same / joint if joint > 0 else 0.0)))
    return found


def misfit(pairs: list[Pair]) -> float:
    """Mean square of what independent errors leave unexplained, by common rows."""
    squares = sum(pair.together * (pair.agreed - pair.expected) ** 2 for pair in pairs)
    return squares / max(1, sum(pair.together for pair in pairs))


def noise(pairs: list[Pair]) -> float:
    """The same, if nothing but chance were left."""
    return sum(p.expected * (1 - p.expected) for p in pairs) / max(1, sum(pair.together for pair in pairs))


def shared(pairs: list[Pair]) -> float:
    """The share of the disagreements of independent labelers that is missing; one more row, where it is."""
    excess = 1 + sum(pair.together * (pair.agreed - pair.expected) for pair in pairs)
    return max(0.0, excess / (1 + sum(pair.together * (1 - pair.expected) for pair in pairs)))


def worth_of_votes(pairs: list[Pair], n: int) -> list[float]:
    """One vote's worth over oneself and one's copies: the share of a pair's disagreements that is surely missing."""
    copies = [0.0] * n
    for pair in pairs:
        if pair.expected < 1 - 1e-6:
            variance = max(pair.expected * (1 - pair.expected), 0.25 / pair.together)
            beyond = pair.agreed - pair.expected - SURELY * math.sqrt(variance / pair.together)
            missing = max(0.0, beyond) / (1 - pair.expected)
            copies[pair.i] += missing
            copies[pair.j] += missing
    return [1 / (1 + c) for c in copies]


def entropy(counts: list[int]) -> float:
    return -sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts if c)


def generality(rows: list[list[int]], k: int) -> float:
    """The part of the votes' entropy that is left when one knows who votes."""
    own = [[sum(row[h] == c for row in rows) for c in range(k)] for h in range(len(rows[0]))]
    everything = [sum(votes[c] for votes in own) for c in range(k)]
    whole = sum(everything) * entropy(everything)
    return min(1.0, sum(sum(votes) * entropy(votes) for votes in own) / whole) if whole > 0 else 1.0


@dataclass
class Mixture:
    members: list[Fit]  # the majority aside: one coin, with its balance, tables, from the majority, cautious
    weights: list[float]  # the majority first
    explained: list[float]  # noise, by one accuracy, by accuracies for each class; how far errors are independent
    worth: list[float]
    general: float
    accuracy: list[float]
    free: list[float]  # the weights by the votes alone
    answers: list[tuple[list[int], int]]  # of verified rows in dispute: what members name, and the class


def members_of(balance: str | Sequence[float]) -> list[Kind]:
    even = "even" if balance == "estimated" else balance
    return [
        Kind(True, False, even, 0),
        Kind(True, False, balance, 0),
        Kind(False, True, balance, EVEN_STEPS),
        Kind(False, True, balance, 0),
        Kind(False, True, even, 0, CAUTIOUS_STEPS, CAUTIOUS_PULL),
    ]


def fit_mixture(
    table: np.ndarray, k: int, balance: str | Sequence[float] = "estimated", truth: list[int] | None = None
) -> Mixture:
    rows: list[list[int]] = table.tolist()
    truth = truth or [-1] * len(rows)
    n = len(rows[0])
    pairs = pairs_of(rows, first_classes(rows, k, truth), k)
    worth = worth_of_votes(pairs, n)
    kinds = members_of(balance)
    members = [fit_em(kind, table, k, truth, worth if kind.pooled else None) for kind in kinds]
    left = misfit(pairs)
    by_member = [pairs_of(rows, member.post, k) for member in members[:4]]
    misfits = [misfit(found) for found in by_member]
    total = left + noise(pairs) + 1e-12
    by_coin = min(1.0, max(0.0, left - min(misfits[:2])) / total)
    by_class = max(0.0, min(1.0, (left - min(misfits[2:])) / total) - by_coin)
    general = generality(rows, k)
    coin, even = 1 + ONE_EVIDENCE * by_coin, misfits[2] <= misfits[3]
    tables = [1 + CLASS_EVIDENCE * by_class * even, 1 + CLASS_EVIDENCE * by_class * (not even)]
    needed = 1 - (by_coin * max(0.0, 1 - by_class / max(1 - noise(pairs) / total - by_coin, 1e-12))) ** 2
    weights = [1.0, general * coin, general * coin, *(needed * w for w in (tables[0], general * tables[1], CAUTION))]
    free = weights = [weight / sum(weights) for weight in weights]
    missing = sorted(shared(found) for found in [pairs, *by_member])[2]
    explained = [noise(pairs) / total, by_coin, by_class, general * max(0.0, 1 - missing / SHARED)]
    recent = max(RECENT_ROWS, len(rows) // RECENT_PART)
    if balance == "estimated" and recent < len(rows):
        for member in members[1:4]:
            member.balance = balance_now(member, rows[-recent:], truth[-recent:], k)
    answers: list[tuple[list[int], int]] = []
    for row, known in list(zip(rows, truth, strict=True))[::-1]:
        named, hits = name_classes(parts_of(members, row, k), known)
        if known >= 0 and len(set(named)) > 1 and len(answers) < ANSWERS:
            answers.append((named, known))
            weights = [w * (0.95 / 0.05) ** (ANSWER_SHARE * hit) for w, hit in zip(weights, hits, strict=True)]
    weights = [weight / sum(weights) for weight in weights]
    # The majority and the member close to it do not judge labelers.
    judges = list(zip(weights[1:5], members[:4], strict=True))
    accuracy = [sum(w * m.accuracy[h] for w, m in judges) / sum(weights[1:5]) for h in range(n)]
    return Mixture(members, weights, explained, worth, general, accuracy, free, answers)


def balance_now(fit: Fit, rows: list[list[int]], truth: list[int], k: int) -> list[float]:
    """The class balance of these rows, by EM with the tables as they are."""
    post, balance = first_classes(rows, k, truth), fit.balance
    for _ in range(STEPS):
        said = {tuple(row): softmax(class_scores(fit, row, [math.log(share) for share in balance])) for row in rows}
        after = [p if true >= 0 else said[tuple(row)] for row, p, true in zip(rows, post, truth, strict=True)]
        moved = max(abs(x - y) for a, b in zip(after, post, strict=True) for x, y in zip(a, b, strict=True))
        post = after
        balance = [(sum(p[c] for p in post) + BALANCE_ROWS / k) / (len(rows) + BALANCE_ROWS) for c in range(k)]
        if moved < SETTLED:
            break
    return balance


def parts_of(members: list[Fit], row: list[int], k: int) -> list[list[float]]:
    """The probabilities of a row by each member, the majority first."""
    return [majority(row, k), *(probabilities(member, row) for member in members)]


def name_classes(parts: list[list[float]], known: int) -> tuple[list[int], list[float]]:
    """The class that each member names, -1 on a tie, and how far that is the known one."""
    named, hits = [], []
    for part in parts:
        best = [c for c, p in enumerate(part) if p > max(part) - 1e-9]
        named.append(best[0] if len(best) == 1 else -1)
        hits.append(float(named[-1] == known) if len(best) == 1 else float(part[known]))
    return named, hits


def follows_agreements(found: Mixture) -> bool:
    """Whether the window rule counts: labelers with one accuracy explain more than a quarter of the misfit."""
    return found.explained[1] > FOLLOW


def label_by_mixture(found: Mixture, row: list[int], k: int) -> tuple[int, list[float]]:
    parts = parts_of(found.members, row, k)
    proba = [sum(w * part[c] for w, part in zip(found.weights, parts, strict=True)) for c in range(k)]
    named, _ = name_classes(parts, 0)
    if len(set(named)) > 1:
        proba = lean_on_answers(found, named, proba)
    code, proba = settle(row, proba)
    return code, temper(found, row, code, proba) if code >= 0 and max(row) >= 0 else proba


def lean_on_answers(found: Mixture, named: list[int], proba: list[float]) -> list[float]:
    """The mean of the mixture and of the verified classes, each as far as its row is alike."""
    own = MIXTURE_ROWS / max(0.05, 1 - found.explained[1] - found.explained[2])
    alike = [ALIKE ** sum(a != b for a, b in zip(named, there, strict=True)) for there, _ in found.answers]
    moved = []
    for c, p in enumerate(proba):
        said = [0.95 * (known == c) + 0.05 / len(proba) for _, known in found.answers]
        moved.append((own * p + sum(a * b for a, b in zip(alike, said, strict=True))) / (own + sum(alike)))
    return moved


def temper(found: Mixture, row: list[int], code: int, proba: list[float]) -> list[float]:
    """Shares of the votes and of a little more, cast by chance and by the mixture; labels stay.

    The mixture's own probabilities count as far as errors are independent. Where that does not name the label, go to
    where it is level with the likeliest class, and half of the rest of the way.
    """
    votes, k, trust = [v for v in row if v >= 0], len(proba), found.explained[3]
    cast = [votes.count(c) + CHANCE_VOTES / k + MIXTURE_VOTES * p for c, p in enumerate(proba)]
    shares = [trust * p + (1 - trust) * some / sum(cast) for p, some in zip(proba, cast, strict=True)]
    ahead = {c: shares[c] - shares[code] for c in range(k) if c != code and shares[c] - shares[code] > -1e-12}
    if not ahead:
        return shares
    ways = [gap / (gap + proba[code] - proba[c]) for c, gap in ahead.items() if gap + proba[code] - proba[c] > 0]
    level = min(1.0, max([0.0, *ways]))
    way = level + OVERRULED_PART * (1 - level)
    return [share + way * (p - share) for share, p in zip(shares, proba, strict=True)]


def coins_of(fit: Fit) -> list[float]:
    """The accuracy of each labeler in tables that are the same for every class."""
    return [table[0, 0] / table[0, :-1].sum() for table in fit.theta]


def is_due(row: int, size: int, refresh: int) -> bool:
    """Whether a window of this size, or of all rows before this one, is fitted again: an eighth of it is new."""
    if row < refresh:
        return True
    period = refresh
    while 2 * period * FITS_PER_WINDOW <= min(size, row):
        period *= 2
    return row % period == 0
