"""What comes back for one row: a `Step`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftvote.committee import StepCertificate
from driftvote.drift.events import DriftEvent
from driftvote.kernels.layout import Floats
from driftvote.kernels.single import CODE, WINDOW
from driftvote.models.estimates import Estimates
from driftvote.models.explaining import Explanation
from driftvote.votes import VoteFormat

if TYPE_CHECKING:
    from driftvote.models.quick import QuickRows
    from driftvote.models.results import LabeledStream


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
    Step(label='safe', probability=0.836, window=1, n_votes=3)
    """

    __slots__ = ("_event", "_row", "_said", "_source")

    _event: DriftEvent | None  # set only on the short way, and only where there is one

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
        certificate_at = getattr(self._stream._estimates, "certificate_at", None)
        return None if certificate_at is None else certificate_at(self._row)

    @property
    def event(self) -> DriftEvent | None:
        """The drift event that was noticed at this row; None nearly always."""
        if self._said is not None or hasattr(self, "_event"):
            return getattr(self, "_event", None)
        return next((one for one in self._stream.events if one.row == self._stream.first_row + self._row), None)

    def explain(self) -> Explanation:
        """Why the row got its label: each labeler's part in it, the window, and what the majority said."""
        return self._stream.explain(self._row)

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
