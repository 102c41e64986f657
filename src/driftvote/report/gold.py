"""The labels against the true ones, where those are known."""

from __future__ import annotations

import numpy as np

from driftvote.kernels import buckets
from driftvote.report.axis import stretches
from driftvote.report.context import Gold, Score, Stretch
from driftvote.report.parts import Timeline
from driftvote.report.thinning import Thinned
from driftvote.report.values import DIGITS, share

METHODS = ("driftvote", "majority vote", "all past")

STRETCHES = 50
LEAST_ROWS = 100
"""A share of fewer rows says little: stretches are at most 50 and hold at least 100 rows."""

CONFUSED = 12
"""Classes of the confusion matrix; the rarest are put together."""


def gold_of(thinned: Thinned, classes: list[str], line: Timeline) -> Gold:
    """Accuracy over time of the model and of what it is compared with, and the confusion matrix."""
    n, step = thinned.n_buckets, thinned.step
    per = max(1, -(-n // STRETCHES), -(-LEAST_ROWS // step))
    starts = stretches(n, per)
    ends = np.append(starts[1:], n) - 1
    rows = np.add.reduceat(thinned.buckets.counts[:n, buckets.GOLD], starts)
    points = thinned.gold.right[:n] + thinned.gold.tied[:n] / len(classes)
    by_stretch = np.add.reduceat(points, starts, axis=0)
    scores = [
        Score(
            name=name,
            accuracy=round(float(by_stretch[:, who].sum() / rows.sum()), DIGITS),
            over_time=[share(*pair) for pair in zip(by_stretch[:, who], rows, strict=True)],
        )
        for who, name in enumerate(METHODS)
    ]
    names, confusion = confusion_of(thinned, classes)
    return Gold(
        rows=int(rows.sum()),
        stretches=[
            Stretch(
                first_row=line.first_row[start],
                last_row=line.last_row[end],
                time=line.first_time[start] if line.first_time else None,
            )
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ],
        scores=scores,
        confusion_classes=names,
        confusion=confusion,
    )


def confusion_of(thinned: Thinned, classes: list[str]) -> tuple[list[str], list[list[int]]]:
    """The most frequent classes in their own order, the others together; the last column has no label."""
    table = thinned.gold.confusion
    shown = len(table)
    if shown <= CONFUSED and shown == len(classes):
        return list(classes), table.tolist()
    frequent = table.sum(axis=1) + table[:, :shown].sum(axis=0)
    if shown < len(classes):
        frequent[-1] = -1  # it stands for several classes already
    kept = np.sort(np.argsort(-frequent, kind="stable")[: CONFUSED - 1])
    group = np.full(shown, len(kept))
    group[kept] = np.arange(len(kept))
    small = np.zeros((len(kept) + 1, len(kept) + 2), np.int64)
    columns = np.append(group, len(kept) + 1)
    np.add.at(small, (group[:, None], columns[None, :]), table)
    return [*(classes[place] for place in kept.tolist()), "other classes"], small.tolist()
