"""A stream at work: its model, its file, and the queue of jobs that wait for it; and the folder of all streams.

Jobs of one stream run one after the other, in worker threads that all streams share; streams take turns. A turn takes
every waiting job: rows of several requests are labeled in one call (labels do not depend on how rows are cut into
batches) and written in one transaction, and the answers go out after the commit. If the transaction fails, the model is
dropped and read again: a snapshot, then the rows and answers stored after it, in their order.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from json.encoder import encode_basestring_ascii as quote
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.arrays import Bools, Codes, Ints
from driftvote.core.voting import majority_vote
from driftvote.drift.events import COVERAGE, DriftEvent
from driftvote.errors import DriftvoteError, StateError
from driftvote.files.state import pack_state, unpack_state
from driftvote.inputs import RECORDS, Batch
from driftvote.live.metrics import Counts, MetricFamily, collect_metrics
from driftvote.models import AdaptiveLabelModel, LabeledStream
from driftvote.serve import Limits
from driftvote.serve.bodies import SERVER_ID, BodyReader, RequestError, RowsIn, make_model
from driftvote.serve.store import MOST_POINTS, StoredBatch, StoredRow, StreamStore, file_name, list_stores
from driftvote.settings import REVIEW_BELOW

TURN_ROWS = 10_000
"""Rows of a turn, beyond those of its first job: other streams wait for the end of a turn."""

REPLAY_ROWS = 1 << 14
POINT_ROWS = 16
"""Rows between two points of the timeline at first; doubled when there are too many."""
SPARK_POINTS = 12
"""Points of the timeline for each of the small chart in the list of streams."""

RECENT = 1_000
"""Rows that shares are counted over."""

RECENT_EVENTS = 10_000
"""Rows for which the page calls a labeler changed."""

RATE_SECONDS = 10
DROP_ROWS = 2 * TURN_ROWS
"""Rows that retention drops in one transaction: more than a turn adds."""


@dataclass
class Job:
    """Something that waits for its stream: rows to learn from, or a call."""

    rows: RowsIn | None = None
    call: Callable[[], Any] | None = None
    writes: bool = True
    alone: bool = False  # in a turn of its own
    result: Any = None
    error: BaseException | None = None
    future: Future[Any] = field(default_factory=Future)

    @property
    def n_rows(self) -> int:
        return 0 if self.rows is None else len(self.rows.ids)

    def finish(self) -> None:
        """Give the result to whoever waits; a caller that has gone away is no error."""
        with contextlib.suppress(Exception):
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)


class RecentRows:
    """Votes and labels of the last rows, and what is counted over them."""

    def __init__(self, n_classes: int, dtype: np.dtype[Any]) -> None:
        self._n_classes = n_classes
        self.votes: Codes = np.zeros((0, 0), dtype)
        self.codes: Ints = np.zeros(0, np.int64)
        self.disputed = np.zeros(0, np.bool_)
        self.differs = np.zeros(0, np.bool_)

    def add(self, votes: Codes, codes: Ints) -> None:
        """Add rows; all rows of a batch stay until `cut`, for the points of the timeline."""
        majority = majority_vote(np.ascontiguousarray(votes), np.zeros(0), self._n_classes)[0]
        highest = votes.max(axis=1, initial=-1)
        lowest = np.where(votes < 0, highest[:, None], votes).min(axis=1, initial=self._n_classes)
        wider = np.full((len(self.votes), votes.shape[1] - self.votes.shape[1]), -1, votes.dtype)
        self.votes = np.concatenate([np.hstack([self.votes, wider]), votes])
        self.codes = np.concatenate([self.codes, codes])
        self.disputed = np.concatenate([self.disputed, lowest < highest])
        self.differs = np.concatenate([self.differs, (codes != majority) & (codes >= 0) & (majority >= 0)])

    def cut(self) -> None:
        """Forget all but the last rows."""
        for name in ("votes", "codes", "disputed", "differs"):
            setattr(self, name, getattr(self, name)[-RECENT:])

    def shares(self, classes: Sequence[Any], end: int | None = None) -> dict[str, Any]:
        """Return the shares over the last rows before place `end`."""
        end = len(self.codes) if end is None else end
        part = slice(max(0, end - RECENT), end)
        n, codes = max(1, part.stop - part.start), self.codes[part]
        counts = np.bincount(codes[codes >= 0], minlength=self._n_classes).tolist()
        return {
            "in_dispute": round(float(self.disputed[part].sum()) / n, 4),
            "differs_from_majority": round(float(self.differs[part].sum()) / n, 4),
            "label_shares": {str(value): round(count / n, 4) for value, count in zip(classes, counts, strict=True)},
        }


class ServedStream:
    """One stream: `submit` and `submit_rows` return futures, everything else runs in a turn."""

    def __init__(self, store: StreamStore, limits: Limits, pool: ThreadPoolExecutor) -> None:
        self.store = store
        facts = store.reader
        self.name: str = facts.fact("name")
        self.settings: dict[str, Any] = facts.fact("settings")
        self.form = make_model(self.settings).vote_format
        self.rows = BodyReader(self.form, limits)
        self.version = 0  # grows with every commit
        self.problem: str | None = None  # why the last turn failed
        self.counts = Counts.from_dict(facts.fact("counts", {}))
        self.summary: dict[str, Any] = facts.fact("summary") or self._summary_of_nothing()
        self.n_rows = facts.count_rows()
        self.n_events = facts.count_events()
        self._limits, self._pool = limits, pool
        self._model: AdaptiveLabelModel | None = None
        self._labelers: dict[str, int] = {}
        self._recent = RecentRows(self.form.n_classes, self.form.dtype)
        self._snapshot_at = (0, 0)
        self._step = POINT_ROWS
        self._view: tuple[int, dict[str, Any]] | None = None
        self._rates: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._waiting_rows = 0
        self._busy = False
        self._dirty = False  # whether this turn has learned anything
        self._unwritten = False  # whether the last turn that failed was to write
        self.closed = False

    # -- the queue -----------------------------------------------------------------------------

    def submit_rows(self, rows: RowsIn) -> Future[Any]:
        """Learn from rows and label them; the result is the JSON of each row's answer, and the events."""
        return self._submit(Job(rows=rows))

    def submit(self, call: Callable[[], Any], writes: bool = False, alone: bool = False) -> Future[Any]:
        """Run a call in a turn of this stream, between commits; with `writes` inside of a transaction."""
        return self._submit(Job(call=call, writes=writes, alone=alone))

    def _submit(self, job: Job) -> Future[Any]:
        n_rows = job.n_rows
        with self._lock:
            if self.closed:
                raise RequestError(404, "unknown_stream", f"there is no stream {self.name!r}")
            if self._waiting and self._waiting_rows + n_rows > self._limits.waiting_rows:
                raise RequestError(
                    429, "busy", f"{self._waiting_rows:,} rows wait for this stream; try again in a second"
                )
            if len(self._waiting) >= self._limits.connections:
                raise RequestError(429, "busy", f"{len(self._waiting):,} requests wait for this stream; try again")
            self._waiting.append(job)
            self._waiting_rows += n_rows
            if not self._busy:
                self._busy = True
                self._pool.submit(self._turn)
        return job.future

    def _take(self) -> list[Job]:
        with self._lock:
            jobs = [self._waiting.popleft()]
            n_rows = jobs[0].n_rows
            while self._waiting and not jobs[0].alone and not self._waiting[0].alone:
                more = self._waiting[0].n_rows
                if n_rows + more > TURN_ROWS:
                    break
                jobs.append(self._waiting.popleft())
                n_rows += more
            self._waiting_rows -= n_rows
            return jobs

    def _turn(self) -> None:
        jobs = self._take()
        try:
            self._run(jobs)
            if self._dirty or not self._unwritten:  # that it can be read does not say that it can be written
                self.problem = None
        except BaseException as problem:  # nothing of this turn is stored: the model must not know it either
            self._model = None
            self.problem, self._unwritten = f"{type(problem).__name__}: {problem}", any(job.writes for job in jobs)
            for job in jobs:
                job.error = _explain_failure(problem)
        for job in jobs:
            job.finish()
        with self._lock:
            if self._waiting:
                self._pool.submit(self._turn)  # behind the other streams
            else:
                self._busy = False

    def _run(self, jobs: list[Job]) -> None:
        """Do the jobs in their order, all writing in one transaction."""
        if self.closed:
            raise RequestError(404, "unknown_stream", f"there is no stream {self.name!r}")
        if self._model is None and not jobs[0].alone:
            self._load()
        writes = any(job.writes for job in jobs)
        self._dirty = False
        with self.store.transaction() if writes else contextlib.nullcontext():
            for has_rows, group in groupby(jobs, key=lambda job: job.rows is not None):
                if has_rows:
                    self._label(list(group))
                else:
                    for job in group:
                        self._call(job)
            if self._dirty:
                self._write_summary()
        if self._dirty:
            self.version += 1

    @staticmethod
    def _call(job: Job) -> None:
        assert job.call is not None
        try:
            job.result = job.call()
        except RequestError as refusal:
            job.error = refusal
        except StateError:  # the model is lost: nothing of this turn counts
            raise
        except DriftvoteError as problem:
            job.error = RequestError(409, "refused", str(problem))

    @property
    def model(self) -> AdaptiveLabelModel:
        """The model; inside of a turn only."""
        assert self._model is not None
        return self._model

    # -- rows ----------------------------------------------------------------------------------

    def _label(self, jobs: list[Job]) -> None:
        """Label the rows of jobs together, and write them; a job that is refused has its error."""
        ids = [one for job in jobs if job.rows for one in job.rows.ids if one is not None]
        stored = self.store.reader.rows_by_id(ids) if self.n_rows else {}
        new = RowsIn([], [], [], [], [])
        place_of: dict[str | None, int] = {}  # ids of new rows
        plans: list[tuple[Job, Sequence[StoredRow | int]]] = []  # stored rows, or places among the new ones
        names = dict.fromkeys(self.model.labelers)
        for job in jobs:
            assert job.rows is not None
            try:
                plan, added = self._plan(job.rows, stored, new, place_of)
                names = self._check_names(added, names)
            except RequestError as refusal:
                job.error = refusal
                continue
            if len(jobs) > 1:
                place_of |= {one: place for place, one in enumerate(added.ids, len(new.ids)) if one is not None}
            new.extend(added)
            plans.append((job, plan))
        answers: list[str] = []
        events: list[dict[str, Any]] = []
        first = self.n_rows
        if new.ids:
            try:
                answers, events = self._learn(new)
            except DriftvoteError as problem:
                if len(plans) == 1:
                    plans[0][0].error = RequestError(422, "refused", str(problem))
                    return
                for job, _ in plans:  # one of them is to blame: one after the other
                    self._label([job])
                return
        for job, plan in plans:
            numbers = {first + one if isinstance(one, int) else one.row for one in plan} if events else set()
            found = [one for one in events if one["row"] in numbers]
            known = {one.row for one in plan if not isinstance(one, int)} if stored else set()
            if known:
                earlier = self.store.reader.events_at(min(known), max(known))
                found = [one for one in earlier if one["row"] in known and one["row"] < first] + found
            rows = [answers[one] if isinstance(one, int) else json.dumps(self.answer_of(one)) for one in plan]
            job.result = {"rows": rows, "events": found}

    def _plan(
        self, rows: RowsIn, stored: dict[str, StoredRow], new: RowsIn, place_of: dict[str | None, int]
    ) -> tuple[Sequence[StoredRow | int], RowsIn]:
        """Return where the answer of each row comes from, and the rows that are new."""
        first = len(new.ids)
        if stored.keys().isdisjoint(rows.ids) and place_of.keys().isdisjoint(rows.ids):
            return range(first, first + len(rows.ids)), rows
        plan: list[StoredRow | int] = []
        added: list[int] = []
        for number, row_id in enumerate(rows.ids):
            known = None if row_id is None else stored.get(row_id)
            twin = place_of.get(row_id)
            if known is not None:
                same = rows.votes_of(number) == self._votes_cast(known)
                plan.append(known)
            elif twin is not None:
                same = rows.votes_of(number) == new.votes_of(twin)
                plan.append(twin)
            else:
                same = True
                plan.append(first + len(added))
                added.append(number)
            if not same:
                raise RequestError(
                    409,
                    "other_votes",
                    f"row {number}: id {row_id!r} is in the stream already, with other votes; give a new row a new id",
                    number,
                )
        return plan, rows.take(added)

    def _votes_cast(self, known: StoredRow) -> dict[str, int]:
        codes = np.frombuffer(known.votes, self.form.dtype).tolist()
        return {name: code for name, code in zip(self._labelers, codes, strict=False) if code >= 0}

    def _check_names(self, rows: RowsIn, known: dict[str, Any]) -> dict[str, Any]:
        """Return the labelers with those of these rows."""
        names, seen = known, set[tuple[str, ...]]()
        for place, here in enumerate(rows.names):
            if here in seen:
                continue
            seen.add(here)
            fresh = [name for name in here if name not in names]
            if fresh and "labelers" in self.settings:
                message = f"row {place}: {fresh[0]!r} is not one of the labelers of this stream"
                raise RequestError(422, "unknown_labeler", message, place)
            if len(names) + len(fresh) > self._limits.labelers:
                message = f"row {place}: labeler {fresh[0]!r} would be one of more than {self._limits.labelers}"
                raise RequestError(422, "too_many_labelers", message, place)
            if fresh:
                names = {**names, **dict.fromkeys(fresh)}
        return names

    def _learn(self, rows: RowsIn) -> tuple[list[str], list[dict[str, Any]]]:
        """Learn from new rows and write them; the JSON of their answers, and their events, come back."""
        first = self.n_rows
        batch = make_batch(rows, self.form.dtype)
        out = self.model.label_batch(batch)
        self._dirty = True
        self.n_rows += len(rows.ids)
        self._add_labelers(batch, first)
        ids = [f"{SERVER_ID}{row}" if one is None else one for row, one in enumerate(rows.ids, first)]
        self.store.add_rows(StoredBatch.of(out, ids, rows.times), rows.data)
        events = [self._add_event(event) for event in out.events]
        review = (out.codes < 0) | (out.probability < self._review_below)
        self._count(out.codes, review)
        before = len(self._recent.codes)
        self._recent.add(out.votes, out.codes)
        self._add_points(out, before, rows.times)
        self._recent.cut()
        return self._write_answers(ids, out, review), events

    def _write_answers(self, ids: list[str], out: LabeledStream, review: Bools) -> list[str]:
        """Return the JSON of `answer_of` for each row, without a dict for each."""
        labels = [*(json.dumps(value) for value in self.form.classes), "null"]  # the code -1 is the last
        columns = (out.codes.tolist(), out.probability.tolist(), out.windows.tolist(), review.tolist())
        truth = "false", "true"
        return [
            f'{{"id": {quoted}, "row": {row}, "label": {labels[code]}, "probability": {probability!r},'
            f' "window": {window}, "needs_review": {truth[doubtful]}}}'
            for row, quoted, code, probability, window, doubtful in zip(
                range(out.first_row, out.first_row + len(ids)), map(quote, ids), *columns, strict=True
            )
        ]

    @property
    def _review_below(self) -> float:
        return float(self.settings.get("review_below", REVIEW_BELOW))

    def answer_of(self, row: StoredRow) -> dict[str, Any]:
        """Return the answer to a row."""
        return {
            "id": row.id,
            "row": row.row,
            "label": self.class_of(row.code),
            "probability": row.probability,
            "window": row.window,
            "needs_review": row.code < 0 or row.probability < self._review_below,
        }

    def class_of(self, code: int) -> Any:
        """Return a class; None for a tie, or an abstention."""
        return None if code < 0 else self.form.classes[code]

    def votes_of(self, votes: bytes, labelers: Sequence[str]) -> dict[str, Any]:
        """Return votes by labeler; None where one abstained."""
        codes = np.frombuffer(votes, self.form.dtype).tolist()
        return {name: self.class_of(code) for name, code in zip(labelers, codes, strict=False)}

    def _add_labelers(self, batch: Batch, first: int) -> None:
        names = self.model.labelers
        if len(names) == len(self._labelers):
            return
        joined = dict(zip(batch.names or (), batch.first_rows, strict=True)) if "labelers" not in self.settings else {}
        for place, name in list(enumerate(names))[len(self._labelers) :]:
            row = first + joined.get(name, 0)
            self._labelers[name] = row
            self.store.add_labeler(place, name, row)

    def _count(self, codes: Ints, review: Bools) -> None:
        counts, n_rows = self.counts, len(codes)
        counts.lines += n_rows
        counts.last_line_at = time.time()
        counts.doubtful_rows += int(review.sum())
        counts.tied_rows += int((codes < 0).sum())
        for code, count in zip(*np.unique(codes[codes >= 0], return_counts=True), strict=True):
            label = str(self.form.classes[int(code)])
            counts.labels[label] = counts.labels.get(label, 0) + int(count)
        second = int(time.monotonic())
        if self._rates and self._rates[-1][0] == second:
            self._rates[-1] = second, self._rates[-1][1] + n_rows
        else:
            self._rates.append((second, n_rows))
        while self._rates[0][0] < second - RATE_SECONDS:
            self._rates.popleft()

    @property
    def rows_per_second(self) -> float:
        """Rows per second over the last seconds."""
        now = int(time.monotonic())
        return round(
            sum(count for second, count in list(self._rates) if second >= now - RATE_SECONDS) / RATE_SECONDS, 2
        )

    # -- events and timeline -------------------------------------------------------------------

    def _add_event(self, event: DriftEvent) -> dict[str, Any]:
        """Write an event with the times of its rows, and return it as clients see it."""
        rows = self.store.reader.rows_at([event.row, event.about, *event.since])
        at = {number: row.time for number, row in rows.items()}
        timed = replace(event, time=at.get(event.row), about_time=at.get(event.about))
        self.n_events += 1
        share = "coverage" if event.kind == COVERAGE else "accuracy"
        body = {
            "number": self.n_events,
            "row": event.row,
            "since_row": event.about,
            "since": list(event.since),
            "time": at.get(event.row),
            "kind": event.kind,
            "labelers": list(event.names),
            "before": {one.name: round(getattr(one, f"{share}_before"), 4) for one in event.labelers},
            "after": {one.name: round(getattr(one, f"{share}_after"), 4) for one in event.labelers},
            "changes": [asdict(one) for one in event.labelers],
            "text": f"{timed.sentence[0].upper()}{timed.sentence[1:]}.",
        }
        self.store.add_event(self.n_events, event.row, body)
        self.counts.add_event(event.kind, event.row)
        return body

    def _add_points(self, out: LabeledStream, before: int, times: list[Any]) -> None:
        """Write the points of the timeline that these rows hold: at multiples of the step."""
        begin = -(out.first_row + 1) % self._step
        part = out[begin :: self._step]
        if not len(part):
            return
        low, high = part.bands()
        columns = part.accuracies.round(4).tolist(), low.round(4).tolist(), high.round(4).tolist()
        points = []
        for number, place in enumerate(range(begin, len(out), self._step)):
            bands = zip(*(column[number] for column in columns), strict=True)
            point = {
                "row": out.first_row + place,
                "time": times[place],
                "window": int(part.windows[number]),
                "accuracies": {name: list(band) for name, band in zip(out.labelers, bands, strict=True)},
                **self._recent.shares(self.form.classes, before + place + 1),
                "rows_per_second": self.rows_per_second,
            }
            points.append(point)
        self.store.add_points(points)
        spark = self.summary.get("spark", [])
        spark = [*spark, *(one["in_dispute"] for one in points if (one["row"] + 1) % (SPARK_POINTS * self._step) == 0)]
        while self.store.reader.count_points() > MOST_POINTS:
            self._step *= 2
            self.store.thin_points(self._step)
            self.store.set_fact("step", self._step)
            spark = spark[1::2]
        self.summary = self.summary | {"spark": spark}

    # -- what is known -------------------------------------------------------------------------

    def view(self) -> dict[str, Any]:
        """Return the stream as `GET /v1/streams/{name}` shows it."""
        if self._view is not None and self._view[0] == self.version:
            return self._view[1] | {"rows_per_second": self.rows_per_second}
        model, reader = self.model, self.store.reader
        recent = [one for one in reader.last_events(100) if one["row"] >= self.n_rows - RECENT_EVENTS]
        changed = {name: one["before"].get(name) for one in recent for name in one["labelers"]}
        mixture = {one.name: round(one.weight, 4) for one in model.label_models}
        free = {one.name: round(one.before_answers, 4) for one in model.label_models}
        count, last = reader.last_answers(10)
        view = {
            "name": self.name,
            "settings": self.settings,
            "rows": self.n_rows,
            "rows_stored": self.n_rows - reader.first_row() if self.n_rows else 0,
            "window": model.window if self.n_rows else 0,
            "verdict": self.verdict(recent),
            "classes": list(self.form.classes),
            "rows_per_second": self.rows_per_second,
            **self._recent.shares(self.form.classes),
            "labelers": self._view_labelers(changed),
            "mixture": mixture,
            "mixture_before_answers": free if count else None,
            "answers": {
                "count": count,
                "labels_moved": self.summary.get("labels_moved") if count else None,
                "last": [{"id": one.id, "class": self.class_of(one.code)} for one in last],
            },
            "events": self.n_events,
        }
        self._view = self.version, view
        return view

    def _view_labelers(self, changed: dict[str, Any]) -> list[dict[str, Any]]:
        model, k = self.model, self.form.n_classes
        low, high = model.bands()
        found = []
        for place, name in enumerate(model.labelers):
            one: dict[str, Any] = {"name": name, "accuracy": None, "low": None, "high": None, "weight": None}
            if self.n_rows:
                accuracy = float(model.accuracies[place])
                inside = min(max(accuracy, 1e-6), 1 - 1e-6)
                one |= {
                    "accuracy": round(accuracy, 4),
                    "low": round(float(low[place]), 4),
                    "high": round(float(high[place]), 4),
                    "weight": round(log(inside * (k - 1) / (1 - inside)), 4),
                }
            one["coverage"] = round(float(model.coverage[place]), 4) if self.n_rows else None
            found.append(one | {"changed": name in changed, "before": changed.get(name)})
        return found

    def metrics(self) -> list[MetricFamily]:
        """Return the metrics of the stream, from any thread; none before the model is read."""
        model = self._model
        return [] if model is None else collect_metrics(model, self.counts)

    def verdict(self, recent: list[dict[str, Any]]) -> str:
        """Return how the stream is doing, in one sentence."""
        if not self.n_rows:
            return "No rows yet."
        if recent:
            return str(recent[-1]["text"])
        span = "the last 10,000 rows" if self.n_rows > RECENT_EVENTS else f"{self.n_rows:,} rows"
        return f"No labeler has changed in {span}."

    def _summary_of_nothing(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": 0,
            "labelers": len(self.settings.get("labelers", [])),
            "classes": list(self.form.classes),
            "events": 0,
            "last_event": None,
            "in_dispute": 0.0,
            "verdict": "No rows yet.",
        }

    def _write_summary(self) -> None:
        """Write what the list of streams shows, so that it needs no model; and a snapshot if it is time."""
        last = self.store.reader.last_events(1)
        recent = [one for one in last if one["row"] >= self.n_rows - RECENT_EVENTS]
        self.summary = self.summary | {
            "rows": self.n_rows,
            "labelers": len(self.model.labelers),
            "events": self.n_events,
            "last_event": last[0] if last else None,
            "in_dispute": self._recent.shares(self.form.classes)["in_dispute"],
            "verdict": self.verdict(recent),
        }
        self.store.set_fact("summary", self.summary)
        self.store.set_fact("counts", asdict(self.counts))
        if self.n_rows - self._snapshot_at[0] >= self._limits.snapshot_rows:
            self.save_snapshot()
        self._drop_by_count()

    # -- questions and answers -----------------------------------------------------------------

    def predict(self, rows: RowsIn) -> dict[str, Any]:
        """Label rows by what is known now; learn nothing."""
        if not self.n_rows:
            raise RequestError(409, "no_rows", "the stream has no rows yet, so there is nothing to predict by")
        if "labelers" in self.settings:
            self._check_names(rows, dict.fromkeys(self.model.labelers))
        values = [
            {name: self.class_of(code) for name, code in zip(names, codes, strict=True)}
            for names, codes in zip(rows.names, rows.codes, strict=True)
        ]
        labels, proba = self.model.predict(values, return_probs=True)
        window, below = self.model.window, self._review_below
        answers = []
        for row_id, label, line in zip(rows.ids, np.asarray(labels).tolist(), np.asarray(proba).tolist(), strict=True):
            code = self.form.code_of(label)
            answers.append(
                {
                    "id": row_id,
                    "label": self.class_of(code),
                    "probability": max(line),
                    "window": window,
                    "needs_review": code < 0 or max(line) < below,
                }
            )
        return {"rows": answers}

    def row(self, row_id: str) -> dict[str, Any]:
        """Return a stored row with its votes, its label, and how its votes would be weighed now."""
        stored = self.store.reader.rows_by_id([row_id]).get(row_id)
        if stored is None:
            raise RequestError(404, "unknown_row", f"there is no row with the id {row_id!r}, or it is no longer stored")
        votes = self.votes_of(stored.votes, self.model.labelers)
        why = self.model.explain({name: value for name, value in votes.items() if value is not None} or votes).to_dict()
        why["proba"] = {str(value): share for value, share in why["proba"].items()}
        answer = self.store.reader.answers_to(row_id)
        return self.answer_of(stored) | {
            "time": stored.time,
            "votes": votes,
            "data": self.store.reader.data(stored.row),
            "verified": self.class_of(answer[-1].code) if answer else None,
            "explanation": why | {"at_row": self.n_rows - 1},
        }

    def questions(self, n: int) -> dict[str, Any]:
        """Return the questions: the rows whose true class helps most."""
        if not self.n_rows:
            return {"questions": [], "expected_change": 0.0, "note": "There are no rows yet."}
        if not self.model.label_models:
            note = "Questions are rows on which label models disagree; the estimator of this stream is a single one."
            return {"questions": [], "expected_change": 0.0, "note": note}
        asked = self.model.ask(n, since=self.store.reader.first_row())
        stored = self.store.reader.rows_at([one.row for one in asked])
        found = []
        for one in asked:
            row = stored[one.row]
            classes = [*one.classes, *(value for value in self.form.classes if value not in one.classes)]
            found.append(
                {
                    "id": row.id,
                    "row": row.row,
                    "time": row.time,
                    "votes": self.votes_of(row.votes, self.model.labelers),
                    "label": self.class_of(row.code),
                    "probability": row.probability,
                    "classes": classes,
                    "why": one.why,
                    "data": self.store.reader.data(row.row),
                }
            )
        return {"questions": found, "expected_change": round(asked.expected_change, 5), "note": asked.note}

    def verify(self, answers: list[tuple[str, Any]]) -> dict[str, Any]:
        """Learn the classes of rows, all or none; the same answer again changes nothing."""
        codes: dict[str, int] = {}
        for place, (row_id, value) in enumerate(answers):
            code = self.form.code_of(value, lenient=True) if isinstance(value, (str, int, float)) else -1
            if code < 0:
                message = f"answer {place}: {value!r} is none of the classes {self.form.show_classes()}"
                raise RequestError(422, "unknown_class", message, place)
            if row_id in codes:
                raise RequestError(422, "repeated_id", f"answer {place}: id {row_id!r} is there twice", place)
            codes[row_id] = code
        stored = self.store.reader.rows_by_id(list(codes))
        for place, row_id in enumerate(codes):
            if row_id not in stored:
                message = f"answer {place}: there is no row with the id {row_id!r}, or it is no longer stored"
                raise RequestError(404, "unknown_row", message, place)
        verified = self.model.verified
        new = {
            stored[row_id].row: (row_id, code)
            for row_id, code in codes.items()
            if verified.get(stored[row_id].row, _MISSING) != self.form.classes[code]
        }
        labels = self._labels_now()
        if new:
            self.model.feedback(
                {row: self.form.classes[code] for row, (_, code) in new.items()}, by="row", replace=True
            )
            for row, (row_id, code) in new.items():
                self.store.add_answer(self.n_rows, row, row_id, code)
            self.counts.verified_rows += len(new)
            self._dirty = True
        after = self._labels_now()
        self._note_moved(after)
        return self._after_answers(len(codes), int((labels != after).sum()))

    def take_back(self, row_id: str) -> dict[str, Any]:
        """Take the answer to a row back: the model is then as if it had never been given."""
        answers = self.store.reader.answers_to(row_id)
        if not answers:
            raise RequestError(404, "no_answer", f"there is no answer to the row with the id {row_id!r}")
        first = min(answer.number for answer in answers)
        reader = self.store.reader
        if reader.first_row() and all(held >= first for _, held in reader.snapshots()):
            raise RequestError(
                409, "too_late", f"the answer to {row_id!r} cannot be taken back: rows before it are no longer stored"
            )
        labels = self._labels_now()
        self._write_summary()  # what this turn has counted so far
        self.store.take_back(row_id)
        self.store.drop_snapshots(first)
        self._load()
        self._dirty = True
        self.save_snapshot()
        after = self._labels_now()
        self._note_moved(after)
        return self._after_answers(1, int((labels != after).sum()))

    def _after_answers(self, accepted: int, moved: int) -> dict[str, Any]:
        members = self.model.label_models
        return {
            "accepted": accepted,
            "mixture": {one.name: round(one.weight, 4) for one in members},
            "mixture_before_answers": {one.name: round(one.before_answers, 4) for one in members},
            "changed": {"labels_moved": moved},
        }

    def _labels_now(self) -> Ints:
        """Return the labels that the last rows would get now."""
        if not len(self._recent.votes):
            return np.zeros(0, np.int64)
        values = self.form.decode(self._recent.votes.astype(np.int64))
        return np.array([self.form.code_of(value) for value in np.asarray(self.model.predict(values)).tolist()])

    def _note_moved(self, labels: Ints) -> None:
        self.summary = self.summary | {"labels_moved": int((labels != self._recent.codes).sum())}

    # -- snapshots, replay, retention ----------------------------------------------------------

    def save_snapshot(self) -> None:
        """Write a snapshot of the model, inside of a transaction."""
        if not self.n_rows:
            return
        at = self.n_rows, self.store.reader.last_answer_number()
        if at != self._snapshot_at:
            self.store.add_snapshot(*at, pack_state(*self.model.to_state()))
            self._snapshot_at = at

    def _load(self) -> None:
        """Read the model: the newest snapshot that can be read, then the rows and answers after it."""
        reader = self.store.reader
        self.counts = Counts.from_dict(reader.fact("counts", {}))
        self.summary = reader.fact("summary") or self._summary_of_nothing()
        self.n_rows, self.n_events = reader.count_rows(), reader.count_events()
        self._labelers = dict(reader.labelers())
        self._view = None
        model, at = self._read_snapshot()
        for first, last, answers in self._history(at):
            if answers:
                given = {row: self.form.classes[code] for row, code in answers}
                model.feedback(given, by="row", replace=True)
            if last > first:
                model.label_batch(self._stored_batch(first, last))
        if model.n_rows != self.n_rows or list(model.labelers)[: len(self._labelers)] != list(self._labelers):
            raise StateError(f"the rows of stream {self.name!r} do not go with its labelers")
        self._recent = RecentRows(self.form.n_classes, self.form.dtype)
        begin = max(reader.first_row(), self.n_rows - RECENT)
        if self.n_rows:
            votes = reader.votes(begin, self.n_rows, len(self._labelers), self.form.dtype)
            self._recent.add(votes, np.array([row.code for row in reader.rows(begin, self.n_rows)], np.int64))
        self._snapshot_at = at
        self._step = reader.fact("step", POINT_ROWS)
        self._model = model

    def _read_snapshot(self) -> tuple[AdaptiveLabelModel, tuple[int, int]]:
        reader = self.store.reader
        problem = ""
        for row, answers in reader.snapshots():
            try:
                state = unpack_state(reader.snapshot(row, answers), f"the snapshot at row {row:,}")
                return AdaptiveLabelModel.from_state(*state), (row, answers)
            except StateError as error:  # noqa: PERF203 - an older one may be whole
                problem = f" ({error})"
        if reader.first_row():
            raise StateError(
                f"stream {self.name!r} has no snapshot that can be read{problem}, and its first rows are no longer"
                " stored; restore a backup"
            )
        return make_model(self.settings), (0, 0)

    def _history(self, at: tuple[int, int]) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Yield what happened after a snapshot, in order: answers, then rows from the first up to the last."""
        answers = deque(self.store.reader.answers(at[1]))
        row = at[0]
        while row < self.n_rows or answers:
            given: dict[int, int] = {}
            while answers and answers[0].at_row <= row:
                answer = answers.popleft()
                given[answer.row] = answer.code
            last = min(self.n_rows, row + REPLAY_ROWS, answers[0].at_row if answers else self.n_rows)
            yield row, last, list(given.items())
            row = last

    def _stored_batch(self, first: int, last: int) -> Batch:
        joined = {name: row for name, row in self._labelers.items() if row < last}
        names = tuple(joined)
        codes = self.store.reader.votes(first, last, len(self._labelers), self.form.dtype)[:, : len(names)]
        first_rows = tuple(max(0, row - first) for row in joined.values())
        return Batch(names, np.ascontiguousarray(codes), False, None, RECORDS, first_rows)

    def _drop_by_count(self) -> None:
        keep = self.settings.get("keep_rows")
        first = self.store.reader.first_row()
        if keep is not None and self.n_rows - first > keep + max(100, keep // 10):
            self.drop_before(self.n_rows - keep)

    def drop_old(self) -> int:
        """Drop some of what is older than `keep_days`, inside of a transaction; how many rows, comes back."""
        if "keep_days" not in self.settings or not self.n_rows:
            return 0
        return self.drop_before(self.store.reader.first_row_since(time.time() - 86400 * self.settings["keep_days"]))

    def drop_before(self, row: int) -> int:
        """Drop rows before this one, a part of them if they are many; the model no longer needs them."""
        first = self.store.reader.first_row()
        row = min(row, self.n_rows - 1, first + max(DROP_ROWS, 2 * self._limits.rows))
        if row <= first:
            return 0
        if self._snapshot_at[0] < row:
            self.save_snapshot()
        return self.store.drop_rows(row)

    def close(self) -> None:
        """Save what is loaded, and close."""
        self.closed = True
        try:
            if self._model is not None:
                with self.store.transaction():
                    self.save_snapshot()
        finally:
            self.store.close()

    def delete(self) -> None:
        """Remove the stream; inside of a turn."""
        self.closed = True
        self.store.delete()


_MISSING = object()


def make_batch(rows: RowsIn, dtype: np.dtype[Any]) -> Batch:
    """Return rows as a batch for `label_batch`, with labelers in the order in which they first appear."""
    names = rows.names[0]
    if rows.names.count(names) == len(rows.names):
        return Batch(names, np.array(rows.codes, dtype), False, None, RECORDS, (0,) * len(names))
    first_rows: dict[str, int] = {}
    for number, here in enumerate(rows.names):
        for name in here:
            first_rows.setdefault(name, number)
    place = {name: at for at, name in enumerate(first_rows)}
    codes = np.full((len(rows.names), len(place)), -1, dtype)
    for number, (here, votes) in enumerate(zip(rows.names, rows.codes, strict=True)):
        codes[number, [place[name] for name in here]] = votes
    return Batch(tuple(place), codes, False, None, RECORDS, tuple(first_rows.values()))


def _explain_failure(problem: BaseException) -> BaseException:
    if isinstance(problem, RequestError):
        return problem
    if isinstance(problem, (sqlite3.Error, OSError, MemoryError)):
        return RequestError(
            503, "storage", f"the stream could not be written ({problem}); nothing was changed: try again"
        )
    if isinstance(problem, DriftvoteError):
        return RequestError(503, "damaged", str(problem))
    return problem


class StreamFolder:
    """All streams of a data folder."""

    def __init__(self, data: Path, limits: Limits, workers: int) -> None:
        self.limits = limits
        self._folder = data / "streams"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="stream")
        self._lock = threading.Lock()
        self.streams: dict[str, ServedStream] = {}
        self.damaged: list[str] = []
        for path in list_stores(data):
            try:
                stream = ServedStream(StreamStore(path), limits, self._pool)
                if file_name(stream.name) != path.name:
                    raise StateError(f"it holds the stream {stream.name!r}, whose file has another name")
            except Exception as problem:  # noqa: PERF203 - whatever is wrong with it, the others are served
                self.damaged.append(f"{path.name}: {problem}")
            else:
                self.streams[stream.name] = stream

    def get(self, name: str) -> ServedStream:
        """Return a stream by its name."""
        stream = self.streams.get(name)
        if stream is None:
            raise RequestError(
                404, "unknown_stream", f"there is no stream {name!r}; create it with PUT /v1/streams/NAME"
            )
        return stream

    def create(self, name: str, settings: dict[str, Any]) -> tuple[ServedStream, bool]:
        """Return the stream of this name and whether it is new; other settings than it has are refused."""
        with self._lock:
            stream = self.streams.get(name)
            if stream is not None:
                for key in sorted({*settings, *stream.settings}):
                    if settings.get(key, _MISSING) != stream.settings.get(key, _MISSING):
                        raise RequestError(
                            409,
                            "other_settings",
                            f"stream {name!r} exists, with {key} = {json.dumps(stream.settings.get(key))}; the settings"
                            " of a stream do not change",
                        )
                return stream, False
            if len(self.streams) >= self.limits.streams:
                raise RequestError(
                    403, "too_many_streams", f"there are {len(self.streams):,} streams, the most that are taken"
                )
            facts = {"name": name, "settings": settings, "created": time.time()}
            path = self._folder / file_name(name)
            if path.exists():
                raise RequestError(
                    503,
                    "damaged",
                    f"stream {name!r} exists, but its file {path.name} could not be read; /readyz says why",
                )
            try:
                store = StreamStore.create(path, facts)
            except (sqlite3.Error, OSError) as problem:
                raise _explain_failure(problem) from None
            stream = ServedStream(store, self.limits, self._pool)
            self.streams[name] = stream
            return stream, True

    def delete(self, name: str) -> Future[Any]:
        """Remove a stream, after the jobs that wait for it."""
        stream = self.get(name)

        def remove() -> dict[str, Any]:
            with self._lock:  # nobody creates it anew meanwhile
                stream.delete()
                del self.streams[name]
            return {"deleted": name, "rows": stream.n_rows}

        return stream.submit(remove, alone=True)

    def close(self) -> None:
        """Finish every job, save every stream, close the files."""
        self._pool.shutdown()
        for stream in self.streams.values():
            if not stream.closed:
                with contextlib.suppress(sqlite3.Error, OSError, DriftvoteError):  # rows are on disk: replay is longer
                    stream.close()
