"""`driftvote serve`: the interface, against the library, through a real server."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import http.client
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("starlette")
from prometheus_client.parser import text_string_to_metric_families

from driftvote import AdaptiveLabelModel, load
from driftvote.client import Client, ServiceError
from driftvote.errors import DriftvoteError
from driftvote.serve import Limits
from driftvote.serve.access import Gate, make_token
from driftvote.serve.app import describe, get_ready
from driftvote.serve.bodies import RequestError
from driftvote.serve.store import back_up, file_name
from driftvote.serve.streams import ServedStream, StreamFolder
from driftvote.settings import REVIEW_BELOW

from serve_for_tests import CLASSES, Server, make_rows
from serve_fuzz import LIMITS, fuzz
from serve_kill import kill_service


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


def test_rows_without_an_id_get_one_and_bad_rows_are_refused_whole(server):
    path, rows = server.create("refused"), make_rows(5)
    assert [row["id"] for row in server.label(path, [{"votes": row["votes"]} for row in rows[:2]])["rows"]] == ["row:0", "row:1"]  # fmt: skip
    cases = [
        ({"votes": {"a": "maybe"}}, 422, "unknown_class"),
        ({"votes": {}}, 422, "no_votes"),
        ({"votes": {"a": ["safe"]}}, 422, "unknown_class"),
        ({"votes": {"a": 1e999}}, 400, "not_json"),
        ({"id": "row:7", "votes": {"a": "safe"}}, 422, "reserved_id"),
        ({"id": "x" * 201, "votes": {"a": "safe"}}, 422, "name_too_long"),
        ({"id": "m0", "votes": {"a": "safe"}}, 422, "repeated_id"),
        ({"vote": {"a": "safe"}}, 422, "unknown_field"),
        ({"time": [1], "votes": {"a": "safe"}}, 422, "bad_time"),
        ({"data": {"x": "y" * 17_000}, "votes": {"a": "safe"}}, 413, "data_too_large"),
        ({"votes": {f"n{n}": "safe" for n in range(201)}}, 422, "too_many_labelers"),
    ]
    for row, status, code in cases:
        found, answer = server.call("POST", f"{path}/rows", {"rows": [rows[0], row]})
        assert (found, answer["error"]["code"]) == (status, code), answer
        assert status == 400 or answer["error"]["row"] == 1
        assert answer["error"]["message"].count(" ") > 3
    bodies = [b"", b"[]", b"{", b'{"rows": []}', b'{"rows": [{"votes": {"a": 1, "a": 2}}]}', b"\xff", b"[" * 100_000, b'{"rows": "\\ud800"}']  # fmt: skip
    assert {server.call("POST", f"{path}/rows", body)[0] for body in bodies} <= {400, 422}
    assert server.call("GET", path)[1]["rows"] == 2


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{"id": "a:1", "time": "12:00", "votes": {"a": "safe", "b": null}, "data": {"t": "x: y"}}', ("a:1", "12:00", {"a": 0}, '{"t": "x: y"}')),
        ('{"id": 7, "time": 1.5, "votes": {"a" : "safe", "b:c": "unsafe"}}', ("7", 1.5, {"a": 0, "b:c": 1}, None)),
        (r'{"id": "\u003a", "votes": {"a": NaN, "b": "safe"}, "data": {"n": NaN}}', (":", None, {"b": 0}, '{"n": null}')),
        ('{"votes": {"a": "safe"}, "data": {"n": 123456789012345678901234567890}}', (None, None, {"a": 0}, '{"n": 123456789012345678901234567890}')),
        ('{"votes": {"a": "safe", "a": "safe"}}', "repeated_key"),
        ('{"votes": {"a" : "safe", "a" : "maybe"}}', "repeated_key"),
        (r'{"id": "\u003a", "votes": {"a": "safe", "a": "safe"}}', "repeated_key"),
        ('{"votes": {"a": "safe"}, "data": {"x": {"t": 1, "t": 2}}}', "repeated_key"),
        ('{"votes": {"a": "safe"}, "votes": {"a": "unsafe"}}', "repeated_key"),
        ('{"votes": {"a": true}}', "unknown_class"),
    ],
)  # fmt: skip
def test_unusual_bodies_are_read_as_carefully_as_all_others(folder, row, expected):
    stream, _ = folder.create("s", {"classes": CLASSES})
    usual = '{"id": "m1", "votes": {"a": "safe", "b": "unsafe", "c": "safe"}}'
    if isinstance(expected, str):
        with pytest.raises(RequestError) as refused:
            stream.rows.read_body(f'{{"rows": [{usual}, {row}]}}'.encode())
        assert refused.value.code == expected
        return
    found = stream.rows.read_body(f'{{"rows": [{usual}, {row}]}}'.encode())
    assert [one[0] for one in found[:3]] == ["m1", None, None]
    assert (found.ids[1], found.times[1], found.votes_of(1), found.data[1]) == expected
    stream.submit_rows(found).result()
    shown = stream.submit(lambda: stream.row(found.ids[1] or "row:1")).result()
    assert (shown["time"], shown["data"]) == (expected[1], expected[3] and json.loads(expected[3]))


def test_rows_of_several_requests_in_one_turn(folder):
    """Some are new, some stored, some twice; labelers join; each request gets its own answer."""
    stream, _ = folder.create("s", {"classes": CLASSES})
    rows = make_rows(60)
    for row in rows[:35]:
        del row["votes"]["f"]
    stream.submit_rows(stream.rows.read(rows[:20])).result()
    go = threading.Event()
    stream.submit(go.wait)
    parts = [rows[10:30], rows[:5], rows[25:50], [rows[3] | {"votes": {"a": "safe"}}], rows[45:]]
    jobs = [stream.submit_rows(stream.rows.read(part)) for part in parts]
    go.set()
    for part, job in zip(parts, jobs, strict=True):
        if len(part) == 1:
            with pytest.raises(RequestError, match="row 0: id 'm3' is in the stream already, with other votes"):
                job.result()
            continue
        found = [json.loads(line) for line in job.result()["rows"]]
        assert [(one["id"], one["row"]) for one in found] == [(row["id"], int(row["id"][1:])) for row in part]
        assert shown(found) == [by_library(rows)[1][one["row"]] for one in found]
    with stream.store.reading() as reader:
        assert [row.time for row in reader.rows(0, 60)] == [row["time"] for row in rows]
        assert [row.time for row in reader.rows(18, 22)] == [row["time"] for row in rows[18:22]]
        assert [reader.data(row) for row in range(60)] == [row["data"] for row in rows]


def test_a_labeler_joins_and_a_stream_with_declared_ones_refuses(server):
    path, rows = server.create("joins"), make_rows(400)
    for row in rows[:120]:
        del row["votes"]["f"]
    answers = server.label(path, rows[:100])["rows"] + server.label(path, rows[100:])["rows"]
    assert shown(answers) == by_library(rows)[1]
    path = server.create("closed", labelers=["a", "b", "c", "d", "e"])
    status, answer = server.call("POST", f"{path}/rows", {"rows": rows[-1:]})
    assert (status, answer["error"]["code"]) == (422, "unknown_labeler")


@pytest.mark.parametrize(
    "settings",
    [
        {"labelers": ["f", "e", "d", "c", "b", "a"]},
        {"labelers": list("abcdefg"), "abstentions": "random", "tie_break_policy": "random", "seed": 7},
        {"estimator": "wawa", "windows": [16, 64], "false_event_rate": None},
        {"classes": ["safe", "unsafe", "unsure"], "review_below": 0.9},
    ],
)
def test_settings_reach_the_model(server, settings):
    path, rows = server.create(f"set {sorted(settings)}", **settings), make_rows(300)
    model = AdaptiveLabelModel(**{"classes": CLASSES} | {k: v for k, v in settings.items() if k != "review_below"})
    answers = server.label(path, rows[:1])["rows"] + server.label(path, rows[1:])["rows"]
    assert shown(answers) == step_shown(model, rows)
    below = settings.get("review_below", REVIEW_BELOW)
    assert [row["needs_review"] for row in answers] == [row["label"] is None or row["probability"] < below for row in answers]  # fmt: skip
    assert server.call("POST", f"{path}/predict", {"rows": rows[:3]})[0] == 200
    assert server.call("GET", path)[1]["settings"] == {"classes": CLASSES} | settings
    status, asked = server.call("GET", f"{path}/questions")
    assert (status, "is a single one" in asked["note"]) == (200, "estimator" in settings)
    assert [one["name"] for one in server.call("GET", path)[1]["labelers"]] == list(model.labelers)


def test_settings(server):
    path = server.create("settings", labelers=["a", "b", "c"], keep_rows=10)
    same = {"classes": CLASSES, "labelers": ["a", "b", "c"], "keep_rows": 10}
    assert server.call("PUT", path, same)[0] == 200
    for other in ({"keep_rows": 11}, {"false_event_rate": None}):
        status, answer = server.call("PUT", path, same | other)
        assert (status, answer["error"]["code"]) == (409, "other_settings")
    for settings, code in [
        ({}, "no_classes"),
        ({"classes": ["a"]}, "bad_setting"),
        ({"classes": CLASSES, "colour": 1}, "unknown_field"),
        ({"classes": CLASSES, "estimator": "magic"}, "bad_setting"),
        ({"classes": [str(n) for n in range(201)]}, "too_many_classes"),
        ({"classes": CLASSES, "windows": [1 << 40]}, "bad_setting"),
        ({"classes": CLASSES, "keep_rows": 0}, "bad_setting"),
    ]:
        status, answer = server.call("PUT", "/v1/streams/other", settings)
        assert (status, answer["error"]["code"]) == (422, code), answer
    assert server.call("GET", "/v1/streams/other")[0] == 404


def test_names_are_no_paths(server, tmp_path):
    for name in ("..", ".", "a b", "é", "%2e%2e", "con", "x" * 200, "'; drop table rows; --"):
        path = server.create(name)
        assert server.label(path, make_rows(1))["rows"][0]["label"] in CLASSES
        assert server.call("GET", path)[1]["name"] == name
    files = {path.name for path in (server.data / "streams").iterdir()}
    assert all(len(name.partition(".")[0]) == 40 for name in files)
    assert server.call("PUT", "/v1/streams/a%2Fb", {"classes": CLASSES})[0] == 404
    assert server.call("PUT", "/v1/streams/" + "x" * 201, {"classes": CLASSES})[0] == 422
    assert server.call("GET", "/page/%2e%2e/app.py")[0] == 404


def test_predict_row_and_exports(server, tmp_path):
    path, rows = server.create("exports"), make_rows(500)
    assert server.call("POST", f"{path}/predict", {"rows": rows[:1]})[1]["error"]["code"] == "no_rows"
    answers = server.label(path, rows)["rows"]
    model = AdaptiveLabelModel(classes=CLASSES)
    model.label_stream([row["votes"] for row in rows])
    new = make_rows(20, seed=5, prefix="new")
    predicted = server.call("POST", f"{path}/predict", {"rows": new})[1]
    labels, proba = model.predict([row["votes"] for row in new], return_probs=True)
    assert [row["label"] for row in predicted["rows"]] == labels.tolist()
    assert [row["probability"] for row in predicted["rows"]] == proba.max(axis=1).tolist()
    row = server.call("GET", f"{path}/rows/m7")[1]
    assert row | answers[7] == row
    assert (row["votes"], row["data"], row["time"]) == (rows[7]["votes"], rows[7]["data"], rows[7]["time"])
    assert {vote["labeler"] for vote in row["explanation"]["votes"]} == set(rows[7]["votes"])
    assert server.call("GET", f"{path}/rows/nobody")[0] == 404
    lines = list(csv.DictReader(server.call("GET", f"{path}/labels.csv")[1].decode().splitlines()))
    assert [(line["id"], line["label"] or None, float(line["probability"])) for line in lines] == [(one["id"], one["label"], one["probability"]) for one in answers]  # fmt: skip
    (tmp_path / "l.parquet").write_bytes(server.call("GET", f"{path}/labels.parquet")[1])
    assert pq.read_table(tmp_path / "l.parquet")["id"].to_pylist() == [row["id"] for row in rows]
    (tmp_path / "s.npz").write_bytes(server.call("GET", f"{path}/state")[1])
    assert load(tmp_path / "s.npz").update(new[0]["votes"]).probability == model.update(new[0]["votes"]).probability


def test_lines_of_json_are_answered_line_by_line(server):
    path, rows = server.create("lines"), make_rows(2500, fails_at=700)
    body = b"\n".join(json.dumps(row).encode() for row in rows)
    kind = {"Content-Type": "application/x-ndjson"}
    text = server.call("POST", f"{path}/rows", body, kind)[1]
    lines = [json.loads(line) for line in text.splitlines()]
    assert shown([line for line in lines if "id" in line]) == by_library(rows)[1]
    assert [line["event"]["labelers"] for line in lines if "event" in line] == [["a"]]
    more = make_rows(1500, seed=2, prefix="n")
    more[1200]["votes"]["a"] = "maybe"
    text = server.call("POST", f"{path}/rows", b"\n".join(json.dumps(row).encode() for row in more), kind)[1]
    *taken, error = [line for line in map(json.loads, text.splitlines()) if "event" not in line]
    assert (len(taken), error["error"]["code"], error["error"]["row"]) == (1000, "unknown_class", 1200)
    assert server.call("GET", path)[1]["rows"] == 3500
    lines = [json.dumps(row).encode() for row in make_rows(1100, seed=4, prefix="k")]
    lines[1050] = b'{"votes": '
    error = json.loads(server.call("POST", f"{path}/rows", b"\n".join(lines), kind)[1].splitlines()[-1])["error"]
    assert (error["code"], error["row"], error["message"][:27]) == ("not_json", 1050, "row 1050: the line is not J")


def test_questions_answers_and_undo(server, tmp_path):
    path, rows = server.create("review"), disputed_rows(3000)
    server.label(path, rows)
    model = AdaptiveLabelModel(classes=CLASSES)
    model.label_stream([row["votes"] for row in rows])
    found = server.call("GET", f"{path}/questions?n=3")[1]
    assert [one["row"] for one in found["questions"]] == [one.row for one in model.ask(3)]
    assert len(found["questions"]) == 3
    before = server.call("GET", f"{path}/state")[1]
    ids = [one["id"] for one in found["questions"]]
    body = {"answers": [{"id": one, "class": "unsafe"} for one in ids]}
    status, answer = server.call("POST", f"{path}/feedback", body)
    assert (status, answer["accepted"]) == (200, 3)
    model.feedback({one["row"]: "unsafe" for one in found["questions"]})
    assert answer["mixture"] == {one.name: round(one.weight, 4) for one in model.label_models}
    assert answer["mixture"] != answer["mixture_before_answers"]
    again = server.call("POST", f"{path}/feedback", body)[1]
    assert (again["mixture"], again["changed"]["labels_moved"]) == (answer["mixture"], 0)
    view = server.call("GET", path)[1]["answers"]
    assert (view["count"], {one["id"] for one in view["last"]}) == (3, set(ids))
    assert isinstance(view["labels_moved"], int)
    more = disputed_rows(100, seed=1, prefix="later")
    assert shown(server.label(path, more)["rows"]) == step_shown(model, more)
    # Taken back, the answers were never given.
    for one in ids:
        assert server.call("DELETE", f"{path}/feedback/{one}")[0] == 200
    assert server.call("DELETE", f"{path}/feedback/{ids[0]}")[0] == 404
    never = AdaptiveLabelModel(classes=CLASSES)
    never.label_stream([row["votes"] for row in [*rows, *more]])
    (tmp_path / "s.npz").write_bytes(server.call("GET", f"{path}/state")[1])
    assert same_state(load(tmp_path / "s.npz"), never)
    assert before != server.call("GET", f"{path}/state")[1]
    last = disputed_rows(50, seed=2, prefix="last")
    assert shown(server.label(path, last)["rows"]) == step_shown(never, last)
    for answers, status, code in [
        ([{"id": "nobody", "class": "safe"}], 404, "unknown_row"),
        ([{"id": ids[0], "class": "maybe"}], 422, "unknown_class"),
        ([{"id": ids[0], "class": None}], 422, "unknown_class"),
        ([], 422, "no_answers"),
        ([{"id": ids[0], "class": "safe"}] * 2, 422, "repeated_id"),
    ]:
        found = server.call("POST", f"{path}/feedback", {"answers": answers})
        assert (found[0], found[1]["error"]["code"]) == (status, code)
    assert server.call("GET", path)[1]["answers"]["count"] == 0


def disputed_rows(n_rows, seed=0, prefix="m"):
    """Three labelers that share a blind spot, and two that do not."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in range(n_rows):
        truth = int(rng.random() < 0.4)
        shared = truth if rng.random() < 0.7 else 1 - truth
        votes = {name: CLASSES[shared if rng.random() < 0.95 else 1 - shared] for name in "abc"}
        votes |= {name: CLASSES[truth if rng.random() < 0.85 else 1 - truth] for name in "de"}
        rows.append({"id": f"{prefix}{row}", "votes": votes})
    return rows


def step_shown(model, rows):
    out = model.label_stream([row["votes"] for row in rows])
    return list(zip(out.labels.tolist(), out.probability.tolist(), out.windows.tolist(), strict=True))


def same_state(one, other):
    (header, arrays), (header_2, arrays_2) = one.to_state(), other.to_state()
    return header == header_2 and arrays.keys() == arrays_2.keys() and all((arrays[k] == arrays_2[k]).all() for k in arrays)  # fmt: skip


def test_events_come_as_they_happen(server):
    path, rows = server.create("live"), make_rows(1500, fails_at=700)
    streams, connections = {}, []
    for name, where in (("live", f"{path}/live"), ("events", f"{path}/events"), ("all", "/v1/live")):
        connection = server.connect(timeout=20)
        connections.append(connection)
        connection.request("GET", where, headers={"Accept": "text/event-stream"})
        streams[name] = connection.getresponse()
        assert streams[name].getheader("content-type") == "text/event-stream"
    server.label(path, rows[:500])
    server.label(path, rows[500:])
    seen: dict[str, list] = {}
    while "drift" not in seen or "point" not in seen or seen["stream"][-1]["rows"] < 1500:
        event, data = read_event(streams["live"])
        seen.setdefault(event, []).append(data)
    assert seen["drift"][0]["labelers"] == ["a"]
    assert seen["stream"][-1]["labelers"][0]["changed"]
    assert seen["stream"][-1]["verdict"] == seen["drift"][0]["text"]
    assert read_event(streams["events"]) == ("drift", seen["drift"][0])
    assert read_event(streams["all"])[0] == "streams"
    timeline = server.call("GET", f"{path}/timeline?points=20")[1]
    assert 10 <= len(timeline["points"]) <= 20
    last = timeline["points"][-1]
    assert last["accuracies"]["a"][1] <= last["accuracies"]["a"][0] <= last["accuracies"]["a"][2]
    assert timeline["events"] == seen["drift"]
    for response, connection in zip(streams.values(), connections, strict=True):
        response.close()
        connection.close()


def read_event(response):
    """The next server-sent event: its name and its data."""
    event = None
    while True:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            return event, json.loads(line[6:])


def test_two_hundred_requests_at_once_are_one_stream(server):
    path, rows = server.create("threads"), make_rows(200)
    with ThreadPoolExecutor(16) as pool:
        answers = [one["rows"][0] for one in pool.map(lambda row: server.label(path, [row]), rows)]
    order = sorted(range(200), key=lambda place: answers[place]["row"])
    assert [answers[place]["row"] for place in order] == list(range(200))
    assert shown([answers[place] for place in order]) == by_library([rows[place] for place in order])[1]


def test_every_route_is_described(server):
    described = server.call("GET", "/openapi.json")[1]["paths"]
    from driftvote.serve.app import ENDPOINTS

    assert sum(len(methods) for methods in described.values()) == len(ENDPOINTS) >= 27
    page = server.call("GET", "/docs")[1].decode()
    for one in ENDPOINTS:
        path = one.path.replace(":path", "")
        assert one.summary
        assert one.method.lower() in described[path]
        assert f"<b>{one.method}</b> {path}</code>" in page
    for path in ("/docs", "/"):
        connection = server.connect()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert "default-src 'none'" in answer.getheader("content-security-policy")
        assert answer.getheader("x-content-type-options") == "nosniff"
        connection.close()


def test_metrics_and_health(server):
    path = server.create("metrics")
    server.label(path, make_rows(30))
    text = server.call("GET", "/metrics")[1].decode()
    assert 'driftvote_rows_total{stream="metrics"} 30.0' in text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    accuracies = [s for s in families["driftvote_labeler_accuracy"].samples if s.labels["stream"] == "metrics"]
    assert {sample.labels["labeler"] for sample in accuracies} == set("abcdef")
    assert server.call("GET", "/healthz")[0] == 200
    log = [json.loads(line) for line in server.read_log().splitlines()]
    assert any(line.get("route") == "/v1/streams/{name}/rows" and line.get("rows") == 30 for line in log)
    assert "message 1" not in server.read_log()


def test_a_stream_or_a_labeler_comes_in_the_middle_of_a_look(folder, monkeypatch):
    """Health and metrics are read beside the threads that label and create."""
    stream, _ = folder.create("s", {"classes": CLASSES})
    stream.submit_rows(stream.rows.read(make_rows(3))).result()
    bands = stream.model.bands

    def join():
        found = bands()
        stream.submit_rows(stream.rows.read([{"votes": {"newcomer": "safe"}}])).result()
        return found

    monkeypatch.setattr(stream.model, "bands", join)
    names = {labels["labeler"] for one in stream.metrics() for labels, _ in one.samples if "labeler" in labels}
    assert "a" in names
    monkeypatch.undo()
    create = property(lambda _: folder.create(f"s{len(folder.streams)}", {"classes": CLASSES}), lambda *_: None)
    monkeypatch.setattr(ServedStream, "problem", create, raising=False)
    call = SimpleNamespace(service=SimpleNamespace(folder=folder, ready=True))
    assert asyncio.run(get_ready(call)).status_code == 200


def test_other_sites_are_refused(server):
    path = server.create("sites")
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):  # fmt: skip
        status, answer = server.call("POST", f"{path}/rows", {"rows": make_rows(1)}, headers)
        assert (status, answer["error"]["code"]) in ((403, "wrong_host"), (403, "other_site")), headers
    assert server.call("GET", "/v1/streams", headers={"Host": "evil.example"})[0] == 403
    assert server.call("POST", f"{path}/rows", {"rows": make_rows(1)}, {"Content-Type": "text/plain"})[0] == 415
    same = {"Origin": server.url, "Host": f"127.0.0.1:{server.port}"}
    assert server.call("POST", f"{path}/rows", {"rows": make_rows(1)}, same)[0] == 200


def test_a_deleted_stream_is_gone(server):
    path = server.create("gone")
    server.label(path, make_rows(10))
    assert server.call("DELETE", path)[1]["error"]["code"] == "confirm"
    assert server.call("DELETE", f"{path}?confirm=gone")[1] == {"deleted": "gone", "rows": 10}
    assert server.call("GET", path)[0] == 404
    server.create("gone", labelers=["a", "b", "c"])
    assert server.call("GET", path)[1]["rows"] == 0


# -- a folder of streams, without a server -------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    folder = StreamFolder(tmp_path, Limits(), workers=1)
    yield folder
    folder.close()


def test_a_delete_among_other_requests_is_done_once(folder, tmp_path):
    stream, _ = folder.create("s", {"classes": CLASSES})
    rows = stream.rows.read(make_rows(5))
    go = threading.Event()
    first = stream.submit(go.wait)  # what follows waits for the same turn
    learned, deleted, late = stream.submit_rows(rows), folder.delete("s"), stream.submit_rows(rows)
    reading = stream.store.reading()
    go.set()
    assert first.result()
    assert len(learned.result()["rows"]) == 5
    assert deleted.result() == {"deleted": "s", "rows": 5}
    with pytest.raises(DriftvoteError, match="there is no stream 's'"):
        late.result()
    with pytest.raises(sqlite3.OperationalError), reading:  # an export that began too late makes no file
        pass
    assert list((tmp_path / "streams").iterdir()) == []
    assert folder.create("s", {"classes": CLASSES})[1]


def test_a_file_that_cannot_be_read_is_never_replaced(tmp_path):
    (tmp_path / "streams").mkdir()
    path = tmp_path / "streams" / file_name("s")
    path.write_bytes(b"not SQLite")
    for name, version in (("t", 2), ("older", 1)):  # of this version, and empty; of another
        with closing(sqlite3.connect(tmp_path / "streams" / file_name(name))) as db:
            db.executescript(f"create table facts (name, value); pragma user_version = {version}")
    folder = StreamFolder(tmp_path, Limits(), workers=1)
    assert [one.partition(":")[0] for one in folder.damaged] == sorted(map(file_name, ("s", "t", "older")))
    assert sum("its format is 1, not 2" in one for one in folder.damaged) == 1
    for name in ("s", "t", "older"):
        with pytest.raises(DriftvoteError, match="exists, but its file .* could not be read"):
            folder.create(name, {"classes": CLASSES})
    assert path.read_bytes() == b"not SQLite"
    assert folder.create("u", {"classes": CLASSES})[1]
    folder.close()
    with pytest.raises(DriftvoteError, match=f"{file_name('s')}: this stream cannot be copied"):
        back_up(tmp_path, tmp_path / "copy")
    assert not [one.name for one in tmp_path.iterdir() if "copy" in one.name]


def test_a_file_that_is_gone_is_a_sentence(folder, server, tmp_path):
    (tmp_path / "streams").rmdir()
    with pytest.raises(DriftvoteError, match="could not be written .* nothing was changed"):
        folder.create("s", {"classes": CLASSES})
    (tmp_path / "streams").mkdir()
    assert folder.create("s", {"classes": CLASSES})[1]
    path = server.create("taken away")
    server.label(path, make_rows(3))
    (server.data / "streams" / file_name("taken away")).unlink()
    for what in ("labels.csv", "labels.parquet", "events", "timeline"):
        status, answer = server.call("GET", f"{path}/{what}")
        assert (status, answer["error"]["code"]) == (503, "storage"), what


def test_retention_keeps_up_with_large_batches(folder):
    few, _ = folder.create("few", {"classes": CLASSES, "keep_rows": 1_000, "windows": [4096]})
    old, _ = folder.create("old", {"classes": CLASSES, "keep_days": 1, "windows": [64]})
    rows = make_rows(10_000)
    for turn in range(5):
        batch = few.rows.read([row | {"id": f"{turn}-{row['id']}"} for row in rows])
        few.submit_rows(batch).result()
        old.submit_rows(batch).result()
        with few.store.reading() as reader:
            assert 1_000 <= reader.count_rows() - reader.first_row() <= 1_100
    asked = few.submit(lambda: few.questions(5)).result()["questions"]
    assert asked
    assert all(one["row"] >= 49_000 for one in asked)  # those that can be shown
    with closing(sqlite3.connect(old.store.path)) as db:
        db.execute("update batches set at = at - 90000 where first < 40000")
        db.commit()
    dropped = [old.submit(old.drop_old, writes=True).result() for _ in range(3)]
    assert dropped == [20_000, 20_000, 0]
    for stream, first in ((few, 49_000), (old, 40_000)):  # nothing of a dropped row is left
        with closing(sqlite3.connect(stream.store.path)) as db:
            for table in ("ids", "data"):
                assert db.execute(f"select min(row), count(*) from {table}").fetchone() == (first, 50_000 - first)


def test_rows_that_retention_leaves_are_whole(folder):
    """It cuts inside of what was stored together: votes, times, ids, labels and data must stay with their rows."""
    stream, _ = folder.create("s", {"classes": CLASSES, "keep_rows": 50, "windows": [32, 64]})
    rows = make_rows(700)
    for row in rows[::3]:
        del row["votes"]["f"]
    for row in rows[::5]:
        row["data"] = None
    answers = []
    for begin in range(0, 700, 70):
        batch = stream.rows.read(rows[begin : begin + 70])
        answers += [json.loads(one) for one in stream.submit_rows(batch).result()["rows"]]
        with stream.store.reading() as reader:
            first, last = reader.first_row(), reader.count_rows()
            stored = reader.rows(first, last)
            votes = reader.votes(first, last, 6, stream.form.dtype)
        assert [one.row for one in stored] == list(range(first, last))
        for one, codes in zip(stored[::9], votes[::9], strict=True):
            sent = rows[one.row]
            shown = stream.submit(lambda row_id=one.id: stream.row(row_id)).result()
            assert shown["row"] == one.row
            assert shown["votes"] == dict.fromkeys(shown["votes"]) | sent["votes"]
            assert shown["votes"] == stream.votes_of(codes.tobytes(), list(shown["votes"]))
            assert (shown["time"], shown["data"]) == (sent["time"], sent["data"])
            assert stream.answer_of(one) == answers[one.row]
    assert first % 70 > 0  # inside
    again = stream.submit_rows(stream.rows.read(rows[-50:])).result()["rows"]
    assert [json.loads(one) for one in again] == answers[-50:]


# -- servers of their own ------------------------------------------------------------------------


def test_restarts_backup_and_retention(tmp_path):
    rows = make_rows(3000, fails_at=700)
    expected = by_library(rows)[1]
    with Server(tmp_path / "data", "--limit", "snapshot_rows=800") as server:
        path, kept = server.create("s"), server.create("kept", keep_rows=300)
        answers = [server.label(path, rows[n : n + 500])["rows"] for n in (0, 500)]
        joins = server.create("joins"), [{**row, "votes": {**row["votes"]}} for row in rows[:700]]
        for row in joins[1][:333]:
            del row["votes"]["f"]
        for begin in (0, 300, 500):
            server.label(joins[0], joins[1][begin : begin + 200 + 100 * (begin == 0)])
        first = server.label(kept, rows[:1000])["rows"]
        done = subprocess.run([sys.executable, "-m", "driftvote", "serve", "backup", tmp_path / "data", tmp_path / "copy"], capture_output=True, text=True, check=False)  # fmt: skip
        assert done.stdout.startswith("copied 3 streams"), done.stderr
        second = subprocess.run([sys.executable, "-m", "driftvote", "serve", "--data", tmp_path / "data", "--port", "0"], capture_output=True, text=True, check=False)  # fmt: skip
        assert (second.returncode, second.stderr.count("another process serves this folder")) == (2, 1)
        assert server.stop() == 0
    with closing(sqlite3.connect(tmp_path / "data" / "streams" / file_name("joins"))) as db:
        db.execute("delete from snapshots")  # so that all of it is replayed
        db.commit()
    with Server(tmp_path / "data", "--limit", "snapshot_rows=800") as server:
        answers.append(server.label(path, rows[1000:2000])["rows"])
        view = server.call("GET", kept)[1]
        assert (view["rows"], 300 <= view["rows_stored"] <= 500) == (1000, True)
        assert server.call("GET", f"{kept}/rows/m0")[0] == 404
        for begin in range(1000, 3000, 250):
            first += server.label(kept, rows[begin : begin + 250])["rows"]
        server.kill()
    with Server(tmp_path / "data") as server:
        answers.append(server.label(path, rows[2000:])["rows"])
        assert 300 <= server.call("GET", kept)[1]["rows_stored"] <= 500
        (tmp_path / "s.npz").write_bytes(server.call("GET", f"{joins[0]}/state")[1])
        whole = AdaptiveLabelModel(classes=CLASSES)
        whole.label_stream([row["votes"] for row in joins[1]])
        assert same_state(load(tmp_path / "s.npz"), whole)
        more = make_rows(100, seed=3, prefix="z")
        first += server.label(kept, more)["rows"]
    assert shown([row for part in answers for row in part]) == expected
    assert shown(first) == by_library(rows + more)[1]
    with Server(tmp_path / "copy") as server:
        assert shown(server.label(path, rows[1000:])["rows"]) == expected[1000:]


def test_a_full_disk_changes_nothing(tmp_path):
    rows, answers = make_rows(8000), []
    with Server(tmp_path / "data", before="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))") as server:  # fmt: skip
        path, other, status, begin = server.create("s"), server.create("other"), 200, 0
        while status == 200:
            status, answer = server.call("POST", f"{path}/rows", {"rows": rows[begin : begin + 250]})
            answers += answer["rows"] if status == 200 else []
            begin += 250
        assert (status, answer["error"]["code"]) == (503, "storage")
        assert server.call("POST", f"{path}/rows", {"rows": rows[len(answers) : begin]})[0] == 503
        assert server.call("GET", path)[1]["rows"] == len(answers) > 0
        assert server.label(path, rows[:250])["rows"] == answers[:250]
        assert server.label(other, rows[:10])["rows"]
        assert "driftvote_failing_streams 1.0" in server.call("GET", "/metrics")[1].decode()
        server.kill()
    with Server(tmp_path / "data") as server:
        for begin in range(len(answers), len(answers) + 1000, 250):
            answers += server.label(path, rows[begin : begin + 250])["rows"]
    assert shown(answers) == by_library(rows[: len(answers)])[1]


def test_tokens(tmp_path):
    file, tokens = tmp_path / "tokens", {}
    for role in ("read", "review", "write", "admin"):
        tokens[role] = make_token(file, role, f"my-{role}")
    assert not any(token in file.read_text() for token in tokens.values())
    with Server(tmp_path / "data", "--tokens", file, host="0.0.0.0") as server:
        by = {role: {"Authorization": f"Bearer {token}"} for role, token in tokens.items()}
        from driftvote.serve.app import ENDPOINTS

        for one in ENDPOINTS:  # without a token, and with a wrong one, nothing of the streams answers
            path = one.path.replace("{file:path}", "page.js").replace("{name}", "s").replace("{id:path}", "m1").replace("{kind}", "csv")  # fmt: skip
            for headers in ({}, {"Authorization": "Bearer dv_wrong"}, {"Cookie": "driftvote_token=dv_wrong"}):
                status = server.call(one.method, path, {} if one.method in ("PUT", "POST") else None, headers)[0]
                assert (status == 401) == (one.needs is not None or (path == "/v1/session" and one.method == "POST")), (one, status)  # fmt: skip
        assert server.call("GET", "/healthz")[0] == 200
        body, rows = {"classes": CLASSES}, {"rows": make_rows(20)}
        answer = {"answers": [{"id": "m1", "class": "safe"}]}
        requests = [
            ("PUT", "/v1/streams/s", body, {"write", "admin"}),
            ("POST", "/v1/streams/s/rows", rows, {"write", "admin"}),
            ("POST", "/v1/streams/s/feedback", answer, {"review", "admin"}),
            ("GET", "/v1/streams/s", None, {"read", "review", "admin"}),
            ("GET", "/metrics", None, {"read", "review", "admin"}),
            ("DELETE", "/v1/streams/s?confirm=s", None, {"admin"}),
        ]
        for method, path, content, allowed in requests:
            for role in ("write", "read", "review", "admin"):
                status = server.call(method, path, content, by[role])[0]
                assert status == (403 if role not in allowed else status), (method, path, role)
                assert status < 300 or role not in allowed
        check_session(server, tokens)
        live = server.connect()
        live.request("GET", "/v1/live", headers=by["read"])
        open_answer = live.getresponse()
        lines = file.read_text().splitlines()
        file.write_text("\n".join(line for line in lines if "my-read" not in line))
        token = make_token(file, "read", "newcomer")  # begins a line of its own
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.call("GET", "/v1/streams", None, by["read"])[0] == 401)
        assert server.call("GET", "/v1/streams", None, {"Authorization": f"Bearer {token}"})[0] == 200
        assert b"event: streams" in open_answer.read()  # it ends, like the token
        live.close()
        assert server.call("GET", "/v1/streams", None, by["admin"])[0] == 200
        assert not any(token in server.read_log() for token in tokens.values())


def check_session(server, tokens):
    status, answer = server.call("POST", "/v1/session", {"token": tokens["review"]})
    assert (status, answer["role"], answer["tokens"]) == (200, "review", True)
    assert server.call("POST", "/v1/session", {"token": tokens["write"]})[0] == 403
    assert server.call("POST", "/v1/session", {"token": "dv_no"})[0] == 401
    connection = server.connect()
    connection.request(
        "POST", "/v1/session", json.dumps({"token": tokens["admin"]}), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    csrf = json.loads(response.read())["csrf"]
    cookie = response.getheader("set-cookie")
    connection.close()
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    by_cookie = {"Cookie": cookie.partition(";")[0]}
    session = server.call("GET", "/v1/session", None, by_cookie)[1]
    assert session == {"tokens": True, "role": "write", "csrf": csrf, "ready": session["ready"]}
    body = {"classes": CLASSES}
    assert server.call("PUT", "/v1/streams/c", body, by_cookie)[1]["error"]["code"] == "csrf"
    assert server.call("PUT", "/v1/streams/c", body, by_cookie | {"X-CSRF-Token": csrf[:-1] + "!"})[0] == 403
    assert server.call("PUT", "/v1/streams/c", body, by_cookie | {"X-CSRF-Token": csrf})[0] == 201
    assert (
        server.call("PUT", "/v1/streams/c", body, by_cookie | {"X-CSRF-Token": csrf, "Origin": "http://evil"})[0] == 403
    )


def wait_until(holds, seconds=20.0):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "needs tokens: make one with"),
        (["--tokens", "nothing"], "nothing: there is no such file"),
        (["--limit", "colour=3"], "there is no limit 'colour'"),
        (["--limit", "rows=x"], "write a number, such as rows=10000"),
        (["--host", "203.0.113.1", "--tokens", "{tokens}"], "on 203.0.113.1: "),
        (["token", "--tokens", "t", "--role", "king", "--name", "me"], "'king' is not a role"),
        (["backup", "nowhere", "copy"], "this is not the data folder"),
    ],
)
def test_mistakes_are_one_line(tmp_path, arguments, message):
    make_token(tmp_path / "tokens", "read", "me")
    words = [word.format(tokens=tmp_path / "tokens") for word in arguments]
    done = subprocess.run([sys.executable, "-m", "driftvote", "serve", *words], cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_of_tokens_that_others_may_write_to_is_refused(tmp_path):
    make_token(tmp_path / "tokens", "read", "me")
    (tmp_path / "tokens").chmod(0o666)
    with pytest.raises(DriftvoteError, match="others may write"):
        Gate(tmp_path / "tokens")


def test_the_client_sends_again_what_was_not_answered(server):
    with Client(server.url) as client:
        client.create("by-client", classes=CLASSES)
        rows = [{"votes": row["votes"]} for row in make_rows(300, fails_at=100)]
        answers = list(client.label_all("by-client", rows, size=70))
        assert shown(answers) == by_library(rows)[1]
        assert client.row("by-client", answers[3]["id"])["row"] == 3
        client.feedback("by-client", {answers[3]["id"]: "safe"})
        assert client.stream("by-client")["answers"]["count"] == 1
        assert client.take_back("by-client", answers[3]["id"])["accepted"] == 1
        assert client.predict("by-client", rows[:2])["rows"][0]["label"] in CLASSES
        assert client.events("by-client") == []
        assert isinstance(client.questions("by-client", 2), list)
        assert "by-client" in [one["name"] for one in client.streams()]
        with pytest.raises(ServiceError, match="not one of|is not a vote") as refused:
            client.label("by-client", [{"votes": {"a": "maybe"}}])
        assert (refused.value.status, refused.value.row) == (422, 0)
        client.delete("by-client")
        with pytest.raises(ServiceError, match="there is no stream"):
            client.delete("by-client")
    with Client("http://127.0.0.1:9", patience=0.2) as client, pytest.raises(ServiceError, match="does not answer"):
        client.streams()


def test_a_delete_whose_answer_was_lost_is_done(server):
    """Between client and service stands a connection that carries the first request, and loses its answer."""
    path = server.create("lost")
    with socket.create_server(("127.0.0.1", 0)) as between:
        port = between.getsockname()[1]

        def carry():
            for lose in (True, False):
                near, _ = between.accept()
                with near, socket.create_connection(("127.0.0.1", server.port)) as far:
                    far.sendall(near.recv(10_000))
                    answer = http.client.HTTPResponse(far)
                    answer.begin()
                    body = answer.read()
                    if not lose:
                        near.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (answer.status, len(body)) + body)

        with ThreadPoolExecutor(1) as pool, Client(f"http://127.0.0.1:{port}", timeout=20) as client:
            done = pool.submit(carry)
            assert client.delete("lost") == {}
            done.result()
    assert server.call("GET", path)[0] == 404


def test_killed_under_load_nothing_answered_is_lost(tmp_path):
    found = kill_service(3, seed=5, folder=tmp_path, spare=0.3)
    assert found["rows"] > 100


def test_hostile_requests(tmp_path):
    with Server(tmp_path / "data", *LIMITS) as server:
        counts = fuzz(server, 300, seed=3)
        assert counts[422] > 10
        check_limits(server)
        assert server.stop() == 0


def check_limits(server):
    path = server.create("limits")
    status, answer = server.call("POST", f"{path}/rows", b'{"rows": [' + b" " * 200_000)
    assert (status, answer["error"]["code"]) == (413, "too_large")
    status, answer = server.call("POST", f"{path}/rows", {"rows": [{"votes": {"a": "safe"}}] * 501})
    assert (status, answer["error"]["code"]) == (413, "too_many_rows")
    statuses = [server.call("PUT", f"/v1/streams/more{n}", {"classes": CLASSES})[0] for n in range(70)]
    assert statuses[-1] == 403
    # A client that stops in the middle of its headers or of its body is not waited for.
    head = f"POST {path}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n".encode()
    for text in (head, head + b"Content-Length: 100\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
            slow.sendall(text)
            assert slow.recv(1000) == b"" if text == head else b" 408 " in slow.recv(1000)[:20]
    # Nor is one that does not read its answers.
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
        slow.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1500)
        time.sleep(2.0)
        taken, part = 0, b"x"
        with contextlib.suppress(ConnectionError):
            while part:
                part = slow.recv(1 << 20)
                taken += len(part)
                time.sleep(0.0 if taken > 1 << 20 else 2.0)
    assert 0 < taken < 1500 * len(json.dumps(describe(), separators=(",", ":")))
    # Data may be nested, as deeply as it can be read again.
    deep = {"id": "deep", "votes": make_rows(1)[0]["votes"], "data": {}}
    for depth, status in ((30, 200), (40, 422), (900, 422)):
        inside = "[" * depth + "]" * depth
        text = json.dumps({"rows": [deep]}).replace('"data": {}', f'"data": {{"a": {inside}}}').encode()
        assert server.call("POST", f"{path}/rows", text)[0] == status
    assert server.call("GET", f"{path}/rows/deep")[0] == 200
