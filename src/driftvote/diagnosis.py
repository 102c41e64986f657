"""Who changed, and when: asked once the watch has found that something did.

A labeler is judged by how often it votes as most of the others do. Whoever changed most is named and set aside, so
that the others are judged without it, and again until nobody is left that changed beyond chance. A change of the class
balance moves agreement too where labelers are better at one class; so a labeler is named only if its agreement changed
both over all rows and inside each class that the others vote for (Cochran, Mantel and Haenszel's comparison).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from driftvote import drift
from driftvote.kernels.counting import BLOCK, CLASSES, sides_of_others
from driftvote.kernels.layout import Bools, Codes, Floats, Ints
from driftvote.kernels.watching import AGREEMENT, BALANCE, LEAST, STEADY

NAMED = 0.01
"""Probability, for all labelers together, that one is named which did not change."""
TOGETHER = 0.8
"""Labelers whose change is nearly as clear as the clearest are named with it."""
DROP = 4.0
"""The change lies where the log-likelihood is within this much of its highest: about 95 of 100 times."""
MOST_PAIRS = 8


@dataclass
class Diagnosis:
    """What a change was. Rows count from the first of the rows that were looked at."""

    about: int
    since: tuple[int, int]
    kind: str = ""
    moved: dict[int, float] = field(default_factory=dict)  # labeler -> deviate of its agreement, below 0 for worse
    votes: dict[int, float] = field(default_factory=dict)  # labeler -> deviate of its coverage
    pairs: tuple[tuple[int, int], ...] = ()


def deviate(probability: float) -> float:
    """The normal deviate that is exceeded, on either side, with this probability.

    >>> round(deviate(0.05), 3)
    1.96
    """
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2.0)) > probability else (low, middle)
    return high


def sides(rows: Codes, panel: Bools, n_classes: int) -> Ints:
    """Rows x labelers: the class that most of the others in the panel vote for, or -1."""
    out = np.empty(rows.shape, np.int64)
    sides_of_others(np.ascontiguousarray(rows), panel.astype(np.int64), n_classes, out)
    return out


def plurality(rows: Codes, n_classes: int) -> Ints:
    """The class that most vote for on each row, or -1."""
    wider = np.hstack([rows, np.full((len(rows), 1), -1, rows.dtype)])
    return sides(wider, np.arange(wider.shape[1]) < rows.shape[1], n_classes)[:, -1]


def diagnose(rows: Codes, n_classes: int, found: tuple[int, int, int], begin: int, limit: float) -> Diagnosis | None:
    """What happened in these rows, given what the watch found: what, who, and at which of the rows it would have begun.

    `begin`: how many of the rows belong to the block in which the episode began, or to earlier ones; None if nothing
    is left that a labeler, the coverage or the class balance would have to answer for.
    """
    what, who, change = found
    said = plurality(rows, n_classes)
    panel = np.ones(rows.shape[1], np.bool_)
    hits, seen = _watched(rows, said, what, who, panel, n_classes)
    about, since = locate(hits, seen, begin, change)
    told = Diagnosis(about, since)
    rows, split = rows[begin:], about - begin
    here: Bools = np.asarray((rows >= 0)[:split].any(axis=0))  # who had voted before; others joined, which is no drift
    told.votes = _moved_votes(rows, split, here)
    shares = _moved_shares(said[begin:], split, min(n_classes, CLASSES))
    steady = panel & here & ~np.isin(np.arange(len(panel)), list(told.votes))
    told.moved = _moved_agreement(rows, split, steady if steady.sum() >= 2 else panel & here, here, n_classes)
    return _settled(told, shares, what, math.sqrt(limit), int(here.sum()), rows, split)


def _settled(
    told: Diagnosis, shares: float, what: int, clear: float, active: int, rows: Codes, split: int
) -> Diagnosis | None:
    """The kind of change: the clearest evidence decides."""
    agreement = max((abs(z) for z in told.moved.values()), default=0.0)
    votes = max((abs(z) for z in told.votes.values()), default=0.0)
    strongest = max(agreement, votes, shares)
    if strongest < clear * 0.75:
        return None
    if strongest == shares:
        told.kind, told.moved, told.votes = drift.BALANCE, {}, {}
    elif strongest == votes:
        told.kind = drift.COVERAGE
        told.moved = {h: z for h, z in told.moved.items() if abs(z) >= clear}
    else:
        up, down = (sum(sign * z > 0 for z in told.moved.values()) for sign in (1, -1))
        told.kind = drift.MIXED if up and down else drift.BETTER if up else drift.WORSE
        if up + down >= 3 and 2 * (up + down) > active:
            told.kind = drift.EVERYTHING
    told.pairs = _moved_pairs(rows, split, list({**told.moved, **told.votes}))
    return told


def _watched(rows: Codes, said: Ints, what: int, who: int, panel: Bools, n_classes: int) -> tuple[Bools, Bools]:
    """Row by row, what the watch found to have changed: hits, and where there could have been one."""
    if what == AGREEMENT:
        others = sides(rows, panel, n_classes)[:, who]
        return rows[:, who] == others, (rows[:, who] >= 0) & (others >= 0)
    if what == BALANCE:
        return said % CLASSES == who, said >= 0
    return rows[:, who] >= 0, np.ones(len(rows), np.bool_)


def locate(hits: Bools, seen: Bools, begin: int, change: int) -> tuple[int, tuple[int, int]]:
    """The likeliest row of a change of rate, and the rows that are nearly as likely.

    >>> hits = np.array([True, True, True, False] * 50 + [False, False, False, True] * 50)
    >>> locate(hits, np.ones(400, bool), 0, 192)
    (199, (194, 204))
    """
    n_rows = len(hits)
    where = change
    for _ in range(3):
        before, after = _rate(hits, seen, begin, where), _rate(hits, seen, where, n_rows)
        gain = np.where(hits, math.log(after / before), math.log((1.0 - after) / (1.0 - before))) * seen
        # Evidence that the change came at or before a row: the sum from there to the end.
        total = np.cumsum(gain[::-1])[::-1]
        first = max(begin + 1, min(change, where) - max(4 * BLOCK, n_rows - change))
        where = first + int(np.argmax(total[first:]))
    likely = first + np.flatnonzero(total[first:] >= total[where] - DROP)
    return where, (int(likely[0]), int(likely[-1]))


def _rate(hits: Bools, seen: Bools, first: int, last: int) -> float:
    count, of = int((hits & seen)[first:last].sum()), int(seen[first:last].sum())
    return (count + 0.5) / (of + 1.0)


def deviates(hits: Bools, seen: Bools, split: int) -> Floats:
    """How far each column's rate moved at the split, as a normal deviate; blocks before it say how much it varies."""
    both = hits & seen
    a, m, b, big = _counts(both[split:]), _counts(seen[split:]), _counts(both[:split]), _counts(seen[:split])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = (a + b) / (m + big)
        told = 2.0 * (_part(a, m, rate) + _part(b, big, rate))
        sign = np.sign(a / m - b / big)
    # The watch has seen enough votes; after the very row of the change there may be few, and still clear.
    known = (m > 0) & (big >= LEAST) & (rate > 0.0) & (rate < 1.0)
    return np.where(known, sign * np.sqrt(np.maximum(told, 0.0) / _spread(both, seen, split)), 0.0)


def _counts(flags: Bools) -> Floats:
    """How many are true, along the last axis but one: whole numbers, exact in any order. As a product it takes a
    tenth of the time of a sum over rows that are narrow, and a diagnosis is hardly anything else."""
    return np.asarray((np.ones(flags.shape[-2], np.float32) @ flags.astype(np.float32)).astype(float))


def _part(hits: Floats, seen: Floats, rate: Floats) -> Floats:
    miss = seen - hits
    return np.asarray(
        np.where(hits > 0, hits * np.log(hits / (seen * rate)), 0.0)
        + np.where(miss > 0, miss * np.log(miss / (seen * (1.0 - rate))), 0.0)
    )


def _spread(hits: Bools, seen: Bools, split: int) -> Floats:
    """As `kernels.watching.spread_of`, for the blocks before the split."""
    blocks = split // BLOCK
    if blocks < 2:
        return np.ones(hits.shape[1])
    part = slice(split - blocks * BLOCK, split)
    a = _counts(hits[part].reshape(blocks, BLOCK, -1))
    m = _counts(seen[part].reshape(blocks, BLOCK, -1))
    rate = a.sum(axis=0) / np.maximum(m.sum(axis=0), 1.0)
    chance = np.maximum(rate * (1.0 - rate) * m.sum(axis=0) / blocks, 1e-12)
    found = ((a - rate * m) ** 2).sum(axis=0) / ((blocks - 1) * chance)
    mixed = np.maximum(1.0, (STEADY + (blocks - 1) * found) / (STEADY + blocks - 1))
    return np.asarray(np.where((rate > 0.0) & (rate < 1.0), mixed, 1.0))


def by_class(hits: Bools, seen: Bools, strata: Ints, split: int, n_strata: int) -> Floats:
    """The same inside each class that the others vote for, added up as Cochran, Mantel and Haenszel do."""
    top, variance = np.zeros(hits.shape[1]), np.zeros(hits.shape[1])
    for s in range(n_strata):
        here = seen & (strata % n_strata == s)
        right = hits & here
        a, m, b, big = _counts(right[split:]), _counts(here[split:]), _counts(right[:split]), _counts(here[:split])
        both = np.maximum(m + big, 2.0)
        rate = (a + b) / both
        top += (a * big - b * m) / both
        variance += m * big * rate * (1.0 - rate) / (both - 1.0)
    spread = _spread(hits & seen, seen, split)
    return np.where(variance > 0.0, top / np.sqrt(np.maximum(variance, 1e-12) * spread), 0.0)


def _moved_agreement(rows: Codes, split: int, panel: Bools, here: Bools, n_classes: int) -> dict[int, float]:
    """Labelers whose agreement with the rest changed, the clearest first."""
    enough = deviate(NAMED / max(1, int(here.sum())))
    named: dict[int, float] = {}
    open_: Bools = here.copy()
    panel = panel.copy()
    while open_.any() and panel.sum() >= 2:
        others = sides(rows, panel, n_classes)
        hits, seen = rows == others, (rows >= 0) & (others >= 0)
        plain = deviates(hits, seen, split)
        inside = by_class(hits, seen, others, split, min(n_classes, CLASSES))
        alike = np.sign(plain) == np.sign(inside)
        size = np.where(open_ & alike, np.minimum(np.abs(plain), np.abs(inside)), 0.0)
        if size.max() < enough:
            break
        new = np.flatnonzero(size >= max(enough, TOGETHER * float(size.max())))
        if panel.sum() <= 3:  # of so few, each leans on the others: one at a time
            new = np.array([int(size.argmax())])
        for h in new[np.argsort(-size[new], kind="stable")].tolist():
            named[h] = float(np.sign(plain[h]) * size[h])
        open_[new] = False
        panel[new] = False
    return named


def _moved_votes(rows: Codes, split: int, here: Bools) -> dict[int, float]:
    """Labelers that vote on more or fewer rows, the clearest first."""
    voted = rows >= 0
    begin = voted.argmax(axis=0) // BLOCK * BLOCK  # a labeler that joined in these rows is judged since then
    moved = np.zeros(rows.shape[1])
    for h in np.flatnonzero(here).tolist():
        column = voted[begin[h] :, h : h + 1]
        if split - begin[h] >= LEAST:
            moved[h] = deviates(column, np.ones_like(column), split - begin[h])[0]
    enough = deviate(NAMED / max(1, int(here.sum())))
    order = np.argsort(-np.abs(moved), kind="stable").tolist()
    return {h: float(moved[h]) for h in order if abs(moved[h]) >= enough}


def _moved_shares(said: Ints, split: int, shares: int) -> float:
    """How far the share of any class moved."""
    which = said[:, None] % CLASSES == np.arange(shares)
    decided = np.repeat((said >= 0)[:, None], shares, axis=1)
    return float(np.abs(deviates(which, decided, split)).max())


def _moved_pairs(rows: Codes, split: int, who: list[int]) -> tuple[tuple[int, int], ...]:
    """Pairs of which one changed, with the clearest change of agreement, clearest first."""
    found: dict[tuple[int, int], float] = {}
    for h in who:
        both = (rows >= 0) & (rows[:, h] >= 0)[:, None]
        moved = deviates(rows == rows[:, h][:, None], both, split)
        found |= {(min(h, j), max(h, j)): abs(float(z)) for j, z in enumerate(moved) if j != h}
    enough = deviate(NAMED / max(1, len(found)))
    clear = [pair for pair in sorted(found, key=lambda pair: -found[pair]) if found[pair] >= enough]
    return tuple(clear[:MOST_PAIRS])
