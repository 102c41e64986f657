"""Events, committee and dependence of a report, and its sentences: verdict, findings, next steps, titles."""

from __future__ import annotations

import calendar
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from driftvote.arrays import Codes
from driftvote.drift.dependence import dependence
from driftvote.drift.events import BALANCE, COVERAGE, DriftEvent, LabelerChange, Time
from driftvote.models import StepCertificate
from driftvote.report import data
from driftvote.report.buckets import count_pairs
from driftvote.report.data import Report
from driftvote.times import show_time

MAX_DESCRIBED = 2  # events that the verdict describes; the others are counted
DAYS = 4  # in streams of fewer days the verdict has the clock time
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


def write_verdict(report: Report) -> str:
    """Whether labelers changed, which, since when, and how many labels differ from the majority."""
    if not report.tally.rows:
        return "No rows were read."
    return f"{_drift(report)}; {_differing(report.differences, report.tally.rows)}."


def _differing(found: data.MajorityDifferences, rows: int) -> str:
    """How many labels are not those of a majority vote."""
    if found.settled and not found.overruled + found.opened:
        return f"{percent(found.settled, rows)} of labels settle a tied vote, none overrules a majority"
    return f"{percent(found.overruled + found.settled + found.opened, rows)} of labels differ from the majority"


def _drift(report: Report) -> str:
    if report.events is None:
        if not report.window_drops:
            return "Drift events were not looked for, and the window never fell sharply"
        drop = report.window_drops[0]
        place = _place(drop.row, drop.time, report.timeline)
        return (
            f"The agreement changed near {place}: the window fell from {drop.before:,} to {counted(drop.after, 'row')}"
        )
    if not report.events:
        return f"No lasting change in {counted(report.tally.rows, 'row')}"
    latest = "; ".join(describe_event(event, report) for event in report.events[-MAX_DESCRIBED:])
    n = len(report.events)
    if n <= MAX_DESCRIBED:
        first = report.events[0]  # a name keeps its first letter
        return latest[0].upper() + latest[1:] if first.kind == BALANCE or len(first.labelers) > 1 else latest
    return f"{n} lasting changes, the latest ones: {latest}"


def describe_event(event: DriftEvent, report: Report) -> str:
    """What happened to whom and since when, without its details."""
    since = _place(event.about, event.about_time, report.timeline)
    if not event.labelers:
        return f"since {since}, {event.what}"
    if len(event.labelers) == 1:
        one = event.labelers[0]
        habit = {
            "worse": "has been wrong more often",
            "better": "has been right more often",
            "votes less": "has voted less often",
            "votes more": "has voted more often",
        }[one.change]
        return f"{brief(one.name)} {habit} since {since}: {show_change(one)}"
    groups = []
    for change, verb in (
        ("worse", "got worse"),
        ("better", "got better"),
        ("votes less", "vote less"),
        ("votes more", "vote more"),
    ):
        some = [one for one in event.labelers if one.change == change]
        if len(some) == 1:
            groups.append(f"{brief(some[0].name)} {verb.replace('vote ', 'votes ')} ({show_change(some[0])})")
        elif some:
            most = max(some, key=_size)
            groups.append(f"{len(some)} {verb} ({brief(most.name)} most: {show_change(most)})")
    n, of = len(event.labelers), len(report.labelers)
    who = f"all {n} labelers" if n == of else f"{n} of {of} labelers"
    return f"{who} changed around {since}: {', '.join(groups)}"


def _size(labeler: LabelerChange) -> float:
    if labeler.change.startswith("votes"):
        return abs(labeler.coverage_after - labeler.coverage_before)
    return abs(labeler.accuracy_after - labeler.accuracy_before)


def show_change(labeler: LabelerChange) -> str:
    """The figures of a change.

    >>> show_change(LabelerChange("Bob", "worse", 0.83, 0.8, 0.86, 0.45, 0.4, 0.5, 1.0, 1.0))
    '45% right instead of 83%'
    """
    before, after = shown_pair(labeler)
    return (
        f"{after} of rows instead of {before}"
        if labeler.change.startswith("votes")
        else f"{after} right instead of {before}"
    )


def shown_pair(labeler: LabelerChange) -> tuple[str, str]:
    """The figures before and after a change, in whole percents unless these are equal."""
    pair = labeler.accuracy_before, labeler.accuracy_after
    if labeler.change.startswith("votes"):
        pair = labeler.coverage_before, labeler.coverage_after
    digits = 0 if f"{pair[0]:.0%}" != f"{pair[1]:.0%}" else 1
    return f"{pair[0]:.{digits}%}", f"{pair[1]:.{digits}%}"


def _place(row: int, time: Time, line: data.Timeline) -> str:
    """A row, or its time if there is one: the day in streams of many days."""
    if time is None:
        return f"row {row:,}"
    ends = [*line.first_time[:1], *line.last_time[-1:]]
    days = [date.fromisoformat(str(end)[:10]) for end in (*ends, time) if re.match(r"\d{4}-\d\d-\d\d", str(end))]
    if len(days) < 3 or days[1] - days[0] < timedelta(days=DAYS):
        return show_time(time)
    return f"{days[2].day} {calendar.month_name[days[2].month]} {days[2].year}"


def write_findings(report: Report) -> list[str]:
    """The main results beside drift: rows and labels, their accuracy, labelers that vote alike."""
    if not report.tally.rows:
        return []
    found = [_labels(report.tally, len(report.labelers))]
    if report.gold is not None:
        found.append(_accuracy(report.gold))
    if report.dependence is not None and report.dependence.near_copies:
        pairs = ", ".join(f"{brief(pair.first)} and {brief(pair.second)}" for pair in report.dependence.near_copies[:3])
        worth = f"The panel counts like {report.dependence.effective_labelers:.1f} independent labelers."
        found.append(f"Near-copies: {pairs}. {worth}")
    return found


def _labels(tally: data.RowCounts, n_labelers: int) -> str:
    start = f"{counted(tally.rows, 'row')} from {counted(n_labelers, 'labeler')}"
    if tally.labeled == tally.rows:
        return f"{start}, all labeled."
    silent = tally.rows - tally.labeled - tally.tied
    reasons = ([f"{tally.tied:,} tied"] if tally.tied else []) + ([f"{silent:,} without any vote"] if silent else [])
    return f"{start}, {percent(tally.labeled, tally.rows)} labeled; without a label: {', '.join(reasons)}."


def _accuracy(gold: data.GoldComparison) -> str:
    ours, *others = gold.scores
    compared = ", ".join(f"{score.name} {percent(score.accuracy)}" for score in others)
    best = max(others, key=lambda score: score.accuracy)
    gap = 100 * (best.accuracy - ours.accuracy)
    better = f" Here {best.name} does better, by {gap:.1f} points." if gap > 0 else ""
    rows = counted(gold.rows, "row")
    return f"{percent(ours.accuracy)} of the labels are correct on {rows} with a true label ({compared}).{better}"


def write_next_steps(report: Report) -> list[data.NextStep]:
    """What to do now, most useful first."""
    steps, tally = [], report.tally
    worse = [(one.name, event) for event in report.events or () for one in event.labelers if one.change == "worse"]
    if worse:
        event = worse[-1][1]
        names = [name for name, other in worse if other is event]
        who = (
            brief(names[0]) if len(names) == 1 else f"{brief(names[0])} and {counted(len(names) - 1, 'other labeler')}"
        )
        place = _place(event.about, event.about_time, report.timeline)
        steps.append(data.NextStep(f"Find out what happened to {who} around {place}.", "events"))
    if report.questions is not None and report.questions.rows:
        n, change = len(report.questions.rows), report.questions.expected_change
        text = f"Answer {counted(n, 'question')}: this is expected to change {percent(change)} of the latest labels."
        steps.append(data.NextStep(text, "questions"))
    if tally.review:
        rows = f"{counted(tally.review, 'row')} ({percent(tally.review, tally.rows)})"
        reason = f"labels that are tied or have a probability below {100 * tally.review_below:g}%"
        steps.append(data.NextStep(f"Review {rows}: {reason}.", "review"))
    if report.dependence is not None and report.dependence.near_copies:
        pair = report.dependence.near_copies[0]
        text = (
            f"Keep one of {brief(pair.first)} and {brief(pair.second)}, or put them into one group: they err together."
        )
        steps.append(data.NextStep(text, "agreement"))
    if not steps and tally.rows:
        steps.append(data.NextStep("Nothing: no labeler changed, and no label is uncertain.", ""))
    return steps


def write_titles(report: Report) -> dict[str, str]:
    """A title for each section of the page that states its main result."""
    found, review, line = report.differences, report.tally.review, report.timeline
    differing = found.overruled + found.settled + found.opened
    settles = differing and differing == found.settled
    return {
        "window": f"The last {line.window_high[-1]:,} rows count at the end" if max(line.window_high) > 1 else "",
        "agreement": _agreement_title(report),
        "differences": f"{counted(differing, 'label')} ({percent(differing, report.tally.rows)}) "
        f"{'settle' if settles else 'differ'}{'s' if differing == 1 else ''} "
        f"{'a tied vote' if settles else 'from the majority'}",
        "review": f"{counted(review, 'row')} to review",
        "gold": "" if report.gold is None else _gold_title(report.gold),
        "events": counted(len(report.events or ()), "lasting change"),
        "label_models": _label_models_title(report.label_models),
    }


def _label_models_title(members: list[data.LabelModelWeight]) -> str:
    if not members:
        return ""
    first = max(members, key=lambda one: one.weight)
    moved = f", {percent(first.before_answers)} before the answers" if first.moved else ""
    return f"{first.name} has the largest weight: {percent(first.weight)}{moved}"


def _agreement_title(report: Report) -> str:
    names, pairs = [brief(labeler.name) for labeler in report.labelers], ranked_pairs(report)
    if not pairs:
        return "No two labelers voted on the same row"
    most, least = (f"{names[i]} and {names[j]} ({percent(value)})" for value, i, j in (pairs[0], pairs[-1]))
    return f"Agree most: {most}; least: {least}"


def ranked_pairs(report: Report) -> list[tuple[float, int, int]]:
    """Pairs of labelers with their agreement, the highest first; pairs with few common rows only if all have few."""
    rows, table = report.agreement.rows, enumerate(report.agreement.share)
    pairs = [(value, i, j) for i, line in table for j, value in enumerate(line) if j > i and value is not None]
    pairs = [(value, i, j) for value, i, j in pairs if rows[i][j] >= MIN_COMMON_ROWS] or pairs
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))


def _gold_title(gold: data.GoldComparison) -> str:
    ours, *others = gold.scores
    compared = []
    for other in others:
        gap = 100 * (ours.accuracy - other.accuracy)
        points = f"{abs(gap):.1f} points {'above' if gap > 0 else 'below'}" if abs(gap) >= 0.05 else "level with"
        compared.append(f"{points} {other.name}")
    return f"{percent(ours.accuracy)} correct: {' and '.join(compared)}"


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
