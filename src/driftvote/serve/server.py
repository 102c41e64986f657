"""Runs the service: a socket, a lock on the data folder, signals, the work that is done beside requests."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import threading
from typing import Any

import numpy as np
import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from driftvote.errors import DriftvoteError, StateError
from driftvote.files.state import hold_state
from driftvote.live.loop import warm_up
from driftvote.serve import ServeOptions
from driftvote.serve.access import Gate, is_loopback
from driftvote.serve.app import Service, log
from driftvote.serve.bodies import make_model
from driftvote.serve.streams import StreamFolder
from driftvote.streams import scenario

HOUSEKEEPING_SECONDS = 60.0
FILES = 3 * 1_000
"""Open files that many streams need: three each."""


def run_service(options: ServeOptions) -> None:
    """Serve until SIGTERM or SIGINT; then finish the requests, save every stream and return."""
    if options.tokens is None and not is_loopback(options.host):
        raise DriftvoteError(
            f"--host {options.host} can be reached from other machines, so it needs tokens: make one with"
            " 'driftvote serve token --tokens FILE', and pass --tokens FILE"
        )
    gate = Gate(options.tokens, options.names)
    os.umask(0o077)  # votes are nobody else's business
    options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    _allow_many_files()
    try:
        with hold_state(options.data / "service"), _listen(options) as listener:
            _serve(options, gate, listener)
    except StateError as problem:
        raise DriftvoteError(f"{options.data}: another process serves this folder ({problem})") from None


def _listen(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY only then
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as problem:
        listener.close()
        raise DriftvoteError(f"port {options.port} on {options.host}: {problem.strerror}; choose another") from None
    listener.listen(1024)
    return listener


def _serve(options: ServeOptions, gate: Gate, listener: socket.socket) -> None:
    folder = StreamFolder(options.data, options.limits, options.workers)
    for damaged in folder.damaged:
        log("damaged", file=damaged)
    server: Any = None
    service = Service(folder, gate, options.limits, lambda: bool(server is not None and server.should_exit))
    config = uvicorn.Config(
        service,
        http=_protocol(options.limits.read_seconds),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=options.limits.connections,
        timeout_keep_alive=int(max(5, options.limits.read_seconds)),
        timeout_graceful_shutdown=int(options.stop_seconds),
        backlog=1024,
    )
    server = uvicorn.Server(config)
    _route_logs()
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the loop listens to it: the tokens were just read
    for number in (signal.SIGTERM, signal.SIGINT):  # before uvicorn listens to them, and when it raises them again
        signal.signal(number, server.handle_exit)
    try:
        asyncio.run(_main(server, service, listener))
    finally:
        log("stopping", streams=len(folder.streams))
        folder.close()
        log("stopped")


async def _main(server: uvicorn.Server, service: Service, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, _reload, service)
    threading.Thread(target=_prepare, args=(service,), daemon=True).start()
    work = asyncio.create_task(_keep_house(service))
    host, port = listener.getsockname()[:2]
    shown = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    log("listening", url=shown, streams=len(service.folder.streams), tokens=service.gate.has_tokens)
    print(f"driftvote serves {shown}", flush=True)
    try:
        await server.serve(sockets=[listener])
    finally:
        work.cancel()


def _prepare(service: Service) -> None:
    """Compile what a stream needs, then read the model of every stream, so that the first request need not wait."""
    model = make_model({"classes": ["a", "b"]})
    warm_up(model, lambda text: log("compiling", text=text))
    rows = [{"x": "a", "y": "b", "z": "ab"[row % 2]} for row in range(100)]
    model.label_stream(rows)
    model.feedback(0, "a")
    model.ask(1)
    model.explain(rows[0])
    gc.collect()
    gc.freeze()  # what is loaded by now stays; without it, every body that is parsed makes Python look through it again
    service.ready = True
    log("ready")
    for stream in list(service.folder.streams.values()):
        with contextlib.suppress(Exception):
            stream.submit(stream.view).result()
    _compile_rest()


def _compile_rest() -> None:
    """Compile what is first used at an event, a question or an answer, which would otherwise wait for it."""
    model = make_model({"classes": ["a", "b"]})
    model.label_stream(np.array(["a", "b"])[scenario("one-fails", n_rows=1_200).votes])
    model.ask(1)
    model.feedback({model.n_rows - 1: "a"}, by="row")


async def _keep_house(service: Service) -> None:
    """Drop rows that are older than their stream keeps."""
    while True:
        await asyncio.sleep(HOUSEKEEPING_SECONDS)
        for stream in list(service.folder.streams.values()):
            if "keep_days" in stream.settings:
                with contextlib.suppress(Exception):
                    while await asyncio.wrap_future(stream.submit(stream.drop_old, writes=True)):
                        pass


def _reload(service: Service) -> None:
    try:
        log("tokens", count=service.gate.reload())
    except (DriftvoteError, OSError, ValueError) as problem:
        log("tokens", problem=f"{problem}; the tokens stay as they were")


def _allow_many_files() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES + 2_000 if hard == resource.RLIM_INFINITY else min(hard, FILES + 2_000)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _route_logs() -> None:
    """Write what uvicorn has to say as lines of our log."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log("server", level=record.levelname, text=record.getMessage()[:1000])

    logger = logging.getLogger("uvicorn")
    logger.handlers, logger.propagate = [Handler()], False
    logger.setLevel(logging.WARNING)


def _protocol(seconds: float) -> Any:
    """Return uvicorn's protocol with limits on the time for the headers of a request, and for reading its answer."""
    base: Any = AutoHTTPProtocol

    class TimedProtocol(base):  # type: ignore[misc]
        _timer: Any = None
        _stalled: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait_for_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._timer is None:
                self._wait_for_headers()

        def pause_writing(self) -> None:
            """Give up a client that reads nothing of what waits for it."""
            super().pause_writing()
            self._stalled = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._stalled.cancel()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            if self._stalled is not None:
                self._stalled.cancel()
            super().connection_lost(exc)

        def _wait_for_headers(self) -> None:
            self._timer = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return TimedProtocol
