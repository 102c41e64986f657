"""`driftvote serve`: many streams behind an HTTP interface, each in a file of its own.

Reading order: `bodies` turns the JSON of a request into rows, `store` is the SQLite file of a stream, `streams` is a
stream at work (model, file, queue of jobs) and the folder of all streams, `access` decides who may do what, `app` holds
the routes and runs the server. `page/` is the live page: static files that read the same interface.

A request travels like this: `app` checks the caller, reads the body within its limits and encodes the votes; the job
waits in the queue of its stream; a worker thread takes all waiting jobs of one stream together, labels their rows in
one call, writes rows, labels and events in one transaction, and only then answers. So one commit serves many callers,
and nothing is answered that is not on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PORT = 8642


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the service takes; each limit answers with a 4xx that names it. Options of `driftvote serve` set them."""

    body_bytes: int = 8 << 20
    waiting_bytes: int = 256 << 20  # bodies of all requests together
    rows: int = 10_000  # of a request
    waiting_rows: int = 100_000  # of a stream, not yet labeled
    streams: int = 1_000
    labelers: int = 200
    classes: int = 200
    name_length: int = 200  # of streams, labelers, classes, ids and times
    data_bytes: int = 16 << 10  # of the field "data" of a row
    window: int = 1 << 19  # rows of the largest window, which are held in memory
    read_seconds: float = 20.0  # for the headers of a request, and for each part of a body
    connections: int = 1_000
    listeners: int = 200  # connections that wait for events
    snapshot_rows: int = 1 << 16  # between two snapshots: a fifth of a second to replay


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """How to run the service; the help texts of `driftvote serve` describe the fields."""

    data: Path
    host: str = "127.0.0.1"
    port: int = PORT
    tokens: Path | None = None
    names: tuple[str, ...] = ()  # of this host, beside its address, in the header Host
    workers: int = 4
    stop_seconds: float = 20.0
    limits: Limits = Limits()
