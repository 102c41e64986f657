"""The loop of a live stream: read a line, answer it, report events, save the state from time to time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from driftvote.drift.events import LABELER_KINDS, DriftEvent, DriftWarning
from driftvote.errors import DriftvoteError
from driftvote.live import WatchOptions
from driftvote.live.lines import LineSink, LineSource, Pause, Stop
from driftvote.live.messages import (
    LineError,
    LineParser,
    VerifyMessage,
    VoteMessage,
    check_names,
    format_answer,
    make_answer,
    make_error,
    place_time,
)
from driftvote.live.metrics import MetricFamily, MetricsServer, collect_metrics, write_metrics
from driftvote.live.notify import EventFile, Log, Webhook
from driftvote.live.state import Position, StateSaver, hash_line
from driftvote.models import LabelModel

BOM = b"\xef\xbb\xbf"
CHECK_LABELERS_EVERY = 1024
"""Rows between two checks for labelers that are near copies of each other."""

PUBLISH_EVERY = 1.0
"""Seconds after which metrics are renewed: served ones always, a file not more often than the state."""


class StreamLoop:
    """Labels one stream of lines; use it as a context manager, which opens and closes the outputs in `options`.

    Parameters
    ----------
    model
        The model that learns from the stream.
    options
        See `WatchOptions`.
    position
        How far the stream has been read before.
    output
        File descriptor for the answers.
    """

    def __init__(self, model: LabelModel, options: WatchOptions, position: Position, output: int) -> None:
        self.model = model
        self.options = options
        self.position = position
        self.counts = position.counts
        self.log = Log(options.quiet)
        self.events: EventFile | None = None
        self.webhook: Webhook | None = None
        self.server: MetricsServer | None = None
        self._output = output
        self._sink = LineSink(output, Stop())
        self._cut = False  # whether a signal came in the middle of an answer
        self._parser = LineParser(model.vote_format, options)
        self._saver = StateSaver(options.state, options.save_every, options.save_lines)
        self._names = dict.fromkeys(model.members)
        self._lines_before = self.counts.lines
        self._number = 0  # of the line in this input, from 1
        self._publish_every = max(PUBLISH_EVERY, options.save_every if options.metrics_port is None else 0.0)
        self._next_publish = time.monotonic()
        self._has_metrics = options.metrics is not None or options.metrics_port is not None
        self._outputs = ExitStack()
        self._questions = QuestionClock(model, options.ask_every) if options.ask else None

    def __enter__(self) -> StreamLoop:
        options = self.options
        with ExitStack() as stack:
            if options.webhook is not None:
                self.webhook = Webhook(options.webhook, self.log.warn, options.webhook_token)
                stack.callback(self.webhook.close)
            if options.events is not None:
                self.events = EventFile(options.events, self.position.stream)
                stack.callback(self.events.close)
            if options.metrics_port is not None:
                self.server = MetricsServer(options.metrics_port, options.metrics_address, self._collect())
                stack.callback(self.server.close)
                self.log.info(f"metrics are served at http://{options.metrics_address}:{self.server.port}/metrics")
            self._outputs = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._outputs.close()

    def run(self, source: LineSource, stop: Stop) -> None:
        """Answer lines until the input ends or a signal asks to stop, then save the state."""
        self._save()  # a crash before the first save must not look like a stream that never began
        self._sink = LineSink(self._output, stop)
        try:
            while not stop:
                # A line is taken when its answer can be written, so the state never holds a row without an answer.
                if not self._sink.wait(self._wait()):
                    self._do_periodic_work()
                    continue
                line = source.next(self._wait())
                if line is Pause.END:
                    self.position.check_end()
                    break
                if line is not Pause.IDLE:
                    self._take(None if isinstance(line, Pause) else line)
                self._do_periodic_work()
        except (OSError, DriftvoteError):  # the reader has gone, or the input cannot be read: save what was learned
            self._finish()
            raise
        self._finish()

    def summary(self, signal: int | None = None) -> dict[str, Any]:
        """What was read and labeled; `signal` is the signal that ended the stream."""
        model, counts = self.model, self.counts
        outputs = {"--state": self.options.state, "--events": self.options.events, "--metrics": self.options.metrics}
        return {
            "lines_now": counts.lines - self._lines_before,
            "ended_by": "end of input" if signal is None else f"signal {signal}",
            "rows": model.n_rows,
            **asdict(counts),
            "labels": counts.by_label(model.classes),
            "events": counts.by_kind(),
            "window": model.window,
            "labelers": dict(zip(model.labelers, model.accuracies.tolist(), strict=True)),
            "webhook": {} if self.webhook is None else self.webhook.posts,
            "outputs": {option: str(path) for option, path in outputs.items() if path is not None},
        }

    def _finish(self) -> None:
        if self._cut:
            self.log.warn("stopped in the middle of an answer that nobody read; the last saved state counts")
        else:
            self._saver.save(self.model, self.position)
        self._publish()

    # -- one line ---------------------------------------------------------------------------------

    def _take(self, line: bytes | None) -> None:
        """Answer a line; None stands for one that was too long."""
        self._number += 1
        if self._number == 1 and line is not None:
            line = line.removeprefix(BOM)
        position = self.position
        if position.skips(line):
            return
        mark = hash_line(line)
        if position.first is None:
            position.first = mark
        elif self._number == 1 and position.first == mark:
            self._refuse_replay(line)
        self.counts.lines += 1
        self.counts.last_line_at = time.time()
        position.last = mark
        if line is not None and not line.strip():
            self.counts.blank_lines += 1
            return
        self._cut = not self._sink.write(self._answer(line))

    def _refuse_replay(self, line: bytes | None) -> None:
        """Refuse an input that begins as the saved stream did; a line without id and time may just look the same."""
        if self.options.again:
            return
        problem = "the input begins with the first line that the state has taken; its rows would be learned twice"
        remedy = "pass --skip-seen if it is the same stream from its start, or --again to learn from it once more"
        if self._parser.is_unique(line):
            raise DriftvoteError(f"{problem}; {remedy}")
        self.log.warn(f"{problem} if it is the same stream; {remedy}")

    def _answer(self, line: bytes | None) -> bytes:
        """The answer to a line. Whatever is wrong with a line, the stream goes on: the model is as before the line."""
        try:
            if line is None:
                raise LineError("it is longer than 16 MB; a line is one row of votes")
            message = self._parser.parse(line)
            return format_answer(self._verify(message) if isinstance(message, VerifyMessage) else self._label(message))
        except Exception as problem:
            what = str(problem) if isinstance(problem, DriftvoteError) else f"{type(problem).__name__}: {problem}"
            self.counts.malformed_lines += 1
            self.log.line_error(f"line {self._number:,}: {what}")
            return format_answer(make_error(self._number, self._parser.id_of(line), what))

    def _label(self, row: VoteMessage) -> dict[str, Any]:
        model, counts, votes = self.model, self.counts, row.votes
        if not self._names:  # declared labelers take part from the first row on
            votes = dict.fromkeys(self._parser.labelers) | votes
        new: list[str] = []
        if not votes.keys() <= self._names.keys():
            new = check_names(list(votes), self._names, model.min_labelers)
        if not self._names and not new:
            raise LineError('"votes" names no labeler; name the labelers, with null for no vote')
        moment, late = place_time(row.time, model.last_time, self.options)
        number = model.n_rows
        row_id = row.id if self._keeps_ids else None
        written = self.options.time_format if isinstance(moment, str) else None
        step = model.update(votes, id=row_id, verified=row.verified, time=moment, time_format=written)
        counts.late_lines += late
        counts.unknown_votes += len(row.unknown)
        counts.verified_rows += row.verified is not None
        self.position.last_id = row.id
        answer = make_answer(number, row, step, self.options)
        counts.doubtful_rows += answer["needs_review"]
        if step.code < 0:
            counts.tied_rows += 1
        else:
            label = str(answer["label"])
            counts.labels[label] = counts.labels.get(label, 0) + 1
        if new:
            self._add_names(new)
        if step.event is not None:
            answer["event"] = int(model.n_events)
            counts.add_event(str(step.event.kind), int(step.event.row))
            self._report("event", answer["event"], step.event, row.id)
            if self._questions is not None:
                self._questions.restart(step.event)
        question = None if self._questions is None else self._questions.next()
        if question is not None:
            counts.questions += 1
            answer["question"] = question
        if model.n_rows % CHECK_LABELERS_EVERY == 0:
            for warning in model.new_warnings():
                counts.warnings += 1
                self._report("warning", counts.warnings, warning, row.id)
        return answer

    def _verify(self, message: VerifyMessage) -> dict[str, Any]:
        if message.by == "id" and not self._keeps_ids:
            raise LineError('rows are verified by the "row" of their answer; pass --keep-ids to verify by "id"')
        self.model.feedback(message.key, message.label, by=message.by, replace=True)
        self.counts.verified_rows += 1
        return {message.by: message.key, "verified": message.label}

    @property
    def _keeps_ids(self) -> bool:
        return self.options.keep_ids or self.options.ask

    def _add_names(self, new: list[str]) -> None:
        first = not self._names
        self._names.update(dict.fromkeys(new))
        if not first:
            names = ", ".join(repr(name) for name in new)
            self.log.info(f"line {self._number:,}: {names} joins; {len(self._names)} labelers now")

    def _report(self, kind: str, number: int, report: DriftEvent | DriftWarning, row_id: Any) -> None:
        """Send an event or a warning to the log, the events file and the webhook."""
        record = {"type": kind, "stream": self.position.stream, "number": number, "line": self._number}
        record |= ({} if row_id is None else {"id": row_id}) | report.to_dict()
        self.log.info(f"{kind} {number}, line {self._number:,}: {report.sentence}")
        if self.events is not None:
            try:
                self.events.add(record)
            except OSError as problem:
                self.log.warn(f"{kind} {number} could not be written to the file ({problem}); labeling continues")
        if self.webhook is not None:
            self.webhook.post({"text": f"driftvote: {report.sentence}", **record})

    # -- periodic work ----------------------------------------------------------------------------

    def _wait(self) -> float | None:
        """Seconds until periodic work is due even if no line arrives; None: there is none."""
        wait = self._saver.wait(self.counts.lines)
        if not self._has_metrics:
            return wait
        publish = max(0.0, self._next_publish - time.monotonic())
        return publish if wait is None else min(wait, publish)

    def _do_periodic_work(self) -> None:
        if self._saver.is_due(self.counts.lines):
            self._save()
        if time.monotonic() >= self._next_publish:
            self._publish()

    def _save(self) -> None:
        """Save the state; an error in the middle of a stream, such as a full disk, does not stop labeling."""
        try:
            self._saver.save(self.model, self.position)
        except OSError as problem:
            self.log.warn(f"the state could not be saved ({problem}); labeling continues, and saving is tried again")

    def _collect(self) -> list[MetricFamily]:
        posts = None if self.webhook is None else self.webhook.posts
        return collect_metrics(self.model, self.counts, posts, self._saver.saved_at)

    def _publish(self) -> None:
        """Renew the served metrics and the metrics file."""
        if not self._has_metrics:
            return
        families = self._collect()
        self._next_publish = time.monotonic() + self._publish_every
        if self.server is not None:
            self.server.families = families
        if self.options.metrics is not None:
            try:
                write_metrics(self.options.metrics, families)
            except OSError as problem:
                self.log.warn(f"the metrics could not be written ({problem}); labeling continues")


class QuestionClock:
    """Asks at most one question in `every` rows, none while nothing is in dispute, and no row twice.

    When a question is due depends on row numbers alone: each `every` rows from the start, or from a fifth of that after
    the last drift event that changed labelers.
    """

    def __init__(self, model: Any, every: int) -> None:
        self._model = model
        self._every = every
        self._first = every  # rows after which a question is due
        self._asked: list[int] = []  # rows that are remembered, without an answer
        for event in model.events:
            self.restart(event)

    def restart(self, event: DriftEvent) -> None:
        """Ask soon after a drift event that changed labelers."""
        if event.kind in LABELER_KINDS:
            self._first = event.row + 1 + max(1, self._every // 5)

    def next(self) -> dict[str, Any] | None:
        """The question that is due now, if there is one."""
        model, since = self._model, self._model.n_rows - self._first
        if since < 0 or since % self._every:
            return None
        oldest, verified = model.n_rows - model.memory_rows, model.verified
        self._asked = [row for row in self._asked if row >= oldest and row not in verified]
        for question in model.ask(1 + len(self._asked)):
            if question.row not in self._asked:
                self._asked.append(question.row)
                return {name: value for name, value in question.to_dict().items() if value is not None}
        return None


NOTICE_AFTER = 3.0
"""Seconds of compilation after which a message says what the user is waiting for."""

WARM_UP_ROWS = 40
"""More rows than lie between two choices of the window, so that every kernel is used."""


def warm_up(model: LabelModel, log: Callable[[str], None]) -> None:
    """Compile, or load from the cache, the kernels that a model with these settings uses."""
    notice = threading.Timer(NOTICE_AFTER, log, ["compiling on first use, usually for 10 to 20 seconds"])
    notice.daemon = True
    if not os.environ.get("DRIFTVOTE_QUIET"):
        notice.start()
    try:
        fresh = model.clone()
        first, second = model.classes[:2]
        row = {"a": first, "b": second, "c": None}
        for _ in range(WARM_UP_ROWS):
            fresh.update(row)
        fresh.update({**row, "d": first})
    finally:
        notice.cancel()
