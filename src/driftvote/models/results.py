"""What comes back for many rows: a `LabeledStream`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from driftvote.drift.events import DriftEvent
from driftvote.errors import VoteError
from driftvote.inputs import Origin, make_frame
from driftvote.kernels.layout import Codes, Floats, Ints
from driftvote.models.estimates import Estimates
from driftvote.models.explaining import Explanation, explained
from driftvote.models.step import Step
from driftvote.models.timelines import bands_of, timeline_columns, whole_number
from driftvote.votes import VoteFormat


class LabeledStream:
    """Labels of a chunk of rows, with all that they were made from.

    Rows are in time order; arrays have one entry, or one line, a row.

    Attributes
    ----------
    labels
        The label in the caller's own class values; the abstention value where the vote was tied.
    codes
        The same as class codes 0 .. K-1, with -1 for an abstention.
    proba
        Probability of each class (columns in the order of `classes`).
    windows
        How many rows, this one included, the estimates were made from.
    n_votes
        How many labelers did not abstain on the row.
    events
        Drift events (`DriftEvent`) that were noticed at these rows, in order.
    first_row
        Number of the first of these rows in the stream.
    labelers, classes
        Names of the columns of the arrays above and below.

    Examples
    --------
    >>> from driftvote import AdaptiveLabelModel
    >>> out = AdaptiveLabelModel().label_stream([[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    >>> out.labels
    array([1, 0, 1, 0])
    >>> out.accuracies.shape, out[-1].window
    ((4, 3), 4)
    """

    def __init__(
        self,
        codes: Ints,
        proba: Floats,
        estimates: Estimates,
        rows: Codes,
        form: VoteFormat,
        labelers: tuple[str, ...],
        origin: Origin | None = None,
        events: Sequence[DriftEvent] | None = None,
        first_row: int = 0,
    ) -> None:
        self.codes = codes
        self.proba = proba
        self._rows = rows
        self.labelers = labelers
        self._estimates = estimates
        self._form = form
        self._origin = origin or Origin()
        self.events = list(events or ())
        self.watched = events is not None  # whether anybody looked for events
        self.first_row = first_row

    @property
    def labels(self) -> npt.NDArray[Any]:
        return self._form.decode(self.codes)

    @property
    def classes(self) -> tuple[Any, ...]:
        return self._form.classes

    @cached_property
    def n_votes(self) -> Ints:
        # Counted when asked for: it costs as much as a majority vote.
        return np.asarray((self._rows >= 0).sum(axis=1))

    @property
    def windows(self) -> Ints:
        return self._estimates.windows

    @property
    def probability(self) -> Floats:
        """Probability of the most likely class: how sure the label is."""
        return np.asarray(self.proba.max(axis=1))

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler when it votes, at each row; in [0, 1], before `clip` limits the weights."""
        return self._estimates.accuracies

    @property
    def diluted_accuracies(self) -> Floats:
        """Accuracy with every abstention counted as a blind guess: 1/K + coverage (accuracy - 1/K)."""
        return self._estimates.diluted_accuracies

    @property
    def weights(self) -> Floats:
        """What a vote of each labeler counted at each row."""
        return self._estimates.weights

    def vote_weights(self, votes: Codes) -> Floats:
        """Log-odds that each of these votes (class codes, columns as in `labelers`) added to its class on its row."""
        return np.where(votes >= 0, self._estimates.vote_weights(votes), 0.0)

    @property
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._estimates.coverage

    @property
    def error_bounds(self) -> Floats | None:
        """The certified error of the row's committee, at each row; None for models without certificates."""
        return getattr(self._estimates, "error_bounds", None)

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> LabeledStream: ...
    def __getitem__(self, place: int | slice) -> Step | LabeledStream:
        if not isinstance(place, slice):
            return Step(self, range(len(self))[place])
        origin = self._origin
        kept = replace(
            origin,
            index=None if origin.index is None else origin.index[place],
            tasks=None if origin.tasks is None else origin.tasks[place],
        )
        return LabeledStream(
            self.codes[place],
            self.proba[place],
            self._estimates[place],
            self._rows[place],
            self._form,
            self.labelers,
            kept,
            self._events_at(range(len(self))[place]),
            self.first_row + range(len(self))[place].start,
        )

    def _events_at(self, places: range) -> list[DriftEvent] | None:
        found = [event for event in self.events if event.row - self.first_row in places]
        return found if self.watched else None

    def __iter__(self) -> Iterator[Step]:
        return (Step(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"LabeledStream({len(self)} rows, {len(self.labelers)} labelers, classes {list(self.classes)})"

    def explain(self, row: int = -1) -> Explanation:
        """Why a row (its place among these rows) got its label; `print` it.

        >>> from driftvote import AdaptiveLabelModel
        >>> out = AdaptiveLabelModel.paper().label_stream([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, -1]])
        >>> print(out.explain(0))
        row 0: 1 with probability 0.900, from the last 1 rows; the majority says the same
          labeler_0  1 +2.20  (right 100% of the time)
          labeler_1  1 +2.20  (right 100% of the time)
          labeler_2  0 +2.20  (right 100% of the time)
        """
        place = range(len(self))[row]
        estimates = self._estimates[place : place + 1]
        codes, proba = self._rows[place], self.proba[place]
        told = explained(codes, int(self.codes[place]), proba, estimates, self._form, self.labelers)
        return replace(told, row=self.first_row + place)

    def bands(self, kind: str = "calibrated", tau: float = 0.1, delta: float = 0.1) -> tuple[Floats, Floats]:
        """Lower and upper ends of a band around `accuracies`, rows x labelers.

        `"calibrated"`: held the truth 95 times in 100 in simulated streams without drift inside the window.
        `"bound"`: what the theorem promises with probability 1 - `delta` in any such stream, if every labeler is right
        with probability at least 1/K + `tau`; wide. docs/events.md has both.
        """
        return bands_of(self._estimates, self._form.n_classes, kind, tau, delta)

    def timeline(self, every: int | None = None, backend: str | None = None) -> Any:
        """The labelers over time as a tidy frame: a line for each labeler of each row, or of every so many rows.

        Columns: t (the row's number in the stream), labeler, accuracy, low, high (the calibrated band), coverage,
        weight, window. `every` is chosen so that about 500 rows are told; the last row is always told.
        """
        step = max(1, -(-len(self) // 500)) if every is None else whole_number("every", every)
        return make_frame(
            timeline_columns(self, np.unique(np.append(np.arange(0, len(self), step), max(0, len(self) - 1)))),
            backend or self._origin.backend or "pyarrow",
        )

    def to_frame(self, backend: str | None = None, per_labeler: bool = False) -> Any:
        """The labels as a frame: of the library the votes came in, or of `backend`.

        Columns: the task (after a long frame), label, probability, one probability a class, window,
        n_votes; with `per_labeler` also accuracy, weight and coverage of each labeler. A pandas frame
        keeps its index. Votes that came as an array give an Arrow table unless `backend` says
        "pandas" or "polars".
        """
        columns: dict[str, Any] = {}
        if self._origin.tasks is not None:
            columns[self._origin.task_column] = self._origin.tasks
        said: dict[str, Any] = {"label": self.labels.tolist(), "probability": self.probability}
        said |= self._form.by_class(self.proba)
        said |= {"window": self.windows, "n_votes": self.n_votes}
        if per_labeler:
            for place, name in enumerate(self.labelers):
                said[f"accuracy_{name}"] = self.accuracies[:, place]
                said[f"weight_{name}"] = self.weights[:, place]
                said[f"coverage_{name}"] = self.coverage[:, place]
        clash = set(columns) & set(said)
        if clash:
            raise VoteError(f"the task column is named {clash.pop()!r}, as one of the results is; rename it first")
        columns |= said
        return make_frame(columns, backend or self._origin.backend or "pyarrow", self._origin.index)
