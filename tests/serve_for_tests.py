"""The service as a child process on a free port, and requests to it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from processes_for_tests import run_after

CLASSES = ["safe", "unsafe"]
NAMES = ["a", "b", "c", "d", "e", "f"]


class Server:
    """A running service; a context manager that stops it."""

    def __init__(self, data: Path, *options: Any, host: str = "127.0.0.1", port: int = 0, before: str = "") -> None:
        self.data = data
        data.parent.mkdir(parents=True, exist_ok=True)
        self.log = data.with_suffix(".log")
        command = [sys.executable, "-m", "driftvote", "serve", "--data", data, "--port", port, "--host", host, *options]
        command = run_after(before, list(map(str, command))) if before else list(map(str, command))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.port = port or self.wait()
        self.url = f"http://127.0.0.1:{self.port}"

    def wait(self) -> int:
        """Wait until it listens, and return its port."""
        line = self.process.stdout.readline()
        assert line.startswith("driftvote serves http://"), (line, self.read_log())
        return int(line.rsplit(":", 1)[1].strip().strip("/"))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(300)
        self.process.stdout.close()
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()

    def read_log(self) -> str:
        return self.log.read_text()

    def connect(self, timeout: float = 300.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Status and body of an answer; the body is decoded if it is JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = self.connect()
        try:
            connection.request(method, path, data, {"Content-Type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            text = answer.read()
            kind = answer.getheader("content-type", "")
            return answer.status, json.loads(text) if kind.startswith("application/json") else text
        finally:
            connection.close()

    def create(self, name: str = "s", **settings: Any) -> str:
        """Create a stream, and return its path."""
        path = f"/v1/streams/{quote(name, safe='')}"
        status, answer = self.call("PUT", path, {"classes": CLASSES} | settings)
        assert status in (200, 201), answer
        return path

    def label(self, path: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        status, answer = self.call("POST", f"{path}/rows", {"rows": rows})
        assert status == 200, answer
        return answer


def make_rows(n_rows: int, seed: int = 0, fails_at: int | None = None, prefix: str = "m") -> list[dict[str, Any]]:
    """Rows with ids, times and data; from `fails_at` on, the first labeler is wrong more often than right."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_rows)
    right = rng.random((n_rows, len(NAMES))) < np.array([0.9, 0.85, 0.8, 0.8, 0.75, 0.7])
    if fails_at is not None:
        right[fails_at:, 0] = rng.random(n_rows - fails_at) < 0.35
    silent = rng.random(right.shape) < 0.1
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    return [
        {
            "id": f"{prefix}{row}",
            "time": f"2026-01-01T00:00:00.{row:06d}Z",
            "votes": {
                name: None if silent[row, place] else CLASSES[votes[row, place]] for place, name in enumerate(NAMES)
            },
            "data": {"text": f"message {row}"},
        }
        for row in range(n_rows)
    ]
