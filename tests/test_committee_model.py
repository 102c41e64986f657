"""The committee in a stream: when it is searched, what it certifies, and that chunks never show."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import driftvote
from driftvote import CommitteeLabelModel, LabelerError, MissingExtraError, SettingError, theory
from driftvote.committee import PanelFacts, find_committee, worst_case
from driftvote.streams import simulate
from driftvote.streams.awa2 import LABELERS, Awa2

from streams_for_tests import DATA, PAPERS_RULE, needs_data, random_chunks, random_stream, rows_for

GRID = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SMALL = {"windows": GRID, "search_every": 16, "tau": 0.2}


def fields(out):
    return {name: getattr(out, name) for name in ("codes", "proba", "windows", "weights", "accuracies", "error_bounds")}


def same(left, right):
    for name, value in fields(left).items():
        assert np.array_equal(value, getattr(right, name)), name


def drifting(seed=0, n_rows=900, n=5, abstain=0.0):
    return random_stream(seed, n_rows, n, 2, abstain, blocks=4)


@pytest.mark.parametrize("abstain", [0.0, 0.2])
@pytest.mark.parametrize("extra", [{}, {"abstentions": "random", "tie_break_policy": "random"}], ids=str)
def test_chunks_save_and_load_do_not_show(extra, abstain, tmp_path):
    votes = drifting(1, rows_for(900, 150), 5, abstain)
    model = CommitteeLabelModel(**SMALL, **extra)
    whole = model.clone().label_stream(votes)
    parts = []
    for number, part in enumerate(random_chunks(2, len(votes), 200)):
        parts.append(model.label_stream(votes[part]))
        if number % 3 == 0:
            model.save(tmp_path / "state.npz")
            model = driftvote.load(tmp_path / "state.npz")
    for name, value in fields(whole).items():
        assert np.array_equal(value, np.concatenate([getattr(part, name) for part in parts])), name
    assert len(np.unique(whole.weights, axis=0)) > 1, "one committee only: nothing was tested"


def search_rows(n_rows, every):
    """Rows with a search, by definition: multiples of `every`, and powers of four before the first one."""
    powers = [4**k for k in range(20) if 4**k < every]
    return [row for row in range(1, n_rows + 1) if row % every == 0 or row in powers]


@pytest.mark.parametrize("abstain", [0.0, 0.2])
@pytest.mark.parametrize(("n_classes", "every"), [(2, 16), (2, 50), (3, 40)])
def test_every_row_is_the_vote_of_the_last_search(n_classes, every, abstain):
    """Restated by definition: windows of the paper's rule, agreements of the rows in them, one search after the other."""
    votes = random_stream(5, rows_for(300, 100), 4, n_classes, abstain, blocks=2)
    model = CommitteeLabelModel(windows=GRID, search_every=every, tau=0.1, n_classes=n_classes)
    out = model.label_stream(votes)
    windows = driftvote.AdaptiveLabelModel(windows=GRID, n_classes=n_classes, **PAPERS_RULE).label_stream(votes).windows
    assert np.array_equal(out.windows, windows)
    due = search_rows(len(votes), every)
    members, bound = (0, 1, 2, 3), 1.0
    for row, cast in enumerate(votes):
        if row + 1 in due:
            rows = votes[row + 1 - windows[row] : row + 1]
            both = (rows[:, :, None] >= 0) & (rows[:, None, :] >= 0)
            same = both & (rows[:, :, None] == rows[:, None, :])
            count = 6 + (4 if (rows < 0).any() else 0)
            factor = theory.statistics_factor(count, len(GRID), 0.1)
            allowance, stray = theory.window_allowances(factor, len(rows), n_classes)
            committee = find_committee(
                PanelFacts.from_agreements(
                    (n_classes * same.mean(axis=0) - both.mean(axis=0)) / (n_classes - 1),
                    tau=0.1,
                    allowance=allowance,
                    coverage=(rows >= 0).mean(axis=0),
                    coverage_allowance=stray,
                    n_classes=n_classes,
                ),
                5,
            )
            members, bound, searched_at = committee.places, committee.bound, row + 1
        counts = np.bincount(cast[list(members)][cast[list(members)] >= 0], minlength=n_classes)
        top = np.flatnonzero(counts == counts.max())
        assert out.codes[row] == (top[0] if len(top) == 1 else -1)
        assert np.flatnonzero(out.weights[row]).tolist() == [place for place in members if cast[place] >= 0]
        assert out.error_bounds[row] == pytest.approx(bound, abs=1e-9)
        told = out[row].certificate
        assert (told.searched_at, told.window) == (searched_at, windows[searched_at - 1])


def test_nothing_older_than_the_memory_matters():
    """Any block with the rows before it that `memory_rows` names, after any other past of the same length."""
    votes = drifting(3, 1100, 5)
    model = CommitteeLabelModel(windows=GRID[:7], search_every=24, tau=0.2)
    whole = model.clone().label_stream(votes)
    assert model.memory_rows == 64 + 24
    for begin in range(90, 1000, rows_for(83, 310)):
        junk = drifting(begin, begin - model.memory_rows, 5, 0.3)
        block = model.clone().partial_fit(junk).partial_fit(votes[begin - model.memory_rows : begin])
        same(block.label_stream(votes[begin : begin + 60]), whole[begin : begin + 60])


def test_a_model_can_start_in_the_middle():
    votes = drifting(4, 400, 5)
    model = CommitteeLabelModel(windows=GRID[:7], search_every=24, tau=0.2, labelers=list("abcde"))
    whole = model.clone().label_stream(votes)
    for row in (1, 3, 23, 24, 25, 150, 240):
        fresh = model.clone()
        fresh.start_at(row, votes[max(0, row - model.memory_rows) : row])
        same(fresh.label_stream(votes[row:]), whole[row:])


def test_a_labeler_that_joins_was_silent_before():
    """From the next search on, a labeler that joins late counts as one that was declared and abstained."""
    votes = drifting(5, 400, 5)
    names = [f"l{i}" for i in range(5)]
    declared = CommitteeLabelModel(**SMALL, labelers=names)
    late = CommitteeLabelModel(**SMALL)
    for at in (0, 137, 260):
        rows = votes[at : at + 130].astype(object)
        if at == 0:
            rows[:, 4] = None
        told = [{name: row[i] for i, name in enumerate(names) if at or i < 4} for row in rows]
        first = declared.label_stream([dict(zip(names, row, strict=True)) for row in rows])
        second = late.label_stream(told)
        assert second.labelers == tuple(names[: second.weights.shape[1]])
        if at:  # until the first search the committee is that of four labelers
            same(first[16:], second[16:])
            assert second[0].certificate.searched_at <= second[20].certificate.searched_at


def test_the_certificate_is_on_every_step():
    votes = drifting(7, 300)
    model = CommitteeLabelModel(**SMALL)
    out = model.label_stream(votes)
    for step in (out[0], out[150], out[-1]):
        told = step.certificate
        members = [name for name, weight in zip(step.labelers, step.weights, strict=True) if weight]
        assert list(told.members) == members
        assert 0.0 <= told.bound <= 1.0
        assert step.to_dict()["certificate"] == told.to_dict()
        json.dumps(told.to_dict())
    assert out.error_bounds.shape == (300,)
    assert np.array_equal(out[10:20].error_bounds, out.error_bounds[10:20])
    assert driftvote.AdaptiveLabelModel().label_stream(votes).error_bounds is None
    assert driftvote.MajorityLabelModel().update(votes[0]).certificate is None
    assert "whatever the dependence" in model.describe()
    assert model.certificate == out[-1].certificate
    assert model.committee == model.certificate.members


def test_the_step_says_what_the_program_says():
    """The bound of the stream is the program's own, solved anew with its proof from what the model knows."""
    stream = simulate(np.full((5000, 5), 0.85), seed=3, coverage=0.9)
    model = CommitteeLabelModel(known_accuracies={f"labeler_{i}": (0.8, 1.0) for i in range(5)}, search_every=500)
    told = model.label_stream(stream.votes)[-1].certificate
    facts = model.facts()  # the last row had a search
    assert told.searched_at == 5000
    assert told.allowance == pytest.approx(
        theory.statistical_error(theory.statistics_factor(10 + 5, 20, 0.1), told.window)
    )
    assert worst_case(facts, told.members).bound == pytest.approx(told.bound, abs=1e-9)
    assert find_committee(facts, 5).members == told.members
    assert worst_case(facts, told.members, whole_panel=True).bound <= told.bound + 1e-9


def test_the_true_error_stays_below_the_certificate():
    """Streams of labelers that share errors: over rows like those of the window, the bound holds."""
    for seed in range(rows_for(12, 2)):
        rng = np.random.default_rng(seed)
        rows, n = 6000, 5
        truth = rng.integers(2, size=rows)
        accuracy = rng.uniform(0.7, 0.9, n)
        right = rng.random((rows, n)) < accuracy
        copying = rng.random(rows) < 0.5
        right[copying, 1] = right[copying, 0]
        votes = np.where(right, truth[:, None], 1 - truth[:, None])
        known = {f"labeler_{i}": (float(right[:, i].mean()) - 0.02, 1.0) for i in range(n)}
        out = CommitteeLabelModel(known_accuracies=known).label_stream(votes)
        tail = slice(4096, None)
        assert (out.codes[tail] != truth[tail]).mean() <= out.error_bounds[-1]
        assert out.error_bounds[-1] < 0.35


def test_a_change_reaches_the_committee_at_the_next_search():
    """Half-way the three best labelers become copies of each other: the committee then has one of them at most."""
    accuracy = np.array([0.95, 0.95, 0.95, 0.9, 0.9, 0.9])
    right = np.random.default_rng(0).random((9000, 6)) < accuracy
    right[3000:, 1] = right[3000:, 2] = right[3000:, 0]
    known = {f"labeler_{i}": (float(accuracy[i]) - 0.01, 1.0) for i in range(6)}
    model = CommitteeLabelModel(known_accuracies=known, allowance=0.01, search_every=500)
    out = model.label_stream(right.astype(np.int8))
    searched = [out[row].certificate.searched_at for row in (2998, 2999, 3498, 3499)]
    assert searched == [2500, 3000, 3000, 3500]
    assert out[2999].certificate.members == ("labeler_0", "labeler_1", "labeler_2")
    assert out.weights[-1][:3].sum() <= 1


def test_the_papers_protocol_draws_abstentions_and_ties():
    """`paper()`: each abstention is a random vote, so every row has a label, and facts are about those votes."""
    model = CommitteeLabelModel.paper(seed=3, search_every=100, tau=0.2)
    assert isinstance(model, CommitteeLabelModel)
    adaptive = driftvote.AdaptiveLabelModel.paper(seed=3)
    shared = set(model.get_params()) & set(adaptive.get_params())
    assert {name: model.get_params()[name] for name in shared} == {name: adaptive.get_params()[name] for name in shared}
    votes = random_stream(8, 500, 5, 2, 0.4)
    votes[::7] = -1
    out = model.label_stream(votes)
    assert np.array_equal(out.windows, adaptive.label_stream(votes).windows)
    assert (out.codes >= 0).all()
    facts = model.facts()
    assert facts.coverage_low.tolist() == [1.0] * 5
    assert ((facts.accuracy_low > 0.5) & (facts.accuracy_low < 0.7)).all()  # 0.7 when voting, diluted by abstentions
    four = CommitteeLabelModel.paper(4, labelers=["a", "b", "c"])
    assert len(four.classes) == 4
    assert CommitteeLabelModel.paper(classes=["no", "yes"]).classes == ("no", "yes")


def test_the_committee_votes_and_nobody_else():
    votes = drifting(11, 400, 5, 0.2)
    out = CommitteeLabelModel(**SMALL).label_stream(votes)
    for row in range(400):
        cast = votes[row][(out.weights[row] > 0) & (votes[row] >= 0)]
        ones, zeros = (cast == 1).sum(), (cast == 0).sum()
        assert out.codes[row] == (-1 if ones == zeros else int(ones > zeros))
        if len(np.unique(votes[row][votes[row] >= 0])) == 1 and len(cast):
            assert out.codes[row] == cast[0]  # never against a unanimous row


@needs_data
@pytest.mark.slow
def test_the_image_stream_shows_its_dependence():
    """Two detectors are nearly copies, and two camps vote against each other (two are right less than half the time)."""
    votes, truth = Awa2.load(DATA / "awa2").stream(0)
    block = slice(0, 4000)
    right = (votes[block] == truth[block, None]).mean(axis=0)
    assert (right < 0.5).sum() == 2
    model = CommitteeLabelModel(labelers=LABELERS)
    model.label_stream(votes[block])
    found = model.dependence()
    assert found.near_copies == (("orange", "yellow"),)
    assert found.contrary
    assert found.effective_labelers < 5
    assert "near-copies: orange and yellow" in model.describe()


def test_settings_are_checked():
    for wrong, match in [
        ({"tau": 0.7}, "tau"),
        ({"tau": -0.1}, "tau"),
        ({"known_accuracies": [0.9]}, "known_accuracies must be a dict"),
        ({"known_accuracies": {"a": 2}}, "'a'"),
        ({"largest": 10}, "largest"),
        ({"search_every": 0}, "search_every"),
        ({"allowance": -1}, "allowance"),
        ({"labelers": ["a", "b", "c"], "known_accuracies": {"d": 0.9}}, "'d'"),
    ]:
        with pytest.raises(SettingError, match=match):
            CommitteeLabelModel(**wrong)
    with pytest.raises(SettingError, match="40 labelers at most"):
        CommitteeLabelModel().update([1] * 41)
    with pytest.raises(driftvote.DriftvoteError, match="no rows"):
        _ = CommitteeLabelModel().certificate
    assert CommitteeLabelModel(labelers=["a", "b", "c"]).committee == ("a", "b", "c")
    with pytest.raises(LabelerError):
        CommitteeLabelModel().update([1, 0])


def test_what_is_known_of_a_labeler_reaches_its_program():
    votes = drifting(2, 200)
    known = {"labeler_1": (0.8, 1.0), "labeler_2": 0.9}
    model = CommitteeLabelModel(tau=0.0, known_accuracies=known, allowance=2.0)
    model.label_stream(votes)
    facts = model.facts()
    assert facts.names == model.labelers
    assert facts.accuracy_low.tolist() == [0.5, 0.8, 0.9, 0.5, 0.5]
    assert facts.accuracy_high.tolist() == [1.0, 1.0, 0.9, 1.0, 1.0]
    assert model.committee == ("labeler_2",)  # agreements say nothing under that allowance


def test_without_scipy_the_extra_is_named_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtraError, match=r"driftvote\[lp\]"):
        CommitteeLabelModel()
