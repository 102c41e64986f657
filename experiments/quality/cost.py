"""The time of the default model over that of the former default: two checkouts, measured in turns."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.check import Rounds, measure_in_turns
from experiments.runs import Numbers

ROOT = Path(__file__).parents[2]
FORMER_COMMIT = "2671d7e"
FIGURES = ("row", "batch")
ROUNDS = Rounds(batch=9, row=30)


def check_out(folder: Path, commit: str = FORMER_COMMIT) -> str | None:
    """Unpack a commit into a folder; None, or the reason why that cannot be done."""
    if (folder / "src").exists():
        return None
    done = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        return f"commit {commit} is not in this checkout"
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return None


def measure_cost(out: Path, rounds: Rounds = ROUNDS) -> Numbers:
    """The ratio of CPU times of `update` on one row and of `label_stream` on a million; six labelers, two classes."""
    former = out / "former"
    if reason := check_out(former):
        print(f"cost: not measured: {reason}", file=sys.stderr)
        return {"reason": reason}
    now, before = measure_in_turns([ROOT, former], rounds, FIGURES)
    return {name: now[name] / before[name] for name in FIGURES}
