"""The weighted vote of all rows of a block, and what is written of them."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.bits import GROUP
from driftvote.kernels.labels import TIE, draw_of, pick_class
from driftvote.kernels.layout import Block, Bytes, Codes, Floats, History, Outputs, Rule, Scratch, Sums
from driftvote.kernels.weights import odds_of

# Up to here a masked product for every class is faster than a branch on the vote.
FEW_CLASSES = 4

# The verdict of a row whose classes are tied, until the draw is looked at.
TIED = 2
UNSETTLED = -2


@jit
def fill_odds(accuracies: Floats, rule: Rule, out: Floats) -> None:
    """Odds of one labeler at every row."""
    for t in range(out.shape[0]):
        out[t] = odds_of(accuracies[t], rule)


@jit
def add_digit(bits: Bytes, step: int, digit: int, out: Codes) -> None:
    """One binary digit of a labeler's class codes, at row step of every group."""
    shift = np.int16(step)
    for g in range(out.shape[0]):
        out[g] |= (np.int16(bits[g]) >> shift & np.int16(1)) << digit


@jit
def unpack_votes(h: int, history: History, block: Block, out: Codes) -> None:
    """Class codes of one labeler, -1 where it does not count."""
    n_groups = out.shape[0] // GROUP
    n_digits = history.n_digits
    planes = history.planes[:, block.byte : block.byte + n_groups]
    out[:] = 0
    for step in range(GROUP):
        part = out[step * n_groups : (step + 1) * n_groups]
        for p in range(n_digits):
            add_digit(planes[h * n_digits + p], step, p, part)
        if history.masked:
            counts = planes[history.n_labelers * n_digits + h]
            for g in range(n_groups):
                part[g] = part[g] if counts[g] >> step & 1 else -1


@jit
def multiply_votes(codes: Codes, c: int, odds: Floats, scores: Floats) -> None:
    """The odds of a labeler into the product of class c, where it voted for it."""
    for t in range(scores.shape[0]):
        scores[t] *= odds[t] if codes[t] == c else 1.0


@jit
def count_votes(codes: Codes, c: int, support: Sums) -> None:
    """One more vote for class c, where the labeler voted for it."""
    for t in range(support.shape[0]):
        support[t] = np.int32(support[t] + (np.int32(1) if codes[t] == c else np.int32(0)))


@jit
def vote_two(planes: Bytes, byte: int, h: int, mask: int, odds: Floats, scores: Floats) -> None:
    """The odds of labeler h into the products of two classes; `mask` is the plane that says where it counts, or -1."""
    n_groups = np.uint64(odds.shape[0] // GROUP)
    bits, counts, begin = np.uint64(h), np.uint64(max(mask, 0)), np.uint64(byte)
    always, one = np.int64(mask < 0), np.int64(1)
    downs, ups = scores[0], scores[1]
    for step in range(GROUP):
        shift, first = np.int64(step), np.uint64(step) * n_groups
        for g in range(n_groups):
            odd = odds[first + g]
            up = np.int64(planes[bits, begin + g]) >> shift & one
            counted = np.int64(planes[counts, begin + g]) >> shift & one | always
            ups[first + g] *= odd if up == one else 1.0
            downs[first + g] *= odd if up < counted else 1.0


@jit
def support_of_two(history: History, block: Block, support: Sums) -> None:
    """Which of two classes has a vote at all: 1 or 0 in place of a count."""
    n_groups = support.shape[1] // GROUP
    n, planes = history.n_labelers, history.planes
    for g in range(n_groups):
        favour = against = np.int64(0)
        for h in range(n):
            votes = np.int64(planes[h, block.byte + g])
            favour |= votes
            against |= ~votes & (np.int64(planes[n + h, block.byte + g]) if history.masked else 255)
        for step in range(GROUP):
            support[1, step * n_groups + g] = favour >> step & 1
            support[0, step * n_groups + g] = against >> step & 1


@jit
def vote_block(history: History, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Products of odds and numbers of votes of each class, labelers in order."""
    scratch.scores[:, :] = 1.0
    scratch.support[:, :] = 0
    odds, codes, n = scratch.odds, scratch.codes, scratch.estimates.shape[0]
    if rule.n_classes == 2:
        support_of_two(history, block, scratch.support)
    for h in range(n):
        fill_odds(scratch.estimates[h], rule, odds)
        if rule.n_classes == 2:
            vote_two(history.planes, block.byte, h, n + h if history.masked else -1, odds, scratch.scores)
            continue
        unpack_votes(h, history, block, codes)
        if rule.n_classes > FEW_CLASSES:
            for t in range(codes.shape[0]):
                if codes[t] >= 0:
                    scratch.scores[codes[t], t] *= odds[t]
                    scratch.support[codes[t], t] += 1
            continue
        for c in range(rule.n_classes):
            multiply_votes(codes, c, odds, scratch.scores[c])
            count_votes(codes, c, scratch.support[c])


@jit
def decide_two(scores: Floats, support: Sums, verdict: Sums) -> None:
    """Probabilities (in place of the scores) and labels of two classes: `pick_class` and `normalise`, written out."""
    downs, ups, against, favour = scores[0], scores[1], support[0], support[1]
    tied, none, zero, one = np.int32(TIED), np.int32(-1), np.int32(0), np.int32(1)
    for t in range(verdict.shape[0]):
        down, up = downs[t], ups[t]
        total = down + up
        downs[t] = down / total
        ups[t] = up / total
        label = one if up > down else zero
        label = tied if (down >= up * TIE) & (up >= down * TIE) else label
        # Only voted classes compete.
        label = label if favour[t] > 0 else zero
        label = label if against[t] > 0 else (one if favour[t] > 0 else none)
        verdict[t] = label


@jit
def write_block(first: int, last: int, row: int, draws: Floats, rule: Rule, scratch: Scratch, out: Outputs) -> None:
    """Rows first .. last - 1 of the block into the outputs, from `row` on."""
    n_groups = np.uint64(scratch.alive.shape[0])
    group = np.uint64(GROUP)
    labels, windows, proba, estimates = out.labels, out.windows, out.proba, out.estimates
    made, level, sizes = scratch.estimates, scratch.level, rule.sizes
    n, begin, to = np.uint64(made.shape[0]), np.uint64(first), np.uint64(row)
    if rule.n_classes == 2:
        decide_two(scratch.scores, scratch.support, scratch.best)
    for t in range(np.uint64(last - first)):
        place = (begin + t) % group * n_groups + (begin + t) // group
        windows[to + t] = sizes[level[place]]
        for h in range(n):
            estimates[to + t, h] = made[h, place]
        if rule.n_classes == 2:
            label = scratch.best[place]
            if label == TIED:
                draw = draw_of(draws, int(to + t))
                label = -1 if draw < 0.0 else int(draw * 2)
            labels[to + t] = label
            proba[to + t, 0] = scratch.scores[0, place]
            proba[to + t, 1] = scratch.scores[1, place]
    if rule.n_classes > 2:
        write_classes(first, last, row, draws, scratch, out)
    if out.votes.shape[0] > 0:
        write_votes(first, last, row, scratch, out)


@jit
def lead_classes(scores: Floats, support: Sums, top: Floats, verdict: Sums) -> None:
    """`pick_class` of many classes as far as nothing has to be drawn: the leading class, or UNSETTLED if others are as
    good; the largest score into `top`."""
    voted = np.int32(0)
    verdict[:] = -1
    top[:] = 0.0
    for c in range(scores.shape[0]):
        mine, votes, this = scores[c], support[c], np.int32(c)
        for t in range(verdict.shape[0]):
            better = (votes[t] > voted) & ((verdict[t] < voted) | (mine[t] > top[t]))
            top[t] = mine[t] if better else top[t]
            verdict[t] = this if better else verdict[t]
    for c in range(scores.shape[0]):
        mine, votes, this, unsettled = scores[c], support[c], np.int32(c), np.int32(UNSETTLED)
        for t in range(verdict.shape[0]):
            rival = (votes[t] > voted) & (mine[t] >= top[t] * TIE) & (verdict[t] != this)
            verdict[t] = unsettled if rival else verdict[t]


@jit
def share_scores(scores: Floats, total: Floats) -> None:
    """`normalise`, written out: the scores of a row become probabilities."""
    total[:] = 0.0
    for c in range(scores.shape[0]):
        mine = scores[c]
        for t in range(total.shape[0]):
            total[t] += mine[t]
    for c in range(scores.shape[0]):
        mine = scores[c]
        for t in range(total.shape[0]):
            mine[t] /= total[t]


@jit
def write_classes(first: int, last: int, row: int, draws: Floats, scratch: Scratch, out: Outputs) -> None:
    """Labels and probabilities of many classes."""
    n_groups = scratch.alive.shape[0]
    scores, support, verdict = scratch.row_scores, scratch.row_support, scratch.best
    lead_classes(scratch.scores, scratch.support, scratch.scale, verdict)
    for t in range(last - first):
        place = (first + t) % GROUP * n_groups + (first + t) // GROUP
        label = verdict[place]
        if label == UNSETTLED:
            for c in range(scores.shape[0]):
                scores[c] = scratch.scores[c, place]
                support[c] = scratch.support[c, place]
            label = pick_class(scores, support, draw_of(draws, row + t))
        out.labels[row + t] = label
    share_scores(scratch.scores, scratch.scale)
    for t in range(last - first):
        place = (first + t) % GROUP * n_groups + (first + t) // GROUP
        for c in range(scores.shape[0]):
            out.proba[row + t, c] = scratch.scores[c, place]


@jit
def write_votes(first: int, last: int, row: int, scratch: Scratch, out: Outputs) -> None:
    """Votes inside the window, of every labeler."""
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    n_groups = scratch.alive.shape[0]
    for t in range(last - first):
        place = (first + t) % GROUP * n_groups + (first + t) // GROUP
        for h in range(n):
            out.votes[row + t, h] = scratch.sums[n_pairs + h, place]


@jit
def touch_rows(out: Outputs, first: int, last: int) -> None:
    """Write to the memory of rows first .. last - 1, so that it is there: once for every 4 KiB, or oftener."""
    n = out.estimates.shape[1]
    for row in range(first, last, 512):
        out.labels[row] = 0
        out.windows[row] = 0
    for row in range(first, last, max(1, 512 // out.proba.shape[1])):
        out.proba[row, 0] = 0.0
    for row in range(first, last, max(1, 512 // n)):
        out.estimates[row, 0] = 0.0
        if out.votes.shape[0] > 0:
            out.votes[row, 0] = 0
