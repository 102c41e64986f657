"""The page docs/performance.md, from the measured figures alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import figures, notes, tables, targets
from benchmarks.machine import sentence

INTRO = """Times say little on somebody else's machine; ratios carry over. Both sides of every comparison take turns in
one run (A B A B ...) on the same votes, and a ratio is the median over the rounds. *The majority line* is
`np.sign(V.sum(axis=1))` on an int8 array of -1 and +1, rows x labelers; `label_stream` gets the same votes as class
codes and every output is read: labels, codes, probabilities, windows, accuracies. Drift events are on, as they are by
default. Figures are of the paper's method, `AdaptiveLabelModel(estimator="triplet", bound="mcdiarmid")`, unless a table
says otherwise: the default estimator, which is [right more often](quality.md), is in a table of its own."""

COMMANDS = """```
make bench                # everything below; installs the peers below .bench-envs/ first
make bench-quick          # small sizes, a minute or two; writes build/bench-quick/
make bench-check          # is the default model slower than benchmarks/marks.json?
```"""


def section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def summary(results: dict[str, Any]) -> str:
    rows = targets.lines(results["targets"])
    verdicts = [row[3] for row in rows]
    count = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in (targets.PASS, targets.FAIL, targets.MISSING)
    )
    note = "" if results["plan"] == "full" else f" Sizes of the {results['plan']} plan: the verdicts say nothing."
    return section(
        "What must hold",
        f"{count}.{note}",
        tables.markdown(["", "target", "measured", ""], rows),
    )


def body(sections: dict[str, Any]) -> list[str]:
    """One section of the page for every section that ran."""
    makers = {
        "axes": ("label_stream", notes.AXES, tables.axes),
        "threads": ("Threads", notes.THREADS, tables.threads),
        "growth": ("How the cost grows", notes.GROWTH, tables.growth),
        "latency": ("One row at a time", notes.LATENCY, tables.latency),
        "recompute": ("Against recomputing every window", notes.RECOMPUTE, tables.recompute),
        "chunked": ("A long stream in chunks", notes.CHUNKED, tables.chunked),
        "peers": ("Beside other label models", notes.PEERS, tables.peers),
    }
    return [
        section(title, note, make(sections[name])) for name, (title, note, make) in makers.items() if name in sections
    ]


def page(results: dict[str, Any], drawn: list[tuple[str, str]]) -> str:
    plots = "\n\n".join(f"![{caption}](figures/{file})\n\n*{caption}*" for file, caption in drawn)
    parts = [
        "# Performance",
        f"Written by `make bench` ({results['plan']} plan, {results['minutes']:.1f} minutes) from `performance.json`;"
        " figures are never typed in.",
        INTRO,
        f"Measured on: {sentence(results['machine'])}",
        COMMANDS,
        summary(results),
        plots,
        *body(results["sections"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(results: dict[str, Any], folder: Path) -> None:
    """Figures first, then the page that shows them."""
    drawn = figures.draw(results["sections"], folder / "figures")
    (folder / "performance.md").write_text(page(results, drawn), encoding="utf-8")
