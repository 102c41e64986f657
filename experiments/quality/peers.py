"""Label models of other projects, each in an environment of its own below `envs/`; results are cached by content.

An environment is made with pip from the registry. A peer that cannot be installed is reported with the reason, and the
rest goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.quality.scoring import labels_of, score
from experiments.quality.streams import GoldStream
from experiments.runs import Numbers, write_json

PROGRAM = Path(__file__).with_name("peer_program.py")
TORCH = "torch==2.13.0"
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    # Newer versions of scikit-learn refuse the classes of crowd-kit 1.4.
    "crowdkit": ("crowd-kit==1.4.2", "scikit-learn==1.5.2"),
    "snorkel": (TORCH, "snorkel==0.10.0"),
    "hyperlm": (TORCH, "hyperlm==0.0.5"),
}
"""What pip installs, by environment; the peer is the requirement that has its name."""


@dataclass(frozen=True)
class Peer:
    """A label model of another project: its title, its environment and its method in `peer_program`."""

    title: str
    environment: str
    method: str
    whole_stream: bool = True  # it sees the whole stream before it labels the first row

    @property
    def key(self) -> str:
        """What a cached result depends on beside the votes."""
        return f"{ENVIRONMENTS[self.environment]} {self.method} {PROGRAM.read_text(encoding='utf-8')}"


PEERS = (
    Peer("Wawa (crowd-kit)", "crowdkit", "wawa"),
    Peer("Dawid-Skene (crowd-kit)", "crowdkit", "dawid_skene"),
    Peer("Snorkel's LabelModel", "snorkel", "snorkel"),
    Peer("Snorkel, fitted anew every 1,000 rows", "snorkel", "patient", whole_stream=False),
    Peer("HyperLM", "hyperlm", "hyperlm"),
)


def install(name: str, folder: Path) -> str | None:
    """Make an environment if it is not there; None, or the reason why there is none."""
    home, wanted = folder / name, list(ENVIRONMENTS[name])
    status = home / "installed.json"
    if status.exists() and json.loads(status.read_text()) == wanted:
        return None
    print(f"peers: installing {', '.join(wanted)}", file=sys.stderr, flush=True)
    try:
        venv.create(home, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        return shorten(str(problem))
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        return shorten(done.stdout + done.stderr)
    write_json(status, wanted)
    return None


def shorten(output: str) -> str:
    """The line of pip or Python that says why, without addresses and paths of this machine.

    >>> shorten("Looking in /a/b\\nERROR: No matching distribution found for x==1\\n")
    'ERROR: No matching distribution found for x==1'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"ERROR|\w*(Error|Exception)\b", line)] or lines or ["no message"]
    return re.sub(r"\S*/\S*", "...", errors[-1])[:200]


def label_with(
    peer: Peer, streams: Mapping[str, GoldStream], out: Path, python: Path | None = None
) -> dict[str, Path | str]:
    """The file with a peer's probabilities for each stream, or why there is none. What is cached is not done again."""
    folder = out / "peers" / peer.method
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Path | str] = {name: folder / f"{digest(peer, stream)}.npz" for name, stream in streams.items()}
    missing = {name: path for name, path in found.items() if isinstance(path, Path) and not path.exists()}
    if not missing:
        return found
    lines = []
    for name, path in missing.items():
        source = path.with_suffix(".votes.npz")
        np.savez(source, votes=streams[name].votes, n_classes=streams[name].n_classes)
        lines.append(f"{source.resolve()}\t{path.resolve()}\n")
    interpreter = python or out / "envs" / peer.environment / "bin" / "python"
    # One core each: peers run side by side. Nothing of this project is on the path of a peer.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(interpreter), str(PROGRAM), peer.method],
        input="".join(lines),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for place, (name, path) in enumerate(missing.items()):
        path.with_suffix(".votes.npz").unlink()
        answer: Any = answers[place] if place < len(answers) else {"error": shorten(done.stderr)}
        if "error" in answer:
            found[name] = shorten(answer["error"])
    return found


def digest(peer: Peer, stream: GoldStream) -> str:
    """A hash of the votes, of the versions and of the program."""
    made = hashlib.sha256(f"{peer.key} {stream.votes.shape} {stream.n_classes}".encode())
    made.update(np.ascontiguousarray(stream.votes, dtype=np.int64).tobytes())
    return made.hexdigest()[:24]


def measure_peer(peer: Peer, streams: Mapping[str, GoldStream], out: Path) -> Numbers:
    """Gains of a peer by stream; a stream on which it fails counts as majority and is named."""
    files = label_with(peer, streams, out)
    failed = {name: path for name, path in files.items() if isinstance(path, str)}
    if len(failed) == len(files):
        return {"reason": next(iter(failed.values()), "no streams")}
    gains = {}
    for name, path in files.items():
        if isinstance(path, Path):
            with np.load(path) as found:
                gains[name] = score(streams[name], labels_of(found["proba"]))["gain"]
        else:
            gains[name] = 0.0
    return {"gains": gains, "failed": failed}


def measure_peers(streams: Mapping[str, GoldStream], out: Path, jobs: int, peers: Sequence[Peer] = PEERS) -> Numbers:
    """Figures of every peer by its title; one that is missing has its reason in place of gains."""
    reasons = {name: install(name, out / "envs") for name in dict.fromkeys(peer.environment for peer in peers)}
    usable = [peer for peer in peers if reasons[peer.environment] is None]
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(usable, pool.map(lambda peer: measure_peer(peer, streams, out), usable), strict=True))
    made: Numbers = {}
    for peer in peers:
        figures = found.get(peer) or {"reason": f"not installed: {reasons[peer.environment]}"}
        made[peer.title] = {"whole_stream": peer.whole_stream, "versions": ENVIRONMENTS[peer.environment], **figures}
        if "reason" in figures:
            print(f"peers: {peer.title} is left out: {figures['reason']}", file=sys.stderr, flush=True)
        for name, reason in figures.get("failed", {}).items():
            print(f"peers: {peer.title} failed on {name}: {reason}", file=sys.stderr, flush=True)
    return made
