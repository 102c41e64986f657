"""The HTTP interface: one table of routes, from which requests are served, admitted and described (OpenAPI).

Starlette and uvicorn, without more: bodies are read by hand (limits, errors with the row), so a framework that models
them would only stand in the way, and `pip install 'driftvote[serve]'` stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import io
import json
import mimetypes
import re
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import compile_path

from driftvote._version import __version__
from driftvote.errors import DriftvoteError
from driftvote.files.state import pack_state
from driftvote.files.write import open_writer
from driftvote.live.metrics import MetricFamily, format_metrics
from driftvote.serve import Limits
from driftvote.serve.access import COOKIE, HEADERS, NOBODY, Caller, Gate, csrf_of
from driftvote.serve.bodies import RequestError, check_fields, check_name, parse_json, read_settings, show
from driftvote.serve.store import StreamReader
from driftvote.serve.streams import ServedStream, StreamFolder

PAGE = Path(__file__).parent / "page"
SMALL_BODY = 1 << 15
"""Bodies up to this size are parsed at once; larger ones in a thread, so that other requests do not wait."""

SLOWEST = 16 << 10
"""Bytes a second that a body must come with, beyond the first seconds."""

LINE_ROWS = 1_000
"""Lines of JSON that are labeled together."""

LONGEST_LINE = 1 << 18
QUIET = ("/healthz", "/metrics")
"""Routes that are asked all the time; the log holds only what goes wrong there."""

LIVE_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
EXPORT_ROWS = 10_000


@dataclass
class Call:
    """A request on its way: where it goes, who sent it."""

    service: Service
    request: Request
    path: dict[str, Any]
    caller: Caller
    send: Any
    rows: int = 0  # for the log
    held: int = 0  # bytes of its body, which count as waiting until it is answered

    @property
    def stream(self) -> ServedStream:
        """The stream that the path names."""
        return self.service.folder.get(self.path["name"])

    def number(self, name: str, usual: int, least: int, most: int) -> int:
        """Return a whole number of the query."""
        text = self.request.query_params.get(name)
        if text is None:
            return usual
        if not re.fullmatch(r"-?\d{1,15}", text) or not least <= int(text) <= most:
            raise RequestError(
                422, "bad_query", f"{name} must be a whole number from {least} to {most:,}, not {show(text)}"
            )
        return int(text)


@dataclass(frozen=True)
class Endpoint:
    """A line of the table of routes."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Response | None]]
    needs: str | None  # what the caller must be allowed to do; None: nothing
    summary: str
    query: str = ""  # names of parameters
    body: str = ""  # an example
    answer: str = ""  # an example


class Service:
    """The ASGI application."""

    def __init__(self, folder: StreamFolder, gate: Gate, limits: Limits, stopping: Callable[[], bool]) -> None:
        self.folder = folder
        self.gate = gate
        self.limits = limits
        self.stopping = stopping
        self.ready = False
        self.listeners = 0
        self.waiting_bytes = 0
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds = 0.0
        self._listed = -1.0, ""  # when, and what
        self._routes = [(compile_path(one.path)[0], compile_path(one.path)[2], one) for one in ENDPOINTS]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; whatever happens, the answer is whole, and JSON if it is an error."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        begin, status = time.monotonic(), 0

        async def send_guarded(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message.get("headers", [])}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        request = Request(scope, receive)
        call = Call(self, request, {}, NOBODY, send_guarded)
        route, code = "none", None
        response: Response | None = None
        try:
            endpoint, call.path = self._match(request.method, scope["path"])
            route = endpoint.path
            call.caller = self.gate.admit(request.method, request.headers, endpoint.needs)
            response = await endpoint.handler(call)
        except RequestError as refusal:
            code, response = refusal.code, refuse(refusal)
        except ClientDisconnect:
            response = None
        except DriftvoteError as problem:
            response = refuse(RequestError(422, "refused", str(problem)))
        except Exception as problem:
            log("error", problem=f"{type(problem).__name__}: {problem}", traceback=traceback.format_exc())
            response = refuse(RequestError(500, "internal", "an error of the service; its log says more"))
        finally:
            self.waiting_bytes -= call.held
        if response is not None and not status:
            await response(scope, receive, send_guarded)
        seconds = time.monotonic() - begin
        self.requests[route, status] += 1
        self.seconds += seconds
        if route in QUIET and status < 400:
            return
        log(
            "request",
            method=request.method[:10],
            route=route,
            stream=str(call.path.get("name", ""))[:200] or None,
            status=status,
            code=code,
            rows=call.rows or None,
            ms=round(1000 * seconds, 2),
            caller=call.caller.name,
        )

    def _match(self, method: str, path: str) -> tuple[Endpoint, dict[str, Any]]:
        allowed = []
        for pattern, convertors, endpoint in self._routes:
            found = pattern.match(path)
            if found is None:
                continue
            if endpoint.method == method or (endpoint.method == "GET" and method == "HEAD"):
                return endpoint, {key: convertors[key].convert(value) for key, value in found.groupdict().items()}
            allowed.append(endpoint.method)
        if allowed:
            raise RequestError(405, "wrong_method", f"this path takes {', '.join(sorted(set(allowed)))}")
        raise RequestError(404, "no_such_path", "there is nothing at this path; /docs lists what there is")

    # -- bodies --------------------------------------------------------------------------------

    async def parts(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the parts of a body; a client that is too slow is refused."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            raise RequestError(415, "wrong_type", f"the body is sent as {kind}; set Content-Type: application/json")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise RequestError(415, "encoded", "the body is compressed; send it as it is")
        left = self.limits.read_seconds  # for the client: what the service does meanwhile does not count
        parts = request.stream().__aiter__()
        while True:
            begin = time.monotonic()
            try:
                part = await asyncio.wait_for(parts.__anext__(), max(0.01, left))
            except StopAsyncIteration:
                return
            except asyncio.TimeoutError:
                raise RequestError(408, "too_slow", "the body comes too slowly") from None
            left += len(part) / SLOWEST - (time.monotonic() - begin)
            yield part

    async def read(self, call: Call, parse: Callable[[bytes], Any]) -> Any:
        """Return what `parse` makes of the body of a request."""
        most, found = self.limits.body_bytes, bytearray()
        too_large = RequestError(413, "too_large", f"the body has more than {most:,} bytes; send fewer rows at once")
        length = call.request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:20]) > most:
            raise too_large
        async for part in self.parts(call.request):
            found += part
            call.held += len(part)
            self.waiting_bytes += len(part)
            if len(found) > most:
                raise too_large
            if self.waiting_bytes > self.limits.waiting_bytes:
                raise RequestError(503, "busy", "too many large requests at once; try again in a second")
        body = bytes(found)
        return parse(body) if len(body) <= SMALL_BODY else await run_in_threadpool(parse, body)

    # -- server-sent events --------------------------------------------------------------------

    def list_as_json(self) -> str:
        """Return all streams at a glance; those who listen at the same time share it."""
        now = time.monotonic()
        if now > self._listed[0] + LIVE_SECONDS / 2:
            self._listed = now, json.dumps(list_streams(self))
        return self._listed[1]

    async def send_events(self, call: Call, produce: Callable[[], Awaitable[list[tuple[str, Any, Any]]]]) -> None:
        """Send what `produce` finds (event, id, data), again and again, until the client or the service ends."""
        if self.listeners >= self.limits.listeners:
            raise RequestError(503, "too_many_listeners", f"{self.listeners} connections wait for events already")
        tokens = self.gate.reloads  # when they are read again, clients connect anew, if they still may
        first = await produce()
        self.listeners += 1
        gone = asyncio.create_task(wait_until_gone(call.request))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
            await call.send({"type": "http.response.start", "status": 200, "headers": headers})
            last = time.monotonic()
            text = ": driftvote\n\n" + "".join(format_event(*one) for one in first)
            while not gone.done() and not self.stopping() and self.gate.reloads == tokens:
                if not text and time.monotonic() - last >= HEARTBEAT_SECONDS:
                    text = ": still here\n\n"
                if text:
                    last = time.monotonic()
                    await call.send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                await asyncio.wait({gone}, timeout=LIVE_SECONDS)
                try:
                    text = "".join(format_event(*one) for one in await produce())
                except RequestError:  # the stream was deleted
                    break
            await call.send({"type": "http.response.body", "body": b""})
        finally:
            self.listeners -= 1
            gone.cancel()


def refuse(refusal: RequestError) -> Response:
    """Return the answer to a request that is refused."""
    headers = {}
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refusal.status in (429, 503):
        headers["retry-after"] = "1"
    if refusal.status in (408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    return JSONResponse(refusal.body(), refusal.status, headers)


def log(event: str, **fields: Any) -> None:
    """Write a line of the log: JSON on standard error. It never holds votes, data, ids or tokens."""
    shown = {name: value for name, value in fields.items() if value is not None}
    line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **shown})
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


async def wait_until_gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def format_event(event: str, number: Any, data: Any) -> str:
    """Return a server-sent event; text is JSON already."""
    mark = "" if number is None else f"id: {number}\n"
    return f"event: {event}\n{mark}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


async def finished(future: Any) -> Any:
    """Return the result of a job, once it is committed."""
    return await asyncio.wrap_future(future)


# -- streams -------------------------------------------------------------------------------------


async def put_stream(call: Call) -> Response:
    name = check_name(call.path["name"], "the name of the stream", call.service.limits)
    settings = await call.service.read(call, lambda body: read_settings(body, call.service.limits))
    stream, is_new = await run_in_threadpool(call.service.folder.create, name, settings)
    return JSONResponse({"name": name, "settings": stream.settings, "rows": stream.n_rows}, 201 if is_new else 200)


def list_streams(service: Service) -> dict[str, Any]:
    """Return all streams at a glance."""
    streams = sorted(service.folder.streams.values(), key=lambda one: one.name)
    hidden = ("labels_moved",)
    return {
        "streams": [
            {key: value for key, value in one.summary.items() if key not in hidden}
            | {"rows_per_second": one.rows_per_second}
            for one in streams
        ]
    }


async def get_streams(call: Call) -> Response:
    return JSONResponse(list_streams(call.service))


async def get_stream(call: Call) -> Response:
    stream = call.stream
    return JSONResponse(await finished(stream.submit(stream.view)))


async def delete_stream(call: Call) -> Response:
    if call.request.query_params.get("confirm") != call.path["name"]:
        raise RequestError(422, "confirm", "this deletes the stream with all its rows; confirm it with ?confirm=NAME")
    call.service.folder.get(call.path["name"])
    return JSONResponse(await finished(call.service.folder.delete(call.path["name"])))


# -- rows ----------------------------------------------------------------------------------------


async def post_rows(call: Call) -> Response | None:
    stream = call.stream
    if call.request.headers.get("content-type", "").startswith("application/x-ndjson"):
        await answer_lines(call, stream)
        return None
    rows = await call.service.read(call, stream.rows.read_body)
    call.rows = len(rows.ids)
    answer = await finished(stream.submit_rows(rows))
    body = f'{{"rows": [{", ".join(answer["rows"])}], "events": {json.dumps(answer["events"])}}}'
    return Response(body, 200, media_type="application/json")


async def answer_lines(call: Call, stream: ServedStream) -> None:
    """Answer lines of JSON with lines of JSON, as they come: each part is committed before it is answered.

    An error ends the answer with a line that holds it; the lines answered before it are stored.
    """
    started = False

    async def send_lines(lines: list[str]) -> None:
        nonlocal started
        if not started:
            headers = [(b"content-type", b"application/x-ndjson")]
            await call.send({"type": "http.response.start", "status": 200, "headers": headers})
            started = True
        body = "\n".join([*lines, ""]).encode()
        await call.send({"type": "http.response.body", "body": body, "more_body": True})

    async def label(lines: list[bytes]) -> None:
        try:
            rows = await run_in_threadpool(stream.rows.read_lines, lines)
            answer = await finished(stream.submit_rows(rows))
        except RequestError as refusal:
            if refusal.row is None:
                raise
            row = refusal.row + call.rows
            message = re.sub(r"^row \d+", f"row {row}", str(refusal))
            raise RequestError(refusal.status, refusal.code, message, row) from None
        call.rows += len(rows.ids)
        await send_lines([*answer["rows"], *(json.dumps({"event": one}) for one in answer["events"])])

    try:
        async for lines in read_lines(call):
            await label(lines)
    except RequestError as refusal:
        if not started:
            raise
        await send_lines([json.dumps(refusal.body())])
    if not started:
        raise RequestError(422, "no_rows", "there are no rows; send one row of JSON per line")
    await call.send({"type": "http.response.body", "body": b""})


async def read_lines(call: Call) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body in parts."""
    rest, ready = b"", list[bytes]()
    most = min(LINE_ROWS, call.service.limits.rows)
    async for part in call.service.parts(call.request):
        *lines, rest = (rest + part).split(b"\n")
        ready += [line for line in lines if line.strip()]
        if len(rest) > LONGEST_LINE:
            raise RequestError(413, "too_large", f"a line is longer than {LONGEST_LINE:,} bytes")
        while len(ready) >= most:
            yield ready[:most]
            ready = ready[most:]
    ready += [rest] if rest.strip() else []
    if ready:
        yield ready


async def post_predict(call: Call) -> Response:
    stream = call.stream
    rows = await call.service.read(call, stream.rows.read_body)
    call.rows = len(rows.ids)
    return JSONResponse(await finished(stream.submit(lambda: stream.predict(rows))))


async def get_row(call: Call) -> Response:
    stream = call.stream
    return JSONResponse(await finished(stream.submit(lambda: stream.row(call.path["id"]))))


# -- questions and answers -----------------------------------------------------------------------


async def get_questions(call: Call) -> Response:
    stream, n = call.stream, call.number("n", 20, 0, 200)
    return JSONResponse(await finished(stream.submit(lambda: stream.questions(n))))


def read_answers(body: bytes, most: int) -> list[tuple[str, Any]]:
    """Return the ids and classes of a body of answers."""
    example = '{"answers": [{"id": "m1", "class": "safe"}]}'
    answers = check_fields(parse_json(body), ("answers",), "the body", example).get("answers")
    if not isinstance(answers, list) or not 0 < len(answers) <= most:
        raise RequestError(422, "no_answers", f"there must be 1 to {most:,} answers, such as {example}")
    found = []
    for place, answer in enumerate(answers):
        answer = check_fields(answer, ("id", "class"), f"answer {place}", '{"id": "m1", "class": "safe"}', place)
        row_id = answer.get("id")
        if isinstance(row_id, bool) or not isinstance(row_id, (str, int)):
            raise RequestError(
                422, "bad_id", f"answer {place}: the id must be that of a row, not {show(row_id)}", place
            )
        found.append((str(row_id), answer.get("class")))
    return found


async def post_feedback(call: Call) -> Response:
    stream = call.stream
    answers = await call.service.read(call, lambda body: read_answers(body, call.service.limits.rows))
    return JSONResponse(await finished(stream.submit(lambda: stream.verify(answers), writes=True)))


async def delete_feedback(call: Call) -> Response:
    stream = call.stream
    return JSONResponse(await finished(stream.submit(lambda: stream.take_back(call.path["id"]), writes=True)))


# -- events --------------------------------------------------------------------------------------


def read_store(stream: ServedStream, query: Callable[[StreamReader], Any]) -> Any:
    """Return what a query finds in the file of a stream."""
    if stream.closed:
        raise RequestError(404, "unknown_stream", f"there is no stream {stream.name!r}")
    try:
        with stream.store.reading() as reader:
            return query(reader)
    except sqlite3.Error as problem:
        raise unreadable(stream, problem) from None


def unreadable(stream: ServedStream, problem: sqlite3.Error) -> RequestError:
    """Return the refusal where the file of a stream could not be read."""
    if stream.closed:  # deleted meanwhile
        return RequestError(404, "unknown_stream", f"there is no stream {stream.name!r}")
    return RequestError(503, "storage", f"the stream could not be read ({problem}); try again")


async def get_events(call: Call) -> Response | None:
    stream, after = call.stream, call.number("after", 0, 0, 10**15)
    if "text/event-stream" not in call.request.headers.get("accept", ""):
        found = await run_in_threadpool(read_store, stream, lambda reader: reader.events(after))
        return JSONResponse({"events": found, "count": stream.n_events})
    last = call.request.headers.get("last-event-id", "")
    cursor = int(last) if re.fullmatch(r"\d{1,15}", last) else after

    async def produce() -> list[tuple[str, Any, Any]]:
        nonlocal cursor
        found = await new_events(call, stream, cursor)
        cursor = max([cursor, *(one["number"] for one in found)])
        return [("drift", one["number"], one) for one in found]

    await call.service.send_events(call, produce)
    return None


async def new_events(call: Call, stream: ServedStream, after: int) -> list[dict[str, Any]]:
    """Return the events after a number; a stream that is gone is refused."""
    if call.service.folder.get(stream.name) is not stream:
        raise RequestError(404, "unknown_stream", f"there is no stream {stream.name!r}")
    if stream.n_events <= after:
        return []
    return list(await run_in_threadpool(read_store, stream, lambda reader: reader.events(after)))


async def get_timeline(call: Call) -> Response:
    stream, most = call.stream, call.number("points", 300, 1, 10_000)
    points, events = await run_in_threadpool(
        read_store, stream, lambda reader: (reader.points(), reader.last_events(1_000))
    )
    step = -(-len(points) // most)
    return JSONResponse({"points": points[:: -step or 1][::-1] if points else [], "events": events})


async def get_live(call: Call) -> None:
    stream = call.stream
    version, events = -1, stream.n_events
    row = await run_in_threadpool(read_store, stream, lambda reader: reader.count_rows())

    async def produce() -> list[tuple[str, Any, Any]]:
        nonlocal version, events, row
        found = [("drift", one["number"], one) for one in await new_events(call, stream, events)]
        events += len(found)
        if stream.version != version:
            version = stream.version
            points = await run_in_threadpool(read_store, stream, lambda reader: reader.points(row - 1))
            row = max([row, *(one["row"] + 1 for one in points)])
            view = await finished(stream.submit(stream.view))
            found += [("point", None, one) for one in points]
            found.append(("stream", None, view))
        return found

    await call.service.send_events(call, produce)


async def get_all_live(call: Call) -> None:
    last = ""

    async def produce() -> list[tuple[str, Any, Any]]:
        nonlocal last
        text = call.service.list_as_json()
        if text == last:
            return []
        last = text
        return [("streams", None, text)]

    await call.service.send_events(call, produce)


# -- export --------------------------------------------------------------------------------------


def label_batches(stream: ServedStream, reader: StreamReader) -> Iterator[Any]:
    """Yield the stored labels as Arrow batches."""
    import pyarrow as pa

    row, last = reader.first_row(), reader.count_rows()
    while row < last:
        rows = reader.rows(row, row + EXPORT_ROWS)
        row += EXPORT_ROWS
        answers = [stream.answer_of(one) for one in rows]
        yield pa.RecordBatch.from_pydict(
            {
                "row": pa.array([one.row for one in rows], pa.int64()),
                "id": pa.array([one.id for one in rows], pa.string()),
                "time": pa.array([None if one.time is None else str(one.time) for one in rows], pa.string()),
                "label": pa.array(
                    [None if one["label"] is None else str(one["label"]) for one in answers], pa.string()
                ),
                "probability": pa.array([one.probability for one in rows], pa.float64()),
                "window": pa.array([one.window for one in rows], pa.int64()),
                "needs_review": pa.array([one["needs_review"] for one in answers], pa.bool_()),
            }
        )


class Drain(io.RawIOBase):
    """A file that gives away what is written to it."""

    def __init__(self) -> None:
        self.ready = bytearray()
        self.size = 0

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def tell(self) -> int:
        """Return how much was written."""
        return self.size

    def write(self, data: Any) -> int:
        """Take data."""
        self.ready += data
        self.size += len(data)
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        found = bytes(self.ready)
        self.ready.clear()
        return found


def export_labels(stream: ServedStream, kind: str, safe: bool) -> Iterator[bytes]:
    """Yield a file of all stored labels in parts."""
    with stream.store.reading() as reader:
        file: Any = Drain()
        writer = open_writer(kind, file, "the labels", safe)
        for batch in label_batches(stream, reader):
            writer.write(batch)
            yield file.take()
        writer.close()
        yield file.take()


async def get_labels(call: Call) -> None:
    stream, kind = call.stream, call.path["kind"]
    if kind not in ("csv", "parquet"):
        raise RequestError(404, "no_such_path", "labels come as labels.csv or labels.parquet")
    if not stream.n_rows:
        raise RequestError(409, "no_rows", "the stream has no rows yet")
    safe = kind == "csv" and call.request.query_params.get("safe") == "1"
    parts = iterate_in_threadpool(export_labels(stream, kind, safe)).__aiter__()
    media = b"text/csv; charset=utf-8" if kind == "csv" else b"application/vnd.apache.parquet"
    headers = [(b"content-type", media), (b"content-disposition", f'attachment; filename="labels.{kind}"'.encode())]
    try:
        part = await anext(parts)  # before anything is promised
    except sqlite3.Error as problem:
        raise unreadable(stream, problem) from None
    await call.send({"type": "http.response.start", "status": 200, "headers": headers})
    await call.send({"type": "http.response.body", "body": part, "more_body": True})
    async for part in parts:
        await call.send({"type": "http.response.body", "body": part, "more_body": True})
    await call.send({"type": "http.response.body", "body": b""})


async def get_state(call: Call) -> Response:
    stream = call.stream
    state = await finished(stream.submit(lambda: pack_state(*stream.model.to_state())))
    headers = {"content-disposition": 'attachment; filename="state.npz"'}
    return Response(state, 200, headers, "application/octet-stream")


# -- sessions of the page ------------------------------------------------------------------------


async def get_session(call: Call) -> Response:
    has_tokens, ready = call.service.gate.has_tokens, call.service.ready
    return JSONResponse({"tokens": has_tokens, "role": call.caller.role, "csrf": call.caller.csrf, "ready": ready})


async def post_session(call: Call) -> Response:
    example = '{"token": "dv_..."}'
    found = await call.service.read(call, parse_json)
    token = check_fields(found, ("token",), "the body", example).get("token")
    gate = call.service.gate
    if not gate.has_tokens:
        return JSONResponse({"tokens": False, "role": call.caller.role, "csrf": None})
    caller = gate.find(token) if isinstance(token, str) else None
    if caller is None:
        raise RequestError(401, "wrong_token", "this is not a token of this service")
    if caller.role is None:
        raise RequestError(403, "not_allowed", "this token posts votes only; log in with one that may read")
    assert isinstance(token, str)
    csrf = csrf_of(token)
    answer = JSONResponse({"tokens": True, "role": caller.role, "csrf": csrf})
    secure = call.request.url.scheme == "https" or call.request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(COOKIE, token, max_age=30 * 86400, httponly=True, samesite="strict", secure=secure)
    return answer


async def delete_session(call: Call) -> Response:
    answer = JSONResponse({"tokens": call.service.gate.has_tokens, "role": None, "csrf": None})
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


# -- for the operator, and the page --------------------------------------------------------------


async def get_health(call: Call) -> Response:
    return JSONResponse({"ok": True, "version": __version__})


async def get_ready(call: Call) -> Response:
    service = call.service
    failing = [one for one in list(service.folder.streams.values()) if one.problem]  # others create streams meanwhile
    problems = [*service.folder.damaged, *(f"stream {one.name!r}: {one.problem}" for one in failing)]
    if not service.ready:
        problems.append("compiling on first use, usually for 10 to 20 seconds")
    return JSONResponse({"ready": service.ready, "problems": problems}, 200 if service.ready else 503)


def collect(service: Service) -> str:
    """Return the metrics of the service and of all streams, in Prometheus' format."""
    found: dict[str, MetricFamily] = {}
    streams = list(service.folder.streams.values())
    for stream in streams:
        for family in stream.metrics():
            samples = tuple(({"stream": stream.name, **labels}, value) for labels, value in family.samples)
            known = found.get(family.name)
            found[family.name] = replace(family, samples=(*(known.samples if known else ()), *samples))
    requests = tuple(
        ({"route": route, "status": str(status)}, float(count))
        for (route, status), count in service.requests.copy().items()
    )
    own = [
        MetricFamily("driftvote_requests_total", "counter", "Requests by route and status.", requests),
        MetricFamily(
            "driftvote_request_seconds_total", "counter", "Seconds of all requests.", (({}, service.seconds),)
        ),
        MetricFamily(
            "driftvote_streams", "gauge", "Streams of the service.", (({}, float(len(service.folder.streams))),)
        ),
        MetricFamily(
            "driftvote_failing_streams",
            "gauge",
            "Streams that cannot be read or written.",
            (({}, float(len(service.folder.damaged) + sum(bool(one.problem) for one in streams))),),
        ),
        MetricFamily(
            "driftvote_listeners", "gauge", "Connections that wait for events.", (({}, float(service.listeners)),)
        ),
    ]
    return format_metrics([*own, *found.values()])


async def get_metrics(call: Call) -> Response:
    text = await run_in_threadpool(collect, call.service)
    return Response(text, 200, media_type="text/plain; version=0.0.4; charset=utf-8")


def page_file(name: str) -> Response:
    """Return a file of the page; only names of files that are there are looked up."""
    files = {path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.is_file()}
    if name not in files:
        raise RequestError(404, "no_such_path", "the page has no such file")
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
    text = "; charset=utf-8" if kind.startswith("text/") else ""
    return Response(files[name].read_bytes(), 200, {"content-type": kind + text, "cache-control": "no-cache"})


async def get_page(call: Call) -> Response:
    return page_file("index.html")


async def get_page_file(call: Call) -> Response:
    return page_file(call.path["file"])


async def get_openapi(call: Call) -> Response:
    return JSONResponse(describe())


async def get_docs(call: Call) -> Response:
    parts = []
    for one in ENDPOINTS:
        path = re.sub(r"{(\w+):\w+}", r"{\1}", one.path)
        right = f"needs the right to {one.needs}" if one.needs else "open to all"
        parts += [
            f'<section class="card"><h2><code><b>{one.method}</b> {html.escape(path)}</code></h2>',
            f'<p>{html.escape(one.summary)} <span class="chip">{right}</span></p>',
        ]
        examples = [(name, text) for name in ("query", "body", "answer") if (text := getattr(one, name))]
        lines = [f"<dt>{name}</dt><dd><pre><code>{html.escape(text)}</code></pre></dd>" for name, text in examples]
        parts += ["<dl>", *lines, "</dl>"] if lines else []
        parts.append("</section>\n")
    text = (PAGE / "docs.html").read_text("utf-8")
    text = text.replace("<!-- version -->", __version__).replace("<!-- endpoints -->", "".join(parts))
    return Response(text, 200, media_type="text/html")


def describe() -> dict[str, Any]:
    """Return the OpenAPI document of the table of routes."""
    paths: dict[str, Any] = {}
    for one in ENDPOINTS:
        path = re.sub(r"{(\w+):\w+}", r"{\1}", one.path)
        inside = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", path)
        ]
        query = [
            {"name": name, "in": "query", "schema": {"type": "string"}, "example": values[0]}
            for name, values in parse_qs(one.query).items()
        ]
        error = {
            "description": "Refused.",
            "content": _content('{"error": {"code": "...", "message": "...", "row": null}}'),
        }
        operation: dict[str, Any] = {
            "summary": one.summary,
            "operationId": one.handler.__name__,
            "parameters": inside + query,
            "responses": {"200": {"description": "Done.", "content": _content(one.answer)}, "4XX": error},
        }
        if one.body:
            operation["requestBody"] = {"content": _content(one.body)}
        operation["security"] = [] if one.needs is None else [{"token": [one.needs]}]
        paths.setdefault(path, {})[one.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "driftvote serve", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _content(example: str) -> dict[str, Any]:
    try:
        return {"application/json": {"example": json.loads(example)}}
    except ValueError:
        return {"text/plain": {"example": example}} if example else {}


_NAMED = "/v1/streams/{name}"
_ROWS = '{"rows": [{"id": "m1", "time": "2026-05-31T14:20:00Z", "votes": {"a": "safe", "b": "unsafe"}, "data": {}}]}'
_LABELED = (
    '{"rows": [{"id": "m1", "row": 0, "label": "safe", "probability": 0.93, "window": 512, "needs_review": false}],'
    ' "events": []}'
)
_ANSWERS = '{"answers": [{"id": "m1", "class": "safe"}]}'

ENDPOINTS = [
    Endpoint("GET", "/healthz", get_health, None, "Whether the process answers.", answer='{"ok": true}'),
    Endpoint(
        "GET",
        "/readyz",
        get_ready,
        "read",
        "Whether it can label: 503 while kernels compile. Streams that fail are listed.",
    ),
    Endpoint("GET", "/metrics", get_metrics, "read", "Metrics in Prometheus' text format."),
    Endpoint("GET", "/openapi.json", get_openapi, "read", "This description."),
    Endpoint("GET", "/docs", get_docs, "read", "This description as a page."),
    Endpoint("GET", "/", get_page, None, "The live page."),
    Endpoint("GET", "/streams/{name}", get_page, None, "The live page of one stream."),
    Endpoint("GET", "/page/{file:path}", get_page_file, None, "Static files of the page."),
    Endpoint("GET", "/v1/session", get_session, None, "Whether tokens are on, and the role of the caller."),
    Endpoint("POST", "/v1/session", post_session, None, "Log the page in.", body='{"token": "dv_..."}'),
    Endpoint("DELETE", "/v1/session", delete_session, None, "Log the page out."),
    Endpoint("GET", "/v1/streams", get_streams, "read", "All streams at a glance."),
    Endpoint("GET", "/v1/live", get_all_live, "read", "The same as server-sent events, when something changes."),
    Endpoint(
        "PUT",
        _NAMED,
        put_stream,
        "write",
        "Create a stream; the same again is fine, other settings are refused.",
        body='{"classes": ["safe", "unsafe"], "keep_rows": 1000000}',
    ),
    Endpoint("GET", _NAMED, get_stream, "read", "Rows so far, window, labelers, weights, answers."),
    Endpoint("DELETE", _NAMED, delete_stream, "admin", "Delete a stream and all its rows.", query="confirm=NAME"),
    Endpoint(
        "POST",
        f"{_NAMED}/rows",
        post_rows,
        "write",
        "Learn from rows and label them; all rows of a JSON body, or none. Lines of JSON (application/x-ndjson) are"
        " answered line by line, as they come.",
        body=_ROWS,
        answer=_LABELED,
    ),
    Endpoint("POST", f"{_NAMED}/predict", post_predict, "write", "Label rows, learn nothing.", body=_ROWS),
    Endpoint("GET", f"{_NAMED}/rows/{{id:path}}", get_row, "read", "A row with its votes, label and explanation."),
    Endpoint("GET", f"{_NAMED}/questions", get_questions, "read", "Which rows to ask about next.", query="n=20"),
    Endpoint("POST", f"{_NAMED}/feedback", post_feedback, "review", "Give true classes of rows.", body=_ANSWERS),
    Endpoint("DELETE", f"{_NAMED}/feedback/{{id:path}}", delete_feedback, "review", "Take an answer back."),
    Endpoint(
        "GET",
        f"{_NAMED}/events",
        get_events,
        "read",
        "Drift events after a number; as server-sent events with Accept: text/event-stream.",
        query="after=0",
    ),
    Endpoint("GET", f"{_NAMED}/timeline", get_timeline, "read", "Accuracies and shares over time.", query="points=300"),
    Endpoint("GET", f"{_NAMED}/live", get_live, "read", "Changes of the stream as server-sent events."),
    Endpoint(
        "GET", f"{_NAMED}/labels.{{kind}}", get_labels, "read", "All stored labels, csv or parquet.", query="safe=1"
    ),
    Endpoint("GET", f"{_NAMED}/state", get_state, "read", "The model, as a file for driftvote.load."),
]
