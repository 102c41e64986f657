"""Labelers and windows of a whole stream, from its time line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftvote.kernels.layout import Floats
from driftvote.report.parts import LabelerSummary, Timeline, WindowDrop
from driftvote.report.thinning import Thinned
from driftvote.report.values import DIGITS, MOST_DROPS, share

if TYPE_CHECKING:
    from driftvote.report.finish import Gathered

SHORT = 64
"""Windows below this many rows say little; extremes and changes are looked for in longer ones only."""

SHOWN = 6
"""Labelers that the chart of accuracies begins with."""

DROP = 4
"""A window that shrinks to one part in so many is worth a word."""


def summaries(thinned: Thinned, seen: Gathered, line: Timeline) -> list[LabelerSummary]:
    """One entry a labeler."""
    cast = thinned.buckets.cast.sum(axis=0)
    weights = seen.weights
    # The chart begins with who decides most: votes times weight.
    lead = set(np.argsort(-cast * np.maximum(weights, 1e-9), kind="stable")[:SHOWN].tolist())
    return [
        _summary(h, thinned, seen, line, int(cast[h]), h in lead or len(cast) <= SHOWN + 2) for h in range(len(cast))
    ]


def _summary(h: int, thinned: Thinned, seen: Gathered, line: Timeline, votes: int, lead: bool) -> LabelerSummary:
    totals, gold = thinned.totals, thinned.gold
    by_class = totals.votes_by_class[h]
    last = next((t for t in reversed(range(len(line.accuracy[h]))) if line.accuracy[h][t] is not None), None)
    solid = np.array(line.window_low) >= SHORT
    low, high = (_numbers(table[h]) for table in (line.accuracy_low, line.accuracy_high))
    mean, band_low, band_high = (_numbers(table[h]) for table in (line.accuracy, line.band_low, line.band_high))
    before, after = largest_change(mean, band_low, band_high, np.array(line.window_low, np.float64))
    usual = int(by_class.argmax())
    return LabelerSummary(
        name=seen.labelers[h],
        votes=votes,
        coverage=share(votes, thinned.n_rows) or 0.0,
        accuracy=None if last is None else line.accuracy[h][last],
        accuracy_low=None if last is None else line.band_low[h][last],
        accuracy_high=None if last is None else line.band_high[h][last],
        lowest=_extreme(np.min, low, solid),
        highest=_extreme(np.max, high, solid),
        changed=before is not None,
        before=before,
        after=after,
        weight=round(float(seen.weights[h]), DIGITS) + 0.0 if votes else None,
        with_label=share(totals.with_label[h], totals.labeled[h]),
        classes_voted=int((by_class > 0).sum()),
        usual_class=seen.classes[usual] if votes else None,
        usual_share=share(by_class[usual], votes),
        gold_accuracy=share(gold.hits[h], gold.tried[h]),
        shown=lead and votes > 0,
    )


def _numbers(values: list[Any]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _extreme(which: Any, values: Floats, solid: Any) -> float | None:
    chosen = values[solid & np.isfinite(values)]
    return round(float(which(chosen)), DIGITS) if len(chosen) else None


def largest_change(mean: Floats, low: Floats, high: Floats, windows: Floats) -> tuple[float | None, float | None]:
    """The two estimates, in time order, that noise explains least; None when it explains them all.

    Many stretches of many labelers are compared, so bands twice as wide as drawn must not touch.

    >>> step, w = np.array([0.9, 0.9, 0.6, 0.6]), np.full(4, 100.0)
    >>> largest_change(step, step - 0.05, step + 0.05, w)
    (0.9, 0.6)
    >>> largest_change(step, step - 0.1, step + 0.1, w)
    (None, None)
    """
    known = (windows >= SHORT) & np.isfinite(mean)
    if not known.any():
        return None, None
    low, high = np.where(known, 2 * low - mean, -np.inf), np.where(known, 2 * high - mean, np.inf)
    best, worst = int(low.argmax()), int(high.argmin())
    if low[best] <= high[worst]:
        return None, None
    early, late = sorted((best, worst))
    return round(float(mean[early]), DIGITS), round(float(mean[late]), DIGITS)


def window_drops(line: Timeline, most: int = MOST_DROPS) -> list[WindowDrop]:
    """Where the window shrank to a quarter or less, largest fall first.

    Around a change the window jumps to and fro; a fall is over once it stays below half of what it was and grows
    again, or is back at half of it. So one change is one drop.
    """
    found: list[WindowDrop] = []
    peak, floor, place = 0, 0, -1  # place: the bucket of the lowest window of a fall, -1 outside one
    for t, (low, high) in enumerate(zip(line.window_low, line.window_high, strict=True)):
        if place >= 0:
            if low < floor:
                floor, place = low, t
            elif (low >= 2 * floor and 2 * high <= peak) or 2 * low >= peak:
                found.append(_drop(line, place, peak, floor))
                peak, place = high, -1
        elif peak >= max(SHORT, DROP * low):
            floor, place = low, t
        else:
            peak = max(peak, high)
    if place >= 0:
        found.append(_drop(line, place, peak, floor))
    found.sort(key=lambda drop: (-drop.before / drop.after, drop.row))
    return found[:most]


def _drop(line: Timeline, place: int, before: int, after: int) -> WindowDrop:
    return WindowDrop(line.first_row[place], line.first_time[place] if line.first_time else None, before, after)
