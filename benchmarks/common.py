"""What the benchmarks share: votes, the measured model, clocks, peak memory, the machine, tables in pages.

On a small, shared machine a time says little, because the next minute may be twice as slow. Sides of a comparison
therefore take turns in one process (A B A B ...), and the median over the rounds of their ratio is reported.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from driftvote import AdaptiveLabelModel

ROOT = Path(__file__).parents[1]
BLOCK = 1 << 16  # rows of votes made at a time
WARM_UP = 100_000
"""Rows labeled before a clock starts, which compiles every kernel; a fifth of it for many labelers."""

STREAMS = {"steady": 0, "drifting": 100_000, "waves": 20_000, "restless": 1_000}
"""After how many rows every labeler's accuracy is drawn anew; 0 is never. `waves`: the period of sine waves."""

MODELS = {
    "default": "`AdaptiveLabelModel()`",
    "paper's estimator": '`AdaptiveLabelModel(estimator="triplet", bound="mcdiarmid")`',
}
PAPER = {"estimator": "triplet", "bound": "mcdiarmid"}

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Case:
    """One stream of votes and the model that labels it."""

    rows: int
    labelers: int = 6
    classes: int = 2
    abstain: float = 0.0
    stream: str = "drifting"
    model: str = "default"
    seed: int = 0
    threads: int = 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def make_votes(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Class codes (rows x labelers, int8, -1 abstains) and the true classes.

    Random numbers are drawn for a block of rows at a time: the floats of ten million rows would be
    larger than everything that is measured on them.
    """
    rng = np.random.default_rng(case.seed)
    codes = np.empty((case.rows, case.labelers), np.int8)
    truth = np.empty(case.rows, np.int8)
    every = STREAMS[case.stream] or case.rows
    accuracies = rng.uniform(0.6, 0.9, size=(-(-case.rows // every), case.labelers)).astype(np.float32)
    for start in range(0, case.rows, BLOCK):
        rows = np.arange(start, min(start + BLOCK, case.rows))
        shape = (len(rows), case.labelers)
        now = accuracies[rows // every]
        if case.stream == "waves":
            phases = 2.0 * np.pi * np.arange(case.labelers) / case.labelers
            now = (0.75 + 0.15 * np.sin(2.0 * np.pi * rows[:, None] / every + phases)).astype(np.float32)
        right = rng.random(shape, np.float32) < now
        true = rng.integers(case.classes, size=(len(rows), 1), dtype=np.int8)
        wrong = (true + rng.integers(1, case.classes, size=shape, dtype=np.int8)) % case.classes
        block = np.where(right, true, wrong)
        if case.abstain:
            block[rng.random(shape, np.float32) < case.abstain] = -1
        codes[rows[0] : rows[-1] + 1] = block
        truth[rows[0] : rows[-1] + 1] = true[:, 0]
    return codes, truth


def to_signed(codes: np.ndarray) -> np.ndarray:
    """The same votes as -1 and +1 (0 abstains), int8: what the majority line reads.

    With more than two classes odd classes count as +1. A majority of many classes costs more than this
    line; the line is the same in every table so that they can be compared.
    """
    return np.where(codes < 0, 0, np.where(codes % 2 == 1, 1, -1)).astype(np.int8)


def majority(signed: np.ndarray) -> np.ndarray:
    """The line that a user would write."""
    return np.sign(signed.sum(axis=1))


def new_model(classes: int = 2, model: str = "default", threads: int = 1) -> AdaptiveLabelModel:
    """A model that has seen nothing."""
    settings: dict[str, Any] = {} if model == "default" else PAPER
    return AdaptiveLabelModel(n_classes=classes, votes="snorkel", n_jobs=threads, **settings)


def read_outputs(out: Any) -> tuple[np.ndarray, ...]:
    """Every output, so that one computed on demand is paid for here."""
    return out.labels, out.codes, out.proba, out.windows, out.accuracies


def label_all(codes: np.ndarray, case: Case) -> tuple[np.ndarray, ...]:
    """All outputs of a new model on the votes."""
    return read_outputs(new_model(case.classes, case.model, case.threads).label_stream(codes))


def warm_up(codes: np.ndarray, case: Case) -> None:
    """Compile, or load from the cache, before anything is timed."""
    label_all(codes[: WARM_UP if case.labelers <= 10 else WARM_UP // 5], case)


def clock(work: Callable[[], Any]) -> float:
    """Seconds of one call; what it returns is freed after the clock stopped."""
    start = time.perf_counter()
    made = work()
    seconds = time.perf_counter() - start
    del made
    return seconds


def interleave(sides: Mapping[str, Callable[[], Any]], rounds: int, budget: float, uncounted: int = 0) -> Times:
    """Seconds of every side in each round: A B C, A B C, ... until `rounds` or `budget` seconds are used up.

    Sides that need much fresh memory go some rounds `uncounted` first: a virtual machine gives memory that was not used
    for seconds back to its host, and getting it again can take longer than all the work.
    """
    times: Times = {name: [] for name in sides}
    for work in [*sides.values()] * uncounted:
        work()
    start = time.perf_counter()
    for _ in range(rounds):
        for name, work in sides.items():
            times[name].append(clock(work))
        if time.perf_counter() - start > budget:
            break
    return times


def ratio(times: Times, above: str, below: str) -> float:
    """Median over the rounds of the time of `above` divided by that of `below`."""
    return statistics.median(a / b for a, b in zip(times[above], times[below], strict=True))


def peak_mb(pid: int | str = "self") -> float:
    """The most memory that a process has held, in MB (10^6 bytes).

    Read from the process status where the system has one: the figure of `getrusage` starts, on Linux, from the size of
    the parent process, so a large parent would hide a small child.
    """
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    if pid != "self":
        raise RuntimeError("this system does not report the peak memory of another process")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def describe_machine() -> dict[str, Any]:
    """Cores, processor, memory, load and versions; no names and no paths of the machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        memory = None
    names = ("driftvote", "numpy", "numba", "llvmlite")
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": memory,
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.machine()


def machine_sentence(machine: dict[str, Any]) -> str:
    """The machine and the versions in words."""
    memory = "" if machine["memory_gb"] is None else f", {machine['memory_gb']:.0f} GB of memory"
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    load = "" if machine["load"] is None else f" Load when it started: {machine['load']}."
    return f"{machine['system']}, {machine['cores']} cores, {machine['processor']}{memory}; {versions}.{load}"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def replace_between(text: str, begin: str, end: str, content: str) -> str:
    """A page with other content between two marks."""
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"the page has no marks {begin} and {end}")
    return f"{head}{begin}\n{content}\n{end}{tail}"
