"""`Client`: a driftvote service from Python, with the standard library alone.

Requests are tried again when the service cannot be reached, is restarted or is busy. That is safe: rows get an id
before they are sent, and a row whose id is in the stream already is answered from the store and not learned from again.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from driftvote.errors import DriftvoteError

AGAIN = (429, 502, 503, 504)
"""Answers after which another attempt may succeed."""


class ServiceError(DriftvoteError):
    """A request that the service refused: its HTTP status, its code, its sentence, and the row."""

    def __init__(self, status: int, code: str, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.row = row


class Client:
    """A connection to a driftvote service; use one for each thread.

    Parameters
    ----------
    url
        Where it is: `http://127.0.0.1:8642`.
    token
        A token of the service, if it has tokens.
    patience
        Seconds for which a request is tried again while the service cannot be reached or is busy.
    timeout
        Seconds that one attempt may take.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8642")
    >>> client.create("chat", classes=["safe", "unsafe"])            # doctest: +SKIP
    >>> rows = [{"votes": {"judge-a": "safe", "judge-b": "safe", "judge-c": "unsafe"}}]
    >>> client.label("chat", rows)["rows"][0]["label"]               # doctest: +SKIP
    'safe'
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8642",
        token: str | None = None,
        *,
        patience: float = 30.0,
        timeout: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DriftvoteError(f"{url!r} is not the address of a service; write http://127.0.0.1:8642")
        self._patience = patience
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=tls)
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        # Ids of one client come in the order of time: an index over them stays small and quick.
        self._prefix = f"{time.time_ns() // 1_000_000:012x}-{os.urandom(5).hex()}"
        self._numbers = itertools.count()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, stream: str, **settings: Any) -> dict[str, Any]:
        """Create a stream, or do nothing if it exists with the same settings."""
        return self._request("PUT", _path(stream), settings)

    def label(self, stream: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Learn from rows and return their labels, and the drift events found in them.

        A row is `{"votes": {labeler: vote}}`, with `id`, `time` and `data` if you like; a row without an id gets one.
        """
        return self._request("POST", _path(stream, "rows"), {"rows": [self._with_id(row) for row in rows]})

    def label_all(
        self, stream: str, rows: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]], size: int = 1_000
    ) -> Iterator[dict[str, Any]]:
        """Yield the labels of any number of rows, sent in batches."""
        source = iter(rows)
        while batch := list(itertools.islice(source, size)):
            yield from self.label(stream, batch)["rows"]

    def predict(self, stream: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the labels of rows by the current fit, without learning from them."""
        return self._request("POST", _path(stream, "predict"), {"rows": list(rows)})

    def streams(self) -> list[dict[str, Any]]:
        """Return a summary of every stream."""
        return list(self._request("GET", "/v1/streams")["streams"])

    def stream(self, stream: str) -> dict[str, Any]:
        """Return what is known about a stream."""
        return self._request("GET", _path(stream))

    def row(self, stream: str, row_id: str) -> dict[str, Any]:
        """Return a row with its votes, its label and an explanation."""
        return self._request("GET", _path(stream, "rows", row_id))

    def events(self, stream: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the drift events after a number."""
        return list(self._request("GET", f"{_path(stream, 'events')}?{urlencode({'after': after})}")["events"])

    def questions(self, stream: str, n: int = 20) -> list[dict[str, Any]]:
        """Return the rows whose true class would help most with the others."""
        return list(self._request("GET", f"{_path(stream, 'questions')}?{urlencode({'n': n})}")["questions"])

    def feedback(self, stream: str, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Send the verified classes of rows, by id."""
        found = [{"id": row_id, "class": value} for row_id, value in answers.items()]
        return self._request("POST", _path(stream, "feedback"), {"answers": found})

    def take_back(self, stream: str, row_id: str) -> dict[str, Any]:
        """Undo an answer."""
        return self._request("DELETE", _path(stream, "feedback", row_id), done="no_answer")

    def delete(self, stream: str) -> dict[str, Any]:
        """Delete a stream and all its rows."""
        return self._request("DELETE", f"{_path(stream)}?{urlencode({'confirm': stream})}", done="unknown_stream")

    def _with_id(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return dict(row) if row.get("id") is not None else {**row, "id": f"{self._prefix}-{next(self._numbers):08x}"}

    def _request(self, method: str, path: str, body: Any = None, done: str = "") -> dict[str, Any]:
        """Send a request until it is answered; `done` is the code that says so after an answer that was lost."""
        data = None if body is None else json.dumps(body).encode()
        until, pause, lost = time.monotonic() + self._patience, 0.05, False
        while True:
            try:
                return self._attempt(method, path, data)
            except ServiceError as refused:
                if lost and refused.code == done:
                    return {}
                if refused.status not in AGAIN or time.monotonic() + pause > until:
                    raise
            except (OSError, http.client.HTTPException) as problem:
                self._connection.close()
                lost = True
                if time.monotonic() + pause > until:
                    host = f"{self._connection.host}:{self._connection.port}"
                    raise ServiceError(0, "unreachable", f"{host} does not answer ({problem!r})") from problem
            time.sleep(pause)
            pause = min(2.0, 2 * pause)

    def _attempt(self, method: str, path: str, data: bytes | None) -> dict[str, Any]:
        headers = self._headers | ({} if data is None else {"Content-Type": "application/json"})
        self._connection.request(method, self._path + path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        try:
            found = json.loads(text)
        except ValueError:
            found = {"error": {"code": "not_json", "message": text[:200].decode(errors="replace"), "row": None}}
        if answer.status < 300:
            return dict(found)
        error = found.get("error") if isinstance(found, dict) else None
        error = error if isinstance(error, dict) else {}
        raise ServiceError(
            answer.status, str(error.get("code", "")), str(error.get("message", text[:200])), error.get("row")
        )


def _path(stream: str, *more: str) -> str:
    return "/".join(["/v1/streams", quote(stream, safe=""), *(quote(part, safe="") for part in more)])
