"""`driftvote serve` under load, client and server on this machine: throughput, latency, fairness, memory.

`make serve-bench` writes the tables of docs/serve.md between their marks; figures are never typed in. Requests are made
before the clock starts and sent by a process of its own; answers are read to their end.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import ROOT, describe_machine, machine_sentence, replace_between

PAGE = ROOT / "docs" / "serve.md"
NAMES = [f"judge-{place}" for place in range(6)]
CLASSES = ["safe", "unsafe"]
LEAST_RATIO = 0.25
LEAST_ROWS = 300.0
MOST_P99_MS = 100.0
MOST_SPREAD = 3.0
MOST_GROWTH = 0.15


def votes_of(n_rows: int, seed: int = 0) -> list[dict[str, str | None]]:
    """Votes of six labelers on two classes, one in ten missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n_rows, 1))
    codes = np.where(rng.random((n_rows, 6)) < 0.8, truth, 1 - truth)
    codes[rng.random(codes.shape) < 0.1] = 2
    values = [*CLASSES, None]
    return [{name: values[code] for name, code in zip(NAMES, row, strict=True)} for row in codes.tolist()]


def body_of(votes: Sequence[dict[str, Any]], first: int, prefix: str = "m") -> bytes:
    """The body of a request."""
    rows = [{"id": f"{prefix}{first + place}", "votes": one} for place, one in enumerate(votes)]
    return json.dumps({"rows": rows}).encode()


class Service:
    """The service in a process of its own."""

    def __init__(self, data: Path) -> None:
        command = [sys.executable, "-m", "driftvote", "serve", "--data", str(data), "--port", "0"]
        with data.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(f"driftvote serve did not start: {data.with_suffix('.log').read_text()[-2000:]}")
        self.port = int(line.rsplit(":", 1)[1].strip().strip("/"))
        while self.call("GET", "/readyz")[0] != 200:
            time.sleep(0.2)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def call(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def create(self, name: str) -> str:
        status, answer = self.call("PUT", f"/v1/streams/{name}", json.dumps({"classes": CLASSES}).encode())
        if status not in (200, 201):
            raise RuntimeError(str(answer))
        return f"/v1/streams/{name}/rows"

    def rss_mb(self) -> float:
        """Memory that the process holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def send(port: int, jobs: Sequence[Sequence[tuple[str, bytes]]]) -> list[list[tuple[float, float]]]:
    """Send the requests of each client one after the other, all clients at once: begin and seconds of each."""
    taken: list[list[tuple[float, float]]] = [[] for _ in jobs]

    def work(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for path, body in jobs[client]:
            begin = time.perf_counter()
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")
            taken[client].append((begin, time.perf_counter() - begin))
        connection.close()

    threads = [threading.Thread(target=work, args=(client,)) for client in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def by_library(votes: list[dict[str, Any]], size: int, path: Path) -> float:
    """Rows a second of `label_stream` on the same batches, labels written to Parquet."""
    import pyarrow.parquet as pq

    from driftvote import AdaptiveLabelModel

    model, writer = AdaptiveLabelModel(classes=CLASSES), None
    model.clone().label_stream(votes[:size])
    begin = time.perf_counter()
    for first in range(0, len(votes), size):
        frame: Any = model.label_stream(votes[first : first + size]).to_frame("pyarrow")
        writer = writer or pq.ParquetWriter(path, frame.schema)
        writer.write_table(frame)
    if writer is not None:
        writer.close()
    return len(votes) / (time.perf_counter() - begin)


def measure_batches(service: Service, folder: Path, rows: int, size: int = 1000, rounds: int = 3) -> dict[str, float]:
    """Throughput of batches through the service and through the library, taking turns."""
    votes = votes_of(rows)
    served, direct = [], []
    for turn in range(rounds):
        path = service.create(f"batches-{turn}")
        send(service.port, [[(path, body_of(votes[:size], 0, "warm"))]])
        bodies = [(path, body_of(votes[first : first + size], first)) for first in range(0, rows, size)]
        begin = time.perf_counter()
        send(service.port, [bodies[0::2], bodies[1::2]])
        served.append(rows / (time.perf_counter() - begin))
        direct.append(by_library(votes, size, folder / "labels.parquet"))
    ratio = statistics.median(one / other for one, other in zip(served, direct, strict=True))
    return {"rows": rows, "served": statistics.median(served), "direct": statistics.median(direct), "ratio": ratio}


def measure_single(service: Service, rows: int, clients: int = 16) -> dict[str, float]:
    """Latency of single rows of one stream, and how many a second, each durable before it is answered."""
    path, votes = service.create("single"), votes_of(rows, 1)
    jobs = [
        [(path, body_of([votes[place]], place)) for place in range(client, rows, clients)] for client in range(clients)
    ]
    send(service.port, [one[: len(one) // 10] for one in jobs])  # warm; the same ids would be answered from the store
    jobs = [one[len(one) // 10 :] for one in jobs]
    begin = time.perf_counter()
    taken = send(service.port, jobs)
    seconds = time.perf_counter() - begin
    found = np.array([one for client in taken for _, one in client])
    low, high = np.percentile(found, [50, 99]) * 1000
    return {"rows": len(found), "a_second": len(found) / seconds, "median_ms": float(low), "p99_ms": float(high)}


def measure_streams(service: Service, streams: int = 200, each: int = 10, size: int = 20) -> dict[str, float]:
    """How much longer the slowest of many streams takes than the median one, with all of them busy at once."""
    votes = votes_of(each * size, 2)
    paths = [service.create(f"many-{number}") for number in range(streams)]
    jobs = [
        [(path, body_of(votes[first * size : (first + 1) * size], first * size)) for first in range(each)]
        for path in paths
    ]
    send(service.port, [one[:1] for one in jobs])
    begin = time.perf_counter()
    taken = send(service.port, [one[1:] for one in jobs])
    seconds = time.perf_counter() - begin
    ends = [one[-1][0] + one[-1][1] - begin for one in taken]
    waits = [max(seconds for _, seconds in one) for one in taken]
    return {
        "streams": streams,
        "a_second": streams * (each - 1) * size / seconds,
        "median": statistics.median(ends),
        "slowest": max(ends),
        "spread": max(ends) / statistics.median(ends),
        "longest_wait": max(waits),
    }


def measure_memory(service: Service, marks: Sequence[int], size: int = 1000) -> list[tuple[int, float]]:
    """Memory of the service after so many rows of one stream."""
    path, votes, found, first = service.create("memory"), votes_of(20_000, 3), [], 0
    for mark in marks:
        bodies = []
        while first < mark:
            begin = first % len(votes)
            bodies.append((path, body_of(votes[begin : begin + size], first)))
            first += size
            if len(bodies) == 100 or first >= mark:
                send(service.port, [bodies])
                bodies = []
        found.append((first, service.rss_mb()))
    return found


def yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def tables(found: dict[str, Any]) -> str:
    """The figures as tables, with what must hold."""
    batches, single, many, memory = found["batches"], found["single"], found["streams"], found["memory"]
    grown = memory[-1][1] / memory[0][1] - 1
    lines = [
        "| load | figure | must be | holds |",
        "|---|---|---|---|",
        f"| batches of 1,000 rows x 6, two clients | {batches['served']:,.0f} rows/s, {batches['ratio']:.0%} of"
        f" `label_stream` on the same batches written to Parquet ({batches['direct']:,.0f} rows/s) | at least"
        f" {LEAST_RATIO:.0%} | {yes(batches['ratio'] >= LEAST_RATIO)} |",
        f"| single rows, one stream, 16 clients | {single['a_second']:,.0f} rows/s | at least {LEAST_ROWS:.0f} |"
        f" {yes(single['a_second'] >= LEAST_ROWS)} |",
        f"| the same, time of a request | median {single['median_ms']:.1f} ms, 99% under {single['p99_ms']:.1f} ms |"
        f" p99 under {MOST_P99_MS:.0f} ms | {yes(single['p99_ms'] < MOST_P99_MS)} |",
        f"| {many['streams']} streams at once, batches of 20 | {many['a_second']:,.0f} rows/s; the slowest stream takes"
        f" {many['spread']:.2f} times as long as the median | at most {MOST_SPREAD:.0f} times |"
        f" {yes(many['spread'] <= MOST_SPREAD)} |",
        f"| memory, one stream | {memory[0][1]:.0f} MB after {memory[0][0]:,} rows, {memory[-1][1]:.0f} MB after"
        f" {memory[-1][0]:,} | at most {MOST_GROWTH:.0%} more | {yes(grown <= MOST_GROWTH)} |",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of rows; below 1 nothing is written")
    chosen = parser.parse_args()
    found = measure(chosen.scale)
    table = tables(found)
    print(table)
    if chosen.scale >= 1:
        text = f"{machine_sentence(describe_machine())}\n\n{table}"
        begin, end = "<!-- load: written by make serve-bench -->", "<!-- end of load -->"
        PAGE.write_text(replace_between(PAGE.read_text(), begin, end, text))
    if "**no**" in table:
        sys.exit(1)


def measure(scale: float = 1.0) -> dict[str, Any]:
    """All figures, at a part of the full size."""
    with tempfile.TemporaryDirectory(prefix="driftvote-serve-") as name, Service(Path(name) / "data") as service:
        return {
            "batches": measure_batches(service, Path(name), max(4_000, int(200_000 * scale) // 1000 * 1000)),
            "single": measure_single(service, max(320, int(8_000 * scale))),
            "streams": measure_streams(service, max(8, int(200 * scale))),
            "memory": measure_memory(service, [max(2_000, int(n * scale)) for n in (100_000, 1_000_000)]),
        }


if __name__ == "__main__":
    main()
