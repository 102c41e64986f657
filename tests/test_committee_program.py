"""The worst-case program against a dense one written out here, against distributions, and by hand."""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import pytest
from scipy.optimize import linprog

from driftvote import ContradictionError, MissingExtraError, SettingError
from driftvote.committee import PanelFacts, find_committee, worst_case
from driftvote.committee.search import _Search

from streams_for_tests import COMPILED, rows_for

panel = PanelFacts.from_agreements


def brute_force(low, high, agreements, allowance, ties="half"):
    """The paper's program with a column for each of the 2^n patterns; agreements as probabilities of equal votes."""
    n = len(low)
    patterns = list(itertools.product([0, 1], repeat=n))
    price = {"half": 0.5, "error": 1.0, "right": 0.0}[ties]
    cost = [1.0 if 2 * sum(a) < n else price if 2 * sum(a) == n else 0.0 for a in patterns]
    upper, ends = [], []
    for i in range(n):
        line = [float(a[i]) for a in patterns]
        upper += [line, [-x for x in line]]
        ends += [high[i], -low[i]]
    for i, j in itertools.combinations(range(n), 2):
        line = [float(a[i] == a[j]) for a in patterns]
        share = (agreements[i, j] + 1) / 2
        upper += [line, [-x for x in line]]
        ends += [share + allowance / 2, -(share - allowance / 2)]
    solved = linprog([-c for c in cost], A_ub=upper, b_ub=ends, A_eq=[[1.0] * len(cost)], b_eq=[1.0])
    return None if solved.x is None else -solved.fun


def moments(patterns, masses):
    """Accuracies and agreements of a distribution over patterns of 1 (right), -1 (wrong), 0 (abstains)."""
    signed = np.asarray(patterns, float)
    right = (signed > 0).T @ masses
    votes = (signed != 0).T @ masses
    return right, votes, (signed.T * masses) @ signed


def random_distribution(rng, n, abstaining=False):
    """A distribution of patterns with any dependence: a few random ones, a block that fails together, and noise."""
    states = [-1, 0, 1] if abstaining else [-1, 1]
    patterns = np.array(list(itertools.product(states, repeat=n)))
    masses = rng.dirichlet(np.full(len(patterns), rng.choice([0.05, 0.3, 2.0])))
    together = (patterns == patterns[:, :1]).all(axis=1)
    masses = masses * np.where(together, rng.uniform(0, 8), 1.0) * np.exp(rng.uniform(0, 1.5) * patterns.sum(axis=1))
    return patterns, masses / masses.sum()


@pytest.mark.parametrize("n", [3, 5, 7])
def test_it_is_the_dense_program(n):
    rng = np.random.default_rng(n)
    for trial in range(12 if n < 7 else 5):
        patterns, masses = random_distribution(rng, n)
        right, _, agreements = moments(patterns, masses)
        allowance = float(rng.choice([0.0, 0.02, 0.2]))
        low, high = (right, right) if trial % 2 else (right - 0.1, np.ones(n))
        facts = panel(agreements, accuracies=list(zip(np.maximum(low, 0), high, strict=True)), allowance=allowance)
        expected = brute_force(np.maximum(low, 0), high, agreements, allowance)
        assert worst_case(facts).bound == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("ties", ["half", "error", "right"])
def test_ties_of_even_sets_are_priced(ties):
    rng = np.random.default_rng(4)
    patterns, masses = random_distribution(rng, 4)
    right, _, agreements = moments(patterns, masses)
    facts = panel(agreements, accuracies=list(right), allowance=1e-9)
    assert worst_case(facts, ties=ties).bound == pytest.approx(
        brute_force(right, right, agreements, 1e-9, ties), abs=1e-7
    )


def test_two_labelers_by_hand():
    """Right 0.8 and 0.7, equal votes on 0.9: they differ on 0.1, both wrong on 0.2; half of the ties is 0.05."""
    facts = panel([[1, 0.8], [0.8, 1]], accuracies=[0.8, 0.7])
    assert worst_case(facts, ties="right").bound == pytest.approx(0.2)
    assert worst_case(facts, ties="half").bound == pytest.approx(0.25)
    assert worst_case(facts, ties="error").bound == pytest.approx(0.3)


@pytest.mark.parametrize("abstaining", [False, True])
def test_no_distribution_beats_the_certificate_and_the_worst_one_attains_it(abstaining):
    rng = np.random.default_rng(9 + abstaining)
    for _ in range(rows_for(150, 20)):
        n = int(rng.integers(3, 5 if abstaining else 6))
        patterns, masses = random_distribution(rng, n, abstaining)
        right, votes, agreements = moments(patterns, masses)
        slack = float(rng.choice([0.0, 0.05]))
        facts = panel(
            agreements,
            accuracies=[(max(0.0, r / v - 0.05), 1.0) for r, v in zip(right, votes, strict=True)],
            allowance=slack + 1e-9,
            coverage=votes if abstaining else None,
            coverage_allowance=slack / 2 + 1e-9,
        )
        committee = find_committee(facts)
        found = worst_case(facts, committee.members)
        margin = patterns[:, list(committee.places)].sum(axis=1)
        true_error = masses @ np.where(margin < 0, 1.0, np.where(margin == 0, 0.5, 0.0))
        assert true_error <= found.bound + 1e-9
        assert committee.bound == pytest.approx(found.bound, abs=1e-8)
        assert committee.bound <= committee.single_bound + 1e-12
        assert_attained(found)


def assert_attained(found, clusters=()):
    """The worst distribution is one, meets every constraint, and has the error of the bound; the duals prove it."""
    patterns, masses = found.patterns, found.masses
    assert masses.sum() == pytest.approx(1.0)
    assert (masses >= 0).all()
    for cluster in clusters:  # patterns are listed up to exchanges of interchangeable labelers
        orders = list(itertools.permutations(cluster))
        exchanged = np.repeat(patterns[None], len(orders), axis=0)
        for copy, order in zip(exchanged, orders, strict=True):
            copy[:, cluster] = patterns[:, order]
        patterns, masses = np.concatenate(exchanged), np.tile(masses / len(orders), len(orders))
    right, votes, agreements = moments(patterns, masses)
    facts = found.facts
    near = 1e-7
    assert (right >= facts.accuracy_low * votes - near).all()
    assert (right <= facts.accuracy_high * votes + near).all()
    assert (votes >= facts.coverage_low - near).all()
    assert (votes <= facts.coverage_high + near).all()
    off = ~np.eye(len(facts), dtype=bool)
    assert (agreements >= facts.agreement_low - near)[off].all()
    assert (agreements <= facts.agreement_high + near)[off].all()
    places = [facts.names.index(name) for name in found.members]
    margin = patterns[:, places].sum(axis=1)
    error = masses @ np.where(margin < 0, 1.0, np.where(margin == 0, 0.5, 0.0))
    assert error == pytest.approx(found.bound, abs=1e-7)
    assert found.value == pytest.approx(found.bound, abs=1e-7)


def test_the_multipliers_prove_the_bound_by_hand_arithmetic():
    """Weak duality, pattern by pattern: no cost is above what the multipliers pay for."""
    rng = np.random.default_rng(2)
    patterns, masses = random_distribution(rng, 5)
    right, _, agreements = moments(patterns, masses)
    found = worst_case(panel(agreements, accuracies=list(right), allowance=0.01))
    lines = {line.about: line for line in found.proof}
    most = -np.inf
    for pattern in itertools.product([-1, 1], repeat=5):
        paid = 0.0
        for i in range(5):
            line = lines.get(f"accuracy of labeler_{i}")
            paid += line.multiplier * (pattern[i] > 0) if line else 0.0
        for i, j in itertools.combinations(range(5), 2):
            line = lines.get(f"agreement of labeler_{i} and labeler_{j}")
            paid += line.multiplier * pattern[i] * pattern[j] if line else 0.0
        most = max(most, (sum(pattern) < 0) - paid)
    income = sum(max(line.multiplier * line.low, line.multiplier * line.high) for line in found.proof)
    assert most + income == pytest.approx(found.bound, abs=1e-7)
    assert found.value <= found.bound + 1e-12


def test_three_identical_labelers_are_one():
    facts = panel(np.ones((3, 3)), accuracies=[0.8] * 3)
    assert worst_case(facts).bound == pytest.approx(0.2)
    assert find_committee(facts).bound == pytest.approx(0.2)
    assert worst_case(facts).n_columns == 4  # how many of three are right


def test_independent_ones_report_both_errors():
    found = worst_case(panel(np.full((3, 3), 0.36), accuracies=[0.8] * 3))
    assert found.if_independent == pytest.approx(0.8**3 * 0 + 3 * 0.8 * 0.2**2 + 0.2**3)
    assert found.bound == pytest.approx(0.12)  # three pairs are both wrong on 0.04 each, never all three
    assert "12.0%" in str(found)
    assert found.to_dict()["bound"] == found.bound


def test_symmetry_changes_nothing_but_the_size():
    """Interchangeable labelers: the reduced program has the value of the full one, up to forty of them."""
    rng = np.random.default_rng(0)
    for n in (4, 6, 7):
        agreement = float(rng.uniform(0.3, 0.7))
        matrix = np.full((n, n), agreement)
        found = worst_case(panel(matrix, accuracies=[(0.7, 1.0)] * n, allowance=0.01))
        assert found.n_columns == n + 1
        assert found.bound == pytest.approx(brute_force(np.full(n, 0.7), np.ones(n), matrix, 0.01), abs=1e-8)
        assert_attained(found, [list(range(n))])
    assert worst_case(panel(np.full((40, 40), 0.5), tau=0.3)).n_columns == 41


def test_a_cluster_among_others_changes_nothing_but_the_size():
    """Two interchangeable labelers beside two that are not."""
    rng = np.random.default_rng(1)
    patterns, masses = random_distribution(rng, 4)
    patterns = np.vstack([patterns, patterns[:, [1, 0, 2, 3]]])
    right, _, agreements = moments(patterns, np.concatenate([masses, masses]) / 2)
    right[1], agreements[1, 2:], agreements[2:, 1] = right[0], agreements[0, 2:], agreements[2:, 0]
    found = worst_case(panel(agreements, accuracies=list(right), allowance=0.05))
    assert found.n_columns == 3 * 2 * 2
    assert found.bound == pytest.approx(brute_force(right, right, agreements, 0.05), abs=1e-8)
    assert_attained(found, [[0, 1]])


def test_programs_solved_together_are_solved_alone():
    """One call of the solver for many committees, contradictory ones among them: each as if it were the only one."""
    rng = np.random.default_rng(6)
    patterns, masses = random_distribution(rng, 6)
    right, _, agreements = moments(patterns, masses)
    agreements[0, 1] = agreements[1, 0] = -0.9 if agreements[0, 1] > 0 else 0.9
    facts = panel(agreements, accuracies=[(r, 1.0) for r in right], allowance=0.01)
    search = _Search(facts, "half")
    search.solve(itertools.combinations(range(6), 3))
    contradictions = 0
    for members, bound in search.bounds.items():
        if np.isinf(bound):
            contradictions += 1
            with pytest.raises(ContradictionError):
                worst_case(facts, members)
        else:
            assert bound == pytest.approx(worst_case(facts, members).bound, abs=1e-9)
    assert 0 < contradictions < 20
    assert find_committee(facts).n_contradictions >= contradictions


def test_more_of_the_panel_never_loosens_the_bound():
    rng = np.random.default_rng(12)
    for _ in range(5):
        patterns, masses = random_distribution(rng, 5)
        right, _, agreements = moments(patterns, masses)
        facts = panel(agreements, accuracies=list(right), allowance=0.005)
        alone, among = worst_case(facts, [0, 1, 2]), worst_case(facts, [0, 1, 2], whole_panel=True)
        assert among.bound <= alone.bound + 1e-9
        assert_attained(among)


def test_more_classes_stay_valid():
    """Four classes: wrong votes may or may not agree; the certificate covers both."""
    rng = np.random.default_rng(5)
    for _ in range(rows_for(60, 10)):
        rows, n, k = 4000, 4, 4
        truth = np.zeros(rows, int)
        shared = rng.integers(0, k, size=rows)
        votes = np.where(rng.random((rows, n)) < rng.uniform(0.5, 0.9, n), 0, rng.integers(0, k, size=(rows, n)))
        copying = rng.random(rows) < 0.3
        votes[copying, :2] = shared[copying, None]
        same = (votes[:, :, None] == votes[:, None, :]).mean(axis=0)
        right = (votes == truth[:, None]).mean(axis=0)
        facts = panel((k * same - 1) / (k - 1), accuracies=list(right), allowance=1e-9, n_classes=k)
        committee = find_committee(facts)
        counts = (votes[:, list(committee.places)][:, :, None] == np.arange(k)).sum(axis=1)
        top = counts == counts.max(axis=1, keepdims=True)
        error = 1.0 - (top[:, 0] / top.sum(axis=1)).mean()
        assert error <= worst_case(facts, committee.members).bound + 1e-9


def test_contradictions_are_explained():
    facts = panel([[1, -0.9, 0.5], [-0.9, 1, 0.5], [0.5, 0.5, 1]], accuracies=[0.9, 0.9, 0.9])
    with pytest.raises(ContradictionError, match=r"agreement of labeler_0 and labeler_1.* allowance="):
        worst_case(facts)
    committee = find_committee(facts)
    assert committee.n_contradictions == 1
    assert len(committee.members) == 1


def test_an_exhaustive_search_finds_the_smallest_bound():
    rng = np.random.default_rng(3)
    patterns, masses = random_distribution(rng, 5)
    right, _, agreements = moments(patterns, masses)
    facts = panel(agreements, accuracies=list(right), allowance=0.01)
    committee = find_committee(facts)
    bounds = [
        worst_case(facts, members).bound for size in (1, 3, 5) for members in itertools.combinations(range(5), size)
    ]
    assert committee.exhaustive
    assert committee.n_programs == len(bounds) == 16
    assert committee.bound == pytest.approx(min(bounds), abs=1e-8)


def wide_panel(n, seed=0):
    """Dependent votes of a wide panel, and what is known of them."""
    rng = np.random.default_rng(seed)
    right = rng.random((5000, n)) < rng.uniform(0.75, 0.9, n)
    for block in range(0, n, 5):
        copying = rng.random(5000) < 0.4
        right[copying, block : block + 5] = right[copying, block : block + 1]
    signed = np.where(right, 1.0, -1.0)
    return panel(signed.T @ signed / 5000, accuracies=[(p, 1.0) for p in right.mean(axis=0)], allowance=0.01)


def test_a_wide_panel_is_searched_by_growing():
    facts = wide_panel(rows_for(40, 14))
    committee = find_committee(facts, largest=rows_for(9, 5))
    assert not committee.exhaustive or not COMPILED
    assert committee.bound <= committee.single_bound
    assert len(committee.members) in (3, 5, 7, 9)  # blocks that err together leave something to gain
    assert worst_case(facts, committee.members).bound == pytest.approx(committee.bound, abs=1e-7)


def test_growing_is_as_good_as_looking_everywhere_on_small_panels(monkeypatch):
    for seed in range(3):
        facts = wide_panel(8, seed)
        everywhere = find_committee(facts, largest=5)
        monkeypatch.setattr("driftvote.committee.search.EXHAUSTIVE_ENTRIES", 0)
        grown = find_committee(facts, largest=5)
        monkeypatch.undo()
        assert everywhere.exhaustive
        assert not grown.exhaustive
        assert everywhere.bound <= grown.bound + 1e-9 <= grown.single_bound + 2e-9


def test_twelve_labelers_take_less_than_a_second():
    """`make committee` measures it; the limit here leaves room for a busy machine."""
    facts = wide_panel(12)
    began = time.process_time()
    committee = find_committee(facts, largest=5)
    assert committee.exhaustive
    assert committee.n_programs == 12 + 220 + 792
    grown = find_committee(facts)
    assert time.process_time() - began < 4
    assert grown.bound <= committee.bound + 1e-9


@pytest.mark.slow
def test_fourteen_labelers_are_solved_exactly():
    facts = wide_panel(14)
    began = time.perf_counter()
    found = worst_case(facts)
    assert time.perf_counter() - began < 120  # some seconds; `make committee` measures it
    assert found.n_columns == 2**14
    assert found.bound - found.value < 1e-7
    assert_attained(found)


def test_wrong_input_is_refused():
    square = np.full((3, 3), 0.5)
    for wrong, match in [
        (lambda: panel([[1.0, 0.5]]), "square"),
        (lambda: panel(square, tau=0.9), "tau"),
        (lambda: panel(square, tau=[0.1, 0.2]), "tau must be one number or 3"),
        (lambda: panel(square, accuracies=[0.5, 0.6]), "3 entries"),
        (lambda: panel(square, accuracies={"x": 0.5}), "'x'"),
        (lambda: panel(square, accuracies={"labeler_1": (0.9, 0.5)}), "labeler_1"),
        (lambda: panel(square, allowance=-0.1), "allowance"),
        (lambda: panel(square, coverage=[1, 1, 2]), "coverage"),
        (lambda: panel(square, names=["a", "a", "b"]), "names"),
        (lambda: panel(square, names=["a", "b", "c", "c"]), "names"),
        (lambda: panel(square + np.triu(square)), "symmetric"),
        (lambda: worst_case(panel(square), ["nobody"]), "nobody"),
        (lambda: worst_case(panel(square), [0, 0]), "only once"),
        (lambda: worst_case(panel(square), [7]), "place 7"),
        (lambda: worst_case(panel(square), ties="maybe"), "ties"),
        (lambda: worst_case(panel(square), weights=[1, -1, 1]), "weights"),
        (lambda: find_committee(panel(square), largest=11), "largest"),
        (lambda: find_committee(panel(np.full((41, 41), 0.5))), "40"),
        (lambda: worst_case(wide_panel(20)), "find_committee"),
    ]:
        with pytest.raises(SettingError, match=match):
            wrong()


def test_without_scipy_the_extra_is_named(monkeypatch):
    for name in ("scipy", "scipy.optimize", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"driftvote\[lp\]"):
        worst_case(panel(np.full((3, 3), 0.36), accuracies=[0.8] * 3))


def test_a_weighted_vote_has_a_certificate_too():
    facts = panel(np.full((3, 3), 0.36), accuracies=[0.9, 0.6, 0.6], allowance=0.2)
    heavy = worst_case(facts, weights=[5, 1, 1])
    assert heavy.bound == pytest.approx(0.1)  # the first decides alone
