"""Killed, interrupted, out of disk, not allowed: whole files or none, and a state that can be trusted."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from driftvote import AdaptiveLabelModel, load
from driftvote.files import atomic
from driftvote.files.atomic import WholeFiles, whole_file
from processes_for_tests import HEED_INTERRUPTS, OBEY_FILE_MODES, SMALL_FILES_ONLY, run_after

from streams_for_tests import random_stream
from votes_on_disk import invoke


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "driftvote", *map(str, arguments)]


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_half_there(tmp_path):
    """SIGKILL after a random time, again and again, then to the end: labels and state as if nothing had happened."""
    days = [random_stream(day, 150_000, 5, abstain=0.1) for day in range(2)]
    for day, codes in enumerate(days):
        np.save(tmp_path / f"day{day}.npy", codes)
    labels, state = [tmp_path / f"labels{day}.parquet" for day in range(2)], tmp_path / "state.npz"
    invoke("label", tmp_path / "day0.npy", "-o", labels[0], "--state", state)
    before = hashlib.sha256(state.read_bytes()).hexdigest()
    known = {"day0.npy", "day1.npy", "labels0.parquet", "state.npz"}
    last = command("label", tmp_path / "day1.npy", "-o", labels[1], "--state", state, "--force", "--quiet")
    start = time.monotonic()
    subprocess.run(last, check=True)
    whole = time.monotonic() - start
    finished = labels[1].read_bytes()
    for trial in range(4):
        labels[1].unlink(missing_ok=True)
        if hashlib.sha256(state.read_bytes()).hexdigest() != before:
            invoke("label", tmp_path / "day0.npy", "-o", labels[0], "--state", tmp_path / "fresh.npz", "--force")
            (tmp_path / "fresh.npz").replace(state)
            before = hashlib.sha256(state.read_bytes()).hexdigest()
        process = subprocess.Popen(last)
        time.sleep(whole * random.Random(trial).uniform(0.5, 1.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        changed = hashlib.sha256(state.read_bytes()).hexdigest() != before
        assert load(state).n_rows == (300_000 if changed else 150_000)
        if labels[1].exists():
            assert pyarrow.parquet.read_table(labels[1]).num_rows == 150_000
            assert labels[1].read_bytes() == finished
        else:
            assert not changed, "a state that knows of labels which are not there"
        if sys.platform == "linux":
            # The lock of a killed process stays, and hinders nobody.
            assert set(os.listdir(tmp_path)) - {"labels1.parquet", "state.npz.lock"} == known
    labels[1].unlink(missing_ok=True)
    model = AdaptiveLabelModel()
    out = [model.label_stream(codes) for codes in days][1]
    if load(state).n_rows == 150_000:
        subprocess.run(last, check=True)
        np.testing.assert_array_equal(pyarrow.parquet.read_table(labels[1])["probability"].to_numpy(), out.probability)
    again = load(state)
    assert again.n_rows == 300_000
    assert again.update([1, 0, 1, 1, 0]).proba.tolist() == model.update([1, 0, 1, 1, 0]).proba.tolist()


@pytest.mark.slow
def test_a_job_that_runs_twice_learns_once(tmp_path):
    np.save(tmp_path / "day.npy", random_stream(1, 400, 5))
    arguments = ["label", tmp_path / "day.npy", "-o", tmp_path / "l.csv", "--state", tmp_path / "s.npz", "--force"]
    invoke(*arguments)
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has learned from this file already" in done.stderr
    assert load(tmp_path / "s.npz").n_rows == 400
    invoke(*arguments, "--again")
    assert load(tmp_path / "s.npz").n_rows == 800


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "npz"])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, ending):
    np.save(tmp_path / "v.npy", random_stream(1, 3000, 5))
    (tmp_path / f"l.{ending}").write_text("the old one")
    arguments = command("label", tmp_path / "v.npy", "-o", tmp_path / f"l.{ending}", "--force")
    done = subprocess.run(run_after(SMALL_FILES_ONLY, arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("driftvote: ")
    assert f"l.{ending}: File too large; choose another path" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / f"l.{ending}").read_text() == "the old one"
    assert sorted(os.listdir(tmp_path)) == [f"l.{ending}", "v.npy"]


@pytest.mark.slow
def test_without_permission(tmp_path):
    np.save(tmp_path / "v.npy", random_stream(1, 200, 5))
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    arguments = command("label", tmp_path / "v.npy", "-o", closed / "l.csv")
    done = subprocess.run(run_after(OBEY_FILE_MODES, arguments), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{closed}: Permission denied; choose another path" in done.stderr
    assert os.listdir(closed) == []


@pytest.mark.slow
def test_interrupted_and_terminated(tmp_path):
    """Ctrl-C and SIGTERM while standard input is still open: a line for the first, no temporary files left for both."""
    spools = tmp_path / "spool"
    spools.mkdir()
    environment = {**os.environ, "TMPDIR": str(spools)}
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        arguments = command("label", "-", "-o", tmp_path / "l.csv")
        process = subprocess.Popen(
            run_after(HEED_INTERRUPTS, arguments), stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        for _ in range(600):  # until it copies standard input
            open_files = [os.path.realpath(handle) for handle in Path(f"/proc/{process.pid}/fd").iterdir()]
            if any(name.startswith(str(spools)) for name in open_files):
                break
            time.sleep(0.1)
        assert list(spools.iterdir()) == []  # so that SIGKILL leaves nothing either
        process.send_signal(number)
        _, said = process.communicate()
        assert process.returncode == code, said
        assert said.count(b"\n") == (number == signal.SIGINT), said
        assert list(spools.iterdir()) == []
        assert not (tmp_path / "l.csv").exists()


def test_files_appear_together_or_not_at_all(tmp_path):
    files = WholeFiles()
    files.open(tmp_path / "a").write(b"a")
    files.named(tmp_path / "b.html").write_text("b")
    files.__exit__(RuntimeError, None, None)
    assert os.listdir(tmp_path) == []
    with WholeFiles() as files:
        files.open(tmp_path / "a").write(b"a")
        named = files.named(tmp_path / "b.html")
        assert named.suffix == ".html"
        named.write_text("b")
        assert not (tmp_path / "a").exists()
    assert sorted(os.listdir(tmp_path)) == ["a", "b.html"]


def test_where_files_cannot_be_nameless_they_are_hidden(tmp_path, monkeypatch):
    monkeypatch.delattr(atomic.os, "O_TMPFILE")
    with whole_file(tmp_path / "a.csv") as file:
        file.write(b"x")
        assert [name.startswith(".a.") for name in os.listdir(tmp_path)] == [True]
    assert os.listdir(tmp_path) == ["a.csv"]
    assert Path(tmp_path / "a.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_labels_come_before_the_state_that_knows_of_them(tmp_path, monkeypatch):
    np.save(tmp_path / "day.npy", random_stream(1, 300, 5))
    arguments = ["label", tmp_path / "day.npy", "-o", tmp_path / "l.csv", "--state", tmp_path / "s.npz", "--force"]
    publish, names = atomic._Part.publish, []

    def die_at_the_second(part):
        if part.path.parent == tmp_path:
            names.append(part.path.name)
        if len(names) == 2:
            raise OSError(5, "the machine dies here")
        publish(part)

    monkeypatch.setattr(atomic._Part, "publish", die_at_the_second)
    with pytest.raises(AssertionError, match="dies here"):
        invoke(*arguments)
    assert names == ["l.csv", "s.npz"]
    assert sorted(os.listdir(tmp_path)) == ["day.npy", "l.csv"]
    first = (tmp_path / "l.csv").read_bytes()
    monkeypatch.undo()
    invoke(*arguments)
    assert (tmp_path / "l.csv").read_bytes() == first
    assert load(tmp_path / "s.npz").n_rows == 300
