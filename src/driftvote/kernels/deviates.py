"""How far rates moved at a change, by the tables of `sides.py`: as normal deviates, below 0 for a fall."""

from __future__ import annotations

import math

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Floats, Ints
from driftvote.kernels.sides import HITS, TRIES
from driftvote.kernels.watching import LEAST, STEADY, surprise


@jit
def total(table: Ints, line: int, which: int, h: int) -> int:
    """One number of a line, all strata together."""
    count = 0
    for s in range(table.shape[1]):
        count += table[line, s, which, h]
    return count


@jit
def spread_before(table: Ints, h: int) -> float:
    """How much blocks before the change vary, against coins of the same rate: `watching.spread_of` for single blocks
    and without a past."""
    blocks, hits, tries = table.shape[0] - 2, 0, 0
    if blocks < 2:
        return 1.0
    for line in range(1, blocks + 1):
        hits += total(table, line, HITS, h)
        tries += total(table, line, TRIES, h)
    if hits <= 0 or hits >= tries:
        return 1.0
    rate, squares = hits / tries, 0.0
    for line in range(1, blocks + 1):
        apart = total(table, line, HITS, h) - rate * total(table, line, TRIES, h)
        squares += apart * apart
    found = squares * blocks / ((blocks - 1) * rate * (1.0 - rate) * tries)
    return max(1.0, (STEADY + (blocks - 1) * found) / (STEADY + blocks - 1))


@jit
def deviate_of(table: Ints, h: int) -> float:
    """How far one labeler's rate moved; blocks before the change say how much it varies anyway."""
    last, hits_before, tries_before = table.shape[0] - 1, 0, 0
    for line in range(last):
        hits_before += total(table, line, HITS, h)
        tries_before += total(table, line, TRIES, h)
    hits, tries = total(table, last, HITS, h), total(table, last, TRIES, h)
    # The watch has seen enough votes; after the very row of the change there may be few, and still clear.
    if tries == 0 or tries_before < LEAST:
        return 0.0
    size = math.sqrt(max(0.0, surprise(hits, tries, hits_before, tries_before)) / spread_before(table, h))
    return size if hits * tries_before > hits_before * tries else -size


@jit
def deviate_inside(table: Ints, h: int) -> float:
    """The same inside each class that the others vote for, added up as Cochran, Mantel and Haenszel do."""
    last, top, variance = table.shape[0] - 1, 0.0, 0.0
    for s in range(table.shape[1]):
        b, big = 0.0, 0.0
        for line in range(last):
            b += table[line, s, HITS, h]
            big += table[line, s, TRIES, h]
        a, m = float(table[last, s, HITS, h]), float(table[last, s, TRIES, h])
        both = max(m + big, 2.0)
        rate = (a + b) / both
        top += (a * big - b * m) / both
        variance += m * big * rate * (1.0 - rate) / (both - 1.0)
    return top / math.sqrt(variance * spread_before(table, h)) if variance > 0.0 else 0.0


@jit
def deviates(table: Ints, plain: Floats, inside: Floats) -> None:
    """Both deviates of every labeler; of a table without strata they say nearly the same."""
    for h in range(table.shape[3]):
        plain[h] = deviate_of(table, h)
        inside[h] = deviate_inside(table, h)
