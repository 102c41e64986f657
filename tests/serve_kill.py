"""The service killed at random moments while clients post rows and answers: `make serve-kill`.

Clients send every request until it is answered, and some of them once more. At the end nothing that was answered may be
missing, twice or different, and the labels must be those of a model that took the same rows and answers, in the order of
the store, in one run.
"""

from __future__ import annotations

import argparse
import random
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from driftvote import AdaptiveLabelModel
from driftvote.client import Client
from driftvote.serve.store import StreamReader

from serve_for_tests import CLASSES, Server, make_rows

CLIENTS = 4


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Load:
    """Clients that post rows and answers until they are told to stop, and what they were answered."""

    def __init__(self, port: int, seed: int) -> None:
        self.answers: list[dict[str, Any]] = []
        self.verified: dict[str, str] = {}
        self.repeated = 0
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(client, port, random.Random(seed * 100 + client)))
            for client in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, client: int, port: int, rng: random.Random) -> None:
        rows = make_rows(200_000, seed=client, fails_at=400, prefix=f"c{client}-")
        begin, last = 0, None
        try:
            with Client(f"http://127.0.0.1:{port}", patience=120) as service:
                service.create("s", classes=CLASSES)
                while not self._stop.is_set():
                    size = rng.choice([1, 1, 1, 5, 50, 300])
                    part = [dict(row) for row in rows[begin : begin + size]]
                    if client == 1 and begin > 500:  # a labeler joins in the middle
                        part = [row | {"votes": row["votes"] | {"newcomer": row["votes"]["b"]}} for row in part]
                    begin += size
                    answer = service.label("s", part)
                    self._keep(answer["rows"])
                    if rng.random() < 0.1:
                        assert service.label("s", part) == answer, "the same request was answered differently"
                        self.repeated += 1
                    if rng.random() < 0.1:
                        chosen = rng.choice(answer["rows"])["id"]
                        service.feedback("s", {chosen: (value := rng.choice(CLASSES))})
                        self.verified[chosen] = value
                    last = answer
        except Exception as problem:
            self.problems.append(f"client {client}: {problem!r} after {last and last['rows'][-1]}")

    def _keep(self, rows: list[dict[str, Any]]) -> None:
        with self._lock:
            self.answers += rows

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def kill_service(kills: int, seed: int, folder: Path, spare: float = 1.0) -> dict[str, int]:
    """Kill the service so many times under load, then compare; figures come back."""
    rng, port, data = random.Random(seed), free_port(), folder / "data"
    options = ("--limit", "snapshot_rows=1500")
    server = Server(data, *options, port=port)
    server.wait()
    load = Load(port, seed)
    early = 0
    for _ in range(kills):
        if rng.random() < 0.15:  # while it starts, or reads its streams
            time.sleep(rng.uniform(0.0, 2.5))
            early += 1
        else:
            wait_for_answers(load, rng.randint(1, 20))
            time.sleep(rng.uniform(0.0, spare))
        server.kill()
        assert not load.problems, load.problems
        server = Server(data, *options, port=port)
    wait_for_answers(load, 50)
    load.stop()
    assert not load.problems, load.problems
    assert server.stop() == 0
    found = compare(data, load)
    return found | {"kills": kills, "early": early}


def wait_for_answers(load: Load, more: int) -> None:
    begin, until = len(load.answers), time.monotonic() + 120
    while len(load.answers) < begin + more and not load.problems:
        assert time.monotonic() < until, "the service does not answer any more"
        time.sleep(0.005)


def compare(data: Path, load: Load) -> dict[str, int]:
    """Compare what was answered with the store, and the store with a model in one run."""
    (path,) = (data / "streams").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as db:
        stored = [
            (one.row, one.id, one.votes, one.code, one.probability, one.window)
            for one in StreamReader(db).rows(0, 1 << 62)
        ]
        assert dict(db.execute("select row, id from ids")) == {row: row_id for row, row_id, *_ in stored}
        labelers = list(db.execute("select name, row from labelers order by place"))
        answers = list(db.execute("select at_row, row, id, code from answers order by number"))
        events = [row for (row,) in db.execute("select row from events order by number")]
    assert [row for row, *_ in stored] == list(range(len(stored))), "rows are missing in the order"
    by_id = {row_id: (row, code, probability, window) for row, row_id, _, code, probability, window in stored}
    assert len(by_id) == len(stored), "an id is there twice"
    assert len({one["id"] for one in load.answers}) == len(load.answers), "an id was answered as two rows"
    for one in load.answers:
        assert one["id"] in by_id, f"{one['id']} was answered, and is lost"
        row, code, probability, window = by_id[one["id"]]
        assert (one["row"], one["label"], one["probability"], one["window"]) == (row, CLASSES[code] if code >= 0 else None, probability, window)  # fmt: skip
    assert len(load.answers) == len(stored), "rows were stored that nobody sent"
    last = {row_id: CLASSES[code] for _, _, row_id, code in answers}
    for row_id, value in load.verified.items():
        assert last[row_id] == value, f"the answer to {row_id} is lost"

    model, names = AdaptiveLabelModel(classes=CLASSES), [name for name, _ in labelers]
    joined = dict(labelers)
    rows = []
    for row, _, votes, *_ in stored:
        codes = np.frombuffer(votes, np.int8).tolist() + [-1] * len(names)
        rows.append({n: CLASSES[c] if c >= 0 else None for n, c in zip(names, codes, strict=False) if joined[n] <= row})
    borders = sorted({0, len(rows), *(at for at, *_ in answers)})
    labels: list[tuple[int, float, int]] = []
    for begin, end in zip(borders, [*borders[1:], None], strict=True):
        for at, row, _, code in answers:
            if at == begin and begin:
                model.feedback(row, CLASSES[code], by="row", replace=True)
        if end is not None and end > begin:
            out = model.label_stream(rows[begin:end])
            labels += zip(out.codes.tolist(), out.probability.tolist(), out.windows.tolist(), strict=True)
    assert labels == [(code, probability, window) for *_, code, probability, window in stored], "labels differ"
    assert [event.row for event in model.events] == events[-256:], "events differ"
    return {"rows": len(stored), "answers": len(answers), "events": len(events), "repeated": load.repeated}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="driftvote-serve-kill-") as folder:
        found = kill_service(options.kills, options.seed, Path(folder))
    print(", ".join(f"{value:,} {name}" for name, value in found.items()))
    print(f"seed {options.seed}: nothing answered was lost, twice or different; labels are those of one run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
