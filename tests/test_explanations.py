"""Explanations add up: for every label model, the parts of a row sum to the log-odds of its label."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, MajorityLabelModel, cli
from driftvote.core.label_models import Confusion, Mixture, OneCoin, Triplet, Wawa
from driftvote.live import WatchOptions
from driftvote.live.messages import VoteMessage, make_answer
from driftvote.report import from_arrays, report_from_json, report_to_json
from driftvote.report.builder import MAX_EXAMPLE_VOTES
from driftvote.report.page import parts_of

from streams_for_tests import random_stream, rows_for

MODELS = {
    "mixture": lambda **given: AdaptiveLabelModel(estimator=Mixture(), **given),
    "confusion": lambda **given: AdaptiveLabelModel(estimator=Confusion(), **given),
    "one_coin": lambda **given: AdaptiveLabelModel(estimator=OneCoin(), **given),
    "one_coin_balance": lambda **given: AdaptiveLabelModel(estimator=OneCoin(class_balance="estimated"), **given),
    "wawa": lambda **given: AdaptiveLabelModel(estimator=Wawa(), **given),
    "triplet": lambda **given: AdaptiveLabelModel(estimator=Triplet(), **given),
    "majority": MajorityLabelModel,
    "committee": CommitteeLabelModel,
    "paper": lambda **given: AdaptiveLabelModel(estimator=Triplet(), abstentions="random", **given),
}
NO_FEEDBACK = ("triplet", "majority", "committee", "paper")
GIVEN = {"votes": "snorkel"}


def log_odds(p: float) -> float:
    """ln p / (1 - p), with p not closer than 1e-12 to 0 or 1."""
    p = min(max(p, 1e-12), 1.0 - 1e-12)
    return math.log(p / (1.0 - p))


def special_stream(seed: int, n_classes: int) -> np.ndarray:
    """Votes with abstentions, silent rows, unanimous rows, ties, and a labeler that is nearly always wrong."""
    votes = random_stream(seed, rows_for(420, 60), 5, n_classes, abstain=0.25)
    votes[::10] = -1
    votes[1::10] = np.where(votes[1::10] >= 0, votes[1::10, :1], -1)
    votes[2::10] = [0, 1, -1, -1, -1]
    votes[:, 4] = np.where(votes[:, 4] >= 0, (votes[:, 0] + 1) % n_classes, -1)
    return votes


def check_parts(why, label, proba, classes):
    """The parts sum to the log-odds of the label, and no class has larger ones."""
    odds = [log_odds(p) for p in proba]
    explained = classes.index(why.explained)
    assert why.log_odds == pytest.approx(odds[explained], abs=1e-9)
    assert why.base + sum(vote.share for vote in why.votes) + why.together == pytest.approx(why.log_odds, abs=1e-9)
    assert odds[explained] >= max(odds) - 1e-6, "the largest, up to what counts as a tie"
    assert why.label == label
    assert label == -1 or why.explained == label
    assert all(math.isfinite(part) for part in (why.base, why.together, *(vote.share for vote in why.votes)))
    assert all(vote.share == 0.0 for vote in why.votes if vote.vote is None)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("name", MODELS)
def test_parts_sum_to_the_log_odds_of_the_label(name, n_classes):
    for seed in range(2):
        votes = special_stream(seed, n_classes)
        known = {} if name in NO_FEEDBACK else {"verified": [0 if row % 7 == 3 else -1 for row in range(len(votes))]}
        out = MODELS[name](n_classes=n_classes, **GIVEN).label_stream(votes, **known)
        ties = 0
        for row in range(0, len(votes), 1 if seed else 3):
            why = out.explain(row)
            check_parts(why, out.labels[row], out.proba[row].tolist(), list(out.classes))
            assert why.verified == bool(known and row % 7 == 3)
            if why.verified:
                assert (why.base, why.together) == (why.log_odds, 0.0)
                assert "verified" in str(why)
            elif not (votes[row] >= 0).any() and name != "paper":
                assert why.together == pytest.approx(0.0, abs=1e-9), "nobody voted"
            ties += why.label == -1
            lines = [float(found) for found in re.findall(r" ([+-]\d+\.\d\d)(?:  \(|$)", str(why), re.MULTILINE)]
            assert why.verified or sum(lines[:-1]) == pytest.approx(lines[-1], abs=1e-6), "and so do the lines shown"
        assert ties or name not in ("majority", "triplet", "committee"), "some rows are tied"


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", ["mixture", "confusion", "one_coin", "triplet"])
def test_a_share_is_the_mean_of_what_a_vote_adds_first_and_last(name, n_classes):
    """By definition, with probabilities from `predict_proba` of the votes with and without the one in question."""
    votes = special_stream(3, n_classes)
    model = MODELS[name](n_classes=n_classes, **GIVEN)
    model.partial_fit(votes)
    for row in votes[:40]:
        why = model.explain(row)
        explained = list(model.classes_).index(why.explained)

        def odds(votes, explained=explained):
            return log_odds(model.predict_proba(np.array([votes]))[0, explained])

        nobody = np.full_like(row, -1)
        assert why.base == pytest.approx(odds(nobody), abs=1e-9)
        shares = {int(vote.labeler.split("_")[1]): vote.share for vote in why.votes}
        for h in range(len(row)):
            without, only = row.copy(), nobody.copy()
            without[h], only[h] = -1, row[h]
            last, first = odds(row) - odds(without), odds(only) - odds(nobody)
            assert shares[h] == pytest.approx((last + first) / 2, abs=1e-9)


@pytest.mark.parametrize("name", ["one_coin", "triplet"])
def test_where_votes_add_up_their_shares_are_their_weights(name):
    rng = np.random.default_rng(8)
    truth = rng.integers(2, size=600)
    right = rng.random((600, 5)) < [0.85, 0.8, 0.75, 0.7, 0.65]
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    votes[rng.random(votes.shape) < 0.2] = -1
    out = MODELS[name](**GIVEN).label_stream(votes)
    assert (out.accuracies[300:] >= 0.5).all()
    for row in range(300, 600, 7):
        why, code = out.explain(row), max(out.codes[row], 0)
        assert why.base == pytest.approx(0.0, abs=1e-9)
        assert why.together == pytest.approx(0.0, abs=1e-8)
        for vote in why.votes:
            h = out.labelers.index(vote.labeler)
            weight = out.weights[row, h] if votes[row, h] == code else -out.weights[row, h]
            assert vote.share == pytest.approx(weight, abs=1e-8)


def test_shares_of_plain_majorities_are_of_the_order_of_their_log_odds():
    """One vote alone is certain there; nobody wants to read that each of five votes adds 14."""
    why = MajorityLabelModel().label_stream([[1, 1, 1, 0, 0]]).explain(0)
    for vote in why.votes:
        assert 0.3 < abs(vote.share) < 0.7
        assert (vote.share > 0) == vote.for_label
    assert abs(why.together) < 0.1


def test_only_members_of_a_committee_have_shares():
    votes = random_stream(4, 300, 6)
    out = CommitteeLabelModel(search_every=100).label_stream(votes)
    step = out[-1]
    members = set(step.certificate.members)
    assert 0 < len(members) < 6
    assert {vote.labeler for vote in step.explain().votes if vote.share != 0.0} == members


def test_labelers_that_join_change_no_explanation():
    votes = random_stream(4, 120, 5, abstain=0.2)
    rows = [{f"judge-{h}": int(vote) for h, vote in enumerate(row)} for row in votes]
    model, late = AdaptiveLabelModel(**GIVEN), AdaptiveLabelModel(**GIVEN)
    before = model.label_stream(rows)
    joined = late.label_stream([*rows, rows[0] | {"late": 1}])
    for row in range(0, 120, 11):
        first, second = before.explain(row), joined.explain(row)
        assert first.base == pytest.approx(second.base, abs=1e-9)
        shares = {vote.labeler: vote.share for vote in second.votes}
        assert shares.pop("late") == 0.0
        assert shares == pytest.approx({vote.labeler: vote.share for vote in first.votes}, abs=1e-9)


def test_report_watch_and_explain_give_the_same_numbers():
    votes = random_stream(6, rows_for(600, 120), 5, 3, abstain=0.2)
    rows = [{f"judge-{h}": int(vote) for h, vote in enumerate(row) if vote >= 0} for row in votes]
    rows[0] = {f"judge-{h}": 0 for h in range(5)}
    model = AdaptiveLabelModel(n_classes=3, **GIVEN)
    steps = [model.update(row) for row in rows]
    out = AdaptiveLabelModel(n_classes=3, **GIVEN).label_stream(rows)
    report = from_arrays(rows, AdaptiveLabelModel(n_classes=3, **GIVEN), out=out)
    assert report_from_json(report_to_json(report)) == report
    examples = [*report.review, *report.differences.examples]
    assert len(examples) > 20
    for example in examples:
        step = steps[example.row]
        why, batch = step.explain(), out.explain(example.row)
        assert why.to_dict() == batch.to_dict()
        message = VoteMessage(rows[example.row], None, None, None, {})
        answer = json.loads(json.dumps(make_answer(example.row, message, step, WatchOptions(explain=True))))["explain"]
        assert (answer["log_odds"], answer["base"], answer["together"]) == (why.log_odds, why.base, why.together)
        assert [vote["share"] for vote in answer["votes"]] == [vote.share for vote in why.votes]
        assert (example.log_odds, example.base) == pytest.approx((why.log_odds, why.base), abs=1e-4)
        assert example.together == pytest.approx(why.together, abs=1e-3)
        shares = {vote.labeler: vote.share for vote in why.votes if vote.vote is not None}
        assert {vote.labeler: vote.share for vote in example.votes} == pytest.approx(shares, abs=1e-4)
        parts = [vote.share for vote in example.votes]
        assert sum(parts) + example.base + example.others + example.together == pytest.approx(
            example.log_odds, abs=1e-9
        )
        assert example.explained == example.label or example.label is None
        assert example.second_log_odds <= example.log_odds
        *lines, total = parts_of(example)
        by_name = {line.name: line.total for line in lines}
        assert by_name["without any vote"] == pytest.approx(why.base, abs=0.006)
        assert by_name["votes together"] == pytest.approx(why.together, abs=0.05)
        assert sum(line.total for line in lines) == pytest.approx(total.total, abs=1e-9)
        assert total.total == pytest.approx(example.log_odds, abs=0.006)
        assert all(-1e-9 <= line.left <= line.left + line.width <= 100 + 1e-9 for line in [*lines, total])


def test_votes_that_a_report_does_not_list_are_in_its_sum(monkeypatch):
    monkeypatch.setattr("driftvote.report.builder.MAX_EXAMPLE_VOTES", 3)
    report = from_arrays(random_stream(2, 200, 6))
    for example in report.review:
        assert len(example.votes) == 3 < MAX_EXAMPLE_VOTES
        parts = [vote.share for vote in example.votes]
        assert sum(parts) + example.base + example.others + example.together == pytest.approx(
            example.log_odds, abs=1e-9
        )
        assert example.others != 0.0
        assert "other votes" in [part.name for part in parts_of(example)]


def test_no_row_of_the_demos_report_contradicts_its_label(tmp_path):
    """On the page as it is: in each row, the lines add up to the last one, which is on the side of the label."""
    done = CliRunner().invoke(cli.app, ["demo", "--out", str(tmp_path), "--rows", str(rows_for(20_000, 1_000))])
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text()
    cards = page.split('<article class="card">')[1:]
    assert len(cards) == 32
    for card in cards:
        label = re.search(r'"verdict">Label <b>(\d)</b>', card)[1]
        lines = re.findall(r'<p class="side-name"><span>([^<]*)</span><span class="n"[^>]*>([^<]*)</span>', card)
        numbers = [float(number.replace("\N{MINUS SIGN}", "-")) for _, number in lines]
        assert lines[-1][0] == f"log-odds of {label}"
        assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=1e-9)
        assert numbers[-1] >= 0.0, "of two classes the label is the likelier one"
        assert lines[0][0] == f"voted {label}", "votes for the label come first"
