"""Estimates behind a chunk of labels; what is rarely asked for is worked out when it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from driftvote import accuracies, weights
from driftvote.kernels.layout import Codes, Floats, Ints, Rule


class Estimates(ABC):
    """Per row: the window, and per labeler accuracy, coverage and weight. Arrays of rows x labelers."""

    windows: Ints

    @property
    @abstractmethod
    def accuracies(self) -> Floats:
        """Accuracy on the rows where the labeler votes."""

    @property
    @abstractmethod
    def diluted_accuracies(self) -> Floats:
        """Accuracy with abstentions counted as blind guesses."""

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """What a vote counts."""

    def vote_weights(self, rows: Codes) -> Floats:
        """What each vote of these rows counted for its class, in log-odds; where nobody voted, what it would."""
        return self.weights

    @property
    @abstractmethod
    def coverage(self) -> Floats:
        """Share of the window's rows on which the labeler votes."""

    @abstractmethod
    def __getitem__(self, rows: slice) -> Estimates:
        """The estimates of some of the rows."""

    @classmethod
    @abstractmethod
    def joined(cls, parts: Sequence[Any]) -> Estimates:
        """Estimates of one part after the other; who joined later is unknown before: chance, silent, no weight."""


class WindowEstimates(Estimates):
    """Estimates over a window: the accuracies that weigh and the vote counts are kept, the rest follows."""

    def __init__(self, weighing: Floats, votes: Ints | None, windows: Ints, rule: Rule) -> None:
        self.weighing = weighing  # when voting; diluted where abstentions are random votes
        self.votes = votes  # None: everybody votes on every row
        self.windows = windows
        self.rule = rule

    @cached_property
    def accuracies(self) -> Floats:
        if not self.rule.diluted or self.votes is None:
            return self.weighing
        return accuracies.undiluted(self.weighing, self.coverage, self.rule.n_classes)

    @cached_property
    def diluted_accuracies(self) -> Floats:
        if self.rule.diluted or self.votes is None:
            return self.weighing
        return accuracies.diluted(self.weighing, self.coverage, self.rule.n_classes)

    @cached_property
    def weights(self) -> Floats:
        return weights.weights_of(self.weighing, self.rule)

    @cached_property
    def coverage(self) -> Floats:
        return np.ones(self.weighing.shape) if self.votes is None else self.votes / self.windows[:, None]

    def __getitem__(self, rows: slice) -> WindowEstimates:
        votes = None if self.votes is None else self.votes[rows]
        return WindowEstimates(self.weighing[rows], votes, self.windows[rows], self.rule)

    @classmethod
    def joined(cls, parts: Sequence[WindowEstimates]) -> WindowEstimates:
        width = parts[-1].weighing.shape[1]
        chance = 1.0 / parts[0].rule.n_classes
        return cls(
            np.concatenate([_widened(part.weighing, width, chance) for part in parts]),
            np.concatenate([_widened(part.counted_votes(), width, 0) for part in parts]),
            np.concatenate([part.windows for part in parts]),
            parts[-1].rule,
        )

    def counted_votes(self) -> Ints:
        """Votes in the window, written out."""
        if self.votes is not None:
            return self.votes
        return np.repeat(self.windows[:, None], self.weighing.shape[1], axis=1)


def _widened(table: Any, width: int, fill: float) -> Any:
    return np.pad(table, [(0, 0), (0, width - table.shape[1])], constant_values=fill)


class EqualEstimates(Estimates):
    """Nothing is estimated: every labeler has weight 1, and the accuracy that weight stands for."""

    def __init__(
        self, n_rows: int, n_labelers: int, n_classes: int, window: int = 1, rows: Codes | None = None
    ) -> None:
        self.shape = (n_rows, n_labelers)
        self.n_classes = n_classes
        self.window = window
        self.windows = np.full(n_rows, window, np.int64)
        self.rows = rows

    def _constant(self, value: float) -> Floats:
        return np.full(self.shape, value)

    @cached_property
    def accuracies(self) -> Floats:
        return self._constant(weights.accuracy_at_weight(weights.EQUAL_WEIGHT, self.n_classes))

    @cached_property
    def diluted_accuracies(self) -> Floats:
        chance = 1.0 / self.n_classes
        return chance + self.coverage * (self.accuracies - chance)

    @cached_property
    def weights(self) -> Floats:
        return self._constant(weights.EQUAL_WEIGHT)

    @cached_property
    def coverage(self) -> Floats:
        """Over a window of one row: who voted. Without a row nobody has."""
        return self._constant(0.0) if self.rows is None else (self.rows >= 0).astype(np.float64)

    def __getitem__(self, rows: slice) -> EqualEstimates:
        kept: Any = None if self.rows is None else self.rows[rows]
        n_rows = len(self.windows[rows])
        return EqualEstimates(n_rows, self.shape[1], self.n_classes, self.window, kept)

    @classmethod
    def joined(cls, parts: Sequence[EqualEstimates]) -> EqualEstimates:
        width = parts[-1].shape[1]
        rows = np.concatenate([_widened(part.rows, width, -1) for part in parts])
        return cls(len(rows), width, parts[0].n_classes, parts[0].window, rows)
