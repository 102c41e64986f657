"""The calibrated band: its factors, fitted on simulated streams, and how often it holds the truth on others.

A factor is what the window length that needs most needs: there the band holds the truth 95 times in 100. The other
streams are some that stand still, and some in which labelers change.

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
    "em": lambda k: AdaptiveLabelModel(n_classes=k, false_event_rate=None),
    "triplet": lambda k: AdaptiveLabelModel(n_classes=k, false_event_rate=None, **PAPER),
}
SHAPES = (
    [(3, 2, 1.0), (5, 2, 1.0), (8, 2, 0.6), (6, 4, 1.0)],
    [(4, 2, 1.0), (6, 2, 0.7), (12, 2, 1.0), (5, 3, 0.8)],
)
"""Labelers, classes and coverage: for fitting, and for trying."""
ROWS = 16_384
LOOKS = 2 ** np.arange(6, 15) - 1
CHANGE, AFTER = 3000, (100, 200, 400, 1000, 2000)
CHANGES = [
    ("1 of 6 labelers, 0.85 to 0.40", 6, 2, 1.0, 1, 0.85, 0.4),
    ("1 of 6, 0.90 to 0.60", 6, 2, 1.0, 1, 0.9, 0.6),
    ("1 of 6, 0.60 to 0.90", 6, 2, 1.0, 1, 0.6, 0.9),
    ("2 of 6, 0.85 to 0.40", 6, 2, 1.0, 2, 0.85, 0.4),
    ("1 of 3, 0.85 to 0.40", 3, 2, 1.0, 1, 0.85, 0.4),
    ("1 of 20, 0.85 to 0.40", 20, 2, 1.0, 1, 0.85, 0.4),
    ("1 of 6, 0.85 to 0.40, 30% abstentions", 6, 2, 0.7, 1, 0.85, 0.4),
    ("1 of 6, 0.85 to 0.40, 3 classes", 6, 3, 1.0, 1, 0.85, 0.4),
    ("1 of 6, 0.85 to 0.40, 5 classes", 6, 5, 1.0, 1, 0.85, 0.4),
]
"""Title, labelers, classes, coverage, how many change, their accuracy before and after. The others: 0.65 to 0.85."""


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
    """The factor at which 95 of 100 estimates are inside, whatever the length of the window, by estimator."""
    found = {}
    for name in MODELS:
        ratios = []
        for _, k, accuracy, votes, _ in panels(0, runs):
            off, half = errors(name, k, accuracy, votes)
            ratios.append(off / half)
        found[name] = round(float(np.quantile(np.concatenate(ratios, axis=1), LEVEL, axis=1).max()), 3)
    return found


def tried(factors: dict[str, float], runs: int) -> list[str]:
    """Coverage and width on other streams."""
    head = "| estimator | factor | streams | truth inside the band | at the worst length | half width after 256 rows"
    lines = [f"{head} | after 16,384 |", "|---|---|---|---|---|---|---|"]
    for name, factor in factors.items():
        inside: dict[str, list[Any]] = {}
        widths: dict[str, list[Any]] = {}
        for title, k, accuracy, votes, _ in panels(1, runs):
            off, half = errors(name, k, accuracy, votes)
            inside.setdefault(title, []).append(off <= factor * half)
            widths.setdefault(title, []).append(np.minimum(factor * half, 1.0))
        for title, found in inside.items():
            width = np.median(np.stack(widths[title]), axis=(0, 2))
            worst = np.stack(found).mean(axis=(0, 2)).min()
            shown = f"{np.mean(found):.1%} | {worst:.1%} | {width[LOOKS == 255][0]:.3f} | {width[-1]:.3f}"
            lines.append(f"| {name} | {factor:g} | {title} | {shown} |")
    return lines


def changes(runs: int) -> list[str]:
    """How often the band holds the accuracy of labelers that changed, some rows after the change."""
    head = "| streams | confirmed after, median | within 200 rows | " + " | ".join(
        f"{rows:,} rows after" for rows in AFTER
    )
    lines = [f"{head} | error after {AFTER[-1]:,} |", "|---|---|---|" + "---|" * (len(AFTER) + 1)]
    for title, n, k, coverage, changed, before, after in CHANGES:
        inside, delays, off = [], [], []
        for run in range(runs):
            rng = np.random.default_rng([5, n, k, run])
            change = CHANGE + int(rng.integers(64))  # events are confirmed at the ends of blocks of 64 rows
            accuracy = np.tile(rng.uniform(0.65, 0.85, n), (change + AFTER[-1] + 1, 1))
            accuracy[:change, :changed], accuracy[change:, :changed] = before, after
            out = AdaptiveLabelModel(n_classes=k).label_stream(votes_of(rng, accuracy, k, coverage))
            low, high = out.bands()
            inside.append(((low <= accuracy) & (accuracy <= high))[change + np.array(AFTER), :changed])
            off.append(abs(out.accuracies - accuracy)[-1, :changed])
            delays.append(next((event.row - change for event in out.events if event.row >= change), np.inf))
        held = " | ".join(f"{share:.0%}" for share in np.mean(inside, axis=(0, 2)))
        early = np.mean(np.array(delays) < 200)
        lines.append(f"| {title} | {np.median(delays):.0f} | {early:.0%} | {held} | {np.mean(off):.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--source", type=Path, default=SOURCE)
    given = parser.parse_args()
    factors = fitted(given.runs)
    shown = ", ".join(f'"{name}": {factors[name]}' for name in ("triplet", "em"))
    given.source.write_text(re.sub(r"FACTORS = \{.*\}", f"FACTORS = {{{shown}}}", given.source.read_text()))
    bands.FACTORS.update(factors)
    for name, lines in (("bands", tried(factors, given.runs)), ("bands-changes", changes(2 * given.runs))):
        given.page.write_text(written(given.page.read_text(), name, lines))
        print("\n".join(lines))


if __name__ == "__main__":
    main()
