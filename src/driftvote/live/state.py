"""The saved state of a stream: the model, and how far the input has been read."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError, StateError
from driftvote.files.state import read_state, write_state
from driftvote.live.metrics import Counts
from driftvote.models import LabelModel

HEADER_KEY = "position"
"""Entry of the state's header that holds the position; `driftvote.load` ignores it."""


def hash_line(line: bytes | None) -> str:
    """A hash that identifies a line; None stands for a line that was too long to be held."""
    return "too long" if line is None else hashlib.blake2b(line, digest_size=12).hexdigest()


@dataclass
class Position:
    """How far a stream has been read: its name, the counters, and hashes of its first and last line."""

    stream: str = field(default_factory=lambda: secrets.token_hex(4))
    first: str | None = None
    last: str | None = None
    last_id: Any = None
    counts: Counts = field(default_factory=Counts)
    to_skip: int = 0  # lines of the input that were taken before; not saved

    @classmethod
    def read(cls, path: Path, skip_seen: bool = False) -> Position:
        """The position in a state file; a new one if another command wrote the state.

        With `skip_seen` the input starts from its beginning, so the lines taken before have to be skipped.
        """
        saved = read_state(path)[0].get(HEADER_KEY)
        if saved is None:
            return cls()
        try:
            position = cls(**{**saved, "counts": Counts.from_dict(saved["counts"])})
            texts, n_lines = (position.stream, position.first or "", position.last or ""), position.counts.lines
            if not all(isinstance(text, str) for text in texts) or type(n_lines) is not int or n_lines < 0:
                raise ValueError(f"{position!r}")
        except (TypeError, ValueError, KeyError, AttributeError) as problem:
            raise StateError(f"{path}: the position in the stream cannot be read ({problem})") from problem
        position.to_skip = position.counts.lines if skip_seen else 0
        return position

    def to_dict(self) -> dict[str, Any]:
        """The position for the header of a state."""
        values = asdict(self)
        del values["to_skip"]
        return values

    def skips(self, line: bytes | None) -> bool:
        """Whether this line was taken before; an error if the last such line is not the one of the state."""
        if not self.to_skip:
            return False
        self.to_skip -= 1
        if not self.to_skip and hash_line(line) != self.last:
            raise DriftvoteError(
                f"line {self.counts.lines:,} of the input differs from the last line that the state has taken, so this"
                " is not the same stream from its start; omit --skip-seen if the input continues where the state ended"
            )
        return True

    def check_end(self) -> None:
        """Raise an error if the input ended before all lines of the state were skipped."""
        if self.to_skip:
            raise DriftvoteError(
                f"the input ended after line {self.counts.lines - self.to_skip:,}, but the state has taken"
                f" {self.counts.lines:,}; omit --skip-seen if the input continues where the state ended"
            )


class StateSaver:
    """Saves model and position to one file atomically, at intervals of time or of lines."""

    def __init__(self, path: Path | None, seconds: float, lines: int | None) -> None:
        self.path = path
        self.saved_at: float | None = None
        self._seconds = seconds
        self._lines = lines
        self._saved_lines = -1
        self._last_attempt = time.monotonic()

    def wait(self, lines: int) -> float | None:
        """Seconds until the next save is due; None if there is nothing to save."""
        if self.path is None or lines == self._saved_lines:
            return None
        return max(0.0, self._last_attempt + self._seconds - time.monotonic())

    def is_due(self, lines: int) -> bool:
        """Whether to save now, after so many lines."""
        wait = self.wait(lines)
        if wait is None:
            return False
        return wait == 0.0 or (self._lines is not None and lines - self._saved_lines >= self._lines)

    def save(self, model: LabelModel, position: Position) -> None:
        """Save now, unless no line was taken since the last save."""
        if self.path is None or position.counts.lines == self._saved_lines:
            return
        header, arrays = model.to_state()
        self._last_attempt = time.monotonic()  # set before writing: after a failure, wait for the next interval
        write_state(self.path, {**header, HEADER_KEY: position.to_dict()}, arrays)
        self._saved_lines = position.counts.lines
        self.saved_at = time.time()
