"""What every model keeps to, found by introspection: a new model is checked without being listed."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import driftvote
from driftvote import (
    AdaptiveLabelModel,
    CommitteeLabelModel,
    FixedWindowLabelModel,
    LabelModel,
    MajorityLabelModel,
    Mixture,
    NotFittedError,
    OneCoin,
    SettingError,
    Triplet,
    WindowRule,
)

from streams_for_tests import random_stream


def kinds() -> list[type[LabelModel]]:
    return [kind for kind in LabelModel._kinds.values() if not inspect.isabstract(kind)]


def variants() -> list[LabelModel]:
    """Every model by its defaults (a window where one is needed), and with everything random."""
    made = []
    for kind in kinds():
        needs = {"window": 50} if "window" in inspect.signature(kind).parameters else {}
        small = {"windows": [1, 2, 4, 8, 16, 32, 64], "search_every": 32}
        small = {name: value for name, value in small.items() if name in inspect.signature(kind).parameters}
        made += [kind(**needs), kind(**needs, **small, n_classes=3)]
        made.append(kind(**needs, **small, abstentions="random", tie_break_policy="random", seed=5))
    return [
        *made,
        AdaptiveLabelModel(estimator="one_coin", windows=[1, 2, 4, 8, 16, 32, 64]),
        FixedWindowLabelModel(window=None),
        FixedWindowLabelModel(window=256, estimator="confusion"),
    ]


VARIANTS = variants()


@pytest.fixture(params=VARIANTS, ids=[repr(model)[:90] for model in VARIANTS])
def model(request):
    return request.param.clone()


@pytest.fixture
def votes(model):
    return random_stream(3, 300, 5, len(model.classes), 0.25)


def same(left, right):
    for name in ("codes", "proba", "windows", "accuracies", "diluted_accuracies", "weights", "coverage", "n_votes"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


def state_of(model):
    return {key: value.copy() for key, value in model.to_state()[1].items()}


def assert_state_is(model, before):
    after = state_of(model)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_there_are_models_to_check():
    assert {kind.__name__ for kind in kinds()} >= {"AdaptiveLabelModel", "FixedWindowLabelModel", "MajorityLabelModel"}


def test_many_rows_are_a_loop_of_one(model, votes):
    out = model.clone().label_stream(votes)
    steps = [model.update(row) for row in votes]
    assert [step.code for step in steps] == out.codes.tolist()
    assert np.array_equal([step.proba for step in steps], out.proba)
    assert np.array_equal([step.weights for step in steps], out.weights)
    assert model.n_rows == len(votes)


def test_the_input_is_not_changed(model, votes):
    before = votes.copy()
    votes.flags.writeable = False
    model.label_stream(votes)
    model.predict(votes)
    assert np.array_equal(votes, before)


def test_memory_order_and_dtype_do_not_matter(model, votes):
    first = model.clone().label_stream(votes)
    same(first, model.clone().label_stream(np.asfortranarray(votes)))
    same(first, model.clone().label_stream(votes.astype(np.float64)))
    same(first, model.clone().label_stream(votes.astype(np.int64)[:, ::-1][:, ::-1]))
    same(first, model.clone().label_stream(votes.tolist()))


def test_clone_has_the_settings_and_none_of_the_rows(model, votes):
    model.label_stream(votes)
    fresh = model.clone()
    assert fresh.get_params() == model.get_params()
    assert fresh.n_rows == 0
    same(fresh.label_stream(votes), model.clone().label_stream(votes))


def test_copy_goes_its_own_way(model, votes):
    model.label_stream(votes[:100])
    for other in (model.copy(), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        same(other.label_stream(votes[100:]), model.copy().label_stream(votes[100:]))
        assert model.n_rows == 100


def test_reset_forgets(model, votes):
    first = model.label_stream(votes)
    assert model.reset() is model
    assert (model.n_rows, model.labelers) == (0, ())
    same(first, model.label_stream(votes))


def test_save_and_load_resume_to_the_last_bit(model, votes, tmp_path):
    path = tmp_path / "state.npz"
    model.label_stream(votes[:170])
    model.save(path)
    loaded = type(model).load(path)
    assert loaded.get_params() == model.get_params()
    assert loaded.labelers == model.labelers
    same(loaded.label_stream(votes[170:]), model.label_stream(votes[170:]))


def test_a_model_without_rows_saves_too(model, votes, tmp_path):
    model.save(tmp_path / "state.npz")
    same(driftvote.load(tmp_path / "state.npz").label_stream(votes), model.label_stream(votes))


def test_predict_changes_nothing(model, votes):
    model.label_stream(votes[:200])
    before = state_of(model)
    model.predict(votes)
    model.predict_proba(votes)
    model.predict_one(votes[0])
    model.predict_proba_one(votes[0])
    model.describe()
    assert_state_is(model, before)


def test_predict_agrees_with_itself(model, votes):
    model.label_stream(votes[:200])
    labels, proba = model.predict(votes[200:], return_probs=True)
    assert np.array_equal(labels, model.predict(votes[200:]))
    assert np.array_equal(proba, model.predict_proba(votes[200:]))
    assert model.predict_one(votes[200]) == labels[0]
    assert list(model.predict_proba_one(votes[200]).values()) == proba[0].tolist()


def test_predict_before_learning_is_refused(model, votes):
    for call in (model.predict, model.predict_proba):
        with pytest.raises(NotFittedError, match=f"this {type(model).__name__} has seen no rows yet; call fit"):
            call(votes)
    model.fit(votes).reset()
    with pytest.raises(NotFittedError):
        model.predict(votes)
    with pytest.raises(NotFittedError):
        _ = model.agreements
    with pytest.raises(NotFittedError):
        model.dependence()


def test_single_rows_before_learning_get_a_majority_vote(model):
    rows = [[1, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert [model.predict_one(row) for row in rows] == [1, 0, 1]
    assert [max(proba, key=proba.get) for proba in map(model.predict_proba_one, rows)] == [1, 0, 1]
    assert [model.explain(row).label for row in rows] == [1, 0, 1]
    assert model.n_rows == 0
    assert model.labelers == ()


def test_fit_learns_without_labeling(model, votes):
    fitted = model.clone().fit(votes)
    model.label_stream(votes)
    assert_state_is(fitted, state_of(model))
    halves = model.clone().partial_fit(votes[:100]).partial_fit(votes[100:])
    assert_state_is(halves, state_of(model))
    assert_state_is(halves.fit(votes), state_of(model))  # fit starts over


def test_river_words(model, votes):
    other = model.clone()
    for row in votes[:50]:
        assert other.learn_one(row) is None
    model.partial_fit(votes[:50])
    assert_state_is(other, state_of(model))


def test_an_iterator_of_chunks_gives_an_iterator_of_results(model, votes):
    whole = model.clone().label_stream(votes)
    results = model.label_stream(votes[at : at + 64] for at in range(0, len(votes), 64))
    assert model.n_rows == 0  # nothing runs before it is asked for
    parts = list(results)
    assert np.array_equal(np.concatenate([part.codes for part in parts]), whole.codes)
    assert np.array_equal(np.concatenate([part.proba for part in parts]), whole.proba)


def test_the_global_generator_is_left_alone(model, votes):
    np.random.seed(4)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    model.label_stream(votes)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_refused_batch_leaves_the_state_as_it_was(model, votes):
    model.label_stream(votes)
    before, names = state_of(model), model.labelers
    bad = votes[:20].copy().astype(int)
    bad[13, 2] = 77
    for call in (model.label_stream, model.partial_fit, model.fit, model.predict):
        with pytest.raises(driftvote.VoteError, match=r"row 13 .*'labeler_2': 77"):
            call(bad)
    with pytest.raises(driftvote.LabelerError):
        model.update([1, 0])
    assert_state_is(model, before)
    assert model.labelers == names


def test_state_does_not_grow_with_the_rows(model, votes, tmp_path):
    model.label_stream(votes[:100])
    held = model.state_nbytes
    for _ in range(5):
        model.label_stream(votes)
    assert model.state_nbytes == held


def test_a_row_of_abstentions_is_no_error(model):
    if model.abstentions == "random":
        pytest.skip("random votes stand in for abstentions: no row is without votes")
    model.label_stream([[1, 1, 0, 1]] * 5)
    step = model.update([-1, -1, -1, -1])
    assert step.n_votes == 0
    kind = getattr(getattr(model, "estimator", None), "name", "")
    if kind == "mixture":  # its members disagree about what silence says
        assert step.proba.sum() == pytest.approx(1.0, abs=1e-12)
        assert step.proba[step.label] == step.proba.max()
        return
    if kind == "confusion":
        # Classes have shares and silence is a sign: the row gets the class that they speak for.
        assert step.label == 1
        assert step.proba[1] > 1 / len(model.classes)
        return
    assert step.label == -1
    assert np.allclose(step.proba, 1 / len(model.classes), rtol=0, atol=1e-15)


def test_any_block_can_be_labeled_given_the_rows_before_it(model, votes):
    """Finite memory: a block needs the rows that the model says it remembers, and its row number, nothing older."""
    reach = model.memory_rows
    if reach is None or reach > 100:
        pytest.skip("this model remembers all the past, or more of it than the test stream holds")
    whole = model.clone().label_stream(votes)
    begin, end = 180, 260
    junk = random_stream(99, begin - reach, 5, len(model.classes), 0.5)
    block = model.clone().partial_fit(junk).partial_fit(votes[begin - reach : begin]).label_stream(votes[begin:end])
    same(block, whole[begin:end])


def test_describe_says_how_votes_are_read(model, votes):
    model.label_stream(votes)
    text = model.describe()
    assert "abstention -1 or missing (Snorkel format, assumed)" in text
    assert "labeler_4" in text
    assert ("not estimated" in text) == isinstance(model, MajorityLabelModel)
    assert str(model.n_rows) in text
    assert repr(model) in text


def test_a_model_can_be_described_before_it_knows_anybody(model):
    assert "named by the first votes" in model.describe()
    assert (model.window, model.accuracies.shape, model.coverage.shape) == (0, (0,), (0,))


def test_before_the_first_row_everybody_counts_the_same():
    model = AdaptiveLabelModel(labelers=["a", "b", "c"])
    assert (model.window, model.coverage.tolist()) == (0, [0.0] * 3)
    assert model.accuracies.tolist() == pytest.approx([np.e / (1 + np.e)] * 3)
    assert "rows: 0, window: 0" in model.describe()


def test_results_hold_together(model, votes):
    out = model.label_stream(votes)
    assert repr(out).startswith("LabeledStream(300 rows, 5 labelers")
    assert len(out) == 300
    assert out.probability.tolist() == out.proba.max(axis=1).tolist()
    assert [step.label for step in out] == out.labels.tolist()
    assert out[-1].window == out.windows[-1]
    assert np.array_equal(out[10:20].weights, out.weights[10:20])
    assert np.array_equal(out[::-3].codes, out.codes[::-3])
    assert model.accuracies.shape == (5,)
    assert np.array_equal(model.accuracies, out.accuracies[-1])
    assert np.array_equal(model.diluted_accuracies, out.diluted_accuracies[-1])
    assert np.array_equal(model.coverage, out.coverage[-1])
    assert (out.weights[votes < 0] == 0).all()
    assert (out.weights[votes >= 0] != 0).any()
    told = out[5].to_dict()
    assert told["accuracies"]["labeler_3"] == out.accuracies[5, 3]
    assert told["proba"] == dict(zip(out.classes, out.proba[5].tolist(), strict=True))
    with pytest.raises(IndexError):
        out[300]


# Settings, as in scikit-learn.

SET = [
    *VARIANTS,
    AdaptiveLabelModel(
        classes=("no", "yes"), abstain="?", labelers=("a", "b", "c", "d"), groups=[["a", "b"]], seed=np.int64(3)
    ),
    AdaptiveLabelModel(windows=[2, 4], bound="bernstein", beta=0.2, refresh=8, class_balance=[0.3, 0.7], n_jobs=2),
    AdaptiveLabelModel(estimator=OneCoin(refresh=4), windows=WindowRule([3, 9], delta=0.2), false_event_rate=None),
    FixedWindowLabelModel(window=5, clip=(0.2, 0.8), votes="signed"),
    MajorityLabelModel(labelers=["a", "b"], groups={"a": "g"}),
    CommitteeLabelModel(known_accuracies={"a": 0.9, "b": [0.8, 1]}, labelers=["a", "b", "c"], allowance=0.1, tau=0),
    CommitteeLabelModel.paper(3, seed=7, windows=[1, 2, 4]),
]


@pytest.mark.parametrize("model", SET, ids=[repr(model)[:90] for model in SET])
class TestSettings:
    def test_scikit_learn_clones_it(self, model):
        base = pytest.importorskip("sklearn.base")
        for other in (base.clone(model), base.clone(base.clone(model))):
            assert type(other) is type(model)
            assert other is not model
            assert other.get_params() == model.get_params()
            assert repr(other) == repr(model)
            assert other.n_rows == 0

    def test_settings_make_the_same_model(self, model):
        params = model.get_params(deep=False)
        again = type(model)(**params)
        assert again.get_params(deep=False) == params
        assert again.get_params() == model.get_params()
        assert all(again.get_params()[name] is value for name, value in params.items())  # as scikit-learn asks
        assert again.set_params(**model.get_params()) is again
        assert again.get_params() == model.get_params()

    def test_settings_of_a_file(self, model, tmp_path):
        model.save(tmp_path / "state.npz")
        assert driftvote.load(tmp_path / "state.npz").get_params() == model.get_params()

    def test_nested_settings_are_listed(self, model):
        deep, flat = model.get_params(), model.get_params(deep=False)
        nested = {name: value for name, value in deep.items() if name not in flat}
        assert {name: value for name, value in deep.items() if name in flat} == flat
        assert {name.partition("__")[0] for name in nested} <= {"windows", "estimator"}
        for name, value in nested.items():
            outer, _, inner = name.partition("__")
            assert getattr(flat[outer], inner) == value


def test_one_setting_of_a_part_can_be_changed():
    model = AdaptiveLabelModel(windows=[1, 2, 4], seed=3)
    assert model.get_params()["windows__beta"] == 0.1
    assert model.set_params(windows__beta=0.5, estimator__refresh=8, tie_break_policy="random") is model
    assert model.windows == WindowRule([1, 2, 4], beta=0.5)
    assert model.estimator == Mixture(refresh=8)
    assert (model.tie_break_policy, model.seed) == ("random", 3)
    fresh = AdaptiveLabelModel(windows=[1, 2, 4], beta=0.5, refresh=8, seed=3, tie_break_policy="random")
    votes = random_stream(3, 200, 5, 2, 0.2)
    same(model.label_stream(votes), fresh.label_stream(votes))
    with pytest.raises(SettingError, match=r"the model has seen 200 rows; reset\(\) it"):
        model.set_params(seed=4)
    model.reset().set_params(estimator=Triplet(), delta=0.2)
    assert (model.estimator, model.windows.delta) == (Triplet(), 0.2)


def test_refused_settings_change_nothing():
    model = AdaptiveLabelModel(on_event=print)
    before = model.get_params()
    for wrong, kind in [
        ({"windows": [2, 4], "seed": 1.5}, SettingError),
        ({"windows__beta": 0.2, "windows__delta": 7}, SettingError),
        ({"windows__size": 3}, SettingError),
        ({"seed__low": 3}, SettingError),
        ({"estimator": "triplet", "n_classes": 1}, SettingError),
        ({"windows": [2, 4], "nonsense": 1}, TypeError),
    ]:
        with pytest.raises(kind):
            model.set_params(**wrong)
        assert model.get_params() == before
        assert (model.windows, model.estimator, model.seed, model.on_event) == (WindowRule(), Mixture(), 0, print)
    assert model.update([1, 1, 0]).label == 1


def test_fit_takes_targets_and_ignores_them(model, votes):
    plain = model.clone().fit(votes)
    assert model.fit(votes, np.zeros(len(votes))) is model
    assert_state_is(model, state_of(plain))
    assert_state_is(model.reset().partial_fit(votes, y=None), state_of(plain))


def test_fit_predict_gives_the_labels_of_the_stream(model, votes):
    out = model.clone().label_stream(votes)
    model.partial_fit(votes[:50])  # forgotten
    assert np.array_equal(model.fit_predict(votes), out.labels)
    assert model.n_rows == len(votes)
    assert np.array_equal(model.fit_predict(votes[at : at + 70] for at in range(0, len(votes), 70)), out.labels)
    assert_state_is(model, state_of(model.clone().fit(votes)))
    assert model.classes_.tolist() == list(model.classes)


# One or two labelers.


@pytest.mark.parametrize("n_labelers", [1, 2])
def test_a_majority_needs_no_third_labeler(n_labelers, tmp_path):
    votes = random_stream(4, 300, n_labelers, 2, 0.2)
    model = MajorityLabelModel(labelers=["a", "b"][:n_labelers])
    out = model.label_stream(votes)
    for row, code in zip(votes.tolist(), out.codes.tolist(), strict=True):
        cast = {vote for vote in row if vote >= 0}
        assert code == (cast.pop() if len(cast) == 1 else -1)
    model.save(tmp_path / "state.npz")
    later = driftvote.load(tmp_path / "state.npz")
    assert later.update(dict.fromkeys(model.labelers, 1)).label == 1
    assert later.predict(votes[:5]).tolist() == out.labels[:5].tolist()
    assert model.min_labelers == 1
    assert "accuracies are not estimated" in model.describe()
    assert model.warnings == []
    assert out.explain(0).window == 1
    with pytest.raises(driftvote.LabelerError, match="at least 3 labelers"):
        FixedWindowLabelModel(window=5).label_stream(votes)


def test_the_events_of_two_labelers():
    votes = np.random.default_rng(0).integers(0, 2, (3000, 1)).repeat(2, axis=1)
    votes[1500:, 0] = 1
    seen = []
    out = MajorityLabelModel(on_event=seen.append).label_stream(votes)
    assert seen == out.events
    assert len(out.events) == 1
    assert out.events[0].since[0] <= 1500 <= out.events[0].since[1]


# A fixed window with another label model.


def test_a_fixed_window_of_confusions_is_an_adaptive_one_without_a_choice():
    votes = random_stream(6, 900, 5, 3, 0.2)
    out = FixedWindowLabelModel(window=256, estimator="confusion", n_classes=3).label_stream(votes)
    alone = WindowRule([256], restart=False)
    same(out, AdaptiveLabelModel(windows=alone, n_classes=3, estimator="confusion").label_stream(votes))
    assert out.windows[-1] == 256
    assert out.windows[20] == 21
    model = FixedWindowLabelModel(window=256, estimator="confusion", n_classes=3)
    model.label_stream(votes, ids=[f"row {row}" for row in range(900)])
    model.feedback("row 899", 2)
    assert model.verified == {899: 2}
