"""Engines that can be asked for the accuracies of labelers by some rows alone."""

from __future__ import annotations

import numpy as np

from driftvote.agreements import n_pairs
from driftvote.kernels.accuracies import triplet_accuracies
from driftvote.kernels.agreements import recount
from driftvote.kernels.layout import Codes, Floats, Rule
from driftvote.models.estimates import WindowEstimates


class RecentRows:
    """What the drift detector asks of an engine."""

    n_classes: int
    n_labelers: int
    estimator = "triplet"  # whose bands fit

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        raise NotImplementedError

    @property
    def fills_in(self) -> bool:
        """Whether abstentions are random votes."""
        return bool(self.rule.diluted)  # type: ignore[attr-defined]

    def accuracies_of(self, rows: Codes) -> Floats:
        """Accuracies of the labelers by these rows alone, each when it votes: by the paper's estimator."""
        rule: Rule = self.rule  # type: ignore[attr-defined]
        n_rows, n = rows.shape
        sums, votes = np.zeros((1, n_pairs(n)), np.int64), np.zeros((1, n), np.int64)
        recount(np.ascontiguousarray(rows), rule.n_classes, np.array([n_rows]), sums, votes)
        estimates = np.empty((1, n))
        triplet_accuracies(sums[0], votes[0], n_rows, rule.n_classes, rule.diluted, estimates[0])
        return WindowEstimates(estimates, votes, np.array([n_rows]), rule).accuracies[0]
