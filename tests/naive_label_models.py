"""The confusion and one-coin models restated by definition: row by row, no patterns, no shortcuts.

Nothing here is imported from the package; the constants are stated again on purpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

STEPS, EVEN_STEPS, SETTLED = 24, 4, 1e-3
SMOOTHING, SKILL, BALANCE_ROWS, CHECKED = 4.0, 0.7, 5.0, 0.1
ANCHOR, HEAVIEST, ANCHOR_ROWS, CROWDING, CHANCE_SHARE = 40.0, 4.0, 4.0, 2.0, 0.25
VERIFIED, FEW, ENOUGH, LEAN, CLEARLY = 2.0, 0.01, 0.05, (0.5, 0.25, 0.0), 2.0


@dataclass
class Fit:
    theta: np.ndarray  # labelers x classes x (classes + 1)
    coin: list[float]
    balance: list[float]
    misfit: float
    evidence: float
    accuracy: list[float]
    active: list[bool]
    window: int


def softmax(scores: list[float]) -> list[float]:
    exps = [math.exp(s - max(scores)) for s in scores]
    return [e / sum(exps) for e in exps]


def majority(row: list[int], k: int) -> list[float]:
    counts = [row.count(c) for c in range(k)]
    leaders = [c for c in range(k) if counts[c] == max(counts)]
    return [1.0 / len(leaders) if c in leaders else 0.0 for c in range(k)]


def prior_rows(rows: list[list[int]], h: int, truth: list[int]) -> float:
    """How many rows the prior of a labeler counts: more, where two others hardly ever vote with it."""
    cast = sum(row[h] >= 0 for row in rows)
    checked = sum(
        row[h] >= 0 and (sum(v >= 0 for v in row) >= 3 or true >= 0) for row, true in zip(rows, truth, strict=True)
    )
    return SMOOTHING * min(max(1.0, CHECKED * cast / max(checked, 1e-4)), 1e6) if cast else SMOOTHING


def maximise(rows: list, post: list[list[float]], k: int, given: list[float] | None, truth: list[int]) -> tuple:
    n, w = len(rows[0]), len(rows)
    balance = [sum(p[c] for p in post) for c in range(k)]
    share = sum(true >= 0 for true in truth) / w
    worth = 1 + (VERIFIED - 1) * min(1.0, max(0.0, (share - FEW) / (ENOUGH - FEW)))
    post = [[worth * x for x in p] if true >= 0 else p for p, true in zip(post, truth, strict=True)]
    mass = [sum(p[c] for p in post) for c in range(k)]
    theta = np.zeros((n, k, k + 1))
    for h in range(n):
        trust = prior_rows(rows, h, truth)
        silent = (sum(row[h] < 0 for row in rows) + 1.0) / (w + 2.0)
        for c in range(k):
            for v in range(k + 1):
                meant = v if v < k else -1
                seen = sum(p[c] for row, p in zip(rows, post, strict=True) if row[h] == meant)
                share = silent if v == k else (1 - silent) * (SKILL if v == c else (1 - SKILL) / (k - 1))
                theta[h, c, v] = (seen + trust * share) / (mass[c] + trust)
    balance = given or [(balance[c] + BALANCE_ROWS / k) / (w + BALANCE_ROWS) for c in range(k)]
    return theta, balance


def class_scores(row: list[int], theta: np.ndarray, prior: list[float], active: list[bool]) -> list[float]:
    """Log prior, plus what the votes say, plus what silence says: all of it as one piece of evidence."""
    k = theta.shape[1]
    quiet = [h for h in range(len(row)) if active[h] and row[h] < 0]
    scores = []
    for c in range(k):
        said = sum(math.log(theta[h, c, row[h]]) for h in range(len(row)) if row[h] >= 0)
        silence = sum(math.log(theta[h, c, k]) for h in quiet)
        scores.append(prior[c] + said + silence / max(1, len(quiet)))
    return scores


def fit(table: np.ndarray, k: int, given: list[float] | None = None, truth: list[int] | None = None) -> Fit:
    """Return the fit of the confusion model; `truth` holds the verified classes, -1 where there is none."""
    rows = table.tolist()
    truth = truth or [-1] * len(rows)

    def sure(post: list) -> list:
        return [[float(c == true) for c in range(k)] if true >= 0 else p for p, true in zip(post, truth, strict=True)]

    n = len(rows[0])
    active = [any(row[h] >= 0 for row in rows) for h in range(n)]
    post = sure([majority(row, k) for row in rows])
    for step in range(STEPS):
        theta, balance = maximise(rows, post, k, given, truth)
        even = step < EVEN_STEPS and given is None
        prior = [0.0 if even else math.log(share) for share in balance]
        after = sure([softmax(class_scores(row, theta, prior, active)) for row in rows])
        moved = max(abs(x - y) for a, b in zip(after, post, strict=True) for x, y in zip(a, b, strict=True))
        post = after
        if moved < SETTLED and step >= EVEN_STEPS:
            break
    theta, balance = maximise(rows, post, k, given, truth)
    coin = []
    for h in range(n):
        hits = sum(p[row[h]] for row, p in zip(rows, post, strict=True) if row[h] >= 0)
        coin.append((hits + SMOOTHING * SKILL) / (sum(row[h] >= 0 for row in rows) + SMOOTHING))
    evidence = evidence_for_classes(rows, theta, balance, coin, active, truth)
    accuracy = []
    for h in range(n):
        right = sum(balance[c] * theta[h, c, c] for c in range(k))
        voting = sum(balance[c] * (1 - theta[h, c, k]) for c in range(k))
        known = min(1.0, evidence * right / voting + (1 - evidence) * coin[h])
        accuracy.append(known if active[h] else 1.0 / k)
    found = Fit(theta, coin, balance, misfit(rows, theta, balance), evidence, accuracy, active, len(rows))
    return lean_as_verified(found, rows, truth)


def lean_as_verified(found: Fit, rows: list, truth: list[int]) -> Fit:
    """The share of the misfit that labels clearly more of the verified rows right, of those that are not unanimous."""
    judged = [(row, true) for row, true in zip(rows, truth, strict=True) if true >= 0 and len({*row} - {-1}) > 1]

    def right(share: float) -> np.ndarray:
        tried = replace(found, misfit=share * found.misfit)
        said = [label(row, tried)[1] for row, _ in judged]
        return np.array([proba[true] == max(proba) for proba, (_, true) in zip(said, judged, strict=True)], bool)

    most, chosen, usual = 0, 1.0, right(1.0)
    for share in LEAN:
        now = right(share)
        won, lost = (now & ~usual).sum(), (usual & ~now).sum()
        if won - lost > max(most, CLEARLY * math.sqrt(won + lost)):
            most, chosen = won - lost, share
    return replace(found, misfit=chosen * found.misfit)


def misfit(rows: list[list[int]], theta: np.ndarray, balance: list[float]) -> float:
    k = theta.shape[1]
    squares, weight = 0.0, 0
    for i, j in combinations(range(len(rows[0])), 2):
        both = [row for row in rows if row[i] >= 0 and row[j] >= 0]
        if not both:
            continue
        agree = sum(row[i] == row[j] for row in both) / len(both)
        same = sum(balance[c] * sum(theta[i, c, v] * theta[j, c, v] for v in range(k)) for c in range(k))
        joint = sum(balance[c] * (1 - theta[i, c, k]) * (1 - theta[j, c, k]) for c in range(k))
        share = same / joint
        squares += len(both) * (agree - share) ** 2 - CHANCE_SHARE * share * (1 - share)
        weight += len(both)
    return math.sqrt(max(0.0, squares) / weight) if weight else 0.0


def coin_table(theta: np.ndarray, coin: list[float]) -> np.ndarray:
    table = theta.copy()
    n, k = theta.shape[:2]
    for h in range(n):
        for c in range(k):
            for v in range(k):
                table[h, c, v] = (1 - theta[h, c, k]) * (coin[h] if v == c else (1 - coin[h]) / (k - 1))
    return table


def evidence_for_classes(rows: list, theta: np.ndarray, balance: list, coin: list, active: list, truth: list) -> float:
    k = theta.shape[1]
    gain = 0.0
    for row, true in zip(rows, truth, strict=True):
        for table, sign in ((theta, 1), (coin_table(theta, coin), -1)):
            likely = 0.0
            for c in range(k):
                part = balance[c]
                for h, vote in enumerate(row):
                    if active[h]:
                        part *= table[h, c, vote if vote >= 0 else k]
                likely += part if true in (-1, c) else 0.0
            gain += sign * math.log(likely)
    gain -= 0.5 * math.log(len(rows) + 1) * sum(active) * (k * (k - 1) - 1)
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, gain))))


def label(row: list[int], found: Fit) -> tuple[int, list[float]]:
    """Label (-1: tied) and probabilities of one row."""
    k = found.theta.shape[1]
    votes = [v for v in row if v >= 0]
    mixed = found.theta**found.evidence * coin_table(found.theta, found.coin) ** (1 - found.evidence)
    crowd = 1.0 / (1.0 + CROWDING * found.misfit * max(0, len(votes) - 1))
    quiet = [h for h in range(len(row)) if found.active[h] and row[h] < 0]
    scores = []
    for c in range(k):
        score = math.log(found.balance[c])
        score += crowd * sum(math.log(mixed[h, c, v]) for h, v in enumerate(row) if v >= 0)
        score += sum(math.log(found.theta[h, c, k]) for h in quiet) / max(1, len(quiet))
        lean = min(ANCHOR * found.misfit, HEAVIEST) * found.window / (found.window + ANCHOR_ROWS)
        score += lean * majority(row, k)[c] if votes else 0.0
        scores.append(score)
    return settle(row, softmax(scores))


def vote_weights(row: list[int], found: Fit) -> list[float]:
    """Log-odds that each vote adds to its class, against the other classes on average; 0 for an abstention."""
    k = found.theta.shape[1]
    mixed = found.theta**found.evidence * coin_table(found.theta, found.coin) ** (1 - found.evidence)
    crowd = 1.0 / (1.0 + CROWDING * found.misfit * max(0, sum(v >= 0 for v in row) - 1))
    weights = []
    for h, v in enumerate(row):
        others = sum(mixed[h, c, v] for c in range(k) if c != v) / (k - 1)
        weights.append(crowd * math.log(mixed[h, v, v] / others) if v >= 0 else 0.0)
    return weights


def settle(row: list[int], proba: list[float]) -> tuple[int, list[float]]:
    """The likeliest class, but on a unanimous row the class of the votes; -1 where classes tie."""
    votes = [v for v in row if v >= 0]
    if votes and len(set(votes)) == 1:
        kept = votes[0]
        proba = [max(proba) if c == kept else p for c, p in enumerate(proba)]
        return kept, [p / sum(proba) for p in proba]
    tied = [c for c, p in enumerate(proba) if p > max(proba) * (1 - 1e-10)]
    return (tied[0] if len(tied) == 1 else -1), proba


@dataclass
class OneCoinFit:
    accuracy: list[float]
    window: int


def log_odds(accuracy: float, k: int) -> float:
    return math.log((k - 1) * accuracy / (1 - accuracy))


def one_coin_scores(row: list[int], accuracy: list[float], k: int) -> list[float]:
    """Sum of the log-odds of the labelers that vote for each class; all classes are as likely."""
    return [sum(log_odds(accuracy[h], k) for h in range(len(row)) if row[h] == c) for c in range(k)]


def fit_one_coin(table: np.ndarray, k: int, truth: list[int] | None = None) -> OneCoinFit:
    """Return the fit of the one-coin model: EM from the majority vote, verified rows held at their class."""
    rows = table.tolist()
    truth = truth or [-1] * len(rows)
    post = [
        [float(c == true) for c in range(k)] if true >= 0 else majority(row, k)
        for row, true in zip(rows, truth, strict=True)
    ]
    n = len(rows[0])
    voted = [sum(row[h] >= 0 for row in rows) for h in range(n)]
    for _ in range(STEPS):
        right = [sum(p[row[h]] for row, p in zip(rows, post, strict=True) if row[h] >= 0) for h in range(n)]
        accuracy = [(right[h] + SMOOTHING * SKILL) / (voted[h] + SMOOTHING) for h in range(n)]
        after = [
            p if true >= 0 else softmax(one_coin_scores(row, accuracy, k))
            for row, p, true in zip(rows, post, truth, strict=True)
        ]
        moved = max(abs(x - y) for a, b in zip(after, post, strict=True) for x, y in zip(a, b, strict=True))
        post = after
        if moved < SETTLED:
            break
    return OneCoinFit([accuracy[h] if voted[h] else 1 / k for h in range(n)], len(rows))


def label_by_one_coin(row: list[int], found: OneCoinFit, k: int) -> tuple[int, list[float]]:
    """Label (-1: tied) and probabilities of one row."""
    return settle(row, softmax(one_coin_scores(row, found.accuracy, k)))
