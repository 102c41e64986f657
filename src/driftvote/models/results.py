"""What comes back: a `Step` for one row, a `LabeledStream` for many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from driftvote.doors import Origin
from driftvote.errors import VoteError
from driftvote.kernels.layout import Codes, Floats, Ints
from driftvote.kernels.single import CODE, WINDOW
from driftvote.models.certified import StepCertificate
from driftvote.models.estimates import Estimates
from driftvote.votes import VoteFormat

if TYPE_CHECKING:
    from driftvote.models.quick import QuickRows


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
    ) -> None:
        self.codes = codes
        self.proba = proba
        self._rows = rows
        self.labelers = labelers
        self._estimates = estimates
        self._form = form
        self._origin = origin or Origin()

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
        )

    def __iter__(self) -> Iterator[Step]:
        return (Step(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"LabeledStream({len(self)} rows, {len(self.labelers)} labelers, classes {list(self.classes)})"

    def to_frame(self, backend: str | None = None, per_labeler: bool = False) -> Any:
        """The labels as a frame: of the library the votes came in, or of `backend`.

        Columns: the task (after a long frame), label, probability, one probability a class, window,
        n_votes; with `per_labeler` also accuracy, weight and coverage of each labeler. A pandas frame
        keeps its index. Votes that came as an array give an Arrow table unless `backend` says
        "pandas" or "polars".
        """
        from driftvote.frames_out import make_frame

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


class Step:
    """One row's label, with all that it was made from.

    Examples
    --------
    >>> from driftvote import AdaptiveLabelModel
    >>> model = AdaptiveLabelModel(classes=["safe", "unsafe"])
    >>> step = model.update({"judge-a": "safe", "judge-b": "safe", "judge-c": "unsafe"})
    >>> step.label, step.window
    ('safe', 1)
    >>> step
    Step(label='safe', probability=0.900, window=1, n_votes=3)
    """

    __slots__ = ("_row", "_said", "_source")

    def __init__(self, source: LabeledStream | QuickRows, row: int, said: Floats | None = None) -> None:
        self._source: Any = source
        self._row = row
        self._said = said  # by the short way: the numbers of the row, not yet put into words

    @property
    def _stream(self) -> LabeledStream:
        if self._said is not None:
            self._source, self._said = self._source.stream(self._said), None
        return self._source

    @property
    def _form(self) -> VoteFormat:
        return self._source._form

    @property
    def _one(self) -> Estimates:
        return self._stream._estimates[self._row : self._row + 1]

    @property
    def label(self) -> Any:
        """The label in the caller's class values, or the abstention value."""
        return self._form.decode_one(self.code)

    @property
    def code(self) -> int:
        """The label as a class code; -1 is an abstention."""
        return int(self._stream.codes[self._row] if self._said is None else self._said[CODE])

    @property
    def proba(self) -> Floats:
        """Probability of each class, in the order of `classes`."""
        return self._stream.proba[self._row] if self._said is None else self._said[self._source.proba]

    @property
    def probability(self) -> float:
        """Probability of the most likely class."""
        return float(self.proba.max())

    @property
    def window(self) -> int:
        """How many rows, this one included, the estimates were made from."""
        return int(self._stream.windows[self._row] if self._said is None else self._said[WINDOW])

    @property
    def n_votes(self) -> int:
        """How many labelers did not abstain."""
        return int(self._stream.n_votes[self._row])

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler when it votes."""
        if self._said is not None and not self._source.rule.diluted:
            return self._said[self._source.weighing]
        return self._one.accuracies[0]

    @property
    def diluted_accuracies(self) -> Floats:
        """Accuracy of each labeler with abstentions counted as blind guesses."""
        return self._one.diluted_accuracies[0]

    @property
    def weights(self) -> Floats:
        """What a vote of each labeler counts."""
        return self._one.weights[0]

    @property
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._one.coverage[0]

    @property
    def certificate(self) -> StepCertificate | None:
        """The committee behind the label and its certified error; None for models without certificates."""
        found = getattr(self._stream._estimates, "record", None)
        return None if found is None else StepCertificate.of(found(self._row), self.labelers)

    @property
    def labelers(self) -> tuple[str, ...]:
        """Names, in the order of the arrays."""
        return self._stream.labelers

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class values, in the order of `proba`."""
        return self._stream.classes

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain Python values, labelers and classes by name."""
        estimates = self._one

        def by_name(values: Floats) -> dict[str, float]:
            return dict(zip(self.labelers, values[0].tolist(), strict=True))

        certificate = self.certificate
        certified = {} if certificate is None else {"certificate": certificate.to_dict()}
        return certified | {
            "label": self.label,
            "probability": self.probability,
            "proba": dict(zip(self.classes, self.proba.tolist(), strict=True)),
            "window": self.window,
            "n_votes": self.n_votes,
            "accuracies": by_name(estimates.accuracies),
            "weights": by_name(estimates.weights),
            "coverage": by_name(estimates.coverage),
        }

    def __repr__(self) -> str:
        return (
            f"Step(label={self.label!r}, probability={self.probability:.3f},"
            f" window={self.window}, n_votes={self.n_votes})"
        )
