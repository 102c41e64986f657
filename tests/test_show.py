"""What results show of themselves: HTML in notebooks, figures, frames, and the report of a result."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from driftvote import AdaptiveLabelModel, MajorityLabelModel, MissingExtraError
from driftvote.report import report_from_json

from reports_for_tests import CLASSES, NASTY
from streams_for_tests import random_stream

N_ROWS = 400
START = pd.Timestamp("2026-01-05 08:00", tz="UTC")


@pytest.fixture(scope="module")
def labeled():
    """A model and its result: names and classes that try to be code, ids and times."""
    votes = random_stream(3, N_ROWS, 4, 3, abstain=0.2)
    frame = pd.DataFrame(
        {
            name: [None if code < 0 else CLASSES[code] for code in column]
            for name, column in zip(NASTY, votes.T, strict=True)
        }
    )
    frame["time"] = START + pd.to_timedelta(np.arange(N_ROWS), unit="h")
    model = AdaptiveLabelModel(classes=CLASSES)
    return model, model.label_stream(frame, time="time", ids=[f"<i>{row}</i>" for row in range(N_ROWS)])


def test_html_shows_what_there_is_and_escapes_it(labeled):
    model, out = labeled
    questions = model.ask(3)
    shown = {
        "model": (model, "95% range"),
        "result": (out, "no lasting change"),
        "step": (out[-1], f"probability {out[-1].probability:.3f}"),
        "explanation": (out.explain(0), "the sum"),
        "question": (questions[0], "vote"),
        "questions": (questions, "answers are expected to change"),
        "new model": (AdaptiveLabelModel(), "rows: 0"),
        "majority": (MajorityLabelModel().partial_fit([[1, 0, 1]] * 4), "coverage"),
        "report": (out.report(), "400 rows from 4 labelers"),
    }
    for name, (thing, words) in shown.items():
        html = thing._repr_html_()
        assert words in html, name
        for code in ("<script", "<img", "<b>bold", "<i>", 'style="color'):
            assert code not in html, name
    assert "&lt;script&gt;" in model._repr_html_()
    assert "2026-01-05T08:00:00<" in out._repr_html_()
    assert "&lt;i&gt;399&lt;/i&gt;" in out._repr_html_()


def test_times_that_were_given_come_back(labeled):
    _, out = labeled
    table = out.timeline(every=100, backend="pandas")
    assert list(table.columns)[:3] == ["t", "time", "labeler"]
    expected = START.tz_localize(None) + pd.to_timedelta(table["t"], unit="h")
    assert (table["time"] == expected).all()
    part = out[100:200]
    assert part.times[0] == np.datetime64("2026-01-09T12:00:00")
    assert part.ids[0] == "<i>100</i>"
    table = pd.DataFrame({"a": [1, 1], "b": [1, 0], "c": [0, 0], "t": [1.5, 2.5]})
    numbered = AdaptiveLabelModel().label_stream(table, time="t")
    assert numbered.times.tolist() == [1.5, 2.5]
    assert AdaptiveLabelModel().label_stream([[1, 1, 0]]).times is None
    assert "time" not in AdaptiveLabelModel().label_stream([[1, 1, 0]]).timeline().column_names


def test_to_pandas(labeled):
    _, out = labeled
    frame = out.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["label"].tolist() == out.labels.tolist()
    assert "accuracy_" + NASTY[0] in out.to_pandas(per_labeler=True)


def test_a_result_writes_its_report(labeled, tmp_path):
    _, out = labeled
    report = out.report(tmp_path / "r.json", gold=out.labels, title="Mine")
    assert report_from_json(tmp_path / "r.json") == report
    assert report.title == "Mine"
    assert report.gold.scores[0].accuracy == 1.0
    assert report.timeline.first_time[0] == "2026-01-05T08:00:00"
    assert all(example.id.startswith("<i>") for example in report.review)
    out.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_plot(labeled):
    pytest.importorskip("matplotlib")
    _, out = labeled
    for stream in (out, AdaptiveLabelModel().label_stream([[1, 1, 0]])):
        accuracies, window, classes = stream.plot().axes
        names = accuracies.get_legend_handles_labels()[1]
        assert sorted(names) == sorted(stream.labelers)
        assert len(window.lines) == 1
        assert len(classes.collections) == len(stream.classes)
    votes = random_stream(0, 300, 5)
    votes = np.vstack([np.repeat(votes[:, :1], 5, axis=1), votes])  # all agree, then nobody does
    drifted = AdaptiveLabelModel().label_stream(votes)
    assert drifted.events
    top = drifted.plot().axes[0]
    assert drifted.plot()._repr_png_().startswith(b"\x89PNG")
    assert top.get_title(loc="left").lower() == drifted.events[-1].sentence.lower()
    assert len(top.lines) == 5 + len(drifted.events)


def test_a_plot_without_matplotlib_says_what_to_install(labeled, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"plot\(\) needs matplotlib; pip install 'driftvote\[plots\]'"):
        labeled[1].plot()
