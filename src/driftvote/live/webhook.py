"""Messages to another program: posted from a thread of their own, so that labeling never waits for them."""

from __future__ import annotations

import base64
import json
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from driftvote._version import __version__
from driftvote.errors import DriftvoteError

WAITING = 100
"""Messages that may wait; events are rare, so more than this means that nobody takes them."""

ATTEMPTS = 6
FIRST_PAUSE = 0.5  # seconds, doubled after every attempt
TIMEOUT = 5.0
FAREWELL = 5.0
"""Seconds that the end of the stream waits for messages on their way."""

_AGAIN = (408, 425, 429)
"""Refusals, beside those of 500 and more, that another attempt may change."""


class Webhook:
    """Posts JSON to a URL; what cannot be delivered is given up after some attempts, and said."""

    def __init__(
        self,
        url: str,
        say: Callable[[str], None],
        token: str | None = None,
        first_pause: float = FIRST_PAUSE,
        timeout: float = TIMEOUT,
    ) -> None:
        self._url, self.shown, self._headers = _checked(url)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._say = say
        self._first_pause = first_pause
        self._timeout = timeout
        self.posts = {"delivered": 0, "given_up": 0, "dropped": 0}
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(WAITING)
        self._ending = threading.Event()
        self._deadline = float("inf")
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def post(self, message: dict[str, Any]) -> None:
        """Hand a message over; it is dropped, and counted, if too many wait already."""
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            self.posts["dropped"] += 1
            if self.posts["dropped"] == 1:
                self._say(f"webhook {self.shown}: {WAITING} messages are waiting; further ones are dropped")

    def close(self, seconds: float = FAREWELL) -> None:
        """Wait at most so long for what is on its way, and say what was not delivered."""
        self._deadline = time.monotonic() + seconds
        self._ending.set()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(seconds)
        left = sum(message is not None for message in list(self._waiting.queue)) + self._thread.is_alive()
        if left:
            self._say(f"webhook {self.shown}: {left} messages were not delivered before the end")

    def _run(self) -> None:
        while (message := self._next()) is not None:
            why = self._delivered(json.dumps(message).encode())
            if why is None:
                self.posts["delivered"] += 1
            else:
                self.posts["given_up"] += 1
                self._say(f"webhook {self.shown}: {why}; this message is given up: {message.get('text')}")

    def _next(self) -> dict[str, Any] | None:
        if not self._ending.is_set():
            return self._waiting.get()
        with suppress(queue.Empty):
            return self._waiting.get_nowait()
        return None

    def _delivered(self, body: bytes) -> str | None:
        """None once it is delivered, else why it is not."""
        pause, why = self._first_pause, ""
        for attempt in range(ATTEMPTS):
            if attempt:
                if time.monotonic() + pause > self._deadline:
                    return f"{why} (there was no time for another attempt)"
                self._sleep(pause)
                pause *= 2
            why, again = self._attempt(body)
            if not why:
                return None
            if not again:
                return why
        return f"{why} ({ATTEMPTS} attempts)"

    def _sleep(self, seconds: float) -> None:
        """The end of the stream cuts the pause short once, so that the last attempts are made in the time left."""
        if self._ending.is_set():
            time.sleep(seconds)
        else:
            self._ending.wait(seconds)

    def _attempt(self, body: bytes) -> tuple[str, bool]:
        """Why it failed, empty if it did not, and whether to try again."""
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout) as reply:
                reply.read(1 << 16)
        except urllib.error.HTTPError as problem:
            problem.close()
            return f"it answered {problem.code} {problem.reason}", problem.code >= 500 or problem.code in _AGAIN
        except urllib.error.URLError as problem:
            return f"it cannot be reached ({problem.reason})", True
        except (OSError, ValueError) as problem:  # a time-out while reading, a reply that is no HTTP
            return f"it did not answer properly ({problem or type(problem).__name__})", True
        except Exception as problem:  # http.client has errors of its own for broken replies
            return f"it did not answer properly ({type(problem).__name__})", True
        return "", False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A post that is sent elsewhere would become a get without its body: better to say that it failed."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _checked(url: str) -> tuple[str, str, dict[str, str]]:
    """The URL, how to show it (it may hold secrets: not its path, not a password), and headers."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as problem:
        raise DriftvoteError(f"--webhook: this is no URL ({problem}); write https://host/path") from None
    if parts.scheme not in ("http", "https") or not host or any(letter.isspace() for letter in url):
        raise DriftvoteError("--webhook: only http and https are posted to; write https://host/path")
    headers = {"Content-Type": "application/json", "User-Agent": f"driftvote/{__version__}"}
    if parts.username:
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
    place = f"[{host}]" if ":" in host else host
    place += f":{port}" if port else ""
    return urllib.parse.urlunsplit((parts.scheme, place, parts.path, parts.query, "")), place, headers
