"""The parts of a live stream, one by one: lines from a descriptor, positions in an input, the loop."""

from __future__ import annotations

import json
import os
import threading
import time

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, DriftvoteError, LabelModel, MajorityLabelModel, load
from driftvote.live import WatchOptions
from driftvote.live.lines import LineSink, LineSource, Pause, Stop, stop_on_signals
from driftvote.live.loop import CHECK_LABELERS_EVERY, StreamLoop
from driftvote.live.state import Position, StateSaver, hash_line


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
    with stop_on_signals() as stop:
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


@pytest.mark.parametrize("blocking", [True, False])
def test_everything_is_written_however_slow_the_reader_is(blocking):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, blocking)
    data, got = os.urandom(500_000), bytearray()

    def read() -> None:
        while piece := os.read(read_end, 10_000):
            got.extend(piece)
            time.sleep(0.0005)

    thread = threading.Thread(target=read)
    thread.start()
    assert LineSink(write_end, Stop()).write(data)
    os.close(write_end)
    thread.join()
    os.close(read_end)
    assert bytes(got) == data


def run_loop(
    lines: list[str], tmp_path, break_events: bool = False, model: LabelModel | None = None, **options
) -> tuple[StreamLoop, list[dict]]:
    """The loop over a stream of lines, run in this process, and its answers."""
    source, sink = tmp_path / "votes.jsonl", tmp_path / "answers.jsonl"
    source.write_text("\n".join(lines))
    stop = Stop()
    with (
        source.open("rb") as votes,
        sink.open("wb") as out,
        StreamLoop(model or AdaptiveLabelModel(), WatchOptions(**options), Position(stream="s"), out.fileno()) as loop,
    ):
        if break_events:
            loop.events.add = fail
        loop.run(LineSource(votes.fileno(), stop), stop)
    return loop, [json.loads(line) for line in sink.read_text().splitlines()]


def fail(record: dict) -> None:
    raise OSError(28, "No space left on device")


def lines_of(votes: np.ndarray) -> list[str]:
    named = [{f"judge-{place}": int(vote) for place, vote in enumerate(row)} for row in votes]
    return [json.dumps({"votes": votes}) for votes in named]


def test_a_declared_panel_and_times_in_order(tmp_path):
    few = ['{"votes": {"a": 1, "b": "1.0"}}', '{"votes": {"x": 1}}', '{"votes": {}}']
    timed = [json.dumps({"time": moment, "votes": {"a": 1, "b": 0, "c": 1}}) for moment in (9, 8, 9.5)]
    loop, answers = run_loop([*few, *timed], tmp_path, late="refuse", labelers=("a", "b", "c"))
    assert (answers[0]["row"], answers[0]["n_votes"]) == (0, 2)
    assert "'x' is not one of the labelers a, b, c; declare it with --labelers too" in answers[1]["error"]
    assert (answers[2]["row"], answers[2]["n_votes"]) == (1, 0)
    assert "its time 8 is before 9 of the row before it" in answers[4]["error"]
    assert [answer["row"] for answer in answers if "row" in answer] == [0, 1, 2, 3]
    assert loop.counts.malformed_lines == 2
    assert loop.model.labelers == ("a", "b", "c")
    loop, answers = run_loop([*few, *timed], tmp_path)
    assert "2 are named so far" in answers[0]["error"]
    assert [answer["row"] for answer in answers if "row" in answer] == [0, 1, 2]
    assert (loop.counts.malformed_lines, loop.counts.late_lines) == (3, 1)


def test_a_majority_of_two_labelers(tmp_path):
    lines = ['{"votes": {"a": 1, "b": 1}}', '{"votes": {"a": 0, "b": null}}', '{"votes": {"a": 0, "b": 1}}']
    _, answers = run_loop(lines, tmp_path, model=MajorityLabelModel())
    assert [answer["label"] for answer in answers] == [1, 0, -1]
    _, answers = run_loop(lines[:1], tmp_path)
    assert "at least 3 labelers are needed, and 2 are named so far" in answers[0]["error"]


def test_near_copies_are_told_once(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = 2 * CHECK_LABELERS_EVERY + 10
    truth = rng.integers(0, 2, (rows, 1))
    votes = np.where(rng.random((rows, 5)) < 0.8, truth, 1 - truth)
    votes[:, 4] = np.where(rng.random(rows) < 0.99, votes[:, 3], 1 - votes[:, 3])
    loop, answers = run_loop(lines_of(votes), tmp_path, events=tmp_path / "events.jsonl")
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    copies = [record for record in told if record["type"] == "warning" and record["kind"] == "near copies"]
    assert [record["labelers"] for record in copies] == [["judge-3", "judge-4"]]
    assert copies[0]["line"] == CHECK_LABELERS_EVERY
    assert loop.counts.warnings == sum(record["type"] == "warning" for record in told)
    assert copies[0]["sentence"] in capsys.readouterr().err
    assert len(answers) == rows


def test_an_events_file_that_fails_stops_nothing(tmp_path, capsys):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (1200, 1))
    accuracy = np.full((1200, 6), 0.85)
    accuracy[800:, 0] = 0.2
    votes = np.where(rng.random((1200, 6)) < accuracy, truth, 1 - truth)
    loop, answers = run_loop(lines_of(votes), tmp_path, break_events=True, events=tmp_path / "events.jsonl")
    assert loop.model.n_events == 1
    assert len(answers) == 1200
    assert "event 1 could not be written to the file (" in capsys.readouterr().err


def test_lines_that_were_taken_before_are_skipped():
    def position() -> Position:
        found = Position(last=hash_line(b"b"), to_skip=2)
        found.counts.lines = 2
        return found

    same = position()
    assert [same.skips(line) for line in (b"a", b"b", b"c")] == [True, True, False]
    same.check_end()
    other = position()
    assert other.skips(b"a")
    with pytest.raises(DriftvoteError, match="line 2 of the input differs from the last line that the state has taken"):
        other.skips(b"c")
    short = position()
    assert short.skips(b"a")
    with pytest.raises(DriftvoteError, match="the input ended after line 1, but the state has taken 2; omit"):
        short.check_end()


def test_a_state_is_saved_by_time_or_by_lines(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("driftvote.live.state.time.monotonic", lambda: clock[0])
    model, position = AdaptiveLabelModel(), Position(last_id="m-7")
    saver = StateSaver(tmp_path / "s.npz", seconds=10, lines=3)
    saver.save(model, position)
    assert (saver.wait(0), saver.is_due(0)) == (None, False), "nothing new"
    assert (saver.wait(1), saver.is_due(1), saver.is_due(3)) == (10.0, False, True)
    clock[0] = 10.0
    assert (saver.wait(1), saver.is_due(1)) == (0.0, True)
    position.counts.lines = 1
    saver.save(model, position)
    assert Position.read(tmp_path / "s.npz") == position
    assert Position.read(tmp_path / "s.npz", skip_seen=True).to_skip == 1
    nowhere = StateSaver(None, seconds=0, lines=1)
    nowhere.save(model, position)
    assert (nowhere.wait(5), nowhere.is_due(5)) == (None, False)


# -- lines that are made to harm -------------------------------------------------------------------

VOTES = '"votes": {"a": 0, "b": 1, "c": 0}'


def nasty_lines() -> list[str]:
    """Lines that no parser should fall for: each is answered, and the next one too."""
    times = ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+14:00", "2026-02-31", "1e400", "x" * 20_000]
    lines = [f'{{"time": {json.dumps(moment)}, {VOTES}}}' for moment in times]
    lines += [f'{{"time": {number}, {VOTES}}}' for number in ("1e999", "-1e999", "NaN", "9" * 400, "9" * 5000)]
    lines += ['{"a":' * 100_000, "[" * 100_000, '{"votes": ' * 3, "\x00", "\ud800".encode("utf-8", "replace").decode()]
    lines += [f'{{"id": {json.dumps("i" * 20_000)}, {VOTES}}}', '{"votes": {"\\ud800": 0, "b": 1, "c": 1}}']
    names = ", ".join(f'"n{place}": 0' for place in range(200_000))  # a quadratic search would take minutes
    lines += [f'{{"votes": {{{names}, "n0": 1}}}}', f'{{"votes": {{{names}}}}}', f'{{{names}, {VOTES}, "n7": 0}}']
    return [*lines, f'{{"votes": {{"{"n" * 20_000}": 0}}}}', '{"row": 99999999999999999999, "verified": 0}']


def test_a_line_never_ends_the_stream(tmp_path):
    lines = [f"{{{VOTES}}}", *nasty_lines(), f"{{{VOTES}}}"]
    loop, answers = run_loop(lines, tmp_path)
    assert len(answers) == len(lines)
    assert [answer.get("row") for answer in (answers[0], answers[-1])] == [0, loop.model.n_rows - 1]
    assert all("error" in answer or "row" in answer for answer in answers)
    assert loop.counts.malformed_lines == sum("error" in answer for answer in answers)
    assert max(len(json.dumps(answer)) for answer in answers) < 30_000


def test_lines_have_limits(tmp_path):
    long, many = "x" * 10_001, ", ".join(f'"n{place}": 0' for place in range(1001))
    lines = [f"{{{VOTES}}}", f'{{"id": "{long}", {VOTES}}}', f'{{"time": "{long}", {VOTES}}}']
    lines += [f'{{"votes": {{"{long}": 0}}}}', f'{{"votes": {{{many}}}}}', f'{{"id": "{long[1:]}", {VOTES}}}']
    answers = run_loop(lines, tmp_path)[1]
    expected = [None, "write at most 10,000", '"time" is', "cannot be the name of a labeler", "more than 1,000", None]
    assert [answer.get("error") is None for answer in answers] == [part is None for part in expected]
    assert all(part is None or part in answer["error"] for answer, part in zip(answers, expected, strict=True))


def test_an_error_that_nobody_thought_of_is_answered_too(tmp_path, monkeypatch):
    model = AdaptiveLabelModel()
    real = model.update

    def update(votes, **keys):
        if keys["time"] == 13:
            raise ZeroDivisionError("nobody thought of it")
        return real(votes, **keys)

    monkeypatch.setattr(model, "update", update)
    loop, answers = run_loop([f'{{"time": {number}, {VOTES}}}' for number in range(20)], tmp_path, model=model)
    assert answers[13] == {"line": 14, "error": "ZeroDivisionError: nobody thought of it"}
    assert [answer["row"] for answer in answers if "row" in answer] == list(range(19))
    assert loop.counts.malformed_lines == 1


def replay(lines, tmp_path, state, **options) -> tuple[StreamLoop, list[dict]]:
    """Go on with the stream of a state."""
    source, sink, stop = tmp_path / "again.jsonl", tmp_path / "answers.jsonl", Stop()
    source.write_text("\n".join(lines))
    position = Position.read(state, options.get("skip_seen", False))
    with (
        source.open("rb") as votes,
        sink.open("wb") as out,
        StreamLoop(load(state), WatchOptions(state=state, **options), position, out.fileno()) as loop,
    ):
        loop.run(LineSource(votes.fileno(), stop), stop)
    return loop, [json.loads(line) for line in sink.read_text().splitlines()]


def test_an_input_that_the_state_has_taken_is_refused(tmp_path, capsys):
    state = tmp_path / "s.npz"
    lines = [f'{{"id": {number}, {VOTES}}}' for number in range(30)]
    run_loop(lines, tmp_path, state=state)
    before = state.read_bytes()
    with pytest.raises(
        DriftvoteError, match="begins with the first line that the state has taken.*--skip-seen.*--again"
    ):
        replay(lines, tmp_path, state)
    assert load(state).n_rows == 30
    assert load(state).to_state()[1]["rows"].tolist() == load(io_path(tmp_path, before)).to_state()[1]["rows"].tolist()
    assert replay(lines, tmp_path, state, skip_seen=True)[0].model.n_rows == 30
    assert replay(lines[5:], tmp_path, state)[0].model.n_rows == 55  # the input went on by itself
    assert replay(lines, tmp_path, state, again=True)[0].model.n_rows == 85
    # Without an id or a time, a line may be the same by chance: a warning, and the stream goes on.
    other = tmp_path / "o.npz"
    run_loop([f"{{{VOTES}}}"] * 3, tmp_path, state=other)
    capsys.readouterr()
    assert replay([f"{{{VOTES}}}"] * 2, tmp_path, other)[0].model.n_rows == 5
    assert "begins with the first line that the state has taken" in capsys.readouterr().err


def io_path(tmp_path, data: bytes):
    (tmp_path / "before.npz").write_bytes(data)
    return tmp_path / "before.npz"
