"""`driftvote watch`, run as a user runs it: through pipes."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, load
from processes_for_tests import HEED_INTERRUPTS
from test_metrics import samples_of
from test_notify import receiving

from watch_for_tests import CLASSES, ENVIRONMENT, JUDGES, Talk, command, line_of, row_of, votes_that_drift, watch

pytestmark = pytest.mark.slow

ODD_LINES = [
    (b'{"votes": {"a": "safe"', "it is not JSON ("),
    (b"[1, 2]", "it is [1, 2], not an object such as {"),
    (b'{"id": "odd"}', 'there are no "votes"; a line is an object such as {'),
    (b'{"id": "odd", "votes": ["safe", "safe", "safe"]}', '"votes" must be an object of labelers and votes, not ["safe"'),
    (b'{"id": "odd", "votes": {"judge-a@v1": "maybe"}}', """labeler 'judge-a@v1': "maybe" is not a vote; read as classes 'safe', 'unsafe'"""),
    (b'{"id": "odd", "votes": {"judge-a@v1": {"verdict": "safe"}}}', """is not a vote; write one class, or null"""),
    (b'{"id": "odd", "votes": {"judge-a@v1": "safe", "judge-a@v1": "unsafe"}}', "'judge-a@v1' appears twice; keep one of them"),
    (b'{"votes": {"judge-a@v1": Infinity}}', "Infinity is not a vote"),
    (b'{"votes": {"judge-a@v1": "s\xe4fe"}}', "it is not UTF-8"),
    (b'{"id": [1], "votes": {}}', '"id" is [1]; write text or a number'),
    (b'{"time": true, "votes": {}}', '"time" is true; write a number, or a time such as'),
    (b'{"time": "noon", "votes": {}}', '"time" is a text, and was a number in the lines before; keep to one kind'),
    (b'{"votes": {}, "verified": "maybe"}', '''"verified" is "maybe", which is none of the classes 'safe', 'unsafe\''''),
    (b'{"verified": "safe"}', '"verified" without votes needs the earlier row: its "id", or the "row" of its answer'),
    (b'{"id": "m-1", "verified": "safe"}', 'rows are verified by the "row" of their answer; pass --keep-ids'),
    (b'{"row": 5000, "verified": "safe"}', "row 5000 is not there yet: "),
    (b'{"votes": {"\\ud800": "safe"}}', "cannot be the name of a labeler"),
    (b"[" * 100_000, "it is not JSON ("),
    (b'"' + b"x" * (17 << 20) + b'"', "it is longer than 16 MB"),
]  # fmt: skip


EARLY_LINES = [
    (b'\xef\xbb\xbf{"votes": {"judge-a@v1": "safe", "judge-b@v1": "safe"}}', "at least 3 labelers are needed, and 2 are named so far"),
    (b'{"votes": {}}', '"votes" names no labeler; name the labelers, with null for no vote'),
]  # fmt: skip


def test_one_answer_a_line_whatever_the_line(tmp_path):
    """Odd lines among good ones: each is answered in its place, counted, said with its number, and changes nothing."""
    votes = votes_that_drift(len(ODD_LINES) + 40, 10_000, abstain=0.2)
    odd = [*EARLY_LINES, *ODD_LINES]
    lines, places = [line for line, _ in EARLY_LINES] + [b"", b"  \r"], [0, 1]
    for number, row in enumerate(votes):
        if 1 <= number <= len(ODD_LINES):
            places.append(len(lines))
            lines.append(ODD_LINES[number - 1][0])
        lines.append(line_of(number, row, time=number).encode() + b"\r" * (number % 2))
    options = ["--metrics", tmp_path / "m.prom", "--json", "--strict"]
    answers, said = watch(b"\n".join(lines), *options, code=2)  # the last line has no end
    assert len(answers) == len(lines) - 2, "blank lines are no lines"
    labeled = [answer for answer in answers if "label" in answer]
    expected = AdaptiveLabelModel(classes=CLASSES).label_stream([row_of(row) for row in votes])
    assert [answer["probability"] for answer in labeled] == expected.probability.tolist()
    assert [answer["label"] for answer in labeled] == expected.labels.tolist()
    assert [answer["window"] for answer in labeled] == expected.windows.tolist()
    assert [answer["n_votes"] for answer in labeled] == (votes >= 0).sum(axis=1).tolist()
    assert [(answer["row"], answer["id"]) for answer in labeled] == [(i, f"m-{i}") for i in range(len(votes))]
    refused = [answer for answer in answers if "error" in answer]
    assert [answer["line"] - 1 for answer in refused] == places
    for (_, message), answer in zip(odd, refused, strict=True):
        assert message in answer["error"]
    assert refused[4]["id"] == "odd"
    complaints = [line for line in said.splitlines() if line.startswith("driftvote: line ")]
    assert complaints[2].startswith(f"driftvote: line {places[2] + 1}: it is not JSON (")
    summary = json.loads(said[said.index("{\n") :])
    assert (summary["malformed_lines"], summary["blank_lines"], summary["rows"]) == (len(odd), 2, len(votes))
    assert f"driftvote_malformed_lines_total {len(odd)}.0\n" in (tmp_path / "m.prom").read_text()


def test_a_talk_line_by_line(tmp_path):
    """Answers come at once; labelers join; verified rows, late lines, unknown votes; SIGTERM with half a line there."""
    votes = votes_that_drift(40, 10_000)
    talk = Talk(
        "--unknown", "abstain", "--keep-ids", "--proba", "--accuracies", "--weights", "--explain", "--review-below", 1.0,
        "--state", tmp_path / "s.npz", "--metrics", tmp_path / "m.prom",
    )  # fmt: skip
    for number, row in enumerate(votes):
        answer = talk.ask(line_of(number, row, time=f"2026-05-31T14:{number:02}:00Z"))
        assert (answer["id"], answer["row"]) == (f"m-{number}", number)
    assert sum(answer["proba"].values()) == pytest.approx(1)
    assert answer["proba"][answer["label"]] == answer["probability"]
    assert answer["needs_review"] is True
    assert set(answer["accuracies"]) == set(answer["weights"]) == set(row_of(votes[0]))
    parts = {part["labeler"]: part for part in answer["explain"]["votes"]}
    assert {name: part["vote"] for name, part in parts.items()} == row_of(votes[-1])
    assert [part["for_label"] for part in parts.values()] == [
        part["vote"] == answer["label"] for part in parts.values()
    ]
    sums = answer["explain"]["base"] + sum(part["share"] for part in parts.values()) + answer["explain"]["together"]
    assert answer["probability"] == pytest.approx(1 / (1 + math.exp(-sums)))
    assert answer["explain"]["explained"] == answer["label"]
    assert answer["explain"]["overruled"] == (answer["explain"]["majority"] != answer["label"])
    joined = talk.ask(json.dumps({"votes": {"judge-z@v2": "safe", "judge-a@v1": "SAFE", "judge-b@v1": float("nan")}}))
    assert joined["unknown"] == {"judge-a@v1": "SAFE"}
    assert joined["n_votes"] == 1
    assert "id" not in joined
    assert "judge-z@v2" in joined["accuracies"]
    late = talk.ask(line_of(41, votes[0], time="2026-05-31T16:20:00+02:00"))  # 14:20 in Greenwich
    assert late["row"] == 41
    first = talk.ask(line_of(42, votes[0], verified="unsafe"))
    assert (first["label"], first["probability"], first["verified"]) == ("unsafe", 1.0, "unsafe")
    assert talk.ask('{"id": "m-7", "verified": "safe"}') == {"id": "m-7", "verified": "safe"}
    assert talk.ask('{"id": "m-7", "verified": "unsafe"}') == {"id": "m-7", "verified": "unsafe"}, "a correction"
    assert talk.ask('{"row": 9, "verified": "safe"}') == {"row": 9, "verified": "safe"}
    assert "id 'm-99' is unknown" in talk.ask('{"id": "m-99", "verified": "safe"}')["error"]
    talk.process.stdin.write(b'{"votes": ')
    talk.process.stdin.flush()
    talk.process.send_signal(signal.SIGTERM)
    assert talk.process.wait(timeout=30) == 0, "it was asked to stop, and did"
    said = talk.end()
    assert "line 41: 'judge-z@v2' joins; 7 labelers now" in said
    assert "watched  47 lines, 1 malformed, 1 late" in said
    assert f"ended    by signal {signal.SIGTERM.value}" in said
    assert load(tmp_path / "s.npz").verified == {7: "unsafe", 9: "safe", 42: "unsafe"}
    assert "driftvote_rows_total 43.0\n" in (tmp_path / "m.prom").read_text()


def test_killed_at_any_line_and_gone_on_with(tmp_path):
    """SIGKILL in the middle; from the last saved line on the answers are those of a stream that was never killed."""
    votes = votes_that_drift(3000, 1500, abstain=0.1)
    stream = tmp_path / "votes.jsonl"
    stream.write_text("".join(line_of(number, row) + "\n" for number, row in enumerate(votes)))
    model = AdaptiveLabelModel(classes=CLASSES)
    whole = model.label_stream([row_of(row) for row in votes])
    state, events = tmp_path / "s.npz", tmp_path / "events.jsonl"
    options = ["--state", state, "--save-lines", 137, "--events", events, "--skip-seen"]
    got: dict[int, dict] = {}
    rng = np.random.default_rng(0)
    for stop_after in [*rng.integers(1200, 1400, size=2), None]:
        before = load(state).n_rows if state.exists() else 0
        with stream.open("rb") as source:
            arguments = command("--classes", "safe,unsafe", "-q", *options)
            process = subprocess.Popen(arguments, stdin=source, stdout=subprocess.PIPE, env=ENVIRONMENT)
            for count, line in enumerate(process.stdout, 1):
                answer = json.loads(line)
                if count == 1:
                    assert answer["row"] == before, "on from the last saved line"
                assert got.setdefault(answer["row"], answer) == answer, "the same answer again"
                if count == stop_after:
                    process.send_signal(signal.SIGKILL)
                    break
            process.stdout.read()
            process.wait()
            process.stdout.close()
    assert process.returncode == 0
    assert [got[row]["probability"] for row in range(3000)] == whole.probability.tolist()
    assert [got[row]["window"] for row in range(3000)] == whole.windows.tolist()
    assert load(state).n_rows == 3000
    told = [json.loads(line) for line in events.read_text().splitlines()]
    found = [record for record in told if record["type"] == "event"]
    assert [record["row"] for record in found] == [event.row for event in whole.events], "each once"
    assert [record["sentence"] for record in found] == [event.sentence for event in whole.events]
    assert found
    assert [got[record["row"]]["event"] for record in found] == [record["number"] for record in found]
    assert all(("event" in answer) == any(row == record["row"] for record in found) for row, answer in got.items())
    # From the beginning again, where nobody asked for it: refused.
    lines = stream.read_text().splitlines(keepends=True)
    answers, said = watch("".join(lines[:1]), *options[:-1], code=2)
    assert answers == []
    assert "the input begins with the first line that the state has taken" in said
    assert "continuing after line 3,000 (id 'm-2999', row 2,999)" in said
    answers, said = watch("".join(lines[:1]), *options[:-1], "--again")
    assert answers[0]["row"] == 3000


def test_everybody_is_told(tmp_path):
    """An event on standard error, in the file, at the webhook, in served and written metrics; saved while nothing comes."""
    votes = votes_that_drift(1400, 1000)
    files = {name: tmp_path / name for name in ("s.npz", "e.jsonl", "m.prom")}
    with receiving(lambda _: 200) as receiver:
        talk = Talk(
            "--webhook", receiver.url, "--metrics-port", 0, "--metrics", files["m.prom"],
            "--state", files["s.npz"], "--save-every", 0.1, "--events", files["e.jsonl"],
        )  # fmt: skip
        where = talk.process.stderr.readline().decode()
        answers = [
            talk.ask(line_of(n, row, time=f"2026-05-31T{n // 60:02}:{n % 60:02}")) for n, row in enumerate(votes)
        ]
        for _ in range(300):  # no line comes any more, and yet
            if load(files["s.npz"]).n_rows == 1400 and "driftvote_rows_total 1400.0\n" in files["m.prom"].read_text():
                break
            time.sleep(0.05)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(re.search(r"http://127.0.0.1:\d+/metrics", where)[0], timeout=10) as reply:
            served = samples_of(reply.read().decode())
        said = talk.end()
    written = samples_of(files["m.prom"].read_text())
    (event,) = [json.loads(line) for line in files["e.jsonl"].read_text().splitlines()]
    assert event["kind"] == "labeler worse"
    assert event["labelers"][0]["name"] == JUDGES[0]
    assert f"driftvote: event 1, line {event['line']:,}: {event['sentence']}\n" in said
    assert "since about 2026-05-31 1" in event["sentence"]
    assert (event["row"], event["id"]) == (event["line"] - 1, f"m-{event['line'] - 1}")
    assert [answer["row"] for answer in answers if "event" in answer] == [event["row"]]
    assert [body for _, body in receiver.got] == [{"text": f"driftvote: {event['sentence']}", **event}]
    moving = ("driftvote_webhook_posts_total", "driftvote_state_saved_timestamp_seconds")
    same = {key: value for key, value in written.items() if key[0] not in moving}
    assert same == {key: value for key, value in served.items() if key[0] not in moving}
    assert written["driftvote_drift_events_total", (("kind", "labeler worse"),)] == 1
    assert written["driftvote_last_event_row", ()] == event["row"]
    assert written["driftvote_webhook_posts_total", (("result", "delivered"),)] == 1


def test_a_reader_that_goes_is_no_error(tmp_path, monkeypatch):
    """As `| head -1` does: quiet, saved, and the exit code that shells know."""
    monkeypatch.setitem(ENVIRONMENT, "DRIFTVOTE_QUIET", "1")  # the compiler may have to work first
    votes = votes_that_drift(2000, 10_000)
    lines = "".join(line_of(number, row) + "\n" for number, row in enumerate(votes)).encode()
    talk = Talk("--state", tmp_path / "s.npz")
    feeding = threading.Thread(target=lambda: _feed(talk.process.stdin, lines))
    feeding.start()
    assert json.loads(talk.process.stdout.readline())["row"] == 0
    talk.process.stdout.close()
    assert talk.process.wait(timeout=30) == 141
    feeding.join()
    assert talk.process.stderr.read() == b""
    talk.process.stderr.close()
    assert 0 < load(tmp_path / "s.npz").n_rows <= 2000


def _feed(pipe, data):
    with suppress(BrokenPipeError):
        pipe.write(data)
    with suppress(BrokenPipeError):
        pipe.close()


def test_who_writes_faster_than_we_answer_has_to_wait():
    """Nobody reads the answers: soon nothing more is taken. SIGINT then: the line in hand is answered, and it ends."""
    line = (line_of(0, [1, 1, 1, 1, 1, 0]) + "\n").encode()
    lines = line * 10_000
    talk = Talk(setup=HEED_INTERRUPTS)
    os.set_blocking(talk.process.stdin.fileno(), False)
    sent, quiet_since = 0, time.monotonic() + 30
    while time.monotonic() - quiet_since < 0.5:
        with suppress(BlockingIOError):
            sent += os.write(talk.process.stdin.fileno(), lines[sent : sent + 20_000])
            if sent > 150_000:  # more than fits into a pipe: it has begun to read
                quiet_since = time.monotonic()
        time.sleep(0.01)
    assert sent < 1_000_000, "two pipes and a piece in hand, not a queue of lines"
    talk.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    answers = talk.process.stdout.read().splitlines()
    assert talk.process.wait(timeout=30) == 0
    assert [json.loads(answer)["row"] for answer in answers] == list(range(len(answers)))
    assert len(answers) * len(line) < sent
    os.set_blocking(talk.process.stdin.fileno(), True)
    assert f"watched  {len(answers):,} lines" in talk.end()


MISTAKES = [
    ([], "the classes of a stream cannot be found in advance; declare them, such as --classes safe,unsafe"),
    (["--classes", "a,b", "--unknown", "guess"], "--unknown guess: choose refuse or abstain"),
    (["--classes", "a,b", "--late", "x"], "--late x: choose take or refuse"),
    (["--classes", "a,b", "--skip-seen"], "--skip-seen needs --state"),
    (["--classes", "a,b", "--events", "-"], "--events -: standard output is for the answers; name a file"),
    (["--abstain", "?"], "--abstain goes with --classes"),
    (["--classes", "a,b", "--state", "{tmp}/no/s.npz"], "there is no folder"),
    (["--classes", "a,b", "--metrics", "{tmp}"], "this is a folder; name a file in it"),
    (["--classes", "a,b", "--webhook", "ftp://x/y"], "the URL must be http or https"),
    (["--classes", "a,b", "--model", "oracle"], "--model oracle: there is no such model"),
    (["--classes", "a,b", "--metrics-port", "70000"], "Invalid value for '--metrics-port'"),
    (["--classes", "a,b", "--state", "{tmp}/s.npz"], "s.npz: the state reads classes safe, unsafe; an empty cell is no vote, the options declare a, b"),
    (["--state", "{tmp}/s.npz", "--set", "beta=0.5"], "s.npz: it was started with beta=0.1, and the command asks for 0.5"),
]  # fmt: skip


def test_mistakes_are_one_line_and_exit_code_2(tmp_path):
    """In one process: what is refused is refused before the first line."""
    AdaptiveLabelModel(classes=CLASSES).save(tmp_path / "s.npz")
    cases = [[part.format(tmp=tmp_path) for part in arguments] for arguments, _ in MISTAKES]
    code = (
        "import json, sys\nfrom driftvote import cli\n"
        "for case in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['driftvote', 'watch', *case]\n"
        "    try:\n        cli.main()\n    except SystemExit as end:\n        print(end.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(cases)], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.stdout.split() == ["2"] * len(cases), done.stderr
    for line, (_, message) in zip(done.stderr.splitlines(), MISTAKES, strict=True):
        assert line.startswith("driftvote: ")
        assert message in line


def test_a_state_begun_elsewhere_and_a_folder_that_is_lost(tmp_path):
    """A model saved in Python goes on here; when its file cannot be saved any more, labeling goes on."""
    votes = votes_that_drift(202, 10_000)
    model = AdaptiveLabelModel(classes=CLASSES)
    model.label_stream([row_of(row) for row in votes[:200]])
    folder = tmp_path / "folder"
    folder.mkdir()
    model.save(folder / "s.npz")
    talk = Talk("--state", folder / "s.npz", "--save-lines", 1)
    for number in (200, 201):
        answer, step = talk.ask(line_of(number, votes[number])), model.update(row_of(votes[number]))
        assert (answer["row"], answer["probability"]) == (number, step.probability)
        if number == 200:
            # The answer comes before the state is saved; until it is, the folder is not there for the taking.
            deadline = time.monotonic() + 60
            while (again := load(folder / "s.npz")).n_rows < 201 and time.monotonic() < deadline:
                time.sleep(0.01)
            (folder / "s.npz").unlink()
            (folder / "s.npz.lock").unlink()
            folder.rmdir()
    said = talk.end()
    assert talk.process.returncode == 2
    assert "the state could not be saved" in said
    assert "labeling continues, and saving is tried again" in said
    assert said.splitlines()[-1].startswith("driftvote: ")
    assert again.update(row_of(votes[201])).probability == answer["probability"]


@pytest.mark.parametrize("panel", [6, 400], ids=["short answers", "answers longer than a pipe takes at once"])
def test_a_reader_that_does_not_read(tmp_path, panel):
    """While nobody reads, the state is saved and SIGTERM ends the stream; the state holds the rows that were answered."""
    state, names = tmp_path / "s.npz", [f"judge {place}" for place in range(panel)]
    rng = np.random.default_rng(0)
    process = subprocess.Popen(
        command("--classes", "safe,unsafe", "-q", "--state", state, "--save-every", 0.2, "--accuracies"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def write() -> None:
        with suppress(BrokenPipeError, ValueError):
            for number in range(20_000):
                votes = dict(zip(names, rng.choice(CLASSES, panel).tolist(), strict=True))
                process.stdin.write((json.dumps({"id": number, "votes": votes}) + "\n").encode())
            process.stdin.flush()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    rows, deadline = [-1, -2], time.monotonic() + 100
    while (rows[-1] != rows[-2] or rows[-1] <= 0) and time.monotonic() < deadline:  # until it stands still
        time.sleep(1)
        rows.append(load(state).n_rows if state.exists() else 0)
    assert 0 < rows[-1] < 20_000
    process.send_signal(signal.SIGTERM)
    said = process.wait(timeout=60)  # nobody has read a byte so far
    answers = process.stdout.read().split(b"\n")
    assert said == 0
    whole = [json.loads(line) for line in answers[:-1]]
    assert [answer["row"] for answer in whole] == list(range(len(whole)))
    assert load(state).n_rows == len(whole)
    writer.join(timeout=10)
    for pipe in (process.stdin, process.stdout, process.stderr):
        with suppress(BrokenPipeError):
            pipe.close()
