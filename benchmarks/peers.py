"""Snorkel, crowd-kit and FlyingSquid beside driftvote on the same votes, taking turns; river by `latency.py`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peer_envs
from benchmarks.ours import label_all, warm_up
from benchmarks.plan import ROOT, Case, Plan
from benchmarks.streams import majority, make_votes, signed
from benchmarks.timing import clock, middle

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
        [str(peer_envs.python_of(name)), "benchmarks/peer_run.py", name, str(votes), str(labels)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(peer_envs.reason(done.stderr))
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def beside(name: str, plan: Plan, folder: Path) -> dict[str, Any]:
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
        ours.append(middle([clock(lambda: label_all(codes, case)) for _ in range(5)]))
    return {
        "rows": case.rows,
        "labelers": case.labelers,
        "rounds": plan.peer_rounds,
        "seconds": middle(theirs),
        "ours_seconds": middle(ours),
        "times_ours": middle([b / a for a, b in zip(ours, theirs, strict=True)]),
        "right": share_right(np.load(labels), truth),
        "ours_right": share_right(label_all(codes, case)[1], truth),
        "majority_right": share_right(majority(signed(codes)) > 0, truth),
    }


def peers(plan: Plan) -> dict[str, Any]:
    """Every batch peer; one that is missing or breaks has its reason in place of figures."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in BATCH:
            line = dict(peer_envs.status_of(name))
            line.pop("steps", None)
            if not line["reason"]:
                try:
                    line |= beside(name, plan, Path(folder))
                except RuntimeError as problem:
                    line["reason"] = str(problem)
            found[name] = line
            print(f"  {name}: {line['reason'] or format(line['times_ours'], '.0f') + ' times our time'}")
    return found


def latency(plan: Plan) -> dict[str, Any]:
    """`update()` and river's detectors, in river's environment if there is one."""
    status = peer_envs.status_of("river")
    python = sys.executable if status["reason"] else str(peer_envs.python_of("river"))
    done = subprocess.run(
        [python, "-m", "benchmarks.latency", plan.name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"measuring update() failed:\n{done.stderr}")
    return {**json.loads(done.stdout), "reason": status["reason"]}
