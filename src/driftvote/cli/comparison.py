"""Counts behind a comparison of models: who agrees with whom, and with the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels.layout import Floats, Ints


class Comparison:
    """Grows batch by batch; codes are class codes, -1 for a tie."""

    def __init__(self, models: list[str], classes: list[str]) -> None:
        self.models = models
        self.classes = classes
        self.rows = 0
        self.known = 0
        n, k = len(models), len(classes)
        self._same = np.zeros((n, n), np.int64)
        self._tied = np.zeros(n, np.int64)
        self._confusion = np.zeros((n, k, k + 1), np.int64)  # truth x label, ties last

    def add(self, codes: Ints, gold: Any) -> None:
        """Count a batch of models x rows."""
        self.rows += codes.shape[1]
        self._tied += (codes < 0).sum(axis=1)
        for one in range(len(self.models)):
            for other in range(one, len(self.models)):
                same = int((codes[one] == codes[other]).sum())
                self._same[one, other] += same
                self._same[other, one] += same * (one != other)
        if gold is None:
            return
        known = gold >= 0
        truth = gold[known].astype(np.int64)
        self.known += len(truth)
        width = len(self.classes) + 1
        for place in range(len(self.models)):
            said = np.where(codes[place, known] < 0, width - 1, codes[place, known])
            counted = np.bincount(truth * width + said, minlength=width * len(self.classes))
            self._confusion[place] += counted.reshape(len(self.classes), width)

    def agreement(self) -> Floats:
        """Share of rows with the same label, model x model."""
        return np.asarray(self._same / max(1, self.rows))

    def lines(self) -> list[dict[str, Any]]:
        """Per model: ties and, with gold, accuracy (a tie counts 1/K) and F1 of every class and on average.

        The average runs over the classes that occur in the truth; a tied row is a missed one.
        """
        found = []
        for place, name in enumerate(self.models):
            line: dict[str, Any] = {"model": name, "tied": int(self._tied[place])}
            if self.known:
                counts = self._confusion[place]
                right = np.diag(counts)
                ties = counts[:, -1].sum()
                line["accuracy"] = float((right.sum() + ties / len(self.classes)) / self.known)
                wrong = counts.sum(axis=1) + counts[:, :-1].sum(axis=0) - 2 * right
                f1 = 2 * right / np.maximum(1, 2 * right + wrong)
                line["f1"] = float(f1[counts.sum(axis=1) > 0].mean())
                line["f1_by_class"] = dict(zip(self.classes, f1.tolist(), strict=True))
                line["confusion"] = counts.tolist()
            found.append(line)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "rows": self.rows,
            "gold_rows": self.known,
            "models": self.lines(),
            "agreement": {
                name: dict(zip(self.models, row.tolist(), strict=True))
                for name, row in zip(self.models, self.agreement(), strict=True)
            },
        }
