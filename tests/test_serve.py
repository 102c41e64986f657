"""`driftvote serve`: the interface, against the library, through a real server."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")

from driftvote import AdaptiveLabelModel

from serve_for_tests import CLASSES, Server, make_rows


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("serve") / "data") as running:
        yield running


def by_library(rows):
    out = AdaptiveLabelModel(classes=CLASSES).label_stream([row["votes"] for row in rows])
    return out, list(zip(out.labels.tolist(), out.probability.tolist(), out.windows.tolist(), strict=True))


def shown(answers):
    return [(answer["label"], answer["probability"], answer["window"]) for answer in answers]


def test_labels_and_events_are_those_of_the_library(server):
    path, rows = server.create("library"), make_rows(1500, fails_at=700)
    out, expected = by_library(rows)
    answers, events, begin = [], [], 0
    for size in (1, 1, 3, 400, 95, 1000):
        answer = server.label(path, rows[begin : begin + size])
        answers += answer["rows"]
        events += answer["events"]
        begin += size
    assert shown(answers) == expected
    assert [answer["row"] for answer in answers] == list(range(1500))
    assert [event["row"] for event in events] == [event.row for event in out.events] != []
    assert events[0]["labelers"] == ["a"]
    assert events[0]["time"] == rows[events[0]["row"]]["time"]
    assert server.call("GET", f"{path}/events")[1]["events"] == events


def test_the_same_rows_again_learn_nothing(server):
    path, rows = server.create("again"), make_rows(300)
    first = server.label(path, rows[:200])
    assert server.label(path, rows[:200]) == first
    mixed = server.label(path, rows[150:300])
    assert mixed["rows"][:50] == first["rows"][150:]
    assert shown(first["rows"] + mixed["rows"][50:]) == by_library(rows)[1]
    other = {"id": "m1", "votes": {"a": "safe", "b": "unsafe", "c": "unsafe"}}
    status, answer = server.call("POST", f"{path}/rows", {"rows": [{**rows[0], "id": "new"}, other]})
    assert (status, answer["error"]["code"], answer["error"]["row"]) == (409, "other_votes", 1)
    assert server.call("GET", path)[1]["rows"] == 300
