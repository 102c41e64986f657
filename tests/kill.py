"""`label --state` and `watch` killed at random moments, and between any two of their renames: `make kill`.

Every run is continued after each kill, as the documentation says, until it is done. Then labels, answers and state must
be those of a run in peace: no row lost, twice or different.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

CHANGES = ("os.replace", "os.fsync", "os.link", "os.unlink")
"""System calls before and after each of which a run is killed on purpose: everything that a crash could come between."""

DIE_AT = """import os, signal, sys
calls = [0]
def count(real):
    def call(*arguments, **keys):
        for when in ("before", "after"):
            calls[0] += 1
            if calls[0] == {at}:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **keys) if when == "before" else result
        return result
    return call
for name in {names}:
    setattr(os, name, count(getattr(os, name)))
from driftvote.cli import main
sys.argv[0] = "driftvote"
main()
"""
"""A program that runs the command and kills itself at the n-th of these moments."""


def votes_of(seed: int, n_rows: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n_rows, 1))
    return np.where(rng.random((n_rows, 4)) < [0.9, 0.8, 0.7, 0.8], truth, 1 - truth).astype(np.int8)


class Killer:
    """Starts commands and kills them: after a random time, or at a chosen system call."""

    def __init__(self, seed: int, kills: int) -> None:
        self.rng = random.Random(seed)
        self.left = kills
        self.moments = 0  # the next chosen system call
        self.counts: Counter[str] = Counter()

    def run(self, arguments: list[Any], seconds: float, **streams: Any) -> int:
        """Run a command once; its exit code, which is -9 if it was killed."""
        command = [sys.executable, "-m", "driftvote", *map(str, arguments)]
        chosen = self.left > 0 and self.rng.random() < 0.5
        if chosen:
            self.moments += 1
            names = tuple(name.removeprefix("os.") for name in CHANGES)
            command = [sys.executable, "-c", DIE_AT.format(at=self.moments, names=names), *map(str, arguments)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **streams)
        if not chosen and self.left > 0:
            try:
                process.wait(self.rng.uniform(0.3, 1.0) * seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        code = process.wait()
        if code == -signal.SIGKILL:
            self.left -= 1
            self.counts["at a system call" if chosen else "after a random time"] += 1
        elif chosen:
            self.moments = 0  # the run has fewer such moments: begin anew
        return code


def kill_label(killer: Killer, folder: Path, n_rows: int = 30_000, days: int = 3) -> None:
    """Label some days one after the other with a state, each until it is done, and compare with a run in peace."""
    whole, peace = votes_of(1, days * n_rows), folder / "peace"
    peace.mkdir()
    seconds = 0.0
    for day in range(days):
        np.save(folder / f"day{day}.npy", whole[day * n_rows : (day + 1) * n_rows])
        begin = time.monotonic()
        run_in_peace("label", folder / f"day{day}.npy", "-o", peace / f"l{day}.csv", "--state", peace / "s.npz", "-q")
        seconds = time.monotonic() - begin
    while killer.left > 0:
        work = folder / f"work{killer.left}"
        work.mkdir()
        for day in range(days):
            state, labels = work / "s.npz", work / f"l{day}.csv"
            options = ["label", folder / f"day{day}.npy", "-o", labels, "--state", state, "--force", "-q"]
            while (code := killer.run(options, seconds)) == -signal.SIGKILL:
                check_left(work, {"s.npz", "s.npz.lock", *(f"l{earlier}.csv" for earlier in range(day + 1))})
            # Killed after the last rename, the state has learned from the file already, and says so.
            assert code == 0 or (code == 2 and rows_in(state) == (day + 1) * n_rows), code
            assert labels.read_bytes() == (peace / f"l{day}.csv").read_bytes(), f"the labels of day {day} differ"
        assert same_state(work / "s.npz", peace / "s.npz"), "the states differ"
        killer.counts["runs of label that ended right"] += 1


def kill_watch(killer: Killer, folder: Path, n_rows: int = 4_000) -> None:
    """Watch a stream with --skip-seen until it is done, and compare answers, events and state with a run in peace."""
    lines, names = folder / "lines.jsonl", ["a", "b", "c", "d"]
    rows = votes_of(2, n_rows)
    rows[n_rows // 2 :, 0] = 1 - rows[n_rows // 2 :, 0]
    records = [{"id": t, "votes": dict(zip(names, row, strict=True))} for t, row in enumerate(rows.tolist())]
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))

    def options(place: Path) -> list[Any]:
        files = ["--state", place / "s.npz", "--events", place / "events.jsonl", "--metrics", place / "m.prom"]
        return ["watch", "--votes", "snorkel", "--skip-seen", "--save-lines", 100, "-q", *files]

    peace = folder / "peace"
    peace.mkdir()
    begin = time.monotonic()
    with lines.open("rb") as source, (peace / "answers").open("wb") as sink:
        run_in_peace(*options(peace), stdin=source, stdout=sink)
    seconds = time.monotonic() - begin
    expected = read_answers(peace / "answers")
    assert sorted(expected) == list(range(n_rows))
    while killer.left > 0:
        work = folder / f"work{killer.left}"
        work.mkdir()
        got: dict[int, Any] = {}
        while True:
            with lines.open("rb") as source, (work / "answers").open("wb") as sink:
                code = killer.run(options(work), seconds, stdin=source, stdout=sink)
            for row, answer in read_answers(work / "answers").items():
                assert got.setdefault(row, answer) == answer, f"row {row} was answered again, and differently"
            check_left(work, {"s.npz", "s.npz.lock", "events.jsonl", "m.prom", "answers"})
            if (work / "s.npz").exists():
                assert rows_in(work / "s.npz") <= len(got), "the state holds rows that nobody got an answer to"
            if code != -signal.SIGKILL:
                break
        assert code == 0, code
        assert got == expected, "answers are missing or differ"
        assert same_state(work / "s.npz", peace / "s.npz"), "the states differ"
        told, wanted = read_events(work / "events.jsonl"), read_events(peace / "events.jsonl")
        assert told == wanted, "events are missing, or there twice"
        killer.counts["runs of watch that ended right"] += 1


def run_in_peace(*arguments: Any, **streams: Any) -> None:
    subprocess.run([sys.executable, "-m", "driftvote", *map(str, arguments)], check=True, **streams)


def read_answers(path: Path) -> dict[int, Any]:
    """Answers by row; a line that a kill cut short is no answer."""
    answers = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        answer = json.loads(line)
        assert answer["row"] not in answers, f"row {answer['row']} was answered twice in one run"
        answers[answer["row"]] = answer
    return answers


def read_events(path: Path) -> list[Any]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key not in ("stream", "line")} for record in records]


def rows_in(state: Path) -> int:
    from driftvote import load

    return load(state).n_rows


def same_state(one: Path, other: Path) -> bool:
    from driftvote import load

    (header, arrays), (header_2, arrays_2) = load(one).to_state(), load(other).to_state()
    same = arrays.keys() == arrays_2.keys() and all((arrays[name] == arrays_2[name]).all() for name in arrays)
    return bool(same and header == header_2)


def check_left(folder: Path, known: set[str]) -> None:
    """Between linking and renaming, a file has its temporary name: there a kill may leave it."""
    left = {name for name in os.listdir(folder) if not (name.startswith(".") and ".part" in name)} - known
    assert not left, f"left behind: {left}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="of each command")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    for what in (kill_label, kill_watch):
        killer = Killer(options.seed, options.kills)
        with tempfile.TemporaryDirectory(prefix="driftvote-kill-") as folder:
            what(killer, Path(folder))
        print(
            f"{what.__name__.removeprefix('kill_')}: {options.kills} kills, "
            + ", ".join(f"{count} {word}" for word, count in killer.counts.items()),
            flush=True,
        )
    print(f"seed {options.seed}: no row lost, twice or different")
    return 0


if __name__ == "__main__":
    sys.exit(main())
