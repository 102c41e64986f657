"""Answers as Arrow columns: what passes through first, then the label and what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.cli.labeling import Answer
from driftvote.errors import DriftvoteError
from driftvote.votes import VoteFormat


class Columns:
    """The columns of a labels file."""

    def __init__(self, form: VoteFormat, kept: Sequence[str], review_below: float, prefix: str = "") -> None:
        self.form = form
        self.review_below = review_below
        self.prefix = prefix
        self._probabilities = list(form.by_class(np.zeros((0, form.n_classes))))
        self._refuse_clash(kept)
        self._values = _label_values(form)

    def _refuse_clash(self, kept: Sequence[str]) -> None:
        ours = ["label", "probability", *self._probabilities, "window", "n_votes", "needs_review"]
        for name in (f"{self.prefix}{name}" for name in ours):
            if name in kept:
                raise DriftvoteError(
                    f"column {name!r} of the file has the name of a result; leave it out with --drop {name}, or"
                    " give the"
                    " results another name with --prefix dv_"
                )

    def batch(self, answer: Answer, kept: Any) -> tuple[Any, Any]:
        """A record batch, and which of its rows need review."""
        probability = most_likely(answer.proba)
        review = (probability < self.review_below) | (answer.codes < 0)
        ours: dict[str, Any] = {"label": self.labels(answer.codes), "probability": pa.array(probability)}
        for place, name in enumerate(self._probabilities):
            ours[name] = pa.array(np.ascontiguousarray(answer.proba[:, place]))
        ours |= {
            "window": pa.array(answer.windows),
            "n_votes": pa.array(answer.n_votes),
            "needs_review": pa.array(review),
        }
        for what, table in (("accuracy", answer.accuracies), ("weight", answer.weights)):
            if table is not None:
                for place, name in enumerate(answer.labelers):
                    ours[f"{what}_{name}"] = pa.array(np.ascontiguousarray(table[:, place]))
        return self.beside(kept, ours), review

    def beside(self, kept: Any, ours: dict[str, Any]) -> Any:
        """Results to the right of what passes through."""
        names = [*kept.schema.names, *(f"{self.prefix}{name}" for name in ours)]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise DriftvoteError(
                f"column {twice!r} would be there twice; leave it out with --drop, or pass --prefix dv_"
            )
        arrays = [array if isinstance(array, pa.Array) else pa.array(array) for array in ours.values()]
        return pa.RecordBatch.from_arrays([*kept.columns, *arrays], names=names)

    def votes(self, codes: Any) -> Any:
        """Votes in their own values; no vote is an empty cell."""
        places = pa.array(codes.astype(np.int64), mask=codes < 0)
        if pa.types.is_string(self._values.type):
            return pa.DictionaryArray.from_arrays(places.cast(pa.int16()), self._values.slice(0, self.form.n_classes))
        return self._values.take(places)

    def labels(self, codes: Any) -> Any:
        """Labels in the caller's values; a tie has the value that abstains, or is empty."""
        if self.form.name == "snorkel":
            return pa.array(codes)
        if pa.types.is_integer(self._values.type) and not self._values.null_count:
            return pa.array(self._values.to_numpy()[codes])
        if pa.types.is_string(self._values.type):
            places = np.where(codes < 0, self.form.n_classes, codes).astype(np.int16)
            if self.form.abstain is None:
                return pa.DictionaryArray.from_arrays(pa.array(places, mask=codes < 0), self._values[:-1])
            return pa.DictionaryArray.from_arrays(pa.array(places), self._values)
        return self._values.take(pa.array(np.where(codes < 0, self.form.n_classes, codes)))


def most_likely(proba: Any) -> Any:
    """Probability of the most likely class; for few classes column by column, which is faster than by rows."""
    if proba.shape[1] > 8:
        return proba.max(axis=1)
    best = proba[:, 0]
    for place in range(1, proba.shape[1]):
        best = np.maximum(best, proba[:, place])
    return best


def _label_values(form: VoteFormat) -> Any:
    """Class values with the abstention last, as one Arrow array: whole numbers, other numbers, or text."""
    values = [*form.classes, form.abstain]
    said = [value for value in values if value is not None]
    if all(type(value) is int for value in said):
        return pa.array(values, pa.int64())
    if all(isinstance(value, (int, float)) for value in said):
        return pa.array(values, pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
