"""What `driftvote check` looks at: the events and the doubtful rows at the end of a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.cli.inputs import Votes, votes_in
from driftvote.cli.label import Wanted, open_streams
from driftvote.cli.labeling import Answer, Labeling, Streams
from driftvote.cli.options import Given
from driftvote.cli.outputs import most_likely
from driftvote.cli.places import check_places
from driftvote.cli.progress import rows_done
from driftvote.cli.saved import Saved, read_saved
from driftvote.cli.threads import ahead
from driftvote.cli.totals import Totals
from driftvote.drift import DriftEvent
from driftvote.errors import DriftvoteError
from driftvote.live.figures import Counts, look_at
from driftvote.live.metrics import write_metrics
from driftvote.votes import show_names


@dataclass(frozen=True)
class Limits:
    """How many of the last rows count, and which share of them may be doubtful."""

    last: int
    most_doubtful: float


class LastRows:
    """Which of the last rows need review."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: deque[npt.NDArray[np.bool_]] = deque()
        self.rows = 0

    def add(self, review: npt.NDArray[np.bool_]) -> None:
        self._parts.append(review[-self._most :])
        self.rows += len(self._parts[-1])
        while self.rows - len(self._parts[0]) >= self._most:
            self.rows -= len(self._parts.popleft())

    def doubtful(self) -> tuple[int, int]:
        """How many need review, of how many."""
        flags = np.concatenate(self._parts)[-self._most :] if self._parts else np.zeros(0, bool)
        return int(flags.sum()), len(flags)


def checked(given: Given, wanted: Wanted, limits: Limits, metrics: Path | None) -> dict[str, Any]:
    """Label a file, keep nothing but what tells how it is; for machines."""
    check_places(given.file, {"--metrics": metrics}, force=True)
    many = given.stream is not None and given.only is None
    if many and metrics is not None:
        raise DriftvoteError(
            f"{metrics}: metrics are about one stream; name it with --only VALUE, or leave --metrics out"
        )
    if wanted.state is not None and not wanted.state.exists():
        raise DriftvoteError(f"{wanted.state}: there is no such state file; leave --state out to begin with nothing")
    saved = Saved(many=many) if wanted.state is None else read_saved(wanted.state, many)
    form = next(iter(saved.models.values()))._form if saved.models else None
    with votes_in(given, form) as votes:
        streams = open_streams(votes, wanted, saved)
        streams.passing = False  # where a stream ends is asked for at the end
        events, totals, last = _read(votes, wanted, streams, limits.last)
        found = _found(events, totals, last, streams, limits)
    if metrics is not None:
        write_metrics(metrics, look_at(streams.model(None), _counts(found, totals, events)))
        found["outputs"] = {"--metrics": str(metrics)}
    return found


Events = list[tuple[Hashable, DriftEvent]]


def _read(votes: Votes, wanted: Wanted, streams: Streams, most: int) -> tuple[Events, Totals, LastRows]:
    labeling = Labeling(streams, votes.table, votes.roles.time or None, votes.many, frozenset())
    totals, last = Totals(votes), LastRows(most)
    events: Events = []
    with rows_done("checking", wanted.quiet) as listen:
        for rows in ahead(votes.batches(True)):
            answer = labeling.label(rows)
            review = _review(answer, wanted.review_below)
            totals.add(answer, review, rows.gold)
            last.add(review)
            events += answer.events
            listen(totals.rows, votes.table.done())
    return events, totals, last


def _review(answer: Answer, below: float) -> npt.NDArray[np.bool_]:
    return np.asarray((most_likely(answer.proba) < below) | (answer.codes < 0))


def _found(events: Events, totals: Totals, last: LastRows, streams: Streams, limits: Limits) -> dict[str, Any]:
    recent = [(name, event) for name, event in events if event.row >= streams.model(name).n_rows - limits.last]
    doubtful, of = last.doubtful()
    share = doubtful / max(1, of)
    summary = totals.as_dict(streams, {})
    kept = ("file", "rows", "labelers", "streams", "window", "accuracies", "needs_review", "gold", "notes", "seconds")
    return {
        **{key: summary[key] for key in kept if key in summary},
        "classes": totals.votes.how_read(),
        "last": of,
        "drift": bool(recent),
        "events": [({} if name is None else {"stream": name}) | event.as_dict() for name, event in recent],
        "earlier_events": len(events) - len(recent),
        "doubtful": {"rows": doubtful, "share": share, "most": limits.most_doubtful},
        "too_doubtful": share > limits.most_doubtful,
    }


def _counts(found: dict[str, Any], totals: Totals, events: Events) -> Counts:
    counts = Counts(doubtful_rows=found["needs_review"], tied_rows=int(totals.counts[-1]))
    counts.labels = {str(value): int(n) for value, n in zip(totals.votes.form.classes, totals.counts, strict=False)}
    for _, event in events:
        counts.event(event.kind, event.row)
    return counts


def shown(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    streams = f" in {found['streams']:,} streams" if "streams" in found else ""
    doubt = found["doubtful"]
    said = [
        *found["notes"],
        f"read     {found['file']}: {found['rows']:,} rows{streams}, {len(found['labelers'])} labelers:"
        f" {show_names(found['labelers'])}",
        f"classes  {found['classes']}",
    ]
    for event in found["events"]:
        where = f"stream {event['stream']}: " if "stream" in event else ""
        said.append(f"drift    {where}{event['sentence']} (noticed at row {event['row']:,})")
    earlier = f" ({found['earlier_events']} before)" if found["earlier_events"] else ""
    if not found["events"]:
        said.append(f"drift    none in the last {found['last']:,} rows{earlier}")
    said.append(
        f"doubt    {doubt['rows']:,} of the last {found['last']:,} rows ({doubt['share']:.1%}) need review;"
        f" {doubt['most']:.0%} may"
    )
    said += [f"wrote    {path}" for path in found.get("outputs", {}).values()]
    bad = [word for key, word in (("drift", "drift"), ("too_doubtful", "too many doubtful rows")) if found[key]]
    return [*said, f"result   {' and '.join(bad) or 'all is well'} (exit code {found['exit_code']})"]
