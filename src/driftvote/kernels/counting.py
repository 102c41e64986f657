"""Votes of a block of rows, counted for the watch: who votes, and who votes as most of the others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Codes, Ints

BLOCK = 64
"""Rows in a block, and bits in a word: one look at the end of each."""
CLASSES = 8
"""Class shares that are watched; of more classes, every eighth is counted together."""

Words = npt.NDArray[np.uint64]


@jit
def n_digits(n: int) -> int:
    """Binary digits of a number of labelers."""
    digits = 1
    while n >> digits:
        digits += 1
    return digits


@jit
def outcome(vote: int, counts: Ints, top: int, tops: int, second: int) -> int:
    """1 if the vote is that of most of the others, 0 if most of the others voted for another class, -1 if neither."""
    if counts[vote] == top:
        if tops == 1:
            return 1 if top - 1 > second else -1
        return 0 if tops == 2 else -1
    return 0 if tops == 1 else -1


@jit
def leaders(counts: Ints) -> tuple[int, int, int, int]:
    """The most votes for a class, how many classes have them, the next number below, and the leading class."""
    top, tops, second, leader = 0, 0, 0, -1
    for c in range(counts.shape[0]):
        if counts[c] > top:
            top, tops, second, leader = counts[c], 1, top, c
        elif counts[c] == top:
            tops += 1
        elif counts[c] > second:
            second = counts[c]
    return top, tops, second, leader


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
def count_sides(words: Words, digits: Words) -> None:
    """How many vote for either class, in binary, 64 rows at a time: `digits[s, p]` holds one digit of each row."""
    digits[:] = np.uint64(0)
    for s in range(2):
        for h in range(words.shape[1]):
            carry = words[s, h]
            for p in range(digits.shape[1]):
                digit = digits[s, p]
                digits[s, p] = digit ^ carry
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
def count_two_classes(rows: Codes, first: int, words: Words, digits: Words, now: Ints) -> None:
    """A block of two classes, all its rows at once: this is where the time goes."""
    n = rows.shape[1]
    pack_block(rows, first, words)
    count_sides(words, digits)
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
def count_classes(rows: Codes, first: int, n_classes: int, now: Ints) -> None:
    """A block of any number of classes."""
    n = rows.shape[1]
    counts = np.zeros(n_classes, np.int64)
    for t in range(first, first + BLOCK):
        counts[:] = 0
        for h in range(n):
            if rows[t, h] >= 0:
                counts[rows[t, h]] += 1
        top, tops, second, leader = leaders(counts)
        for h in range(n):
            if rows[t, h] >= 0:
                found = outcome(rows[t, h], counts, top, tops, second)
                now[h] += 1 if found >= 0 else 0
                now[n + h] += 1 if found == 1 else 0
                now[2 * n + h] += 1
        if top > 0 and tops == 1:
            now[3 * n + leader % CLASSES] += 1
