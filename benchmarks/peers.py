"""Snorkel, crowd-kit and FlyingSquid beside driftvote on the same votes, taking turns; river by `latency.py`.

`python -m benchmarks.peers` (`make bench-peers`) makes an environment for every peer below .bench-envs/: peers pin each
other's dependencies apart. One that cannot be installed or imported is recorded with the reason and left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import ROOT, Case, clock, label_all, majority, make_votes, to_signed, warm_up
from benchmarks.throughput import SuitePlan

ENVS = ROOT / ".bench-envs"
STATUS = "status.json"
# Installed before what needs it: left to themselves, those would pull builds for graphics cards, of gigabytes.
TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Peer:
    """How a peer is installed, and the statement that shows that it works."""

    name: str
    distribution: str
    steps: tuple[tuple[str, ...], ...]
    proof: str


PEERS = (
    Peer("snorkel", "snorkel", ((TORCH,), ("snorkel==0.10.0",)), "from snorkel.labeling.model import LabelModel"),
    Peer("crowdkit", "crowd-kit", ((TORCH,), ("crowd-kit==1.4.2",)), "from crowdkit.aggregation import DawidSkene"),
    # The newest pgmpy no longer has a name that FlyingSquid imports; 0.1.26 is the last that was seen to work.
    Peer(
        "flyingsquid",
        "flyingsquid",
        ((TORCH,), ("flyingsquid==0.0.0a0", "pgmpy==0.1.26")),
        "from flyingsquid.label_model import LabelModel",
    ),
    # river takes turns with update() in one process, so driftvote is installed beside it.
    Peer("river", "river", (("-e", ".", "river==0.26.1"),), "from river.drift import ADWIN; import driftvote"),
)


def python_of(name: str) -> Path:
    """The interpreter of a peer's environment."""
    return ENVS / name / "bin" / "python"


def reason(output: str) -> str:
    """The line of pip or Python that says why, without addresses and paths of this machine."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"ERROR|\w*Error\b", line)] or lines or ["no message"]
    return re.sub(r"\S*/\S*", "...", errors[-1])[:300]


def run(command: list[str]) -> str | None:
    """None when the command went well, otherwise the reason."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return reason(done.stdout + done.stderr) if done.returncode else None


def version_of(name: str, distribution: str) -> str:
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    return subprocess.run([str(python_of(name)), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def install(peer: Peer) -> dict[str, Any]:
    """Make the environment; its status says the version, or why there is none."""
    home = ENVS / peer.name
    venv.create(home, with_pip=True, clear=True)
    pip = [str(python_of(peer.name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    trouble = None
    for step in peer.steps:
        trouble = trouble or run([*pip, *step])
    trouble = trouble or run([str(python_of(peer.name)), "-c", peer.proof])
    status: dict[str, Any] = {"steps": [list(step) for step in peer.steps], "reason": trouble}
    status["version"] = None if trouble else version_of(peer.name, peer.distribution)
    (home / STATUS).write_text(json.dumps(status, indent=1))
    return status


def status_of(name: str) -> dict[str, Any]:
    """What installing said; a peer never installed has that as its reason."""
    path = ENVS / name / STATUS
    if not path.exists():
        return {"version": None, "reason": "not installed; `make bench-peers` does"}
    return dict(json.loads(path.read_text()))


def up_to_date(peer: Peer) -> bool:
    """Installed with the steps of today; a failure is tried again."""
    status = status_of(peer.name)
    return bool(status["version"]) and status.get("steps") == [list(step) for step in peer.steps]


BATCH = {
    "snorkel": "Snorkel `LabelModel`, fit and predict",
    "crowdkit": "crowd-kit `DawidSkene`, fit_predict",
    "flyingsquid": "FlyingSquid `LabelModel`, fit and predict",
}
SLOW = ("flyingsquid",)


def share_right(labels: np.ndarray, truth: np.ndarray) -> float:
    return float((labels == truth).mean())


def run_peer(name: str, votes: Path, labels: Path) -> float:
    """Seconds that the peer says it took, in a process of its own."""
    done = subprocess.run(
        [str(python_of(name)), "benchmarks/peer_run.py", name, str(votes), str(labels)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(reason(done.stderr))
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def _measure_beside(name: str, plan: SuitePlan, folder: Path) -> dict[str, Any]:
    """One peer and driftvote in turns on the same votes."""
    # Restless: at this length the other streams hardly drift, and drift is what the votes are labeled for.
    case = Case(plan.slow_peer_rows if name in SLOW else plan.peer_rows, stream="restless")
    codes, truth = make_votes(case)
    votes, labels = folder / "votes.npy", folder / "labels.npy"
    np.save(votes, codes)
    warm_up(codes, case)
    ours, theirs = [], []
    for _ in range(plan.peer_rounds):
        theirs.append(run_peer(name, votes, labels))
        ours.append(median([clock(lambda: label_all(codes, case)) for _ in range(5)]))
    return {
        "rows": case.rows,
        "labelers": case.labelers,
        "rounds": plan.peer_rounds,
        "seconds": median(theirs),
        "ours_seconds": median(ours),
        "times_ours": median([b / a for a, b in zip(ours, theirs, strict=True)]),
        "right": share_right(np.load(labels), truth),
        "ours_right": share_right(label_all(codes, case)[1], truth),
        "majority_right": share_right(majority(to_signed(codes)) > 0, truth),
    }


def measure_peers(plan: SuitePlan) -> dict[str, Any]:
    """Every batch peer; one that is missing or breaks has its reason in place of figures."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in BATCH:
            line = dict(status_of(name))
            line.pop("steps", None)
            if not line["reason"]:
                try:
                    line |= _measure_beside(name, plan, Path(folder))
                except RuntimeError as problem:
                    line["reason"] = str(problem)
            found[name] = line
            print(f"  {name}: {line['reason'] or format(line['times_ours'], '.0f') + ' times our time'}")
    return found


def measure_latency(plan: SuitePlan) -> dict[str, Any]:
    """`update()` and river's detectors, in river's environment if there is one."""
    status = status_of("river")
    python = sys.executable if status["reason"] else str(python_of("river"))
    done = subprocess.run(
        [python, "-m", "benchmarks.latency", plan.name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"measuring update() failed:\n{done.stderr}")
    return {**json.loads(done.stdout), "reason": status["reason"]}


def main() -> None:
    for peer in PEERS:
        status = status_of(peer.name) if up_to_date(peer) else install(peer)
        print(f"{peer.distribution}: {status['version'] or 'not installed: ' + status['reason']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
