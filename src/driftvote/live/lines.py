"""Lines from a file descriptor, one at a time: nothing runs ahead of the answers, and waiting can be cut short.

What has been read but not yet answered is at most one piece (64 kB), as small as a pipe itself; who writes faster than
we answer has to wait. A signal wakes the waiting through a descriptor of its own, so that no line is lost between its
arrival and its answer, which reading with an exception out of the signal handler could not promise.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from driftvote.errors import DriftvoteError

PIECE = 1 << 16
LONGEST = 1 << 24
"""Bytes of a line; a longer one is no row of votes, and is not held in memory."""


class Pause(Enum):
    """What comes instead of a line."""

    END = "the input is over"
    IDLE = "nothing came in the time there was, or a signal did"
    TOO_LONG = "a line that is too long to be one"


class Stop:
    """Whether somebody asked to stop, and the descriptor that wakes who waits for lines."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.wake: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def ask(self, number: int, *_: object) -> None:
        """The first time: stop after this line. The second time: now."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stopping() -> Iterator[Stop]:
    """Heed SIGINT, SIGTERM and SIGHUP by finishing the line in hand; a signal that is ignored stays so (nohup)."""
    stop = Stop()
    numbers = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    with _woken(stop):
        try:
            for number, handler in before.items():
                if handler is not signal.SIG_IGN:
                    signal.signal(number, stop.ask)
            yield stop
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _woken(stop: Stop) -> Iterator[None]:
    """Signals write to a pipe that is waited for beside the input, where a system can wait for pipes at all."""
    if sys.platform == "win32":
        yield
        return
    stop.wake, write_end = os.pipe()
    os.set_blocking(stop.wake, False)
    os.set_blocking(write_end, False)
    before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(stop.wake)
        os.close(write_end)


class LineSource:
    """Lines of a descriptor, without their ends; the last one may lack its own."""

    def __init__(self, descriptor: int, stop: Stop, longest: int = LONGEST) -> None:
        self._descriptor = descriptor
        self._stop = stop
        self._longest = longest
        self._ready: deque[bytes | Pause] = deque()
        self._begun: list[bytes] = []  # pieces of a line whose end has not come
        self._length = 0
        self._dropping = False  # the line in hand is too long: forget it up to its end
        self._over = False

    def next(self, seconds: float | None) -> bytes | Pause:
        """The next line; `Pause.IDLE` if there is none within so many seconds (None: however long it takes)."""
        while not self._ready:
            if self._over:
                return Pause.END
            if not self._wait(seconds):
                return Pause.IDLE
            self._read()
        return self._ready.popleft()

    def _wait(self, seconds: float | None) -> bool:
        if self._stop.wake is None:
            return True
        readable, _, _ = select.select([self._descriptor, self._stop.wake], [], [], seconds)
        if self._stop.wake in readable:
            os.read(self._stop.wake, 64)
            return False
        return bool(readable)

    def _read(self) -> None:
        try:
            piece = os.read(self._descriptor, PIECE)
        except BlockingIOError:
            return
        except OSError as problem:
            raise DriftvoteError(f"standard input cannot be read ({problem.strerror}); pipe lines into it") from None
        if not piece:
            self._over = True
            if self._begun or self._dropping:
                self._end_of_line(b"")
            return
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._end_of_line(end)
        self._hold(rest)

    def _hold(self, part: bytes) -> None:
        if not part or self._dropping:
            return
        self._length += len(part)
        self._begun.append(part)
        if self._length > self._longest:
            self._begun.clear()
            self._dropping = True

    def _end_of_line(self, end: bytes) -> None:
        self._hold(end)
        self._ready.append(Pause.TOO_LONG if self._dropping else b"".join(self._begun))
        self._begun.clear()
        self._length, self._dropping = 0, False


def write_all(descriptor: int, data: bytes) -> None:
    """Everything, at once, however slow the reader is; a reader that has gone is a BrokenPipeError."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # noqa: PERF203  # somebody made the pipe so; waiting is what we want
            select.select([], [descriptor], [])
