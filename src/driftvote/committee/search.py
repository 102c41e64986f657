"""The search for the committee with the smallest certified error.

Only odd sizes are searched: a tie decides nothing. Where few programs suffice, every committee is solved. Otherwise:
all single labelers and all threes; then the best committee grows by two members at a time, and exchanges members for
outsiders, as long as that lowers the bound. The result is the best of all committees solved, so it is never worse than
the best single labeler.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driftvote.committee.facts import PanelFacts
from driftvote.committee.program import Programs, make_layout
from driftvote.errors import SettingError

MAX_SIZE = 9
MAX_LABELERS = 40
PATTERNS_PER_CALL = 1024
"""Programs are solved together up to this size: a call costs 1 to 2 ms, a program of three labelers 0.1 ms."""
EXHAUSTIVE_ENTRIES = 800_000
"""Every committee is solved if the constraint matrices of all of them have at most this many entries (less than a
second): those of ten labelers that always vote, or of twelve in committees of up to five."""
_SAME = 1e-9  # bounds that differ by less are equal

Members = tuple[int, ...]


@dataclass(frozen=True)
class CertifiedCommittee:
    """The committee with the smallest bound, and what the search cost."""

    members: tuple[str, ...]
    places: tuple[int, ...]
    bound: float
    best_single: str
    single_bound: float
    n_programs: int
    exhaustive: bool
    n_contradictions: int

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {**asdict(self), "members": list(self.members), "places": list(self.places)}


@dataclass(frozen=True)
class StepCertificate:
    """The committee that decided a row of a stream, and the bound on its error from the last search up to that row."""

    members: tuple[str, ...]
    bound: float
    searched_at: int  # rows seen at the time of the search; 0 before the first one
    window: int  # rows that the agreements were taken from
    allowance: float  # for the agreements of those rows

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {**asdict(self), "members": list(self.members)}


def find_committee(facts: PanelFacts, largest: int = MAX_SIZE, ties: str = "half") -> CertifiedCommittee:
    """Return the odd set of at most `largest` labelers whose majority has the smallest certified error.

    Among equal bounds: fewer members, then members that agree most with the panel, then the first places.
    `worst_case(facts, committee.members)` gives the certificate with its proof.

    >>> agreements = np.full((5, 5), 0.36)
    >>> agreements[3, 4] = agreements[4, 3] = 1.0      # two copies
    >>> committee = find_committee(PanelFacts.from_agreements(agreements, accuracies=[0.8] * 5))
    >>> committee.members, round(committee.bound, 3), round(committee.single_bound, 3)
    (('labeler_0', 'labeler_1', 'labeler_2'), 0.12, 0.2)
    """
    if not 1 <= largest <= MAX_SIZE:
        raise SettingError(f"largest must be a committee size from 1 to {MAX_SIZE}, not {largest!r}")
    if len(facts) > MAX_LABELERS:
        raise SettingError(
            f"a committee can be searched among {MAX_LABELERS} labelers at most, not {len(facts)}; leave out those"
            " that vote rarely, or pass groups="
        )
    search = _Search(facts, ties)
    exhaustive = search.run(largest)
    best, single = search.best(), search.best(size=1)
    return CertifiedCommittee(
        members=tuple(facts.names[place] for place in best),
        places=best,
        bound=search.bounds[best],
        best_single=facts.names[single[0]],
        single_bound=search.bounds[single],
        n_programs=len(search.bounds),
        exhaustive=exhaustive,
        n_contradictions=sum(math.isinf(bound) for bound in search.bounds.values()),
    )


class _Search:
    """The bounds of all committees solved so far; infinite where facts contradict each other."""

    def __init__(self, facts: PanelFacts, ties: str) -> None:
        self.facts = facts
        self.ties = ties
        self.bounds: dict[Members, float] = {}
        # Agreement of each labeler with the median one of the others: a copy that always agrees does not raise it.
        around = np.sort(facts.agreement_low + facts.agreement_high + np.diag(np.full(len(facts), np.inf)), axis=1)
        self.standing = around[:, max(0, len(facts) - 2) // 2]

    def run(self, largest: int) -> bool:
        """Solve committees of up to `largest` members; return whether all of them were solved."""
        n = len(self.facts)
        sizes = range(1, min(n, largest) + 1, 2)
        exhaustive = sum(math.comb(n, size) * self._entries(size) for size in sizes) <= EXHAUSTIVE_ENTRIES
        for size in sizes:
            if exhaustive or size <= 3:
                self.solve(itertools.combinations(range(n), size))
            elif not self.grow(size):
                break
        return exhaustive

    def _entries(self, size: int) -> int:
        """Return the number of entries of the constraint matrix of a committee, all of whose members may abstain."""
        states = 3 if self.facts.abstains.any() else 2  # of a labeler in a pattern
        rows_per_pair = 1 if self.facts.n_classes == 2 else 2
        return int(states**size) * (size * (states - 1) + math.comb(size, 2) * rows_per_pair)

    def grow(self, size: int) -> bool:
        """Add two members to the best smaller committee, then exchange members; return whether a bound fell."""
        members, smallest = self.best(size - 2), self.bounds[self.best()]
        self.solve((*members, *pair) for pair in itertools.combinations(self._outside(members), 2))
        while self.best(size) != members:
            members = self.best(size)
            kept = itertools.combinations(members, size - 1)
            self.solve((*rest, other) for rest in kept for other in self._outside(members))
        return self.bounds[members] < smallest - _SAME

    def _outside(self, members: Members) -> list[int]:
        return [place for place in range(len(self.facts)) if place not in members]

    def best(self, size: int | None = None) -> Members:
        """Return the best committee solved so far, of this size if one is given."""
        candidates = [members for members in self.bounds if size in (None, len(members))]
        least = min(self.bounds[members] for members in candidates)
        equal = [members for members in candidates if self.bounds[members] <= least + _SAME]
        # Sums in another order differ in their last bits, which must not decide.
        return min(equal, key=lambda m: (len(m), -round(float(self.standing[list(m)].sum()), 9), m))

    def solve(self, committees: Iterable[Members]) -> None:
        """Solve the programs of committees. Those with equally many members that abstain share a layout."""
        abstains = self.facts.abstains
        by_layout: dict[tuple[bool, ...], list[Members]] = {}
        for committee in committees:
            members = tuple(sorted(committee))
            if members not in self.bounds:
                ordered = tuple(sorted(members, key=lambda place: (abstains[place], place)))
                by_layout.setdefault(tuple(abstains[list(ordered)].tolist()), []).append(ordered)
        for silent, group in by_layout.items():
            layout = make_layout((1,) * len(silent), silent, self.facts)
            step = max(1, PATTERNS_PER_CALL // len(layout.right))
            for at in range(0, len(group), step):
                places = np.array(group[at : at + step])
                programs = Programs.for_labelers(self.facts, layout, places, places, np.ones(len(silent)), self.ties)
                bounds = programs.solve().bounds.tolist()
                self.bounds |= {tuple(sorted(m)): bound for m, bound in zip(places.tolist(), bounds, strict=True)}
