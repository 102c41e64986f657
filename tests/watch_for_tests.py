"""A watched stream in a process of its own, talked to through its pipes, and votes as lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from processes_for_tests import run_after

CLASSES = ["safe", "unsafe"]
JUDGES = [f"judge-{letter}@v1" for letter in "abcdef"]


def votes_that_drift(n_rows: int, change: int, seed: int = 0, abstain: float = 0.0) -> np.ndarray:
    """Six judges; the first is right 90 times in a hundred and 55 from row `change` on, the others 80 times."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n_rows, 1))
    accuracy = np.full((n_rows, len(JUDGES)), 0.8)
    accuracy[:, 0] = np.where(np.arange(n_rows) < change, 0.9, 0.55)
    votes = np.where(rng.random(accuracy.shape) < accuracy, truth, 1 - truth)
    return np.where(rng.random(accuracy.shape) < abstain, -1, votes).astype(np.int8)


def row_of(codes: Any) -> dict[str, str | None]:
    """Votes as a line names them."""
    return {name: None if code < 0 else CLASSES[code] for name, code in zip(JUDGES, codes, strict=True)}


def line_of(number: int, codes: Any, **more: Any) -> str:
    return json.dumps({"id": f"m-{number}", "votes": row_of(codes), **more})


def command(*options: object) -> list[str]:
    return [sys.executable, "-m", "driftvote", "watch", *map(str, options)]


ENVIRONMENT = {**os.environ, "no_proxy": "127.0.0.1,localhost"}


def watch(
    lines: str | bytes | Path, *options: object, code: int = 0, classes: str = "safe,unsafe"
) -> tuple[list[dict[str, Any]], str]:
    """The answers to lines, and what was said on standard error."""
    data = lines.read_bytes() if isinstance(lines, Path) else lines.encode() if isinstance(lines, str) else lines
    arguments = command(*(["--classes", classes] if classes else []), *options)
    done = subprocess.run(arguments, input=data, capture_output=True, check=False, env=ENVIRONMENT)
    said = done.stderr.decode()
    assert done.returncode == code, said
    return [json.loads(line) for line in done.stdout.splitlines()], said


class Talk:
    """A process that is asked line by line."""

    def __init__(self, *options: object, setup: str = "") -> None:
        pipe, arguments = subprocess.PIPE, command("--classes", "safe,unsafe", *options)
        arguments = run_after(setup, arguments) if setup else arguments
        self.process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT)

    def ask(self, line: str | bytes) -> dict[str, Any]:
        """A line and its answer; nothing else has to be sent for the answer to come."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        data = line.encode() if isinstance(line, str) else line
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> str:
        """Close the input; what was said on standard error."""
        _, said = self.process.communicate(timeout=60)
        return said.decode()
