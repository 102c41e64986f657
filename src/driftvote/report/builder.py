"""From votes and labels to a report, batch by batch, in memory that does not grow with the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from driftvote._version import __version__
from driftvote.arrays import Codes, Floats, Ints, code_dtype
from driftvote.core.voting import log_odds, majority_vote
from driftvote.drift.bands import calibrated_half_width
from driftvote.drift.events import DriftEvent
from driftvote.errors import LabelerError, SettingError, VoteError
from driftvote.inputs import Batch
from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, LabeledStream, LabelModel, StepCertificate
from driftvote.models.questions import LOOK_AHEAD, Pool, Scores, dispute, stretch_starts
from driftvote.models.results import round_parts
from driftvote.randomness import uniforms
from driftvote.report import data
from driftvote.report.buckets import ONE, WEIGHT_ONE, LabeledRows, StreamCounts
from driftvote.report.data import DIGITS, Report, Timeline, plain_time, rounded, share
from driftvote.report.findings import (
    add_event_times,
    renumber_event,
    show_settings,
    summarize_committee,
    summarize_dependence,
    write_findings,
    write_next_steps,
    write_verdict,
)
from driftvote.settings import REVIEW_BELOW
from driftvote.votes import BAD, VoteFormat

BLOCK = 1 << 17  # votes and abstentions that are counted at a time, in cache
MAX_CLASSES_SHOWN = 200  # classes that are counted one by one; those after them are counted together
EXAMPLES = 12
REVIEWED = 20
MAX_EXAMPLE_VOTES = 400
RECENT_ROWS = 8192  # rows at the end of the stream in which dependence is looked for, unless the last window is shorter
SHORT_WINDOW = 64  # a fall from a shorter window is no news
LABELERS_SHOWN = 6  # labelers that the accuracy chart shows when the page opens; more if more changed
MAX_CHANGED_SHOWN = 8
DROP = 4  # a window that shrinks to one part in so many is a sharp fall
GOLD_RANGES, GOLD_RANGE_ROWS = 50, 100  # accuracy over time: at most so many row ranges, of at least so many rows
CONFUSION_CLASSES = 12  # classes of the confusion matrix; the rarest are put together
TITLE = "Labels from drifting labelers"
METHODS = ("driftvote", "majority vote", "every row so far")


class ReportBuilder:
    """Collects the content of a report while a stream is labeled.

    Parameters
    ----------
    labelers
        Names, in the order of the columns of the votes. More may join later, at the end.
    classes
        The classes, in code order.
    title, source
        Title of the page, and where the votes came from.
    settings, reading
        The model's settings and how the votes were read, by name, for the page.
    has_gold
        Whether true labels come with the rows. The labels are then also compared with those of a majority vote
        and of weights from every row so far.
    review_below
        A label less probable than this is listed for review.

    Examples
    --------
    >>> import numpy as np
    >>> from driftvote import AdaptiveLabelModel
    >>> votes = np.random.default_rng(0).integers(0, 2, size=(300, 4))
    >>> model = AdaptiveLabelModel()
    >>> builder = ReportBuilder(labelers=["a", "b", "c", "d"], classes=["no", "yes"])
    >>> for part in (votes[:100], votes[100:]):
    ...     builder.add(part, model.label_stream(part))
    >>> builder.finish()
    Report('Labels from drifting labelers': 300 rows, 4 labelers)
    """

    def __init__(
        self,
        *,
        labelers: Sequence[object],
        classes: Sequence[object],
        title: str = TITLE,
        source: str = "",
        settings: Mapping[str, object] | None = None,
        reading: Mapping[str, object] | None = None,
        has_gold: bool = False,
        review_below: float = REVIEW_BELOW,
    ) -> None:
        if len(classes) < 2:
            raise SettingError(f"a report needs at least two classes, not {len(classes)}")
        if not 0.0 <= review_below <= 1.0:
            raise SettingError(f"review_below must be a probability from 0 to 1, not {review_below!r}")
        self.labelers = [str(name) for name in labelers]
        self.classes = [str(value) for value in classes]
        self.title, self.source = str(title), str(source)
        self.settings, self.reading = dict(settings or {}), dict(reading or {})
        self.has_gold, self.review_below = has_gold, float(review_below)
        self._classes_shown = self.classes
        if len(self.classes) > MAX_CLASSES_SHOWN:
            self._classes_shown = [*self.classes[: MAX_CLASSES_SHOWN - 1], "other classes"]
        self._counts = StreamCounts(len(self.labelers), len(self._classes_shown))
        self._all_past = FixedWindowLabelModel(
            window=None, n_classes=len(self.classes), votes="snorkel", false_event_rate=None
        )
        self._differing, self._review = _Sample(EXAMPLES), _Sample(REVIEWED)
        self._disputed: list[_Disputed] = []
        self._estimator = "triplet"
        self._events: list[DriftEvent] | None = None
        self._recent: Codes = np.zeros((0, len(self.labelers)), code_dtype(len(self.classes)))
        self._last_window = 0
        self._now: Floats = np.zeros((3, 0))
        self._certificate: StepCertificate | None = None
        self._label_models: list[data.LabelModelWeight] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the counts; they do not grow with the rows."""
        return self._counts.nbytes

    def add(self, votes: Any, out: LabeledStream, times: Any = None, ids: Any = None, gold: Any = None) -> None:
        """Add the next rows of the stream.

        Parameters
        ----------
        votes
            Rows x labelers: class codes, negative for an abstention.
        out
            The labels of those rows.
        times, ids
            One entry for each row: numbers, dates or text.
        gold
            Class codes of the true labels, -1 where unknown; only with `has_gold`.
        """
        codes = self._check(votes, out, times, ids, gold)
        self._add_labelers(out.labelers)
        self._estimator = out.calibrated_for or "triplet"
        if out.looked_for_events:
            shift = self._counts.n_rows - out.first_row
            self._events = (self._events or []) + [renumber_event(event, shift) for event in out.events]
        start, block = 0, 1 + BLOCK // max(1, len(self.labelers))
        while start < len(codes):
            stop = min(len(codes), start + block, start + self._counts.make_room())
            part = slice(start, stop)
            self._add_block(codes[part], out[part], *(None if x is None else x[part] for x in (times, ids, gold)))
            start = stop
        self._keep_disputed(out, times, ids)

    def _check(self, votes: Any, out: LabeledStream, times: Any, ids: Any, gold: Any) -> Codes:
        array = np.asarray(votes)
        if array.ndim != 2 or array.dtype.kind not in "iu":
            raise VoteError(f"votes must be rows x labelers of class codes, not {array.dtype} of shape {array.shape}")
        if array.shape != (len(out), len(out.labelers)):
            raise VoteError(
                f"votes are {array.shape[0]} rows x {array.shape[1]} labelers, but the labels are of {len(out)} rows"
                f" and {len(out.labelers)} labelers; pass the rows that were labeled"
            )
        for name, values in (("times", times), ("ids", ids), ("gold", gold)):
            if values is not None and len(values) != len(array):
                raise VoteError(f"{name} has {len(values)} entries for {len(array)} rows; pass one for each row")
        if (gold is not None) != self.has_gold and len(array):
            raise VoteError("gold comes with every batch or with none: has_gold says which")
        for name, values in (("votes", array), ("gold", gold)):
            if values is not None and np.size(values) and int(np.max(values)) >= len(self.classes):
                raise VoteError(f"{name}: class code {np.max(values)} is none of the {len(self.classes)} classes")
        array = array if array.dtype.kind == "u" else np.maximum(array, -1)
        return np.ascontiguousarray(array, code_dtype(len(self.classes)))

    def _add_labelers(self, names: Sequence[str]) -> None:
        """Append new labelers. Names of known ones are compared then only: arrays of votes bring column numbers."""
        joining = len(names) - len(self.labelers)
        if joining <= 0:
            return
        if self.labelers and [str(name) for name in names[:-joining]] != self.labelers:
            raise LabelerError(
                f"the report knows {len(self.labelers)} labelers but the labels are of {len(names)};"
                " pass labelers=[...] with all of them"
            )
        self.labelers += [str(name) for name in names[-joining:]]
        self._counts.add_labelers(len(self.labelers))
        self._recent = np.pad(self._recent, ((0, 0), (0, joining)), constant_values=-1)

    def _add_block(self, votes: Codes, out: LabeledStream, times: Any, ids: Any, gold: Any) -> None:
        n, first = len(self.labelers), self._counts.n_rows
        votes = np.pad(votes, ((0, 0), (0, n - votes.shape[1])), constant_values=-1)
        labels = np.full((3, len(votes)), -1, np.int64)
        labels[0] = out.codes
        labels[1] = majority_vote(votes, np.zeros(0), len(self.classes))[0]
        if self.has_gold:  # compare with one accuracy for each labeler over all the past, as batch label models do
            labels[2] = labels[1]  # the agreement of two labelers does not tell who is right
            if n >= self._all_past.min_labelers:
                labels[2] = self._all_past.label_batch(Batch(tuple(map(str, range(n))), votes, literal=False)).codes
        by_labeler = np.ascontiguousarray(votes.T)
        voted, probability = (by_labeler >= 0).any(axis=0), np.ascontiguousarray(out.proba.T).max(axis=0)
        rows = LabeledRows(
            votes=by_labeler,
            labels=labels,
            gold=np.full(len(votes), -1) if gold is None else np.maximum(np.asarray(gold, np.int64), -1),
            probability=probability,
            windows=out.windows,
            accuracies=_transpose(out.accuracies, n),
            coverage=_transpose(out.coverage, n),
            weights=_transpose(out.weights, n),
            differs=voted & (labels[0] != labels[1]),
            review=voted & ((labels[0] < 0) | (probability < self.review_below)),
        )
        times = None if times is None else np.asarray(times)
        self._counts.add(rows, times)

        def example(place: int) -> data.ExampleRow:
            return self._example(rows, out, place, first, times, ids)

        differing, review = np.flatnonzero(rows.differs), np.flatnonzero(rows.review)
        self._differing.offer(differing, np.zeros(len(differing)), first, example)
        self._review.offer(review, np.round(probability[review], 6), first, example)
        self._recent = np.concatenate([self._recent, votes[-RECENT_ROWS:]])[-RECENT_ROWS:]
        self._last_window, self._certificate = int(out.windows[-1]), out[-1].certificate
        weights = [(one.name, one.weight, one.before_answers) for one in out.label_models]
        self._label_models = [data.LabelModelWeight(name, *rounded(pair)) for name, *pair in weights]
        now = np.concatenate([out.accuracies[-1:], *out[-1:].bands()])
        self._now = np.where(out.coverage[-1] > 0, now, np.nan)

    def _example(
        self, rows: LabeledRows, out: LabeledStream, place: int, first: int, times: Any, ids: Any
    ) -> data.ExampleRow:
        why, name_of = out.explain(place), dict(zip(out.labelers, self.labelers, strict=False))
        class_of = dict(zip(out.classes, self.classes, strict=False))
        cast = [vote for vote in why.votes if vote.vote is not None]
        others = sum(vote.share for vote in cast[MAX_EXAMPLE_VOTES:])
        cast = cast[:MAX_EXAMPLE_VOTES]
        parts = [*(vote.share for vote in cast), others, why.base, why.together]
        *shares, others, base, together = round_parts(why.log_odds, parts, DIGITS)
        explained = list(out.classes).index(why.explained)
        second = int(np.where(np.arange(len(out.classes)) == explained, -1.0, out.proba[place]).argmax())
        label, majority = rows.labels[:2, place]
        names = [*self.classes, None]  # code -1 gives None
        return data.ExampleRow(
            row=first + place,
            id=None if ids is None else str(ids[place]),
            time=None if times is None else plain_time(times[place]),
            label=names[label],
            majority=names[majority],
            gold=names[rows.gold[place]],
            probability=round(float(rows.probability[place]), 6),
            window=int(rows.windows[place]),
            verified=why.verified,
            explained=self.classes[explained],
            log_odds=round(why.log_odds, DIGITS) + 0.0,
            base=base,
            votes=[
                data.ExampleVote(name_of[vote.labeler], class_of[vote.vote], share)
                for vote, share in zip(cast, shares, strict=True)
            ],
            others=others,
            together=together,
            second=self.classes[second],
            second_log_odds=round(log_odds(float(out.proba[place, second])), DIGITS) + 0.0,
        )

    def finish(self) -> Report:
        """The report of the rows so far; more rows may be added afterwards."""
        counts, n_classes = self._counts, len(self.classes)
        counted = {name: array.sum(axis=-1).tolist() for name, array in counts.buckets.items()}
        votes = sum(counted["cast"])
        filled = str(self.settings.get("abstentions")) == "random"
        timeline = make_timeline(counts, n_classes, filled, self._estimator)
        window = self._last_window if self._last_window > 1 else RECENT_ROWS  # models without windows have windows of 1
        report = Report(
            format=data.FORMAT,
            driftvote=__version__,
            title=self.title,
            source=self.source,
            verdict="",
            findings=[],
            next_steps=[],
            tally=data.RowCounts(
                **{name: counted[name] for name in ("rows", "labeled", "silent", "tied", "review")},
                review_below=self.review_below,
                votes=votes,
                abstentions=counts.n_rows * len(self.labelers) - votes,
            ),
            reading=show_settings(self.reading),
            settings=show_settings(self.settings),
            labelers=summarize_labelers(
                counts, self.labelers, self._classes_shown, timeline, self._now, changed_labelers(self._events)
            ),
            classes=self._summarize_classes(),
            timeline=timeline,
            window_drops=find_window_drops(timeline) if self._events is None else [],
            agreement=pair_agreement(counts),
            differences=data.MajorityDifferences(
                **{name: counted[name] for name in ("overruled", "settled", "opened")},
                examples=sorted(self._differing.examples(), key=lambda example: example.row),
            ),
            review=self._review.examples(),
            questions=self._choose_questions(),
            gold=compare_with_gold(counts, self.classes, timeline) if counted["gold"] else None,
            events=None if self._events is None else [add_event_times(event, timeline) for event in self._events],
            committee=summarize_committee(self._certificate),
            dependence=summarize_dependence(self._recent[-window:], n_classes, self.labelers),
            label_models=self._label_models,
        )
        return replace(
            report,
            verdict=write_verdict(report),
            findings=write_findings(report),
            next_steps=write_next_steps(report),
        )

    def _keep_disputed(self, out: LabeledStream, times: Any, ids: Any) -> None:
        """Remember those of the last rows on which the label models of a mixture disagree; they may be asked for."""
        if not out.label_models:
            return
        n_rows = self._counts.n_rows
        places = np.arange(max(0, len(out) - RECENT_ROWS), len(out))
        scores = out.score(places)
        at = np.flatnonzero(scores.disputed)
        kept = places[at]
        verified = out.verified[kept] if len(out.verified) else np.full(len(kept), -1)
        scores = _take(scores, at)
        named = [None if values is None else [values[place] for place in kept.tolist()] for values in (ids, times)]
        self._disputed.append(_Disputed(n_rows - len(out) + kept, scores, verified, out.proba[kept], *named))
        self._disputed = [piece for piece in self._disputed if (piece.numbers >= n_rows - RECENT_ROWS).any()]

    def _choose_questions(self) -> data.RowsToVerify | None:
        """The rows to ask about among the last ones."""
        n_rows = self._counts.n_rows
        if not self._label_models or not n_rows:
            return None
        pool = Pool(seed=0)
        recent = [piece.since(n_rows - RECENT_ROWS) for piece in self._disputed]
        for piece in recent:
            pool.add(piece.numbers, piece.scores, piece.verified)
        pool.n_rows = min(n_rows, RECENT_ROWS)
        chosen = pool.choose(LOOK_AHEAD, stretch_starts(self._events or ()))
        form = VoteFormat("classes", tuple(self.classes), None, True)
        place_of = {number: (piece, at) for piece in recent for at, number in enumerate(piece.numbers.tolist())}
        rows = []
        for number in chosen.rows:
            piece, at = place_of[number]
            classes, why = dispute(piece.scores.named[at], piece.proba[at], form, chosen.likes[number])
            id = None if piece.ids is None else str(piece.ids[at])
            time = None if piece.times is None else plain_time(piece.times[at])
            shares = {name: round(p, DIGITS) for name, p in classes.items()}
            rows.append(data.RowToVerify(number, id, time, shares, why))
        return data.RowsToVerify(rows, round(chosen.expected_change, DIGITS), pool.n_rows)

    def _summarize_classes(self) -> list[data.ClassSummary]:
        totals, names = self._counts.totals, self._classes_shown
        votes, labels = totals["votes_by_class"].sum(axis=0).tolist(), totals["labels_by_class"].tolist()
        gold = totals["confusion"].sum(axis=1).tolist() if self.has_gold else [None] * len(names)
        return [data.ClassSummary(*one) for one in zip(names, votes, labels, gold, strict=True)]


def from_arrays(
    votes: Any,
    model: LabelModel | None = None,
    *,
    out: LabeledStream | None = None,
    gold: Any = None,
    times: Any = None,
    ids: Any = None,
    title: str = TITLE,
    source: str = "",
    review_below: float = REVIEW_BELOW,
) -> Report:
    """The report of votes in memory.

    Parameters
    ----------
    votes
        Rows in time order, in any form that `label_stream` takes at once: an array, a wide frame, a list of dicts.
    model
        The model that reads and weighs the votes; `AdaptiveLabelModel()` by default. It is not changed: a fresh copy
        labels the votes.
    out
        The result of `model.label_stream(votes)`, if the votes are labeled already.
    gold
        True labels in the classes of the votes; missing or the abstention value where unknown.
    times, ids
        One entry for each row: numbers, dates or text.
    title, source, review_below
        As in `ReportBuilder`.

    Examples
    --------
    >>> import numpy as np
    >>> votes = np.random.default_rng(0).integers(0, 2, size=(500, 5))
    >>> report = from_arrays(votes)
    >>> report.tally.rows, len(report.labelers)
    (500, 5)
    """
    model = AdaptiveLabelModel() if model is None else model
    if out is None:
        out = model.clone().label_stream(votes)
    elif len(out) != len(votes):
        raise VoteError(
            f"there are {len(votes)} rows of votes, but out= holds the labels of {len(out)}; pass the same rows"
        )
    left_out = ("labelers", "classes", "n_jobs")  # shown elsewhere, or without effect on the labels
    settings = {name: v for name, v in model.get_params(deep=False).items() if v is not None and name not in left_out}
    return from_result(
        out,
        gold=gold,
        times=times,
        ids=ids,
        title=title,
        source=source,
        settings={"model": type(model).__name__, **settings},
        review_below=review_below,
    )


def from_result(
    out: LabeledStream,
    *,
    gold: Any = None,
    times: Any = None,
    ids: Any = None,
    title: str = TITLE,
    source: str = "",
    settings: Mapping[str, object] | None = None,
    review_below: float = REVIEW_BELOW,
) -> Report:
    """The report of rows that are labeled already; `LabeledStream.report` calls this.

    Times and ids are those that the rows came with, unless others are given. The other parameters are as in
    `from_arrays` and `ReportBuilder`.

    Examples
    --------
    >>> out = AdaptiveLabelModel().label_stream([[1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> from_result(out, title="Three rows")
    Report('Three rows': 3 rows, 3 labelers)
    """
    form = out.vote_format
    builder = ReportBuilder(
        labelers=out.labelers,
        classes=form.classes,
        title=title,
        source=source,
        settings=settings,
        reading={"votes": form.describe()},
        has_gold=gold is not None,
        review_below=review_below,
    )
    times, ids = (given if one is None else one for one, given in ((times, out.times), (ids, out.ids)))
    builder.add(
        out.votes,
        out,
        times=None if times is None else np.asarray(times),
        ids=None if ids is None else np.asarray(ids),
        gold=None if gold is None else _encode_gold(gold, form),
    )
    return builder.finish()


def _encode_gold(gold: Any, form: VoteFormat) -> Ints:
    """True labels as class codes, -1 where unknown."""
    values = np.asarray(gold)
    codes = form.encode_column(values).codes.astype(np.int64)
    for row in np.flatnonzero(codes == BAD).tolist():
        raise VoteError(
            f"gold of row {row} is {values[row]!r}, which is none of the classes; leave it missing where the truth is"
            " unknown"
        )
    return codes


def _take(scores: Scores, rows: Any) -> Scores:
    """The scores of some rows, without the probabilities of each label model, which take the most memory."""
    return Scores(scores.parts[rows, :0], scores.named[rows], scores.doubt[rows], scores.disputed[rows])


class _Disputed(NamedTuple):
    """Rows on which the label models disagree."""

    numbers: Ints
    scores: Scores
    verified: Ints
    proba: Floats
    ids: list[Any] | None
    times: list[Any] | None

    def since(self, first: int) -> _Disputed:
        """Those of the rows that are not before the row `first`; numbers grow."""
        begin = int(np.searchsorted(self.numbers, first))
        scores = _take(self.scores, slice(begin, None))
        named = (None if values is None else values[begin:] for values in (self.ids, self.times))
        return _Disputed(self.numbers[begin:], scores, self.verified[begin:], self.proba[begin:], *named)


class _Sample:
    """The rows with the smallest keys: a rank, then a hash of the row number.

    The hash spreads the rows over the stream, whatever the batches, and needs no random generator.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: list[tuple[float, float, data.ExampleRow]] = []

    def offer(self, places: Ints, ranks: Floats, first: int, make: Callable[[int], data.ExampleRow]) -> None:
        """Consider rows by their places in a block whose first row has the number `first`."""
        hashes = uniforms(20250, places + first, np.zeros(1, np.int64))
        best = np.lexsort((hashes, ranks))[: self.size].tolist()
        worst = self._entries[-1][:2] if len(self._entries) == self.size else (np.inf, np.inf)
        better = [i for i in best if (ranks[i], hashes[i]) < worst]  # an explanation takes as long as many rows
        entries = [(float(ranks[i]), float(hashes[i]), make(int(places[i]))) for i in better]
        self._entries = sorted(self._entries + entries, key=lambda entry: entry[:2])[: self.size]

    def examples(self) -> list[data.ExampleRow]:
        """The rows, smallest rank first, in the order of the stream where ranks are equal."""
        return [example for _, _, example in sorted(self._entries, key=lambda entry: (entry[0], entry[2].row))]


def _transpose(table: Floats, n_labelers: int) -> Floats:
    """Labelers x rows, with zeros for labelers that this batch does not know."""
    return np.pad(table.T, ((0, n_labelers - table.shape[1]), (0, 0)))


def make_timeline(counts: StreamCounts, n_classes: int, filled: bool, estimator: str) -> Timeline:
    """The buckets as lists, with the noise band around each accuracy."""
    b, chance = counts.buckets, 1.0 / n_classes
    rows, known = b["rows"], b["known"] > 0
    seen = ONE * np.maximum(b["known"], 1)
    mean, low, high = (np.where(known, table, np.nan) for table in (b["accuracy"] / seen, b["low"], b["high"]))
    middle, shortest = np.where(known, mean, chance), b["window_low"].astype(float)
    half = calibrated_half_width(middle.T, (b["coverage"] / seen).T, shortest, n_classes, filled, estimator).T
    first = np.arange(len(rows)) * counts.step
    times = [] if counts.times is None else counts.times[: len(rows)].tolist()
    first_time, last_time = ([plain_time(pair[end]) for pair in times] for end in (0, 1))
    return Timeline(
        step=counts.step,
        first_row=first.tolist(),
        last_row=(first + rows - 1).tolist(),
        first_time=first_time,
        last_time=last_time,
        by_time=_grows(first_time),
        window_low=b["window_low"].tolist(),
        window_mean=np.round(b["window_sum"] / rows, 1).tolist(),
        window_high=b["window_high"].tolist(),
        accuracy=rounded(mean),
        band_low=rounded(np.clip(low - half, 0.0, 1.0)),
        band_high=rounded(np.clip(high + half, 0.0, 1.0)),
        coverage=rounded(b["cast"] / rows),
        review=rounded(b["review"] / rows),
        differs=rounded((b["overruled"] + b["settled"] + b["opened"]) / rows),
    )


def _grows(times: list[Any]) -> bool:
    """Whether times increase from bucket to bucket, so that they can be an axis: numbers, or ISO dates as text."""
    if not times or len({type(time) for time in times}) > 1 or times[0] is None:
        return False
    if isinstance(times[0], str):
        try:
            times = np.array(times, "datetime64[ms]").tolist()
        except ValueError:
            return False
    return all(a < b for a, b in zip(times, times[1:], strict=False))


def changed_labelers(events: Sequence[DriftEvent] | None) -> set[str]:
    """Names of the labelers that drift events name, the latest `MAX_CHANGED_SHOWN` of them."""
    names = dict.fromkeys(name for event in reversed(events or ()) for name in event.names)
    return set(list(names)[:MAX_CHANGED_SHOWN])


def summarize_labelers(
    counts: StreamCounts, labelers: list[str], classes: list[str], line: Timeline, now: Floats, changed: set[str]
) -> list[data.LabelerSummary]:
    """One summary for each labeler; `now` are accuracies at the last row, and the ends of their bands.

    The chart begins with the labelers that changed, and with those whose votes added most.
    """
    totals, cast = counts.totals, counts.buckets["cast"].sum(axis=1).tolist()
    leading = set(np.argsort(-totals["weight"], kind="stable")[:LABELERS_SHOWN].tolist())
    summaries = []
    for h, name in enumerate(labelers):
        votes, by_class = cast[h], totals["votes_by_class"][h]
        last = max((t for t, value in enumerate(line.accuracy[h]) if value is not None), default=None)
        # The last row says what is now; a labeler that is not in its window has the bucket where it last was.
        current = [None if last is None else table[h][last] for table in (line.accuracy, line.band_low, line.band_high)]
        if last is not None and h < now.shape[1] and np.isfinite(now[0, h]):
            current = rounded(now[:, h])
        usual = int(by_class.argmax())
        summaries.append(
            data.LabelerSummary(
                name=name,
                votes=votes,
                coverage=share(votes, counts.n_rows) or 0.0,
                accuracy=current[0],
                accuracy_low=current[1],
                accuracy_high=current[2],
                weight=share(totals["weight"][h] / WEIGHT_ONE, votes),
                with_label=share(totals["with_label"][h], totals["labeled"][h]),
                classes_voted=int((by_class > 0).sum()),
                usual_class=classes[usual] if votes else None,
                usual_share=share(by_class[usual], votes),
                gold_accuracy=share(totals["gold_hits"][h], totals["gold_votes"][h]),
                shown=votes > 0 and (h in leading or name in changed or len(labelers) <= LABELERS_SHOWN + 2),
            )
        )
    return summaries


def find_window_drops(line: Timeline) -> list[data.WindowDrop]:
    """Falls of the window to a quarter of its length or less, largest first.

    Around a change the window jumps up and down. A fall ends when the window has doubled but stays below half of its
    former length, or is back at half of it; so one change is one drop.
    """
    drops: list[data.WindowDrop] = []
    peak, floor, place = 0, 0, -1  # place: bucket of the shortest window of the present fall, -1 outside of one

    def add_drop() -> None:
        time = line.first_time[place] if line.first_time else None
        drops.append(data.WindowDrop(line.first_row[place], time, peak, floor))

    for t, (low, high) in enumerate(zip(line.window_low, line.window_high, strict=True)):
        if place >= 0:
            if low < floor:
                floor, place = low, t
            elif (low >= 2 * floor and 2 * high <= peak) or 2 * low >= peak:
                add_drop()
                peak, place = high, -1
        elif peak >= max(SHORT_WINDOW, DROP * low):
            floor, place = low, t
        else:
            peak = max(peak, high)
    if place >= 0:
        add_drop()
    drops.sort(key=lambda drop: (-drop.before / drop.after, drop.row))
    return drops[: data.MAX_DROPS]


def pair_agreement(counts: StreamCounts) -> data.PairAgreement:
    """How often each pair of labelers cast the same vote."""
    cast = np.diag(counts.buckets["cast"].sum(axis=1))
    both, same = (counts.totals[name] + counts.totals[name].T + cast for name in ("both", "same"))
    with np.errstate(invalid="ignore"):
        return data.PairAgreement(share=rounded(same / both), rows=both.tolist())


def compare_with_gold(counts: StreamCounts, classes: list[str], line: Timeline) -> data.GoldComparison:
    """Accuracy over time of the model and of the methods it is compared with, and the confusion matrix."""
    n = len(line.first_row)
    starts = data.group_starts(n, max(1, -(-n // GOLD_RANGES), -(-GOLD_RANGE_ROWS // counts.step)))
    ends = [*starts[1:].tolist(), n]
    right, open_, rows = (np.add.reduceat(counts.buckets[name], starts, axis=-1) for name in ("right", "open", "gold"))
    scores = []
    for name, points in zip(METHODS, right + open_ / len(classes), strict=True):
        over_time = [share(*pair) for pair in zip(points, rows, strict=True)]
        scores.append(data.MethodScore(name, round(float(points.sum() / rows.sum()), DIGITS), over_time))
    ranges = [
        data.RowRange(line.first_row[a], line.last_row[b - 1]) for a, b in zip(starts.tolist(), ends, strict=True)
    ]
    return data.GoldComparison(int(rows.sum()), ranges, scores, *_confusion(counts.totals["confusion"], classes))


def _confusion(table: Ints, classes: list[str]) -> tuple[list[str], list[list[int]]]:
    """Classes and lines of the confusion matrix: the most frequent classes in their order, then all others."""
    n = len(table)
    if n <= CONFUSION_CLASSES and n == len(classes):
        return list(classes), table.tolist()
    frequency = table.sum(axis=1) + table[:, :n].sum(axis=0)
    if n < len(classes):
        frequency[-1] = -1  # it stands for several classes already
    frequent = np.sort(np.argsort(-frequency, kind="stable")[: CONFUSION_CLASSES - 1])
    group = np.full(n, len(frequent))
    group[frequent] = np.arange(len(frequent))
    small = np.zeros((len(frequent) + 1, len(frequent) + 2), np.int64)
    np.add.at(small, (group[:, None], np.append(group, len(frequent) + 1)), table)
    return [*(classes[place] for place in frequent.tolist()), "other classes"], small.tolist()
