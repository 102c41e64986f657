"""Where messages go: a log on standard error, a file of events, a webhook."""

from __future__ import annotations

import base64
import json
import os
import queue
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from driftvote._version import __version__
from driftvote.errors import DriftvoteError, one_line

LINE_ERRORS_PER_SECOND = 10
"""Errors about lines that are logged in a second; the others are only counted."""


class Log:
    """Logger on standard error; write errors are ignored."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._lock = threading.Lock()
        self._second = 0
        self._logged = self._suppressed = 0

    def info(self, message: str) -> None:
        """Log a message, unless `quiet` is set."""
        if not self.quiet:
            self.warn(message)

    def warn(self, message: str) -> None:
        """Log a message, even if `quiet` is set."""
        with self._lock, suppress(OSError, ValueError):
            print(f"driftvote: {one_line(message)}", file=sys.stderr, flush=True)

    def line_error(self, message: str) -> None:
        """Log an error about a line, at most `LINE_ERRORS_PER_SECOND` times a second."""
        now = int(time.monotonic())
        if now != self._second:
            self._second, self._logged = now, 0
        if self._logged >= LINE_ERRORS_PER_SECOND:
            self._suppressed += 1
            return
        self._logged += 1
        more = f" (and {self._suppressed:,} more before it)" if self._suppressed else ""
        self._suppressed = 0
        self.warn(message + more)


class EventFile:
    """Appends events as JSON lines, each synced to disk before the next line of votes is read.

    After a crash some rows are labeled again and their events come again; events that the file has are not repeated.
    """

    def __init__(self, path: Path, stream: str) -> None:
        self._written = {_event_key(record) for record in _read_records(path) if record.get("stream") == stream}
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self._end_last_line()

    def _end_last_line(self) -> None:
        """Add a line end if a crash left an incomplete line."""
        size = os.fstat(self._file).st_size
        if size:
            os.lseek(self._file, size - 1, os.SEEK_SET)
            if os.read(self._file, 1) != b"\n":
                os.write(self._file, b"\n")

    def add(self, record: dict[str, Any]) -> None:
        """Append a record and wait until it is on disk."""
        if _event_key(record) in self._written:
            return
        os.write(self._file, (json.dumps(record) + "\n").encode())
        with suppress(OSError):  # a pipe or a terminal cannot be synced
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _event_key(record: dict[str, Any]) -> tuple[Any, Any, Any]:
    return record.get("type"), record.get("number"), record.get("row")


def _read_records(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict):
                    yield record


QUEUE_SIZE = 100
"""Messages that may wait for delivery. Events are rare, so a full queue means that the receiver does not work."""

ATTEMPTS = 6
FIRST_PAUSE = 0.5  # seconds; doubled after every attempt
REQUEST_TIMEOUT = 5.0
CLOSE_TIMEOUT = 5.0
"""Seconds that the end of the stream waits for messages in delivery."""

RETRY_CODES = (408, 425, 429)
"""HTTP status codes below 500 after which another attempt may succeed."""


class Webhook:
    """Posts JSON messages to a URL from a worker thread, so that labeling never waits for the receiver.

    A message that cannot be delivered after `ATTEMPTS` attempts is given up and reported with `warn`.
    """

    def __init__(
        self,
        url: str,
        warn: Callable[[str], None],
        token: str | None = None,
        first_pause: float = FIRST_PAUSE,
        timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self._url, self._host, self._headers = _check_url(url)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._warn = warn
        self._first_pause = first_pause
        self._timeout = timeout
        self.posts = {"delivered": 0, "given_up": 0, "dropped": 0}
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()  # None ends the thread
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._opener = urllib.request.build_opener(_Opener)
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def post(self, message: dict[str, Any]) -> None:
        """Queue a message; it is dropped and counted if the queue is full."""
        if self._queue.qsize() < QUEUE_SIZE:
            self._queue.put(message)
            return
        self.posts["dropped"] += 1
        if self.posts["dropped"] == 1:
            self._warn(f"webhook {self._host}: {QUEUE_SIZE} messages are waiting; further ones are dropped")

    def close(self, seconds: float = CLOSE_TIMEOUT) -> None:
        """Wait at most so many seconds for queued messages, and report those that were not delivered."""
        self._deadline = time.monotonic() + seconds
        self._closing.set()
        self._queue.put(None)
        self._thread.join(seconds)
        left = sum(message is not None for message in list(self._queue.queue)) + self._thread.is_alive()
        if left:
            self._warn(f"webhook {self._host}: {left} messages were not delivered before the end")

    def _run(self) -> None:
        while (message := self._queue.get()) is not None:
            error = self._deliver(json.dumps(message).encode())
            if error is None:
                self.posts["delivered"] += 1
            else:
                self.posts["given_up"] += 1
                self._warn(f"webhook {self._host}: {error}; this message is given up: {message.get('text')}")

    def _deliver(self, body: bytes) -> str | None:
        """None once the message is delivered, otherwise the error of the last attempt."""
        pause, error = self._first_pause, ""
        for attempt in range(ATTEMPTS):
            if attempt:
                if time.monotonic() + pause > self._deadline:
                    return f"{error} (there was no time for another attempt)"
                self._sleep(pause)
                pause *= 2
            error, retry = self._attempt(body)
            if not error:
                return None
            if not retry:
                return error
        return f"{error} ({ATTEMPTS} attempts)"

    def _sleep(self, seconds: float) -> None:
        """Sleep; `close` ends the pause early once, so that the last attempts fit into the remaining time."""
        if self._closing.is_set():
            time.sleep(seconds)
        else:
            self._closing.wait(seconds)

    def _attempt(self, body: bytes) -> tuple[str, bool]:
        """The error of one attempt (empty on success), and whether to try again."""
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        try:
            # The status says all: the body is not read, as it may come in for minutes.
            self._opener.open(request, timeout=self._timeout).close()
        except urllib.error.HTTPError as problem:
            problem.close()
            return f"it answered {problem.code} {problem.reason}", problem.code >= 500 or problem.code in RETRY_CODES
        except urllib.error.URLError as problem:
            return f"it cannot be reached ({problem.reason})", True
        except (OSError, ValueError) as problem:  # a timeout while reading, or a reply that is not HTTP
            return f"it did not answer properly ({problem or type(problem).__name__})", True
        except Exception as problem:  # http.client has its own errors for broken replies
            return f"it did not answer properly ({type(problem).__name__})", True
        return "", False


class _Opener(urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a redirected POST would become a GET without a body. Hangs up on a late reply."""

    def redirect_request(self, *_: Any) -> None:
        return None

    def do_open(self, http_class: Any, req: Any, **settings: Any) -> Any:
        class Connection(http_class):  # type: ignore[misc]
            def getresponse(self) -> Any:  # a socket's own timeout begins again with every byte
                late = threading.Timer(2 * req.timeout, self.sock.shutdown, [socket.SHUT_RDWR])
                late.start()
                try:
                    return super().getresponse()
                finally:
                    late.cancel()

        return super().do_open(Connection, req, **settings)


def _check_url(url: str) -> tuple[str, str, dict[str, str]]:
    """The URL without credentials, its host and port (all that messages show: the path may be secret), and headers."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as problem:
        raise DriftvoteError(f"--webhook: this is not a URL ({problem}); write https://host/path") from None
    if parts.scheme not in ("http", "https") or not host or any(letter.isspace() for letter in url):
        raise DriftvoteError("--webhook: the URL must be http or https; write https://host/path")
    headers = {"Content-Type": "application/json", "User-Agent": f"driftvote/{__version__}"}
    if parts.username:
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
    netloc = f"[{host}]" if ":" in host else host
    netloc += f":{port}" if port else ""
    return urllib.parse.urlunsplit((parts.scheme, netloc, parts.path, parts.query, "")), netloc, headers
