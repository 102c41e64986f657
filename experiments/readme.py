"""The figures in README.md, from the committed tables alone: `make readme`.

Results on real streams and the worth of answers come from docs/quality.json, the size of an installation and the time
of the first call from docs/startup.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.output import markdown
from experiments.quality.checks import answer_gains, gains_of
from experiments.quality.models import DEFAULT
from experiments.quality.questions import ASK, ROWS
from experiments.quality.scoring import summarize

ROOT = Path(__file__).parents[1]
PEERS = ("Wawa (crowd-kit)", "Snorkel's LabelModel", "Dawid-Skene (crowd-kit)")
MARKS = "<!-- {}: written by make readme -->", "<!-- end of {} -->"


def results_table(quality: dict[str, Any]) -> str:
    """Gains over majority on the real streams: the default and the peers, with what each of them sees."""
    lines = []
    for name in (DEFAULT, *PEERS):
        found = summarize(gains_of(quality) if name == DEFAULT else quality["peers"][name]["gains"])
        shown = f"**`{name}`**" if name == DEFAULT else name
        sees = "each row as it arrives" if name == DEFAULT else "the whole stream at once"
        lines.append([shown, sees, *(f"{found[key]:+.1f}" for key in ("mean", "clipped", "worst"))])
    count = len(quality["streams"])
    header = ["", "sees", "mean gain", "clipped mean", "worst stream"]
    clear = sum(stream["low"] > 0 for stream in quality["streams"].values())
    worse = sum(stream["high"] < 0 for stream in quality["streams"].values())
    return (
        f"Points of accuracy over a majority vote on {count} real streams (crowds, LLM panels, labeling functions,\n"
        f"sensors). `AdaptiveLabelModel()` is clearly better than the majority on {clear} of them, clearly worse on\n"
        f"{worse}; on the other {count - clear - worse} the 95% interval of the difference includes zero.\n\n"
        + markdown(header, lines)
    )


def questions_sentence(quality: dict[str, Any]) -> str:
    """What twenty answers are worth."""
    none, twenty = (summarize(answer_gains(quality, ASK, 0.0, answers)) for answers in (0, 20))
    return (
        f"On the first {ROWS:,} rows of the same streams, twenty answers raise the mean gain over a majority vote"
        f" from\n{none['mean']:+.1f} to {twenty['mean']:+.1f} points, and the worst stream from {none['worst']:+.1f} to"
        f" {twenty['worst']:+.1f} points."
    )


def install_sentence(startup: dict[str, Any]) -> str:
    """How large an installation is, and how long the first call takes."""
    empty, filled = (startup["first_call"][cache] for cache in ("empty", "filled"))
    return (
        f"An installation takes {startup['installed_mb']:.0f} MB, dependencies included. The first `update()` compiles"
        f" code for your machine, once:\n{empty:.0f} seconds of processor time. Later processes label their first row"
        f" after {filled:.1f} seconds. Batches, drift events and the report\ncompile their own parts when they are"
        " first used; `driftvote compile` compiles everything in advance."
    )


def fill(text: str, quality: dict[str, Any], startup: dict[str, Any]) -> str:
    """Return the README with these figures."""
    parts = {
        "results": results_table(quality),
        "questions": questions_sentence(quality),
        "install": install_sentence(startup),
    }
    for name, part in parts.items():
        begin, end = (mark.format(name) for mark in MARKS)
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{part}\n{end}{rest.split(end)[1]}"
    return text


def main() -> None:
    tables = [json.loads((ROOT / "docs" / f"{name}.json").read_text()) for name in ("quality", "startup")]
    page = ROOT / "README.md"
    page.write_text(fill(page.read_text(), *tables))


if __name__ == "__main__":
    main()
