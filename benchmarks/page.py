"""The page docs/performance.md: what must hold, tables and figures, from the measured numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import MODELS, STREAMS, machine_sentence
from benchmarks.peers import BATCH
from experiments.output import BLACK, BLUE, COLOURS, ORANGE, figure, markdown

Lines = list[dict[str, Any]]

INTRO = """Times say little on somebody else's machine; ratios carry over. Both sides of every comparison take turns in
one run (A B A B ...) on the same votes, and a ratio is the median over the rounds. *The majority line* is
`np.sign(V.sum(axis=1))` on an int8 array of -1 and +1, rows x labelers; `label_stream` gets the same votes as class
codes and every output is read: labels, codes, probabilities, windows, accuracies. Drift events are on, as they are by
default. Figures are of the default model, `AdaptiveLabelModel()`, unless a table says otherwise."""

COMMANDS = """```
make bench                # everything below; installs the peers below .bench-envs/ first
make bench-quick          # small sizes, a minute or two; writes build/bench-quick/
make bench-check          # is the default model slower than benchmarks/marks.json?
```"""

NOTES = {
    "axes": """One thread; a new model each time. With more than two classes, or abstentions (0), the reference is still
the one line of the intro on an array of the same shape; a majority over many classes costs more than
that. Peak memory is that of a process that loads the votes and labels them once, above the same process
idle after its imports; it holds votes, outputs and the compiled kernels.""",
    "growth": """Steady streams. Pairs of labelers grow 12.7-fold from 6 to 20.""",
    "latency": """`update()` with an array row on a warm model, beside what a user would build today: one river ADWIN
for each pair of labelers, fed with whether the pair agrees. ADWIN raises an alarm and nothing else: it estimates
no accuracy and gives no label, so it solves an easier problem. *adwin* gets the agreements ready-made,
only feeding them is timed, and the target is judged against it; *fed from the votes* computes them from
the row as a user must. Mean cost is that of blocks of rows that take turns; the percentiles are of
single rows, and the largest may be a pause of the system and not of the code.""",
    "chunked": """`label_stream` on an iterator of chunks, each result read and dropped, each length in a fresh process.
Chunks are cut from a small pool, so that making them costs nothing; the pool is counted as ours. Peak
memory is above the same process idle after its imports.""",
    "peers": """The same votes, peers in environments of their own, in turns with driftvote. **All three solve an
easier, static problem**: they fit one set of accuracies to all rows at once, give no window, cannot go on with a
stream, and see the future of every row they label; driftvote labels each row from the rows up to it.
Neither importing nor a first call is timed: 50 rows for a peer, for driftvote the votes themselves,
because its kernels are compiled then. Share right: rows labeled as the simulated truth, on a stream
whose accuracies change every 1,000 rows.""",
}

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
    Target("steady", "`label_stream`, n = 6, 1e6 rows, all outputs, one thread, over the majority line", 12.0),
    Target("waves", "the same, accuracies follow sine waves of 20,000 rows", 30.0),
    Target("restless", "the same, all accuracies change every 1,000 rows", 40.0),
    Target("labelers", "n = 20 over n = 6, 1e6 rows", 12.0),
    Target("classes", "5 classes over 2 classes", 2.0),
    Target("abstain", "30% abstentions over none", 1.5),
    Target("rows", "1e7 rows over 1e6 rows", 11.0),
    Target("threads", "two threads, 1e7 rows: how many times faster than one", 1.6, at_most=False),
    Target("snorkel", "Snorkel's static fit and predict over `label_stream`, 100,000 rows", 1.0, at_most=False),
    Target("adwin_6", "`update()` over one ADWIN per pair, n = 6 (15 updates)", 2.5),
    Target("adwin_20", "`update()` over one ADWIN per pair, n = 20 (190 updates)", 0.5),
    Target("first_call", "first `update()` with an empty cache over compiling a function of one line", 8.0),
    Target("first_label", "first `update()` with a filled cache, after the import, processor time", 0.6, unit="s"),
    Target("chunked_memory", "1e8 rows in chunks: peak memory above the idle process", 300.0, unit="MB"),
    Target("chunked_growth", "the same: peak of the longest stream over that of the shortest", 1.1),
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
        header = [titles.get(axis, axis), "time", "rows a second", "x majority", "rounds"]
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
    header = ["labelers", "microseconds a row", "mean", "median", "90%", "99%", "largest"]
    note = f"The model had seen {found['warm_rows']:,} rows, ADWIN the last {found['adwin_warm_rows']:,} of them."
    if found["reason"]:
        note += f" river was not measured: {found['reason']}."
    else:
        note += " " + " ".join(
            f"n = {line['labelers']}: `update()` costs {line['ratio']:.2f} times one ADWIN per pair"
            f" ({line['ratio_read']:.2f} with every output read)."
            for line in found["lines"]
        )
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"{markdown(header, rows)}\n\n{note} Made with {versions}."


def chunked_table(found: dict[str, Any]) -> str:
    rows = [
        [f"{line['rows']:,}", _seconds(line["seconds"]), f"{line['rows_per_second']:,.0f}", f"{line['peak_mb']:.0f} MB"]
        for line in found["lines"]
    ]
    text = markdown(["rows", "time", "rows a second", "peak memory"], rows)
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
    header = ["", "version", "rows x labelers", "time", "driftvote", "times ours", "right: peer / driftvote / majority"]
    return markdown(header, rows)


def _draw_speed(axes: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Nanoseconds a row over rows and over labelers, beside the majority line."""
    with figure(folder, "performance-speed", svg=False, ncols=2, figsize=(9, 3.4)) as (left, right):
        for plot, axis in ((left, "rows"), (right, "labelers")):
            lines = axes[axis]
            places = [line[axis] for line in lines]
            for key, label, colour in (
                ("seconds", "label_stream, all outputs", ORANGE),
                ("majority_seconds", "np.sign(V.sum(axis=1))", BLACK),
            ):
                plot.plot(places, [line[key] / line["rows"] * 1e9 for line in lines], "o-", color=colour, label=label)
            plot.set(xscale="log", yscale="log", xlabel=axis, ylabel="nanoseconds a row")
        right.set_xticks([line["labelers"] for line in axes["labelers"]])
        right.set_xticklabels([str(line["labelers"]) for line in axes["labelers"]])
        right.minorticks_off()
        left.legend(fontsize=9)


def _draw_memory(axes: dict[str, list[dict[str, Any]]], chunked: dict[str, Any] | None, folder: Path) -> None:
    """Peak memory over rows: one call that returns everything, and a stream in chunks."""
    with figure(folder, "performance-memory", svg=False, figsize=(5.6, 3.4)) as plot:
        lines = axes["rows"]
        rows = [line["rows"] for line in lines]
        plot.plot(rows, [line["peak_mb"] for line in lines], "o-", color=BLUE, label="one array, all outputs held")
        if chunked:
            rows = [line["rows"] for line in chunked["lines"]]
            peaks = [line["peak_mb"] for line in chunked["lines"]]
            plot.plot(rows, peaks, "s-", color=ORANGE, label=f"in chunks of {chunked['chunk']:,} rows")
        plot.set(xscale="log", yscale="log", xlabel="rows", ylabel="MB above the idle process")
        plot.legend(fontsize=9)


def _draw_latency(found: dict[str, Any], folder: Path) -> None:
    """Median, percentiles and largest time of one row, for both numbers of labelers."""
    colours = {
        "update": ORANGE,
        "update, all outputs read": COLOURS[2],
        "adwin": BLACK,
        "adwin, fed from the votes": BLUE,
    }
    with figure(folder, "performance-latency", svg=False, ncols=2, figsize=(9, 3.4), sharey=True) as plots:
        for plot, line in zip(plots, found["lines"], strict=True):
            for name, spread in line["distribution"].items():
                plot.plot(list(spread), list(spread.values()), "o-", color=colours[name], label=name)
            plot.set(yscale="log", title=f"{line['labelers']} labelers, {line['pairs']} pairs")
        plots[0].set_ylabel("microseconds a row")
        plots[0].legend(fontsize=9)


def draw(sections: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Draw what was measured; file and caption of each figure."""
    made = []
    if "axes" in sections:
        _draw_speed(sections["axes"], folder)
        made.append(("performance-speed.png", "Time of a row over the number of rows and of labelers."))
        _draw_memory(sections["axes"], sections.get("chunked"), folder)
        made.append(("performance-memory.png", "Peak memory over the number of rows."))
    if "latency" in sections:
        _draw_latency(sections["latency"], folder)
        made.append(("performance-latency.png", "Time of one row online: median, 90%, 99%, largest."))
    return made


def _section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def _summary(results: dict[str, Any]) -> str:
    rows = summary_rows(results["targets"])
    verdicts = [row[3] for row in rows]
    count = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (PASS, FAIL, MISSING))
    note = "" if results["plan"] == "full" else f" Sizes of the {results['plan']} plan: the verdicts say nothing."
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
        "peers": ("Beside other label models", peers_table),
    }
    return [
        _section(title, NOTES[name], make(sections[name])) for name, (title, make) in makers.items() if name in sections
    ]


def page(results: dict[str, Any], drawn: list[tuple[str, str]]) -> str:
    plots = "\n\n".join(f"![{caption}](figures/{file})\n\n*{caption}*" for file, caption in drawn)
    parts = [
        "# Performance",
        f"Written by `make bench` ({results['plan']} plan, {results['minutes']:.1f} minutes) from `performance.json`;"
        " figures are never typed in.",
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
