"""The page docs/quality.md, from docs/quality.json alone."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from driftvote.files.atomic import whole_file
from experiments.paper.tables import markdown
from experiments.quality import figures, tables
from experiments.quality.notes import HOW, INTRO, NOTES
from experiments.quality.streams import PERMUTED, PLAIN, SHUFFLED, SYNTHETIC
from experiments.quality.verdicts import FAIL, MISSING, PASS


def publish(results: dict[str, Any], folder: Path) -> None:
    """Write quality.json, quality.md and figures/ into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    short: dict[str, Any] = _rounded(_without_most_curves(results))
    with whole_file(folder / "quality.json") as file:
        file.write((json.dumps(short, indent=1) + "\n").encode())
    drawn = draw_into(short, folder / "figures")
    with whole_file(folder / "quality.md") as file:
        file.write(page(short, drawn).encode())


def draw_into(results: dict[str, Any], folder: Path) -> list[str]:
    """Figures as PNG; the page needs no other format."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        drawn = figures.draw(results, Path(place))
        for name in drawn:
            shutil.copyfile(Path(place) / f"{name}.png", folder / f"{name}.png")
    return drawn


def page(results: dict[str, Any], drawn: list[str]) -> str:
    """The whole page as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts = ["# Label quality", INTRO]
    if results["limit"] is not None:
        parts.append(f"**Only the first {results['limit']:,} rows of each stream: the verdicts say nothing.**")
    parts += [f"Made with {versions}.", _must_hold(results)]
    sections = {
        PLAIN: ("Real streams", [tables.plain, tables.f1]),
        PERMUTED: ("Labelers that change places", [tables.permuted]),
        SHUFFLED: ("Controls: the same rows, shuffled", [tables.shuffled]),
        SYNTHETIC: ("Simulated drift", [tables.synthetic, tables.errors]),
    }
    for group, (title, makers) in sections.items():
        if group in results["streams"]:
            shown = [markdown(*make(results["streams"][group])) for make in makers]
            parts += [f"## {title}", NOTES[group], *_pictures(group, drawn), *shown]
    if PLAIN in results["streams"]:
        parts += ["## Probabilities", NOTES["probabilities"], *_pictures("probabilities", drawn)]
        parts += [markdown(*tables.probabilities(results["streams"][PLAIN]))]
        if results.get("verified"):
            parts += ["## Verified rows", NOTES["verified"], markdown(*tables.verified(results["verified"]))]
        parts += ["## Unanimous rows", NOTES["unanimous"], markdown(*tables.unanimous(results["streams"][PLAIN]))]
    models = [[name, f"`{shown}`"] for name, shown in results["models"].items()]
    parts += ["## The models", markdown(["name", "settings, for two classes"], models), "## How it is measured", HOW]
    return "\n\n".join(parts) + "\n"


def _must_hold(results: dict[str, Any]) -> str:
    found = [verdict["verdict"] for verdict in results["verdicts"]]
    count = ", ".join(f"{found.count(kind)} {kind.strip('*')}" for kind in (PASS, FAIL, MISSING))
    rows = [[v["statement"], v["target"], v["measured"], v["verdict"], v["note"]] for v in results["verdicts"]]
    table = markdown(["the default model", "must be", "is", "", ""], rows)
    return f"## What must hold\n\n{NOTES['verdicts']} {count[0].upper() + count[1:]}.\n\n{table}"


def _pictures(section: str, drawn: list[str]) -> list[str]:
    return [
        f"![{caption}](figures/{name}.png)\n\n*{caption}*"
        for name, (place, caption) in figures.CAPTIONS.items()
        if place == section and name in drawn
    ]


def _without_most_curves(results: dict[str, Any]) -> dict[str, Any]:
    """The reliability curves that are drawn, and no others: a page's worth of numbers."""
    streams = {
        group: {
            name: entry | {"models": {model: _slim(group, model, found) for model, found in entry["models"].items()}}
            for name, entry in entries.items()
        }
        for group, entries in results["streams"].items()
    }
    return results | {"streams": streams}


def _slim(group: str, model: str, found: dict[str, Any]) -> dict[str, Any]:
    drawn = group == PLAIN and model in figures.CURVES
    return {key: value for key, value in found.items() if key != "curve" or drawn}


def _rounded(value: Any) -> Any:
    """Six digits are more than any of it is worth."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value
