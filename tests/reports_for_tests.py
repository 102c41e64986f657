"""Reports for tests: with every part filled, and with names that try to be code; and the browser, where there is one."""

from __future__ import annotations

import dataclasses
import shutil
import typing

import numpy as np
import pyarrow as pa

from driftvote import AdaptiveLabelModel, DriftEvent, LabelerChange
from driftvote.drift import events as drift
from driftvote.report import Report, data, from_arrays
from driftvote.streams import simulate

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

NASTY = [
    "<script>alert('name')</script>",
    '"quoted" & <b>bold</b>',
    "a " + "very " * 30 + "long name",
    "%{meta} {{ 7 * 7 }}",
]
CLASSES = ["<img src=x onerror=alert('class')>", "</script><script>alert('end')</script>", "plain"]


def dataclasses_of(kind, found=None):
    """A dataclass and all dataclasses in its fields."""
    found = [] if found is None else found
    if dataclasses.is_dataclass(kind) and kind not in found:
        found.append(kind)
        for hint in typing.get_type_hints(kind).values():
            dataclasses_of(hint, found)
    for inner in typing.get_args(kind):
        dataclasses_of(inner, found)
    return found


def some_events(first: str, second: str) -> list[DriftEvent]:
    """One event of labelers, one of coverage, one of the class balance."""
    worse = LabelerChange(first, "worse", 0.91, 0.89, 0.93, 0.62, 0.55, 0.7, 0.98, 0.97)
    more = LabelerChange(second, "votes more", 0.81, 0.79, 0.83, 0.82, 0.75, 0.9, 0.3, 0.9)
    shares, when = ({"no": 0.5, "yes": 0.5}, {"no": 0.25, "yes": 0.75}), ("2026-03-01", "2026-03-02")
    place = (319, "2026-03-03", (150, 260), when, 192, "2026-03-01")
    return [
        DriftEvent(*place, drift.WORSE, (worse, more), ((first, second), (second, first)), 512, 64, *shares),
        DriftEvent(383, None, (290, 310), None, 300, None, drift.COVERAGE, (more,), (), 256, 128, *shares),
        DriftEvent(447, None, (390, 410), None, 400, None, drift.BALANCE, (), (), 256, 128, *shares),
    ]


def full(report: Report) -> Report:
    """With the parts that are found by other means."""
    name = report.labelers[0].name
    return dataclasses.replace(
        report,
        events=some_events(name, report.labelers[1].name),
        committee=data.CommitteeSummary([name, report.labelers[1].name], 0.123, "if they err alone"),
        dependence=data.DependenceSummary(
            1.9, [data.NearCopy(name, report.labelers[1].name, 0.97, 0.81)], "by agreement"
        ),
    )


def nasty_report(n_rows: int = 600) -> Report:
    """Names, classes, ids and titles that try to be code."""
    stream = simulate(np.tile([0.9, 0.8, 0.7, 0.8], (n_rows, 1)), 0, n_classes=3, coverage=0.7)
    words = [[None if v < 0 else CLASSES[v] for v in column] for column in stream.votes.T]
    return from_arrays(
        pa.table(dict(zip(NASTY, words, strict=True))),
        AdaptiveLabelModel(classes=CLASSES),
        gold=[CLASSES[c] for c in stream.truth],
        ids=[f"<i>{row}</i>" for row in range(n_rows)],
        title="<script>alert('title')</script>",
        source="a & b </style>",
    )
