"""Where files are written: never in the place of a device, a pipe or a link, and one state has one writer."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, DriftvoteError, StateError, load
from driftvote.files import atomic
from driftvote.files.state import hold_state
from test_files_bad import refused

from streams_for_tests import random_stream
from votes_on_disk import invoke

LINE = json.dumps({"votes": {"a": "x", "b": "y", "c": "x"}}) + "\n"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "driftvote", *map(str, arguments)]


@pytest.fixture
def votes(tmp_path):
    np.save(tmp_path / "v.npy", random_stream(1, 200, 4))
    return tmp_path / "v.npy"


def make_device(path):
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make devices")


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_devices_and_pipes_stay_what_they_are(kind, votes, tmp_path, monkeypatch, capsys):
    place = tmp_path / "d"
    make_device(place) if kind == "device" else os.mkfifo(place)
    before = place.lstat()
    named = [("-o", place, "--to", "csv"), ("-o", tmp_path / "l.csv", "--state", place)]
    named += [("-o", tmp_path / "l.csv", "--report", place)]
    for options in named:
        for force in ([], ["--force"]):
            said = refused(monkeypatch, capsys, "label", votes, *options, *force)
            assert f"d: this is a {kind}, which is not replaced" in said
    for option in ("--metrics", "--state", "--events"):
        said = refused(monkeypatch, capsys, "watch", "--classes", "x,y", option, place)
        assert f"this is a {kind}" in said
    assert f"this is a {kind}" in refused(monkeypatch, capsys, "check", votes, "--metrics", place)
    assert f"this is a {kind}" in refused(monkeypatch, capsys, "convert", votes, place, "--to", "csv", "--force")
    with pytest.raises(DriftvoteError, match=f"this is a {kind}"):
        AdaptiveLabelModel().fit([[1, 1, 0]]).save(place)
    after = place.lstat()
    assert (after.st_mode, after.st_rdev, after.st_ino) == (before.st_mode, before.st_rdev, before.st_ino)
    assert sorted(os.listdir(tmp_path)) == ["d", "v.npy"]


def test_a_link_is_written_through(votes, tmp_path):
    """The target of a link is written; the link, and everybody who uses the target, stays."""
    (tmp_path / "shared").mkdir()
    target = tmp_path / "shared" / "state.npz"
    (tmp_path / "one.npz").symlink_to("shared/state.npz")
    (tmp_path / "two.npz").symlink_to("one.npz")
    invoke("label", votes, "-o", tmp_path / "l.csv", "--state", tmp_path / "two.npz")  # a link to nothing yet
    assert load(target).n_rows == 200
    invoke("label", votes, "-o", tmp_path / "l.csv", "--state", tmp_path / "two.npz", "--force", "--again")
    assert load(target).n_rows == 400
    AdaptiveLabelModel().fit([[1, 1, 0]]).save(tmp_path / "one.npz")
    assert load(target).n_rows == 1
    assert [(tmp_path / name).is_symlink() for name in ("one.npz", "two.npz")] == [True, True]
    assert os.listdir(tmp_path / "shared") == ["state.npz"]


def test_links_that_lead_nowhere(votes, tmp_path, monkeypatch, capsys):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "a link that leads nowhere" in refused(
        monkeypatch, capsys, "label", votes, "-o", tmp_path / "a", "--to", "csv"
    )
    (tmp_path / "c.csv").symlink_to("no/folder.csv")
    assert "there is no folder" in refused(monkeypatch, capsys, "label", votes, "-o", tmp_path / "c.csv")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c.csv", "v.npy"]


def test_a_place_that_becomes_a_pipe_while_the_file_is_written(tmp_path):
    files = atomic.WholeFiles()
    files.open(tmp_path / "x").write(b"content")
    os.mkfifo(tmp_path / "x")
    with pytest.raises(DriftvoteError, match="this is a pipe"):
        files.commit()
    assert stat.S_ISFIFO((tmp_path / "x").lstat().st_mode)
    assert os.listdir(tmp_path) == ["x"]


def test_the_folder_is_synced_after_each_rename(tmp_path, monkeypatch):
    done: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"), fsync(handle)),
    )
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("rename"), replace(*names)))
    with atomic.WholeFiles() as files:
        files.open(tmp_path / "labels").write(b"1")
        files.open(tmp_path / "state").write(b"2")
    assert done == ["file", "file", "rename", "folder", "rename", "folder"]


# -- one state, one writer -------------------------------------------------------------------------


def test_a_second_writer_is_told_who_holds_the_state(votes, tmp_path, monkeypatch, capsys):
    state = tmp_path / "state.npz"
    (tmp_path / "link.npz").symlink_to("state.npz")
    first = subprocess.Popen(
        command("watch", "--classes", "x,y", "--state", state, "--quiet"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write(LINE.encode())
    first.stdin.flush()
    assert first.stdout.readline()
    for name in (state, tmp_path / "link.npz"):
        said = refused(monkeypatch, capsys, "watch", "--classes", "x,y", "--state", name)
        assert f"process {first.pid} on " in said
        assert "is continuing this state; wait for its end, or use another state file" in said
        said = refused(monkeypatch, capsys, "label", votes, "-o", tmp_path / "l.csv", "--state", name)
        assert f"process {first.pid} on " in said
    assert not (tmp_path / "l.csv").exists()
    first.communicate()
    assert load(state).n_rows == 1
    assert sorted(os.listdir(tmp_path)) == ["link.npz", "state.npz", "v.npy"]


def test_a_lock_of_a_killed_process_is_taken_over(tmp_path):
    state = tmp_path / "state.npz"
    for number in (1, 2):
        process = subprocess.Popen(
            command("watch", "--classes", "x,y", "--state", state, "--save-lines", 1, "--quiet"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LINE.encode() * number)
        process.stdin.flush()
        assert process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert (tmp_path / "state.npz.lock").exists()
    with hold_state(state):
        assert f"process {os.getpid()} " in (tmp_path / "state.npz.lock").read_text()
    assert os.listdir(tmp_path) == ["state.npz"]


def hold_and_count(path: str, n: int) -> None:
    for _ in range(n):
        while True:
            try:
                with hold_state(f"{path}/state"):
                    with open(f"{path}/count") as file:
                        count = int(file.read())
                    with open(f"{path}/count", "w") as file:
                        file.write(str(count + 1))
                    break
            except StateError:
                time.sleep(0.0002)


def test_the_lock_lets_one_in_at_a_time(tmp_path):
    """Two processes that add 1 to a number in a file: none gets lost, although each removes the lock file."""
    (tmp_path / "count").write_text("0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=hold_and_count, args=(str(tmp_path), 60)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert (tmp_path / "count").read_text() == "120"
    assert os.listdir(tmp_path) == ["count"]


def test_threads_exclude_each_other_too(tmp_path):
    with hold_state(tmp_path / "state"):
        seen: list[object] = []

        def try_it():
            try:
                with hold_state(tmp_path / "state"):
                    seen.append("in")
            except StateError as problem:
                seen.append(str(problem))

        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert f"process {os.getpid()}" in str(seen[0])
