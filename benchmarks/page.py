"""The page docs/performance.md: what must hold, tables and figures, from the measured numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import MODELS, STREAMS, machine_sentence
from benchmarks.peers import BATCH
from experiments.output import BLUE, GREY, figure, markdown, set_title

Lines = list[dict[str, Any]]

INTRO = """Times depend on the machine; ratios depend on it much less. The two sides of each comparison take turns in
one process (A B A B ...) on the same votes, and a ratio is the median over the rounds. *The majority line*
is `np.sign(V.sum(axis=1))` on an int8 array of -1 and +1, rows x labelers. `label_stream` gets the same
votes as class codes, and every output is read: labels, codes, probabilities, windows, accuracies. Drift
events are on, as they are by default. All figures are of the default model, `AdaptiveLabelModel()`, unless
a table names another one."""

COMMANDS = """```
make bench                # everything below; installs the peers below .bench-envs/ first
make bench-quick          # small sizes, a minute or two; writes build/bench-quick/
make bench-check          # is the default model slower than benchmarks/marks.json?
```"""

NOTES = {
    "axes": """One thread, and a new model each time. With more than two classes, or with abstentions (0), the
reference is still the majority line on an array of the same shape; a majority over many classes costs more than that.
Peak memory is that of a process that loads the votes and labels them once, minus that of the same process
after its imports. It includes votes, outputs and the compiled kernels.""",
    "growth": """Streams without drift. From 6 to 20 labelers, the number of pairs grows 12.7-fold.""",
    "latency": """`update()` with an array row on a warm model, compared with what a user could build from river: one
ADWIN for each pair of labelers, fed with whether the pair agrees. ADWIN solves an easier problem: it raises an
alarm, but estimates no accuracy and gives no label. *adwin* gets the agreements ready-made, and only its
updates are timed; the target refers to it. *adwin, fed from the votes* also computes them from the row, as
a user must. The mean comes from blocks of rows that take turns. The percentiles are of single rows; the
largest may be a pause of the operating system.""",
    "chunked": """`label_stream` on an iterator of chunks. Each result is read and dropped, and each length runs in a
fresh process. Chunks are views of a small pool of votes, which counts as memory of driftvote. Peak memory is
above that of the same process after its imports.""",
    "peers": """The same votes, in turns with driftvote, each peer in an environment of its own. **All three solve an
easier, static problem**: they fit one set of accuracies to all rows at once, so every label uses later rows
too, and they cannot continue a stream. driftvote labels each row from the rows up to it. Imports and a
first call are not timed (50 rows for a peer; for driftvote all votes, because kernels are compiled at the
first call). *Right* is the share of rows labeled as the simulated truth, on a stream whose accuracies
change every 1,000 rows.""",
}

WIDE = (7.6, 3.6)
"""Size of a figure in inches."""

PASS, FAIL, MISSING = "pass", "fail", "not measured"


@dataclass(frozen=True)
class Target:
    """A bound on one measured number; `at_most` says on which side it lies."""

    key: str
    statement: str
    bound: float
    at_most: bool = True
    unit: str = "x"

    def verdict(self, value: float | None) -> str:
        if value is None:
            return MISSING
        kept = value <= self.bound if self.at_most else value >= self.bound
        return PASS if kept else FAIL


TARGETS = (
    Target("steady", "`label_stream`, 6 labelers, 1e6 rows, all outputs, one thread, over the majority line", 12.0),
    Target("waves", "the same, accuracies follow sine waves of 20,000 rows", 30.0),
    Target("restless", "the same, all accuracies change every 1,000 rows", 40.0),
    Target("labelers", "20 labelers over 6, 1e6 rows", 12.0),
    Target("classes", "5 classes over 2 classes", 2.0),
    Target("abstain", "30% abstentions over none", 1.5),
    Target("rows", "1e7 rows over 1e6 rows", 11.0),
    Target("threads", "two threads, 1e7 rows: how many times faster than one", 1.6, at_most=False),
    Target("snorkel", "Snorkel's static fit and predict over `label_stream`, 100,000 rows", 1.0, at_most=False),
    Target("adwin_6", "`update()` over one ADWIN per pair, 6 labelers (15 pairs)", 2.5),
    Target("adwin_20", "`update()` over one ADWIN per pair, 20 labelers (190 pairs)", 0.5),
    Target("first_call", "first `update()` with an empty cache, over compiling a function of one line", 8.0),
    Target("first_label", "first `update()` with a filled cache, after the import, processor time", 0.6, unit="s"),
    Target("chunked_memory", "1e8 rows in chunks: peak memory above the idle process", 300.0, unit="MB"),
    Target("chunked_growth", "1e8 rows in chunks: peak memory over that of the shortest stream", 1.1),
)


def collect_values(sections: Mapping[str, Any]) -> dict[str, float | None]:
    """The number behind every target, from the sections; None where one did not run."""
    growth, chunked, startup = (sections.get(name, {}) for name in ("growth", "chunked", "startup"))
    streams = {line["stream"]: line["ratio"] for line in sections.get("axes", {}).get("stream", [])}
    latency = {line["labelers"]: line["ratio"] for line in sections.get("latency", {}).get("lines", [])}
    return {
        **{name: streams.get(name) for name in ("steady", "waves", "restless")},
        **{name: growth.get(name, {}).get("ratio") for name in ("labelers", "classes", "abstain", "rows")},
        "threads": 1.0 / growth["threads"]["ratio"] if "threads" in growth else None,
        "snorkel": sections.get("peers", {}).get("snorkel", {}).get("times_ours"),
        "first_call": startup["first_call"]["empty"] / startup["trivial"]["empty"] if startup else None,
        "first_label": startup["first_call"]["filled"] - startup["import"]["filled"] if startup else None,
        "adwin_6": latency.get(6),
        "adwin_20": latency.get(20),
        "chunked_memory": max((line["peak_mb"] for line in chunked.get("lines", [])), default=None),
        "chunked_growth": chunked.get("growth"),
    }


def judge(values: Mapping[str, float | None]) -> Lines:
    """The pass/fail summary."""
    return [
        {
            "key": target.key,
            "statement": target.statement,
            "bound": target.bound,
            "at_most": target.at_most,
            "unit": target.unit,
            "value": values.get(target.key),
            "verdict": target.verdict(values.get(target.key)),
        }
        for target in TARGETS
    ]


def _quantity(value: float | None, unit: str) -> str:
    """A figure with as many digits as it needs."""
    if value is None:
        return "-"
    if unit == "MB":
        return f"{value:.0f} MB"
    if unit == "s":
        return f"{value:.2f} s"
    return f"{value:,.0f} x" if value >= 100 else f"{value:.2f} x"


def summary_rows(summary: Lines) -> list[list[str]]:
    """The summary as cells: statement, bound, value, verdict."""
    return [
        [
            line["statement"],
            ("at most " if line["at_most"] else "at least ") + _quantity(line["bound"], line["unit"]),
            _quantity(line["value"], line["unit"]),
            line["verdict"],
        ]
        for line in summary
    ]


def failing(summary: Lines) -> list[str]:
    return [line["key"] for line in summary if line["verdict"] == FAIL]


def _seconds(value: float) -> str:
    """A time in the unit that keeps it readable."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def _axis_value(axis: str, line: dict[str, Any]) -> str:
    if axis == "model":
        return f"{line['model']}: {MODELS[line['model']]}"
    if axis == "stream":
        every = STREAMS[line["stream"]]
        if line["stream"] == "waves":
            return f"waves: accuracies follow sine waves of {every:,} rows"
        return f"{line['stream']}: accuracies " + (f"change every {every:,} rows" if every else "never change")
    return f"{line[axis]:.0%}" if axis == "abstain" else f"{line[axis]:,}"


def axes_table(found: dict[str, list[dict[str, Any]]]) -> str:
    titles = {"abstain": "abstentions", "stream": "drift"}
    made = []
    for axis, lines in found.items():
        memory = "peak_mb" in lines[0]
        header = [titles.get(axis, axis), "time", "rows per second", "x majority", "rounds"]
        rows = [
            [
                _axis_value(axis, line),
                _seconds(line["seconds"]),
                f"{line['rows_per_second']:,.0f}",
                f"{line['ratio']:.1f}",
                str(line["rounds"]),
                *([f"{line['peak_mb']:,.0f} MB", f"{line['outputs_mb'] + line['votes_mb']:,.0f} MB"] if memory else []),
            ]
            for line in lines
        ]
        header += ["peak memory", "votes and outputs alone"] if memory else []
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


def growth_table(found: dict[str, Any]) -> str:
    rows = []
    for line in found.values():
        sides = [
            f"{case['rows']:,} x {case['labelers']}, {case['classes']} classes, {case['abstain']:.0%} abstentions"
            + (f", {case['threads']} threads" if case["threads"] > 1 else "")
            for case in (line["base"], line["other"])
        ]
        times = [_seconds(line[f"{side}_seconds"]) for side in ("base", "other")]
        rows.append([*sides, *times, f"{line['ratio']:.2f}", str(line["rounds"])])
    return markdown(["rows x labelers", "against", "time", "time", "ratio", "rounds"], rows)


def latency_table(found: dict[str, Any]) -> str:
    rows = []
    for line in found["lines"]:
        for name, spread in line["distribution"].items():
            cells = [f"{value:.1f}" for value in spread.values()]
            rows.append([str(line["labelers"]), name, f"{line['microseconds'][name]:.2f}", *cells])
    header = ["labelers", "microseconds per row", "mean", "median", "90%", "99%", "largest"]
    note = f"The model had seen {found['warm_rows']:,} rows, ADWIN the last {found['adwin_warm_rows']:,} of them."
    if found["reason"]:
        note += f" river was not measured: {found['reason']}."
    else:
        note += " " + " ".join(
            f"With {line['labelers']} labelers, `update()` costs {line['ratio']:.2f} times one ADWIN per pair"
            f" ({line['ratio_read']:.2f} times with every output read)."
            for line in found["lines"]
        )
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"{markdown(header, rows)}\n\n{note} Made with {versions}."


def chunked_table(found: dict[str, Any]) -> str:
    rows = [
        [f"{line['rows']:,}", _seconds(line["seconds"]), f"{line['rows_per_second']:,.0f}", f"{line['peak_mb']:.0f} MB"]
        for line in found["lines"]
    ]
    text = markdown(["rows", "time", "rows per second", "peak memory"], rows)
    return f"{text}\n\nChunks of {found['chunk']:,} rows, {found['labelers']} labelers."


def peers_table(found: dict[str, Any]) -> str:
    rows = []
    for name, line in found.items():
        if line["reason"]:
            rows.append([BATCH[name], "-", "-", "-", "-", "-", f"not measured: {line['reason']}"])
            continue
        right = f"{line['right']:.1%} / {line['ours_right']:.1%} / {line['majority_right']:.1%}"
        times = [_seconds(line["seconds"]), _seconds(line["ours_seconds"]), f"{line['times_ours']:,.1f}"]
        rows.append([BATCH[name], line["version"], f"{line['rows']:,} x {line['labelers']}", *times, right])
    header = [
        "",
        "version",
        "rows x labelers",
        "time",
        "driftvote",
        "times driftvote's",
        "right: peer / driftvote / majority vote",
    ]
    return markdown(header, rows)


def _draw_speed(axes: dict[str, list[dict[str, Any]]], folder: Path) -> str:
    """Draw the time of a row by the number of labelers, with that of the majority line; return the finding."""
    lines = axes["labelers"]
    places = [line["labelers"] for line in lines]
    curves = {
        "label_stream": (BLUE, [line["seconds"] / line["rows"] * 1e9 for line in lines]),
        "majority line": (GREY, [line["majority_seconds"] / line["rows"] * 1e9 for line in lines]),
    }
    shown = [line for line in lines if line["labelers"] in (6, 20)] or lines
    finding = "label_stream takes longer than a majority vote: " + ", ".join(
        f"{line['ratio']:.0f} times with {line['labelers']} labelers" for line in shown
    )
    with figure(folder, "performance-speed", svg=False, figsize=WIDE) as plot:
        for name, (colour, heights) in curves.items():
            plot.plot(places, heights, "o-", color=colour)
            _name_line(plot, name, places[-1], heights[-1], colour)
        plot.set(xscale="log", yscale="log", xlabel="labelers", ylabel="nanoseconds per row")
        plot.set_xticks(places, [str(place) for place in places])
        plot.minorticks_off()
        set_title(plot.figure, finding)
    return f"{finding}."


def _draw_memory(axes: dict[str, list[dict[str, Any]]], chunked: dict[str, Any] | None, folder: Path) -> str:
    """Draw peak memory by the number of rows: one call that returns everything, and a stream in chunks."""
    lines = axes["rows"]
    finding = f"One array of {lines[-1]['rows']:,} rows takes {lines[-1]['peak_mb']:,.0f} MB"
    curves = {"one array,\nall outputs kept": (GREY, lines)}
    if chunked:
        last = chunked["lines"][-1]
        finding += f"; in chunks, {last['rows']:,} rows take {last['peak_mb']:,.0f} MB"
        curves[f"chunks of\n{chunked['chunk']:,} rows"] = (BLUE, chunked["lines"])
    with figure(folder, "performance-memory", svg=False, figsize=WIDE) as plot:
        for name, (colour, points) in curves.items():
            rows, peaks = ([point[key] for point in points] for key in ("rows", "peak_mb"))
            plot.plot(rows, peaks, "o-", color=colour)
            _name_line(plot, name, rows[-1], peaks[-1], colour)
        plot.set(xscale="log", yscale="log", xlabel="rows", ylabel="MB above the idle process")
        for axis in (plot.xaxis, plot.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        set_title(plot.figure, finding)
    return f"{finding}."


def _draw_latency(found: dict[str, Any], folder: Path) -> str:
    """Draw the median time of one row and its 99th percentile, beside one ADWIN per pair; return the finding."""
    finding = "update() takes " + " and ".join(
        f"{line['distribution']['update']['median']:.1f} µs with {line['labelers']} labelers" for line in found["lines"]
    )
    names = {"update": ("update()", BLUE), "adwin": ("one ADWIN per pair", GREY)}
    with figure(folder, "performance-latency", svg=False, figsize=WIDE) as plot:
        labels = []
        for line in found["lines"]:
            for name, (label, colour) in names.items():
                if name not in line["distribution"]:
                    continue
                spread = line["distribution"][name]
                plot.plot([spread["median"], spread["p99"]], [len(labels)] * 2, color=colour, linewidth=3, alpha=0.35)
                plot.plot(spread["median"], len(labels), "o", color=colour, markersize=9)
                plot.plot(spread["p99"], len(labels), "|", color=colour, markersize=14, markeredgewidth=2)
                labels.append(f"{label}, {line['labelers']} labelers")
        plot.set_yticks(range(len(labels)), labels)
        plot.set_ylim(len(labels) - 0.5, -0.5)
        plot.grid(visible=False, axis="y")
        plot.set(xscale="log", xlabel="microseconds per row: median (dot) to 99% of the rows (bar)")
        plot.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        set_title(plot.figure, f"{finding} (median)")
    return f"{finding} (median of single rows)."


def _name_line(plot: Any, name: str, x: float, y: float, colour: str) -> None:
    """Write the name of a line behind its last point."""
    plot.annotate(name, (x, y), (8, 0), textcoords="offset points", va="center", color=colour, annotation_clip=False)


def draw(sections: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Draw what was measured; file and caption of each figure."""
    made = []
    if "axes" in sections:
        made.append(("performance-speed.png", _draw_speed(sections["axes"], folder)))
        made.append(("performance-memory.png", _draw_memory(sections["axes"], sections.get("chunked"), folder)))
    if "latency" in sections:
        made.append(("performance-latency.png", _draw_latency(sections["latency"], folder)))
    return made


def _section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def _summary(results: dict[str, Any]) -> str:
    rows = summary_rows(results["targets"])
    verdicts = [row[3] for row in rows]
    count = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (PASS, FAIL, MISSING))
    note = "" if results["plan"] == "full" else f" Sizes of the {results['plan']} plan: too small for a verdict."
    return _section(
        "What must hold",
        f"{count}.{note}",
        markdown(["", "target", "measured", ""], rows),
    )


def _tables(sections: dict[str, Any]) -> list[str]:
    """One section of the page for every section that ran."""
    makers = {
        "axes": ("label_stream", axes_table),
        "growth": ("How the cost grows", growth_table),
        "latency": ("One row at a time", latency_table),
        "chunked": ("A long stream in chunks", chunked_table),
        "peers": ("Compared with other label models", peers_table),
    }
    return [
        _section(title, NOTES[name], make(sections[name])) for name, (title, make) in makers.items() if name in sections
    ]


def page(results: dict[str, Any], drawn: list[tuple[str, str]]) -> str:
    plots = "\n\n".join(f"![{caption}](figures/{file})" for file, caption in drawn)
    parts = [
        "# Performance",
        f"Written by `make bench` ({results['plan']} plan, {results['minutes']:.1f} minutes) from `performance.json`;"
        " no figure is typed by hand.",
        INTRO,
        f"Measured on: {machine_sentence(results['machine'])}",
        COMMANDS,
        _summary(results),
        plots,
        *_tables(results["sections"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(results: dict[str, Any], folder: Path) -> None:
    """Figures first, then the page that shows them."""
    drawn = draw(results["sections"], folder / "figures")
    (folder / "performance.md").write_text(page(results, drawn), encoding="utf-8")
