"""The parts of a report about labelers that depend on each other: the certified committee, and shared errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftvote.agreements import n_pairs
from driftvote.dependence import Dependence as Found
from driftvote.dependence import PairDependence, dependence
from driftvote.kernels.agreements import recount
from driftvote.kernels.layout import Codes
from driftvote.models.certified import StepCertificate
from driftvote.report.context import Committee, Dependence, NearCopy

KEPT = 8192
"""Rows at the end of the stream that dependence is looked for in, if the last window is not shorter."""

MOST_LABELERS = 30
"""The pairs of more take seconds."""


class LastRows:
    """The last rows of a stream, as they came."""

    def __init__(self) -> None:
        self._parts: list[Codes] = []

    def add(self, votes: Codes) -> None:
        """Take rows; what is too old is dropped."""
        self._parts.append(votes[-KEPT:].copy())
        while sum(map(len, self._parts[1:])) >= KEPT:
            self._parts.pop(0)

    def rows(self, n_labelers: int, window: int) -> Codes:
        """The rows of the last window, or all that are kept where the model has none."""
        padded = [np.pad(p, ((0, 0), (0, n_labelers - p.shape[1])), constant_values=-1) for p in self._parts]
        whole = np.concatenate(padded)[-KEPT:] if padded else np.zeros((0, n_labelers), np.int8)
        return np.ascontiguousarray(whole[-window:] if window > 1 else whole)


def committee_of(certificate: StepCertificate | None) -> Committee | None:
    """The committee of the last row."""
    if certificate is None:
        return None
    note = (
        f"Whatever the dependence between labelers, if their accuracies are what the settings say: searched at row"
        f" {certificate.searched_at:,} (counting from 1) from {certificate.window:,} rows, agreements within"
        f" {certificate.allowance:.3f}."
    )
    return Committee(list(certificate.members), certificate.bound, note)


def dependence_of(rows: Codes, n_classes: int, labelers: Sequence[str]) -> Dependence | None:
    """What the agreements of these rows say; None where nothing can be told."""
    n = len(labelers)
    if not 3 < n <= MOST_LABELERS or len(rows) < 2:
        return None
    sums, votes = np.zeros((1, n_pairs(n)), np.int64), np.zeros((1, n), np.int64)
    recount(rows, n_classes, np.array([len(rows)]), sums, votes)
    found = dependence(sums[0], votes[0], len(rows), n_classes, labelers)
    if found.effective_labelers is None:
        return None
    copies = [_near_copy(pair, rows, found, n_classes) for pair in found.pairs if pair.near_copy]
    said = [line.strip() for line in found.lines()[1:] if not line.strip().startswith("near-copies")]
    note = f"From the agreements of the last {len(rows):,} rows. " + " ".join(
        f"{line[:1].upper()}{line[1:]}." for line in said
    )
    return Dependence(round(found.effective_labelers, 2), copies, note.strip())


def sentences(found: Dependence | None) -> list[str]:
    """What belongs among the findings."""
    if found is None or not found.near_copies:
        return []
    pairs = ", ".join(f"{copy.first} and {copy.second}" for copy in found.near_copies[:3])
    return [f"Nearly copies: {pairs}. The panel counts like {found.effective_labelers:.1f} independent labelers."]


def _near_copy(pair: PairDependence, rows: Codes, found: Found, n_classes: int) -> NearCopy:
    i, j = (found.labelers.index(name) for name in pair.pair)
    both = (rows[:, i] >= 0) & (rows[:, j] >= 0)
    share = float((rows[both, i] == rows[both, j]).mean())
    expected: Any = (1.0 + (n_classes - 1) * pair.expected / float(both.mean())) / n_classes
    return NearCopy(*pair.pair, round(share, 4), round(min(1.0, max(0.0, expected)), 4))
