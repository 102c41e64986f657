"""From what the watch noticed to an event: names, accuracies on either side, windows and times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote import drift
from driftvote.bands import calibrated_half_width
from driftvote.diagnosis import Diagnosis, packed
from driftvote.drift import DriftEvent, LabelerChange
from driftvote.kernels.layout import Codes
from driftvote.kernels.sides import leads_and_votes
from driftvote.models.block_book import BlockBook
from driftvote.models.engine import Engine
from driftvote.votes import Roster, VoteFormat
from driftvote.watching import Noticed, Watcher

MOST_CLASSES = 20
"""Classes whose shares an event tells; of more, those that moved most."""


class Weighed(NamedTuple):
    """What was noticed, and what the rows on either side say. Both are found in the rows alone, beside all else."""

    noticed: Noticed
    sides: list[Side]


def weighed(watcher: Watcher, rows: Codes, engine: Engine) -> list[Weighed]:
    """Show rows to the watch: what it notices, in order."""
    return [Weighed(one, [Side(part, engine) for part in (one.before, one.after)]) for one in watcher.feed(rows)]


def told_event(found: Weighed, book: BlockBook, form: VoteFormat, roster: Roster) -> DriftEvent:
    """The event in words and numbers."""
    noticed, sides = found
    told = noticed.told
    changes = labeler_changes(told, sides, roster.names)
    shares = [side.shares for side in sides]
    kept = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:MOST_CLASSES]
    names = [str(form.classes[place]) for place in sorted(kept.tolist())]
    before, after = (dict(zip(names, share[np.sort(kept)].tolist(), strict=True)) for share in shares)
    time = book.time_at(noticed.row)
    since_time = None if time is None else (book.time_before(noticed.since[0]), book.time_at(noticed.since[1]))
    return DriftEvent(
        row=noticed.row,
        time=time,
        since=noticed.since,
        since_time=since_time,
        about=noticed.about,
        about_time=None if time is None else book.time_at(noticed.about),
        kind=told.kind,
        labelers=changes,
        pairs=tuple((roster.names[i], roster.names[j]) for i, j in told.pairs),
        window_before=book.window_before(noticed.since[0]),
        window_after=book.window_at(noticed.row),
        balance_before=before,
        balance_after=after,
    )


class Side:
    """The rows on one side of a change, and what they say of each labeler."""

    def __init__(self, rows: Codes, engine: Engine) -> None:
        self.rows = rows
        self.accuracies = engine.accuracies_of(rows)
        leads, votes = np.zeros(engine.n_classes, np.int64), np.zeros(rows.shape[1], np.int64)
        leads_and_votes(packed(rows, engine.n_classes)[0], leads, votes)
        self.coverage = votes / max(1, len(rows))
        self.shares = leads / max(1, leads.sum())  # of the decided rows those on which most votes are for each class
        size = np.array([float(len(rows))])
        how = (engine.n_classes, engine.fills_in, engine.estimator)
        half = calibrated_half_width(self.accuracies[None], self.coverage[None], size, *how)[0]
        self.low = np.clip(self.accuracies - half, 0.0, 1.0)
        self.high = np.clip(self.accuracies + half, 0.0, 1.0)


def labeler_changes(told: Diagnosis, sides: list[Side], names: tuple[str, ...]) -> tuple[LabelerChange, ...]:
    """Who changed, the clearest first: in the way the event is about, then in other ways."""
    before, after = sides
    moved = {h: z for place, (h, z) in enumerate(told.moved.items()) if not place or _seen_too(h, z, before, after)}
    if told.kind == drift.EVERYTHING:
        # So many changed that the others have nobody left to be compared with: the estimates speak for them.
        apart = np.where(after.low > before.high, 1.0, np.where(after.high < before.low, -1.0, 0.0))
        moved |= {int(h): float(apart[h]) for h in np.flatnonzero(apart) if h not in moved}
    words: dict[int, str] = {}
    accuracy = {h: "better" if z > 0 else "worse" for h, z in moved.items()}
    votes = {h: "votes more" if z > 0 else "votes less" for h, z in told.votes.items()}
    for found in (votes, accuracy) if told.kind == drift.COVERAGE else (accuracy, votes):
        for h, word in found.items():
            words.setdefault(h, word)
    return tuple(
        LabelerChange(
            name=names[h],
            change=word,
            accuracy_before=float(before.accuracies[h]),
            low_before=float(before.low[h]),
            high_before=float(before.high[h]),
            accuracy_after=float(after.accuracies[h]),
            low_after=float(after.low[h]),
            high_after=float(after.high[h]),
            coverage_before=float(before.coverage[h]),
            coverage_after=float(after.coverage[h]),
        )
        for h, word in words.items()
    )


def _seen_too(h: int, z: float, before: Side, after: Side) -> bool:
    """Whether the estimates moved the way the agreement did; beside a clear change, small ones may be echoes of it."""
    return bool((after.accuracies[h] - before.accuracies[h]) * z > 0.0)
