"""`driftvote demo`: a simulated stream whose good and poor labelers swap half-way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from driftvote.arrays import Ints
from driftvote.errors import MissingExtraError
from driftvote.files.write import write_table
from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, LabeledStream, MajorityLabelModel
from driftvote.report import from_arrays, write_report
from driftvote.streams import SimulatedStream, swap


def demo(
    out: Path = typer.Option(Path("demo"), "--out", help="Folder for the labels and the report."),
    rows: int = typer.Option(20_000, "--rows", min=200, help="Length of the stream."),
    seed: int = typer.Option(0, "--seed", help="Seed of the simulated votes."),
) -> None:
    """Label a simulated stream whose good and poor labelers swap half-way, compare methods, and write a report.

    Example: driftvote demo --out demo
    """
    stream = swap(rows, seed)
    adaptive = AdaptiveLabelModel().label_stream(stream.votes)
    out.mkdir(parents=True, exist_ok=True)
    write_table(out / "labels.csv", _labels_table(stream, adaptive))
    console = Console()
    console.print(
        f"{rows:,} rows, 5 labelers; accuracies {_shown(stream, 0)} swap to {_shown(stream, -1)} at row {rows // 2:,}"
    )
    console.print(_table(stream, adaptive))
    console.print(_windows(adaptive, rows // 2))
    for event in adaptive.events:
        console.print(f"event: {event.sentence} (noticed at row {event.row:,})", soft_wrap=True, highlight=False)
    console.print(f"labels: {out / 'labels.csv'}", soft_wrap=True, markup=False, highlight=False)
    console.print(_report(stream, adaptive, out / "report.html"), soft_wrap=True, markup=False, highlight=False)


def _report(stream: SimulatedStream, adaptive: LabeledStream, path: Path) -> str:
    """Write the report; the message says where it is, or what is missing for it."""
    report = from_arrays(
        stream.votes,
        out=adaptive,
        gold=stream.truth,
        title="Five labelers that change places",
        source=f"driftvote demo: simulated votes, right {_shown(stream, 0)} of the time, then {_shown(stream, -1)}",
    )
    try:
        write_report(report, path)
    except MissingExtraError:
        return "report: the page needs jinja2; pip install 'driftvote[report]', then run the demo again"
    return f"report: {path}; open it in any browser, no network needed: {path.resolve().as_uri()}"


def _labels_table(stream: SimulatedStream, adaptive: LabeledStream) -> Any:
    """The labels with votes, truth and estimates, from which the printed table can be recomputed."""
    import pyarrow as pa

    table: Any = adaptive.to_frame("pyarrow", per_labeler=True)
    votes = {f"vote_{name}": stream.votes[:, place] for place, name in enumerate(adaptive.labelers)}
    first = {"row": np.arange(len(adaptive)), "truth": stream.truth, **votes}
    for name, values in reversed(first.items()):
        table = table.add_column(0, name, pa.array(values))
    return table


def _shown(stream: SimulatedStream, row: int) -> str:
    return "/".join(f"{p:g}" for p in stream.accuracies[row])


def _table(stream: SimulatedStream, adaptive: LabeledStream) -> Table:
    half = stream.borders[0]
    all_past = FixedWindowLabelModel(window=None).label_stream(stream.votes)
    majority = MajorityLabelModel().label_stream(stream.votes)
    table = Table("labels by", "first half", "second half", title="share of correct labels")
    for name, codes in [
        ("majority vote", majority.codes),
        ("weights from every row so far", all_past.codes),
        ("driftvote, adaptive window", adaptive.codes),
        ("true weights (unknown in practice)", _oracle(stream)),
    ]:
        first, second = (stream.score(codes, part) for part in (slice(0, half), slice(half, None)))
        table.add_row(name, f"{first:.1%}", f"{second:.1%}", style="bold" if "driftvote" in name else None)
    return table


def _oracle(stream: SimulatedStream) -> Ints:
    """Labels by the log-odds of the true accuracies: the best possible ones."""
    half = stream.borders[0]
    codes = []
    for part in (slice(0, half), slice(half, None)):
        p = stream.accuracies[part]
        signs = np.where(stream.votes[part] == 1, 1, -1)
        score = (np.log(p / (1 - p)) * signs).sum(axis=1)
        codes.append(np.where(score == 0, -1, score > 0).astype(np.int64))
    return np.concatenate(codes)


def _windows(adaptive: LabeledStream, half: int) -> str:
    """A sentence about the window before the swap, its smallest size after it, and its size at the end."""
    after = adaptive.windows[half:]
    lowest = int(after.argmin())
    return (
        f"window (recent rows that count): {adaptive.windows[half - 1]:,} just before the swap, {after[lowest]:,} at"
        f" {lowest:,} rows after it, {after[-1]:,} at the end"
    )
