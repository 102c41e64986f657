"""The state of a watched stream: the model's own file, with what is needed to go on where the stream was."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.files.state import read_state, write_state
from driftvote.live.figures import Counts
from driftvote.models import LabelModel
from driftvote.models.saving import state_of

KEY = "place"
"""Where the header of a state keeps what is said here; `driftvote.load` has no use for it."""


@dataclass
class Place:
    """Where in a stream we are: its name, the lines taken so far, and by what they are known again."""

    stream: str = field(default_factory=lambda: secrets.token_hex(4))
    first: str | None = None  # mark of the first line
    last: str | None = None  # mark of the last line taken
    last_id: Any = None
    counts: Counts = field(default_factory=Counts)

    def as_dict(self) -> dict[str, Any]:
        return {
            "stream": self.stream,
            "first": self.first,
            "last": self.last,
            "last_id": self.last_id,
            "counts": self.counts.as_dict(),
        }

    @classmethod
    def in_file(cls, path: Path) -> Place:
        """The place that a state knows; a state that another command wrote begins a stream here."""
        saved = read_state(path)[0].get(KEY)
        if saved is None:
            return cls()
        return cls(saved["stream"], saved["first"], saved["last"], saved["last_id"], Counts.of(saved["counts"]))


def mark_of(line: bytes | None) -> str:
    """A mark by which a line is known again; None is a line that was too long to be held."""
    return "too long" if line is None else hashlib.blake2b(line, digest_size=12).hexdigest()


class Keeper:
    """Saves model and place to one file, whole or not at all, every so often."""

    def __init__(self, path: Path | None, seconds: float, lines: int | None) -> None:
        self.path = path
        self.saved_at: float | None = None
        self.failures = 0
        self._seconds = seconds
        self._lines = lines
        self._at_line = -1
        self._clock = time.monotonic()

    def wait(self, lines: int) -> float | None:
        """Seconds until the next save by the clock; None if there is nothing to save."""
        if self.path is None or lines == self._at_line:
            return None
        return max(0.0, self._clock + self._seconds - time.monotonic())

    def due(self, lines: int) -> bool:
        """Whether it is time."""
        if self.path is None or lines == self._at_line:
            return False
        if self._lines is not None and lines - self._at_line >= self._lines:
            return True
        return time.monotonic() >= self._clock + self._seconds

    def save(self, model: LabelModel, place: Place) -> None:
        """Save now, unless nothing has come since."""
        if self.path is None or place.counts.lines == self._at_line:
            return
        header, arrays = state_of(model)
        self._clock = time.monotonic()  # also after a failure: the next attempt is at the next interval
        write_state(self.path, {**header, KEY: place.as_dict()}, arrays)
        self._at_line = place.counts.lines
        self.saved_at = time.time()


class Seen:
    """Skips the lines of an input that begins again, up to where the state was."""

    def __init__(self, place: Place, wanted: bool) -> None:
        self._lines = place.counts.lines
        self._last = place.last
        self.left = self._lines if wanted else 0

    def skips(self, line: bytes | None) -> bool:
        """Whether this line was taken before; the last such line must be the one that the state remembers."""
        if not self.left:
            return False
        self.left -= 1
        if not self.left and mark_of(line) != self._last:
            raise DriftvoteError(
                f"line {self._lines:,} of the input is not the line that the state took last, so this is not the same"
                " stream from its beginning; leave --skip-seen out if the input goes on where the state was"
            )
        return True

    def check_end(self) -> None:
        """The input must not be over before."""
        if self.left:
            raise DriftvoteError(
                f"the input ended after line {self._lines - self.left:,}, and the state has taken {self._lines:,};"
                " leave --skip-seen out if the input goes on where the state was"
            )
