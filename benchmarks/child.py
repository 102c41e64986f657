"""Peak memory, measured in a process of its own: `python -m benchmarks.child TASK SPEC`, prints JSON.

The idle process is the one that has imported NumPy and driftvote and done nothing. The high-water mark is
read from the process status where the system has one: the figure of `getrusage` starts, on Linux, from the
size of the process that started this one, so a large parent would hide a small child.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ours import label_all, new_model, touch
from benchmarks.plan import ROOT, Case
from benchmarks.streams import make_votes

POOL = 10
"""Chunks that are made before the stream starts and then served again and again."""


def peak_mb() -> float:
    """The most memory this process has held, in MB (10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def measure(task: str, spec: dict[str, Any]) -> dict[str, float]:
    """Run a task in a fresh process; its `peak_mb` is what it held above the idle process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", task, json.dumps(spec)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the process that measures memory ({task}) failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def batch(spec: dict[str, Any]) -> dict[str, float]:
    """Label an array of votes in one call; the votes, read from a file, count as ours."""
    idle = peak_mb()
    codes = np.load(spec["votes"])
    outputs = label_all(codes, Case(**spec["case"]))
    return {"peak_mb": peak_mb() - idle, "outputs_mb": sum(part.nbytes for part in outputs) / 1e6}


def chunks_of(pool: np.ndarray, rows: int, chunk: int) -> Iterator[np.ndarray]:
    """`rows` rows in chunks, cut from the pool round and round: making them costs next to nothing."""
    starts = itertools.cycle(range(0, len(pool), chunk))
    for done in range(0, rows, chunk):
        start = next(starts)
        yield pool[start : start + min(chunk, rows - done)]


def chunked(spec: dict[str, Any]) -> dict[str, float]:
    """Label a long stream through an iterator of chunks; each result is read and dropped."""
    idle = peak_mb()
    chunk = spec["chunk"]
    pool, _ = make_votes(Case(POOL * chunk))
    model = new_model()
    start, labeled, sure = time.perf_counter(), 0, 0.0
    for out in model.label_stream(chunks_of(pool, spec["rows"], chunk)):
        labels, _, proba, _, _ = touch(out)
        labeled += len(labels)
        sure += float(proba[-1].max())
    seconds = time.perf_counter() - start
    if labeled != spec["rows"] or model.n_rows != spec["rows"]:
        raise RuntimeError(f"{labeled} rows came back, {spec['rows']} were sent")
    return {"peak_mb": peak_mb() - idle, "idle_mb": idle, "seconds": seconds, "sure": sure}


if __name__ == "__main__":
    print(json.dumps({"batch": batch, "chunked": chunked}[sys.argv[1]](json.loads(sys.argv[2]))))
