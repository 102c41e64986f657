"""What a run has seen and said, for its summary."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any

import numpy as np

from driftvote.cli.inputs import Votes
from driftvote.cli.labeling import Answer, Streams
from driftvote.drift import DriftEvent
from driftvote.votes import show_names

MOST_EVENTS = 100
"""Drift events that a summary for machines tells: the latest ones."""
SHOWN_EVENTS = 3
"""Those that one for people tells."""


class Totals:
    """Counts that grow batch by batch."""

    def __init__(self, votes: Votes) -> None:
        self.votes = votes
        self.rows = 0
        self.counts = np.zeros(votes.form.n_classes + 1, np.int64)  # no label last
        self.review = 0
        self.n_events = 0
        self.events: list[tuple[Hashable, DriftEvent]] = []  # the latest, with the name of their stream
        self.cast: dict[str, int] = {}
        self.known = self.right = 0.0
        self._start = time.perf_counter()

    def add(self, answer: Answer, review: Any, gold: Any) -> None:
        """Count a batch."""
        self.rows += len(answer.codes)
        self.counts += np.bincount(
            np.where(answer.codes < 0, len(self.counts) - 1, answer.codes), minlength=len(self.counts)
        )
        self.review += int(np.count_nonzero(review))
        self.n_events += len(answer.events)
        self.events = [*self.events, *answer.events][-MOST_EVENTS:]
        if gold is not None:
            known = gold >= 0
            self.known += int(known.sum())
            tied = int((answer.codes[known] < 0).sum())
            self.right += int((answer.codes[known] == gold[known]).sum()) + tied / self.votes.form.n_classes

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def as_dict(self, streams: Streams, outputs: dict[str, Any]) -> dict[str, Any]:
        """The summary for machines."""
        counted = {str(value): int(n) for value, n in zip(self.votes.form.classes, self.counts, strict=False)}
        seconds = self.seconds
        found: dict[str, Any] = {
            **self.votes.describe(),
            "rows": self.rows,
            "labels": counted,
            "no_label": int(self.counts[-1]),
            "needs_review": self.review,
            "n_events": self.n_events,
            "events": [{**({} if name is None else {"stream": str(name)}), **e.as_dict()} for name, e in self.events],
            "seconds": round(seconds, 3),
            "rows_per_second": round(self.rows / seconds) if seconds else None,
            "outputs": {key: str(value) for key, value in outputs.items() if value is not None},
            "notes": list(self.votes.notes),
        }
        if self.known:
            found["gold"] = {"rows": int(self.known), "accuracy": self.right / self.known}
        if list(streams.models) == [None]:
            model = streams.model(None)
            found["labelers"] = list(model.labelers)
            found["window"] = model.window
            found["accuracies"] = dict(zip(model.labelers, model.accuracies.tolist(), strict=True))
            found["rows_seen"] = model.n_rows
        else:
            found["labelers"] = list(streams.example().labelers)
            found["streams"] = len(streams)
        return found

    def lines(self, found: dict[str, Any]) -> list[str]:
        """The summary for people."""
        rows = max(1, self.rows)
        streams = f" in {found['streams']:,} streams" if "streams" in found else ""
        shares = [f"{name} {count / rows:.1%}" for name, count in list(found["labels"].items())[:8]]
        if found["no_label"]:
            shares.append(f"tied {found['no_label'] / rows:.1%}")
        said = [
            f"read     {self.votes.table.shown}: {self.rows:,} rows{streams}, {len(found['labelers'])} labelers:"
            f" {show_names(found['labelers'])}",
            f"classes  {self.votes.how_read()}",
            f"labels   {', '.join(shares)}; {self.review:,} rows ({self.review / rows:.1%}) need review",
        ]
        if "accuracies" in found:
            order = sorted(found["accuracies"].items(), key=lambda pair: -pair[1])
            shown = ", ".join(f"{name} {value:.2f}" for name, value in order[:8])
            more = f" and {len(order) - 8} more" if len(order) > 8 else ""
            said.append(f"now      window of {found['window']:,} rows; accuracy {shown}{more}")
        if self.n_events > SHOWN_EVENTS:
            said.append(f"drift    {self.n_events:,} times, the last of them:")
        for name, event in self.events[-SHOWN_EVENTS:]:
            where = "" if name is None else f"stream {name}: "
            said.append(f"drift    {where}{event.sentence} (noticed at row {event.row:,})")
        if "gold" in found:
            said.append(
                f"gold     {found['gold']['accuracy']:.2%} of {found['gold']['rows']:,} rows with gold are right"
            )
        said += [f"wrote    {path}" for path in found["outputs"].values()]
        return [*said, f"time     {found['seconds']:.1f} s, {found['rows_per_second'] or 0:,} rows a second"]
