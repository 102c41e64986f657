"""Batch by batch from votes and labels to a report, in bounded memory whatever the length of the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftvote.drift import DriftEvent
from driftvote.errors import LabelerError, SettingError, VoteError
from driftvote.kernels.buckets import Rows
from driftvote.kernels.layout import Codes, Ints, code_dtype
from driftvote.models.results import LabeledStream
from driftvote.models.timelines import estimator_of
from driftvote.report.baselines import Baseline
from driftvote.report.context import Report
from driftvote.report.dependent import LastRows
from driftvote.report.examples import Block, Picked
from driftvote.report.finish import Gathered, finished
from driftvote.report.happened import moved
from driftvote.report.thinning import Thinned
from driftvote.report.values import shown

BLOCK = 1 << 16
"""Rows that are worked on at a time: what a batch needs besides itself stays bounded."""

MOST_CLASSES_SHOWN = 200
"""Classes that are counted one by one; those beyond are counted together."""

EXAMPLES = 12
DOUBTFUL = 20


class ReportBuilder:
    """Collects what a report shows while a stream is labeled.

    Parameters
    ----------
    labelers
        Names, in the order of the columns of the votes. More may join later, at the end.
    classes
        The classes, in code order.
    title, source
        Heading of the page, and where the votes came from.
    settings, reading
        What the page tells of the model and of how the votes were read, by name.
    has_gold
        Whether true labels come with the rows. The labels are then also compared with those of a majority vote
        and of weights from all the past, which the builder makes with the models.
    review_below
        A label less probable than this is doubtful.

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
        title: str = "Labels from drifting labelers",
        source: str = "",
        settings: Mapping[str, object] | None = None,
        reading: Mapping[str, object] | None = None,
        has_gold: bool = False,
        review_below: float = 0.7,
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
        n_classes = len(self.classes)
        self._thinned = Thinned(len(self.labelers), min(n_classes, MOST_CLASSES_SHOWN))
        self._all_past = Baseline.all_past(n_classes) if has_gold else None
        self._differing, self._doubtful = Picked(EXAMPLES), Picked(DOUBTFUL)
        self._last_weights = np.zeros(len(self.labelers))
        self._estimator = "triplet"
        self._events: list[DriftEvent] | None = None
        self._last_rows, self._last_window, self._certificate = LastRows(), 0, None  # type: Any, int, Any

    @property
    def nbytes(self) -> int:
        """Bytes held for the report; bounded whatever the number of rows."""
        return self._thinned.nbytes

    def add(self, votes: Any, out: LabeledStream, times: Any = None, ids: Any = None, gold: Any = None) -> None:
        """Take the next rows of the stream.

        Parameters
        ----------
        votes
            Rows x labelers: class codes, negative for an abstention.
        out
            What the model said of those rows.
        times, ids
            One entry a row: numbers, dates or text.
        gold
            Class codes of the true labels, -1 where unknown; only with `has_gold`.
        """
        codes = self._checked(votes, out, times, ids, gold)
        self._admit(out.labelers)
        self._estimator = estimator_of(out._estimates)
        if out.watched:
            self._events = (self._events or []) + [moved(e, self._thinned.n_rows - out.first_row) for e in out.events]
        if codes.shape[1] < len(self.labelers):
            codes = np.pad(codes, ((0, 0), (0, len(self.labelers) - codes.shape[1])), constant_values=-1)
        done = 0
        while done < len(codes):
            stop = min(len(codes), done + BLOCK, done + self._thinned.room())
            part = slice(done, stop)
            self._add_block(codes[part], out[part], *(None if x is None else x[part] for x in (times, ids, gold)))
            done = stop

    def _checked(self, votes: Any, out: LabeledStream, times: Any, ids: Any, gold: Any) -> Codes:
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
                raise VoteError(f"{name} has {len(values)} entries for {len(array)} rows; pass one a row")
        if (gold is not None) != self.has_gold and len(array):
            raise VoteError("gold comes with every batch or with none: has_gold says which")
        for name, values in (("votes", array), ("gold", gold)):
            if values is not None and np.size(values) and int(np.max(values)) >= len(self.classes):
                raise VoteError(f"{name}: class code {np.max(values)} is none of the {len(self.classes)} classes")
        array = array if array.dtype.kind == "u" else np.maximum(array, -1)
        return np.ascontiguousarray(array, code_dtype(len(self.classes)))

    def _admit(self, names: Sequence[str]) -> None:
        """Newcomers stand behind those who are known; arrays of votes bring names that only count columns."""
        joining = len(names) - len(self.labelers)
        if joining <= 0:
            return
        if self.labelers and [str(name) for name in names[: len(self.labelers)]] != self.labelers:
            raise LabelerError(
                f"the report knows {len(self.labelers)} labelers but the labels are of {len(names)};"
                " pass labelers=[...] with all of them"
            )
        self.labelers += [str(name) for name in names[-joining:]]
        self._last_weights = np.pad(self._last_weights, (0, joining))
        self._thinned.widened(len(self.labelers))

    def _add_block(self, votes: Codes, out: LabeledStream, times: Any, ids: Any, gold: Any) -> None:
        missing = len(self.labelers) - len(out.labelers)
        rows = Rows(
            votes=votes,
            labels=np.ascontiguousarray(out.codes),
            majority=np.empty(len(votes), np.int64),
            proba=np.ascontiguousarray(out.proba),
            windows=np.ascontiguousarray(out.windows),
            accuracies=_wide(out.accuracies, missing),
            coverage=_wide(out.coverage, missing),
        )
        thinned = self._thinned
        flags = thinned.add(rows, self.review_below)
        true: Ints | None = None if gold is None else np.maximum(np.asarray(gold, np.int64), -1)
        if true is not None and self._all_past is not None:
            said = np.stack([rows.labels, rows.majority, self._all_past.label(votes)])
            thinned.add_gold(votes, true, said)
        if times is not None:
            times = np.asarray(times)
            thinned.add_times(times)
        block = Block(thinned.n_rows, votes, out, rows.majority, times, ids, true)
        self._pick(block, flags)
        self._last_weights[: len(out.labelers)] = out[len(votes) - 1 :].weights[0]
        self._last_rows.add(votes)
        self._last_window, self._certificate = int(out.windows[-1]), out[-1].certificate
        thinned.passed(len(votes))

    def _pick(self, block: Block, flags: Any) -> None:
        differing = np.flatnonzero(flags & 1)
        self._differing.offer(differing, np.zeros(len(differing)), block, self.classes, self.labelers)
        doubtful = np.flatnonzero(flags & 2)
        if len(doubtful):
            sure = block.out.proba[doubtful].max(axis=1)
            self._doubtful.offer(doubtful, np.round(sure, 6), block, self.classes, self.labelers)

    def finish(self) -> Report:
        """The report of the rows so far; more may be added after it."""
        return finished(
            Gathered(
                thinned=self._thinned,
                labelers=self.labelers,
                classes=self.classes,
                title=self.title,
                source=self.source,
                settings=shown(self.settings),
                reading=shown(self.reading),
                has_gold=self.has_gold,
                review_below=self.review_below,
                filled=str(self.settings.get("abstentions")) == "random",
                estimator=self._estimator,
                weights=self._last_weights,
                last_rows=self._last_rows.rows(len(self.labelers), self._last_window),
                certificate=self._certificate,
                differing=self._differing.by_row(),
                doubtful=self._doubtful.by_rank(),
                events=self._events,
            )
        )


def _wide(table: Any, missing: int) -> Any:
    """Columns for labelers of whom this batch has not heard: silent."""
    table = np.ascontiguousarray(table)
    return np.pad(table, ((0, 0), (0, missing))) if missing else table
