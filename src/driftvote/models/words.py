"""Words that people know from other tools, as one-liners on the same engine."""

from __future__ import annotations

from typing import Any

from driftvote.inputs import Batch, Origin, align_rows, make_frame, make_series
from driftvote.kernels.layout import Floats, Ints
from driftvote.models.estimates import EqualEstimates
from driftvote.models.explaining import Explanation, explained
from driftvote.models.families import Families
from driftvote.votes import Roster, VoteFormat


class FamiliarWords:
    """The words of Snorkel and scikit-learn (`predict`, `get_weights`) and of river (`learn_one`)."""

    _form: VoteFormat
    _roster: Roster
    _families: Families

    def _vote(self, batch: Batch, policy: str | None) -> tuple[Ints, Floats]:
        raise NotImplementedError

    def predict(
        self,
        data: Any,
        return_probs: bool = False,
        tie_break_policy: str | None = None,
        **keys: str | None,
    ) -> Any:
        """Label rows by the current weights; learn nothing, change nothing.

        An array gives an array. A wide frame gives a column of its library (with its index, in
        pandas), a long frame gives a frame of task and label. With `return_probs`, a pair of labels
        and probabilities.
        """
        batch = self._families.read(data, self._form, self._roster, **keys)
        codes, proba = self._vote(batch, tie_break_policy)
        labels = _shaped_labels(self._form.decode(codes), batch.origin)
        return (labels, _shaped_proba(proba, self._form, batch.origin)) if return_probs else labels

    def predict_proba(self, data: Any, **keys: str | None) -> Any:
        """Class probabilities of rows by the current weights; a column for each class."""
        batch = self._families.read(data, self._form, self._roster, **keys)
        return _shaped_proba(self._vote(batch, None)[1], self._form, batch.origin)

    def explain(self, row: Any) -> Explanation:
        """Why a row would get its label by the current weights; learns nothing.

        >>> from driftvote import AdaptiveLabelModel
        >>> model = AdaptiveLabelModel(classes=["safe", "unsafe"])
        >>> _ = model.update({"judge-a": "safe", "judge-b": "safe", "judge-c": "unsafe"})
        >>> told = model.explain({"judge-a": "unsafe", "judge-c": "unsafe", "judge-b": "safe"})
        >>> told.label, told.majority, told.window, len(told.votes)
        ('unsafe', 'unsafe', 1, 3)
        """
        batch = self._families.read_row(row, self._form, self._roster)
        codes, proba = self._vote(batch, None)
        roster = self._roster if self._roster.names else Roster(batch.names or ()).for_width(batch.codes.shape[1])
        now = self._current() if self.n_rows else EqualEstimates(1, len(roster), self._form.n_classes, window=0)  # type: ignore[attr-defined]
        votes = align_rows(batch, roster)[0]
        return explained(votes, int(codes[0]), proba[0], now, self._form, roster.names)

    def learn_one(self, row: Any) -> None:
        """river's word: learn from one row, label nothing."""
        self.update(row)  # type: ignore[attr-defined]

    def predict_one(self, row: Any) -> Any:
        """river's word: the label of one row by the current weights."""
        codes, _ = self._vote(self._families.read_row(row, self._form, self._roster), None)
        return self._form.decode_one(int(codes[0]))

    def predict_proba_one(self, row: Any) -> dict[Any, float]:
        """river's word: {class: probability} of one row by the current weights."""
        _, proba = self._vote(self._families.read_row(row, self._form, self._roster), None)
        return dict(zip(self._form.classes, proba[0].tolist(), strict=True))

    def get_weights(self) -> Floats:
        """Snorkel's word for the estimated accuracies (when voting); log-odds weights are `weights`."""
        return self.accuracies  # type: ignore[attr-defined]


def _shaped_labels(labels: Any, origin: Origin) -> Any:
    if origin.backend is None:
        return labels
    if origin.layout == "long":
        return make_frame({origin.task_column: origin.tasks, "label": labels.tolist()}, origin.backend)
    return make_series("label", labels.tolist(), origin.backend, origin.index)


def _shaped_proba(proba: Floats, form: VoteFormat, origin: Origin) -> Any:
    if origin.backend is None:
        return proba
    columns: dict[str, Any] = {} if origin.layout != "long" else {origin.task_column: origin.tasks}
    columns |= form.by_class(proba)
    return make_frame(columns, origin.backend, origin.index)
