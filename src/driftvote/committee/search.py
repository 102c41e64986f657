"""The search for the committee with the smallest certified error.

Odd sizes only: a tie decides nothing. Where few programs are enough, every committee is looked at. Otherwise: every
single labeler, every three, then two more at a time, and after each step exchanges of a member for somebody outside
as long as they help; from seven members on only the outsiders that did best in the exchanges before are tried. The best
of all that was looked at is returned, so it is never worse than the best single labeler.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
_SAME = 1e-9  # bounds that differ by less are the same


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
    best, bound = found.winner
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
    facts: Facts

    @cached_property
    def winner(self) -> tuple[tuple[int, ...], float]:
        """The best of all."""
        return self.best()

    def best(self, size: int | None = None) -> tuple[tuple[int, ...], float]:
        """Places and bound of the committee with the smallest bound.

        Among equals: fewer members, then those that agree most with the whole panel, then the first places.
        """
        parts = [proofs for _, proofs in self.looked_at if size in (None, proofs.places.shape[1])]
        lowest = [float(proofs.bounds.min()) for proofs in parts]
        least = min(lowest)
        keys = []
        for proofs, low in zip(parts, lowest, strict=True):
            if low <= least + _SAME:
                near = np.flatnonzero(proofs.bounds <= least + _SAME)
                for members, bound in zip(proofs.places[near].tolist(), proofs.bounds[near].tolist(), strict=True):
                    who = tuple(sorted(members))
                    keys.append((len(who), -self._standing(who), who, bound))
        _, _, places, bound = min(keys)
        return places, min(bound, 1.0)

    @cached_property
    def _agreeing(self) -> list[float]:
        """How much each labeler agrees with everybody."""
        return (self.facts.agreement_low + self.facts.agreement_high).sum(axis=1).tolist()

    def _standing(self, places: tuple[int, ...]) -> float:
        """How much the members agree with everybody, rounded so that the order of adding does not show."""
        return round(sum(self._agreeing[place] for place in places), 9)

    def can_carry(self, facts: Facts) -> bool:
        """Whether these facts only move the ends of the rows; who abstains, and how well, makes other columns."""
        silent, before = facts.coverage_low < 1.0, self.facts
        if not np.array_equal(silent, before.coverage_low < 1.0):
            return False
        same_low = np.array_equal(facts.accuracy_low[silent], before.accuracy_low[silent])
        return same_low and np.array_equal(facts.accuracy_high[silent], before.accuracy_high[silent])

    def carried(self, facts: Facts) -> Found:
        """The same committees, with the bounds that their proofs give for these facts."""
        moved = [(shape, proofs._replace(bounds=proofs.bounds.copy())) for shape, proofs in self.looked_at]
        for shape, proofs in moved:
            carry_all(facts, shape, proofs)
        return Found(moved, self.exhaustive, facts)


class Search:
    """A search under one price of ties."""

    def __init__(self, n_classes: int, ties: str = "half") -> None:
        self.n_classes = n_classes
        self.ties = ties

    def run(self, facts: Facts, largest: int) -> Found:
        """Look at committees of up to `largest` members."""
        n = len(facts.accuracy_low)
        sizes = list(range(1, min(n, largest) + 1, 2))
        base = 3 if (facts.coverage_low < 1.0).any() else 2
        everybody = sum(math.comb(n, size) * base**size for size in sizes) <= EXHAUSTIVE
        looked_at: list[tuple[Shape, Proofs]] = []
        for size in sizes if everybody else sizes[:2]:
            self._look(facts, _all_of_size(n, size), looked_at)
        found = Found(looked_at, everybody, facts)
        if not everybody and len(sizes) > 2:
            self._grow(facts, found.best(size=3)[0], sizes[2:], looked_at)
        return found

    def _grow(
        self, facts: Facts, best: tuple[int, ...], sizes: list[int], looked_at: list[tuple[Shape, Proofs]]
    ) -> None:
        n = len(facts.accuracy_low)
        ranking = list(range(n))
        for size in sizes:
            most = n if size < 7 else _SHORTLIST
            outside = [place for place in ranking if place not in best][:most]
            grown = [best + pair for pair in itertools.combinations(outside, 2)]
            best, bound = Found(self._look(facts, np.array(grown), looked_at), False, facts).best()
            for _ in range(_EXCHANGES):
                outside = [place for place in ranking if place not in best][:most]
                swaps = [(*best[:at], newcomer, *best[at + 1 :]) for newcomer in outside for at in range(size)]
                if not swaps:
                    break
                parts = self._look(facts, np.array(swaps), looked_at)
                other, other_bound = Found(parts, False, facts).best()
                ranking = _ranked(parts, best, n)
                if other_bound >= bound - _SAME:
                    break
                best, bound = other, other_bound

    def _look(self, facts: Facts, table: Ints, looked_at: list[tuple[Shape, Proofs]]) -> list[tuple[Shape, Proofs]]:
        """Solve committees of one size; those with as many who abstain share the shape of their program."""
        abstains = facts.coverage_low < 1.0
        silent = abstains[table]
        # Members who always vote come first: committees with as many who abstain then share a layout.
        table = np.take_along_axis(table, np.argsort(silent, axis=1, kind="stable"), axis=1)
        counts = silent.sum(axis=1)
        capped = bool((facts.accuracy_high < 1.0).any())
        parts = []
        for count in np.unique(counts):
            shape = _shape(table.shape[1], int(count), capped, self.n_classes, self.ties)
            places = np.ascontiguousarray(table[counts == count])
            m, rows = len(places), len(shape.kinds)
            proofs = Proofs(places, np.empty(m), np.empty(m), np.empty((m, rows)))
            solve_all(facts, shape, proofs)
            parts.append((shape, proofs))
        looked_at += parts
        return parts


@lru_cache(maxsize=32)
def _all_of_size(n: int, size: int) -> Ints:
    return np.array(list(itertools.combinations(range(n), size)), np.int64)


@lru_cache(maxsize=128)
def _shape(size: int, n_abstaining: int, capped: bool, n_classes: int, ties: str) -> Shape:
    abstaining = (False,) * (size - n_abstaining) + (True,) * n_abstaining
    plan = layout((1,) * size, abstaining, n_classes, capped)
    cost = costs(plan, np.ones(size), ties)
    return Shape(plan.features, plan.minus, cost, plan.kinds, plan.first, plan.second)


def _ranked(parts: list[tuple[Shape, Proofs]], best: tuple[int, ...], n: int) -> list[int]:
    """Labelers by the smallest bound of a committee that took them in."""
    smallest = np.full(n, np.inf)
    for _, proofs in parts:
        for places, bound in zip(proofs.places, proofs.bounds, strict=True):
            smallest[places] = np.minimum(smallest[places], bound)
    smallest[list(best)] = -np.inf
    return np.argsort(smallest, kind="stable").tolist()
