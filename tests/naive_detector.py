"""The search for drift by definition: lists, loops, nothing stored that could be counted again."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

BLOCK, LEAST, STEADY, FINE = 64, 16, 8, 4
SPANS = (1, 2, 4, 8, 16, 32, 64, 128)
KEPT = 129


def most(votes: list[int]) -> int:
    """The class with more votes than any other, or -1."""
    counts = Counter(vote for vote in votes if vote >= 0).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return -1
    return counts[0][0]


def outcomes(row: list[int], h: int) -> tuple[int, int]:
    """Whether the labeler and most of the others voted, and whether they agreed."""
    others = most(row[:h] + row[h + 1 :])
    seen = row[h] >= 0 and others >= 0
    return int(seen), int(seen and row[h] == others)


def counted(rows: list[list[int]], n_classes: int) -> dict[str, tuple[int, int]]:
    """Hits and tries of every statistic, over some rows."""
    found: dict[str, tuple[int, int]] = {}
    for h in range(len(rows[0])):
        pairs = [outcomes(row, h) for row in rows]
        found[f"agreement {h}"] = (sum(hit for _, hit in pairs), sum(seen for seen, _ in pairs))
        found[f"coverage {h}"] = (sum(row[h] >= 0 for row in rows), len(rows))
    labels = [most(row) for row in rows]
    for s in range(min(n_classes, 8)):
        found[f"balance {s}"] = (sum(c >= 0 and c % 8 == s for c in labels), sum(c >= 0 for c in labels))
    return found


def surprise(a: int, m: int, b: int, big: int) -> float:
    def nats(hits: int, of: int, rate: float) -> float:
        miss = of - hits
        return (hits * math.log(hits / (of * rate)) if hits else 0.0) + (
            miss * math.log(miss / (of * (1.0 - rate))) if miss else 0.0
        )

    rate = (a + b) / (m + big)
    return 0.0 if rate in (0.0, 1.0) else 2.0 * (nats(a, m, rate) + nats(b, big, rate))


class NaiveDetector:
    """All rows and the counts of every block; the caller says where an episode begins."""

    def __init__(self, n_classes: int, limit: float) -> None:
        self.n_classes, self.limit = n_classes, limit
        self.rows: list[list[int]] = []
        self.blocks: list[dict[str, tuple[int, int]]] = []
        self.start = 0
        self.pending: tuple[str, int] | None = None
        self.prior: dict[str, float] = {}

    def add(self, row: list[int]) -> tuple[str, int] | None:
        """The name of a statistic that changed and how many blocks ago; None after most rows."""
        self.rows.append(row)
        if len(self.rows) % BLOCK:
            return None
        self.blocks.append(counted(self.rows[-BLOCK:], self.n_classes))
        if self.pending is not None:
            (name, span), self.pending = self.pending, None
            return name, span + 1
        for span in SPANS:
            due = span <= FINE or len(self.blocks) % (span // FINE) == 0
            if due and len(self.blocks) - span > self.start:
                found = self.compare(span)
                if found is not None:
                    self.pending = found, span  # reported a block later
                    return None
        return None

    def compare(self, span: int) -> str | None:
        change = len(self.blocks) - span
        told, best = None, self.limit
        for name in self.names():
            since = self.start
            if name.startswith("coverage"):
                h = int(name.split()[1])
                voted = [b for b, block in enumerate(self.blocks) if block[name][0]]
                if not voted or max(since, voted[0]) >= change:
                    continue
                since = max(since, voted[0])
                assert h >= 0
            (a, m), (b, big) = self.sums(name, change, len(self.blocks)), self.sums(name, since, change)
            if m < LEAST or big < LEAST:
                continue
            if name.startswith("balance") and not self.is_new_share(name, span):
                continue
            first = max(since, len(self.blocks) - KEPT + 1)
            spread = self.spread(name, first, change, span)
            found = surprise(a, m, b, big) / spread
            if not name.startswith("balance"):
                found = min(found, surprise(a, m, self.expected(name, change, b, big), big) / spread)
            if found > best and self.near(a, m, b, big, best):
                told, best = name, found
        return told

    def is_new_share(self, name: str, span: int) -> bool:
        """A share that no stretch a quarter as long had, of those that ended in an earlier period of 8 blocks."""
        now, span = len(self.blocks), min(span, 128)
        length = max(1, span // 4)
        known = []
        for end in range(length, now + 1):
            due = length <= FINE or end % (length // FINE) == 0
            if due and max(0, now // 8 - 255) <= end // 8 < (now - 2 * span) // 8:
                hits, tries = self.sums(name, end - length, end)
                known += [hits / tries] if tries >= LEAST else []
        hits, tries = self.sums(name, now - span, now)
        return bool(known) and not min(known) <= hits / max(1, tries) <= max(known)

    def expected(self, name: str, change: int, hits: int, tries: int) -> int:
        """The hits before the change, had the classes come as they do since: by a regression over the last blocks."""
        now, moved, share = len(self.blocks), 0.0, None
        for other in self.names():
            if other.startswith("balance"):
                (a, m), (b, big) = self.sums(other, change, now), self.sums(other, self.start, change)
                if m and big and abs(a / m - b / big) > abs(moved):
                    moved, share = a / m - b / big, other
        if share is None:
            return hits
        last = [(block[name], block[share]) for block in self.blocks[max(0, now - KEPT + 1) :]]
        weights, x, y = np.array([(m, b / big, a / m) for (a, m), (b, big) in last if m and big]).T
        x, y = x - np.average(x, weights=weights), y - np.average(y, weights=weights)
        if not (x != 0).any():
            return hits
        slope = (weights * x * y).sum() / (weights * x * x).sum()
        return round(min(max(hits / tries + slope * moved, 0.0), 1.0) * tries)

    def near(self, a: int, m: int, b: int, big: int, limit: float) -> bool:
        """The cheap look that comes first must let through what counts."""
        rate = (a + b) / (m + big)
        return (a / m - b / big) ** 2 > 0.5 * limit * rate * (1.0 - rate) * (1.0 / m + 1.0 / big)

    def names(self) -> list[str]:
        n = len(self.rows[0])
        ordered = [name for h in range(n) for name in (f"agreement {h}", f"coverage {h}")]
        return ordered + [f"balance {s}" for s in range(min(self.n_classes, 8) if self.n_classes > 2 else 1)]

    def sums(self, name: str, first: int, last: int) -> tuple[int, int]:
        part = [block[name] for block in self.blocks[first:last]]
        return sum(hits for hits, _ in part), sum(seen for _, seen in part)

    def spread(self, name: str, first: int, change: int, span: int) -> float:
        spread, length = self.prior.get(name, 1.0), 1
        while length <= span and change - first >= 2 * length:
            groups = (change - first) // length
            begin = change - groups * length
            hits, seen = self.sums(name, begin, change)
            if 0 < hits < seen:
                rate = hits / seen
                parts = [self.sums(name, begin + g * length, begin + (g + 1) * length) for g in range(groups)]
                found = sum((a - rate * m) ** 2 for a, m in parts) / (groups - 1)
                found /= rate * (1.0 - rate) * seen / groups
                mixed = (STEADY * spread + (groups - 1) * found) / (STEADY + groups - 1)
                spread = max(1.0, mixed) if length == 1 else max(spread, mixed)
            length *= 2
        return spread

    def begin(self, start: int, end: int) -> None:
        """A new episode from block `start` on; the last one ended at block `end`."""
        first = max(self.start, len(self.blocks) - KEPT + 1)
        names = [*self.names(), *(["balance 1"] if self.n_classes == 2 else [])]
        self.prior = {name: self.spread(name, first, end, FINE) for name in names}
        self.start = start
