"""The parts of a watched stream, one by one: lines from a descriptor, complaints, the events file."""

from __future__ import annotations

import json
import os
import threading
import time

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel
from driftvote.live import announcing
from driftvote.live.announcing import EventFile, Voice
from driftvote.live.answers import Answers
from driftvote.live.keeping import Keeper, Place, Seen
from driftvote.live.lines import LineSource, Pause, Stop, stopping, write_all
from driftvote.live.loop import PANEL_EVERY, Habits, Outlets, Watch
from driftvote.live.reading import LineReader


def lines_in(data: bytes, cuts: int, longest: int = 1 << 24) -> list[bytes | Pause]:
    """What comes out if the data comes in pieces of so many bytes."""
    read_end, write_end = os.pipe()

    def feed() -> None:
        for start in range(0, len(data), cuts):
            os.write(write_end, data[start : start + cuts])
        os.close(write_end)

    thread = threading.Thread(target=feed)
    thread.start()
    source, found = LineSource(read_end, Stop(), longest), []
    while (line := source.next(None)) is not Pause.END:
        found.append(line)
    assert source.next(None) is Pause.END, "the end stays the end"
    thread.join()
    os.close(read_end)
    return found


@pytest.mark.parametrize("cuts", [1, 3, 7, 1000])
def test_lines_do_not_depend_on_the_pieces_they_come_in(cuts):
    data = b"one\n\ntwo\r\n" + b"x" * 40 + b"\n" + b"y" * 9 + b"\nlast"
    assert lines_in(data, cuts) == [b"one", b"", b"two\r", b"x" * 40, b"y" * 9, b"last"]
    too_long = [Pause.TOO_LONG if len(line) > 10 else line for line in lines_in(data, cuts)]
    assert lines_in(data, cuts, longest=10) == too_long
    assert lines_in(b"z" * 50, cuts, longest=10) == [Pause.TOO_LONG]


def test_waiting_ends_with_time_or_a_signal():
    read_end, write_end = os.pipe()
    with stopping() as stop:
        source = LineSource(read_end, stop)
        start = time.perf_counter()
        assert source.next(0.05) is Pause.IDLE
        assert time.perf_counter() - start >= 0.04
        os.write(write_end, b"half")
        assert source.next(0.01) is Pause.IDLE
        threading.Timer(0.05, os.kill, [os.getpid(), 15]).start()
        assert source.next(None) is Pause.IDLE
        assert stop.signal == 15
        os.write(write_end, b" and half\n")
        assert source.next(None) == b"half and half"
        with pytest.raises(KeyboardInterrupt):
            stop.ask(15)
    for end in (read_end, write_end):
        os.close(end)


def test_everything_is_written_however_slow_the_reader_is():
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    data, got = os.urandom(500_000), bytearray()

    def read() -> None:
        while piece := os.read(read_end, 10_000):
            got.extend(piece)
            time.sleep(0.0005)

    thread = threading.Thread(target=read)
    thread.start()
    write_all(write_end, data)
    os.close(write_end)
    thread.join()
    os.close(read_end)
    assert bytes(got) == data


def test_a_flood_of_complaints_is_counted_not_shown(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(announcing.time, "monotonic", lambda: clock[0])
    voice = Voice(quiet=True)
    for number in range(announcing.A_SECOND + 5):
        voice.complain(f"line {number}")
    clock[0] = 1.0
    voice.complain("another")
    voice.say("quiet people do not hear this")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == announcing.A_SECOND + 1
    assert said[-1] == "driftvote: another (and 5 more before it)"


def test_the_events_file_holds_each_event_of_a_stream_once(tmp_path):
    path = tmp_path / "events.jsonl"
    first = {"type": "event", "stream": "s", "number": 1, "row": 70}
    path.write_text(json.dumps(first) + "\nnot ours\n" + '{"type": "event", "str')  # a crash in the middle of a line
    file = EventFile(path, "s")
    file.add(first)
    file.add({**first, "number": 2, "row": 90})
    file.close()
    other = EventFile(path, "t")
    other.add({**first, "stream": "t"})
    other.close()
    lines = path.read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines if line.endswith("}")] == [1, 2, 1]
    assert len(lines) == 5


def watched(
    lines: list[str], tmp_path, events: EventFile | None = None, late: str = "take", **keys
) -> tuple[Watch, list[dict]]:
    """A stream of lines, watched in this process; what came of it, and the answers."""
    source, sink = tmp_path / "votes.jsonl", tmp_path / "answers.jsonl"
    source.write_text("\n".join(lines))
    model, place, stop = AdaptiveLabelModel(), Place(stream="s"), Stop()
    with source.open("rb") as votes, sink.open("wb") as out:
        outlets = Outlets(out.fileno(), Voice(), events)
        reader, keeper = LineReader(model._form, **keys), Keeper(None, 10, None)
        watch = Watch(model, reader, Answers(0.7), place, keeper, outlets, Habits(late), Seen(place, wanted=False))
        watch.run(LineSource(votes.fileno(), stop), stop)
    return watch, [json.loads(line) for line in sink.read_text().splitlines()]


def lines_of(votes: np.ndarray) -> list[str]:
    named = [{f"judge-{place}": int(vote) for place, vote in enumerate(row)} for row in votes]
    return [json.dumps({"votes": votes}) for votes in named]


def test_a_declared_panel_and_times_in_order(tmp_path):
    few = ['{"votes": {"a": 1, "b": "1.0"}}', '{"votes": {"x": 1}}', '{"votes": {}}']
    timed = [json.dumps({"time": moment, "votes": {"a": 1, "b": 0, "c": 1}}) for moment in (9, 8, 9.5)]
    watch, answers = watched([*few, *timed], tmp_path, late="refuse", labelers=["a", "b", "c"])
    assert (answers[0]["row"], answers[0]["n_votes"]) == (0, 2)
    assert "'x' is not one of the labelers a, b, c; declare it with --labelers too" in answers[1]["error"]
    assert (answers[2]["row"], answers[2]["n_votes"]) == (1, 0)
    assert "its time 8 is before 9 of the row before it" in answers[4]["error"]
    assert [answer["row"] for answer in answers if "row" in answer] == [0, 1, 2, 3]
    assert watch.counts.malformed_lines == 2
    assert watch.model.labelers == ("a", "b", "c")
    watch, answers = watched([*few, *timed], tmp_path)
    assert "2 are named so far" in answers[0]["error"]
    assert [answer["row"] for answer in answers if "row" in answer] == [0, 1, 2]
    assert (watch.counts.malformed_lines, watch.counts.late_lines) == (3, 1)


def test_near_copies_are_told_once(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = 2 * PANEL_EVERY + 10
    truth = rng.integers(0, 2, (rows, 1))
    votes = np.where(rng.random((rows, 5)) < 0.8, truth, 1 - truth)
    votes[:, 4] = np.where(rng.random(rows) < 0.99, votes[:, 3], 1 - votes[:, 3])
    events = EventFile(tmp_path / "events.jsonl", "s")
    watch, answers = watched(lines_of(votes), tmp_path, events)
    events.close()
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    copies = [record for record in told if record["type"] == "warning" and record["kind"] == "near copies"]
    assert [record["labelers"] for record in copies] == [["judge-3", "judge-4"]]
    assert copies[0]["line"] == PANEL_EVERY
    assert watch.counts.warnings == sum(record["type"] == "warning" for record in told)
    assert copies[0]["sentence"] in capsys.readouterr().err
    assert len(answers) == rows


def test_an_events_file_that_fails_stops_nothing(tmp_path, capsys):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (1200, 1))
    accuracy = np.full((1200, 6), 0.85)
    accuracy[800:, 0] = 0.2
    events = EventFile(tmp_path / "events.jsonl", "s")
    events.close()
    events._file = -1  # nothing can be written any more
    votes = np.where(rng.random((1200, 6)) < accuracy, truth, 1 - truth)
    watch, answers = watched(lines_of(votes), tmp_path, events)
    assert watch.model.n_detections == 1
    assert len(answers) == 1200
    assert "event 1 could not be written to the file (" in capsys.readouterr().err
