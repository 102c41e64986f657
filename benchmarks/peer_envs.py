"""An environment for every peer below .bench-envs/, made by `make bench-peers`.

Peers pin each other's dependencies apart, so each has its own. What cannot be installed, or not imported, is
written down with the reason and the suite goes on without it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.plan import ROOT

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


def main() -> None:
    for peer in PEERS:
        status = status_of(peer.name) if up_to_date(peer) else install(peer)
        print(f"{peer.distribution}: {status['version'] or 'not installed: ' + status['reason']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
