"""What there is to know, in sentences."""

from __future__ import annotations

from driftvote.drift import DriftEvent
from driftvote.report.context import Gold
from driftvote.report.happened import findings_of
from driftvote.report.parts import Differences, LabelerSummary, Tally, Time, Timeline, WindowDrop
from driftvote.report.values import MOST_DROPS, brief


def percent(value: float, whole: float = 1.0) -> str:
    """A share as a reader wants it: no rounding to nothing or to everything.

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


def findings(
    tally: Tally,
    labelers: list[LabelerSummary],
    drops: list[WindowDrop],
    differences: Differences,
    gold: Gold | None,
    line: Timeline,
    events: list[DriftEvent] | None,
) -> list[str]:
    """The headline: rows, labels, doubtful rows, what changed, and how good it is where that is known."""
    if not tally.rows:
        return ["No rows were read."]
    return [
        _labels(tally, len(labelers)),
        *([_against_gold(gold)] if gold else []),
        *([] if events is None else findings_of(events)),
        _window(drops, line),
        *_changes(labelers),
        *([_differing(tally, differences)] if tally.labeled else []),
        _doubtful(tally),
    ]


def _labels(tally: Tally, n_labelers: int) -> str:
    said = f"{counted(tally.rows, 'row')} from {counted(n_labelers, 'labeler')}: {tally.labeled:,} got a label"
    if tally.labeled == tally.rows:
        return f"{counted(tally.rows, 'row')} from {counted(n_labelers, 'labeler')}: every row got a label."
    silent = tally.rows - tally.labeled - tally.tied
    why = [
        *([f"{tally.tied:,} tied"] if tally.tied else []),
        *([f"{silent:,} without any vote"] if silent else []),
    ]
    return f"{said} ({percent(tally.labeled, tally.rows)}), {tally.rows - tally.labeled:,} did not: {', '.join(why)}."


def _against_gold(gold: Gold) -> str:
    ours, *others = gold.scores
    beside = ", ".join(f"{score.name} {percent(score.accuracy)}" for score in others)
    best = max(others, key=lambda score: score.accuracy)
    verdict = ""
    if best.accuracy > ours.accuracy:
        verdict = f" Here {best.name} does better, by {100 * (best.accuracy - ours.accuracy):.1f} points."
    rows = counted(gold.rows, "row")
    return f"Against the true labels of {rows}, {percent(ours.accuracy)} are right ({beside}).{verdict}"


def _window(drops: list[WindowDrop], line: Timeline) -> str:
    now = f"at the end the last {line.window_high[-1]:,} rows count" if line.window_high[-1] > 1 else ""
    if not drops:
        return f"No sharp change: the window never fell to a quarter of what it was{'; ' + now if now else ''}."
    first = drops[0]
    where = f"near row {first.row:,}" + (f" ({show_time(first.time)})" if first.time is not None else "")
    more = len(drops) - 1
    after = counted(first.after, "row")
    said = f"The labelers' agreement changed {where}: the window fell from {first.before:,} to {after}"
    places = counted(more, "other place") if len(drops) < MOST_DROPS else "many other places"
    others = f", and to a quarter or less at {places}" if more else ""
    return f"{said}{others}{'; ' + now if now else ''}."


def _changes(labelers: list[LabelerSummary]) -> list[str]:
    moved = [who for who in labelers if who.before is not None and who.after is not None]
    if not moved:
        return ["No labeler's accuracy moved by more than independent errors explain."]
    moved.sort(key=lambda who: -abs((who.after or 0) - (who.before or 0)))
    named = "; ".join(
        f"{brief(who.name)} from {percent(who.before or 0)} to {percent(who.after or 0)}" for who in moved[:4]
    )
    more = f"; and {len(moved) - 4:,} more" if len(moved) > 4 else ""
    return [f"Accuracies that moved by more than independent errors explain: {named}{more}."]


def _differing(tally: Tally, differences: Differences) -> str:
    overruled, settled = differences.overruled, differences.settled
    if not overruled + settled + differences.opened:
        return "The labels are the plain majority's on every row."
    said = "The majority was never overruled"
    if overruled:
        said = f"The majority was overruled on {counted(overruled, 'row')} ({percent(overruled, tally.rows)})"
    parts = [
        *([f"its ties were settled on {settled:,}"] if settled else []),
        *([f"{differences.opened:,} that it decided stayed open"] if differences.opened else []),
    ]
    return f"{said}; {', '.join(parts)}." if parts else f"{said}."


def _doubtful(tally: Tally) -> str:
    if not tally.doubtful:
        return "No row is doubtful."
    rows = f"{counted(tally.doubtful, 'row')} ({percent(tally.doubtful, tally.rows)})"
    why = f"tied, or a label with a probability under {100 * tally.review_below:g}%"
    return f"{rows} {'is' if tally.doubtful == 1 else 'are'} doubtful: {why}."


def show_time(time: Time) -> str:
    """A time as text."""
    return str(time).replace("T", " ") if isinstance(time, str) else f"{time:g}"
