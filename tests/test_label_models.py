"""The label models against their definitions, toys, and the schedule of fits."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, Confusion, Mixture, OneCoin, SettingError, Triplet, Wawa, WindowRule
from driftvote.models.questions import known_stretches
from driftvote.streams import simulate

import naive_label_models as naive
from streams_for_tests import random_chunks, random_stream, rows_for

RULE = WindowRule([1, 2, 4, 8, 16, 32, 64, 128], beta=0.05, delta=0.5)  # refuses windows on short streams
SHARES = {2: (0.7, 0.3), 3: (0.5, 0.3, 0.2), 4: (0.4, 0.3, 0.2, 0.1)}


def stream_of(kind, seed, n, k, abstain, n_rows):
    """A random stream with what a label model may have to look at."""
    rng = np.random.default_rng(seed)
    votes = random_stream(seed, n_rows, n, k, abstain, blocks=3)
    if kind == "copies":  # labelers 1 and 2 repeat labeler 0, the latter not always
        votes[:, 1] = np.where(votes[:, 0] >= 0, votes[:, 0], votes[:, 1])
        votes[:, 2] = np.where(rng.random(n_rows) < 0.8, votes[:, 0], votes[:, 2])
    if kind == "specialists":  # each votes for a class of its own only, the last one for all
        votes[:, :-1] = np.where(votes[:, :-1] == np.arange(n - 1) % k, votes[:, :-1], -1)
    if kind == "lean":  # two labelers that lean to class 0
        votes[:, 2:4] = np.where(rng.random((n_rows, 2)) < 0.6, 0, votes[:, 2:4])
    if kind == "experts":  # accuracies explain the agreements
        votes[:, :3] = stream_of_accuracy(seed, n_rows, [0.97, 0.95, 0.93], k, rng)
    if kind == "equals":  # everybody as good: nothing to explain
        votes = stream_of_accuracy(seed, n_rows, [0.8] * n, k, rng)
    return votes


def stream_of_accuracy(seed, n_rows, accuracies, k, rng):
    """Independent labelers on the classes of `random_stream` with this seed."""
    truth = np.random.default_rng(seed).integers(k, size=n_rows)[:, None]
    right = rng.random((n_rows, len(accuracies))) < accuracies
    return np.where(right, truth, (truth + rng.integers(1, k, size=right.shape)) % k).astype(np.int8)


def fits_of(out):
    """First row, window and number of every fit that labeled rows."""
    places = out._estimates.places
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    return [(int(row), int(out.windows[row]), int(places[row])) for row in firsts]


def spans_of(out):
    """First row, window, number and last row (plus 1) of every fit."""
    fits = fits_of(out)
    ends = [row for row, _, _ in fits[1:]] + [len(out.codes)]
    return [(*fit, end) for fit, end in zip(fits, ends, strict=True)]


def verify_some(votes, k, seed, share):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(votes)) < share, rng.integers(k, size=len(votes)), -1)


def assert_rows_equal(out, rows, expected):
    """Compare labels and probabilities of rows with what the definition says."""
    for t in rows:
        code, proba = expected(t)
        np.testing.assert_allclose(out.proba[t], proba, rtol=0, atol=1e-9)
        assert out.codes[t] == code, t


EM_CASES = [  # estimator, its definition, kind of stream, seed, labelers, classes, abstentions, verified
    (Confusion(32), naive.confusion(), "lean", 1, 5, 2, 0.0, 0.0),
    (Confusion(16), naive.confusion(), "copies", 2, 6, 2, 0.4, 0.0),
    (Confusion(8, SHARES[3]), naive.confusion(SHARES[3]), "copies", 3, 4, 3, 0.2, 0.1),
    (Confusion(32, "even"), naive.confusion("even"), "specialists", 4, 8, 4, 0.3, 0.0),
    (Confusion(16, abstentions="ignored"), naive.confusion(abstentions="ignored"), "lean", 5, 5, 3, 0.5, 0.1),
    (Confusion(16, even_start=False), naive.confusion(even_start=False), "specialists", 6, 6, 3, 0.2, 0.0),
    (Confusion(32, even_start=False), naive.confusion(even_start=False), "plain", 7, 24, 2, 0.9, 0.0),
    (OneCoin(1), naive.one_coin(), "copies", 1, 5, 2, 0.0, 0.0),
    (OneCoin(4), naive.one_coin(), "plain", 2, 4, 3, 0.3, 0.1),
    (OneCoin(8, "estimated"), naive.one_coin("estimated"), "copies", 3, 6, 2, 0.6, 0.0),
    (OneCoin(8, SHARES[4]), naive.one_coin(SHARES[4]), "lean", 4, 5, 4, 0.2, 0.0),
    (OneCoin(32), naive.one_coin(), "plain", 5, 24, 3, 0.9, 0.0),  # so many labelers that keys are not unique
]


@pytest.mark.parametrize(("estimator", "kind", "stream", "seed", "n", "k", "abstain", "share"), EM_CASES)
def test_em_label_models_equal_their_definitions_on_every_row(estimator, kind, stream, seed, n, k, abstain, share):
    votes = stream_of(stream, seed, n, k, abstain, rows_for(200, 60))
    truth = verify_some(votes, k, seed, share)
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel", estimator=estimator, windows=RULE, false_event_rate=None)
    out = model.label_stream(votes, **({"verified": truth.tolist()} if share else {}))
    table = out._estimates.fits
    for row, window, place, end in spans_of(out):
        seen = slice(row + 1 - window, row + 1)
        found = naive.fit_em(kind, votes[seen], k, truth[seen].tolist())
        for name in ("theta", "balance", "shares", "accuracy"):
            np.testing.assert_allclose(getattr(table, name)[place], getattr(found, name), rtol=0, atol=1e-9)
        unknown = [t for t in range(row, end) if truth[t] < 0]
        assert_rows_equal(out, unknown, lambda t: naive.label(found, votes[t].tolist()))  # noqa: B023
    assert (out.codes[truth >= 0] == truth[truth >= 0]).all()
    other = AdaptiveLabelModel(
        n_classes=k, votes="snorkel", estimator=Wawa(estimator.refresh), windows=RULE, false_event_rate=None
    )
    assert np.array_equal(out.windows, other.label_stream(votes).windows)  # the rule does not depend on the model


@pytest.mark.parametrize(("seed", "n", "k", "abstain", "share"), [(1, 5, 2, 0.0, 0.0), (2, 7, 4, 0.6, 0.1)])
def test_wawa_equals_its_definition_on_every_row(seed, n, k, abstain, share):
    votes = stream_of("copies", seed, n, k, abstain, rows_for(300, 80))
    truth = verify_some(votes, k, seed, share)
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel", estimator=Wawa(4), windows=RULE, false_event_rate=None)
    out = model.label_stream(votes, **({"verified": truth.tolist()} if share else {}))
    for row, window, _, end in spans_of(out):
        seen = slice(row + 1 - window, row + 1)
        agreement = naive.fit_wawa(votes[seen], k, truth[seen].tolist())
        np.testing.assert_allclose(out.accuracies[row], agreement, rtol=0, atol=1e-12)
        unknown = [t for t in range(row, end) if truth[t] < 0]
        assert_rows_equal(out, unknown, lambda t: naive.label_by_wawa(agreement, votes[t].tolist(), k))  # noqa: B023


MIXTURE_CASES = [  # kind of stream, seed, labelers, classes, abstentions, refresh, verified
    ("plain", 1, 5, 2, 0.0, 32, 0.0),
    ("copies", 2, 9, 2, 0.1, 16, 0.0),
    ("specialists", 3, 7, 3, 0.1, 8, 0.0),
    ("experts", 4, 6, 2, 0.0, 4, 0.0),
    ("equals", 5, 6, 3, 0.0, 8, 0.0),
    ("lean", 6, 5, 4, 0.2, 8, 0.1),
    ("plain", 7, 24, 2, 0.9, 32, 0.0),  # keys do not tell all; many rows without votes or with one
]


def label_by_mixture(stream, seed, n, k, abstain, refresh, share, n_rows):
    votes = stream_of(stream, seed, n, k, abstain, n_rows)
    truth = verify_some(votes, k, seed, share)
    balance = SHARES[k] if seed == 6 else "estimated"
    model = AdaptiveLabelModel(
        n_classes=k, votes="snorkel", estimator=Mixture(refresh, balance), windows=RULE, false_event_rate=None
    )
    return votes, truth, balance, model.label_stream(votes, **({"verified": truth.tolist()} if share else {}))


@pytest.mark.parametrize(("stream", "seed", "n", "k", "abstain", "refresh", "share"), MIXTURE_CASES)
def test_the_mixture_equals_its_definition_on_every_row(stream, seed, n, k, abstain, refresh, share):
    case = stream, seed, n, k, abstain, refresh, share
    votes, truth, balance, out = label_by_mixture(*case, rows_for(170, 50))
    table = out._estimates.fits
    assert_windows_follow_the_definition(votes, truth, balance, out, k, refresh)
    for row, window, place, end in spans_of(out):
        seen = slice(row + 1 - window, row + 1)
        found = naive.fit_mixture(votes[seen], k, balance, truth[seen].tolist())
        for m, member in enumerate(found.members):
            for name in ("balance", "shares"):
                np.testing.assert_allclose(getattr(table, name)[place, m], getattr(member, name), rtol=0, atol=1e-9)
            if member.kind.pooled:
                np.testing.assert_allclose(table.coins[place, m], naive.coins_of(member), rtol=0, atol=1e-9)
            else:
                np.testing.assert_allclose(table.theta[place, m - 2], member.theta, rtol=0, atol=1e-9)
        for name in ("weights", "explained", "worth", "accuracy"):
            np.testing.assert_allclose(getattr(table, name)[place], getattr(found, name), rtol=0, atol=1e-8)
        unknown = [t for t in range(row, end) if truth[t] < 0]
        assert_rows_equal(out, unknown, lambda t: naive.label_by_mixture(found, votes[t].tolist(), k))  # noqa: B023


def assert_windows_follow_the_definition(votes, truth, balance, out, k, refresh):
    """The rule's window where accuracies explain the agreements of the largest window, otherwise the largest."""
    largest = RULE.grid[-1]
    ruled = AdaptiveLabelModel(
        n_classes=k, votes="snorkel", estimator=Wawa(refresh), windows=RULE, false_event_rate=None
    ).label_stream(votes)
    for row in range(len(votes)):
        if naive.is_due(row, largest, refresh):
            seen, fitted = slice(max(0, row + 1 - largest), row + 1), row
            follows = naive.follows_agreements(naive.fit_mixture(votes[seen], k, balance, truth[seen].tolist()))
        assert out.windows[row] == (ruled.windows[row] if follows else min(largest, fitted + 1)), row


def test_the_comparison_of_mixtures_sees_every_case():
    """Hollow otherwise: copies, specialists, accuracies that explain agreements and ones that do not, overruling."""
    worth, general, follows, changed, short, kept = [], [], [], [], [], []
    for case in MIXTURE_CASES:
        votes, _, _, out = label_by_mixture(*case, 170)
        table = out._estimates.fits
        worth.append(table.worth[-1].min())
        general.append(table.weights[-1, 1] / table.weights[-1, 0] / (1 + 2 * table.explained[-1, 1]))
        follows.extend(table.explained[1:, 1] > 0.25)
        changed.extend(table.explained[20:, 2] > 0.1)
        short.extend(out.windows < np.minimum(np.arange(len(votes)) + 1, 128) / 2)
        majority = [naive.settle(row, naive.majority(row, case[3]))[0] for row in votes.tolist()]
        kept.append((out.codes == majority).mean())
    assert worth[1] < 0.6 < min(worth[:1] + worth[2:])  # one stream of copies
    assert general[2] < 0.5 < min(general[:2] + general[3:6])
    assert 0.1 < np.mean(follows) < 0.9
    assert any(changed)
    assert any(short)
    assert min(kept) < 0.95


def test_one_coin_streams_refuse_windows_and_overrule_majorities():
    """Hollow otherwise."""
    votes = stream_of("copies", 1, 5, 2, 0.0, 220)
    out = AdaptiveLabelModel(votes="snorkel", estimator=OneCoin(1), windows=RULE).label_stream(votes)
    assert any(out.windows[row] < min(128, 2 ** (row + 1).bit_length() // 2) for row in range(len(votes)))
    majority = [naive.settle(row, naive.majority(row, 2))[0] for row in votes.tolist()]
    assert (out.codes != majority).any()


def test_one_coin_chunks_saves_and_newcomers_do_not_show(tmp_path):
    votes = random_stream(9, 500, 5, 3, 0.3, blocks=3)
    whole = AdaptiveLabelModel(n_classes=3, estimator="one_coin").label_stream(votes)
    model = AdaptiveLabelModel(n_classes=3, estimator="one_coin")
    parts = []
    for part in random_chunks(4, len(votes)):
        parts.append(model.label_stream(votes[part]))
        model.save(tmp_path / "state.npz")
        model = AdaptiveLabelModel.load(tmp_path / "state.npz")
    for name in ("codes", "proba", "windows", "accuracies", "weights"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name
    rows = [
        {f"j{i}": int(v) for i, v in enumerate(row) if v >= 0 and (i < 4 or t >= 200)} for t, row in enumerate(votes)
    ]
    rows[0] |= {f"j{i}": 1 for i in range(4)}
    joined = AdaptiveLabelModel(n_classes=3, estimator="one_coin").label_stream(rows)
    steps = AdaptiveLabelModel(n_classes=3, estimator="one_coin")
    assert [steps.update(row).code for row in rows] == joined.codes.tolist()
    assert (joined.accuracies[:200, 4] == 1 / 3).all()


def test_fits_come_at_rows_by_their_numbers():
    """The first 32 rows each; then every 32, and every eighth of a window once that is more."""
    votes = simulate(np.full((6000, 4), 0.8), seed=3).votes
    rows = [row for row, _, _ in fits_of(AdaptiveLabelModel().label_stream(votes))]
    assert rows[:34] == [*range(33), 64]
    assert all(row % 32 == 0 for row in rows[32:])
    late = [row for row in rows if row > 4200]
    assert np.diff(late).tolist() == [512] * (len(late) - 1)


def test_a_window_that_is_not_full_is_fitted_as_often_as_one_of_its_rows():
    """Previously a lone large window was fitted at row 31 and then not before a part of its full size was new."""
    votes = simulate(np.full((6000, 4), 0.8), seed=3).votes
    rows = [row for row, _, _ in fits_of(AdaptiveLabelModel(windows=[2**19]).label_stream(votes))]
    assert rows[:34] == [*range(33), 64]
    assert np.diff([row for row in rows if 64 <= row <= 1024]).tolist() == [32] * 14 + [64] * 8
    assert np.diff([row for row in rows if row > 4200]).tolist() == [512] * 2


@pytest.mark.slow
def test_chunks_do_not_show():
    votes = random_stream(9, 900, 6, 3, 0.3, blocks=4)
    whole = AdaptiveLabelModel(n_classes=3).label_stream(votes)
    model = AdaptiveLabelModel(n_classes=3)
    parts = [model.label_stream(votes[part]) for part in random_chunks(4, len(votes))]
    for name in ("codes", "proba", "windows", "accuracies", "coverage"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name


def test_class_conditional_labelers_are_found():
    """Two labelers that are right on one class only; one coin cannot say so, a confusion table can."""
    truth = np.random.default_rng(0).integers(0, 2, 6000)
    right = np.array([[0.95, 0.55], [0.55, 0.95], [0.9, 0.6], [0.6, 0.9], [0.85, 0.65]])
    draws = np.random.default_rng(1).random((6000, 5))
    votes = np.where(draws < right[:, truth].T, truth[:, None], 1 - truth[:, None])
    model = AdaptiveLabelModel()
    model.label_stream(votes)
    table = model.confusions
    assert table.shape == (5, 2, 3)
    np.testing.assert_allclose(table[:, [0, 1], [0, 1]], right, atol=0.08)
    np.testing.assert_allclose(table.sum(axis=2), 1.0, atol=1e-12)


def test_a_known_class_balance_is_kept():
    votes = simulate(np.full((3000, 5), 0.75), seed=1).votes
    model = AdaptiveLabelModel(class_balance=[0.9, 0.1])
    out = model.label_stream(votes)
    assert (out._estimates.fits.balance[1:] == [0.9, 0.1]).all()
    assert (out.codes == 1).mean() < (AdaptiveLabelModel().label_stream(votes).codes == 1).mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_balance": [0.2, 0.3, 0.5]}, "2 shares, one for each class"),
        ({"class_balance": [0.5]}, "add up to 1"),
        ({"class_balance": [0.5, 0.6]}, "add up to 1"),
        ({"class_balance": [0.0, 1.0]}, "above 0"),
        ({"class_balance": "ab"}, "shares above 0 that add up to 1"),
        (
            {"class_balance": "even"},
            "class_balance must be 'estimated', or shares above 0 that add up to 1, not 'even'",
        ),
        (
            {"class_balance": [0.5, 0.5], "estimator": "triplet"},
            "class_balance goes with estimator='mixture' or 'confusion' or 'one_coin', not 'triplet'",
        ),
        (
            {"class_balance": [0.5, 0.5], "estimator": Wawa()},
            "goes with estimator='mixture' or 'confusion' or 'one_coin', not 'wawa'",
        ),
        ({"clip": (0.1, 0.9)}, "clip goes with estimator='triplet', not 'mixture'"),
        (
            {"refresh": 8, "estimator": "triplet"},
            "refresh goes with estimator='mixture' or 'confusion' or 'one_coin' or 'wawa', not 'triplet'",
        ),
        (
            {"estimator": "magic"},
            "estimator must be 'mixture' or 'confusion' or 'one_coin' or 'wawa' or 'triplet' or 'majority', not 'magic'",
        ),
        ({"bound": "hoeffding"}, "bound must be 'normal'"),
        ({"refresh": 0}, "refresh must be a number of rows from 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(SettingError, match=message):
        AdaptiveLabelModel(**settings)


SHARES_OR = "or shares above 0 that add up to 1, not"


@pytest.mark.parametrize(
    ("estimator", "settings", "message"),
    [
        (Mixture, {"refresh": 0}, "refresh must be a number of rows from 1"),
        (Mixture, {"refresh": 2.5}, "refresh must be"),
        (Mixture, {"class_balance": "even"}, f"class_balance must be 'estimated', {SHARES_OR} 'even'"),
        (Mixture, {"class_balance": [0.5, 0.4]}, f"'estimated', {SHARES_OR}"),
        (Mixture, {"class_balance": [0.5, "a lot"]}, "class_balance must be a number"),
        (Confusion, {"refresh": True}, "refresh must be"),
        (Confusion, {"class_balance": "given"}, f"must be 'estimated' or 'even', {SHARES_OR} 'given'"),
        (Confusion, {"class_balance": {0: 0.5, 1: 0.5}}, f"'estimated' or 'even', {SHARES_OR}"),
        (Confusion, {"class_balance": [float("nan"), 0.5]}, "class_balance must be"),
        (Confusion, {"abstentions": "random"}, "abstentions must be 'outcome' or 'ignored', not 'random'"),
        (Confusion, {"abstentions": None}, "abstentions must be 'outcome' or 'ignored', not None"),
        (Confusion, {"even_start": 1}, "even_start must be True or False, not 1"),
        (Confusion, {"even_start": "yes"}, "even_start must be True or False, not 'yes'"),
        (OneCoin, {"class_balance": "balanced"}, f"must be 'estimated' or 'even', {SHARES_OR} 'balanced'"),
        (OneCoin, {"class_balance": []}, f"'estimated' or 'even', {SHARES_OR}"),
        (OneCoin, {"refresh": -1}, "refresh must be a number of rows from 1"),
        (Wawa, {"refresh": 0}, "refresh must be a number of rows from 1"),
        (Wawa, {"refresh": "32"}, "refresh must be"),
    ],
)
def test_settings_of_label_models_are_checked(estimator, settings, message):
    with pytest.raises(SettingError, match=message):
        estimator(**settings)


@pytest.mark.parametrize("estimator", [Mixture, Confusion, OneCoin])
def test_a_class_balance_of_other_classes_is_refused(estimator):
    with pytest.raises(SettingError, match="class_balance must be 3 shares, one for each class"):
        AdaptiveLabelModel(n_classes=3, estimator=estimator(class_balance=[0.5, 0.5]))


def test_no_class_balance_is_an_estimated_one():
    assert Mixture(class_balance=None) == Mixture()
    assert Confusion(class_balance=None).class_balance == "estimated"
    assert OneCoin().class_balance == "even"


@pytest.mark.parametrize("keyword", ["watch", "n_epochs"])
def test_a_keyword_that_no_part_has_is_a_type_error(keyword):
    with pytest.raises(TypeError, match=f"AdaptiveLabelModel has no setting '{keyword}'; "):
        AdaptiveLabelModel(**{keyword: "agreements"})


def test_flat_keywords_are_settings_of_the_parts():
    model = AdaptiveLabelModel(
        windows=[2, 4], bound="bernstein", beta=0.2, delta=0.3, refresh=8, class_balance=[0.3, 0.7]
    )
    assert model.windows == WindowRule([2, 4], bound="bernstein", beta=0.2, delta=0.3)
    assert model.estimator == Mixture(refresh=8, class_balance=(0.3, 0.7))
    paper = AdaptiveLabelModel(estimator="triplet", clip=(0.2, 0.8))
    assert paper.estimator == Triplet((0.2, 0.8))
    changed = AdaptiveLabelModel(windows=WindowRule([2, 4], beta=0.2), delta=0.3, estimator=Confusion(8), refresh=16)
    assert (changed.windows, changed.estimator) == (WindowRule([2, 4], beta=0.2, delta=0.3), Confusion(16))
    with pytest.raises(AttributeError):
        model.estimator.refresh = 4


@pytest.mark.slow
def test_hundreds_of_sparse_labelers_cost_what_they_vote():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, rows_for(3000, 200))
    votes = np.where(rng.random((len(truth), 120)) < 0.7, truth[:, None], rng.integers(0, 3, (len(truth), 120)))
    votes[rng.random(votes.shape) < 0.95] = -1
    out = AdaptiveLabelModel(n_classes=3).label_stream(votes)
    assert np.isfinite(out.proba).all()
    assert (out.codes == truth).mean() > 0.85


@pytest.mark.parametrize(("kind", "k"), [("copies", 2), ("lean", 3)])
def test_answers_that_count_everywhere_by_definition(kind, k):
    """What members say of rows, and verified rows that move weights and probabilities wherever they stand."""
    votes = stream_of(kind, 3, 5, k, 0.2, 65)  # the last row is fitted: rows 1 to 64
    out = AdaptiveLabelModel(n_classes=k, windows=[64], false_event_rate=None).label_stream(votes)
    found, last = naive.fit_mixture(votes[1:], k), votes[64].tolist()
    scores = out.score(np.arange(65))
    assert scores.parts[64] == pytest.approx(np.array(naive.parts_of(found.members, last, k)), abs=1e-9)
    rows = np.flatnonzero(scores.disputed)[:6]
    classes = np.random.default_rng(0).integers(k, size=len(rows))
    assert len(rows) > 2
    weights = np.array(found.free)
    for row, known in zip(rows, classes, strict=True):
        named, hits = naive.name_classes(scores.parts[row].tolist(), known)
        assert scores.named[row].tolist() == named
        found.answers.append((named, known))
        weights *= (0.95 / 0.05) ** (np.array(hits) / 3)
    found.weights = (weights / weights.sum()).tolist()
    model = AdaptiveLabelModel(n_classes=k, windows=[64], false_event_rate=None)
    model.know(known_stretches(rows, out.score(rows), classes, []))
    again = model.label_stream(votes)
    assert list(model.mixture.values()) == pytest.approx(found.weights, abs=1e-9)
    assert again.proba[64] == pytest.approx(np.array(naive.label_by_mixture(found, last, k)[1]), abs=1e-9)


@pytest.mark.parametrize("n_rows", [700, rows_for(4_600, 600)])
def test_the_class_balance_is_that_of_the_latest_rows(n_rows):
    """Classes in runs: tables come from the whole window, the balance from its end, as the definition has it."""
    rng = np.random.default_rng(n_rows)
    truth = (np.arange(n_rows) < n_rows - n_rows // 4).astype(np.int64)
    votes = np.where(rng.random((n_rows, 4)) < [0.6, 0.7, 0.8, 0.9], truth[:, None], 1 - truth[:, None]).astype(np.int8)
    votes[rng.random(votes.shape) < 0.2] = -1
    out = AdaptiveLabelModel(n_classes=2, votes="snorkel", windows=[8192], false_event_rate=None).label_stream(votes)
    fits, window = out._estimates.fits, int(out.windows[-1])
    place = out._estimates.places[-1]
    last = int(np.flatnonzero(out._estimates.places == place)[0])
    found = naive.fit_mixture(votes[last + 1 - window : last + 1], 2)
    for m, member in enumerate(found.members):
        np.testing.assert_allclose(fits.balance[place, m], member.balance, rtol=0, atol=1e-9)
        np.testing.assert_allclose(fits.shares[place, m], member.shares, rtol=0, atol=1e-9)
    assert (fits.balance[place, 1:4, 0] > fits.shares[place, 1:4, 0] + 0.1).all()
