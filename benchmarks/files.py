"""Files against memory: what reading and writing cost beside `label_stream`, and what is held; writes docs/files.md.

Run by `make bench-files`, some minutes. `python -m benchmarks.files child ROWS FOLDER NAME` is one measured process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Case, describe_machine, interleave, machine_sentence, make_votes, peak_mb, ratio
from driftvote import AdaptiveLabelModel
from driftvote.cli.label import LabelOptions
from driftvote.cli.label import label_file as run_label
from driftvote.cli.options import InputOptions, ModelOptions

PAGE = ROOT / "docs" / "files.md"
LABELERS = 6
MOST_RATIO, MOST_MB = 2.5, 700
FORMATS = ("parquet", "feather", "npy", "csv", "jsonl")


def make_parquet(rows: int, path: Path) -> np.ndarray:
    """Votes of six labelers in a Parquet file, and in memory."""
    codes, _ = make_votes(Case(rows, LABELERS))
    columns: dict[str, Any] = {f"labeler_{place}": codes[:, place] for place in range(LABELERS)}
    pq.write_table(pa.table(columns), path)
    return codes


def label_file(votes: Path, labels: Path, **given: Any) -> None:
    """What `driftvote label` does, in this process."""
    options = LabelOptions(out=str(labels), force=True, quiet=True)
    run_label(InputOptions(file=str(votes), **given), ModelOptions(), options)


def beside_memory(rows: int, folder: Path, rounds: int) -> dict[str, Any]:
    """`label` from Parquet to Parquet and `label_stream` on the same votes, taking turns."""
    codes = make_parquet(rows, folder / "votes.parquet")
    AdaptiveLabelModel().label_stream(codes[:1000])
    sides = {
        "memory": lambda: AdaptiveLabelModel().label_stream(codes),
        "file": lambda: label_file(folder / "votes.parquet", folder / "labels.parquet"),
    }
    times = interleave(sides, rounds, 300)
    return {
        "rows": rows,
        "memory": median(times["memory"]),
        "file": median(times["file"]),
        "ratio": ratio(times, "file", "memory"),
        "rounds": len(times["file"]),
    }


def in_a_process(rows: int, folder: Path, name: str = "votes.parquet", *given: str) -> dict[str, float]:
    """Seconds and peak memory of a process of its own, from start to end."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.files",
        "child",
        str(folder / name),
        str(folder / "labels.parquet"),
        *given,
    ]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the measured process failed:\n{done.stderr}")
    return {"rows": rows, "seconds": time.perf_counter() - start, **json.loads(done.stdout)}


def child(votes: str, labels: str, *given: str) -> None:
    """Label one file and tell how much memory that took."""
    options = dict(item.split("=") for item in given)
    label_file(Path(votes), Path(labels), **{key: value if value != "yes" else True for key, value in options.items()})
    print(json.dumps({"peak_mb": peak_mb()}))


def by_format(rows: int, folder: Path) -> list[dict[str, Any]]:
    """Rows per second from each format to Parquet, and from Parquet to each format."""
    from driftvote.cli.convert import convert

    codes = make_parquet(rows, folder / "votes.parquet")
    np.save(folder / "votes.npy", codes)
    for kind in FORMATS:
        if kind not in ("parquet", "npy"):
            convert(file=str(folder / "votes.parquet"), out=str(folder / f"votes.{kind}"), force=True, quiet=True)
    found = []
    for kind in FORMATS:
        sides = {"read": lambda kind=kind: label_file(folder / f"votes.{kind}", folder / "labels.parquet")}
        if kind != "npy":
            sides["written"] = lambda kind=kind: label_file(folder / "votes.parquet", folder / f"labels.{kind}")
        times = interleave(sides, 3, 120)
        found.append({"format": kind, **{side: rows / median(values) for side, values in times.items()}})
    return found


def make_shuffled(rows: int, path: Path) -> None:
    """A stream whose rows lie in random order, with their times; written piece by piece."""
    codes, _ = make_votes(Case(rows, LABELERS))
    times = np.random.default_rng(0).permutation(rows)
    table: dict[str, Any] = {"at": times} | {f"labeler_{place}": codes[times, place] for place in range(LABELERS)}
    pq.write_table(pa.table(table), path)


def measure(rows: list[int], rounds: int, sort_rows: int, format_rows: int, folder: Path) -> dict[str, Any]:
    """Everything that the page shows."""
    sizes, held = [], []
    for count in rows:
        sizes.append(beside_memory(count, folder, rounds))
        held.append(in_a_process(count, folder))
        print(f"  {count:,} rows: {sizes[-1]['ratio']:.2f} x memory, peak {held[-1]['peak_mb']:.0f} MB")
    make_shuffled(sort_rows, folder / "shuffled.parquet")
    ordered = in_a_process(sort_rows, folder, "shuffled.parquet", "time=at", "sort=yes")
    formats = by_format(format_rows, folder)
    return {
        "machine": describe_machine(),
        "sizes": sizes,
        "held": held,
        "sorted": ordered,
        "formats": formats,
        "format_rows": format_rows,
    }


def page(found: dict[str, Any]) -> str:
    """docs/files.md"""
    lines = [
        f"| {a['rows']:,} | {a['memory']:.2f} s | {a['file']:.2f} s | {a['ratio']:.2f} x | {b['seconds']:.1f} s |"
        f" {b['peak_mb']:.0f} MB |"
        for a, b in zip(found["sizes"], found["held"], strict=True)
    ]
    rates = [
        f"| {line['format']} | {line['read']:,.0f} | {format(line['written'], ',.0f') if 'written' in line else ''} |"
        for line in found["formats"]
    ]
    peaks = [line["peak_mb"] for line in found["held"]]
    last, ordered = found["sizes"][-1], found["sorted"]
    ratio_now, over = last["ratio"], peaks[-1] / peaks[0]
    verdict = [
        ("`label`, Parquet to Parquet, over `label_stream` in memory", f"at most {MOST_RATIO} x", f"{ratio_now:.2f} x",
         ratio_now <= MOST_RATIO),
        ("peak memory of the whole process", f"under {MOST_MB} MB", f"{max(peaks):.0f} MB", max(peaks) < MOST_MB),
        ("the same, most rows over fewest", "at most 1.10 x", f"{over:.2f} x", over <= 1.1),
    ]  # fmt: skip
    judged = [
        f"| {name} | {target} | {value} | {'pass' if good else 'fail'} |" for name, target, value, good in verdict
    ]
    return f"""# Files: speed and memory

Written by `make bench-files`; no figure is typed by hand. How files are read and written is described in
[the command line](cli.md).

Measured on: {machine_sentence(found["machine"])}

## What must hold

|  | target | measured |  |
|---|---|---|---|
{chr(10).join(judged)}

## From Parquet to Parquet

Six labelers, two classes. *In memory* is `label_stream` on the votes as an int8 array; *from file to file* is
what `driftvote label` does, in the same process and taking turns with it: read, label, write label, probabilities,
window, votes and review mark, and put the file on disk. The last two columns are a process of its own, from its start
with a filled kernel cache to its end. One thread reads ahead and another writes behind, so files cost little where a
second core is free; results that are written and dropped also spare the memory that `label_stream` must touch.

| rows | in memory | from file to file | ratio | whole process | peak memory |
|---|---|---|---|---|---|
{chr(10).join(lines)}

{ordered["rows"]:,} rows in random order, sorted by `--sort` (DuckDB, on disk) and labeled:
{ordered["seconds"]:.0f} s, peak {ordered["peak_mb"]:.0f} MB.

## By format

Rows per second, {found["format_rows"]:,} rows x {LABELERS} labelers: labeled from this format to Parquet, and from
Parquet to this format. Text formats without declared `--classes` are read twice, once to find the classes.

| format | read | written |
|---|---|---|
{chr(10).join(rates)}

Run it again: `make bench-files`.
"""


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        found = measure([1_000_000, 10_000_000, 30_000_000], 5, 10_000_000, 1_000_000, Path(folder))
    PAGE.write_text(page(found))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
