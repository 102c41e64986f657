"""One version of driftvote, measured on request: `python benchmarks/check_worker.py serve` or `... first-call`.

`benchmarks/check.py` starts it with the source of the version on PYTHONPATH, so that two versions can take turns.
It therefore imports nothing else of this repository and uses the public interface only. Times are CPU seconds of this
process: what a neighbour takes from the machine does not count.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import driftvote

LABELERS = 6
WARM_ROWS = 70_000  # single rows are labeled where the window is long and stays at 65,536 rows for 60,000 rows more
BLOCK = 400  # single rows timed together
BLOCKS = 50  # different blocks of rows, served again and again
MAJORITY_CALLS = 3


def make_votes(rows: int) -> np.ndarray:
    """Votes of six labelers on two classes as class codes; their accuracies never change."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, size=(rows, 1), dtype=np.int8)
    wrong = rng.random((rows, LABELERS)) >= np.linspace(0.6, 0.9, LABELERS)
    return (truth ^ wrong).astype(np.int8)


def cpu_seconds(work: Callable[[], object]) -> float:
    start = process_time()
    made = work()
    seconds = process_time() - start
    del made
    return seconds


def read_outputs(out: Any) -> float:
    """Read every output, so that one computed on demand is paid for here."""
    return float(out.labels[-1]) + out.codes[-1] + out.proba[-1, 0] + out.windows[-1] + out.accuracies[-1, 0]


class BatchTask:
    """A million rows through `label_stream`, against the line `np.sign(V.sum(axis=1))`."""

    def __init__(self, rows: int) -> None:
        self.votes = make_votes(rows)
        self.signed = (2 * self.votes - 1).astype(np.int8)
        self.label()  # compiles

    def label(self) -> object:
        out = driftvote.AdaptiveLabelModel().label_stream(self.votes)
        return out, read_outputs(out)

    def majority(self) -> None:
        for _ in range(MAJORITY_CALLS):
            np.sign(self.signed.sum(axis=1))

    def measure(self) -> tuple[float, float]:
        return cpu_seconds(self.label), cpu_seconds(self.majority) / MAJORITY_CALLS


class RowTask:
    """A block of rows through `update()`, against a weighted vote with running agreements in NumPy."""

    def __init__(self) -> None:
        votes = make_votes(WARM_ROWS + BLOCK * BLOCKS)
        self.model = driftvote.AdaptiveLabelModel()
        self.model.label_stream(votes[:WARM_ROWS])
        parts = np.split(votes[WARM_ROWS:], BLOCKS)
        self.blocks = itertools.cycle([(list(part), list(2.0 * part - 1.0)) for part in parts])
        self.weights = np.linspace(0.5, 2.0, LABELERS)
        self.measure()  # compiles

    def update(self, rows: list[np.ndarray]) -> None:
        for row in rows:
            self.model.update(row)

    def reference(self, rows: list[np.ndarray]) -> None:
        agreements, label = np.zeros((LABELERS, LABELERS)), 0.0
        for row in rows:
            agreements += np.outer(row, row)
            label += np.sign(self.weights @ row)

    def measure(self) -> tuple[float, float]:
        codes, signed = next(self.blocks)
        return cpu_seconds(lambda: self.update(codes)), cpu_seconds(lambda: self.reference(signed))


def first_call() -> tuple[float, float]:
    """The first `label_stream` of a process, against compiling one trivial function; the cache must be empty."""
    import numba

    def compile_trivial() -> float:
        return cpu_seconds(lambda: numba.njit(lambda x: x + 1.0)(1.0))

    compile_trivial()  # loads the compiler
    trivial = [compile_trivial() for _ in range(10)]
    votes = make_votes(1000)
    seconds = cpu_seconds(lambda: driftvote.AdaptiveLabelModel().label_stream(votes))
    return seconds, min(trivial + [compile_trivial() for _ in range(10)])


def serve(rows: int) -> None:
    """Answer each line of standard input (`batch` or `row`) with the seconds of the work and of its reference."""
    measures = {"batch": BatchTask(rows), "row": RowTask()}
    print(json.dumps({"package": driftvote.__file__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(measures[line.strip()].measure()), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        print(json.dumps(first_call()))
