"""The tables of the performance page, and the sentence that each of them needs to be read rightly."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import BATCH
from benchmarks.plan import ESTIMATORS, GRIDS, STREAMS


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def seconds(value: float) -> str:
    """A time in the unit that keeps it readable."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def axis_value(axis: str, line: dict[str, Any]) -> str:
    if axis == "grid":
        return f"{line['grid']}: {GRIDS[line['grid']]}"
    if axis == "estimator":
        return f"{line['estimator']}: {ESTIMATORS[line['estimator']]}"
    if axis == "stream":
        every = STREAMS[line["stream"]]
        return f"{line['stream']}: accuracies " + (f"change every {every:,} rows" if every else "never change")
    return f"{line[axis]:.0%}" if axis == "abstain" else f"{line[axis]:,}"


def axes(found: dict[str, list[dict[str, Any]]]) -> str:
    titles = {"abstain": "abstentions", "stream": "drift"}
    made = []
    for axis, lines in found.items():
        memory = "peak_mb" in lines[0]
        header = [titles.get(axis, axis), "time", "rows a second", "x majority", "rounds"]
        rows = [
            [
                axis_value(axis, line),
                seconds(line["seconds"]),
                f"{line['rows_per_second']:,.0f}",
                f"{line['ratio']:.1f}",
                str(line["rounds"]),
                *([f"{line['peak_mb']:,.0f} MB", f"{line['outputs_mb'] + line['votes_mb']:,.0f} MB"] if memory else []),
            ]
            for line in lines
        ]
        header += ["peak memory", "of it votes and outputs"] if memory else []
        base = ", ".join(
            text
            for key, text in {
                "rows": f"{lines[0]['rows']:,} rows",
                "labelers": f"{lines[0]['labelers']} labelers",
                "classes": f"{lines[0]['classes']} classes",
            }.items()
            if key != axis
        )
        made.append(f"**{titles.get(axis, axis).capitalize()}** ({base})\n\n" + markdown(header, rows))
    return "\n\n".join(made)


def threads(found: dict[str, Any]) -> str:
    names = {"majority": "majority line", "one": "`label_stream`, one thread", "two": "`label_stream`, two threads"}
    over = {"majority": 1.0, "one": found["over_majority"], "two": found["two_over_majority"]}
    rows = [[names[name], seconds(value), f"{over[name]:.2f}"] for name, value in found["seconds"].items()]
    text = markdown([f"{found['rows']:,} rows x {found['labelers']}", "time", "x majority"], rows)
    told = "Two threads were not measured: this version has no `n_jobs`."
    if found["speed_up"] is not None:
        told = f"Two threads are {found['speed_up']:.2f} times faster than one."
    return f"{text}\n\n{told} Median of {found['rounds']} rounds."


def growth(found: dict[str, Any]) -> str:
    rows = []
    for line in found.values():
        sides = [f"{line[side]['rows']:,} x {line[side]['labelers']}" for side in ("base", "other")]
        times = [seconds(line[f"{side}_seconds"]) for side in ("base", "other")]
        rows.append([*sides, *times, f"{line['ratio']:.2f}", str(line["rounds"])])
    return markdown(["rows x labelers", "against", "time", "time", "ratio", "rounds"], rows)


def latency(found: dict[str, Any]) -> str:
    rows = []
    for line in found["lines"]:
        for name, spread in line["distribution"].items():
            cells = [f"{value:.1f}" for value in spread.values()]
            rows.append([str(line["labelers"]), name, f"{line['microseconds'][name]:.2f}", *cells])
    header = ["labelers", "microseconds a row", "mean", "median", "90%", "99%", "largest"]
    told = f"The model had seen {found['warm_rows']:,} rows, ADWIN the last {found['adwin_warm_rows']:,} of them."
    if found["reason"]:
        told += f" river was not measured: {found['reason']}."
    else:
        told += " " + " ".join(
            f"n = {line['labelers']}: `update()` costs {line['ratio']:.2f} times one ADWIN per pair"
            f" ({line['ratio_read']:.2f} with every output read)."
            for line in found["lines"]
        )
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"{markdown(header, rows)}\n\n{told} Made with {versions}."


def recompute(found: dict[str, Any]) -> str:
    rows = [
        ["`label_stream`, all outputs", seconds(found["ours_us"] / 1e6), "1"],
        ["recomputing, by definition", seconds(found["definition_ms"] / 1e3), f"{found['times_faster']:,.0f}"],
        [
            "recomputing, float matrix product",
            seconds(found["product_ms"] / 1e3),
            f"{found['times_faster_than_product']:,.0f}",
        ],
    ]
    told = f"Row {found['row']:,}, {found['labelers']} labelers, window {found['window']:,}; {found['rounds']} rounds."
    return f"{markdown(['', 'time of a row', 'times ours'], rows)}\n\n{told}"


def chunked(found: dict[str, Any]) -> str:
    rows = [
        [f"{line['rows']:,}", seconds(line["seconds"]), f"{line['rows_per_second']:,.0f}", f"{line['peak_mb']:.0f} MB"]
        for line in found["lines"]
    ]
    text = markdown(["rows", "time", "rows a second", "peak memory"], rows)
    return f"{text}\n\nChunks of {found['chunk']:,} rows, {found['labelers']} labelers."


def peers(found: dict[str, Any]) -> str:
    rows = []
    for name, line in found.items():
        if line["reason"]:
            rows.append([BATCH[name], "-", "-", "-", "-", "-", f"not measured: {line['reason']}"])
            continue
        right = f"{line['right']:.1%} / {line['ours_right']:.1%} / {line['majority_right']:.1%}"
        times = [seconds(line["seconds"]), seconds(line["ours_seconds"]), f"{line['times_ours']:,.1f}"]
        rows.append([BATCH[name], line["version"], f"{line['rows']:,} x {line['labelers']}", *times, right])
    header = ["", "version", "rows x labelers", "time", "driftvote", "times ours", "right: peer / driftvote / majority"]
    return markdown(header, rows)
