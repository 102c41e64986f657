"""From the counts of a whole stream to the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote._version import __version__
from driftvote.bands import calibrated_half_width
from driftvote.drift import DriftEvent
from driftvote.kernels import buckets
from driftvote.kernels.buckets import Buckets
from driftvote.kernels.layout import Codes, Floats
from driftvote.models.certified import StepCertificate
from driftvote.report.context import FORMAT, Report
from driftvote.report.dependent import committee_of, dependence_of, sentences
from driftvote.report.findings import findings
from driftvote.report.gold import gold_of
from driftvote.report.happened import timed
from driftvote.report.parts import Agreement, ClassSummary, Differences, Example, Tally, Time, Timeline
from driftvote.report.summaries import summaries, window_drops
from driftvote.report.thinning import Thinned
from driftvote.report.values import plain_time, rounded


@dataclass(frozen=True)
class Gathered:
    """What a builder has when the stream ends."""

    thinned: Thinned
    labelers: list[str]
    classes: list[str]
    title: str
    source: str
    settings: dict[str, str]
    reading: dict[str, str]
    has_gold: bool
    review_below: float
    filled: bool
    estimator: str
    weights: Floats
    last_rows: Codes
    certificate: StepCertificate | None
    differing: list[Example]
    doubtful: list[Example]
    events: list[DriftEvent] | None


def finished(seen: Gathered) -> Report:
    """All that the page shows."""
    thinned = seen.thinned
    counts = thinned.buckets.counts.sum(axis=0)
    tally = tally_of(seen, counts)
    timeline = timeline_of(thinned, len(seen.classes), seen.filled, seen.estimator)
    labelers = summaries(thinned, seen, timeline)
    drops = window_drops(timeline)
    differences = Differences(
        overruled=int(counts[buckets.OVERRULED]),
        settled=int(counts[buckets.SETTLED]),
        opened=int(counts[buckets.OPENED]),
        examples=seen.differing,
    )
    gold = gold_of(thinned, seen.classes, timeline) if seen.has_gold and counts[buckets.GOLD] else None
    events = None if seen.events is None else [timed(event, timeline) for event in seen.events]
    together = dependence_of(seen.last_rows, len(seen.classes), seen.labelers)
    return Report(
        format=FORMAT,
        driftvote=__version__,
        title=seen.title,
        source=seen.source,
        findings=[*findings(tally, labelers, drops, differences, gold, timeline, events), *sentences(together)],
        tally=tally,
        reading=seen.reading,
        settings=seen.settings,
        labelers=labelers,
        classes=classes_of(thinned, seen),
        timeline=timeline,
        window_drops=drops,
        agreement=agreement_of(thinned),
        differences=differences,
        doubtful=seen.doubtful,
        gold=gold,
        events=events,
        committee=committee_of(seen.certificate),
        dependence=together,
    )


def tally_of(seen: Gathered, counts: Any) -> Tally:
    """Counts of rows and votes."""
    rows, silent, tied = (int(counts[place]) for place in (buckets.ROWS, buckets.SILENT, buckets.TIED))
    votes = int(seen.thinned.buckets.cast.sum())
    return Tally(
        rows=rows,
        labeled=rows - int(counts[buckets.UNLABELED]),
        silent=silent,
        tied=tied,
        doubtful=int(counts[buckets.DOUBTFUL]),
        review_below=seen.review_below,
        votes=votes,
        abstentions=rows * len(seen.labelers) - votes,
    )


def timeline_of(thinned: Thinned, n_classes: int, filled: bool, estimator: str) -> Timeline:
    """The buckets as lists, with the band of noise."""
    n = thinned.n_buckets
    parts: Any = (array[:n] for array in thinned.buckets)
    b = Buckets(*parts)
    rows = np.maximum(b.counts[:, buckets.ROWS], 1)
    known = b.known > 0
    mean = np.where(known, b.total / np.maximum(b.known, 1), np.nan)
    low, high = np.where(known, b.low, np.nan), np.where(known, b.high, np.nan)
    coverage = b.covered / np.maximum(b.known, 1)
    middle, shortest = np.nan_to_num(mean, nan=1.0 / n_classes), b.window_low.astype(float)
    half = calibrated_half_width(middle, coverage, shortest, n_classes, filled, estimator)
    first = np.arange(n) * thinned.step
    times = times_of(thinned)
    return Timeline(
        step=thinned.step,
        first_row=first.tolist(),
        last_row=(np.minimum(first + thinned.step, thinned.n_rows) - 1).tolist(),
        first_time=[begin for begin, _ in times],
        last_time=[end for _, end in times],
        by_time=grows(times),
        window_low=b.window_low.tolist(),
        window_mean=np.round(b.window_sum / rows, 1).tolist(),
        window_high=b.window_high.tolist(),
        accuracy=rounded(mean.T),
        accuracy_low=rounded(low.T),
        accuracy_high=rounded(high.T),
        band_low=rounded(np.clip(low - half, 1.0 / n_classes, 1.0).T),
        band_high=rounded(np.clip(high + half, 1.0 / n_classes, 1.0).T),
        coverage=rounded((b.cast / rows[:, None]).T),
        doubtful=rounded(b.counts[:, buckets.DOUBTFUL] / rows),
        differs=rounded(b.counts[:, [buckets.OVERRULED, buckets.SETTLED, buckets.OPENED]].sum(axis=1) / rows),
    )


def times_of(thinned: Thinned) -> list[tuple[Time, Time]]:
    """First and last time of each bucket."""
    if thinned.times is None:
        return []
    return [(plain_time(begin), plain_time(end)) for begin, end in thinned.times[: thinned.n_buckets]]


def grows(times: list[tuple[Time, Time]]) -> bool:
    """Whether the time grows from bucket to bucket, so that it can be an axis: numbers, or ISO dates as text."""
    begins: list[Any] = [begin for begin, _ in times]
    if not begins or len({type(begin) for begin in begins}) > 1 or begins[0] is None:
        return False
    if isinstance(begins[0], str):
        try:
            begins = np.array(begins, "datetime64[ms]").tolist()
        except ValueError:
            return False
    return all(a < b for a, b in zip(begins, begins[1:], strict=False))


def classes_of(thinned: Thinned, seen: Gathered) -> list[ClassSummary]:
    """Votes, labels and true labels by class."""
    shown = len(thinned.totals.labels_by_class)
    names = seen.classes[:shown] if shown == len(seen.classes) else [*seen.classes[: shown - 1], "other classes"]
    votes, labels = thinned.totals.votes_by_class.sum(axis=0), thinned.totals.labels_by_class
    gold = thinned.gold.confusion.sum(axis=1)
    return [
        ClassSummary(name, int(votes[c]), int(labels[c]), int(gold[c]) if seen.has_gold else None)
        for c, name in enumerate(names)
    ]


def agreement_of(thinned: Thinned) -> Agreement:
    """How often each pair votes alike."""
    cast = thinned.buckets.cast.sum(axis=0)
    both, same = (table + table.T for table in (thinned.totals.both, thinned.totals.same))
    both, same = both + np.diag(cast), same + np.diag(cast)
    with np.errstate(invalid="ignore"):
        return Agreement(share=rounded(np.where(both > 0, same / both, np.nan)), rows=both.tolist())
