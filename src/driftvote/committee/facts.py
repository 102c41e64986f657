"""What is known of a panel of labelers without assuming that they err independently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Bools, Floats
from driftvote.errors import SettingError

AccuracyRange = float | tuple[float, float]
"""An accuracy that is known exactly, or a pair (at least, at most)."""

ROUNDING = 1e-9
"""How far given agreements may be from symmetric: a product of matrices need not be so to the last bit."""


@dataclass(frozen=True)
class PanelFacts:
    """Ranges of accuracies (when voting), of pair agreements and of coverages.

    Accuracies and coverages have one entry per labeler, agreements one per pair. An agreement is an entry of the
    agreement matrix: E[l_i l_j] with votes -1 and +1 (0 where one of the two abstains), and
    (K P(same vote) - P(both vote)) / (K - 1) for K classes.
    """

    names: tuple[str, ...]
    accuracy_low: Floats
    accuracy_high: Floats
    agreement_low: Floats
    agreement_high: Floats
    coverage_low: Floats
    coverage_high: Floats
    n_classes: int = 2

    @classmethod
    def from_agreements(
        cls,
        agreements: npt.ArrayLike,
        *,
        tau: npt.ArrayLike | None = None,
        accuracies: Mapping[str, AccuracyRange] | Sequence[AccuracyRange] | None = None,
        allowance: npt.ArrayLike = 0.0,
        coverage: npt.ArrayLike | None = None,
        coverage_allowance: float = 0.0,
        names: Sequence[object] | None = None,
        n_classes: int = 2,
    ) -> PanelFacts:
        """Return the facts that follow from an agreement matrix and from what is known of the accuracies.

        Parameters
        ----------
        agreements
            The agreement matrix (labelers x labelers), such as `model.agreements`. The diagonal is ignored.
        tau
            Each labeler is right, when it votes, with probability at least 1/K + tau: one number, or one per labeler.
        accuracies
            Better knowledge, for instance from verified labels: a number (known exactly) or a pair (at least, at most),
            as a sequence for all labelers or as a dict by name for some of them.
        allowance
            How far the true agreements may be from the given ones: a number or a matrix. With 0 the given agreements
            must be those of some distribution exactly.
        coverage, coverage_allowance
            Share of the rows on which each labeler votes (default: all rows), and how far it may be off.

        Examples
        --------
        >>> facts = PanelFacts.from_agreements(np.full((3, 3), 0.36), accuracies=[0.8, 0.8, (0.7, 1.0)])
        >>> facts.names, facts.accuracy_low.tolist()
        (('labeler_0', 'labeler_1', 'labeler_2'), [0.8, 0.8, 0.7])
        """
        matrix = np.array(agreements, np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise SettingError(f"agreements must be a square table, labelers x labelers, not of shape {matrix.shape}")
        n = len(matrix)
        titles = tuple(f"labeler_{i}" for i in range(n)) if names is None else tuple(str(name) for name in names)
        if len(titles) != n or len(set(titles)) != n:
            raise SettingError(f"names must be {n} different names, one per row of agreements, not {titles!r}")
        pairs = ~np.eye(n, dtype=bool)
        if (
            not (np.abs(matrix - matrix.T)[pairs] <= ROUNDING).all()
            or not (np.abs(matrix[pairs]) <= 1 + ROUNDING).all()
        ):
            raise SettingError("agreements must be symmetric, with values from -1 to 1")
        matrix = np.clip((matrix + matrix.T) / 2.0, -1.0, 1.0)
        slack = np.broadcast_to(np.asarray(allowance, np.float64), (n, n))
        if not (slack >= 0).all():
            raise SettingError("allowance must not be negative")
        low, high = _accuracy_ranges(titles, n_classes, tau, accuracies)
        share = np.ones(n) if coverage is None else np.array(coverage, np.float64)
        if share.shape != (n,) or not ((share >= 0) & (share <= 1)).all():
            raise SettingError(f"coverage must be {n} numbers from 0 to 1, one per labeler")
        return cls(
            names=titles,
            accuracy_low=low,
            accuracy_high=high,
            agreement_low=np.maximum(matrix - slack, -1.0),
            agreement_high=np.minimum(matrix + slack, 1.0),
            coverage_low=np.where(share < 1.0, np.maximum(share - coverage_allowance, 0.0), 1.0),
            coverage_high=np.where(share < 1.0, np.minimum(share + coverage_allowance, 1.0), 1.0),
            n_classes=n_classes,
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def abstains(self) -> Bools:
        """Which labelers abstain at all."""
        return self.coverage_low < 1.0

    def subset(self, places: list[int]) -> PanelFacts:
        """Return the facts about some of the labelers."""
        one = ("accuracy_low", "accuracy_high", "coverage_low", "coverage_high")
        two = ("agreement_low", "agreement_high")
        arrays = {name: getattr(self, name)[places] for name in one}
        arrays |= {name: getattr(self, name)[np.ix_(places, places)] for name in two}
        return replace(self, names=tuple(self.names[place] for place in places), **arrays)

    def with_random_votes(self) -> PanelFacts:
        """Return the facts once a random vote replaces each abstention: accuracies then move towards chance."""
        chance, least, most = 1.0 / self.n_classes, self.coverage_low, self.coverage_high
        low, high = self.accuracy_low - chance, self.accuracy_high - chance
        return replace(
            self,
            accuracy_low=chance + np.where(low > 0.0, least, most) * low,
            accuracy_high=chance + np.where(high > 0.0, most, least) * high,
            coverage_low=np.ones(len(self)),
            coverage_high=np.ones(len(self)),
        )

    def places(self, members: Sequence[str | int] | None) -> list[int]:
        """Return the places of labelers given by name or place; of all labelers for None."""
        if members is None:
            return list(range(len(self)))
        places = []
        for member in members:
            if isinstance(member, str):
                if member not in self.names:
                    raise SettingError(f"there is no labeler {member!r}; there are {', '.join(self.names)}")
                places.append(self.names.index(member))
            elif 0 <= int(member) < len(self):
                places.append(int(member))
            else:
                raise SettingError(f"there is no labeler at place {member!r}; places run from 0 to {len(self) - 1}")
        if len(set(places)) < len(places) or not places:
            raise SettingError("a committee needs at least one member, and each only once")
        return places


def _accuracy_ranges(
    names: tuple[str, ...],
    n_classes: int,
    tau: npt.ArrayLike | None,
    accuracies: Mapping[str, AccuracyRange] | Sequence[AccuracyRange] | None,
) -> tuple[Floats, Floats]:
    n = len(names)
    low, high = np.zeros(n), np.ones(n)
    if tau is not None:
        margin = np.asarray(tau, np.float64)
        if margin.ndim and margin.shape != (n,):
            raise SettingError(f"tau must be one number or {n}, one per labeler, not of shape {margin.shape}")
        low += 1.0 / n_classes + margin
    if accuracies is not None and not isinstance(accuracies, Mapping):
        if len(accuracies) != n:
            raise SettingError(f"accuracies must hold {n} entries, one per labeler, not {len(accuracies)}")
        accuracies = dict(zip(names, accuracies, strict=True))
    for name, value in (accuracies or {}).items():
        if name not in names:
            raise SettingError(f"accuracies names {name!r}, but the labelers are {', '.join(names)}")
        place = names.index(name)
        low[place], high[place] = accuracy_range(name, value)
    if not ((low >= 0) & (low <= high) & (high <= 1)).all():
        raise SettingError("tau must leave every accuracy between 0 and 1")
    return low, high


def accuracy_range(name: str, value: AccuracyRange) -> tuple[float, float]:
    """Return (at least, at most) for one labeler's accuracy.

    >>> accuracy_range("a", 0.8), accuracy_range("a", (0.7, 1.0))
    ((0.8, 0.8), (0.7, 1.0))
    """
    ends = tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else (value, value)
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0.0 <= low <= high <= 1.0:
        raise SettingError(
            f"the accuracy of {name!r} must be a number from 0 to 1, or a pair (at least, at most), not {value!r}"
        )
    return low, high
