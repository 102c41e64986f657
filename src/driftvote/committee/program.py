"""The worst-case program of the paper's last appendix: the largest error of a vote, whatever the dependence.

Variables are the probabilities of the patterns (who is right, who is wrong, who abstains). Constraints: the accuracy of
each labeler and the agreement of each pair lie in their ranges, and the probabilities add up to one. Objective: the
probability that the vote is wrong. Mazzetto et al., AISTATS 2025, "Relaxing the Conditional Independence Assumption".

Symmetry reduction: labelers that can be exchanged without changing the program form a *cluster*. Averaging a solution
over such exchanges changes neither constraints nor objective, so only *how many* of a cluster are right or wrong
matters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Floats, Ints
from driftvote.committee.facts import PanelFacts
from driftvote.errors import ContradictionError, DriftvoteError, MissingExtraError, SettingError

MAX_PATTERNS = 2**14
"""Largest number of patterns in one program: 14 labelers that always vote (some seconds), or 8 that may abstain."""

TIES = {"half": 0.5, "error": 1.0, "right": 0.0}
"""What a tied row counts: a coin toss, an error, or nothing (the paper's formula for even sets)."""

_PENALTY = 100.0  # far above any sum of multipliers (about 6), so that only contradictions pay it


@dataclass(frozen=True)
class Multiplier:
    """One line of the proof: a constraint, its range, and how much the bound depends on it."""

    about: str
    multiplier: float
    low: float
    high: float


@dataclass(frozen=True)
class Certificate:
    """The largest error that a vote can have, whatever the dependence between labelers.

    Attributes
    ----------
    members
        The labelers that vote.
    bound
        The error never exceeds this while the facts hold. The multipliers prove it for every pattern.
    value
        The error under the worst distribution; equal to the bound up to rounding.
    if_independent
        The error if labelers with the smallest accuracies allowed erred independently. Not guaranteed.
    ties
        What a tied row counts: "half", "error" or "right".
    facts
        The accuracies, agreements and coverages behind the bound.
    patterns, masses
        The worst distribution: one line per pattern with 1 for right, -1 for wrong, 0 for abstaining (a column for each
        labeler of `facts`), and its probability. Patterns that differ by an exchange of interchangeable labelers
        have the same probability and are listed once, with the sum.
    """

    members: tuple[str, ...]
    bound: float
    value: float
    if_independent: float
    ties: str
    facts: PanelFacts
    patterns: Ints
    masses: Floats
    proof: tuple[Multiplier, ...]
    n_columns: int

    def to_dict(self) -> dict[str, Any]:
        """Return bound and proof as plain values."""
        return {
            "members": list(self.members),
            "bound": self.bound,
            "value": self.value,
            "if_independent": self.if_independent,
            "ties": self.ties,
            "patterns": self.n_columns,
            "proof": [asdict(line) for line in self.proof],
        }

    def __str__(self) -> str:
        vote = f"the majority of {', '.join(self.members)}" if len(self.members) > 1 else f"{self.members[0]} alone"
        return (
            f"{vote} is wrong on at most {self.bound:.1%} of the rows, whatever the dependence"
            f" ({self.if_independent:.1%} if errors were independent)"
        )


def worst_case(
    facts: PanelFacts,
    members: Sequence[str | int] | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    ties: str = "half",
    whole_panel: bool = False,
) -> Certificate:
    """Return the largest error of the majority of `members`, with a proof and the distribution that attains it.

    Parameters
    ----------
    facts
        What is known of the panel.
    members
        Names or places of the labelers that vote; default all.
    weights
        The weight of each member's vote; default all the same.
    ties
        What a tied row counts: "half" (a coin toss, or a row without a label), "error", or "right" (the paper's
        formula, which counts rows with fewer than half of the labelers right).
    whole_panel
        Also use the accuracies and agreements of labelers that do not vote. Never looser; the program then has a column
        for every pattern of the whole panel.

    Examples
    --------
    Three labelers that are right 8 times in 10 and agree as independent ones would:

    >>> print(worst_case(PanelFacts.from_agreements(np.full((3, 3), 0.36), accuracies=[0.8] * 3)))
    the majority of labeler_0, labeler_1, labeler_2 is wrong on at most 12.0% of the rows, whatever the dependence (10.4% if errors were independent)
    """  # noqa: E501 (the line that is printed)
    voting = facts.places(members)
    panel = facts if whole_panel else facts.subset(voting)
    power = np.zeros(len(panel))
    power[voting if whole_panel else slice(None)] = _check_weights(weights, len(voting))
    clusters = _find_clusters(panel, power)
    heads = np.array([cluster[0] for cluster in clusters])
    tails = np.array([cluster[-1] for cluster in clusters])
    layout = make_layout(tuple(map(len, clusters)), tuple(panel.abstains[heads].tolist()), panel)
    programs = Programs.for_labelers(panel, layout, heads[None, :], tails[None, :], power[heads], ties)
    solved = programs.solve()
    if np.isinf(solved.bounds[0]):
        raise ContradictionError(_explain_contradiction(programs, panel))
    used = np.flatnonzero(solved.masses[0] > 0)
    return Certificate(
        members=tuple(facts.names[place] for place in voting),
        bound=float(solved.bounds[0]),
        value=float(solved.masses[0] @ programs.cost),
        if_independent=_independent_error(programs, panel, heads),
        ties=ties,
        facts=panel,
        patterns=_expand(layout, clusters, used),
        masses=solved.masses[0, used],
        proof=_proof(programs, panel, solved.duals[0]),
        n_columns=len(programs.cost),
    )


def _check_weights(weights: npt.ArrayLike | None, n: int) -> Floats:
    power = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    if power.shape != (n,) or not (np.isfinite(power) & (power >= 0)).all() or not power.any():
        raise SettingError(f"weights must be {n} numbers, none negative and not all 0, one per member")
    return power


def _find_clusters(facts: PanelFacts, weights: Floats) -> list[list[int]]:
    """Return the labelers in clusters that can be exchanged without changing the program."""
    ranges = np.stack([facts.accuracy_low, facts.accuracy_high, facts.coverage_low, facts.coverage_high, weights])
    agreements = np.stack([facts.agreement_low, facts.agreement_high])

    def interchangeable(i: int, j: int) -> bool:
        others = [k for k in range(len(facts)) if k not in (i, j)]
        same_agreements = np.array_equal(agreements[:, i, others], agreements[:, j, others])
        return np.array_equal(ranges[:, i], ranges[:, j]) and same_agreements

    clusters: list[list[int]] = []
    for i in range(len(facts)):
        home = next((cluster for cluster in clusters if interchangeable(cluster[0], i)), None)
        if home is None:
            clusters.append([i])
        else:
            home.append(i)
    return clusters


# -- columns and rows ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramLayout:
    """Columns (patterns) and rows (constraints) for clusters of given sizes, before numbers are filled in."""

    sizes: tuple[int, ...]
    right: Ints  # (columns, clusters): how many of the cluster are right
    wrong: Ints
    kinds: npt.NDArray[np.str_]  # (rows,): what the row is about
    first: Ints  # (rows,): cluster
    second: Ints  # (rows,): the other cluster of a pair; the same one for a pair within a cluster
    features: Floats  # (rows, columns)
    votes: Floats  # (rows, columns): subtracted `ratio` times, for accuracies of labelers that abstain


def make_layout(sizes: tuple[int, ...], abstains: tuple[bool, ...], facts: PanelFacts) -> ProgramLayout:
    """Return the layout for clusters of these sizes, some of which may abstain."""
    # Without an upper bound on any accuracy, labelers that abstain need no row for it.
    return _cached_layout(sizes, abstains, facts.n_classes, bool((facts.accuracy_high < 1.0).any()))


@lru_cache(maxsize=128)
def _cached_layout(sizes: tuple[int, ...], abstains: tuple[bool, ...], n_classes: int, capped: bool) -> ProgramLayout:
    shapes = list(zip(sizes, abstains, strict=True))
    count = math.prod((size + 1) * (size + 2) // 2 if may else size + 1 for size, may in shapes)
    if count > MAX_PATTERNS:
        raise SettingError(
            f"{sum(sizes)} labelers have {count:,} patterns of right and wrong, more than the {MAX_PATTERNS:,} that one"
            " program can have; use find_committee, which looks at committees of up to 9"
        )
    states = [
        [(r, w) for r in range(size + 1) for w in range(size - r + 1) if may or r + w == size] for size, may in shapes
    ]
    table = np.array(list(itertools.product(*states)), np.int64).reshape(count, len(sizes), 2)
    right, wrong = table[:, :, 0], table[:, :, 1]
    rows = []
    for b, may in enumerate(abstains):
        kinds = ["accuracy, low", *(["accuracy, high"] if capped else []), "coverage"] if may else ["accuracy"]
        rows += [(kind, b, b) for kind in kinds]
    for b, c in itertools.combinations_with_replacement(range(len(sizes)), 2):
        if b != c or sizes[b] > 1:
            kinds = ["agreement"] if n_classes == 2 else ["agreement, low", "agreement, high"]
            rows += [(kind, b, c) for kind in kinds]
    features, votes = np.zeros((len(rows), count)), np.zeros((len(rows), count))
    for row, (kind, b, c) in enumerate(rows):
        if kind.startswith("agreement"):
            features[row] = _agreement_feature(kind, table, sizes, (b, c), n_classes)
            continue
        share = (right[:, b] + wrong[:, b]) / sizes[b]
        features[row] = share if kind == "coverage" else right[:, b] / sizes[b]
        votes[row] = share if kind in ("accuracy, low", "accuracy, high") else 0.0
    names, first, second = zip(*rows, strict=True)
    return ProgramLayout(sizes, right, wrong, np.array(names), np.array(first), np.array(second), features, votes)


def _agreement_feature(kind: str, table: Ints, sizes: tuple[int, ...], pair: tuple[int, int], n_classes: int) -> Floats:
    """Return the agreement of a pair in each pattern, averaged over the pairs of two clusters.

    Two labelers that are right agree; a right and a wrong one disagree. Two that are wrong agree when there are two
    classes. With more they may or may not agree: the upper end counts them as different, the lower end as equal.
    """
    b, c = pair

    def share_of_pairs(counts: Ints) -> Floats:
        if b == c:
            return counts[:, b] * (counts[:, b] - 1) / (sizes[b] * (sizes[b] - 1))
        return counts[:, b] * counts[:, c] / (sizes[b] * sizes[c])

    right, wrong = table[:, :, 0], table[:, :, 1]
    same = share_of_pairs(right) + (0.0 if kind == "agreement, high" else share_of_pairs(wrong))
    return (n_classes * same - share_of_pairs(right + wrong)) / (n_classes - 1)


# -- programs and their solutions ------------------------------------------------------------------


@dataclass(frozen=True)
class Solutions:
    """Solutions of several programs."""

    masses: Floats  # (programs, columns): the worst distribution
    duals: Floats  # (programs, rows): the multipliers
    bounds: Floats  # (programs,): proved by the multipliers over every column; infinite where the rows contradict


@dataclass(frozen=True)
class Programs:
    """Programs with the same layout: maximise E[cost] over distributions with low <= E[features] <= high."""

    layout: ProgramLayout
    cost: Floats  # (columns,)
    first: Ints  # (programs, rows): the labeler that the row is about
    second: Ints  # (programs, rows): the other labeler of a pair
    features: Floats  # (programs, rows, columns)
    low: Floats  # (programs, rows)
    high: Floats

    @classmethod
    def for_labelers(
        cls, facts: PanelFacts, layout: ProgramLayout, heads: Ints, tails: Ints, weights: Floats, ties: str
    ) -> Programs:
        """Fill in the numbers. `heads` and `tails` (programs, clusters): the first and last labeler of each cluster."""
        if ties not in TIES:
            raise SettingError(f"ties must be 'half', 'error' or 'right', not {ties!r}")
        # With more than two classes all wrong votes fall on one class: the worst that can happen.
        margin = (layout.right - layout.wrong) @ weights
        near = 1e-12 * max(1.0, float(weights.sum()))
        cost = np.where(margin < -near, 1.0, np.where(margin <= near, TIES[ties], 0.0))
        i, j = heads[:, layout.first], tails[:, layout.second]
        low, high, ratio = np.full(i.shape, -1.0), np.full(i.shape, 1.0), np.zeros(i.shape)
        for kind in np.unique(layout.kinds):
            at = layout.kinds == kind
            a, b = i[:, at], j[:, at]
            if kind == "accuracy":
                low[:, at], high[:, at] = facts.accuracy_low[a], facts.accuracy_high[a]
            elif kind == "accuracy, low":  # right - accuracy x votes >= 0
                low[:, at], ratio[:, at] = 0.0, facts.accuracy_low[a]
            elif kind == "accuracy, high":
                high[:, at], ratio[:, at] = 0.0, facts.accuracy_high[a]
            elif kind == "coverage":
                low[:, at], high[:, at] = facts.coverage_low[a], facts.coverage_high[a]
            if kind in ("agreement", "agreement, low"):
                low[:, at] = facts.agreement_low[a, b]
            if kind in ("agreement", "agreement, high"):
                high[:, at] = facts.agreement_high[a, b]
        features = layout.features - ratio[:, :, None] * layout.votes
        return cls(layout, cost, i, j, features, low, high)

    def solve(self) -> Solutions:
        """Solve all programs in one call, as one linear program with a block for each.

        The variables of a block: the columns; an artificial column in the middle of all ranges, whose mass tells
        whether the rows contradict each other, so that a contradiction does not spoil the other blocks; E[features].
        """
        require_solver()
        from scipy.sparse import block_diag

        low, high = self.low, self.high
        count, n_rows = low.shape
        n_columns = len(self.cost) + 1
        body = np.zeros((count, 1 + n_rows, n_columns + n_rows))
        body[:, 0, :n_columns] = 1.0
        body[:, 1:, : n_columns - 1] = self.features
        body[:, 1:, n_columns - 1] = (low + high) / 2.0
        body[:, 1:, n_columns:] = -np.eye(n_rows)
        cost = np.concatenate([-self.cost, [_PENALTY], np.zeros(n_rows)])
        sums = np.concatenate([[1.0], np.zeros(n_rows)])
        ranges = np.zeros((count, n_columns + n_rows, 2))
        ranges[:, :n_columns, 1] = np.inf
        ranges[:, n_columns:] = np.stack([low, high], axis=-1)
        solved = _call_solver(
            np.tile(cost, count),
            A_eq=block_diag(list(body), format="csc"),
            b_eq=np.tile(sums, count),
            bounds=ranges.reshape(-1, 2),
        )
        masses = np.maximum(solved.x.reshape(count, -1)[:, :n_columns], 0.0)
        masses /= masses.sum(axis=1, keepdims=True)
        duals = -solved.eqlin.marginals.reshape(count, -1)[:, 1:]
        # Weak duality: any multipliers prove a bound by arithmetic alone, whatever the tolerances of the solver.
        left = (self.cost - np.einsum("pr,prc->pc", duals, self.features)).max(axis=1)
        bounds = np.clip(left + np.maximum(duals * low, duals * high).sum(axis=1), 0.0, 1.0)
        return Solutions(masses[:, :-1], duals, np.where(masses[:, -1] <= 1e-7, bounds, np.inf))


def require_solver() -> Any:
    """Return SciPy's `linprog`, or say how to install it."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        raise MissingExtraError(
            "the worst-case program needs SciPy's solver; install it with pip install 'driftvote[lp]'"
        ) from None
    return linprog


def _call_solver(cost: Floats, **program: Any) -> Any:
    """Minimise with HiGHS; where it gives up at tight tolerances, with its usual ones."""
    linprog = require_solver()
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for options in (tight, {}):
        solved = linprog(cost, method="highs", options=options, **program)
        if solved.x is not None:
            return solved
    raise DriftvoteError(f"the solver failed: {solved.message}")


# -- certificates ----------------------------------------------------------------------------------


def _row_title(programs: Programs, panel: PanelFacts, row: int) -> str:
    kind, i, j = programs.layout.kinds[row], programs.first[0, row], programs.second[0, row]
    if kind.startswith("agreement"):
        return f"agreement of {panel.names[i]} and {panel.names[j]}"
    what = "coverage" if kind == "coverage" else "accuracy"
    return f"{what} of {panel.names[i]}" + (", from above" if kind == "accuracy, high" else "")


def _proof(programs: Programs, panel: PanelFacts, duals: Floats) -> tuple[Multiplier, ...]:
    lines = [
        Multiplier(
            _row_title(programs, panel, row),
            float(duals[row]),
            float(programs.low[0, row]),
            float(programs.high[0, row]),
        )
        for row in np.flatnonzero(np.abs(duals) > 1e-9).tolist()
    ]
    return tuple(sorted(lines, key=lambda line: -abs(line.multiplier)))


def _explain_contradiction(programs: Programs, panel: PanelFacts) -> str:
    """Return a message with the smallest amount by which all rows must give way, and the rows in conflict."""
    features, low, high = programs.features[0], programs.low[0], programs.high[0]
    n_rows, n_columns = features.shape
    solved = _call_solver(
        np.concatenate([np.zeros(n_columns), [1.0]]),
        A_ub=np.hstack([np.vstack([features, -features]), np.full((2 * n_rows, 1), -1.0)]),
        b_ub=np.concatenate([high, -low]),
        A_eq=np.concatenate([np.ones(n_columns), [0.0]])[None, :],
        b_eq=np.ones(1),
    )
    duals = solved.ineqlin.marginals[:n_rows] - solved.ineqlin.marginals[n_rows:]
    titles = list(
        dict.fromkeys(_row_title(programs, panel, row) for row in np.flatnonzero(np.abs(duals) > 1e-7).tolist())
    )
    shown = ", ".join(titles[:6]) + (", ..." if len(titles) > 6 else "")
    return (
        f"no votes can have these accuracies and agreements together ({shown}): they miss each other by"
        f" {solved.x[-1]:.2g}; allow for the estimation error with allowance= of at least that much, or lower tau or"
        " the accuracies"
    )


def _expand(layout: ProgramLayout, clusters: list[list[int]], columns: Ints) -> Ints:
    """Return columns as patterns of single labelers; within a cluster the first ones are right, the last ones wrong."""
    patterns = np.zeros((len(columns), sum(layout.sizes)), np.int64)
    for b, cluster in enumerate(clusters):
        place = np.arange(len(cluster))
        is_right = place < layout.right[columns, b, None]
        is_wrong = place >= len(cluster) - layout.wrong[columns, b, None]
        patterns[:, cluster] = is_right.astype(np.int64) - is_wrong
    return patterns


def _independent_error(programs: Programs, panel: PanelFacts, heads: Ints) -> float:
    """Return E[cost] if labelers of the smallest accuracies allowed erred and abstained independently."""
    masses = np.ones(len(programs.cost))
    for b, size in enumerate(programs.layout.sizes):
        p = panel.accuracy_low[heads[b]]
        c = (panel.coverage_low[heads[b]] + panel.coverage_high[heads[b]]) / 2.0
        right, wrong = programs.layout.right[:, b], programs.layout.wrong[:, b]
        ways = [
            math.comb(size, r) * math.comb(size - r, w) for r, w in zip(right.tolist(), wrong.tolist(), strict=True)
        ]
        masses *= ways * (c * p) ** right * (c * (1 - p)) ** wrong * (1 - c) ** (size - right - wrong)
    return float(masses @ programs.cost)
