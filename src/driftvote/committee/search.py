"""The search for the committee with the smallest certified error.

Odd sizes only: a tie decides nothing. Where few programs are enough, every committee is looked at. Otherwise: every
single labeler, every three, then two more at a time, and after each step exchanges of a member for somebody outside
as long as they help; from seven members on only the outsiders that did best in the exchanges before are tried. The best
of all that was looked at is returned, so it is never worse than the best single labeler.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.committee.known import Known
from driftvote.committee.reduction import costs, layout
from driftvote.errors import SettingError
from driftvote.kernels.committees import NO_BOUND, Facts, Proofs, Shape, carry_all, solve_all
from driftvote.kernels.layout import Ints

LARGEST = 9
MOST_LABELERS = 40
EXHAUSTIVE = 2**15
"""Columns of all programs together up to which every committee is looked at: ten labelers that always vote."""
_SHORTLIST = 10  # outsiders that are tried in committees of seven and nine
_EXCHANGES = 8  # rounds of exchanges at most
_DIGITS = 9  # bounds that differ by less are the same


@dataclass(frozen=True)
class Committee:
    """The best committee that was found."""

    members: tuple[str, ...]
    places: tuple[int, ...]
    bound: float
    best_single: str
    single_bound: float
    n_programs: int
    exhaustive: bool
    n_contradictions: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "members": list(self.members),
            "bound": self.bound,
            "best_single": self.best_single,
            "single_bound": self.single_bound,
            "programs": self.n_programs,
            "exhaustive": self.exhaustive,
            "contradictions": self.n_contradictions,
        }


def find_committee(facts: Known, largest: int = LARGEST, ties: str = "half") -> Committee:
    """The odd set of at most `largest` labelers whose majority has the smallest certified error.

    `worst_case(facts, committee.members)` then gives the certificate with its proof.

    >>> from driftvote.committee import known
    >>> agreements = np.full((5, 5), 0.36)
    >>> agreements[3, 4] = agreements[4, 3] = 1.0      # two copies
    >>> found = find_committee(known(agreements, accuracies=[0.8] * 5))
    >>> found.members, round(found.bound, 3), round(found.single_bound, 3)
    (('labeler_0', 'labeler_1', 'labeler_2'), 0.12, 0.2)
    """
    if not 1 <= largest <= LARGEST:
        raise SettingError(f"largest must be a committee size from 1 to {LARGEST}, not {largest!r}")
    if len(facts) > MOST_LABELERS:
        raise SettingError(
            f"a committee can be searched among {MOST_LABELERS} labelers at most, not {len(facts)}; leave out those"
            " that vote rarely, or pass groups="
        )
    found = Search(facts.n_classes, ties).run(facts.facts(), largest)
    best, bound = found.best()
    single, single_bound = found.best(size=1)
    return Committee(
        members=tuple(facts.names[place] for place in best),
        places=best,
        bound=bound,
        best_single=facts.names[single[0]],
        single_bound=single_bound,
        n_programs=sum(len(proofs.bounds) for _, proofs in found.looked_at),
        exhaustive=found.exhaustive,
        n_contradictions=sum(int((proofs.bounds >= NO_BOUND).sum()) for _, proofs in found.looked_at),
    )


@dataclass(frozen=True)
class Found:
    """Everything a search looked at, so that the proofs can be carried to new agreements."""

    looked_at: list[tuple[Shape, Proofs]]
    exhaustive: bool
    abstains: Any  # who did, when the programs were made

    def best(self, size: int | None = None) -> tuple[tuple[int, ...], float]:
        """Places and bound of the smallest bound; among equals fewer members, then the first places."""
        keys = []
        for _, proofs in self.looked_at:
            if size in (None, proofs.places.shape[1]) and len(proofs.bounds):
                rounded = np.round(proofs.bounds, _DIGITS)
                for m in np.flatnonzero(rounded == rounded.min()):
                    who = tuple(sorted(proofs.places[m].tolist()))
                    keys.append((float(rounded[m]), len(who), who, float(proofs.bounds[m])))
        _, _, places, bound = min(keys)
        return places, min(bound, 1.0)

    def carried(self, facts: Facts) -> Found:
        """The same committees, with the bounds that their proofs give for these facts."""
        moved = [(shape, proofs._replace(bounds=proofs.bounds.copy())) for shape, proofs in self.looked_at]
        for shape, proofs in moved:
            carry_all(facts, shape, proofs)
        return Found(moved, self.exhaustive, self.abstains)


class Search:
    """A search under one price of ties."""

    def __init__(self, n_classes: int, ties: str = "half") -> None:
        self.n_classes = n_classes
        self.ties = ties

    def run(self, facts: Facts, largest: int) -> Found:
        """Look at committees of up to `largest` members."""
        n = len(facts.accuracy_low)
        sizes = [size for size in range(1, min(n, largest) + 1, 2)]
        base = 3 if (facts.coverage_low < 1.0).any() else 2
        if sum(math.comb(n, size) * base**size for size in sizes) <= EXHAUSTIVE:
            looked_at = [part for size in sizes for part in self._bounds(facts, itertools.combinations(range(n), size))]
            return Found(looked_at, True, facts.coverage_low < 1.0)
        looked_at = [
            part for size in sizes[:2] for part in self._bounds(facts, itertools.combinations(range(n), size))
        ]
        if len(sizes) > 1:
            best, _ = Found([p for p in looked_at if p[1].places.shape[1] == 3], False, None).best()
            self._grow(facts, best, sizes[2:], looked_at)
        return Found(looked_at, False, facts.coverage_low < 1.0)

    def _grow(
        self, facts: Facts, best: tuple[int, ...], sizes: list[int], looked_at: list[tuple[Shape, Proofs]]
    ) -> None:
        n = len(facts.accuracy_low)
        ranking = list(range(n))
        for size in sizes:
            outside = [place for place in ranking if place not in best][: n if size < 7 else _SHORTLIST]
            grown = (best + pair for pair in itertools.combinations(outside, 2))
            best, bound = self._best(facts, grown, looked_at)
            for _ in range(_EXCHANGES):
                outside = [place for place in ranking if place not in best][: n if size < 7 else _SHORTLIST]
                swaps = [
                    (*best[:at], newcomer, *best[at + 1 :]) for newcomer in outside for at in range(len(best))
                ]
                if not swaps:
                    break
                parts = self._bounds(facts, swaps)
                looked_at += parts
                ranking = _ranked(parts, best, n)
                other, other_bound = Found(parts, False, None).best()
                if round(other_bound, _DIGITS) >= round(bound, _DIGITS):
                    break
                best, bound = other, other_bound

    def _best(
        self, facts: Facts, committees: Iterable[tuple[int, ...]], looked_at: list[tuple[Shape, Proofs]]
    ) -> tuple[tuple[int, ...], float]:
        parts = self._bounds(facts, committees)
        looked_at += parts
        return Found(parts, False, None).best()

    def _bounds(self, facts: Facts, committees: Iterable[tuple[int, ...]]) -> list[tuple[Shape, Proofs]]:
        """Solve committees of one size; those with as many who abstain share the shape of their program."""
        abstains = facts.coverage_low < 1.0
        table = np.array(list(committees), np.int64)
        silent = abstains[table]
        # Members who always vote come first: committees with as many who abstain then share a layout.
        table = np.take_along_axis(table, np.argsort(silent, axis=1, kind="stable"), axis=1)
        counts = silent.sum(axis=1)
        parts = []
        for count in np.unique(counts):
            shape = self._shape(table.shape[1], int(count), bool((facts.accuracy_high < 1.0).any()))
            places = np.ascontiguousarray(table[counts == count])
            proofs = Proofs(
                places, np.empty(len(places)), np.empty(len(places)), np.empty((len(places), len(shape.kinds)))
            )
            solve_all(facts, shape, proofs)
            parts.append((shape, proofs))
        return parts

    def _shape(self, size: int, n_abstaining: int, capped: bool) -> Shape:
        abstaining = (False,) * (size - n_abstaining) + (True,) * n_abstaining
        plan = layout((1,) * size, abstaining, self.n_classes, capped)
        cost = costs(plan, np.ones(size), self.ties)
        return Shape(plan.features, plan.minus, cost, plan.kinds, plan.first, plan.second)


def _ranked(parts: list[tuple[Shape, Proofs]], best: tuple[int, ...], n: int) -> list[int]:
    """Labelers by the smallest bound of a committee that took them in."""
    smallest: Ints | Any = np.full(n, np.inf)
    for _, proofs in parts:
        for places, bound in zip(proofs.places, proofs.bounds, strict=True):
            smallest[places] = np.minimum(smallest[places], bound)
    smallest[list(best)] = -np.inf
    return np.argsort(smallest, kind="stable").tolist()
