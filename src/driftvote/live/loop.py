"""The loop: a line, its answer, what it brought to light, and now and then a save."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.live.announcing import EventFile, Voice
from driftvote.live.answers import Answers, as_line
from driftvote.live.figures import look_at
from driftvote.live.keeping import Keeper, Place, Seen, mark_of
from driftvote.live.lines import LineSource, Pause, Stop, write_all
from driftvote.live.metrics import Served, write_metrics
from driftvote.live.moments import Moments, latest_time
from driftvote.live.reading import LineError, LineReader, Row, Verification, check_names
from driftvote.live.webhook import Webhook
from driftvote.models import LabelModel

BOM = b"\xef\xbb\xbf"
PANEL_EVERY = 1024
"""Rows between two looks at the panel, for labelers that are near copies."""

SERVED_EVERY = 1.0
"""Seconds after which served figures are renewed."""


@dataclass
class Outlets:
    """Where everything goes; what is None is not wanted."""

    answers: int  # a file descriptor
    voice: Voice
    events: EventFile | None = None
    webhook: Webhook | None = None
    metrics: Path | None = None
    metrics_every: float = 10.0
    served: Served | None = None


@dataclass(frozen=True)
class Habits:
    """How lines are taken: late ones, ids, and those without a time."""

    late: str = "take"
    keep_ids: bool = False
    arrival: bool = False


class Watch:
    """One stream on its way."""

    def __init__(
        self,
        model: LabelModel,
        reader: LineReader,
        answers: Answers,
        place: Place,
        keeper: Keeper,
        outlets: Outlets,
        habits: Habits,
        seen: Seen,
    ) -> None:
        self.model = model
        self.place = place
        self.counts = place.counts
        self.outlets = outlets
        self._reader = reader
        self._answers = answers
        self._keeper = keeper
        self._habits = habits
        self._seen = seen
        self._names = dict.fromkeys(model._families.members.names or model.labelers)
        self._moments = Moments(latest_time(model), habits.late, habits.arrival)
        self._number = 0  # of the line in this input, from 1
        self._line: bytes | None = b""  # the last one taken
        self._took = False
        self._next_metrics = time.monotonic()
        self._next_look = time.monotonic()

    def run(self, source: LineSource, stop: Stop) -> None:
        """Until the input is over or somebody asks to stop; then everything is saved."""
        self._save()  # a crash before the first save must not look like a stream that never began
        try:
            while not stop:
                line = source.next(self._patience())
                if line is Pause.END:
                    self._seen.check_end()
                    break
                if line is not Pause.IDLE:
                    self._take(None if isinstance(line, Pause) else line)
                self._duties()
        except (OSError, DriftvoteError):  # the reader has gone, or the input cannot be read: what was learned is kept
            self.finish()
            raise
        self.finish()

    def finish(self) -> None:
        """Everything to its place."""
        self._remember_line()
        self._keeper.save(self.model, self.place)
        self._publish(self.outlets.metrics is not None)

    # -- a line ---------------------------------------------------------------------------------

    def _take(self, line: bytes | None) -> None:
        self._number += 1
        if self._number == 1 and line is not None:
            line = line.removeprefix(BOM)
        if self._seen.skips(line):
            return
        self.counts.lines += 1
        self.counts.last_line_at = time.time()
        if self.place.first is None:
            self.place.first = mark_of(line)
        elif self._number == 1 and self.place.first == mark_of(line):
            self.outlets.voice.warn(
                "the input begins with the line that the state began with; if it is the same stream from its beginning,"
                " stop and pass --skip-seen, or its rows are learned twice"
            )
        self._line, self._took = line, True
        if line is not None and not line.strip():
            self.counts.blank_lines += 1
            return
        write_all(self.outlets.answers, as_line(self._answered(line)))

    def _answered(self, line: bytes | None) -> dict[str, Any]:
        try:
            if line is None:
                raise LineError("it is longer than 16 MB; a line is one row of votes")
            said = self._reader.read(line)
            return self._verify(said) if isinstance(said, Verification) else self._label(said)
        except DriftvoteError as problem:
            self.counts.malformed_lines += 1
            self.outlets.voice.complain(f"line {self._number:,}: {problem}")
            row_id = None if line is None else self._reader.id_in(line)
            return self._answers.of_error(self._number, row_id, str(problem))

    def _label(self, row: Row) -> dict[str, Any]:
        model, counts, votes = self.model, self.counts, row.votes
        if not self._names:  # who is declared is there from the first row on
            votes = dict.fromkeys(self._reader.labelers) | votes
        new = [] if votes.keys() <= self._names.keys() else check_names(list(votes), list(self._names))
        if not self._names and not new:
            raise LineError('nobody is named in "votes"; name the labelers, with null for no vote')
        moment, late = self._moments.of(row.time)
        number = model.n_rows
        kept = row.id if self._habits.keep_ids else None
        step = model.update(votes, id=kept, verified=row.verified, time=moment)
        self._moments.keep(moment)
        counts.late_lines += late
        counts.unknown_votes += len(row.unknown)
        counts.verified_rows += row.verified is not None
        self.place.last_id = row.id
        answer = self._answers.of_row(number, row, step)
        counts.doubtful_rows += answer["needs_review"]
        if step.code < 0:
            counts.tied_rows += 1
        else:
            label = str(answer["label"])
            counts.labels[label] = counts.labels.get(label, 0) + 1
        if new:
            self._welcome(new, first=not self._names)
        if step.event is not None:
            answer["event"] = self._tell_event(step.event, row.id)
        if model.n_rows % PANEL_EVERY == 0:
            self._look_at_panel(row.id)
        return answer

    def _verify(self, said: Verification) -> dict[str, Any]:
        if said.by == "id" and not self._habits.keep_ids:
            raise LineError('rows are verified by the "row" of their answer; pass --keep-ids to do it by "id"')
        self.model.feedback(said.key, said.label, by=said.by, replace=True)
        self.counts.verified_rows += 1
        return self._answers.of_verification(said)

    # -- what it brought to light -----------------------------------------------------------------

    def _welcome(self, new: list[str], first: bool) -> None:
        self._names.update(dict.fromkeys(new))
        if not first:
            them = ", ".join(repr(name) for name in new)
            self.outlets.voice.say(f"line {self._number:,}: {them} joins; {len(self._names)} labelers now")

    def _tell_event(self, event: Any, row_id: Any) -> int:
        number = int(self.model.n_detections)
        self.counts.event(str(event.kind), int(event.row))
        self._tell("event", number, event, row_id)
        return number

    def _look_at_panel(self, row_id: Any) -> None:
        for warning in self.model.new_warnings():
            self.counts.warnings += 1
            self._tell("warning", self.counts.warnings, warning, row_id)

    def _tell(self, kind: str, number: int, what: Any, row_id: Any) -> None:
        record = {"type": kind, "stream": self.place.stream, "number": number, "line": self._number}
        record |= ({} if row_id is None else {"id": row_id}) | what.as_dict()
        self.outlets.voice.say(f"{kind} {number}, line {self._number:,}: {what.sentence}")
        if self.outlets.events is not None:
            try:
                self.outlets.events.add(record)
            except OSError as problem:
                self.outlets.voice.warn(
                    f"{kind} {number} could not be written to the file ({problem}); labeling goes on"
                )
        if self.outlets.webhook is not None:
            self.outlets.webhook.post({"text": f"driftvote: {what.sentence}", **record})

    # -- now and then -----------------------------------------------------------------------------

    def _patience(self) -> float | None:
        """Seconds until something is due although no line comes."""
        waits = [self._keeper.wait(self.counts.lines)]
        if self.outlets.metrics is not None:
            waits.append(self._next_metrics - time.monotonic())
        if self.outlets.served is not None:
            waits.append(self._next_look - time.monotonic())
        known = [max(0.0, wait) for wait in waits if wait is not None]
        return min(known) if known else None

    def _duties(self) -> None:
        if self._keeper.due(self.counts.lines):
            self._save()
        now = time.monotonic()
        file_due = self.outlets.metrics is not None and now >= self._next_metrics
        if file_due or (self.outlets.served is not None and now >= self._next_look):
            self._publish(file_due)

    def _save(self) -> None:
        """In the middle of a stream a full disk is no reason to stop labeling."""
        self._remember_line()
        try:
            self._keeper.save(self.model, self.place)
        except OSError as problem:
            self._keeper.failures += 1
            self.outlets.voice.warn(
                f"the state could not be saved ({problem}); labeling goes on, and saving is tried again"
            )

    def _remember_line(self) -> None:
        if self._took:
            self.place.last = mark_of(self._line)

    def _publish(self, to_file: bool) -> None:
        outlets = self.outlets
        if outlets.metrics is None and outlets.served is None:
            return
        posts = None if outlets.webhook is None else dict(outlets.webhook.posts)
        found = look_at(self.model, self.counts, posts, self._keeper.saved_at)
        if outlets.served is not None:
            outlets.served.found = found
            self._next_look = time.monotonic() + SERVED_EVERY
        if to_file and outlets.metrics is not None:
            self._next_metrics = time.monotonic() + outlets.metrics_every
            try:
                write_metrics(outlets.metrics, found)
            except OSError as problem:
                outlets.voice.warn(f"the metrics could not be written ({problem}); labeling goes on")
