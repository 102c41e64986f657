"""The window rule: grids, thresholds restated by definition and as statements about probability, and explanations."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, WindowGrid, WindowRule, theory
from driftvote.core.state import empty_state, n_pairs, rebuild_state
from driftvote.core.windows import BOUNDS, Comparison, current_window, threshold
from driftvote.streams import simulate

import naive
from streams_for_tests import COMPILED, PAPERS_RULE, random_chunks, random_stream, rows_for

N, ROWS, DELTA = 4, 2048, 0.1
SIZES = [2**k for k in range(12)]
HIGH, LOW = np.array([0.95, 0.85, 0.7, 0.9]), np.array([0.6, 0.85, 0.95, 0.65])
COVERAGE = np.array([1.0, 0.9, 0.6, 0.95])


class PatientRule(WindowRule):
    """A rule that takes no step for granted."""

    def tests(self, n_labelers, n_classes):
        return super().tests(n_labelers, n_classes)._replace(n_certain=0)


class StrictRule(PatientRule):
    """A rule with a quarter of the thresholds."""

    def tests(self, n_labelers, n_classes):
        tests = super().tests(n_labelers, n_classes)
        return tests._replace(plain=tests.plain / 4, by_spread=tests.by_spread / 4, by_range=tests.by_range / 4)


def test_a_grid_is_a_sequence_of_sizes():
    grid = WindowGrid([1, 4, 9])
    assert grid == WindowGrid(np.array([1, 4, 9]))
    assert grid != WindowGrid([1, 4])
    assert hash(grid) == hash(WindowGrid((1, 4, 9)))
    assert (len(grid), grid[1], grid[-2:], list(grid)) == (3, 4, (4, 9), [1, 4, 9])
    assert AdaptiveLabelModel(windows=grid).windows.grid == grid
    assert list(WindowGrid.geometric(1, 8, ratio=1.2)) == [1, 2, 3, 4, 5, 6, 7]


def test_a_rule_is_a_value():
    rule = WindowRule([1, 4, 9], bound="bernstein", beta=1, delta=0.5)
    assert rule == WindowRule(WindowGrid([1, 4, 9]), "bernstein", 1.0, 0.5)
    assert hash(rule) == hash(WindowRule(np.array([1, 4, 9]), "bernstein", 1.0, 0.5))
    assert rule != WindowRule([1, 4, 9])
    assert WindowRule(**rule.to_dict()) == rule
    assert AdaptiveLabelModel(windows=rule).windows is rule
    assert list(WindowRule().grid) == [2**k for k in range(20)]


# The rule by definition, from the rows themselves.


def row_values(row: np.ndarray, n_classes: int) -> list[float]:
    """The agreement of each pair on one row."""
    found = []
    for i, j in combinations(range(len(row)), 2):
        same = 1.0 if row[i] == row[j] else -1.0 / (n_classes - 1)
        found.append(same if row[i] >= 0 and row[j] >= 0 else 0.0)
    return found


def half_range(n_classes: int) -> float:
    return (1 + 1 / (n_classes - 1)) / 2


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


def naive_tests(values: np.ndarray, sizes: list[int], half: float, rule: dict) -> list[tuple]:
    """Every comparison up to the first refusal: sizes, and for each pair the change and its threshold."""
    steps = []
    for r, big in zip(sizes, sizes[1:], strict=False):
        if big > len(values):
            break
        near, wide = values[-r:], values[-big:]
        changes = np.abs(wide.mean(axis=0) - near.mean(axis=0)).tolist()
        squares = ((wide - wide.mean(axis=0)) ** 2).sum(axis=0).tolist()
        limits = [naive_threshold(squares[s], big, r, half, rule) for s in range(values.shape[1])]
        steps.append((r, big, changes, limits))
        if any(change > limit for change, limit in zip(changes, limits, strict=True)):
            break
    return steps


def unexplained(values: np.ndarray, votes: np.ndarray, r: int, big: int, reach: int, stride: int, end: int) -> list:
    """The changes of the averages that the votes for the classes do not explain, by least squares over stretches.

    `votes` holds how many vote for each class, on each row; `end` rows come before the last stored totals.
    """
    changes = values[-big:].mean(axis=0) - values[-r:].mean(axis=0)
    length = max(1, max(32, big // 32) // stride) * stride
    count = min(32, (reach - (len(values) - end) - 1) // length)
    if count < 8:
        return np.abs(changes).tolist()
    parts = [slice(end - (g + 1) * length, end - g * length) for g in range(count)]
    x, y = (np.array([part[one].mean(axis=0) for one in parts]) for part in (votes, values))
    slopes = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(axis=0), rcond=1e-6)[0]
    return np.abs(changes - (votes[-big:].mean(axis=0) - votes[-r:].mean(axis=0)) @ slopes).tolist()


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


def case(k: int, n: int, sizes: list[int], bound: str, **more):
    """A model, its stream of jumps with abstentions, the agreements of every row, and the rule for the naive one."""
    beta, delta = 0.02, 0.9
    votes = random_stream(10 * k + n, rows_for(260, 150), n, k, abstain=0.2, blocks=2)
    half = len(votes) // 2
    votes[:half, 0] = votes[:half, 1]
    votes[half:, 0] = 1  # a copy gets stuck
    settings = {"estimator": "triplet", "windows": WindowRule(sizes, bound, beta, delta, restart=False)} | more
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel", **settings)
    values = np.array([row_values(row, k) for row in votes])
    return model, votes, values, rule_for(bound, values.shape[1], len(sizes), beta, delta)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("k", "n", "sizes"), CASES)
def test_windows_and_estimates_by_definition(k, n, sizes, bound):
    model, votes, values, rule = case(k, n, sizes, bound)
    assert values.shape[1] == n_pairs(n)
    out = model.label_stream(votes)
    table = naive.agreement_table(votes, k)
    settings = naive.Settings(n_classes=k, windows=tuple(sizes))
    for t in range(1, len(votes) + 1):
        window = naive_window(naive_tests(values[:t], sizes, half_range(k), rule), sizes, t)
        assert out.windows[t - 1] == window, t
        if t % 7 == 0:
            row = naive.label_row(table, votes, votes, t, settings, window)
            assert out.accuracies[t - 1] == pytest.approx(row.accuracies, abs=1e-9)
            assert out.coverage[t - 1] == pytest.approx(row.coverage, abs=1e-12)
            assert out.codes[t - 1] == row.label
            assert out.proba[t - 1] == pytest.approx(row.proba, abs=1e-9)


def test_the_comparison_sees_refusals():
    """Were every window accepted, the test above would say little: each bound refuses."""
    for bound in BOUNDS:
        model, votes, _, _ = case(*CASES[0], bound)
        windows = model.label_stream(votes).windows
        largest = [max(size for size in CASES[0][2] if size <= t + 1) for t in range(len(votes))]
        assert (windows < largest).any(), bound


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_class_conditional_estimator_uses_the_same_windows(bound):
    k, n, sizes = CASES[1]
    refresh = 4
    model, votes, values, rule = case(k, n, sizes, bound, estimator="confusion", refresh=refresh)
    out = model.label_stream(votes)
    for row in range(len(votes)):
        if row < refresh or row % (2 * refresh) == 0:  # no window of this grid is fitted less often
            tests = naive_tests(values[: row + 1], sizes, half_range(k), rule)
            assert out.windows[row] == naive_window(tests, sizes, row + 1), row


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_explanation_is_what_was_decided(bound):
    k, n, sizes = CASES[3]
    model, votes, values, rule = case(k, n, sizes, bound)
    seen = set()
    for t in range(20, len(votes), 13):
        model.reset()
        model.fit(votes[:t])
        tests = naive_tests(values[:t], sizes, half_range(k), rule)
        steps = model.why_window()
        pairs = list(combinations(model.labelers, 2))
        assert [(one.window, one.next_window) for one in steps] == [(r, big) for r, big, _, _ in tests]
        for one, (_, _, changes, limits) in zip(steps, tests, strict=True):
            nearest = max(change - limit for change, limit in zip(changes, limits, strict=True))
            assert one.difference - one.threshold == pytest.approx(nearest, abs=1e-9)
            assert one.accepted == (nearest <= 0)
            pair = pairs.index(one.pair)
            assert changes[pair] - limits[pair] == pytest.approx(nearest, abs=1e-9)
            seen.add(one.accepted)
    assert seen == {True, False}


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_explanation_ends_where_the_kernel_stopped(bound):
    rule = WindowRule([3, 7, 20, 61, 150, 333], bound=bound, beta=0.01, delta=0.9, restart=False)
    model = AdaptiveLabelModel(windows=rule, estimator="triplet")
    refusals = 0
    for row in random_stream(4, rows_for(1500, 500), 5, 2, 0.1, blocks=5):
        step = model.update(row)
        steps = model.why_window()
        accepted = [test for test in steps if test.accepted]
        assert step.window == (accepted[-1].next_window if accepted else min(3, model.n_rows))
        for test in steps:
            assert test.accepted == (test.difference <= test.threshold)
        refusals += bool(steps) and not steps[-1].accepted
    assert refusals > 20


def comparison(level: int, sizes: list[int], tests) -> Comparison:
    terms = (float(part[level]) for part in (tests.plain, tests.by_spread, tests.by_range))
    return Comparison(sizes[level], sizes[level + 1], tests.bound, *terms)


@pytest.mark.parametrize("bound", BOUNDS)
def test_thresholds_by_definition(bound):
    rng = np.random.default_rng(3)
    sizes = [1, 2, 5, 40, 400, 800, 3000, 6000, 9001]
    narrower = 0
    tests = WindowRule(sizes, bound, 0.1, 0.05).tests(5, 3)
    rule = rule_for(bound, n_pairs(5), len(sizes), 0.1, 0.05)
    for level, (r, big) in enumerate(zip(sizes, sizes[1:], strict=False)):
        for h, low in ((0.75, -0.5), (1.0, -1.0)):
            for values in (rng.choice([low, 0.0, 1.0], size=big, p=[0.1, 0.2, 0.7]), np.full(big, 0.3)):
                found = threshold(float(values.var()), h, comparison(level, sizes, tests))
                squares = math.fsum((x - values.mean()) ** 2 for x in values)
                narrower += found < tests.plain[level] * h and squares > 1
                assert found == pytest.approx(naive_threshold(squares, big, r, h, rule), rel=1e-9)
    assert (narrower > 0) == (bound != "mcdiarmid")  # variances were looked at


def test_which_bound_is_narrower():
    """Variance pays from some hundred rows on; Bernstein never loses more than its longer union bound."""
    sizes = [2**k for k in range(20)]
    rules = {bound: WindowRule(sizes, bound).tests(6, 2) for bound in BOUNDS}
    wider = math.sqrt(2 * theory.bernstein_log(15, 20, 0.1)) / theory.statistics_factor(15, 20, 0.1)
    assert 1.0 < wider < 1.03
    for level in range(19):
        for variance in (0.0, 0.1, 0.5, 1.0):
            limit = {bound: threshold(variance, 1.0, comparison(level, sizes, tests)) for bound, tests in rules.items()}
            assert limit["bernstein"] <= wider * limit["mcdiarmid"] * (1 + 1e-12)
            if level >= 10 and variance <= 0.5:
                assert limit["normal"] < limit["bernstein"] < limit["mcdiarmid"]


@pytest.mark.parametrize("bound", BOUNDS)
def test_steps_that_cannot_fail_do_not(bound):
    """Not even for the steepest change: pairs that agree begin to differ, or votes end."""
    sizes = [1, 2, 4, 8, 16, 24, 64, 128]
    n_certain = WindowRule(sizes, bound).tests(3, 2).n_certain
    patient = PatientRule(sizes, bound).tests(3, 2)
    assert 0 < n_certain < len(sizes) - 1
    assert patient.n_certain == 0
    refused = []
    for older, newer in (([0, 0, 0], [0, 1, 0]), ([0, 1, 0], [0, 0, 0]), ([1, 0, 1], [-1, -1, -1])):
        for level in range(n_certain + 1):
            rows = np.array([older] * (sizes[level + 1] - sizes[level]) + [newer] * sizes[level], np.int8)
            state = rebuild_state(rows, np.full(len(rows), -1), len(rows), empty_state(sizes, 3, 2, 1, 0))
            chosen, rows = current_window(state, patient)
            assert rows == sizes[chosen]
            assert chosen == level + 1 or level == n_certain
        refused.append(chosen == n_certain)
    # The last one was not certain, and the steepest change is refused there or soon after.
    assert refused[0] or bound == "bernstein"


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("sizes", [[2**k for k in range(11)], [3, 7, 20, 61, 150, 333]], ids=["dyadic", "any"])
def test_skipping_the_steps_that_cannot_fail_does_not_show(sizes, bound):
    votes = random_stream(4, rows_for(1500, 300), 4, 2, 0.1, blocks=5)
    models = [
        AdaptiveLabelModel(windows=kind(sizes, bound, beta=0.1, delta=0.9), estimator="triplet", false_event_rate=1e-4)
        for kind in (WindowRule, PatientRule)
    ]
    assert models[0].windows.tests(4, 2).n_certain > 0
    assert np.array_equal(*(model.label_stream(votes).windows for model in models))


def test_limits_never_exceed_what_can_happen():
    for n_classes in (2, 5):
        sizes = [3, 8, 9, 40]
        tests = WindowRule(sizes, "mcdiarmid", beta=0.5, delta=0.01).tests(4, n_classes)
        for k in range(3):
            g = np.gcd(sizes[k], sizes[k + 1])
            assert tests.limit[k] <= n_classes * (sizes[k + 1] - sizes[k]) * sizes[k] // g


# McDiarmid's tests that are decided for rows ahead.


def assert_windows_by_definition(model: AdaptiveLabelModel, votes: np.ndarray) -> np.ndarray:
    """Compare the windows of a whole stream, of chunks and of single rows with the definition; return them."""
    rule = model.windows
    expected = naive.windows_of_stream(votes, naive.Settings(2, tuple(rule.grid), rule.beta, rule.delta))
    assert np.array_equal(model.clone().label_stream(votes).windows, expected)
    chunked = model.clone()
    parts = [chunked.label_stream(votes[part]).windows for part in random_chunks(5, len(votes), 2000)]
    assert np.array_equal(np.concatenate(parts), expected)
    return expected


@pytest.mark.parametrize("abstain", [0.0, 0.3])
@pytest.mark.parametrize("sizes", [[1500, 3000, 4500], [1400, 2800, 5600]], ids=["any", "doubling"])
@pytest.mark.skipif(not COMPILED, reason="thousands of rows")
def test_wide_windows_are_looked_at_only_when_they_must_be(sizes, abstain):
    """Windows so wide that one look settles many rows: passing, failing, and close to the limit."""
    quiet = random_stream(13, 5000, 3, 2, abstain, blocks=1)
    jump = random_stream(14, 2500, 3, 2, abstain, blocks=1)[:, ::-1]
    flip = np.where(jump[:, :1] >= 0, 1 - jump[:, :1], -1)
    votes = np.vstack([quiet, np.hstack([flip, jump[:, 1:]])])
    windows = assert_windows_by_definition(AdaptiveLabelModel(windows=sizes, beta=0.05, **PAPERS_RULE), votes)
    assert len(set(windows[4500:].tolist())) > 1  # the jump is noticed


@pytest.mark.skipif(not COMPILED, reason="thousands of rows")
def test_the_steepest_possible_change_is_not_overlooked():
    """A look settles as many rows as the gap needs at its fastest; here it grows that fast, 4 a row, from 0.

    The agreement x of labeler 1 with the others is written down: -1 on the first 100 rows, +1 on the 100 rows that will
    leave the small window, the rest such that both windows sum to 0 when the larger one is full; then -1 throughout.
    """
    size = 2800
    first = np.concatenate([-np.ones(100), np.ones(100), np.tile([1, -1], (size - 200) // 2)])
    second = np.concatenate([np.ones(100), -np.ones(100), np.tile([1, -1], (size - 200) // 2)])
    x = np.concatenate([first, second, -np.ones(600)])
    votes = np.ones((len(x), 3), np.int8)
    votes[:, 1] = x > 0
    windows = assert_windows_by_definition(AdaptiveLabelModel(windows=[size, 2 * size], **PAPERS_RULE), votes)
    refused = np.flatnonzero(windows[2 * size :] == size)
    assert 60 < refused[0] < 90  # limit / 4 rows after the larger window is full


@pytest.mark.skipif(not COMPILED, reason="thousands of rows")
@pytest.mark.parametrize("shift", [0, 1, 77, 500])
def test_a_peak_between_two_looks_is_not_overlooked(shift):
    """The gap of two windows climbs as fast as it can to just beyond the limit, and falls as fast.

    With the agreement x of labeler 1, the gap |S_2r - 2 S_r| changes by -x(t) + 2 x(t - r) - x(t - 2r): by 4 at most,
    where the three rows take turns. It is 0 before and after, so looks further apart than the limit allows see nothing.
    """
    size, room = 8192, 2048
    model = AdaptiveLabelModel(windows=[size, 2 * size], **PAPERS_RULE)
    climb = int(model.windows.tests(3, 2).limit[0]) // 4 + 1
    tent = np.concatenate([-np.ones(climb), np.ones(climb)])
    x = np.tile([1.0, -1.0], size + room // 2)
    for begin, sign in ((0, 1), (size, -1), (2 * size, 1)):
        x[begin + shift : begin + shift + 2 * climb] = sign * tent
    votes = np.ones((len(x), 3), np.int8)
    votes[:, 1] = x > 0
    windows = assert_windows_by_definition(model, votes)
    refused = np.flatnonzero(windows[2 * size :] == size)
    assert 0 < len(refused) < 40  # the peak, and nothing else


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
    """Pair agreements for two classes: rows x pairs."""
    signed = np.where(votes < 0, 0.0, 2.0 * votes - 1.0)
    left, right = np.triu_indices(votes.shape[1], 1)
    return signed[:, left] * signed[:, right]


def true_means_and_variances(accuracies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the same, row by row: labelers are independent and both classes as likely."""
    q = (2 * accuracies - 1) * COVERAGE
    left, right = np.triu_indices(N, 1)
    means = q[:, left] * q[:, right]
    return means, COVERAGE[left] * COVERAGE[right] - means**2


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


def test_without_drift_windows_are_refused_at_most_as_often_as_promised():
    runs = rows_for(300, 2)
    refused = dict.fromkeys([*BOUNDS, "a quarter of bernstein"], 0)
    accuracies = drifting("stationary")
    for seed in range(runs):
        votes = simulate(accuracies, 1000 + seed, coverage=COVERAGE).votes
        for bound in BOUNDS:
            # Without the allowance of beta, which forgives drift: the bare promise.
            rule = WindowRule(SIZES, bound, beta=1e-9, delta=DELTA)
            refused[bound] += AdaptiveLabelModel(estimator="triplet", windows=rule).fit(votes).window < ROWS
        strict = StrictRule(SIZES, "bernstein", beta=1e-9, delta=DELTA)
        refused["a quarter of bernstein"] += (
            AdaptiveLabelModel(estimator="triplet", windows=strict).fit(votes).window < ROWS
        )
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
            rule = WindowRule(SIZES, bound, delta=DELTA, restart=False)
            model = AdaptiveLabelModel(estimator="triplet", windows=rule).fit(votes)
            old_rows[bound].append(max(0, model.window - 300))
            refusal = model.why_window()[-1]
            if bound != "normal" and not refusal.accepted:
                assert refusal.next_window > 300  # it reaches behind the jump
    means = {bound: np.mean(found) for bound, found in old_rows.items()}
    assert means["normal"] < min(means["bernstein"], means["mcdiarmid"])
    assert max(means.values()) < ROWS - 300
