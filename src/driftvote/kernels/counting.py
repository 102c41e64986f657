"""Votes of a block of rows, counted for the watch: who votes, and who votes as most of the others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Bools, Codes, Ints

BLOCK = 64
"""Rows in a block, and bits in a word: one look at the end of each."""
CLASSES = 8
"""Class shares that are watched; of more classes, every eighth is counted together."""

FEW = 4
"""Up to so many classes it is faster to ask for each of them than to branch on the vote."""

Words = npt.NDArray[np.uint64]


@jit
def n_digits(n: int) -> int:
    """Binary digits of a number of labelers."""
    digits = 1
    while n >> digits:
        digits += 1
    return digits


@jit
def bits_set(word: Any) -> int:
    """How many bits of a word of 64 are set."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x += x >> np.uint64(8)
    x += x >> np.uint64(16)
    x += x >> np.uint64(32)
    return int(x & np.uint64(127))


@jit
def pack_block(rows: Codes, first: int, words: Words) -> None:
    """A word of 64 bits for each labeler: the rows of the block on which it votes for 1, and those for 0.

    Eight rows at a time, which the compiler writes out, where 64 would be a loop.
    """
    row, one, sign, eight = np.uint64(first), np.uint64(1), np.uint64(63), np.uint64(8)
    lowest = np.int64(0)
    for h in range(np.uint64(rows.shape[1])):
        ones = np.uint64(0)
        for group in range(eight):
            bits, begin = np.uint64(0), row + group * eight
            for step in range(eight):
                lowest |= np.int64(rows[begin + step, h])
                bits |= (np.uint64(rows[begin + step, h]) & one) << step
            ones |= bits << (group * eight)
        words[0, h], words[1, h] = ones, ~ones
    if lowest >= 0:  # nobody abstains
        return
    for h in range(np.uint64(rows.shape[1])):
        silent = np.uint64(0)
        for group in range(eight):
            bits, begin = np.uint64(0), row + group * eight
            for step in range(eight):
                bits |= (np.uint64(np.int64(rows[begin + step, h])) >> sign) << step
            silent |= bits << (group * eight)
        words[0, h] &= ~silent
        words[1, h] &= ~silent


@jit
def add_up(said: Words, panel: Bools, digits: Words) -> None:
    """How many of the panel vote for each class, in binary, 64 rows at a time: `digits[c, p]` holds one digit of each
    row."""
    digits[:] = np.uint64(0)
    for c in range(said.shape[0]):
        for h in range(said.shape[1]):
            carry = said[c, h] if panel[h] else np.uint64(0)
            for p in range(digits.shape[1]):
                digit = digits[c, p]
                digits[c, p] = digit ^ carry
                carry &= digit


@jit
def lead_of(digits: Words, side: int) -> tuple[Any, Any]:
    """Rows on which a side has more votes than the other, and those on which it has exactly one more."""
    borrow, larger, zero = np.uint64(0), np.uint64(0), np.uint64(0)
    first = digits[0, 0] ^ digits[1, 0]
    for p in range(digits.shape[1]):
        a, b = digits[side, p], digits[1 - side, p]
        left = a ^ b ^ borrow
        borrow = (~a & (b | borrow)) | (b & borrow)
        larger |= left if p > 0 else zero
    positive = ~borrow & (first | larger)
    return positive, positive & first & ~larger


@jit
def count_two_classes(rows: Codes, first: int, panel: Bools, words: Words, digits: Words, now: Ints) -> None:
    """A block of two classes, all its rows at once: this is where the time goes."""
    n = rows.shape[1]
    pack_block(rows, first, words)
    add_up(words, panel, digits)
    for_one, just_one = lead_of(digits, 0)
    for_zero, just_zero = lead_of(digits, 1)
    for h in range(n):
        ones, zeros = words[0, h], words[1, h]
        # The others alone: a lead of one that the labeler is part of is a tie of the others, and a tie is a lead.
        hits = bits_set((ones & for_one & ~just_one) | (zeros & for_zero & ~just_zero))
        misses = bits_set((ones & ~for_one) | (zeros & ~for_zero))
        now[h] = hits + misses
        now[n + h] = hits
        now[2 * n + h] = bits_set(ones | zeros)
    now[3 * n] = bits_set(for_zero)
    now[3 * n + 1] = bits_set(for_one)


@jit
def pack_classes(rows: Codes, first: int, last: int, said: Words) -> None:
    """Rows first .. last - 1, no more than 64: `said[c, h]` are those on which labeler h votes for class c."""
    row, one, eight = np.uint64(first), np.uint64(1), np.uint64(8)
    if said.shape[0] <= FEW and last - first == BLOCK:
        for c in range(np.uint64(said.shape[0])):
            for h in range(np.uint64(rows.shape[1])):
                word, this = np.uint64(0), np.int64(c)
                for group in range(eight):
                    bits, begin = np.uint64(0), row + group * eight
                    for step in range(eight):
                        bits |= np.uint64(np.int64(rows[begin + step, h]) == this) << step
                    word |= bits << (group * eight)
                said[c, h] = word
        return
    said[:] = np.uint64(0)
    for h in range(np.uint64(rows.shape[1])):
        for step in range(np.uint64(last - first)):
            vote = rows[row + step, h]
            if vote >= 0:
                said[np.uint64(vote), h] |= one << step


@jit
def find_leads(digits: Words, leads: Words) -> tuple[Any, Any, Any]:
    """Rows on which each class has the most votes, into `leads`; those on which one class leads, those on which two do,
    and those on which another class is just one vote behind."""
    none, every = np.uint64(0), ~np.uint64(0)
    n_classes, top = digits.shape[0], np.empty(digits.shape[1], np.uint64)
    leads[:] = every
    some = none
    for place in range(digits.shape[1]):  # the highest digit first: whoever lacks one that another has is behind
        p = digits.shape[1] - 1 - place
        top[p] = none
        for c in range(n_classes):
            top[p] |= leads[c] & digits[c, p]
        for c in range(n_classes):
            leads[c] &= digits[c, p] | ~top[p]
        some |= top[p]
    one, two, three, behind = none, none, none, none
    for c in range(n_classes):
        three |= two & leads[c]
        two |= one & leads[c]
        one |= leads[c]
        carry, same = every, every  # whether one vote more would be the lead
        for p in range(digits.shape[1]):
            same &= ~(digits[c, p] ^ carry ^ top[p])
            carry &= digits[c, p]
        behind |= same & ~carry
    return one & ~two & some, two & ~three & some, behind


@jit
def count_classes(rows: Codes, first: int, panel: Bools, said: Words, digits: Words, now: Ints) -> None:
    """A block of any number of classes, all its rows at once."""
    n_classes, n = said.shape
    leads = np.empty(n_classes, np.uint64)
    pack_classes(rows, first, first + BLOCK, said)
    add_up(said, panel, digits)
    alone, both, behind = find_leads(digits, leads)
    for h in range(n):
        votes, leading, hits = np.uint64(0), np.uint64(0), np.uint64(0)
        for c in range(n_classes):
            votes |= said[c, h]
            leading |= said[c, h] & leads[c]
        # The others alone: a lead of one that the labeler is part of is a tie of the others, and a tie is a lead.
        hits = leading & alone & ~behind
        misses = (leading & both) | (votes & ~leading & alone)
        now[h] = bits_set(hits | misses)
        now[n + h] = bits_set(hits)
        now[2 * n + h] = bits_set(votes)
    for c in range(n_classes):
        now[3 * n + c % CLASSES] += bits_set(leads[c] & alone)
