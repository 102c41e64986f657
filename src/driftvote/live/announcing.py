"""Word of what happened: sentences on standard error, events in a file, messages to a webhook."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

A_SECOND = 10
"""Complaints about lines in a second; the rest is counted, so that a flood of them does not drown everything else."""


class Voice:
    """Sentences on standard error; nobody listening there is no reason to stop."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._lock = threading.Lock()
        self._second = 0
        self._said = self.unsaid = 0

    def say(self, sentence: str) -> None:
        """Something worth knowing."""
        if not self.quiet:
            self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Something that is said also to those who want to hear of nothing but errors."""
        with self._lock, suppress(OSError, ValueError):
            print(f"driftvote: {sentence}", file=sys.stderr, flush=True)

    def complain(self, sentence: str) -> None:
        """About a line; only so many times a second."""
        now = int(time.monotonic())
        if now != self._second:
            self._second, self._said = now, 0
        if self._said >= A_SECOND:
            self.unsaid += 1
            return
        self._said += 1
        more = f" (and {self.unsaid:,} more before it)" if self.unsaid else ""
        self.unsaid = 0
        self.warn(sentence + more)


class EventFile:
    """Events as JSON lines, each on disk before the next line of votes is read.

    After a crash some rows are labeled again, and their events come again; those that the file has are left out.
    """

    def __init__(self, path: Path, stream: str) -> None:
        self._stream = stream
        self._known = {_key(record) for record in _records(path) if record.get("stream") == stream}
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self._finish_line()

    def _finish_line(self) -> None:
        """A crash may have left the beginning of a line."""
        size = os.fstat(self._file).st_size
        if size:
            os.lseek(self._file, size - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":
                os.write(self._file, b"\n")

    def add(self, record: dict[str, Any]) -> None:
        """Append a record, and wait until it is on disk."""
        if _key(record) in self._known:
            return
        os.write(self._file, (json.dumps(record) + "\n").encode())
        with suppress(OSError):  # a pipe or a terminal cannot be synced
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _key(record: dict[str, Any]) -> tuple[Any, Any, Any]:
    return record.get("type"), record.get("number"), record.get("row")


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict):
                    yield record
