"""Lines from a file descriptor, one at a time, with a wait that a timeout or a signal can end.

At most one block (64 kB, the size of a pipe) is read ahead of the answers; a faster writer has to wait. A signal ends
the wait through a pipe of its own: an exception raised by the signal handler could lose a line between `read` and its
answer.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

from driftvote.errors import DriftvoteError

READ_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 24
"""A longer line is not a row of votes; it is skipped without being held in memory."""


PIPE_PART = 4096
"""Bytes that a pipe takes without blocking if it can be written to at all (PIPE_BUF)."""


ASK_AGAIN = 0.02
"""Seconds after which a full pipe is asked again whether it has room for a long answer."""


class Pause(Enum):
    """What `LineSource.next` returns when there is no line."""

    END = "end of input"
    IDLE = "no line before the timeout or a signal"
    TOO_LONG = "a line of more than MAX_LINE_BYTES"


class Stop:
    """The signal that asked the loop to stop, if any, and the descriptor that ends a wait for lines."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.wake: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def ask(self, number: int, *_: object) -> None:
        """Signal handler. The first signal stops after the current line, the second at once."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A `Stop` that SIGINT, SIGTERM and SIGHUP set; a signal that was ignored before stays ignored (nohup)."""
    stop = Stop()
    numbers = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    with _wakeup_pipe(stop):
        try:
            for number, handler in before.items():
                if handler is not signal.SIG_IGN:
                    signal.signal(number, stop.ask)
            yield stop
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _wakeup_pipe(stop: Stop) -> Iterator[None]:
    """Make signals write to a pipe that `select` can wait for beside the input; Windows cannot select on pipes."""
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
    """Lines of a descriptor without their line ends; the last line may lack its own."""

    def __init__(self, descriptor: int, stop: Stop, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._descriptor = descriptor
        self._stop = stop
        self._max_bytes = max_bytes
        self._ready: deque[bytes | Pause] = deque()
        self._rest = bytearray()  # of the line whose end has not been read yet
        self._too_long = False  # the rest was discarded because the line is too long
        self._over = False

    def next(self, seconds: float | None) -> bytes | Pause:
        """The next line, or `Pause.IDLE` if none arrives within so many seconds (None: wait without limit)."""
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
            block = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return
        except OSError as problem:
            raise DriftvoteError(f"standard input cannot be read ({problem.strerror}); pipe lines into it") from None
        if not block:
            self._over = True
            block = b"\n" if self._rest or self._too_long else b""  # ends the last line
        *ends, rest = block.split(b"\n")
        for end in ends:
            self._add(end)
            self._ready.append(Pause.TOO_LONG if self._too_long else bytes(self._rest))
            self._rest.clear()
            self._too_long = False
        self._add(rest)

    def _add(self, part: bytes) -> None:
        if not self._too_long:
            self._rest += part
        if len(self._rest) > self._max_bytes:
            self._rest.clear()
            self._too_long = True


class LineSink:
    """Answers to a descriptor, in parts that a pipe takes at once: a wait for a slow reader can end with a signal."""

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor = descriptor
        self._stop = stop
        self._longest = 0  # bytes of an answer so far

    def wait(self, seconds: float | None) -> bool:
        """Whether the next answer can be written, by what they are like; False after so many seconds or a signal.

        None: wait without limit. No event tells when a pipe has room for more than a part, so it is asked often.
        """
        if not self._wait_for_part(seconds):
            return False
        if self._longest <= PIPE_PART or _has_room(self._descriptor, self._longest):
            return True
        wake = [] if self._stop.wake is None else [self._stop.wake]
        select.select(wake, [], [], ASK_AGAIN if seconds is None else min(seconds, ASK_AGAIN))
        return False

    def _wait_for_part(self, seconds: float | None) -> bool:
        if sys.platform == "win32":
            return True
        wake = [] if self._stop.wake is None else [self._stop.wake]
        readable, writable, _ = select.select(wake, [self._descriptor], [], seconds)
        if readable:
            os.read(readable[0], 64)
        return bool(writable)

    def write(self, data: bytes) -> bool:
        """Write an answer, waiting for a slow reader; False if a signal came while nobody read the rest of it.

        Raises BrokenPipeError when the reader has closed the pipe.
        """
        rest = memoryview(data)
        self._longest = max(self._longest, len(rest))
        while rest:  # the caller has waited for the first part
            with suppress(BlockingIOError):  # the pipe is non-blocking, and somebody else writes to it
                rest = rest[os.write(self._descriptor, rest[:PIPE_PART]) :]
            if rest and not self._wait_for_part(0.0 if self._stop else None) and self._stop:
                return False
        return True


def _has_room(descriptor: int, size: int) -> bool:
    """Whether a pipe takes so many bytes without blocking, or is empty; where the system does not tell, it does.

    What is in a pipe may take twice its size, because a part of it does not share a page with the next one.
    """
    if sys.platform != "linux" or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return True
    import fcntl
    import termios

    waiting = array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
    return not waiting[0] or 2 * waiting[0] + size + PIPE_PART <= fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)
