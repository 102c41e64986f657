"""What is known of a panel without assuming that labelers err independently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.errors import SettingError
from driftvote.kernels.committees import Facts
from driftvote.kernels.layout import Floats


@dataclass(frozen=True)
class Known:
    """Ranges of accuracies (when voting), pair agreements and coverages; arrays of one entry a labeler, or a pair.

    Agreements are those of the agreement matrix: E[l_i l_j] with votes -1 and +1 (0 where somebody abstains), and
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

    def __len__(self) -> int:
        return len(self.names)

    @property
    def abstains(self) -> Any:
        """Who abstains at all, as a mask."""
        return self.coverage_low < 1.0

    def facts(self) -> Facts:
        """The same as kernels take it."""
        return Facts(
            self.accuracy_low,
            self.accuracy_high,
            self.agreement_low,
            self.agreement_high,
            self.coverage_low,
            self.coverage_high,
        )

    def only(self, places: Sequence[int]) -> Known:
        """The same of some of the labelers."""
        at = np.asarray(places, np.int64)
        pairs = np.ix_(at, at)
        return Known(
            tuple(self.names[place] for place in places),
            self.accuracy_low[at],
            self.accuracy_high[at],
            self.agreement_low[pairs],
            self.agreement_high[pairs],
            self.coverage_low[at],
            self.coverage_high[at],
            self.n_classes,
        )

    def places(self, members: Sequence[str | int] | None) -> list[int]:
        """Places of labelers given by name or place; all of them for None."""
        if members is None:
            return list(range(len(self)))
        found = []
        for member in members:
            if isinstance(member, str):
                if member not in self.names:
                    raise SettingError(f"there is no labeler {member!r}; there are {', '.join(self.names)}")
                found.append(self.names.index(member))
            elif 0 <= int(member) < len(self):
                found.append(int(member))
            else:
                raise SettingError(f"there is no labeler at place {member!r}; places run from 0 to {len(self) - 1}")
        if len(set(found)) < len(found) or not found:
            raise SettingError("a committee needs at least one member, and each only once")
        return found


def known(
    agreements: Any,
    *,
    tau: Any = None,
    accuracies: Any = None,
    allowance: Any = 0.0,
    coverage: Any = None,
    coverage_allowance: float = 0.0,
    names: Sequence[str] | None = None,
    n_classes: int = 2,
) -> Known:
    """Put together what is known of a panel.

    Parameters
    ----------
    agreements
        The agreement matrix (labelers x labelers), such as `model.agreements`; the diagonal is not read.
    tau
        Every labeler is right, when it votes, with probability at least 1/K + tau: one number or one a labeler.
    accuracies
        What is known better, for instance from verified labels: a number (exactly known) or a pair (at least, at
        most) for every labeler, as a sequence, or for some of them as a dict by name.
    allowance
        By how much the true agreements may differ from the given ones; a number or a matrix. With 0 they must be those
        of some distribution exactly.
    coverage, coverage_allowance
        Share of the rows on which each labeler votes (default: always), and how far it may be off.

    Examples
    --------
    >>> three = known([[1, 0.36, 0.36], [0.36, 1, 0.36], [0.36, 0.36, 1]], accuracies=[0.8, 0.8, 0.8])
    >>> three.names, three.accuracy_low.tolist()
    (('labeler_0', 'labeler_1', 'labeler_2'), [0.8, 0.8, 0.8])
    """
    matrix = np.array(agreements, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise SettingError(f"agreements must be a square table, labelers x labelers, not of shape {matrix.shape}")
    n = len(matrix)
    titles = tuple(str(name) for name in names) if names is not None else tuple(f"labeler_{i}" for i in range(n))
    if len(set(titles)) != n:
        raise SettingError(f"names must be {n} different names, one for each line of agreements, not {titles!r}")
    off = ~np.eye(n, dtype=bool)
    if not np.array_equal(matrix[off], matrix.T[off]) or not (np.abs(matrix[off]) <= 1.0).all():
        raise SettingError("agreements must be symmetric, with values from -1 to 1")
    slack = np.broadcast_to(np.asarray(allowance, np.float64), (n, n))
    if not (slack >= 0).all():
        raise SettingError("allowance must not be negative")
    low, high = _accuracy_ranges(titles, n_classes, tau, accuracies)
    share = np.ones(n) if coverage is None else np.array(coverage, np.float64)
    if share.shape != (n,) or not ((share >= 0) & (share <= 1)).all():
        raise SettingError(f"coverage must be {n} numbers from 0 to 1, one for each labeler")
    return Known(
        titles,
        low,
        high,
        np.maximum(matrix - slack, -1.0),
        np.minimum(matrix + slack, 1.0),
        np.where(share < 1.0, np.maximum(share - coverage_allowance, 0.0), 1.0),
        np.where(share < 1.0, np.minimum(share + coverage_allowance, 1.0), 1.0),
        n_classes,
    )


def _accuracy_ranges(names: tuple[str, ...], n_classes: int, tau: Any, accuracies: Any) -> tuple[Floats, Floats]:
    n = len(names)
    low, high = np.zeros(n), np.ones(n)
    if tau is not None:
        margin = np.asarray(tau, np.float64)
        if margin.ndim and margin.shape != (n,):
            raise SettingError(f"tau must be one number or {n}, one for each labeler, not of shape {margin.shape}")
        low += 1.0 / n_classes + margin
    by_name: dict[str, Any] = {}
    if isinstance(accuracies, Mapping):
        by_name = {str(name): value for name, value in accuracies.items()}
        for name in by_name:
            if name not in names:
                raise SettingError(f"accuracies names {name!r}, but the labelers are {', '.join(names)}")
    elif accuracies is not None:
        if len(accuracies) != n:
            raise SettingError(f"accuracies must hold {n} entries, one for each labeler, not {len(accuracies)}")
        by_name = dict(zip(names, accuracies, strict=True))
    for name, value in by_name.items():
        place = names.index(name)
        low[place], high[place] = accuracy_range(name, value)
    if not ((low >= 0) & (low <= high) & (high <= 1)).all():
        raise SettingError("tau must leave every accuracy between 0 and 1")
    return low, high


def accuracy_range(name: str, value: Any) -> tuple[float, float]:
    """One labeler's accuracy: a number is exact, a pair is (at least, at most).

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
