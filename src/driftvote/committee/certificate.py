"""A certified error: the bound, the distribution that attains it, and the multipliers that prove it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.committee.known import Known
from driftvote.committee.reduction import MOST_COLUMNS, Layout
from driftvote.errors import SettingError
from driftvote.kernels.committees import ACCURACY, ACCURACY_HIGH, ACCURACY_LOW, COVERAGE
from driftvote.kernels.layout import Floats, Ints


@dataclass(frozen=True)
class Multiplier:
    """One line of the proof: a constraint that matters, its range, and how much the bound leans on it."""

    about: str
    multiplier: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"about": self.about, "multiplier": self.multiplier, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Certificate:
    """The largest error that a vote can have, whatever the dependence between labelers.

    Attributes
    ----------
    members
        Who votes.
    bound
        The error never exceeds this while the facts hold: proved by the multipliers, over every pattern.
    value
        The error under the worst distribution that was found; equal to the bound up to rounding.
    if_independent
        The error if labelers with the smallest accuracies allowed erred independently: what the bound does
        not promise.
    ties
        What a tied row counts: "half", "error" or "right".
    facts
        The accuracies, agreements and coverages that it rests on.
    """

    members: tuple[str, ...]
    bound: float
    value: float
    if_independent: float
    ties: str
    facts: Known
    blocks: tuple[tuple[int, ...], ...]
    right: Ints  # (patterns, blocks): how many of a block are right, in the worst distribution
    wrong: Ints
    masses: Floats
    duals: Floats
    low: Floats
    high: Floats
    proof: tuple[Multiplier, ...]
    n_columns: int

    def worst_distribution(self) -> tuple[Ints, Floats]:
        """Patterns (1 right, -1 wrong, 0 abstains; a column for each labeler) and their probabilities."""
        patterns: list[list[int]] = []
        masses: list[float] = []
        for right, wrong, mass in zip(self.right.tolist(), self.wrong.tolist(), self.masses.tolist(), strict=True):
            sizes = [len(block) for block in self.blocks]
            ways = [_arrangements(s, r, w) for s, r, w in zip(sizes, right, wrong, strict=True)]
            count = math.prod(len(way) for way in ways)
            if len(patterns) + count > MOST_COLUMNS:
                raise SettingError(
                    "the worst distribution has too many patterns to list; read `right`, `wrong`, `blocks`"
                )
            for choice in itertools.product(*ways):
                pattern = [0] * len(self.facts)
                for block, states in zip(self.blocks, choice, strict=True):
                    for labeler, state in zip(block, states, strict=True):
                        pattern[labeler] = state
                patterns.append(pattern)
                masses.append(mass / count)
        return np.array(patterns, np.int64), np.array(masses)

    def to_dict(self) -> dict[str, Any]:
        """All that a page or a log needs, in plain values."""
        return {
            "members": list(self.members),
            "bound": self.bound,
            "value": self.value,
            "if_independent": self.if_independent,
            "ties": self.ties,
            "patterns": self.n_columns,
            "proof": [line.to_dict() for line in self.proof],
        }

    def __str__(self) -> str:
        who = f"the majority of {', '.join(self.members)}" if len(self.members) > 1 else f"{self.members[0]} alone"
        return (
            f"{who} is wrong on at most {self.bound:.1%} of the rows, whatever the dependence"
            f" ({self.if_independent:.1%} if errors were independent)"
        )


def _arrangements(size: int, right: int, wrong: int) -> list[tuple[int, ...]]:
    """All ways in which so many of a block are right and wrong.

    >>> _arrangements(2, 1, 1)
    [(-1, 1), (1, -1)]
    """
    states = (1,) * right + (-1,) * wrong + (0,) * (size - right - wrong)
    return sorted(set(itertools.permutations(states))) if size <= 8 else _by_choice(size, right, wrong)


def _by_choice(size: int, right: int, wrong: int) -> list[tuple[int, ...]]:
    found = []
    for chosen in itertools.combinations(range(size), right):
        rest = [place for place in range(size) if place not in chosen]
        for failed in itertools.combinations(rest, wrong):
            found.append(tuple(1 if p in chosen else -1 if p in failed else 0 for p in range(size)))
            if len(found) > MOST_COLUMNS:
                return found  # too many to list; the caller says so
    return found


def independent_error(shape: Layout, cost: Floats, accuracy: Floats, coverage: Floats) -> float:
    """E[cost] if labelers of these accuracies and coverages erred and abstained independently, block by block."""
    masses = np.ones(len(cost))
    for b, size in enumerate(shape.sizes):
        p, c = float(accuracy[b]), float(coverage[b])
        table = np.zeros((size + 1, size + 1))
        for r in range(size + 1):
            for w in range(size - r + 1):
                ways = math.comb(size, r) * math.comb(size - r, w)
                table[r, w] = ways * (c * p) ** r * (c * (1 - p)) ** w * (1 - c) ** (size - r - w)
        masses *= table[shape.right[:, b], shape.wrong[:, b]]
    return float(masses @ cost)


def words_of(kind: int, i: str, j: str) -> str:
    """What a row of the program is about."""
    if kind in (ACCURACY, ACCURACY_LOW):
        return f"accuracy of {i}"
    if kind == ACCURACY_HIGH:
        return f"accuracy of {i}, from above"
    if kind == COVERAGE:
        return f"coverage of {i}"
    return f"agreement of {i} and {j}"
