"""`driftvote watch` through real pipes: latency of a line, memory of a million, answers after kills.

`make watch-bench` writes the tables of docs/watch.md between their marks; figures are never typed in.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import ROOT, describe_machine, machine_sentence, peak_mb, replace_between

PAGE = ROOT / "docs" / "watch.md"
MOST_MS = 1.0
MOST_GROWTH_MB = 32.0
POOL = 20_000
"""Lines that are made before the clock starts and sent again and again."""


def lines_of(rows: int, labelers: int, seed: int = 0) -> list[bytes]:
    """Lines of votes on two classes, one vote in ten missing; half-way the first labeler becomes poor."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (rows, 1))
    accuracy = np.full((rows, labelers), 0.8)
    accuracy[rows // 2 :, 0] = 0.55
    votes = np.where(rng.random(accuracy.shape) < accuracy, truth, 1 - truth)
    votes[rng.random(votes.shape) < 0.1] = -1
    values = {0: "safe", 1: "unsafe", -1: None}
    names = [f"judge-{place}@v1" for place in range(labelers)]
    return [
        json.dumps(
            {"id": f"m-{i}", "votes": {name: values[int(v)] for name, v in zip(names, row, strict=True)}}
        ).encode()
        + b"\n"
        for i, row in enumerate(votes)
    ]


def watching(*options: object, **keys: Any) -> subprocess.Popen[bytes]:
    """The command, with its pipes in our hands."""
    arguments = [sys.executable, "-m", "driftvote", "watch", "--classes", "safe,unsafe", "--quiet", *map(str, options)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **keys)


def ended(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    if process.wait():
        raise RuntimeError(f"driftvote watch ended with {process.returncode}")


def latency(labelers: int, rows: int, *options: object, warm: int = 2000) -> dict[str, float]:
    """Milliseconds from writing a line to having its answer, one line after the other."""
    lines, taken = lines_of(warm + rows, labelers), []
    process = watching(*options)
    assert process.stdin is not None
    assert process.stdout is not None
    for line in lines:
        start = time.perf_counter_ns()
        process.stdin.write(line)
        process.stdin.flush()
        process.stdout.readline()
        taken.append(time.perf_counter_ns() - start)
    ended(process)
    found = np.percentile(taken[warm:], [50, 99, 100]) / 1e6
    return {"median": float(found[0]), "p99": float(found[1]), "max": float(found[2])}


def latencies(rows: int, folder: Path) -> dict[str, dict[str, float]]:
    """For panels of 6 and of 20, and with everything switched on."""
    kept = ["--state", folder / "s.npz", "--save-every", 1, "--metrics", folder / "m.prom"]
    everything = [*kept, "--events", folder / "e.jsonl", "--proba", "--accuracies", "--weights", "--keep-ids"]
    return {
        "6 labelers": latency(6, rows),
        "20 labelers": latency(20, rows),
        "6 labelers; state and metrics every second, all parts of an answer": latency(6, rows, *everything),
    }


def memory(marks: list[int], folder: Path) -> list[dict[str, float]]:
    """Peak memory of the process after so many lines, and the lines per second up to there."""
    pool = lines_of(POOL, 6)
    process = watching("--state", folder / "memory.npz")
    assert process.stdin is not None
    assert process.stdout is not None

    def feed() -> None:
        for line in itertools.islice(itertools.cycle(pool), marks[-1]):
            process.stdin.write(line)  # type: ignore[union-attr]
        process.stdin.close()  # type: ignore[union-attr]

    feeding = threading.Thread(target=feed)
    found, start = [], time.perf_counter()
    feeding.start()
    for count, _ in enumerate(process.stdout, 1):
        if count in marks:
            seconds = time.perf_counter() - start
            found.append({"lines": count, "peak_mb": peak_mb(process.pid), "a_second": count / seconds})
    feeding.join()
    if process.wait() or len(found) != len(marks):
        raise RuntimeError(f"driftvote watch ended with {process.returncode} after {len(found)} of {len(marks)} marks")
    return found


def answers_of(process: subprocess.Popen[bytes], most: int | None) -> Iterator[dict[str, Any]]:
    """Answers; after `most` of them the process is killed."""
    assert process.stdout is not None
    for count, line in enumerate(process.stdout, 1):
        if line.endswith(b"\n"):
            yield json.loads(line)
        if count == most:
            process.send_signal(signal.SIGKILL)


def kills(rows: int, n_kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill after a random answer, go on with the state, again and again; compare with a stream never killed."""
    stream = folder / "stream.jsonl"
    stream.write_bytes(b"".join(lines_of(rows, 6, seed)))
    with stream.open("rb") as source:
        whole = {answer["row"]: answer for answer in answers_of(_reading(source), None)}
    rng = np.random.default_rng(seed)
    state = folder / "killed.npz"
    got: dict[int, dict[str, Any]] = {}
    total = different = done = 0
    while len(got) < rows or done < n_kills:
        most = None if done >= n_kills else int(rng.integers(1, 2 * rows // (n_kills + 1)))
        with stream.open("rb") as source:
            process = _reading(source, "--state", state, "--save-lines", 97, "--skip-seen")
            for answer in answers_of(process, most):
                total += 1
                different += answer != whole[answer["row"]] or got.setdefault(answer["row"], answer) != answer
            process.wait()
        done += 1
    return {
        "rows": rows,
        "kills": n_kills,
        "again": total - len(got),
        "missing": rows - len(got),
        "different": different,
    }


def _reading(source: Any, *options: object) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "driftvote", "watch", "--classes", "safe,unsafe", "--quiet", *map(str, options)]
    return subprocess.Popen(arguments, stdin=source, stdout=subprocess.PIPE)


def latency_table(found: dict[str, dict[str, float]]) -> str:
    lines = ["| a line and its answer | median | 99% | longest | median under 1 ms |", "|---|---|---|---|---|"]
    for title, times in found.items():
        cells = " | ".join(f"{times[name]:.2f} ms" for name in ("median", "p99", "max"))
        lines.append(f"| {title} | {cells} | {'yes' if times['median'] < MOST_MS else '**no**'} |")
    return "\n".join(lines)


def memory_table(found: list[dict[str, float]]) -> str:
    lines = ["| lines | peak memory | lines per second |", "|---|---|---|"]
    lines += [f"| {int(f['lines']):,} | {f['peak_mb']:.0f} MB | {f['a_second']:,.0f} |" for f in found]
    growth = found[-1]["peak_mb"] - found[0]["peak_mb"]
    verdict = "flat" if growth < MOST_GROWTH_MB else "**not flat**"
    return "\n".join([*lines, "", f"From the first line of the table to the last: {growth:+.1f} MB, {verdict}."])


def kill_table(found: list[dict[str, int]]) -> str:
    lines = ["| rows | kills | answers given twice | answers missing | answers that differ |", "|---|---|---|---|---|"]
    lines += [f"| {f['rows']:,} | {f['kills']} | {f['again']:,} | {f['missing']} | {f['different']} |" for f in found]
    return "\n".join(lines)


def write_table(page: str, name: str, table: str) -> str:
    """The page with the table between its marks."""
    begin, end = f"<!-- {name}: written by make watch-bench -->", f"<!-- end of {name} -->"
    return replace_between(page, begin, end, f"\n{table}\n")


def _latency(chosen: argparse.Namespace, folder: Path) -> str:
    where = machine_sentence(describe_machine())
    return f"{latency_table(latencies(chosen.rows, folder))}\n\n{chosen.rows:,} lines each. {where}"


def _memory(chosen: argparse.Namespace, folder: Path) -> str:
    return memory_table(memory([chosen.lines // 10, chosen.lines // 2, chosen.lines], folder))


def _kills(chosen: argparse.Namespace, folder: Path) -> str:
    runs = []
    for seed in range(3):
        (folder / "killed.npz").unlink(missing_ok=True)
        runs.append(kills(20_000, chosen.kills, folder, seed))
    return kill_table(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="lines whose latency is measured")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the memory test")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--only", choices=["latency", "memory", "kills"], help="one of the tables")
    chosen = parser.parse_args()
    makers = {"latency": _latency, "memory": _memory, "kills": _kills}
    with tempfile.TemporaryDirectory() as name:
        tables = {title: make(chosen, Path(name)) for title, make in makers.items() if chosen.only in (None, title)}
    page = PAGE.read_text()
    for title, table in tables.items():
        page = write_table(page, title, table)
    PAGE.write_text(page)
    print(f"wrote the tables of {PAGE}")


if __name__ == "__main__":
    main()
