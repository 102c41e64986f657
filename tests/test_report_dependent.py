"""The report shows shared errors and the certified committee."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, MajorityLabelModel
from driftvote.report import ReportBuilder, from_arrays, page
from driftvote.report.builder import RECENT_ROWS
from driftvote.streams import simulate
from driftvote.streams.awa2 import LABELERS, Awa2

from streams_for_tests import DATA, needs_data, rows_for


def copied(n_rows):
    votes = simulate(np.full((n_rows, 5), 0.8), seed=0, coverage=0.9).votes
    votes[:, 1] = votes[:, 0]
    return votes


@pytest.mark.parametrize("kind", [AdaptiveLabelModel, CommitteeLabelModel, MajorityLabelModel])
def test_copies_and_committees_are_on_the_page(kind):
    report = from_arrays(copied(1500), kind())
    assert [(pair.first, pair.second) for pair in report.dependence.near_copies] == [("labeler_0", "labeler_1")]
    copy = report.dependence.near_copies[0]
    assert copy.agreement == 1.0
    assert copy.expected == pytest.approx(0.8**2 + 0.2**2, abs=0.08)
    assert report.dependence.effective_labelers < 4.5
    assert any("Near-copies: labeler_0 and labeler_1" in line for line in report.findings)
    assert any("labeler_0 and labeler_1" in step.text for step in report.next_steps)
    shown = page.render(report)
    assert "<th>near-copies</th>" in shown
    assert ("Certified committee" in shown) == (kind is CommitteeLabelModel)
    if kind is CommitteeLabelModel:
        model = CommitteeLabelModel()
        step = model.label_stream(copied(1500))[-1]
        assert report.committee.error == step.certificate.bound
        assert report.committee.labelers == list(step.certificate.members)


def test_chunks_do_not_show():
    votes, model = copied(900), AdaptiveLabelModel()
    builder = ReportBuilder(labelers=[f"labeler_{i}" for i in range(5)], classes=[0, 1])
    for part in (votes[:5], votes[5:600], votes[600:]):
        builder.add(part, model.label_stream(part))
    assert builder.finish().dependence == from_arrays(votes).dependence


def test_dependence_is_that_of_the_last_rows():
    """Of models without windows the last RECENT_ROWS rows; whatever the batches, also when a labeler joins."""
    votes = simulate(np.full((RECENT_ROWS + 3_000, 5), 0.8), seed=1).votes
    votes[-RECENT_ROWS:, 1] = votes[-RECENT_ROWS:, 0]
    model = MajorityLabelModel()
    whole = from_arrays(votes[-RECENT_ROWS:], model).dependence
    assert [(pair.first, pair.second) for pair in whole.near_copies] == [("labeler_0", "labeler_1")]
    builder = ReportBuilder(labelers=[f"labeler_{i}" for i in range(5)], classes=[0, 1])
    for part in np.split(votes, [10, 500, 9_000]):
        builder.add(part, model.label_stream(part))
    assert builder.finish().dependence == whole
    joined = ReportBuilder(labelers=[], classes=[0, 1])
    names = [f"labeler_{i}" for i in range(5)]
    for part, width in ((votes[:2_000], 4), (votes[2_000:], 5)):
        table = pa.table({name: part[:, place] for place, name in enumerate(names[:width])})
        joined.add(part[:, :width], MajorityLabelModel().label_stream(table))
    assert joined.finish().dependence == whole


def test_families_are_reported_as_families():
    report = from_arrays(copied(rows_for(600, 300)), AdaptiveLabelModel(groups={"labeler_0": "f", "labeler_1": "f"}))
    assert [labeler.name for labeler in report.labelers] == ["f", "labeler_2", "labeler_3", "labeler_4"]
    assert not report.dependence.near_copies


def test_three_labelers_say_nothing():
    assert from_arrays(copied(300)[:, :3]).dependence is None


@needs_data
@pytest.mark.slow
def test_the_image_stream_shows_its_copies_and_camps():
    votes, _ = Awa2.load(DATA / "awa2").stream(0)
    report = from_arrays(votes[:4000], CommitteeLabelModel(labelers=LABELERS))
    assert [(pair.first, pair.second) for pair in report.dependence.near_copies] == [("orange", "yellow")]
    assert "gainst the others more often than with them" in report.dependence.note
    assert report.committee is not None
