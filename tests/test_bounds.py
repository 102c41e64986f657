"""The three thresholds of the window rule: restated by definition, and as statements about probability."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, theory
from driftvote.kernels.bounds import accepts, comparison, threshold
from driftvote.kernels.tallies import absorb_rows, sum_up
from driftvote.streams import simulate
from driftvote.tallies import BOUNDS, WATCHED, empty_tally, n_statistics, watch_rule

import naive
from streams_for_tests import random_stream, rows_for

N, ROWS, DELTA = 4, 2048, 0.1
SIZES = [2**k for k in range(12)]
HIGH, LOW = np.array([0.95, 0.85, 0.7, 0.9]), np.array([0.6, 0.85, 0.95, 0.65])
COVERAGE = np.array([1.0, 0.9, 0.6, 0.95])


# The rule by definition, from the rows themselves.


def row_values(row: np.ndarray, n_classes: int, watch: str) -> list[float]:
    """Everything that is watched of one row."""
    found = []
    for i, j in combinations(range(len(row)), 2):
        same = 1.0 if row[i] == row[j] else -1.0 / (n_classes - 1)
        found.append(same if row[i] >= 0 and row[j] >= 0 else 0.0)
    if watch == "votes":
        classes = range(n_classes) if n_classes > 2 else [1]  # of two classes one share says all
        for vote in row:
            found.append(1.0 if vote >= 0 else -1.0)
            found += [0.0 if vote < 0 else 1.0 if vote == c else -1.0 for c in classes]
    return found


def half_ranges(n: int, n_classes: int, watch: str) -> list[float]:
    pairs = n * (n - 1) // 2
    others = n * (1 + (n_classes if n_classes > 2 else 1)) if watch == "votes" else 0
    return [(1 + 1 / (n_classes - 1)) / 2] * pairs + [1.0] * others


def normal_quantile(tail: float) -> float:
    """z with P(|Z| > z) = tail, by halving an interval."""
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > tail else (low, middle)
    return (low + high) / 2


def rule_for(bound: str, d: int, m: int, beta: float, delta: float) -> dict:
    return {
        "bound": bound,
        "d": d,
        "m": m,
        "beta": beta,
        "delta": delta,
        "z": normal_quantile(delta / ((2 * m - 1) * d)),
    }


def naive_threshold(squares: float, big: int, r: int, h: float, rule: dict) -> float:
    """For one statistic, from its squared distances to its mean in the larger window."""
    d, m, beta = rule["d"], rule["m"], rule["beta"]
    noise = 2 * beta / math.sqrt(r) + math.sqrt((1 - r / big) / r)
    if rule["bound"] == "mcdiarmid":
        return math.sqrt(2 * math.log((2 * m - 1) * 2 * d / rule["delta"])) * h * noise
    if rule["bound"] == "normal":
        return rule["z"] * noise * math.sqrt(squares / big + 4 * h * h / big)
    log = math.log((7 * m - 5) * d / rule["delta"])
    plain = math.sqrt(2 * log) * h * noise
    if big < 3:
        return plain
    sigma = math.sqrt(squares / (big - 2)) + 2 * h * math.sqrt(2 * log / (big - 2))
    heaviest = max(1 / r - 1 / big, 1 / big)
    differ = math.sqrt(2 * log * big * heaviest**2) * sigma + 2 * h * heaviest * log / 3
    slack = math.sqrt(2 * log / r) * sigma + 2 * h * log / (3 * r)
    return min(plain, differ + 2 * beta * slack)


def naive_tests(values: np.ndarray, sizes: list[int], ranges: list[float], rule: dict) -> list[tuple]:
    """Every comparison up to the first refusal: sizes, and per statistic the change and its threshold."""
    told = []
    for r, big in zip(sizes, sizes[1:], strict=False):
        if big > len(values):
            break
        near, wide = values[-r:], values[-big:]
        changes = np.abs(wide.mean(axis=0) - near.mean(axis=0)).tolist()
        squares = ((wide - wide.mean(axis=0)) ** 2).sum(axis=0).tolist()
        limits = [naive_threshold(squares[s], big, r, ranges[s], rule) for s in range(values.shape[1])]
        told.append((r, big, changes, limits))
        if any(change > limit for change, limit in zip(changes, limits, strict=True)):
            break
    return told


def naive_window(tests: list[tuple], sizes: list[int], n_rows: int) -> int:
    if not tests:
        return min(sizes[0], n_rows)
    r, big, changes, limits = tests[-1]
    refused = any(change > limit for change, limit in zip(changes, limits, strict=True))
    return r if refused else big


CASES = [
    (2, 3, [1, 2, 4, 8, 16, 32, 64, 128]),
    (2, 5, [3, 7, 20, 33, 90]),
    (3, 4, [1, 6, 34, 150]),
    (4, 3, [5, 6, 40, 41, 130]),
]


def case(k: int, n: int, sizes: list[int], bound: str, watch: str, **more):
    """A model, its stream of jumps with abstentions, what is watched in every row, and the rule for the naive one."""
    beta, delta = 0.02, 0.9
    votes = random_stream(10 * k + n, rows_for(260, 150), n, k, abstain=0.2, blocks=2)
    half = len(votes) // 2
    votes[:half, 0] = votes[:half, 1]
    votes[half:, 0] = 1  # a copy gets stuck: every kind of statistic moves
    settings = {"estimator": "triplet", "bound": bound, "watch": watch, "beta": beta, "delta": delta} | more
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel", windows=sizes, **settings)
    values = np.array([row_values(row, k, watch) for row in votes])
    return model, votes, values, rule_for(bound, values.shape[1], len(sizes), beta, delta)


@pytest.mark.parametrize("watch", WATCHED)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("k", "n", "sizes"), CASES)
def test_windows_and_estimates_by_definition(k, n, sizes, bound, watch):
    model, votes, values, rule = case(k, n, sizes, bound, watch)
    assert values.shape[1] == n_statistics(n, k, watch)
    ranges = half_ranges(n, k, watch)
    out = model.label_stream(votes)
    table = naive.agreement_table(votes, k)
    settings = naive.Settings(n_classes=k, windows=tuple(sizes))
    for t in range(1, len(votes) + 1):
        window = naive_window(naive_tests(values[:t], sizes, ranges, rule), sizes, t)
        assert out.windows[t - 1] == window, t
        if t % 7 == 0:
            row = naive.label_row(table, votes, votes, t, settings, window)
            assert out.accuracies[t - 1] == pytest.approx(row.accuracies, abs=1e-9)
            assert out.coverage[t - 1] == pytest.approx(row.coverage, abs=1e-12)
            assert out.codes[t - 1] == row.label
            assert out.proba[t - 1] == pytest.approx(row.proba, abs=1e-9)


def test_the_comparison_sees_refusals():
    """Were every window accepted, the test above would say little: each bound refuses, in each way of watching."""
    for bound in BOUNDS:
        for watch in WATCHED:
            model, votes, _, _ = case(*CASES[0], bound, watch)
            windows = model.label_stream(votes).windows
            largest = [max(size for size in CASES[0][2] if size <= t + 1) for t in range(len(votes))]
            assert (windows < largest).any(), (bound, watch)


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_class_conditional_estimator_uses_the_same_windows(bound):
    k, n, sizes = CASES[1]
    refresh = 4
    model, votes, values, rule = case(k, n, sizes, bound, "votes", estimator="confusion", refresh=refresh)
    out = model.label_stream(votes)
    ranges = half_ranges(n, k, "votes")
    for row in range(len(votes)):
        if row < refresh or row % (2 * refresh) == 0:  # no window of this grid is fitted less often
            tests = naive_tests(values[: row + 1], sizes, ranges, rule)
            assert out.windows[row] == naive_window(tests, sizes, row + 1), row


@pytest.mark.parametrize("watch", WATCHED)
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_explanation_is_what_was_decided(bound, watch):
    k, n, sizes = CASES[3]
    model, votes, values, rule = case(k, n, sizes, bound, watch)
    ranges = half_ranges(n, k, watch)
    seen = set()
    for t in range(20, len(votes), 13):
        model.reset()
        model.fit(votes[:t])
        tests = naive_tests(values[:t], sizes, ranges, rule)
        told = model.why_window()
        assert [(one.window, one.next_window) for one in told] == [(r, big) for r, big, _, _ in tests]
        for one, (_, _, changes, limits) in zip(told, tests, strict=True):
            nearest = max(range(len(changes)), key=lambda s: changes[s] - limits[s])
            assert one.difference - one.threshold == pytest.approx(changes[nearest] - limits[nearest], abs=1e-9)
            assert one.accepted == (changes[nearest] <= limits[nearest])
            seen.add((one.what, one.accepted))
    assert ("agreement", True) in seen
    assert watch == "agreements" or {what for what, _ in seen} != {"agreement"}


@pytest.mark.parametrize("bound", BOUNDS)
def test_thresholds_by_definition(bound):
    rng = np.random.default_rng(3)
    sizes = [1, 2, 5, 40, 400, 800, 3000, 6000, 9001]
    narrower = 0
    watch = watch_rule(sizes, 5, 3, bound, "votes", 0.1, 0.05)
    rule = rule_for(bound, n_statistics(5, 3, "votes"), len(sizes), 0.1, 0.05)
    for level, (r, big) in enumerate(zip(sizes, sizes[1:], strict=False)):
        for h, low in ((0.75, -0.5), (1.0, -1.0)):
            for values in (rng.choice([low, 0.0, 1.0], size=big, p=[0.1, 0.2, 0.7]), np.full(big, 0.3)):
                found = threshold(float(values.var()), h, comparison(level, watch))
                squares = math.fsum((x - values.mean()) ** 2 for x in values)
                narrower += found < watch.plain[level] * h and squares > 1
                assert found == pytest.approx(naive_threshold(squares, big, r, h, rule), rel=1e-9)
    assert (narrower > 0) == (bound != "mcdiarmid")  # variances were looked at


def test_which_bound_is_narrower():
    """Variance pays from some hundred rows on; Bernstein never loses more than its longer union bound."""
    sizes = [2**k for k in range(20)]
    watches = {bound: watch_rule(sizes, 6, 2, bound, "votes", 0.1, 0.1) for bound in BOUNDS}
    wider = math.sqrt(2 * theory.bernstein_log(27, 20, 0.1)) / theory.statistics_factor(27, 20, 0.1)
    assert 1.0 < wider < 1.03
    for level in range(19):
        for variance in (0.0, 0.1, 0.5, 1.0):
            limit = {bound: threshold(variance, 1.0, comparison(level, watch)) for bound, watch in watches.items()}
            assert limit["bernstein"] <= wider * limit["mcdiarmid"] * (1 + 1e-12)
            if level >= 10 and variance <= 0.5:
                assert limit["normal"] < limit["bernstein"] < limit["mcdiarmid"]


@pytest.mark.parametrize("bound", BOUNDS)
def test_steps_that_cannot_fail_do_not(bound):
    """Not even for the steepest change: everybody agrees, then nobody does, and coverage falls to nothing."""
    sizes = [1, 2, 4, 8, 16, 24, 64, 128]
    watch = watch_rule(sizes, 3, 2, bound, "votes", 0.1, 0.1)
    assert 0 < watch.certain < len(sizes) - 1
    for older, newer in (([0, 0, 0], [0, 1, 0]), ([1, 1, 1], [0, 0, 0]), ([1, 0, 1], [-1, -1, -1])):
        for level in range(watch.certain + 1):
            rows = np.array([older] * (sizes[level + 1] - sizes[level]) + [newer] * sizes[level], np.int8)
            tally = empty_tally(watch.sizes, 3, 2, 1, 0)
            absorb_rows(rows, watch.sizes, tally)
            sum_up(level, watch.sizes, tally)
            sum_up(level + 1, watch.sizes, tally)
            if level < watch.certain:
                assert accepts(level, tally, watch)
    # The last one was not certain, and the steepest change of votes is refused there or soon after.
    assert not accepts(level, tally, watch) or bound == "bernstein"


def test_tiny_failure_probabilities_are_harmless():
    for bound in BOUNDS:
        model = AdaptiveLabelModel(estimator="triplet", bound=bound, delta=5e-324, windows=[2, 8])
        assert model.label_stream(random_stream(0, 40, 3)).windows.max() == 8
    assert theory.normal_factor(10, 20, 1e-300) == pytest.approx(37.2, abs=0.3)


# The same as statements about probability.


def drifting(kind: str) -> np.ndarray:
    share = {
        "stationary": np.zeros(ROWS),
        "jump": (np.arange(ROWS) >= ROWS - 300).astype(float),
        "slow": np.linspace(0, 1, ROWS),
    }[kind]
    return (1 - share)[:, None] * HIGH + share[:, None] * LOW


def all_values(votes: np.ndarray) -> np.ndarray:
    """(rows, statistics) for two classes: pair agreements, coverages, votes."""
    signed = np.where(votes < 0, 0.0, 2.0 * votes - 1.0)
    left, right = np.triu_indices(votes.shape[1], 1)
    return np.hstack([signed[:, left] * signed[:, right], np.where(votes < 0, -1.0, 1.0), signed])


def true_means_and_variances(accuracies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the same, row by row: labelers are independent and both classes as likely."""
    q = (2 * accuracies - 1) * COVERAGE
    left, right = np.triu_indices(N, 1)
    means = np.hstack([q[:, left] * q[:, right], np.tile(2 * COVERAGE - 1, (ROWS, 1)), np.zeros((ROWS, N))])
    squares = np.concatenate([COVERAGE[left] * COVERAGE[right], np.ones(N), COVERAGE])
    return means, squares - means**2


def over_windows(rows: np.ndarray) -> np.ndarray:
    """Means over the last rows, for every window."""
    return np.cumsum(rows[::-1], axis=0)[np.array(SIZES) - 1] / np.array(SIZES)[:, None]


def event_holds(values: np.ndarray, means: np.ndarray, variances: np.ndarray, scale: float) -> bool:
    """Everything that the proof of docs/windows.md asks for at the last row; right sides times `scale`."""
    log = theory.bernstein_log(values.shape[1], len(SIZES), DELTA)
    found, true = over_windows(values), over_windows(means)
    r = np.array(SIZES, float)[:, None]
    near, wide = r[:-1], r[1:]
    if (np.abs(found - true) > scale * np.sqrt(2 * log / r)).any():
        return False
    change = np.abs((found[1:] - found[:-1]) - (true[1:] - true[:-1]))
    if (change > scale * np.sqrt(2 * log * (1 - near / wide) / near)).any():
        return False
    # Two rows say nothing about a variance: those steps go by boundedness alone.
    sums = over_windows(values**2)[2:] * r[2:] - found[2:] ** 2 * r[2:]
    spread = np.sqrt(np.maximum(0, sums) / (r[2:] - 2)) + scale * 2 * np.sqrt(2 * log / (r[2:] - 2))
    if (np.sqrt(over_windows(variances)[2:]) > spread).any():
        return False
    limit = np.sqrt(2 * log / wide[1:]) * spread + 2 * log / (3 * wide[1:])
    return not (change[1:] > scale * limit).any()


@pytest.mark.parametrize("kind", ["stationary", "jump", "slow"])
def test_the_event_behind_bernstein(kind):
    runs = rows_for(300, 40)
    accuracies = drifting(kind)
    means, variances = true_means_and_variances(accuracies)
    held, tight, seen = 0, 0, np.zeros_like(means[0])
    for seed in range(runs):
        values = all_values(simulate(accuracies, seed, coverage=COVERAGE).votes)
        held += event_holds(values, means, variances, 1.0)
        tight += event_holds(values, means, variances, 0.25)
        seen += values.mean(axis=0) / runs
    assert seen == pytest.approx(means.mean(axis=0), abs=0.02)  # the truth that is compared with is the truth
    assert held >= (1 - DELTA) * runs
    assert tight < 0.1 * runs  # the event is not one that always holds


def quartered(watch):
    return watch._replace(plain=watch.plain / 4, by_spread=watch.by_spread / 4, by_range=watch.by_range / 4)


def test_without_drift_windows_are_refused_at_most_as_often_as_promised():
    runs = rows_for(300, 2)
    refused = dict.fromkeys([*BOUNDS, "a quarter of bernstein"], 0)
    accuracies = drifting("stationary")
    for seed in range(runs):
        votes = simulate(accuracies, 1000 + seed, coverage=COVERAGE).votes
        for bound in BOUNDS:
            # Without the allowance of beta, which forgives drift: the bare promise.
            model = AdaptiveLabelModel(estimator="triplet", bound=bound, beta=1e-9, delta=DELTA, windows=SIZES)
            model.fit(votes)
            refused[bound] += model.window < ROWS
            if bound == "bernstein":
                model._engine.watch = quartered(model._engine.watch)
                refused["a quarter of bernstein"] += model.window < ROWS
    rates = {name: count / runs for name, count in refused.items()}
    print(f"refused without drift, delta = {DELTA}: {rates}")
    assert rates["mcdiarmid"] <= DELTA
    assert rates["bernstein"] <= DELTA
    # No theorem says so of the normal approximation, but it should be near; a few streams say nothing about a rate.
    assert rates["normal"] <= max(DELTA, 1 / runs)
    assert rates["a quarter of bernstein"] > 0.9


def test_a_refusal_proves_drift_and_the_sharpest_bound_sees_it_soonest():
    accuracies = drifting("jump")
    old_rows = {bound: [] for bound in BOUNDS}
    for seed in range(rows_for(40, 2)):
        votes = simulate(accuracies, seed, coverage=COVERAGE).votes
        for bound in BOUNDS:
            model = AdaptiveLabelModel(estimator="triplet", bound=bound, delta=DELTA, windows=SIZES).fit(votes)
            old_rows[bound].append(max(0, model.window - 300))
            refusal = model.why_window()[-1]
            if bound != "normal" and not refusal.accepted:
                assert refusal.next_window > 300  # it reaches behind the jump
    means = {bound: np.mean(found) for bound, found in old_rows.items()}
    assert means["normal"] < min(means["bernstein"], means["mcdiarmid"])
    assert max(means.values()) < ROWS - 300
