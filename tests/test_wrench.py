"""WRENCH datasets: read as they are, refused by name of what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from driftvote import SettingError, VoteError
from driftvote.streams import permute
from driftvote.streams.wrench import load_wrench

from streams_for_tests import DATA, needs_data

SIZES = {"tennis": (6959, 6), "basketball": (17970, 4), "commercial": (64130, 4)}


@needs_data
@pytest.mark.parametrize("name", list(SIZES))
def test_sizes(name):
    data = load_wrench(DATA / "wrench" / name)
    assert data.votes.shape == SIZES[name]
    assert len(data.truth) == len(data.votes)
    assert (data.n_classes, data.name) == (2, name)
    assert set(np.unique(data.votes)) <= {-1, 0, 1}


@needs_data
def test_other_splits():
    assert len(load_wrench(DATA / "wrench" / "tennis", "test").votes) > 100


GOOD = {"0": {"label": 1, "weak_labels": [1, -1, 0], "data": {}}, "1": {"label": 0, "weak_labels": [0, 0, 0]}}
LABELS = {"0": "no", "1": "yes"}


@pytest.mark.parametrize(
    ("split", "labels", "message"),
    [
        (None, LABELS, r"train.json: cannot be read .*WRENCH benchmark"),
        ("{", LABELS, r"train.json: not JSON"),
        ([], LABELS, "not a WRENCH split"),
        ({}, LABELS, "hold at least one"),
        ({"1": GOOD["1"]}, LABELS, 'no row "0"; rows are numbered from 0'),
        ({"0": {"label": 1}}, LABELS, "row 0 has no list weak_labels"),
        ({"0": GOOD["0"], "1": {"label": 0, "weak_labels": [0]}}, LABELS, "row 1 has 1 weak labels, but row 0 has 3"),
        (
            {"0": {"label": 1, "weak_labels": [1, 2, 0]}},
            LABELS,
            "row 0, weak label 1 is 2, not -1 or a class code up to 1",
        ),
        ({"0": {"label": 1, "weak_labels": [1, "a", 0]}}, LABELS, "weak label 1 is 'a'"),
        ({"0": {"label": -1, "weak_labels": [1, 0, 0]}}, LABELS, "row 0: label -1 is not a class code from 0 to 1"),
        (GOOD, None, r"label.json: cannot be read"),
        (GOOD, {"0": "only"}, "at least two"),
        (GOOD, {"1": "a", "2": "b"}, 'from "0" on'),
        (GOOD, 7, "at least two"),
    ],
)
def test_malformed_files_are_named(tmp_path, split, labels, message):
    for name, content in (("train", split), ("label", labels)):
        if content is not None:
            (tmp_path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(VoteError, match=message) as caught:
        load_wrench(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_permuting_keeps_the_votes_of_a_row_together():
    votes = np.tile(np.arange(5), (50_000, 1))
    moved, rows = permute(votes, seed=3, rate=1e-2)
    assert 400 < len(rows) < 600
    assert np.array_equal(np.sort(moved, axis=1), votes)
    changed = np.flatnonzero((moved[1:] != moved[:-1]).any(axis=1)) + 1
    assert set(changed) <= set(rows.tolist())
    assert np.array_equal(permute(votes, 3, 1e-2)[0], moved)
    assert np.array_equal(permute(votes, 3, 0.0)[0], votes)
    with pytest.raises(SettingError, match="rate must lie between 0 and 1"):
        permute(votes, 3, 2.0)
