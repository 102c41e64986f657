"""Whether labelers err independently, by their agreements.

Independent errors leave agreements of rank one, C_ij = q_i q_j (q: skill, 0 for a blind guess, 1 for always right,
negative for a labeler that is wrong more often than right). The skills are fitted to all pairs at once; a pair
that agrees more than its skills explain shares errors. Pairs that stand out are removed from the fit one after the
other, so that they do not distort the skills of the other labelers.

What cannot be seen: errors that all labelers share, or half of them (a clique of half the panel looks like its good
half); anything with three labelers, whose three agreements fit any skills; with four, which of two disjoint pairs it
is. Labelers that lean to the same class agree more, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driftvote.arrays import Bools, Floats, Ints
from driftvote.core.state import agreement_matrix
from driftvote.drift.events import DriftWarning, as_lists

LEVEL = 0.01
"""Probability, for all pairs together, that independent errors make any of them stand out."""
NOTABLE = 0.05
"""Agreement beyond the expected one from which a pair is reported, however many rows prove it."""
NEAR_COPY = 0.8
"""Agreement (two classes: the same vote on 9 of 10 rows) from which a pair that stands out is nearly a copy."""
FEW = 0.75
"""Share of the panel below which its effective number of labelers is a warning."""


@dataclass(frozen=True)
class PairDependence:
    """One pair: how much it agrees, and how much of that independent errors would explain."""

    pair: tuple[str, str]
    agreement: float
    expected: float
    residual: float
    z: float  # residual over its standard error, 0 where it is unknown
    p_value: float  # for all pairs together
    stands_out: bool
    near_copy: bool


@dataclass(frozen=True)
class Dependence:
    """Dependence between labelers, by the agreements of a window."""

    labelers: tuple[str, ...]
    window: int
    skills: dict[str, float]
    pairs: tuple[PairDependence, ...]
    near_copies: tuple[tuple[str, str], ...]
    contrary: tuple[str, ...]  # vote against the others more often than with them
    effective_labelers: float | None  # None when it is unknown: three labelers, or too few rows

    @property
    def notable(self) -> list[PairDependence]:
        """Pairs that stand out, the strongest first."""
        return sorted((pair for pair in self.pairs if pair.stands_out), key=lambda pair: -abs(pair.residual))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return dict(as_lists(asdict(self)))

    def lines(self) -> list[str]:
        """Return a few sentences."""
        if self.effective_labelers is None:
            return ["dependence: unknown, there are too few labelers or rows"]
        n = len(self.labelers)
        lines = [f"dependence: {n} labelers count like {self.effective_labelers:.1f} independent ones"]
        if self.near_copies:
            lines.append(f"  near-copies: {_list([f'{a} and {b}' for a, b in self.near_copies])}")
        others = [pair for pair in self.notable if not pair.near_copy]
        pairs = [f"{pair.pair[0]} and {pair.pair[1]} ({pair.residual:+.2f})" for pair in others]
        if pairs:
            lines.append(f"  agreement beyond independent errors: {_list(pairs)}")
        if self.contrary:
            lines.append(
                f"  against the others more often than with them: {_list(list(self.contrary))}"
                " (either these or the others are wrong more often than right)"
            )
        return lines

    def warnings(self, row: int) -> list[DriftWarning]:
        """Return a warning for each pair of near copies, and one if the panel is worth few independent labelers."""
        agreement = {pair.pair: pair.agreement for pair in self.pairs}
        warnings = [DriftWarning("near copies", pair, agreement[pair], row) for pair in self.near_copies]
        worth = self.effective_labelers
        if worth is not None and worth < FEW * len(self.labelers):
            warnings.append(DriftWarning("few independent labelers", self.labelers, worth, row))
        return warnings

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _list(items: list[str], most: int = 4) -> str:
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest


def dependence(sums: Ints, votes: Ints, window: int, n_classes: int, names: Sequence[str]) -> Dependence:
    """Return the dependence in a window, from its pair sums (times K - 1, pairs in lexicographic order) and votes.

    Four labelers that are right 9 times in 10, the last of them copied, on 1,000 rows without any chance:

    >>> agreements = np.array([640, 640, 640, 640, 640, 640, 640, 640, 640, 1000])
    >>> found = dependence(agreements, np.full(5, 1000), 1000, 2, ["a", "b", "c", "d", "copy of d"])
    >>> found.near_copies, round(found.effective_labelers, 1)
    ((('d', 'copy of d'),), 3.6)
    """
    n = len(names)
    matrix = agreement_matrix(np.asarray(sums), n, window, n_classes)
    coverage = np.asarray(votes) / window
    i, j = np.triu_indices(n, 1)
    fit = _Fit(matrix[i, j], coverage, i, j, window, n_classes)
    known = n > 3 and window > 1 and fit.run()
    pairs = [_pair(fit, known, place, names) for place in range(len(i))]
    spread = np.sqrt(np.maximum(fit.skill_variance, 0.0))
    contrary = tuple(names[h] for h in range(n) if known and fit.skills[h] < -3.0 * spread[h] - 1e-9)
    return Dependence(
        labelers=tuple(names),
        window=window,
        skills={name: float(skill) for name, skill in zip(names, fit.skills, strict=True)},
        pairs=tuple(pairs),
        near_copies=tuple(pair.pair for pair in pairs if pair.near_copy),
        contrary=contrary,
        effective_labelers=_effective(fit, pairs) if known else None,
    )


def _pair(fit: _Fit, known: bool, place: int, names: Sequence[str]) -> PairDependence:
    i, j = int(fit.i[place]), int(fit.j[place])
    z = float(fit.z[place]) if known else 0.0
    residual = float(fit.deleted[place]) if known else 0.0
    p_value = min(1.0, len(fit.i) * math.erfc(abs(z) / math.sqrt(2.0)))
    out = known and p_value < LEVEL and abs(residual) >= NOTABLE
    agreement = float(fit.observed[place])
    alike = agreement >= NEAR_COPY * min(fit.coverage[i], fit.coverage[j]) > 0.0
    pair = (names[i], names[j])
    return PairDependence(
        pair, agreement, agreement - residual, residual, z, p_value, bool(out), bool(out and alike and residual > 0)
    )


def _effective(fit: _Fit, pairs: Sequence[PairDependence]) -> float:
    """Return n^2 over the sum of all correlations of errors: how many independent labelers a plain vote is worth.

    Only pairs that share errors and stand out count; the noise of the others would make any panel look dependent.
    """
    n = len(fit.coverage)
    room = np.maximum(fit.coverage - fit.skills**2, 1e-3)  # variance of a labeler's vote around its skill
    shared = 0.0
    for place, pair in enumerate(pairs):
        if pair.stands_out and pair.residual > 0.0:
            shared += min(1.0, pair.residual / math.sqrt(room[fit.i[place]] * room[fit.j[place]]))
    return n * n / (n + 2.0 * shared)


class _Fit:
    """Skills by least squares over the pairs that are used, and the residual of every pair."""

    def __init__(self, observed: Floats, coverage: Floats, i: Ints, j: Ints, window: int, n_classes: int) -> None:
        self.observed, self.coverage, self.i, self.j = observed, coverage, i, j
        self.window, self.n_classes = window, n_classes
        self.skills = _first_skills(observed, i, j, len(coverage))
        self.used: Bools = np.ones(len(i), np.bool_)
        self.z, self.deleted = np.zeros(len(i)), np.zeros(len(i))
        self.skill_variance = np.zeros(len(coverage))

    def run(self) -> bool:
        """Fit, remove what stands out most, fit again; return False when the pairs do not determine the skills."""
        if not self._differ_from_blind() or (not self._remove_near_copies() and not self._solve()):
            return False
        # Half of the pairs that the skills do not need: beyond that the panel has no independent core to compare with.
        least = len(self.i) - (len(self.i) - len(self.coverage)) // 2
        for _ in range(len(self.i)):
            out = self.used & (np.abs(self.deleted) >= NOTABLE) & self._significant()
            if not out.any():
                break
            worst = np.abs(self.z[out]).max()
            before, skills = self.used.copy(), self.skills.copy()
            # Nearly equal ones go together (copies come in cliques); of two the one that agrees more.
            drop = out & (np.abs(self.z) >= 0.9 * worst)
            if drop.sum() == 2:
                drop &= self.observed >= self.observed[drop].max() - 1e-12
            self.used &= ~drop
            if self.used.sum() < least or not self._solve():
                self.used, self.skills = before, skills
                self._solve()
                break
        return True

    def _differ_from_blind(self) -> bool:
        """Return whether some pair agrees more, or less, than labelers that guess: otherwise nothing is known."""
        both = self.coverage[self.i] * self.coverage[self.j]
        z = self.observed * np.sqrt(self.window * (self.n_classes - 1) / np.maximum(both, 1e-12))
        return any(math.erfc(abs(value) / math.sqrt(2.0)) < LEVEL / len(z) for value in z.tolist())

    def _remove_near_copies(self) -> bool:
        """Remove pairs of near-copies that the other agreements do not explain; return whether there were any."""
        alike = self.observed >= NEAR_COPY * np.minimum(self.coverage[self.i], self.coverage[self.j])
        skills = self.skills.copy()
        self.used = ~alike
        if alike.any() and self.used.sum() > len(self.coverage) and self._solve():
            self.used = ~(alike & self._significant() & (self.deleted >= NOTABLE))
            if self._solve():
                return True
        self.used, self.skills = np.ones(len(self.i), np.bool_), skills
        return False

    def _significant(self) -> Bools:
        limit = LEVEL / len(self.i)
        return np.array([math.erfc(abs(z) / math.sqrt(2.0)) < limit for z in self.z])

    def _jacobian(self) -> Floats:
        rows = np.arange(len(self.i))
        out = np.zeros((len(self.i), len(self.coverage)))
        out[rows, self.i] = self.skills[self.j]
        out[rows, self.j] = self.skills[self.i]
        return out

    def _solve(self) -> bool:
        for _ in range(100):
            slopes = self._jacobian()[self.used]
            left = (self.observed - self.skills[self.i] * self.skills[self.j])[self.used]
            normal = slopes.T @ slopes
            step = np.linalg.solve(normal + 1e-9 * np.eye(len(normal)), slopes.T @ left)
            self.skills = np.clip(self.skills + step, -1.0, 1.0)
            if np.abs(step).max() < 1e-10:
                break
        slopes = self._jacobian()
        inside = slopes[self.used]
        if np.linalg.matrix_rank(inside, tol=1e-4) < len(self.coverage):
            return False
        gain: Floats = np.linalg.solve(inside.T @ inside, inside.T).astype(
            np.float64
        )  # noise of the used pairs -> of the skills
        self._residuals(slopes, gain)
        return True

    def _residuals(self, slopes: Floats, gain: Floats) -> None:
        noise = self._noise()
        among = noise[np.ix_(self.used, self.used)]
        shift = slopes @ gain  # what noise of the used pairs does to every fitted agreement
        variance = (
            np.diag(noise)
            - 2.0 * np.einsum("pk,kp->p", shift, noise[self.used])
            + np.einsum("pk,kl,pl->p", shift, among, shift, optimize=True)
        )
        left = self.observed - self.skills[self.i] * self.skills[self.j]
        own = np.zeros(len(left))
        own[self.used] = shift[self.used, np.arange(int(self.used.sum()))]
        free = own < 1.0 - 1e-6  # a pair that its own agreement determines has nothing left to test
        error = np.sqrt(np.maximum(variance, 1e-12) / self.window)
        self.z = np.where(free, left / error, 0.0)
        deleted = left / np.where(own < 0.8, 1.0 - own, 1.0)  # where others say little of it, what is left stands
        # What the others predict for a pair is an agreement, whatever the straight line through them says.
        self.deleted = self.observed - np.clip(self.observed - deleted, -1.0, 1.0)
        self.skill_variance = np.einsum("hk,kl,hl->h", gain, among, gain, optimize=True) / self.window

    def _noise(self) -> Floats:
        """Return the covariance of the pair statistics of one row, if errors and abstentions are independent."""
        q, c, k = self.skills, self.coverage, self.n_classes
        right = (c + (k - 1) * q) / k
        spread = right + np.maximum(c - right, 0.0) / (k - 1) ** 2  # a labeler's part in products with two others
        i, j = self.i, self.j
        mean = q[i] * q[j]
        out = -np.outer(mean, mean)
        for a, other_a in ((i, j), (j, i)):
            for b, other_b in ((i, j), (j, i)):
                out += (a[:, None] == b[None, :]) * spread[a][:, None] * np.outer(q[other_a], q[other_b])
        apart = (i[:, None] != i) & (i[:, None] != j) & (j[:, None] != i) & (j[:, None] != j)
        out[apart] = 0.0
        both = c[i] * c[j]
        same = np.clip((1.0 + (k - 1) * mean / np.maximum(both, 1e-12)) / k, 0.0, 1.0)
        np.fill_diagonal(out, both * (same + (1.0 - same) / (k - 1) ** 2) - mean**2)
        return out


def _first_skills(observed: Floats, i: Ints, j: Ints, n: int) -> Floats:
    """Return skills to begin with: the first eigenvector of the agreements, with squared skills on the diagonal."""
    matrix = np.zeros((n, n))
    matrix[i, j] = matrix[j, i] = observed
    skills = np.full(n, 0.5)
    for _ in range(50):
        np.fill_diagonal(matrix, skills**2)
        values, vectors = np.linalg.eigh(matrix)
        skills = vectors[:, -1] * math.sqrt(max(float(values[-1]), 0.0))
        skills = np.clip(skills if skills.sum() >= 0 else -skills, -1.0, 1.0)
    return skills
