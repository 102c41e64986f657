"""Drift events as a report tells them: rows and times of the report's own stream, and titles."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from driftvote.drift import BALANCE, COVERAGE, DriftEvent
from driftvote.report.parts import Time, Timeline

MOST_TOLD = 3
"""Events that the findings tell one by one."""


def moved(event: DriftEvent, by: int) -> DriftEvent:
    """The event in row numbers of the report, which may begin in the middle of the model's stream."""
    if not by:
        return event
    first, last = (max(0, row + by) for row in event.since)
    return replace(event, row=event.row + by, since=(first, last), about=max(0, event.about + by))


def timed(event: DriftEvent, line: Timeline) -> DriftEvent:
    """The event with the times of the report, where the model was not told any: those of the buckets."""
    if event.time is not None or not line.first_time:
        return event

    def at(row: int, ends: list[Time]) -> Time:
        return ends[max(0, bisect_right(line.first_row, row) - 1)]

    since = (at(event.since[0], line.first_time), at(event.since[1], line.last_time))
    about = at(event.about, line.first_time)
    return replace(event, time=at(event.row, line.last_time), since_time=since, about_time=about)


def findings_of(events: list[DriftEvent]) -> list[str]:
    """The events among the findings: the first few in full."""
    if not events:
        return ["No drift event: nothing changed beyond chance and stayed so."]
    told = [f"{event.sentence[0].upper()}{event.sentence[1:]}." for event in events[:MOST_TOLD]]
    rest = len(events) - MOST_TOLD
    more = [f"And {rest:,} more drift {'events' if rest > 1 else 'event'}, in the table below."] if rest > 0 else []
    return told + more


def events_title(events: list[DriftEvent]) -> str:
    """What the section of events says first."""
    if not events:
        return "No drift event"
    names = list(dict.fromkeys(name for event in events for name in event.names))
    who = f"; {names[0]} changed" if len(names) == 1 else f"; {len(names)} labelers changed" if names else ""
    count = "1 drift event" if len(events) == 1 else f"{len(events)} drift events"
    return f"{count}{who}"


def tone(event: DriftEvent) -> str:
    """Which colour the kind of an event has: bad, good or plain."""
    if event.kind in (COVERAGE, BALANCE):
        return "plain"
    return "good" if event.kind == "labeler better" else "bad"
