"""Words and small drawings of the page that are not fields themselves: titles that say what was found, sparklines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftvote.report.context import Report
from driftvote.report.findings import counted, percent, show_time
from driftvote.report.happened import events_title, tone
from driftvote.report.parts import Example, LabelerSummary, Vote
from driftvote.report.values import MOST_DROPS, brief

MOST_CLASSES = 20
COMMON_ROWS = 30


@dataclass(frozen=True)
class View:
    """What the template needs besides the report."""

    titles: dict[str, str]
    tiles: list[tuple[str, str, str]]
    sparklines: list[str]
    span: str
    classes: list[Any]
    classes_left: int
    percent: Any
    place: Any
    tone: Any
    show_time: Any
    sides: Any
    brief: Any


def view(report: Report) -> View:
    """The view of a report."""
    classes = (
        sorted(report.classes, key=lambda one: -one.votes) if len(report.classes) > MOST_CLASSES else report.classes
    )
    return View(
        titles=titles(report) if report.tally.rows else {},
        tiles=tiles(report) if report.tally.rows else [],
        sparklines=[sparkline(values, len(report.classes)) for values in report.timeline.accuracy],
        span=span(report),
        classes=list(classes[:MOST_CLASSES]),
        classes_left=max(0, len(classes) - MOST_CLASSES),
        percent=percent,
        place=lambda share: f"{100 * share:.1f}",
        tone=tone,
        show_time=show_time,
        sides=sides,
        brief=brief,
    )


def tiles(report: Report) -> list[tuple[str, str, str]]:
    """The big numbers: name, value, and what stands below."""
    tally, line = report.tally, report.timeline
    changed = report.differences.overruled
    found = [
        ("rows", f"{tally.rows:,}", f"{counted(len(report.labelers), 'labeler')}, {counted(tally.votes, 'vote')}"),
        ("labeled", percent(tally.labeled, tally.rows), f"{tally.tied:,} tied, {tally.silent:,} without a vote"),
        ("doubtful", percent(tally.doubtful, tally.rows), f"{counted(tally.doubtful, 'row')} to review"),
        ("majority overruled", percent(changed, tally.rows), f"{counted(changed, 'row')}"),
        ("window at the end", f"{line.window_high[-1]:,}", "rows of the past that count"),
    ]
    if report.gold is not None:
        ours, majority = report.gold.scores[:2]
        found.insert(1, ("labeled right", percent(ours.accuracy), f"majority vote {percent(majority.accuracy)}"))
    return [(name, value.replace("over ", "> ").replace("under ", "< "), below) for name, value, below in found]


def titles(report: Report) -> dict[str, str]:
    """A title for each section that says what there is to see."""
    return {
        "accuracy": _accuracy_title(report.labelers),
        "window": _window_title(report),
        "coverage": _coverage_title(report),
        "agreement": _agreement_title(report),
        "differences": _differences_title(report),
        "doubtful": _doubtful_title(report),
        "gold": _gold_title(report),
        "events": events_title(report.events or []),
    }


def _accuracy_title(labelers: list[LabelerSummary]) -> str:
    moved = [(abs((who.after or 0) - (who.before or 0)), who) for who in labelers if who.changed]
    if not moved:
        return "No labeler's accuracy moved beyond noise"
    most = max(moved, key=lambda pair: pair[0])[1]
    others = f", and {counted(len(moved) - 1, 'other labeler')} moved" if len(moved) > 1 else ""
    return f"{brief(most.name)} moved most, from {percent(most.before or 0)} to {percent(most.after or 0)}{others}"


def _window_title(report: Report) -> str:
    drops = report.window_drops
    if not drops:
        return "The past stayed a guide: the window never fell sharply"
    times = f"{len(drops)} times" if len(drops) < MOST_DROPS else "again and again"
    places = "near row" if len(drops) == 1 else f"{times}, most near row"
    after = counted(drops[0].after, "row")
    return f"The window fell sharply {places} {drops[0].row:,}: from {drops[0].before:,} to {after}"


def _coverage_title(report: Report) -> str:
    tally = report.tally
    if not tally.abstentions:
        return "Every labeler voted on every row"
    least = min(report.labelers, key=lambda who: who.coverage)
    most = max(report.labelers, key=lambda who: who.coverage)
    cast = percent(tally.votes, tally.votes + tally.abstentions)
    ends = f"from {percent(least.coverage)} ({brief(least.name)}) to {percent(most.coverage)} ({brief(most.name)})"
    return f"{cast} of all possible votes were cast, {ends}"


def _agreement_title(report: Report) -> str:
    pairs = [
        (value, i, j)
        for i, row in enumerate(report.agreement.share)
        for j, value in enumerate(row)
        if j > i and value is not None
    ]
    # A handful of common rows says little; such pairs speak only where there are no others.
    pairs = [pair for pair in pairs if report.agreement.rows[pair[1]][pair[2]] >= COMMON_ROWS] or pairs
    if not pairs:
        return "No two labelers voted on the same row"
    most, least = max(pairs, key=lambda pair: (pair[0], -pair[1])), min(pairs)

    def said(pair: tuple[float, int, int]) -> str:
        names = [brief(report.labelers[place].name) for place in pair[1:]]
        return f"{names[0]} and {names[1]} ({percent(pair[0])})"

    return f"Most alike: {said(most)}; least: {said(least)}"


def _differences_title(report: Report) -> str:
    n = report.differences.overruled
    if not n:
        return "The weights never overruled the majority"
    return f"The weights overruled the majority on {counted(n, 'row')} ({percent(n, report.tally.rows)})"


def _doubtful_title(report: Report) -> str:
    n = report.tally.doubtful
    return f"{counted(n, 'row')} deserve{'s' if n == 1 else ''} a second look" if n else "No doubtful rows"


def _gold_title(report: Report) -> str:
    if report.gold is None:
        return ""
    ours, *others = report.gold.scores
    apart = [(100 * (ours.accuracy - other.accuracy), other.name) for other in others]
    said = [
        f"{abs(gap):.1f} points {'above' if gap > 0 else 'below'} {name}" if abs(gap) >= 0.05 else f"level with {name}"
        for gap, name in apart
    ]
    return f"{percent(ours.accuracy)} labeled right: {' and '.join(said)}"


def span(report: Report) -> str:
    """From when to when."""
    line = report.timeline
    if not line.first_time or line.first_time[0] is None or line.last_time[-1] is None:
        return ""
    return f"{show_time(line.first_time[0])} to {show_time(line.last_time[-1])}"


@dataclass(frozen=True)
class Side:
    """A class of a row: its log-odds, and who brought them; widths are percent of the heaviest class."""

    name: str
    total: float
    parts: list[tuple[Vote, float]]


def sides(example: Example) -> list[Side]:
    """The classes that a row's voters named, strongest first."""
    names = list(dict.fromkeys(vote.vote for vote in example.votes))
    votes = {name: [vote for vote in example.votes if vote.vote == name] for name in names}
    most = max((sum(abs(vote.weight) for vote in group) for group in votes.values()), default=0.0) or 1.0
    found = [
        Side(name, sum(vote.weight for vote in group), [(vote, 100.0 * abs(vote.weight) / most) for vote in group])
        for name, group in votes.items()
    ]
    return sorted(found, key=lambda side: -side.total)


def sparkline(values: list[Any], n_classes: int, width: int = 120, height: int = 26) -> str:
    """Points of a small line, from blind guessing at the bottom to always right at the top; stretches part at gaps."""
    n, chance = len(values), 1.0 / max(2, n_classes)
    every = max(1, n // width)
    path: list[str] = []
    pen = "M"
    for t in range(0, n, every):
        if values[t] is None:
            pen = "M"
            continue
        x = width * t / max(n - 1, 1)
        y = (height - 2) * (1.0 - (values[t] - chance) / (1.0 - chance)) + 1
        path.append(f"{pen}{x:.1f} {min(max(y, 0), height):.1f}")
        pen = "L"
    return " ".join(path)
