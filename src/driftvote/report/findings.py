"""Events, committee and dependence of a report, and its sentences: the findings and the titles of sections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from driftvote.arrays import Codes
from driftvote.drift.dependence import dependence
from driftvote.drift.events import BALANCE, COVERAGE, DriftEvent, Time
from driftvote.models import StepCertificate
from driftvote.report import data
from driftvote.report.buckets import count_pairs
from driftvote.report.data import Report
from driftvote.times import show_time

EVENTS_IN_FULL = 3  # events that the findings tell one by one
MAX_DEPENDENCE_LABELERS = 30  # with more labelers the pairs take seconds
MIN_COMMON_ROWS = 30  # pairs with fewer common rows are named only if there are no others


def percent(value: float, whole: float = 1.0) -> str:
    """A share as text that is never rounded to nothing or to everything.

    >>> percent(1, 3), percent(1, 100_000), percent(99_999, 100_000), percent(0, 5), percent(0.9)
    ('33.3%', 'under 0.1%', 'over 99.9%', '0%', '90.0%')
    """
    if not whole or not value:
        return "0%"
    part = value / whole
    if part == 1.0:
        return "100%"
    if part < 0.001:
        return "under 0.1%"
    return "over 99.9%" if part > 0.999 else f"{part:.1%}"


def counted(n: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def brief(name: str, most: int = 32) -> str:
    """A name cut to the length that fits into a sentence.

    >>> brief("judge"), brief("x" * 50)
    ('judge', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


def show_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Names and values of settings as text."""
    return {str(name): show_value(value) for name, value in settings.items()}


def show_value(value: object) -> str:
    """A value as text; long lists are cut in the middle.

    >>> show_value(20000), show_value(True), show_value([0.5, 0.25]), show_value({"a": None})
    ('20,000', 'yes', '0.5, 0.25', 'a = not set')
    """
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {show_value(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return str(value)
    entries = [show_value(entry) for entry in value]
    return ", ".join(entries if len(entries) <= 12 else [*entries[:4], "…", *entries[-2:]])


def write_findings(report: Report) -> list[str]:
    """The main results: rows, labels, drift, differences from the majority, doubtful rows, near-copies."""
    if not report.tally.rows:
        return ["No rows were read."]
    found = [_labels(report.tally, len(report.labelers))]
    if report.gold is not None:
        found.append(_accuracy(report.gold))
    if report.events is not None:
        found += _events(report.events)
    found += [_window(report), _changes(report.labelers)]
    if report.tally.labeled:
        found.append(_differences(report.differences, report.tally.rows))
    found.append(_doubtful(report.tally))
    if report.dependence is not None and report.dependence.near_copies:
        pairs = ", ".join(f"{pair.first} and {pair.second}" for pair in report.dependence.near_copies[:3])
        worth = f"The panel counts like {report.dependence.effective_labelers:.1f} independent labelers."
        found.append(f"Nearly copies: {pairs}. {worth}")
    return found


def _labels(tally: data.RowCounts, n_labelers: int) -> str:
    start = f"{counted(tally.rows, 'row')} from {counted(n_labelers, 'labeler')}:"
    if tally.labeled == tally.rows:
        return f"{start} every row got a label."
    silent = tally.rows - tally.labeled - tally.tied
    reasons = ([f"{tally.tied:,} tied"] if tally.tied else []) + ([f"{silent:,} without any vote"] if silent else [])
    labeled = f"{tally.labeled:,} got a label ({percent(tally.labeled, tally.rows)})"
    return f"{start} {labeled}, {tally.rows - tally.labeled:,} did not: {', '.join(reasons)}."


def _accuracy(gold: data.GoldComparison) -> str:
    ours, *others = gold.scores
    compared = ", ".join(f"{score.name} {percent(score.accuracy)}" for score in others)
    best = max(others, key=lambda score: score.accuracy)
    gap = 100 * (best.accuracy - ours.accuracy)
    better = f" Here {best.name} does better, by {gap:.1f} points." if gap > 0 else ""
    rows = counted(gold.rows, "row")
    return f"Against the true labels of {rows}, {percent(ours.accuracy)} are right ({compared}).{better}"


def _events(events: list[DriftEvent]) -> list[str]:
    if not events:
        return ["No drift event: nothing changed beyond chance and stayed so."]
    sentences = [f"{event.sentence[0].upper()}{event.sentence[1:]}." for event in events[:EVENTS_IN_FULL]]
    rest = len(events) - EVENTS_IN_FULL
    return sentences + ([f"And {counted(rest, 'more drift event')}, in the table below."] if rest > 0 else [])


def _window(report: Report) -> str:
    drops, last = report.window_drops, report.timeline.window_high[-1]
    now = f"; at the end the last {last:,} rows count" if last > 1 else ""
    if not drops:
        return f"No sharp change: the window never fell to a quarter of its length{now}."
    first, more = drops[0], len(drops) - 1
    time = f" ({show_time(first.time)})" if first.time is not None else ""
    fall = f"the window fell from {first.before:,} to {counted(first.after, 'row')}"
    places = counted(more, "other place") if len(drops) < data.MAX_DROPS else "many other places"
    others = f", and to a quarter or less at {places}" if more else ""
    return f"The labelers' agreement changed near row {first.row:,}{time}: {fall}{others}{now}."


def _changes(labelers: list[data.LabelerSummary]) -> str:
    moved = sorted((labeler for labeler in labelers if labeler.changed), key=_distance, reverse=True)
    if not moved:
        return "No labeler's accuracy moved by more than independent errors explain."
    names = [
        f"{brief(labeler.name)} from {percent(labeler.before or 0)} to {percent(labeler.after or 0)}"
        for labeler in moved[:4]
    ]
    names += [f"and {len(moved) - 4:,} more"] if len(moved) > 4 else []
    return f"Accuracies that moved by more than independent errors explain: {'; '.join(names)}."


def _distance(labeler: data.LabelerSummary) -> float:
    return abs((labeler.after or 0) - (labeler.before or 0))


def _differences(found: data.MajorityDifferences, n_rows: int) -> str:
    if not found.overruled + found.settled + found.opened:
        return "The labels are the plain majority's on every row."
    parts = ["The majority was never overruled"]
    if found.overruled:
        share = percent(found.overruled, n_rows)
        parts = [f"The majority was overruled on {counted(found.overruled, 'row')} ({share})"]
    others = [f"its ties were settled on {found.settled:,}"] if found.settled else []
    others += [f"{found.opened:,} that it decided stayed open"] if found.opened else []
    return "; ".join(parts + ([", ".join(others)] if others else [])) + "."


def _doubtful(tally: data.RowCounts) -> str:
    if not tally.doubtful:
        return "No row is doubtful."
    rows = f"{counted(tally.doubtful, 'row')} ({percent(tally.doubtful, tally.rows)})"
    reason = f"tied, or a label with a probability under {100 * tally.review_below:g}%"
    return f"{rows} {'is' if tally.doubtful == 1 else 'are'} doubtful: {reason}."


def write_titles(report: Report) -> dict[str, str]:
    """A title for each section of the page that states its main result."""
    differing, doubtful = report.differences.overruled, report.tally.doubtful
    return {
        "accuracy": _accuracy_title(report.labelers),
        "window": _window_title(report),
        "coverage": _coverage_title(report),
        "agreement": _agreement_title(report),
        "differences": f"The weights overruled the majority on {counted(differing, 'row')}"
        f" ({percent(differing, report.tally.rows)})"
        if differing
        else "The weights never overruled the majority",
        "doubtful": f"{counted(doubtful, 'row')} deserve{'s' if doubtful == 1 else ''} a second look"
        if doubtful
        else "No doubtful rows",
        "gold": "" if report.gold is None else _gold_title(report.gold),
        "events": _events_title(report.events or []),
        "label_models": _label_models_title(report.label_models),
    }


def _accuracy_title(labelers: list[data.LabelerSummary]) -> str:
    moved = [labeler for labeler in labelers if labeler.changed]
    if not moved:
        return "No labeler's accuracy moved beyond noise"
    most = max(moved, key=_distance)
    others = f", and {counted(len(moved) - 1, 'other labeler')} moved" if len(moved) > 1 else ""
    return f"{brief(most.name)} moved most, from {percent(most.before or 0)} to {percent(most.after or 0)}{others}"


def _label_models_title(members: list[data.LabelModelWeight]) -> str:
    if not members:
        return ""
    first = max(members, key=lambda one: one.weight)
    moved = f", {percent(first.before_answers)} before the answers" if first.moved else ""
    return f"{first.name} counts most: {percent(first.weight)}{moved}"


def _window_title(report: Report) -> str:
    drops = report.window_drops
    if not drops:
        return "The past stayed a guide: the window never fell sharply"
    times = f"{len(drops)} times" if len(drops) < data.MAX_DROPS else "again and again"
    place = "near row" if len(drops) == 1 else f"{times}, most near row"
    after = counted(drops[0].after, "row")
    return f"The window fell sharply {place} {drops[0].row:,}: from {drops[0].before:,} to {after}"


def _coverage_title(report: Report) -> str:
    tally = report.tally
    if not tally.abstentions:
        return "Every labeler voted on every row"
    least = min(report.labelers, key=lambda labeler: labeler.coverage)
    most = max(report.labelers, key=lambda labeler: labeler.coverage)
    cast = percent(tally.votes, tally.votes + tally.abstentions)
    ends = f"from {percent(least.coverage)} ({brief(least.name)}) to {percent(most.coverage)} ({brief(most.name)})"
    return f"{cast} of all possible votes were cast, {ends}"


def _agreement_title(report: Report) -> str:
    names, rows = [brief(labeler.name) for labeler in report.labelers], report.agreement.rows
    table = enumerate(report.agreement.share)
    pairs = [(value, i, j) for i, line in table for j, value in enumerate(line) if j > i and value is not None]
    pairs = [(value, i, j) for value, i, j in pairs if rows[i][j] >= MIN_COMMON_ROWS] or pairs
    if not pairs:
        return "No two labelers voted on the same row"
    ends = (max(pairs, key=lambda pair: (pair[0], -pair[1])), min(pairs))
    most, least = (f"{names[i]} and {names[j]} ({percent(value)})" for value, i, j in ends)
    return f"Most alike: {most}; least: {least}"


def _gold_title(gold: data.GoldComparison) -> str:
    ours, *others = gold.scores
    compared = []
    for other in others:
        gap = 100 * (ours.accuracy - other.accuracy)
        points = f"{abs(gap):.1f} points {'above' if gap > 0 else 'below'}" if abs(gap) >= 0.05 else "level with"
        compared.append(f"{points} {other.name}")
    return f"{percent(ours.accuracy)} labeled right: {' and '.join(compared)}"


def _events_title(events: list[DriftEvent]) -> str:
    if not events:
        return "No drift event"
    names = list(dict.fromkeys(name for event in events for name in event.names))
    changed = f"; {names[0]} changed" if len(names) == 1 else f"; {len(names)} labelers changed" if names else ""
    return f"{counted(len(events), 'drift event')}{changed}"


def event_tone(event: DriftEvent) -> str:
    """The colour of an event's kind: bad, good or plain."""
    if event.kind in (COVERAGE, BALANCE):
        return "plain"
    return "good" if event.kind == "labeler better" else "bad"


def renumber_event(event: DriftEvent, shift: int) -> DriftEvent:
    """The event in row numbers of the report, which may begin in the middle of the model's stream."""
    first, last = (max(0, row + shift) for row in event.since)
    return replace(event, row=event.row + shift, since=(first, last), about=max(0, event.about + shift))


def add_event_times(event: DriftEvent, line: data.Timeline) -> DriftEvent:
    """The event with the times of the report's buckets, if the model had no times."""
    if event.time is not None or not line.first_time:
        return event

    def at(row: int, times: list[Time]) -> Time:
        return times[max(0, bisect_right(line.first_row, row) - 1)]

    since = (at(event.since[0], line.first_time), at(event.since[1], line.last_time))
    about = at(event.about, line.first_time)
    return replace(event, time=at(event.row, line.last_time), since_time=since, about_time=about)


def summarize_committee(certificate: StepCertificate | None) -> data.CommitteeSummary | None:
    """The certified committee of a row, if the model has certificates."""
    if certificate is None:
        return None
    note = (
        f"Whatever the dependence between labelers, if their accuracies are what the settings say: searched at row"
        f" {certificate.searched_at:,} (counting from 1) from {certificate.window:,} rows, agreements within"
        f" {certificate.allowance:.3f}."
    )
    return data.CommitteeSummary(list(certificate.members), certificate.bound, note)


def summarize_dependence(rows: Codes, n_classes: int, labelers: Sequence[str]) -> data.DependenceSummary | None:
    """Which labelers make the same errors, by their agreements on some rows; None if it cannot be computed."""
    n = len(labelers)
    if not 3 < n <= MAX_DEPENDENCE_LABELERS or len(rows) < 2:
        return None
    both, same = np.zeros((2, n, n), np.int64)
    count_pairs(np.ascontiguousarray(rows.T), both, same)
    both, same = (table[np.triu_indices(n, 1)] for table in (both, same))
    # In the sums of `dependence`, a pair of equal votes counts K - 1 and a pair of different votes -1.
    found = dependence(n_classes * same - both, (rows >= 0).sum(axis=0), len(rows), n_classes, labelers)
    if found.effective_labelers is None:
        return None
    copies = []
    for pair, together, alike in zip(found.pairs, both.tolist(), same.tolist(), strict=True):
        if pair.near_copy:
            expected = (1.0 + (n_classes - 1) * pair.expected * len(rows) / together) / n_classes
            copies.append(data.NearCopy(*pair.pair, round(alike / together, 4), round(min(1.0, max(0.0, expected)), 4)))
    lines = [line.strip() for line in found.lines()[1:] if not line.strip().startswith("near-copies")]
    others = [f"{line[:1].upper()}{line[1:]}." for line in lines]
    note = " ".join([f"From the agreements of the last {len(rows):,} rows.", *others])
    return data.DependenceSummary(round(found.effective_labelers, 2), copies, note)
