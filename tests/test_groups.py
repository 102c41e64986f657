"""groups=: a family casts one vote, by every door of every model, and chunks do not show."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, LabelerError, LabelModel, MajorityLabelModel, SettingError, VoteError

from streams_for_tests import random_chunks, random_stream

GROUPS = {"labeler_0": "family", "labeler_1": "family", "labeler_4": "family"}


def models(**settings):
    for kind in [kind for kind in LabelModel._kinds.values() if not inspect.isabstract(kind)]:
        needs = {"window": 50} if "window" in inspect.signature(kind).parameters else {}
        yield kind(**needs, **settings)


def by_hand(votes, n_classes):
    """The family's column in place of its first member, one row at a time."""
    rows = []
    for row in votes.tolist():
        counts = [sum(row[place] == c for place in (0, 1, 4)) for c in range(n_classes)]
        top = max(counts)
        family = counts.index(top) if top and counts.count(top) == 1 else -1
        rows.append([family, row[2], row[3], row[5]])
    return np.array(rows)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("abstentions", ["zero", "random"])
def test_a_family_is_one_labeler(n_classes, abstentions, tmp_path):
    votes = random_stream(1, 400, 6, n_classes, 0.2)
    settings = {"n_classes": n_classes, "abstentions": abstentions}
    for model, plain in zip(models(**settings, groups=GROUPS), models(**settings), strict=True):
        expected = plain.label_stream(by_hand(votes, n_classes))
        whole = model.clone().label_stream(votes)
        assert whole.labelers == ("family", "labeler_2", "labeler_3", "labeler_5")
        parts = []
        for number, part in enumerate(random_chunks(3, len(votes), 90)):
            parts.append(model.label_stream(votes[part]))
            if number == 2:
                model.save(tmp_path / "state.npz")
                model = driftvote.load(tmp_path / "state.npz")
        for name in ("codes", "proba", "windows", "weights", "accuracies", "n_votes"):
            assert np.array_equal(getattr(whole, name), getattr(expected, name)), name
            assert np.array_equal(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts])), name
        assert np.array_equal(model.predict(votes[:20]), plain.predict(by_hand(votes[:20], n_classes)))
        assert "family votes for labeler_0, labeler_1, labeler_4" in model.describe()


def test_every_door_gives_the_same():
    import pandas as pd

    votes = random_stream(2, 120, 6, 2, 0.2)
    names = [f"labeler_{i}" for i in range(6)]
    frame = pd.DataFrame(np.where(votes < 0, np.nan, votes), columns=names)
    records = [{name: int(vote) for name, vote in zip(names, row, strict=True) if vote >= 0} for row in votes]
    expected = AdaptiveLabelModel(groups=GROUPS, labelers=names).label_stream(votes)
    for door in (frame, records, votes.tolist()):
        out = AdaptiveLabelModel(groups=GROUPS, labelers=names).label_stream(door)
        assert np.array_equal(out.codes, expected.codes)
        assert np.array_equal(out.weights, expected.weights)
    rows = AdaptiveLabelModel(groups=GROUPS, labelers=names)
    assert [rows.update(record).code for record in records] == expected.codes.tolist()
    assert rows.predict_one(records[0]) == rows.predict(votes[:1])[0]
    long = pd.DataFrame(
        [(t, name, int(v), t) for t, row in enumerate(votes) for name, v in zip(names, row, strict=True) if v >= 0],
        columns=["task", "worker", "label", "time"],
    )
    keys = {"task": "task", "labeler": "worker", "label": "label", "time": "time"}
    told = AdaptiveLabelModel(groups=GROUPS, labelers=names).label_stream(long, **keys)
    voted = (votes >= 0).any(axis=1)
    assert len(told) == voted.sum()


def test_members_may_join_later():
    model = AdaptiveLabelModel(groups={"judge@v1": "judge", "judge@v2": "judge"})
    model.update({"judge@v1": 1, "a": 1, "b": 0})
    assert model.labelers == ("judge", "a", "b")
    step = model.update({"judge@v2": 1, "a": 1, "b": 1, "c": 1})  # a new version of the judge is no new labeler
    assert step.labelers == ("judge", "a", "b", "c")
    assert step.n_votes == 4
    assert model.n_rows == 2


def test_groups_come_in_three_forms():
    lists = MajorityLabelModel(groups=[["labeler_0", "labeler_1"], ["labeler_2", "labeler_3"]])
    out = lists.label_stream([[1, 1, 0, 0, 1, 0], [1, 0, 0, 0, 1, 0]])
    assert out.labelers == ("labeler_0+labeler_1", "labeler_2+labeler_3", "labeler_4", "labeler_5")
    assert out.n_votes.tolist() == [4, 3]  # a family that is divided abstains
    by_family = MajorityLabelModel(groups={"f": ["labeler_0", "labeler_1"]})
    assert by_family.get_params()["groups"] == {"labeler_0": "f", "labeler_1": "f"}
    assert by_family.clone().get_params() == by_family.get_params()


def test_wrong_groups_are_refused():
    for wrong, match in [
        ("abc", "groups must be"),
        (7, "groups must be"),
        (["abc"], "groups must be"),
        ([[]], "empty group"),
        ([["a", "b"], ["b", "c"]], "'b'"),
    ]:
        with pytest.raises(SettingError, match=match):
            AdaptiveLabelModel(groups=wrong)
    with pytest.raises(LabelerError, match="leaves 2 groups"):
        AdaptiveLabelModel(groups=[["a", "b", "c"]], labelers=["a", "b", "c", "d"])
    model = AdaptiveLabelModel(groups=[["labeler_0", "labeler_1", "labeler_2"]])
    with pytest.raises(LabelerError, match="leaves 2 groups"):
        model.update([1, 0, 1, 0])
    assert (model.n_rows, model.labelers) == (0, ())
    clash = AdaptiveLabelModel(groups={"a": "b", "c": "b"})
    with pytest.raises(LabelerError, match="'b' is a group of groups="):
        clash.update({"a": 1, "b": 0, "c": 1, "d": 1, "e": 1})
    model = AdaptiveLabelModel(groups=GROUPS)
    model.label_stream(random_stream(1, 30, 6))
    with pytest.raises(VoteError, match=r"row 1 .*'labeler_4': 9"):
        model.label_stream([[1] * 6, [1, 1, 1, 1, 9, 1]])
    with pytest.raises(LabelerError, match="6 votes"):
        model.update([1, 0, 1, 1])
    assert model.n_rows == 30
