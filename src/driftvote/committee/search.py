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
from driftvote.kernels.committees import NO_BOUND, Carried, Facts, Proofs, Shape, carry, solve_all
from driftvote.kernels.layout import Ints

LARGEST = 9
MOST_LABELERS = 40
EXHAUSTIVE = 2**15
"""Columns of all programs together up to which every committee is looked at: ten labelers that always vote."""
_SHORTLIST = 10  # outsiders that are tried in committees of seven and nine
_EXCHANGES = 8  # rounds of exchanges at most
_SAME = 1e-9  # bounds that differ by less are the same


Part = tuple[Shape, Proofs]
"""Committees that share the shape of their program."""


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
    single, single_bound = found.best(found.facts, size=1)
    return Committee(
        members=tuple(facts.names[place] for place in sorted(best)),
        places=tuple(sorted(best)),
        bound=bound,
        best_single=facts.names[single[0]],
        single_bound=single_bound,
        n_programs=sum(len(proofs.bounds) for _, proofs in found.looked_at),
        exhaustive=found.exhaustive,
        n_contradictions=sum(int((proofs.bounds >= NO_BOUND).sum()) for _, proofs in found.looked_at),
    )


class Found:
    """Everything a search looked at, so that the proofs can be carried to new agreements."""

    def __init__(self, facts: Facts, exhaustive: bool = False) -> None:
        self.facts = facts
        self.exhaustive = exhaustive
        self.looked_at: list[Part] = []

    @cached_property
    def winner(self) -> tuple[tuple[int, ...], float]:
        """Places and bound of the best committee, once the search is over.

        Among equals: fewer members, then those that agree most with the whole panel, then the first places.
        """
        return self.best(self.facts)

    def best(self, facts: Facts, size: int | None = None) -> tuple[tuple[int, ...], float]:
        """The best committee by what the proofs say of these facts, and its bound."""
        proofs = self._carried if size is None else _flat([p for p in self.looked_at if p[1].places.shape[1] == size])
        bounds = np.empty(len(proofs.left))
        place = carry(facts, proofs, bounds)
        return tuple(member for member in proofs.places[place].tolist() if member >= 0), float(bounds[place])

    @cached_property
    def _carried(self) -> Carried:
        return _flat(self.looked_at)

    def can_carry(self, facts: Facts) -> bool:
        """Whether these facts only move the ends of the rows; who abstains, and how well, makes other columns."""
        silent, before = facts.coverage_low < 1.0, self.facts
        if (silent != (before.coverage_low < 1.0)).any():
            return False
        moved = (facts.accuracy_low != before.accuracy_low) | (facts.accuracy_high != before.accuracy_high)
        return not (moved & silent).any()


def _flat(parts: list[Part]) -> Carried:
    """The multipliers of all parts, one after the other. A single labeler never contradicts itself: some remain."""
    widest = max(proofs.places.shape[1] for _, proofs in parts)
    counts, rows, lefts, tables = [], [], [], []
    for shape, proofs in sorted(parts, key=lambda part: part[1].places.shape[1]):
        kept = np.flatnonzero(proofs.bounds < NO_BOUND)
        duals, places = proofs.duals[kept], proofs.places[kept]
        m, r = np.nonzero(duals)
        first, second = places[m, shape.first[r]], places[m, shape.second[r]]
        rows.append((shape.kinds[r], first, second, duals[m, r]))
        counts.append(np.bincount(m, minlength=len(kept)))
        lefts.append(proofs.left[kept])
        tables.append(np.pad(places, [(0, 0), (0, widest - places.shape[1])], constant_values=-1))
    start = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    kinds, firsts, seconds, multipliers = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Carried(start, kinds, firsts, seconds, multipliers, np.concatenate(lefts), np.concatenate(tables))


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
        found = Found(facts, everybody)
        for size in sizes if everybody else sizes[:2]:
            found.looked_at += self._look(facts, _all_of_size(n, size))
        if not everybody and len(sizes) > 2:
            self._grow(found, found.best(facts, size=3)[0], sizes[2:])
        return found

    def _grow(self, found: Found, best: tuple[int, ...], sizes: list[int]) -> None:
        facts, n = found.facts, len(found.facts.accuracy_low)
        ranking = list(range(n))
        for size in sizes:
            most = n if size < 7 else _SHORTLIST
            outside = [place for place in ranking if place not in best][:most]
            parts = self._look(facts, np.array([best + pair for pair in itertools.combinations(outside, 2)]))
            bound = np.inf
            for _ in range(_EXCHANGES):
                found.looked_at += parts
                other, other_bound = _best_of(parts, facts)
                if other_bound >= bound - _SAME:
                    break
                best, bound = other, other_bound
                outside = [place for place in ranking if place not in best][:most]
                swaps = [(*best[:at], newcomer, *best[at + 1 :]) for newcomer in outside for at in range(size)]
                if not swaps:
                    break
                parts = self._look(facts, np.array(swaps))
                ranking = _ranked(parts, best, n)

    def _look(self, facts: Facts, table: Ints) -> list[Part]:
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
        return parts


def _best_of(parts: list[Part], facts: Facts) -> tuple[tuple[int, ...], float]:
    found = Found(facts)
    found.looked_at = [part for part in parts if (part[1].bounds < NO_BOUND).any()]
    return found.winner if found.looked_at else ((), 1.0)


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
