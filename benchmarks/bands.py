"""The calibrated band: its factors, fitted on simulated streams, and how often it holds the truth on others.

`make bands` writes the factors into src/driftvote/drift/bands.py and the table into docs/events.md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.events import PAGE, votes_of, written
from driftvote import AdaptiveLabelModel
from driftvote.drift import bands

SOURCE = Path(bands.__file__)
LEVEL = 0.95
PAPER = {"estimator": "triplet", "bound": "mcdiarmid"}
MODELS: dict[str, Callable[[int], Any]] = {
    "confusion": lambda k: AdaptiveLabelModel(n_classes=k, false_event_rate=None),
    "triplet": lambda k: AdaptiveLabelModel(n_classes=k, false_event_rate=None, **PAPER),
}
SHAPES = (
    [(3, 2, 1.0), (5, 2, 1.0), (8, 2, 0.6), (6, 4, 1.0)],
    [(4, 2, 1.0), (6, 2, 0.7), (12, 2, 1.0), (5, 3, 0.8)],
)
"""Labelers, classes and coverage: for fitting, and for trying."""
ROWS = 4096
LOOKS = np.array([127, 255, 511, 1023, 2047, 4095])


def panels(group: int, runs: int) -> Iterator[tuple[str, int, Any, Any, Any]]:
    """Labelers for fitting (group 0) and, of other numbers and shapes, for trying (group 1)."""
    for n, k, coverage in SHAPES[group]:
        title = f"{n} labelers, {k} classes" + ("" if coverage == 1.0 else f", {1 - coverage:.0%} abstentions")
        for run in range(runs):
            rng = np.random.default_rng([4, group, n, run])
            accuracy = rng.uniform(0.6, 0.95, n) if group == 0 else rng.uniform(0.55, 0.97, n)
            balance = None if group == 0 else np.arange(1, k + 1) / np.arange(1, k + 1).sum()
            votes = votes_of(rng, np.tile(accuracy, (ROWS, 1)), k, coverage, balance)
            yield title, k, accuracy, votes, run


def errors(name: str, k: int, accuracy: Any, votes: Any) -> tuple[Any, Any]:
    """How far off the estimates are at some rows, and half the range of noise there (looks x labelers)."""
    out = MODELS[name](k).label_stream(votes)
    at = out.accuracies[LOOKS]
    half = bands.half_width(at, out.coverage[LOOKS], out.windows[LOOKS].astype(float), k, False)
    return np.abs(at - accuracy), half


def fitted(runs: int) -> dict[str, float]:
    """The factor at which 95 of 100 estimates are inside, by estimator."""
    found = {}
    for name in MODELS:
        ratios = []
        for _, k, accuracy, votes, _ in panels(0, runs):
            off, half = errors(name, k, accuracy, votes)
            ratios.append((off / half).ravel())
        found[name] = round(float(np.quantile(np.concatenate(ratios), LEVEL)), 3)
    return found


def tried(factors: dict[str, float], runs: int) -> list[str]:
    """Coverage and width on other streams."""
    head = "| estimator | factor | streams | truth inside the band | half width after 256 rows"
    lines = [f"{head} | after 4,096 |", "|---|---|---|---|---|---|"]
    for name, factor in factors.items():
        inside: dict[str, list[Any]] = {}
        widths: dict[str, list[Any]] = {}
        for title, k, accuracy, votes, _ in panels(1, runs):
            off, half = errors(name, k, accuracy, votes)
            inside.setdefault(title, []).append(off <= factor * half)
            widths.setdefault(title, []).append(np.minimum(factor * half, 1.0))
        for title, found in inside.items():
            width = np.median(np.stack(widths[title]), axis=(0, 2))
            lines.append(f"| {name} | {factor:g} | {title} | {np.mean(found):.1%} | {width[1]:.3f} | {width[-1]:.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--source", type=Path, default=SOURCE)
    given = parser.parse_args()
    factors = fitted(given.runs)
    shown = ", ".join(f'"{name}": {factors[name]}' for name in ("triplet", "confusion"))
    given.source.write_text(re.sub(r"FACTORS = \{.*\}", f"FACTORS = {{{shown}}}", given.source.read_text()))
    lines = tried(factors, given.runs)
    given.page.write_text(written(given.page.read_text(), "bands", lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
