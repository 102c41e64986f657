"""`make bench-check`: has the default model become slower than the committed marks, or than another checkout?

Three figures of `AdaptiveLabelModel()`, six labelers, two classes, each a ratio to a reference measured in turns with
it: a million rows through `label_stream` over the line `np.sign(V.sum(axis=1))`, one row through `update()` over a few
lines of NumPy, and the first call with an empty compiler cache over compiling one trivial function. A ratio is the
least CPU time of the work over the least CPU time of its reference, out of many short rounds.

    python -m benchmarks.check                      compare with benchmarks/marks.json
    python -m benchmarks.check --against ../other   measure a checkout of another version in turns and compare with that
    python -m benchmarks.check --write-marks        write benchmarks/marks.json (--of: from another checkout)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, describe_machine

MARKS = ROOT / "benchmarks" / "marks.json"
WORKER = ROOT / "benchmarks" / "check_worker.py"
ALLOWED = 1.2
FIGURES = {
    "batch": "label_stream, 1,000,000 rows, over the majority line",
    "row": "update(), one row, over a weighted vote in NumPy",
    "first_call": "first call, empty compiler cache, over compiling a trivial function",
}
Ratios = dict[str, float]


@dataclass(frozen=True)
class Rounds:
    """How often each figure is measured, and on how many rows."""

    rows: int = 1_000_000
    batch: int = 15
    row: int = 60
    first_call: int = 3


class Version:
    """A checkout of driftvote and the process that measures it."""

    def __init__(self, checkout: Path, rounds: Rounds) -> None:
        self.source = (checkout / "src").resolve()
        self.times: dict[str, list[tuple[float, float]]] = {name: [] for name in FIGURES}
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), "serve", str(rounds.rows)],
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.source), **more}

    def wait_until_ready(self) -> None:
        """Wait for the warm-up and make sure that the process imported this checkout."""
        package = Path(self._answer()["package"])
        if self.source not in package.parents:
            raise RuntimeError(f"{package} was imported in place of a package in {self.source}")

    def measure(self, name: str) -> None:
        """Measure a figure once and keep the times of the work and of its reference."""
        if name == "first_call":
            self.times[name].append(self._measure_first_call())
            return
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        work, reference = self._answer()
        self.times[name].append((work, reference))

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that measures {self.source} ended; its error is above")
        return json.loads(line)

    def _measure_first_call(self) -> tuple[float, float]:
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, str(WORKER), "first-call"],
                env=self.environment(NUMBA_CACHE_DIR=cache),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        work, reference = json.loads(done.stdout)
        return work, reference

    def ratios(self) -> Ratios:
        """The least time of the work over the least time of its reference, for each figure measured."""
        return {name: ratio_of_least(times) for name, times in self.times.items() if times}

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def ratio_of_least(times: Sequence[tuple[float, float]]) -> float:
    """The least first number over the least second one: disturbances only ever add time."""
    return min(work for work, _ in times) / min(reference for _, reference in times)


def measure_in_turns(checkouts: Sequence[Path], rounds: Rounds, names: Sequence[str]) -> list[Ratios]:
    """Ratios of each checkout; within every round they are measured one right after the other."""
    versions = [Version(checkout, rounds) for checkout in checkouts]
    try:
        for version in versions:
            version.wait_until_ready()
        for name in names:
            for _ in range(getattr(rounds, name)):
                for version in versions:
                    version.measure(name)
    finally:
        for version in versions:
            version.close()
    return [version.ratios() for version in versions]


def commit_of(checkout: Path) -> str | None:
    """The commit of a checkout, if it is one."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=checkout, capture_output=True, text=True, check=False).stdout.strip() or None


def slower(now: Mapping[str, float], before: Mapping[str, float], allowed: float = ALLOWED) -> list[str]:
    """Names of the figures that grew by more than is allowed."""
    return [name for name, value in now.items() if name in before and value > allowed * before[name]]


def report(now: Ratios, before: Ratios, what: str) -> None:
    for name, value in now.items():
        compared = f"{what} {before[name]:.2f} x ({value / before[name] - 1:+.1%})" if name in before else "no mark"
        print(f"{FIGURES[name]}: {value:.2f} x; {compared}")


def compare(asked: argparse.Namespace, rounds: Rounds) -> tuple[Ratios, Ratios]:
    """The figures of this checkout, and those it is compared with."""
    if asked.against is not None:
        now, before = measure_in_turns([asked.of, asked.against], rounds, asked.only)
        return now, before
    marks = json.loads(asked.marks.read_text())
    if marks["rows"] != rounds.rows:
        raise SystemExit(f"{asked.marks.name} was measured with {marks['rows']:,} rows, not with {rounds.rows:,}")
    return measure_in_turns([asked.of], rounds, asked.only)[0], marks["ratios"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 1 if a figure is slower by more than a fifth, twice in a row."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, help="a checkout of another version, measured in the same run")
    parser.add_argument("--of", type=Path, default=ROOT, help="the checkout to measure (default: this one)")
    parser.add_argument("--marks", type=Path, default=MARKS, help="file of marks (default: benchmarks/marks.json)")
    parser.add_argument("--write-marks", action="store_true", help="write the file of marks in place of comparing")
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=list(FIGURES), help="only some figures")
    parser.add_argument("--rows", type=int, default=Rounds.rows, help="rows of the batch")
    parser.add_argument("--rounds", type=float, default=1.0, help="factor on the number of rounds")
    asked = parser.parse_args(arguments)
    counts = {name: max(1, round(getattr(Rounds, name) * asked.rounds)) for name in FIGURES}
    rounds = Rounds(asked.rows, **counts)
    if asked.write_marks:
        (ratios,) = measure_in_turns([asked.of], rounds, asked.only)
        marks = {"rows": rounds.rows, "commit": commit_of(asked.of), "machine": describe_machine(), "ratios": ratios}
        asked.marks.write_text(json.dumps(marks, indent=1) + "\n")
        report(ratios, {}, "")
        return 0
    what = "mark" if asked.against is None else "the other checkout"
    now, before = compare(asked, rounds)
    report(now, before, what)
    late = slower(now, before)
    if late:
        # A false alarm costs more than a second look.
        print("slower by more than 20%; measuring again")
        asked.only = late
        now, before = compare(asked, rounds)
        report(now, before, what)
        late = slower(now, before)
    if late:
        print(f"slower by more than {ALLOWED - 1:.0%}, twice: {', '.join(late)}", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
