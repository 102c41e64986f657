"""Votes on either side of a change, counted in tables for the diagnosis, 64 rows at a time.

The last axes of a table are (strata, 2, labelers): for each labeler, and each class that the others vote for, hits and
tries. Its lines are stretches of rows: first those that do not fill a block, then each block before the change, then
all rows since.
"""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.counting import BLOCK, Words, add_up, bits_set, find_leads, n_digits, pack_classes
from driftvote.kernels.layout import Bools, Codes, Ints

HITS, TRIES = 0, 1


@jit
def line_of(row: int, split: int) -> int:
    """The line of a table that a row belongs to, if the change is at row `split`."""
    lead = split % BLOCK
    if row >= split:
        return split // BLOCK + 1
    return 0 if row < lead else 1 + (row - lead) // BLOCK


@jit
def pack_parts(rows: Codes, split: int, words: Words, lines: Ints) -> int:
    """Rows as bits, in parts of 64 or fewer, of which none lies in two lines; returns their number.

    `words[p, c, h]`: the rows of part p on which labeler h votes for class c.
    """
    n_rows, lead, part, first = rows.shape[0], split % BLOCK, 0, 0
    while first < n_rows:
        last = lead if first < lead else min(first + BLOCK, n_rows)
        pack_classes(rows, first, last, words[part])
        lines[part] = line_of(first, split)
        part += 1
        first = last
    return part


@jit
def count_agreement(words: Words, lines: Ints, panel: Bools, table: Ints) -> None:
    """How often each labeler votes as most of the others in the panel do, by the class that they vote for."""
    n_classes, n, strata = words.shape[1], words.shape[2], table.shape[1]
    digits, leads = np.empty((n_classes, n_digits(n)), np.uint64), np.empty(n_classes, np.uint64)
    for part in range(lines.shape[0]):
        said, line = words[part], lines[part]
        add_up(said, panel, digits)
        alone, both, behind = find_leads(digits, leads)
        for h in range(n):
            votes, leading = np.uint64(0), np.uint64(0)
            for c in range(n_classes):
                votes |= said[c, h]
                leading |= said[c, h] & leads[c]
            for c in range(n_classes):
                hits, misses = said[c, h] & leads[c] & alone, votes & ~said[c, h] & leads[c] & alone
                if panel[h]:  # its own vote out of the count: a lead of one is a tie then, and a tie is a lead
                    hits, misses = hits & ~behind, misses | (leading & ~said[c, h] & leads[c] & both)
                table[line, c % strata, HITS, h] += bits_set(hits)
                table[line, c % strata, TRIES, h] += bits_set(hits | misses)


@jit
def count_shares(words: Words, lines: Ints, table: Ints) -> None:
    """Rows on which most vote for each class (of many, those some apart together), of those on which one leads."""
    n_classes, n, shares = words.shape[1], words.shape[2], table.shape[3]
    digits, leads = np.empty((n_classes, n_digits(n)), np.uint64), np.empty(n_classes, np.uint64)
    everybody = np.ones(n, np.bool_)
    for part in range(lines.shape[0]):
        add_up(words[part], everybody, digits)
        alone, _, _ = find_leads(digits, leads)
        for c in range(n_classes):
            table[lines[part], 0, HITS, c % shares] += bits_set(leads[c] & alone)
        for s in range(shares):
            table[lines[part], 0, TRIES, s] += bits_set(alone)


@jit
def count_pairs(words: Words, lines: Ints, h: int, table: Ints) -> None:
    """How often each labeler votes as labeler `h` does."""
    for part in range(lines.shape[0]):
        for j in range(words.shape[2]):
            alike, mine, yours = np.uint64(0), np.uint64(0), np.uint64(0)
            for c in range(words.shape[1]):
                alike |= words[part, c, h] & words[part, c, j]
                mine |= words[part, c, h]
                yours |= words[part, c, j]
            table[lines[part], 0, HITS, j] += bits_set(alike)
            table[lines[part], 0, TRIES, j] += bits_set(mine & yours)


@jit
def count_votes(words: Words, lines: Ints, n_rows: Ints, table: Ints) -> None:
    """On how many rows each labeler votes, of all rows of the line."""
    for line in range(table.shape[0]):
        table[line, 0, TRIES, :] = n_rows[line]
    for part in range(lines.shape[0]):
        for h in range(words.shape[2]):
            votes = np.uint64(0)
            for c in range(words.shape[1]):
                votes |= words[part, c, h]
            table[lines[part], 0, HITS, h] += bits_set(votes)


@jit
def first_votes(rows: Codes, first: Ints) -> None:
    """The row at which each labeler votes first, or the number of rows."""
    n_rows, n = rows.shape
    first[:] = n_rows
    t, missing = 0, n
    while t < n_rows and missing > 0:
        for h in range(n):
            if rows[t, h] >= 0 and first[h] == n_rows:
                first[h] = t
                missing -= 1
        t += 1


@jit
def flag_rows(words: Words, agreement: bool, who: int, strata: int, hits: Words, tries: Words) -> None:
    """Row by row, as bits: whether labeler `who` votes as most of the others do; or whether most vote for class `who`
    of so many. Hits, and where there could have been one."""
    n_classes, n = words.shape[1], words.shape[2]
    digits, leads = np.empty((n_classes, n_digits(n)), np.uint64), np.empty(n_classes, np.uint64)
    everybody = np.ones(n, np.bool_)
    for part in range(words.shape[0]):
        add_up(words[part], everybody, digits)
        alone, both, behind = find_leads(digits, leads)
        votes, leading, share = np.uint64(0), np.uint64(0), np.uint64(0)
        for c in range(n_classes):
            if agreement:
                votes |= words[part, c, who]
                leading |= words[part, c, who] & leads[c]
            elif c % strata == who:
                share |= leads[c] & alone
        hits[part] = leading & alone & ~behind if agreement else share
        tries[part] = hits[part] | (leading & both) | (votes & ~leading & alone) if agreement else alone


@jit
def leads_and_votes(words: Words, leads_of: Ints, votes_of: Ints) -> None:
    """On how many rows each class has the most votes, and each labeler votes."""
    n_classes, n = words.shape[1], words.shape[2]
    digits, leads = np.empty((n_classes, n_digits(n)), np.uint64), np.empty(n_classes, np.uint64)
    everybody = np.ones(n, np.bool_)
    for part in range(words.shape[0]):
        add_up(words[part], everybody, digits)
        alone, _, _ = find_leads(digits, leads)
        for c in range(n_classes):
            leads_of[c] += bits_set(leads[c] & alone)
        for h in range(n):
            votes = np.uint64(0)
            for c in range(n_classes):
                votes |= words[part, c, h]
            votes_of[h] += bits_set(votes)


@jit
def sum_pairs(words: Words, sums: Ints) -> None:
    """Pair sums of all rows, if nobody's vote is a random fill: `agreements.recount`, 64 rows at once."""
    n_classes, n = words.shape[1], words.shape[2]
    for part in range(words.shape[0]):
        pair = 0
        for i in range(n):
            for j in range(i + 1, n):
                alike, mine, yours = np.uint64(0), np.uint64(0), np.uint64(0)
                for c in range(n_classes):
                    alike |= words[part, c, i] & words[part, c, j]
                    mine |= words[part, c, i]
                    yours |= words[part, c, j]
                sums[pair] += n_classes * bits_set(alike) - bits_set(mine & yours)
                pair += 1
