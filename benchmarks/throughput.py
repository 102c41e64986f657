"""`label_stream` with all outputs beside the majority line: time, growth and memory.

`python -m benchmarks.throughput TASK SPEC` measures peak memory in a process of its own and prints JSON.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import (
    MODELS,
    ROOT,
    STREAMS,
    Case,
    interleave,
    label_all,
    majority,
    make_votes,
    new_model,
    peak_mb,
    ratio,
    read_outputs,
    to_signed,
    warm_up,
)

MEMORY_AXES = ("rows", "labelers", "classes")
"""Where peak memory is measured too; abstentions, models and drift do not change what is held."""

POOL = 10
"""Chunks of a long stream that are made before it starts and then served again and again."""


@dataclass(frozen=True)
class SuitePlan:
    """Sizes of one run of the suite.

    `rounds` is how often an interleaved comparison goes round, and `budget` the seconds after which it
    starts no further round; the first round always runs, so slow code is measured once and not for hours.
    """

    name: str
    rows: tuple[int, ...]
    base_rows: int
    long_rows: int
    labelers: tuple[int, ...]
    labeler_rows: int
    classes: tuple[int, ...]
    abstain: tuple[float, ...]
    rounds: int
    budget: float
    warm_rows: int
    adwin_warm_rows: int
    latency_block: int
    latency_rows: int
    chunked_rows: tuple[int, ...]
    chunk: int
    peer_rows: int
    slow_peer_rows: int
    peer_rounds: int

    def axes(self) -> dict[str, list[Case]]:
        """The cases of the throughput tables: one property varies, the others stay at the base."""
        base = Case(self.base_rows)
        return {
            "rows": [Case(rows) for rows in self.rows],
            "labelers": [Case(self.labeler_rows, labelers=n) for n in self.labelers],
            "classes": [replace(base, classes=k) for k in self.classes],
            "abstain": [replace(base, abstain=rate) for rate in self.abstain],
            "model": [replace(base, model=model) for model in MODELS],
            "stream": [replace(base, stream=stream) for stream in STREAMS],
        }


FULL = SuitePlan(
    name="full",
    rows=(10_000, 100_000, 1_000_000, 10_000_000),
    base_rows=1_000_000,
    long_rows=10_000_000,
    labelers=(3, 6, 10, 20, 32, 64),
    labeler_rows=100_000,
    classes=(2, 3, 5, 10),
    abstain=(0.0, 0.1, 0.3, 0.6),
    rounds=9,
    budget=6.0,
    warm_rows=2**19 + 1,
    adwin_warm_rows=50_000,
    latency_block=500,
    latency_rows=20_000,
    chunked_rows=(1_000_000, 10_000_000, 100_000_000),
    chunk=100_000,
    peer_rows=100_000,
    slow_peer_rows=10_000,
    peer_rounds=3,
)
QUICK = replace(
    FULL,
    name="quick",
    rows=(10_000, 100_000),
    base_rows=100_000,
    long_rows=1_000_000,
    labelers=(3, 6, 20),
    labeler_rows=20_000,
    classes=(2, 5),
    abstain=(0.0, 0.3),
    rounds=5,
    budget=2.0,
    warm_rows=20_000,
    adwin_warm_rows=5_000,
    latency_rows=2_000,
    chunked_rows=(100_000, 1_000_000),
    peer_rows=10_000,
    slow_peer_rows=2_000,
    peer_rounds=1,
)
TINY = replace(
    QUICK,
    name="tiny",
    rows=(200, 400),
    base_rows=300,
    long_rows=600,
    labelers=(3, 6),
    labeler_rows=200,
    rounds=2,
    budget=1.0,
    warm_rows=300,
    adwin_warm_rows=100,
    latency_block=20,
    latency_rows=50,
    chunked_rows=(1_000, 3_000),
    chunk=500,
    peer_rows=400,
    slow_peer_rows=200,
)
PLANS = {plan.name: plan for plan in (FULL, QUICK, TINY)}


def measure_axes(plan: SuitePlan) -> dict[str, list[dict[str, Any]]]:
    """Every table: rows, labelers, classes, abstentions, models, drift."""
    found: dict[str, list[dict[str, Any]]] = {}
    for axis, cases in plan.axes().items():
        found[axis] = []
        for case in cases:
            line = _measure_case(case, plan, memory=axis in MEMORY_AXES)
            found[axis].append(line)
            print(f"  {axis} {line[axis]}: {line['rows_per_second']:,.0f} rows/s, {line['ratio']:.1f} x majority")
    return found


def _measure_case(case: Case, plan: SuitePlan, memory: bool) -> dict[str, Any]:
    """Time, ratio and, if asked for, the peak memory of a process that does nothing else."""
    codes, _ = make_votes(case)
    signed = to_signed(codes)
    warm_up(codes, case)
    sides = {"majority": lambda: majority(signed), "ours": lambda: label_all(codes, case)}
    times = interleave(sides, plan.rounds, plan.budget)
    seconds = median(times["ours"])
    found = {
        **case.to_dict(),
        "seconds": seconds,
        "rows_per_second": case.rows / seconds,
        "majority_seconds": median(times["majority"]),
        "ratio": ratio(times, "ours", "majority"),
        "rounds": len(times["ours"]),
    }
    if not memory:
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.npy"
        np.save(path, codes)
        found |= in_process("batch", {"votes": str(path), "case": case.to_dict()})
    return {**found, "votes_mb": codes.nbytes / 1e6}


def measure_growth(plan: SuitePlan) -> dict[str, Any]:
    """How the cost grows with labelers, classes, abstentions and rows; each pair takes turns."""
    base = Case(plan.base_rows, stream="steady")
    found: dict[str, Any] = {}
    others = {
        "labelers": replace(base, labelers=20),
        "classes": replace(base, classes=5),
        "abstain": replace(base, abstain=0.3),
        "rows": replace(base, rows=plan.long_rows),
        "threads": replace(base, rows=plan.long_rows, threads=2),
    }
    for name, other in others.items():
        sides, base = {}, replace(other, threads=1) if name == "threads" else base
        for side, case in (("base", base), ("other", other)):
            votes, _ = make_votes(case)
            warm_up(votes, case)
            sides[side] = partial(label_all, votes, case)
        times = interleave(sides, plan.rounds, 5 * plan.budget, uncounted=1)
        found[name] = {
            "base": base.to_dict(),
            "other": other.to_dict(),
            "base_seconds": median(times["base"]),
            "other_seconds": median(times["other"]),
            "ratio": ratio(times, "other", "base"),
            "rounds": len(times["base"]),
        }
    return found


def measure_chunked(plan: SuitePlan) -> dict[str, Any]:
    """A stream too long to hold, fed in chunks: time, and memory that must not grow with the rows.

    Each length has a fresh process; the pool of ready-made chunks (one byte a vote) counts as ours. Kernels are
    compiled here first: a process that compiles holds the compiler's memory, and that is a matter of the first call
    (docs/startup.md), not of the stream.
    """
    case = Case(2 * plan.chunk)
    warm_up(make_votes(case)[0], case)
    lines: list[dict[str, Any]] = []
    for rows in plan.chunked_rows:
        found = in_process("chunked", {"rows": rows, "chunk": plan.chunk})
        lines.append({"rows": rows, "rows_per_second": rows / found["seconds"], **found})
        print(f"  {rows:,} rows: {lines[-1]['rows_per_second']:,.0f} rows/s, {found['peak_mb']:.0f} MB above idle")
    growth = lines[-1]["peak_mb"] / lines[0]["peak_mb"]
    return {"chunk": plan.chunk, "labelers": case.labelers, "lines": lines, "growth": growth}


def in_process(task: str, spec: dict[str, Any]) -> dict[str, float]:
    """Run a task in a fresh process; `peak_mb` is what it held above the idle process.

    The idle process has imported NumPy and driftvote and done nothing.
    """
    command = [sys.executable, "-m", "benchmarks.throughput", task, json.dumps(spec)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the process that measures memory ({task}) failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def label_batch(spec: dict[str, Any]) -> dict[str, float]:
    """Label an array of votes in one call; the votes, read from a file, count as ours."""
    idle = peak_mb()
    outputs = label_all(np.load(spec["votes"]), Case(**spec["case"]))
    return {"peak_mb": peak_mb() - idle, "outputs_mb": sum(part.nbytes for part in outputs) / 1e6}


def label_chunks(spec: dict[str, Any]) -> dict[str, float]:
    """Label a long stream through an iterator of chunks; each result is read and dropped."""
    idle = peak_mb()
    pool, _ = make_votes(Case(POOL * spec["chunk"]))
    model = new_model()
    start, labeled = time.perf_counter(), 0
    for out in model.label_stream(_cut_chunks(pool, spec["rows"], spec["chunk"])):
        labeled += len(read_outputs(out)[0])
    seconds = time.perf_counter() - start
    if labeled != spec["rows"] or model.n_rows != spec["rows"]:
        raise RuntimeError(f"{labeled} rows came back, {spec['rows']} were sent")
    return {"peak_mb": peak_mb() - idle, "idle_mb": idle, "seconds": seconds}


def _cut_chunks(pool: np.ndarray, rows: int, chunk: int) -> Iterator[np.ndarray]:
    """`rows` rows in chunks, cut from the pool round and round: making them costs next to nothing."""
    starts = itertools.cycle(range(0, len(pool), chunk))
    for done in range(0, rows, chunk):
        start = next(starts)
        yield pool[start : start + min(chunk, rows - done)]


if __name__ == "__main__":
    print(json.dumps({"batch": label_batch, "chunked": label_chunks}[sys.argv[1]](json.loads(sys.argv[2]))))
