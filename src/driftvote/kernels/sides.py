"""Votes on either side of a change, counted in tables for the diagnosis.

The last axes of a table are (strata, 2, labelers): for each labeler, and each class that the others vote for, hits and
tries. Its lines are stretches of rows: first those that do not fill a block, then each block before the change, then
all rows since. Of two classes, 64 rows are counted at once.
"""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.counting import BLOCK, CLASSES, Words, bits_set, count_sides, lead_of, n_digits
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
    """Rows of two classes as bits, in parts of 64 or fewer, of which none lies in two lines; returns their number.

    `words[p, s, h]`: the rows of part p on which labeler h votes for class s.
    """
    n_rows, n = rows.shape
    lead, part, first, one = split % BLOCK, 0, 0, np.uint64(1)
    while first < n_rows:
        last = lead if first < lead else min(first + BLOCK, n_rows)
        for h in range(n):
            zeros, ones = np.uint64(0), np.uint64(0)
            for t in range(first, last):
                bit = one << np.uint64(t - first)
                zeros |= bit if rows[t, h] == 0 else np.uint64(0)
                ones |= bit if rows[t, h] == 1 else np.uint64(0)
            words[part, 0, h], words[part, 1, h] = zeros, ones
        lines[part] = line_of(first, split)
        part += 1
        first = last
    return part


@jit
def agreement_of_two(words: Words, lines: Ints, panel: Bools, table: Ints) -> None:
    """How often each labeler votes as most of the others in the panel do, two classes."""
    n = words.shape[2]
    members, digits = np.empty((2, n), np.uint64), np.empty((2, n_digits(n)), np.uint64)
    for p in range(lines.shape[0]):
        for h in range(n):
            for s in range(2):
                members[s, h] = words[p, s, h] if panel[h] else np.uint64(0)
        count_sides(members, digits)
        for s in range(2):
            leads, just = lead_of(digits, s)
            behind, _ = lead_of(digits, 1 - s)
            for h in range(n):
                hits, misses = words[p, s, h] & leads, words[p, 1 - s, h] & leads
                if panel[h]:  # its own vote out of the count: a lead of one is a tie then, and a tie is a lead
                    hits, misses = hits & ~just, words[p, 1 - s, h] & ~behind
                table[lines[p], s, HITS, h] += bits_set(hits)
                table[lines[p], s, TRIES, h] += bits_set(hits | misses)


@jit
def shares_of_two(words: Words, lines: Ints, table: Ints) -> None:
    """Rows on which most vote for each class, of those on which one leads, two classes."""
    digits = np.empty((2, n_digits(words.shape[2])), np.uint64)
    for p in range(lines.shape[0]):
        count_sides(words[p], digits)
        for s in range(2):
            led = bits_set(lead_of(digits, s)[0])
            table[lines[p], 0, HITS, s] += led
            table[lines[p], 0, TRIES, 0] += led
            table[lines[p], 0, TRIES, 1] += led


@jit
def flags_of_two(words: Words, agreement: bool, who: int, hits: Words, tries: Words) -> None:
    """Row by row, as bits: whether labeler `who` votes as most of the others do; or whether most vote for class `who`.
    Hits, and where there could have been one."""
    n = words.shape[2]
    digits = np.empty((2, n_digits(n)), np.uint64)
    for p in range(words.shape[0]):
        count_sides(words[p], digits)
        for_zero, just_zero = lead_of(digits, 0)
        for_one, just_one = lead_of(digits, 1)
        if agreement:
            zeros, ones = words[p, 0, who], words[p, 1, who]
            hits[p] = (zeros & for_zero & ~just_zero) | (ones & for_one & ~just_one)
            tries[p] = hits[p] | (zeros & ~for_zero) | (ones & ~for_one)
        else:
            hits[p] = for_one if who == 1 else for_zero
            tries[p] = for_zero | for_one


@jit
def pairs_of_two(words: Words, lines: Ints, h: int, table: Ints) -> None:
    """How often each labeler votes as labeler `h` does, two classes."""
    for p in range(lines.shape[0]):
        mine, yours = words[p, 0, h], words[p, 1, h]
        for j in range(words.shape[2]):
            zeros, ones = words[p, 0, j], words[p, 1, j]
            table[lines[p], 0, HITS, j] += bits_set((zeros & mine) | (ones & yours))
            table[lines[p], 0, TRIES, j] += bits_set((zeros | ones) & (mine | yours))


@jit
def count_row(rows: Codes, t: int, panel: Bools, counts: Ints) -> tuple[int, int, int, int, int]:
    """Votes of the panel for each class; the most, how many classes have them, the next number below, and the first and
    the last class that has the most."""
    counts[:] = 0
    for h in range(rows.shape[1]):
        if panel[h] and rows[t, h] >= 0:
            counts[rows[t, h]] += 1
    top, tops, second, first, last = 0, 0, 0, -1, -1
    for c in range(counts.shape[0]):
        if counts[c] > top:
            top, tops, second, first, last = counts[c], 1, top, c, c
        elif counts[c] == top:
            tops, last = tops + 1, c
        elif counts[c] > second:
            second = counts[c]
    return top, tops, second, first, last


@jit
def side_of_others(vote: int, counts: Ints, found: tuple[int, int, int, int, int]) -> int:
    """The class that leads once this vote is taken out of the count (a vote of -1 is not in it), or -1."""
    top, tops, second, first, last = found
    if vote < 0 or counts[vote] < top:
        return first if top > 0 and tops == 1 else -1
    if tops == 1:
        return first if top - 1 > second else -1
    return last + first - vote if tops == 2 and top > 0 else -1


@jit
def leader_without(rows: Codes, t: int, who: int, everybody: Bools, counts: Ints) -> int:
    """The class that leads on a row without the vote of one labeler (-1: with everybody's), or -1."""
    own = int(rows[t, who]) if who >= 0 else -1
    if counts.shape[0] > 2:
        return int(side_of_others(own, counts, count_row(rows, t, everybody, counts)))
    margin = 0 if own < 0 else 1 - 2 * own
    for h in range(rows.shape[1]):
        vote = int(rows[t, h])
        margin += 2 * vote - 1 if vote >= 0 else 0
    return -1 if margin == 0 else 1 if margin > 0 else 0


@jit
def agreement_of_many(rows: Codes, split: int, panel: Bools, n_classes: int, table: Ints) -> None:
    """How often each labeler votes as most of the others in the panel do, any number of classes."""
    counts, strata = np.zeros(n_classes, np.int64), table.shape[1]
    for t in range(rows.shape[0]):
        found, line = count_row(rows, t, panel, counts), line_of(t, split)
        for h in range(rows.shape[1]):
            vote = int(rows[t, h])
            if vote >= 0:
                side = side_of_others(vote if panel[h] else -1, counts, found)
                if side >= 0:
                    table[line, side % strata, HITS, h] += 1 if side == vote else 0
                    table[line, side % strata, TRIES, h] += 1


@jit
def shares_of_many(rows: Codes, split: int, n_classes: int, table: Ints) -> None:
    """Rows on which most vote for each class (of every eighth together), of those on which one leads."""
    counts, everybody = np.zeros(n_classes, np.int64), np.ones(rows.shape[1], np.bool_)
    for t in range(rows.shape[0]):
        leader = leader_without(rows, t, -1, everybody, counts)
        if leader >= 0:
            line = line_of(t, split)
            for s in range(table.shape[3]):
                table[line, 0, HITS, s] += 1 if leader % CLASSES == s else 0
                table[line, 0, TRIES, s] += 1


@jit
def pairs_of_many(rows: Codes, split: int, h: int, table: Ints) -> None:
    """How often each labeler votes as labeler `h` does, any number of classes."""
    for t in range(rows.shape[0]):
        if rows[t, h] >= 0:
            line = line_of(t, split)
            for j in range(rows.shape[1]):
                table[line, 0, HITS, j] += 1 if rows[t, j] == rows[t, h] else 0
                table[line, 0, TRIES, j] += 1 if rows[t, j] >= 0 else 0


@jit
def votes_cast(rows: Codes, split: int, table: Ints, first: Ints) -> None:
    """On how many rows each labeler votes; the first of them, or the number of rows."""
    first[:] = rows.shape[0]
    for t in range(rows.shape[0]):
        line = line_of(t, split)
        for h in range(rows.shape[1]):
            cast = 1 if rows[t, h] >= 0 else 0
            table[line, 0, HITS, h] += cast
            table[line, 0, TRIES, h] += 1
            if cast and first[h] > t:
                first[h] = t


@jit
def leads_and_votes(rows: Codes, n_classes: int, leads: Ints, votes: Ints) -> None:
    """On how many rows each class has the most votes, and each labeler votes."""
    counts, everybody = np.zeros(n_classes, np.int64), np.ones(rows.shape[1], np.bool_)
    for t in range(rows.shape[0]):
        leader = leader_without(rows, t, -1, everybody, counts)
        if leader >= 0:
            leads[leader] += 1
        for h in range(rows.shape[1]):
            votes[h] += 1 if rows[t, h] >= 0 else 0


@jit
def leads_and_votes_of_two(words: Words, leads: Ints, votes: Ints) -> None:
    """The same for two classes."""
    digits = np.empty((2, n_digits(words.shape[2])), np.uint64)
    for p in range(words.shape[0]):
        count_sides(words[p], digits)
        for s in range(2):
            leads[s] += bits_set(lead_of(digits, s)[0])
        for h in range(words.shape[2]):
            votes[h] += bits_set(words[p, 0, h] | words[p, 1, h])


@jit
def sums_of_two(words: Words, sums: Ints) -> None:
    """Pair sums of all rows, two classes and no random fill: `agreements.recount`, 64 rows at once."""
    pair, n = 0, words.shape[2]
    for i in range(n):
        for j in range(i + 1, n):
            total = 0
            for p in range(words.shape[0]):
                agree = bits_set((words[p, 0, i] & words[p, 0, j]) | (words[p, 1, i] & words[p, 1, j]))
                both = bits_set((words[p, 0, i] | words[p, 1, i]) & (words[p, 0, j] | words[p, 1, j]))
                total += 2 * agree - both
            sums[pair] = total
            pair += 1
