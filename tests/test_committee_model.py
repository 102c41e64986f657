"""The committee in a stream: when it is searched, what it certifies, and that chunks never show."""

from __future__ import annotations

import json

import numpy as np
import pytest

import driftvote
from driftvote import CommitteeLabelModel, LabelerError, SettingError, theory
from driftvote.committee import find_committee, worst_case
from driftvote.models.committee_engine import CommitteeEngine, Plan
from driftvote.streams import simulate
from driftvote.streams.awa2 import LABELERS, Awa2

from streams_for_tests import DATA, needs_data, random_chunks, random_stream, rows_for

GRID = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SMALL = {"windows": GRID, "refresh": 4, "tau": 0.2}


def fields(out):
    return {name: getattr(out, name) for name in ("codes", "proba", "windows", "weights", "accuracies", "error_bounds")}


def same(left, right):
    for name, value in fields(left).items():
        assert np.array_equal(value, getattr(right, name)), name


def drifting(seed=0, n_rows=900, n=5, abstain=0.0):
    return random_stream(seed, n_rows, n, 2, abstain, blocks=4)


@pytest.mark.parametrize("abstain", [0.0, 0.2])
@pytest.mark.parametrize("extra", [{}, {"accuracies": "estimated"}, {"abstentions": "random"}], ids=str)
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


@pytest.mark.parametrize("extra", [{}, {"accuracies": "estimated"}], ids=str)
def test_nothing_older_than_the_largest_window_matters(extra):
    """Any block with the r_m rows before it, after any other past of the same length."""
    votes = drifting(3, 1100, 5)
    model = CommitteeLabelModel(windows=GRID[:7], refresh=3, tau=0.2, **extra)
    whole = model.clone().label_stream(votes)
    for begin in range(70, 1000, rows_for(37, 310)):
        junk = drifting(begin, begin - 64, 5, 0.3)
        block = model.clone().partial_fit(junk).partial_fit(votes[begin - 64 : begin])
        same(block.label_stream(votes[begin : begin + 60]), whole[begin : begin + 60])


@pytest.mark.parametrize("sizes", [[1], [7], [64], [5, 1000], GRID], ids=str)
def test_the_plan_stays_within_the_memory(sizes):
    for refresh in (1, 3, 1000):
        plan = Plan.made(
            np.array(sizes),
            refresh,
            largest=5,
            allowance=None,
            delta=0.1,
            accuracy_low=0,
            accuracy_high=1,
            estimated=False,
        )
        assert plan.cap + plan.period <= sizes[-1] + 1
        assert 1 <= plan.refresh <= plan.period
        row, due = 0, []
        while row < 3 * plan.period + 10:
            row = plan.next_due(row)
            due.append(row)
        everything = [t for t in range(1, row + 1) if t % plan.refresh == 0 or plan.is_anchor(t)]
        assert due == everything
        for t in range(1, row + 1):
            assert plan.last_anchor(t) == max(a for a in everything if a <= t and plan.is_anchor(a))
            assert t - plan.last_anchor(t) < max(plan.period, 3 * plan.last_anchor(t) + 1)


def test_a_labeler_that_joins_was_silent_before():
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
        if at:  # before, the allowances knew of four labelers only
            same(first, second)


def test_the_certificate_is_on_every_step():
    votes = drifting(7, 300)
    model = CommitteeLabelModel(**SMALL)
    out = model.label_stream(votes)
    for step in (out[0], out[150], out[-1]):
        told = step.certificate
        members = [name for name, weight in zip(step.labelers, step.weights, strict=True) if weight]
        assert list(told.members) == members
        assert 0.0 <= told.bound <= 1.0
        assert step.as_dict()["certificate"] == told.to_dict()
        json.dumps(told.to_dict())
    assert out.error_bounds.shape == (300,)
    assert np.array_equal(out[10:20].error_bounds, out.error_bounds[10:20])
    assert driftvote.AdaptiveLabelModel().label_stream(votes).error_bounds is None
    assert driftvote.MajorityLabelModel().update(votes[0]).certificate is None
    assert "whatever the dependence" in model.describe()


def test_the_step_says_what_the_program_says():
    """The bound of the stream is the program's own, solved anew by HiGHS from what the model knows."""
    stream = simulate(np.full((5000, 5), 0.85), seed=3, coverage=0.9)
    model = CommitteeLabelModel(accuracies={f"labeler_{i}": (0.8, 1.0) for i in range(5)}, refresh=500)
    out = model.label_stream(stream.votes)
    facts = model.facts()
    told = out[-1].certificate
    assert told.allowance == pytest.approx(
        theory.statistical_error(theory.statistics_factor(10 + 5, 20, 0.1), told.window)
    )
    assert worst_case(facts, told.members).bound == pytest.approx(told.bound, abs=0.011)  # carried proofs: 0.01
    assert told.bound >= worst_case(facts, told.members).bound - 1e-9
    assert told.bound >= find_committee(facts, 5).bound - 1e-9
    assert model.certificate().members == model.committee
    assert model.certificate(whole_panel=True).bound <= model.certificate().bound + 1e-9


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
        out = CommitteeLabelModel(accuracies=known).label_stream(votes)
        tail = slice(4096, None)
        assert (out.codes[tail] != truth[tail]).mean() <= out.error_bounds[-1]
        assert out.error_bounds[-1] < 0.35


def test_a_change_is_searched_at_once():
    """Half-way the first three labelers become copies of each other: the window falls, and the committee changes."""
    rng = np.random.default_rng(0)
    right = rng.random((6000, 6)) < 0.9
    right[3000:, 1] = right[3000:, 2] = right[3000:, 0]
    votes = right.astype(np.int8)
    known = {f"labeler_{i}": (0.88, 1.0) for i in range(6)}
    model = CommitteeLabelModel(accuracies=known, refresh=100_000, windows=[2**k for k in range(18)])
    out = model.label_stream(votes)
    fallen = np.flatnonzero(2 * out.windows[3000:] <= out.windows[2999]) + 3000
    assert len(fallen)
    assert out[int(fallen[0])].certificate.searched_at == fallen[0] + 1
    assert out[2999].certificate.searched_at < 3000


def test_the_committee_votes_and_nobody_else():
    votes = drifting(11, 400, 5, 0.2)
    out = CommitteeLabelModel(**SMALL).label_stream(votes)
    for row in range(400):
        cast = votes[row][(out.weights[row] > 0) & (votes[row] >= 0)]
        ones, zeros = (cast == 1).sum(), (cast == 0).sum()
        assert out.codes[row] == (-1 if ones == zeros else int(ones > zeros))
        if len(np.unique(votes[row][votes[row] >= 0])) == 1 and len(cast):
            assert out.codes[row] == cast[0]  # never against a unanimous row


def test_searches_are_a_small_part_of_the_time(monkeypatch):
    """n = 6, a search every 1,000 rows; a generous limit here, `make committee` measures the share."""
    import time

    votes = simulate(np.full((rows_for(200_000, 2_000), 6), 0.8), seed=1).votes
    spent = [0.0]
    search = CommitteeEngine._search_at

    def timed(self, row, window):
        began = time.perf_counter()
        search(self, row, window)
        spent[0] += time.perf_counter() - began

    CommitteeLabelModel(tau=0.25).label_stream(votes)
    monkeypatch.setattr(CommitteeEngine, "_search_at", timed)
    began = time.perf_counter()
    CommitteeLabelModel(tau=0.25).label_stream(votes)
    total = time.perf_counter() - began
    assert 0.0 < spent[0] < rows_for(60, 99) / 100 * total


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
        ({"tau": {"a": -1}}, "tau of 'a'"),
        ({"accuracies": [0.9]}, "accuracies must be a dict"),
        ({"accuracies": "guessed"}, "'estimated'"),
        ({"accuracies": {"a": 2}}, "'a'"),
        ({"largest": 10}, "largest"),
        ({"refresh": 0}, "refresh"),
        ({"allowance": -1}, "allowance"),
        ({"labelers": ["a", "b", "c"], "tau": {"d": 0.1}}, "'d'"),
    ]:
        with pytest.raises(SettingError, match=match):
            CommitteeLabelModel(**wrong)
    with pytest.raises(SettingError, match="40 labelers at most"):
        CommitteeLabelModel().update([1] * 41)
    with pytest.raises(driftvote.DriftvoteError, match="no rows"):
        CommitteeLabelModel().certificate()
    assert CommitteeLabelModel(labelers=["a", "b", "c"]).committee == ("a", "b", "c")
    with pytest.raises(LabelerError):
        CommitteeLabelModel().update([1, 0])


def test_what_is_known_of_a_labeler_reaches_its_program():
    votes = drifting(2, 200)
    model = CommitteeLabelModel(tau={"labeler_1": 0.3}, accuracies={"labeler_2": 0.9}, allowance=2.0)
    model.label_stream(votes)
    facts = model.facts()
    assert facts.accuracy_low.tolist() == [0.5, 0.8, 0.9, 0.5, 0.5]
    assert facts.accuracy_high.tolist() == [1.0, 1.0, 0.9, 1.0, 1.0]
    assert model.committee == ("labeler_2",)  # agreements say nothing under that allowance
