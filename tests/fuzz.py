"""Damaged and hostile input against everything that reads input: `make fuzz`, and 20 seconds of it in the tests.

A case is a target and a seed. Cases run in child processes whose memory is limited, so a crash, a hang or a hunger for
memory is seen and belongs to one case. A case may end well or be refused in one sentence; everything else is broken:
another exit code, a traceback, a signal, a timeout. What broke is kept in a folder, with the command that repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import pickle
import random
import resource
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = 6 << 30
"""Bytes of address space for a child: compiled kernels and Arrow take 2 GB of it before the first case."""
PATIENCE = 60.0
"""Seconds after which a case hangs. The first one of a child has to load, or compile, the kernels."""
START = 300.0

LABELERS = ["regex", "model", "crowd", "old"]
FAIR = ("well", "refused")


class BrokenError(Exception):
    """A case that did not end well."""


# -- damage ----------------------------------------------------------------------------------------


def damage(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, cut out, put in or repeated."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if not out:
            break
        at = rng.randrange(len(out))
        size = rng.choice([1, 1, 2, 4, 8, 64])
        kind = rng.randrange(8)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.randrange(256)
        elif kind == 2:
            out[at : at + size] = bytes(len(out[at : at + size]))
        elif kind == 3:
            out[at : at + size] = b"\xff" * len(out[at : at + size])
        elif kind == 4:
            del out[at:]
        elif kind == 5:
            del out[at : at + size]
        elif kind == 6:
            out[at:at] = rng.randbytes(size)
        else:
            out[at:at] = out[at : at + 4 * size]
    return bytes(out)


ODD = [None, True, -1, 0, 1, 2**31, 2**63, -(2**70), 1e308, float("nan"), float("inf"), "", "x", "\x00", "9" * 5000]
ODD += ["\ud800", "2026-01-01", [], [[]], {}, {"a": 1}, [1, 2, 3], ["a", "a", "a"], [None] * 3, "ham", 0.5]


def damage_value(value: Any, rng: random.Random) -> Any:
    """A value of JSON with one part replaced, dropped or repeated."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: part for name, part in value.items() if name != key}
        if rng.random() < 0.05:
            return value | {str(rng.choice(ODD)): rng.choice(ODD)}
        return value | {key: damage_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:place] + value[place + 1 :] if rng.random() < 0.5 else [*value, value[place]]
        return [*value[:place], damage_value(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.6:
        return value + rng.choice([-1, 1, -value - 1, 64, 2**16, 2**31, 2**62])
    return rng.choice(ODD)


def damage_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """An array with some values out of range, or of another type or shape."""
    kind, array = rng.randrange(10), array.copy()
    if kind == 0:
        return array.astype(rng.choice([np.int8, np.int16, np.int32, np.int64, np.uint8, np.float32, np.float64, bool]))
    if kind == 1:
        return rng.choice([array[:0], array[:-1], np.concatenate([array, array]), array.ravel(), array[None], array.T])
    if array.size:
        for _ in range(rng.choice([1, 1, 3, 50])):
            place = rng.randrange(array.size)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if array.dtype.kind == "f":
                    array.flat[place] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 2.0, 1e308, 0.0, 1.0, rng.random()])
                elif array.dtype.kind == "b":
                    array.flat[place] ^= True
                else:
                    limits = np.iinfo(array.dtype)
                    near = int(array.flat[place]) + rng.choice([-1, 1, 2, -3, 64, 1000])
                    value = rng.choice([limits.min, limits.max, -1, -2, -3, 0, 1, 2, 3, 100, near])
                    array.flat[place] = min(max(value, limits.min), limits.max)
    return array


# -- targets ---------------------------------------------------------------------------------------
# A target takes a source of randomness and an empty folder, and returns a word of FAIR.


def votes_of(rng: random.Random, n_rows: int, n_classes: int = 2) -> np.ndarray:
    source = np.random.default_rng(rng.randrange(2**32))
    truth = source.integers(n_classes, size=(n_rows, 1))
    votes = np.where(source.random((n_rows, 4)) < 0.8, truth, source.integers(n_classes, size=(n_rows, 4)))
    return np.where(source.random(votes.shape) < 0.1, -1, votes).astype(np.int8)


def make_model(rng: random.Random) -> Any:
    """A model of a random kind, with a history."""
    from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel

    k = rng.choice([2, 2, 3])
    kinds: list[Callable[[], Any]] = [
        lambda: AdaptiveLabelModel(n_classes=k, windows=[16, 64, 256], false_event_rate=1e-4),
        lambda: AdaptiveLabelModel(n_classes=k, estimator="triplet", windows=[16, 64]),
        lambda: AdaptiveLabelModel(n_classes=k, estimator="confusion", windows=[32]),
        lambda: AdaptiveLabelModel.paper(n_classes=k, windows=[16, 64]),
        lambda: FixedWindowLabelModel(n_classes=k, window=None),
        lambda: MajorityLabelModel(n_classes=k),
    ]
    model, votes = rng.choice(kinds)(), votes_of(rng, rng.choice([1, 63, 200, 700]), k)
    votes[len(votes) // 2 :, 0] = (votes[len(votes) // 2 :, 0] + 1) % k
    ids = None
    with contextlib.suppress(Exception):
        model.check_learns_from_verified()
        ids = [rng.choice([row, f"id {row}"]) for row in range(len(votes))]
    model.label_stream(votes, ids=ids)
    if ids is not None:
        model.feedback(len(votes) - 1, 1, by="row")
    return model


def use(model: Any, rng: random.Random) -> None:
    """Everything that a model can do, on a few rows."""
    votes = votes_of(rng, 150)
    model.update(votes[0])
    model.label_stream(votes).to_frame()
    model.predict(votes)
    model.explain(votes[0])
    model.describe()
    model.new_warnings()
    model.bands()
    assert all(str(event) for event in model.events)
    header, arrays = model.to_state()
    type(model).from_state(json.loads(json.dumps(header, default=list)), arrays)


def fuzz_state(rng: random.Random, folder: Path) -> str:
    """A state file with damaged values and right checksums, or with damaged bytes."""
    from driftvote import DriftvoteError, StateError, load
    from driftvote.files import state as files

    path = folder / "state.npz"
    header, arrays = make_model(rng).to_state()
    header = json.loads(json.dumps(header, default=list))
    if rng.random() < 0.2:
        path.write_bytes(damage(files.pack_state(header, arrays), rng))
    else:
        for _ in range(rng.choice([1, 1, 2])):
            if rng.random() < 0.5:
                name = rng.choice(list(arrays))
                arrays[name] = damage_array(arrays[name], rng)
            else:
                header = damage_value(header, rng)
        if not isinstance(header, dict):
            return "refused"
        with contextlib.suppress(ValueError):  # JSON cannot write it
            path.write_bytes(files.pack_state(header, arrays))
    try:
        model = load(path)
    except StateError:
        return "refused"
    with contextlib.suppress(DriftvoteError):
        use(model, rng)
    return "well"


def run_command(*arguments: object) -> str:
    """The command line, in this process; an exit code that it does not have is broken, and so is a traceback."""
    from driftvote import cli

    printed, before = io.StringIO(), sys.argv
    sys.argv = ["driftvote", *map(str, arguments)]
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
            cli.main()
    except SystemExit as end:
        text, well = printed.getvalue(), (0, 3, 4) if arguments[0] == "check" else (0,)
        if end.code not in (*well, 2) or "Traceback" in text or "internal error" in text:
            raise BrokenError(f"driftvote {' '.join(sys.argv[1:])}: exit code {end.code}: {text}") from None
        if end.code == 2 and len(text.strip().splitlines()) != 1:
            raise BrokenError(f"driftvote {' '.join(sys.argv[1:])}: not one sentence: {text}") from None
        return "well" if end.code in well else "refused"
    finally:
        sys.argv = before
    raise BrokenError("the command returned")


def write_votes(path: Path, rng: random.Random) -> list[str]:
    """A file of votes in the format that the name asks for; the options that read it."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    rows, classes = votes_of(rng, rng.choice([1, 5, 40])), ["ham", "spam"]
    cells = [[None if code < 0 else classes[code] for code in row] for row in rows.tolist()]
    table = {
        "id": [f"m{row}" for row in range(len(rows))],
        "time": [f"2026-01-01T00:00:{row:02}" for row in range(len(rows))],
    }
    table |= {name: [row[place] for row in cells] for place, name in enumerate(LABELERS)}
    ending = path.suffix
    if ending == ".npy":
        np.save(path, rows)
        return []
    if ending == ".npz":
        save = rng.choice([np.savez, np.savez_compressed])
        save(
            path, votes=rows, labelers=LABELERS, classes=classes, id=np.arange(len(rows)), time=np.array(table["time"])
        )
        return rng.choice([[], ["--id", "id", "--time", "time"]])
    if ending in (".csv", ".jsonl"):
        if ending == ".csv":
            text = [table.keys(), *zip(*table.values(), strict=True)]
            data = "".join(",".join("" if cell is None else cell for cell in line) + "\n" for line in text).encode()
        else:
            lines = [dict(zip(table, line, strict=True)) for line in zip(*table.values(), strict=True)]
            lines = [damage_value(line, rng) if rng.random() < 0.05 else line for line in lines]
            data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        path.write_bytes(data)
    else:
        arrow = pa.table(table)
        if ending != ".parquet" and rng.random() < 0.3:
            arrow = pa.table(
                {name: column.dictionary_encode() for name, column in zip(table, arrow.columns, strict=True)}
            )
        if ending == ".parquet":
            pyarrow.parquet.write_table(arrow, path, compression=rng.choice(["snappy", "none", "zstd"]))
        elif ending == ".feather":
            pyarrow.feather.write_feather(arrow, path, compression=rng.choice(["lz4", "uncompressed"]))
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow.schema) as writer:
                writer.write_table(arrow, max_chunksize=20)
    return rng.choice([["--id", "id", "--time", "time"], ["--id", "id", "--drop", "time"], ["--drop", "id,time"]])


def fuzz_file(ending: str) -> Callable[[random.Random, Path], str]:
    """The target that damages files of one format and gives them to a command."""

    def fuzz(rng: random.Random, folder: Path) -> str:
        path = folder / f"votes{ending}"
        options = write_votes(path, rng)
        if rng.random() < 0.8:  # the others are whole, and may be odd all the same
            path.write_bytes(damage(path.read_bytes(), rng))
        if ending in (".csv", ".jsonl") and rng.random() < 0.1:
            path = path.rename(folder / f"votes{ending}.gz")
            path.write_bytes(damage(gzip.compress(path.read_bytes()), rng))
        command = rng.choice(["label", "label", "label", "check", "convert", "ask", "report", "compare"])
        if command in ("check", "compare"):
            return run_command(command, path, *options)
        out = folder / f"out{'.json' if command == 'report' else rng.choice(['.csv', '.parquet', '.jsonl'])}"
        more = ["--state", folder / "state.npz"] if command == "label" and rng.random() < 0.3 else []
        place = [out] if command == "convert" else ["-o", out]
        outcome = run_command(command, path, *place, *options, *more)
        left = {part.name for part in folder.iterdir()} - {path.name, out.name, "state.npz"}
        if left or (outcome == "well") != out.exists() or (more and (outcome == "well") != more[1].exists()):
            raise BrokenError(f"{outcome}, and these files are there: {sorted(part.name for part in folder.iterdir())}")
        return outcome

    return fuzz


def fuzz_long(rng: random.Random, folder: Path) -> str:
    """A file with one vote per line, damaged."""
    path = folder / "votes.csv"
    lines = ["task,worker,answer,at,truth"]
    for task in range(rng.choice([3, 30])):
        truth = rng.choice(["cat", "dog"])
        lines += [
            f"t{task},w{place},{rng.choice([truth, 'dog'])},{task},{truth}" for place in range(rng.choice([3, 4]))
        ]
    rng.shuffle(lines[1:])
    path.write_bytes(damage("\n".join(lines).encode(), rng))
    options = [
        "--task",
        "task",
        "--labeler",
        "worker",
        "--label",
        "answer",
        *rng.choice([["--time", "at"], ["--in-order"]]),
    ]
    options += rng.choice([[], ["--duplicates", "last"], ["--gold", "truth"], ["--fold-case"]])
    return run_command("label", path, "-o", folder / "out.csv", *options)


def make_line(rng: random.Random) -> bytes:
    """A line of votes, more or less."""
    votes: dict[str, Any] = {name: rng.choice(["ham", "spam", None]) for name in LABELERS}
    line: Any = {"id": rng.randrange(100), "time": rng.randrange(100), "votes": votes}
    if rng.random() < 0.1:
        line = {"row": rng.randrange(20), "verified": "ham"}
    if rng.random() < 0.4:
        line = damage_value(line, rng)
    data = json.dumps(line, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        data = damage(data, rng)
    if rng.random() < 0.02:
        data = rng.choice(
            [b"[" * 100_000, b'{"a":' * 50_000, b"9" * 100_000, b'{"votes": {' + b'"a": 1, ' * 20_000 + b'"b": 1}}']
        )
    return data.replace(b"\n", b" ")


def fuzz_watch(rng: random.Random, folder: Path) -> str:
    """Lines of a live stream: each is answered, whatever it is, and the state holds the rows that were."""
    from driftvote import AdaptiveLabelModel, MajorityLabelModel, load
    from driftvote.live import WatchOptions
    from driftvote.live.lines import LineSource, Stop
    from driftvote.live.loop import StreamLoop
    from driftvote.live.state import Position

    lines = [make_line(rng) for _ in range(rng.choice([1, 20, 80]))]
    (folder / "lines").write_bytes(b"\n".join(lines))
    options = WatchOptions(
        state=folder / "state.npz",
        events=folder / "events.jsonl",
        quiet=True,
        **{name: rng.random() < 0.5 for name in ("arrival", "keep_ids", "proba", "accuracies", "weights", "explain")},
        unknown=rng.choice(["refuse", "abstain"]),
        late=rng.choice(["take", "refuse"]),
    )
    model = rng.choice([AdaptiveLabelModel, MajorityLabelModel])(classes=["ham", "spam"])
    with (
        (folder / "lines").open("rb") as source,
        (folder / "answers").open("wb") as sink,
        StreamLoop(model, options, Position(), sink.fileno()) as loop,
    ):
        loop.run(LineSource(source.fileno(), Stop()), Stop())
    answers = [json.loads(line) for line in (folder / "answers").read_bytes().splitlines()]
    rows = [answer["row"] for answer in answers if "window" in answer]
    asked = sum(bool(line.strip()) for line in lines)
    if len(answers) != asked or rows != list(range(len(rows))) or load(folder / "state.npz").n_rows != len(rows):
        raise BrokenError(f"{asked} lines, {len(answers)} answers, {len(rows)} rows")
    return "well"


def make_cell(rng: random.Random) -> Any:
    odd = [
        *ODD,
        b"x",
        (1, 2),
        {1, 2},
        object(),
        1 + 2j,
        np.int8(1),
        np.float64("nan"),
        np.datetime64("NaT"),
        np.bool_(True),
    ]
    return rng.choice([0, 1, -1]) if rng.random() < 0.7 else rng.choice(odd)


def make_rows(rng: random.Random) -> Any:
    """Votes in some form that a user might think of."""
    import pandas as pd
    import pyarrow as pa

    n_rows, width = rng.choice([0, 1, 3, 70]), rng.choice([0, 1, 3, 4, 4, 4, 5])
    cells = [
        [make_cell(rng) if rng.random() < 0.1 else rng.choice([0, 1, -1]) for _ in range(width)] for _ in range(n_rows)
    ]
    names = [rng.choice([f"labeler_{place}", f"n{place}", place]) for place in range(width)]
    kind = rng.randrange(10)
    if kind == 0:
        return [dict(zip(names, row, strict=True)) for row in cells]
    if kind == 1:
        columns = names if len({*names}) == width else None
        try:
            return pd.DataFrame(cells, columns=columns)
        except UnicodeEncodeError:  # a column of text that holds half a character: pandas needs to be told
            return pd.DataFrame(cells, columns=columns, dtype=object)
    if kind == 2:
        return votes_of(rng, n_rows).astype(rng.choice([np.int8, np.uint8, np.float32, np.int64, object, str, bool]))
    if kind == 3:
        return np.array(cells, dtype=object)
    if kind == 4:
        return pa.table({str(name): pa.array([rng.choice([0, 1, None]) for _ in range(n_rows)]) for name in names})
    if kind == 5:
        return [row[: rng.randrange(width + 1)] for row in cells]
    if kind == 6:
        return rng.choice([*ODD, votes_of(rng, 3)[0], votes_of(rng, 3)[None], iter([votes_of(rng, 3)])])
    if kind == 7:
        return damage_array(votes_of(rng, max(1, n_rows)), rng)
    if kind == 8:
        return {name: [row[place] for row in cells] for place, name in enumerate(names)}
    return cells


def fuzz_library(rng: random.Random, folder: Path) -> str:
    """Anything as votes, ids, times and verified classes: taken, or refused with the model as it was."""
    from driftvote import AdaptiveLabelModel, DriftvoteError, MajorityLabelModel

    model: Any = rng.choice([AdaptiveLabelModel, MajorityLabelModel])()
    outcome = "refused"
    for _ in range(5):
        before = pickle.dumps(model.to_state())
        rows = make_rows(rng)
        try:
            kind = rng.randrange(6)
            if kind == 0:
                keys = {name: make_cell(rng) for name in ("id", "verified", "time") if rng.random() < 0.2}
                model.update(rng.choice([make_cell(rng), rows, {name: make_cell(rng) for name in LABELERS}]), **keys)
            elif kind == 1:
                keys = {
                    name: [make_cell(rng)] * rng.choice([0, 1, 3]) for name in ("ids", "verified") if rng.random() < 0.2
                }
                out = model.label_stream(rows, **keys)
                for part in out if not hasattr(out, "labels") else [out]:
                    if not np.isfinite(part.proba).all():
                        raise BrokenError("a probability is not finite")
            elif kind == 2:
                model.predict(rows)
            elif kind == 3:
                model.partial_fit(rows)
            elif kind == 4:
                model.feedback(rng.choice([0, make_cell(rng), [0, 1]]), make_cell(rng))
            else:
                model.explain(rows)
            outcome = "well"
        except DriftvoteError:
            if pickle.dumps(model.to_state()) != before:
                raise BrokenError("a call was refused, and the model has changed") from None
    use(model, rng) if model.labelers and len(model.labelers) == 4 and model.classes == (0, 1) else None
    return outcome


TARGETS: dict[str, Callable[[random.Random, Path], str]] = {
    "watch": fuzz_watch,
    "library": fuzz_library,
    "long": fuzz_long,
    "state": fuzz_state,
    **{
        ending[1:]: fuzz_file(ending) for ending in (".csv", ".jsonl", ".parquet", ".arrow", ".feather", ".npy", ".npz")
    },
}


# -- children --------------------------------------------------------------------------------------


def run_case(target: str, seed: int, folder: Path) -> dict[str, Any]:
    """The outcome of one case, and what is wrong with it if it is broken."""
    printed = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            outcome = TARGETS[target](random.Random(f"{target} {seed}"), folder)
        return {"outcome": outcome, "why": "" if outcome in FAIR else "an unknown outcome"}
    except Exception as problem:
        lines = "" if isinstance(problem, BrokenError) else traceback.format_exc()
        return {"outcome": type(problem).__name__, "why": f"{problem}\n{lines}"}


def work(memory: int) -> None:
    """Run the cases named on standard input, one a line."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # commands print to standard output
    for line in sys.stdin:
        target, seed, folder = json.loads(line)
        print(json.dumps(run_case(target, seed, Path(folder))), file=answers, flush=True)


class Child:
    """A process that runs one case after the other."""

    def __init__(self, memory: int) -> None:
        command = [sys.executable, __file__, "--work", str(memory)]
        quiet = {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | quiet,
        )
        self.patience = START

    def run(self, target: str, seed: int, folder: Path) -> dict[str, Any]:
        """The outcome of a case; the child is gone if that is a crash or a timeout."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps([target, seed, str(folder)]), file=stdin, flush=True)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            ready = selector.select(self.patience)
        answer = stdout.readline() if ready else ""
        self.patience = PATIENCE
        if answer:
            outcome: dict[str, Any] = json.loads(answer)
            return outcome
        self.process.kill()
        code = self.process.wait()
        return {"outcome": "timeout" if not ready else "crash", "why": f"the process ended with {code}"}

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


def run(seconds: float, seed: int, keep: Path, targets: list[str], memory: int = MEMORY) -> dict[str, Counter[str]]:
    """Run cases of all targets in turn until the time is up; counts by target and outcome."""
    counts: dict[str, Counter[str]] = {target: Counter() for target in targets}
    child, end = Child(memory), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="driftvote-fuzz-") as base:
        while time.monotonic() < end or not all(counts.values()):
            for target in targets:
                folder = Path(base) / f"{target}-{seed}"
                folder.mkdir()
                outcome = child.run(target, seed, folder)
                counts[target][outcome["outcome"]] += 1
                if outcome["outcome"] not in FAIR:
                    keep.mkdir(parents=True, exist_ok=True)
                    shutil.copytree(folder, keep / folder.name, dirs_exist_ok=True)
                    again = f"python tests/fuzz.py --only {target} --case {seed}"
                    (keep / folder.name / "why.txt").write_text(f"{outcome['why']}\n\nAgain: {again}\n")
                    if child.process.poll() is not None:
                        child.close()
                        child = Child(memory)
                shutil.rmtree(folder)
            seed += 1
    child.close()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="of the first case; default: the time")
    parser.add_argument("--only", choices=list(TARGETS), action="append", help="this target; may be repeated")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder for what broke")
    parser.add_argument("--case", type=int, help="run this one case here, without a child process")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return 0
    targets = options.only or list(TARGETS)
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = TARGETS[targets[0]](random.Random(f"{targets[0]} {options.case}"), Path(folder))
        print(outcome)
        return 0
    seed = int(time.time()) if options.seed is None else options.seed
    counts = run(60.0 * options.minutes, seed, options.keep, targets)
    for target, outcomes in counts.items():
        print(f"{target:10} {sum(outcomes.values()):7,} cases: ", end="")
        print(", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common()))
    broken = sum(count for outcomes in counts.values() for outcome, count in outcomes.items() if outcome not in FAIR)
    print(f"first seed {seed}; {broken} broken" + (f", kept in {options.keep}" if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
