"""Votes as bits: one byte holds eight rows of a labeler, so that a pair's agreements over them are one operation.

A class code is written in binary, one plane of bits for each binary digit; where somebody abstains there are two planes
more for each labeler: who counts, and who cast a vote.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Bytes, Codes, History

GROUP = 8
"""Rows of a byte."""


@jit
def uint8_of(value: int) -> np.uint8:
    """Kept in 8 bits, where 64 fit into a register."""
    return np.uint8(value)


@jit
def pack_two_classes(rows: Codes, first: int, planes: Bytes, byte: int) -> None:
    """Eight rows of codes 0 and 1 into one byte for each labeler."""
    row, slot, one = np.uint64(first), np.uint64(byte), np.uint64(1)
    for h in range(np.uint64(rows.shape[1])):
        bits = np.uint64(0)
        for step in range(np.uint64(GROUP)):
            bits |= (np.uint64(rows[row + step, h]) & one) << step
        planes[h, slot] = bits


@jit
def pack_voting(rows: Codes, first: int, n_digits: int, planes: Bytes, byte: int) -> None:
    """Eight rows of any classes on which everybody votes: one byte for each digit and labeler."""
    row, slot, digits, one = np.uint64(first), np.uint64(byte), np.uint64(n_digits), np.uint64(1)
    for h in range(np.uint64(rows.shape[1])):
        for p in range(digits):
            bits = np.uint64(0)
            for step in range(np.uint64(GROUP)):
                bits |= (np.uint64(rows[row + step, h]) >> p & one) << step
            planes[h * digits + p, slot] = bits


@jit
def pack_any(rows: Codes, first: int, n_digits: int, planes: Bytes, byte: int) -> None:
    """Eight rows of any classes and abstentions, with the planes that say who counts and who cast a vote."""
    row, slot, digits, n = np.uint64(first), np.uint64(byte), np.uint64(n_digits), np.uint64(rows.shape[1])
    one, sign = np.int64(1), np.int64(63)
    for h in range(n):
        counted, cast = np.int64(0), np.int64(0)
        for step in range(np.uint64(GROUP)):
            code, shift = np.int64(rows[row + step, h]), np.int64(step)
            counted |= (one if code != -1 else np.int64(0)) << shift
            cast |= (~(code >> sign) & one) << shift
        planes[n * digits + h, slot] = counted
        planes[n * digits + n + h, slot] = cast
        for p in range(digits):
            bits, place = np.int64(0), np.int64(p)
            for step in range(np.uint64(GROUP)):
                code = np.int64(rows[row + step, h])
                vote = code if code >= -1 else -2 - code  # as `vote_of`
                bits |= (vote >> place & one & ~(vote >> sign)) << np.int64(step)
            planes[h * digits + p, slot] = bits


@jit
def pack_rows(rows: Codes, first: int, last: int, time: int, history: History) -> None:
    """Rows first .. last - 1 into the planes; row 0 is the one at `time` of the history.

    A byte that holds earlier rows keeps them, so parts that are packed at once must meet at the border of a byte.
    """
    n, n_digits = rows.shape[1], history.n_digits
    slots = history.n_bytes
    planes = history.planes
    row = first
    while row < last:
        begin = (time + row) % GROUP
        end = min(GROUP, begin + last - row)
        slot = (time + row) // GROUP % slots
        if end - begin == GROUP:
            if history.masked:
                pack_any(rows, row, n_digits, planes, slot)
            elif n_digits > 1:
                pack_voting(rows, row, n_digits, planes, slot)
            else:
                pack_two_classes(rows, row, planes, slot)
            row += GROUP
            continue
        for h in range(n):
            for p in range(n_digits):
                byte = 0 if begin == 0 else int(planes[h * n_digits + p, slot])
                for step in range(begin, end):
                    code = vote_of(rows[row + step - begin, h])
                    byte |= ((code >> p) & 1 if code >= 0 else 0) << step
                planes[h * n_digits + p, slot] = byte
            if history.masked:
                counted = 0 if begin == 0 else int(planes[n * n_digits + h, slot])
                cast = 0 if begin == 0 else int(planes[n * n_digits + n + h, slot])
                for step in range(begin, end):
                    code = rows[row + step - begin, h]
                    counted |= (1 if vote_of(code) >= 0 else 0) << step
                    cast |= (1 if code >= 0 else 0) << step
                planes[n * n_digits + h, slot] = counted
                planes[n * n_digits + n + h, slot] = cast
        row += end - begin


@jit
def repeat_first_bytes(history: History) -> None:
    """The first slots stand again behind the last, so that no slice wraps."""
    slots = history.n_bytes
    tail = history.planes.shape[1] - slots
    for plane in range(history.planes.shape[0]):
        for t in range(tail):
            history.planes[plane, slots + t] = history.planes[plane, t]


@jit
def shift_planes(group: int, n_groups: int, size: int, history: History, out: Bytes) -> None:
    """The planes as they were `size` rows earlier, for groups that begin at `group`."""
    slots = history.n_bytes
    shift = -size % GROUP
    first = (group - (size + GROUP - 1) // GROUP) % slots
    for plane in range(out.shape[0]):
        slot = first
        here = int(history.planes[plane, slot])
        for g in range(n_groups):
            slot = slot + 1 if slot + 1 < slots else 0
            after = int(history.planes[plane, slot])
            out[plane, g] = uint8_of((here | after << GROUP) >> shift)
            here = after


# Kernels that are called for every pair take the few arrays that they need: a named tuple of many arrays, handed on, is
# a reference to count for each of them.


@jit
def agreeing(planes: Bytes, place: int, i: int, j: int, n_digits: int, masked: bool, agree: Bytes, both: Bytes) -> None:
    """Bits of the rows on which a pair agrees, and on which both count, from byte `place` of the planes.

    For a line of votes (i = -1): the rows on which labeler j voted, and none.
    """
    begin = np.uint64(place)
    n_bytes = np.uint64(agree.shape[0])
    n = planes.shape[0] // (n_digits + 2) if masked else 0
    if i < 0:
        cast = np.uint64(n * n_digits + n + j)
        for g in range(n_bytes):
            agree[g] = planes[cast, begin + g]
            both[g] = 0
        return
    left, right = np.uint64(i * n_digits), np.uint64(j * n_digits)
    if masked:
        mine, yours = np.uint64(n * n_digits + i), np.uint64(n * n_digits + j)
        for g in range(n_bytes):
            both[g] = planes[mine, begin + g] & planes[yours, begin + g]
            agree[g] = uint8_of(both[g] & ~(planes[left, begin + g] ^ planes[right, begin + g]))
    else:
        for g in range(n_bytes):
            both[g] = 255
            agree[g] = uint8_of(~(planes[left, begin + g] ^ planes[right, begin + g]))
    for p in range(1, n_digits):
        left, right = np.uint64(i * n_digits + p), np.uint64(j * n_digits + p)
        for g in range(n_bytes):
            agree[g] = uint8_of(agree[g] & ~(planes[left, begin + g] ^ planes[right, begin + g]))


@jit
def agreeing_byte(planes: Bytes, place: int, i: int, j: int, n_digits: int, masked: bool) -> tuple[Any, Any]:
    """The same for a pair and one byte."""
    n = planes.shape[0] // (n_digits + 2) if masked else 0
    both = np.int64(255)
    if masked:
        both = np.int64(planes[n * n_digits + i, place]) & np.int64(planes[n * n_digits + j, place])
    agree = both
    for p in range(n_digits):
        agree &= ~(np.int64(planes[i * n_digits + p, place]) ^ np.int64(planes[j * n_digits + p, place]))
    return agree, both


@jit
def ones_of(value: int) -> np.uint8:
    """How many bits of a byte are set."""
    x = np.uint8(value)
    x = np.uint8(x - ((x >> np.uint8(1)) & np.uint8(0x55)))
    x = np.uint8((x & np.uint8(0x33)) + ((x >> np.uint8(2)) & np.uint8(0x33)))
    return np.uint8((x + (x >> np.uint8(4))) & np.uint8(0x0F))


@jit
def count_ones(bits: Bytes) -> None:
    """Each byte becomes the number of its bits."""
    for g in range(bits.shape[0]):
        bits[g] = ones_of(bits[g])
