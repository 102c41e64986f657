"""A query that is killed with everything it started, and started again, gives what one that never died gives."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from query_to_kill import NAMES

from driftvote import AdaptiveLabelModel

from streams_for_tests import random_stream

HERE = Path(__file__).parent
FULL = os.environ.get("DRIFTVOTE_KILLS") == "full"
N_FILES = 16 if FULL else 4
LATE_FROM = 6 if FULL else 3
CAMERAS = ["north", "south", "gate"]
SECOND = 1_000_000


def write_input(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Files of rows in any order, a few of them as old as the first file; returns what counts, by camera.

    Which rows are late depends on how Spark cuts micro-batches, and a kill can make it put two files into one: between
    the source's log and its own it has no record of the first. So the late rows here are late by several files.
    """
    rng = np.random.default_rng(1)
    votes = {camera: random_stream(place, 400 * N_FILES, 5, abstain=0.1) for place, camera in enumerate(CAMERAS)}
    (folder / "in").mkdir(parents=True)
    for file in range(N_FILES):
        parts = []
        for place, camera in enumerate(CAMERAS):
            rows = np.arange(400 * file, 400 * file + [400, 400, 30][place])
            late = np.arange(300, 303) if file >= LATE_FROM and place == 0 else rows[:0]
            rows = np.concatenate([rows, late])
            times = rows * SECOND + np.where(np.isin(rows, late), 1, 0)
            columns = {
                "camera": [camera] * len(rows),
                "t": pa.array(times, pa.timestamp("us", "UTC")),
                "note": 2**60 + rows,
            }
            columns |= {name: pa.array(votes[camera][rows, at]) for at, name in enumerate(NAMES)}
            parts.append(pa.table(columns))
        table = pa.concat_tables(parts)
        path = folder / "in" / f"{file:03}.parquet"
        pq.write_table(table.take(rng.permutation(table.num_rows)), path)
        os.utime(path, (1_600_000_000 + file, 1_600_000_000 + file))
    gate = np.concatenate([np.arange(400 * file, 400 * file + 30) for file in range(N_FILES)])
    return {
        camera: (rows, votes[camera][rows])
        for camera, rows in zip(CAMERAS, (np.arange(400 * N_FILES), np.arange(400 * N_FILES), gate), strict=True)
    }


def run(folder: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, str(HERE / "query_to_kill.py"), str(folder), *more]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def session_of(pid: int) -> int:
    try:
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[3])
    except OSError:  # it ended in the meantime
        return -1


def kill(process: subprocess.Popen) -> None:
    """Everything that the process started, at once: the JVM and the Python workers are of its session."""
    found = [pid for pid in pids() if session_of(pid) == process.pid]
    assert process.pid in found
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    process.wait()


def batches_of(folder: Path) -> int:
    return len(list((folder / "out").glob("batch_id=*")))


def commits_of(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def wait_for(folder: Path, process: subprocess.Popen, batches: int) -> None:
    """Until so many batches are there."""
    deadline = time.monotonic() + 240
    while batches_of(folder) < batches:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.005)


def finish(folder: Path) -> None:
    process = run(folder)
    process.wait(timeout=400)
    assert (folder / "done").exists(), (folder / "log").read_text()[-3000:]


def check_output(folder: Path, expected: dict[str, tuple[np.ndarray, np.ndarray]]) -> pa.Table:
    """Every row once, with what one process says of it, to the last bit."""
    said = pq.read_table(folder / "out").sort_by([("camera", "ascending"), ("t", "ascending")])
    for camera, (rows, votes) in expected.items():
        found = said.filter(pa.compute.equal(said["camera"], camera))
        assert (found["t"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() == rows * SECOND).all()
        assert (found["note"].to_numpy() == 2**60 + rows).all()
        whole = AdaptiveLabelModel(labelers=NAMES).label_stream(votes)
        assert found["label"].to_pylist() == whole.labels.tolist()
        assert np.array_equal(np.array(found["proba"].to_pylist()), whole.proba)
        assert np.array_equal(found["window"].to_numpy(), whole.windows)
        assert np.array_equal(np.array(found["accuracies"].to_pylist()), whole.accuracies)
        assert found["late_rows"][-1].as_py() == (3 * (N_FILES - LATE_FROM) if camera == "north" else 0)
    assert said.num_rows == sum(len(rows) for rows, _ in expected.values())
    return said


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_killed_at_random_moments(tmp_path):
    """Once, in the worst moment: a batch is whole, and Spark has not written down that it is. With DRIFTVOTE_KILLS=full
    (`make test-spark-kill`) three times more, at any moment, and compared with a run in peace as well."""
    folder = tmp_path / "killed"
    expected = write_input(folder)
    rng = random.Random(os.environ.get("DRIFTVOTE_KILL_SEED") or time.time_ns())
    process = run(folder, "1")
    process.wait(timeout=400)
    assert process.returncode == -signal.SIGKILL, (folder / "log").read_text()[-3000:]
    assert (batches_of(folder), commits_of(folder)) == (2, 1), "the worst moment"
    killed = [2]
    for _ in range(3 if FULL else 0):
        process = run(folder)
        wait_for(folder, process, min(N_FILES - 1, batches_of(folder) + rng.randint(1, 3)))
        time.sleep(rng.uniform(0, 2.0))
        kill(process)
        killed.append(batches_of(folder))
    assert not (folder / "done").exists(), "it was over before it was killed"
    finish(folder)
    print("killed after so many batches:", killed)
    said = check_output(folder, expected)
    if FULL:
        write_input(tmp_path / "peace")
        finish(tmp_path / "peace")
        assert check_output(tmp_path / "peace", expected).equals(said)
