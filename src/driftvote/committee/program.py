"""The worst-case program of the paper's last appendix: the largest error of a vote, whatever the dependence.

Variables are the probabilities of the patterns of right and wrong. Constraints: the accuracy of each labeler and the
agreement of each pair lie in their ranges, probabilities add up to one. Objective: the probability that the vote is
wrong. Mazzetto et al., AISTATS 2025, "Relaxing the Conditional Independence Assumption".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftvote.committee.certificate import Certificate, Multiplier, independent_error, words_of
from driftvote.committee.known import Known
from driftvote.committee.reduction import Layout, blocks_of, costs, layout, row_ends
from driftvote.committee.solver import Contradiction, maximise
from driftvote.errors import ContradictionError, SettingError
from driftvote.kernels.layout import Floats, Ints


def worst_case(
    facts: Known,
    members: Sequence[str | int] | None = None,
    *,
    weights: Any = None,
    ties: str = "half",
    whole_panel: bool = False,
) -> Certificate:
    """The largest error of the majority of `members`, with a proof and the distribution that attains it.

    Parameters
    ----------
    facts
        What is known: `known(...)`.
    members
        Names or places of those who vote; default everybody.
    weights
        What the vote of each member counts, for a weighted vote; default all the same.
    ties
        What a tied row counts: "half" (a coin toss; a row without a label), "error", or "right" (the paper's
        formula, which asks for fewer than half of the labelers being right).
    whole_panel
        Let the accuracies and agreements of those who do not vote restrict the worst case too. Never looser; the
        program then has a column for every pattern of the whole panel.

    Examples
    --------
    Three that are right 8 times in 10 and agree as independent ones would:

    >>> from driftvote.committee import known
    >>> three = known([[1, 0.36, 0.36], [0.36, 1, 0.36], [0.36, 0.36, 1]], accuracies=[0.8] * 3)
    >>> print(worst_case(three))
    the majority of labeler_0, labeler_1, labeler_2 is wrong on at most 12.0% of the rows, whatever the dependence (10.4% if errors were independent)
    """  # noqa: E501 (the sentence that is printed)
    voting = facts.places(members)
    panel = facts if whole_panel else facts.only(voting)
    power = np.zeros(len(panel))
    power[voting if whole_panel else slice(None)] = _powers(weights, len(voting))
    blocks = blocks_of(panel, power)
    shape = _layout_of(panel, blocks)
    heads = np.array([block[0] for block in blocks])
    cost = costs(shape, power[heads], ties)
    i, j = _labelers_of_rows(shape, blocks)
    low, high, ratio = row_ends(panel, shape.kinds, i, j)
    solved = maximise(shape.filled(ratio), cost, low, high)
    if isinstance(solved, Contradiction):
        raise ContradictionError(_contradiction(solved, panel, shape, i, j))
    middle = (panel.coverage_low + panel.coverage_high) / 2.0
    return Certificate(
        members=tuple(facts.names[place] for place in voting),
        bound=min(1.0, max(0.0, solved.bound)),
        value=solved.value,
        if_independent=independent_error(shape, cost, panel.accuracy_low[heads], middle[heads]),
        ties=ties,
        facts=panel,
        blocks=tuple(tuple(block) for block in blocks),
        right=shape.right[solved.columns],
        wrong=shape.wrong[solved.columns],
        masses=solved.masses,
        duals=solved.duals,
        low=low,
        high=high,
        proof=_proof(panel, shape, (i, j), solved.duals, (low, high)),
        n_columns=shape.features.shape[1],
    )


def _powers(weights: Any, n: int) -> Floats:
    power = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    if power.shape != (n,) or not (np.isfinite(power) & (power >= 0)).all() or not power.any():
        raise SettingError(f"weights must be {n} numbers, none negative and not all 0, one for each member")
    return power


def _layout_of(panel: Known, blocks: list[list[int]]) -> Layout:
    heads = [block[0] for block in blocks]
    abstaining = tuple(bool(panel.abstains[head]) for head in heads)
    return layout(tuple(len(block) for block in blocks), abstaining, panel.n_classes)


def _labelers_of_rows(shape: Layout, blocks: list[list[int]]) -> tuple[Ints, Ints]:
    """Labelers whose numbers fill each row: the first of a block, and the second for a pair within it."""
    i = np.array([blocks[b][0] for b in shape.first])
    j = np.array([blocks[c][-1] for c in shape.second])
    return i, j


def _proof(
    panel: Known, shape: Layout, pair: tuple[Ints, Ints], duals: Floats, ends: tuple[Floats, Floats]
) -> tuple[Multiplier, ...]:
    lines = []
    for row in np.flatnonzero(np.abs(duals) > 1e-9):
        about = words_of(int(shape.kinds[row]), panel.names[pair[0][row]], panel.names[pair[1][row]])
        lines.append(Multiplier(about, float(duals[row]), float(ends[0][row]), float(ends[1][row])))
    return tuple(sorted(lines, key=lambda line: -abs(line.multiplier)))


def _contradiction(found: Contradiction, panel: Known, shape: Layout, i: Ints, j: Ints) -> str:
    about = [words_of(int(shape.kinds[r]), panel.names[i[r]], panel.names[j[r]]) for r in found.rows]
    shown = ", ".join(dict.fromkeys(about[:6])) + (", ..." if len(about) > 6 else "")
    return (
        f"no votes can have these accuracies and agreements together ({shown}): they miss each other by"
        f" {found.needed:.2g}; allow for the estimation error with allowance= of at least that much, or lower tau or"
        " the accuracies"
    )
