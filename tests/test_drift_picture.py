"""The picture of the README: its committed table is what its command makes."""

from __future__ import annotations

import json

import pytest

from experiments import drift
from test_structure import ROOT

from streams_for_tests import COMPILED

TABLE = json.loads((ROOT / "docs" / "drift.json").read_text())


@pytest.mark.skipif(not COMPILED, reason="long streams; that needs compiled kernels")
def test_the_table_is_what_the_command_makes(tmp_path):
    some = drift.measure(5)
    for name, periods in TABLE["label_accuracy"].items():
        for period, found in periods.items():
            assert some["label_accuracy"][name][period]["mean"] == pytest.approx(found["mean"], abs=2 * found["sd"])
    drift.draw(TABLE, tmp_path)
    assert (tmp_path / "drift.png").stat().st_size > 10_000


def test_the_picture_shows_what_the_readme_says():
    after = {name: periods["after"]["mean"] for name, periods in TABLE["label_accuracy"].items()}
    assert after[drift.OURS] > after[drift.MAJORITY] + 0.05
    assert after[drift.OURS] > after[drift.STATIC] + 0.05
    assert TABLE["noticed"]["streams"] == TABLE["streams"]  # the event is found in every stream
