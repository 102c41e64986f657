"""Metrics: read back by Prometheus' own parser, the same from the file and from the port; the board shows them all."""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from driftvote import AdaptiveLabelModel, DriftvoteError, MissingExtraError
from driftvote.drift.events import KINDS
from driftvote.live.metrics import (
    Counts,
    MetricsServer,
    check_metrics_extra,
    collect_metrics,
    format_metrics,
    write_metrics,
)

NASTY = 'judge "a"\\v1\nnew {line}, é'
DOCS = Path(__file__).parents[1] / "docs"


def figures():
    model = AdaptiveLabelModel(classes=["safe", "unsafe"])
    model.label_stream([{NASTY: "safe", "b": "safe", "c": "unsafe"}, {NASTY: "unsafe", "b": "unsafe", "c": "unsafe"}])
    counts = Counts(lines=3, malformed_lines=1, doubtful_rows=1, labels={"unsafe": 1}, last_line_at=5.5)
    counts.add_event(KINDS[0], 1)
    return model, collect_metrics(model, counts, {"delivered": 1, "given_up": 0, "dropped": 0}, 7.25)


def samples_of(text: str) -> dict[tuple[str, tuple], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("gauge", "counter")
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, "each series once"
            found[key] = sample.value
    return found


def test_the_file_says_what_is_known(tmp_path):
    model, found = figures()
    path = tmp_path / "driftvote.prom"
    path.write_text("the old one")
    write_metrics(path, found)
    assert os.listdir(tmp_path) == ["driftvote.prom"]
    samples = samples_of(path.read_text())
    for place, name in enumerate(model.labelers):
        for what, values in (("accuracy", model.accuracies), ("coverage", model.coverage)):
            assert samples[f"driftvote_labeler_{what}", (("labeler", name),)] == values[place]
    low, high = (samples[f"driftvote_labeler_accuracy_{end}", (("labeler", NASTY),)] for end in ("low", "high"))
    assert low <= model.accuracies[0] <= high
    assert model.labelers[0] == NASTY
    assert samples["driftvote_window_length", ()] == model.window
    assert samples["driftvote_rows_total", ()] == 2
    assert samples["driftvote_lines_total", ()] == 3
    assert samples["driftvote_malformed_lines_total", ()] == 1
    assert samples["driftvote_doubtful_rows_total", ()] == 1
    assert samples["driftvote_labels_total", (("label", "safe"),)] == 0
    assert {
        labels[0][1]: value for (name, labels), value in samples.items() if name == "driftvote_drift_events_total"
    } == {kind: float(kind == KINDS[0]) for kind in KINDS}
    assert samples["driftvote_last_event_row", ()] == 1
    assert samples["driftvote_last_line_timestamp_seconds", ()] == 5.5
    assert samples["driftvote_state_saved_timestamp_seconds", ()] == 7.25
    assert samples["driftvote_webhook_posts_total", (("result", "delivered"),)] == 1


def test_the_port_says_the_same():
    _, found = figures()
    served = MetricsServer(0, "127.0.0.1", found)
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{served.port}/metrics", timeout=10) as reply:
            assert reply.headers["Content-Type"].startswith("text/plain; version=")
            text = reply.read().decode()
        assert samples_of(text) == samples_of(format_metrics(found))
        with pytest.raises(DriftvoteError, match=rf"--metrics-port {served.port} on 127.0.0.1: .*; choose another"):
            MetricsServer(served.port, "127.0.0.1", found)
    finally:
        served.close()


def test_without_the_extra_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'driftvote\[metrics\]', or write the metrics to a file"):
        check_metrics_extra()


def test_before_the_first_row_there_is_nothing_odd():
    model = AdaptiveLabelModel(n_classes=3)
    samples = samples_of(format_metrics(collect_metrics(model, Counts())))
    assert samples["driftvote_rows_total", ()] == samples["driftvote_window_length", ()] == 0
    assert not any(name == "driftvote_labeler_accuracy" for name, _ in samples)


def expressions(board: dict) -> list[str]:
    targets = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    variables = [entry["query"]["query"] for entry in board["templating"]["list"] if entry["type"] == "query"]
    return [*targets, *variables, *(entry["expr"] for entry in board["annotations"]["list"])]


def test_the_board_shows_every_metric_and_no_other():
    board = json.loads((DOCS / "grafana-board.json").read_text())
    shown = set(re.findall(r"\bdriftvote_\w+", " ".join(expressions(board))))
    assert shown == {name for name, _ in samples_of(format_metrics(figures()[1]))}
    page = (DOCS / "reference" / "metrics.md").read_text()
    for name in shown:
        assert f"`{name}" in page, f"docs/reference/metrics.md does not explain {name}"


def test_the_board_is_whole():
    board = json.loads((DOCS / "grafana-board.json").read_text())
    assert board["uid"]
    assert board["title"]
    assert board["schemaVersion"] >= 30
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"]
        assert panel["targets"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
    for expression in expressions(board):
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}")
