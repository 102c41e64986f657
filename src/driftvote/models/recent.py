"""Engines that can be asked for their last rows, and for the accuracies of labelers by some rows alone."""

from __future__ import annotations

import numpy as np

from driftvote.agreements import n_pairs
from driftvote.diagnosis import packed
from driftvote.kernels.accuracies import triplet_accuracies
from driftvote.kernels.agreements import recount
from driftvote.kernels.layout import Codes, Floats, Ints, Rule
from driftvote.kernels.sides import leads_and_votes, sum_pairs
from driftvote.models.estimates import WindowEstimates


def recounted(rows: Codes, n_classes: int, sums: Ints, votes: Ints) -> None:
    """Pair sums and votes of all these rows; without random fill they are counted 64 rows at a time."""
    if rows.size and int(rows.min()) < -1:
        recount(rows, n_classes, np.array([len(rows)]), sums, votes)
        return
    words, _ = packed(rows, n_classes)
    sum_pairs(words, sums[0])
    leads_and_votes(words, np.zeros(n_classes, np.int64), votes[0])


class RecentRows:
    """What the watch for drift asks of an engine."""

    n_classes: int
    n_labelers: int
    estimator = "triplet"  # whose bands fit

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        raise NotImplementedError

    @property
    def ring(self) -> Codes:
        """The remembered rows: row t in slot t mod capacity."""
        raise NotImplementedError

    @property
    def fills_in(self) -> bool:
        """Whether abstentions are random votes."""
        return bool(self.rule.diluted)  # type: ignore[attr-defined]

    def remembers(self, n_rows: int) -> bool:
        """Whether so many of the last rows can be asked for at any time."""
        return len(self.ring) >= n_rows

    def recent(self, n_rows: int) -> Codes:
        """The last rows (a copy), no more of them than are remembered."""
        ring = self.ring
        return np.asarray(ring[np.arange(self.n_rows - n_rows, self.n_rows) % max(1, len(ring))])

    def accuracies_of(self, rows: Codes) -> Floats:
        """Accuracies of the labelers by these rows alone, each when it votes: by the paper's estimator."""
        rule: Rule = self.rule  # type: ignore[attr-defined]
        n_rows, n = rows.shape
        sums, votes = np.zeros((1, n_pairs(n)), np.int64), np.zeros((1, n), np.int64)
        recounted(np.ascontiguousarray(rows), rule.n_classes, sums, votes)
        estimates = np.empty((1, n))
        triplet_accuracies(sums[0], votes[0], n_rows, rule.n_classes, rule.diluted, estimates[0])
        return WindowEstimates(estimates, votes, np.array([n_rows]), rule).accuracies[0]
