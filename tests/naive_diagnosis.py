"""Which labelers changed, and when, by definition: flags for every row, no tables, no bits."""

from __future__ import annotations

import math

import numpy as np

from driftvote.drift.diagnosis import DROP, MOST_PAIRS, NAMED, TOGETHER
from driftvote.drift.statistics import normal_deviate
from naive_detector import BLOCK, LEAST, STEADY, most, surprise


def sides(rows, panel):
    """Rows x labelers: the class that most of the others in the panel vote for, or -1."""
    plain = rows.tolist()
    return np.array(
        [[most([v for j, v in enumerate(row) if panel[j] and j != h]) for h in range(len(row))] for row in plain]
    )


def diagnose(rows, n_classes, found, limit):
    """About, since, kind, agreement, coverage and pairs of a `Change`; `found` names the statistic and the row."""
    what, who, change = found
    n = rows.shape[1]
    said = np.array([most(row) for row in rows.tolist()])
    hits, tries = rows[:, who % n] >= 0, np.ones(len(rows), bool)
    if what == "agreement":
        others = sides(rows, [True] * n)[:, who]
        hits, tries = rows[:, who] == others, (rows[:, who] >= 0) & (others >= 0)
    elif what == "balance":
        hits, tries = said % 8 == who, said >= 0
    about, since = locate(hits, tries, change)
    here = [bool((rows[:about, h] >= 0).any()) for h in range(n)]
    votes = moved_votes(rows, about, here)
    shares = max(abs(moved(said % 8 == s, said >= 0, about)) for s in range(min(n_classes, 8)))
    panel = [here[h] and h not in votes for h in range(n)]
    if sum(panel) < 2:
        panel = list(here)
    agreement = moved_agreement(rows, about, panel, here, min(n_classes, 8))
    clear = math.sqrt(limit)
    best = max([abs(z) for z in [*agreement.values(), *votes.values()]] + [shares])
    if best < 0.75 * clear:
        return None
    if best == shares:
        return about, since, "class balance", {}, {}, ()
    if votes and best == max(map(abs, votes.values())):
        kind, agreement = "coverage", {h: z for h, z in agreement.items() if abs(z) >= clear}
    else:
        up, down = sum(z > 0 for z in agreement.values()), sum(z < 0 for z in agreement.values())
        kind = "labelers changed" if up and down else "labeler better" if up else "labeler worse"
        if up + down >= 3 and 2 * (up + down) > sum(here):
            kind = "most labelers"
    return about, since, kind, agreement, votes, moved_pairs(rows, about, [*dict.fromkeys([*agreement, *votes])])


def locate(hits, tries, change):
    """The row at which two rates explain the hits best, and the rows nearly as good."""
    n_rows, where = len(hits), change
    for _ in range(3):
        parts = (slice(0, where), slice(where, n_rows))
        rates = [((hits & tries)[part].sum() + 0.5) / (tries[part].sum() + 1.0) for part in parts]
        gain = [
            0.0 if not t else math.log(rates[1] / rates[0]) if hit else math.log((1 - rates[1]) / (1 - rates[0]))
            for hit, t in zip(hits, tries, strict=True)
        ]
        first = max(1, min(change, where) - max(4 * BLOCK, n_rows - change))
        total = np.cumsum(gain[::-1])[::-1]
        where = first + int(np.argmax(total[first:]))
    likely = [t for t in range(first, n_rows) if total[t] >= total[where] - DROP]
    return where, (likely[0], likely[-1])


def spread(hits, tries, split):
    """How much blocks before the change vary, against coins."""
    blocks = split // BLOCK
    parts = [slice(split - (b + 1) * BLOCK, split - b * BLOCK) for b in range(blocks)]
    a, m = [(hits & tries)[p].sum() for p in parts], [tries[p].sum() for p in parts]
    if blocks < 2 or not 0 < sum(a) < sum(m):
        return 1.0
    rate = sum(a) / sum(m)
    found = sum((x - rate * y) ** 2 for x, y in zip(a, m, strict=True)) / (blocks - 1)
    found /= rate * (1 - rate) * sum(m) / blocks
    return max(1.0, (STEADY + (blocks - 1) * found) / (STEADY + blocks - 1))


def moved(hits, tries, split):
    """The deviate of one rate."""
    a, m = (hits & tries)[split:].sum(), tries[split:].sum()
    b, big = (hits & tries)[:split].sum(), tries[:split].sum()
    if m == 0 or big < LEAST:
        return 0.0
    return np.sign(a / m - b / big) * math.sqrt(max(0.0, surprise(a, m, b, big)) / spread(hits, tries, split))


def moved_inside(hits, tries, strata, split, n_strata):
    """Cochran, Mantel and Haenszel's comparison."""
    top = variance = 0.0
    for s in range(n_strata):
        inside = tries & (strata % n_strata == s)
        a, m = (hits & inside)[split:].sum(), inside[split:].sum()
        b, big = (hits & inside)[:split].sum(), inside[:split].sum()
        shares = big / max(1, tries[:split].sum()), m / max(1, tries[split:].sum())
        if m + big >= 2 and max(shares) <= 4.0 * min(shares):
            rate = (a + b) / (m + big)
            top += a - m * rate
            variance += m * big * rate * (1 - rate) / (m + big - 1)
    return top / math.sqrt(variance * spread(hits, tries, split)) if variance > 0 else 0.0


def moved_agreement(rows, split, panel, here, n_strata):
    enough = normal_deviate(NAMED / max(1, sum(here)))
    named, panel, waiting = {}, list(panel), [h for h, there in enumerate(here) if there]
    while waiting and sum(panel) >= 2:
        others, plain, size = sides(rows, panel), {}, {}
        for h in waiting:
            hits, tries = rows[:, h] == others[:, h], (rows[:, h] >= 0) & (others[:, h] >= 0)
            plain[h] = moved(hits, tries, split)
            inside = moved_inside(hits, tries, others[:, h], split, n_strata)
            size[h] = min(abs(plain[h]), abs(inside)) if plain[h] * inside > 0 else 0.0
        largest = max(size.values())
        if largest < enough:
            break
        order = sorted(waiting, key=lambda h: -size[h])
        new = [h for h in order if size[h] >= max(enough, TOGETHER * largest)]
        for h in new[:1] if sum(panel) <= 3 else new:
            named[h] = np.sign(plain[h]) * size[h]
            waiting.remove(h)
            panel[h] = False
    return named


def moved_votes(rows, split, here):
    enough, found = normal_deviate(NAMED / max(1, sum(here))), {}
    for h, there in enumerate(here):
        voted = rows[:, h] >= 0
        begin = int(voted.argmax()) // BLOCK * BLOCK
        if there and split - begin >= LEAST:
            found[h] = moved(voted[begin:], np.ones(len(rows) - begin, bool), split - begin)
    return {h: z for h, z in sorted(found.items(), key=lambda item: -abs(item[1])) if abs(z) >= enough}


def moved_pairs(rows, split, who):
    found = {}
    for h in who:
        for j in range(rows.shape[1]):
            if j != h:
                both = (rows[:, h] >= 0) & (rows[:, j] >= 0)
                found[min(h, j), max(h, j)] = abs(moved(rows[:, h] == rows[:, j], both, split))
    enough = normal_deviate(NAMED / max(1, len(found)))
    return tuple(p for p in sorted(found, key=lambda p: -found[p]) if found[p] >= enough)[:MOST_PAIRS]


def changed(kind, agreement, coverage, before, after, half):
    """Names of changes by labeler, given accuracies on either side and half the width of their bands."""
    words = {}
    for place, (h, z) in enumerate(agreement.items()):
        if place == 0 or (after[h] - before[h]) * z > 0:
            words[h] = "better" if z > 0 else "worse"
    if kind == "most labelers":
        for h in range(len(before)):
            if abs(after[h] - before[h]) > 2 * half:
                words.setdefault(h, "better" if after[h] > before[h] else "worse")
    votes = {h: "votes more" if z > 0 else "votes less" for h, z in coverage.items()}
    order = [votes, words] if kind == "coverage" else [words, votes]
    return {h: next(part[h] for part in order if h in part) for h in [*order[0], *order[1]]}
