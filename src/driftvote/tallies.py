"""The state behind the sharper window rules: the last rows, and sums over every window of the grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from driftvote import theory
from driftvote.agreements import n_pairs
from driftvote.kernels.bounds import BERNSTEIN, MCDIARMID, NORMAL, Watch, comparison, threshold
from driftvote.kernels.layout import Codes, Ints, code_dtype
from driftvote.kernels.tallies import Tally, replay, sum_up
from driftvote.windows import WindowTest

BOUNDS = {"normal": NORMAL, "bernstein": BERNSTEIN, "mcdiarmid": MCDIARMID}
WATCHED = ("votes", "agreements")


def n_statistics(n_labelers: int, n_classes: int, watch: str) -> int:
    """Numbers that are watched in every row: pairs, and with the votes a coverage and the shares of each labeler.

    >>> n_statistics(6, 2, "agreements"), n_statistics(6, 2, "votes"), n_statistics(6, 5, "votes")
    (15, 27, 51)
    """
    shares = n_classes if n_classes > 2 else 1
    return n_pairs(n_labelers) + (n_labelers * (1 + shares) if watch == "votes" else 0)


def watch_rule(
    sizes: Sequence[int], n_labelers: int, n_classes: int, bound: str, watch: str, beta: float, delta: float
) -> Watch:
    """The settings as kernels need them. Every bound shares delta among all that is watched."""
    count, m = n_statistics(n_labelers, n_classes, watch), len(sizes)
    log_term = theory.bernstein_log(count, m, delta)
    factor = {
        "normal": theory.normal_factor(count, m, delta),
        "bernstein": math.sqrt(2.0 * log_term),
        "mcdiarmid": theory.statistics_factor(count, m, delta),
    }[bound]
    steps = list(zip(sizes, sizes[1:], strict=False))
    terms = [theory.bernstein_terms(log_term, beta, r, wide) for r, wide in steps]
    plain = [theory.threshold(factor, beta, r, wide) for r, wide in steps]
    sure = [_cannot_fail(bound, r, wide, plain[k], terms[k][1]) for k, (r, wide) in enumerate(steps)]
    return Watch(
        sizes=np.array(sizes, np.int64),
        bound=BOUNDS[bound],
        plain=np.array(plain, np.float64),
        by_spread=np.array([by_spread for by_spread, _ in terms], np.float64),
        by_range=np.array([by_range for _, by_range in terms], np.float64),
        votes=watch == "votes",
        certain=next((k for k, certain in enumerate(sure) if not certain), len(sure)),
    )


def _cannot_fail(bound: str, r: int, wide: int, plain: float, by_range: float) -> bool:
    """Whether a window is accepted whatever its rows are; half the range is 1, which cancels.

    The means can differ by 2 (1 - r / R) at most. Under the normal bound such a difference is variance as well: that
    between the older and the newer rows is at least rho / (1 - rho) times its square, with rho = r / R.
    """
    share = r / wide
    if bound == "normal":
        least = (1.0 - share) * share + 1.0 / wide
        return (1.0 - share) ** 2 <= 0.999 * plain * plain * least
    return 2.0 * (1.0 - share) <= (min(plain, by_range) if bound == "bernstein" else plain)


TOTALS_BYTES = 1 << 25
"""Memory for running totals; windows that would need more are followed from the rows themselves."""


def empty_tally(sizes: Ints, n_labelers: int, n_classes: int, stride: int, spare: int) -> Tally:
    """A stream of which nothing has been seen, whose window is looked at every `stride` rows.

    `spare` rows are remembered beyond the largest window: as many as a fit may be old.
    """
    capacity, n = int(sizes[-1]) + spare, n_labelers
    width = 2 * n_pairs(n) + n * n_classes + n
    most = max(int(sizes[0]), TOTALS_BYTES // (8 * width) * stride)
    n_near = int((sizes <= most).sum())
    slots = int(sizes[n_near - 1]) // stride + 2
    return Tally(
        ring=np.zeros((capacity, n), code_dtype(n_classes)),
        keys=np.zeros(capacity, np.int64),
        known=np.full(capacity, -1, np.int64),
        now=np.zeros(width, np.int64),
        totals=np.zeros((slots, width), np.int64),
        lags=np.zeros((len(sizes) - n_near, width), np.int64),
        stats=np.zeros((len(sizes), width), np.int64),
        clock=np.zeros(1, np.int64),
        stride=stride,
        n_classes=n_classes,
    )


def recent_slots(tally: Tally) -> Ints:
    """Slots of the remembered rows, oldest first."""
    capacity, seen = len(tally.ring), int(tally.clock[0])
    kept = min(seen, capacity)
    return np.asarray((seen - kept + np.arange(kept)) % capacity)


def recounted(rows: Codes, known: Ints, seen: int, sizes: Ints, like: Tally) -> Tally:
    """The tally of a stream of `seen` rows whose last ones these are."""
    tally = empty_tally(sizes, rows.shape[1], like.n_classes, like.stride, len(like.ring) - int(sizes[-1]))
    tally.clock[0] = seen - len(rows)
    # Totals may begin anywhere: only differences are used, and those of rows that are remembered.
    replay(np.ascontiguousarray(rows), sizes, tally)
    if len(rows):
        tally.known[recent_slots(tally)[-len(rows) :]] = known
    return tally


def tally_of(rows: Codes, n_classes: int, stride: int) -> Tally:
    """The tally of these rows alone, summed up over one window that holds them all."""
    size = np.array([len(rows)])
    alone = empty_tally(size, rows.shape[1], n_classes, stride, 0)
    tally = recounted(rows, np.full(len(rows), -1), len(rows), size, alone)
    sum_up(0, size, tally)
    return tally


Watched = tuple[str, tuple[str, ...], float, float, float, float]
"""One statistic at one level: what it is, of whom, its mean over both windows, its variance and half its range."""


def explain_watch(tally: Tally, watch: Watch, names: Sequence[str]) -> list[WindowTest]:
    """The comparisons that led to the current window, smallest first, each by the statistic nearest to refusing it."""
    told: list[WindowTest] = []
    sum_up(0, watch.sizes, tally)
    for k in range(len(watch.sizes) - 1):
        if watch.sizes[k + 1] > tally.clock[0] or (told and not told[-1].accepted):
            break
        sum_up(k + 1, watch.sizes, tally)
        tests = []
        test = comparison(k, watch)
        for what, who, near, wide, variance, half_range in _watched(tally, watch, k, names):
            limit = threshold(variance, half_range, test)
            tests.append((abs(wide - near) - limit, abs(wide - near), limit, what, who))
        stray, gap, limit, what, who = max(tests, key=lambda test: test[0])
        told.append(WindowTest(int(watch.sizes[k]), int(watch.sizes[k + 1]), gap, limit, who, stray <= 0.0, what))
    return told


def _watched(tally: Tally, watch: Watch, k: int, names: Sequence[str]) -> Iterator[Watched]:
    """Every statistic of one comparison."""
    r, big = int(watch.sizes[k]), int(watch.sizes[k + 1])
    n_classes, pairs = tally.n_classes, n_pairs(len(names))
    scale = n_classes - 1
    low, high = (tally.stats[level].tolist() for level in (k, k + 1))
    for pair, who in enumerate(combinations(names, 2)):
        agreed = (high[pair] + high[pairs + pair]) / n_classes
        mean = high[pair] / (big * scale)
        variance = max(0.0, (agreed + (high[pairs + pair] - agreed) / scale**2) / big - mean * mean)
        yield "agreement", who, low[pair] / (r * scale), mean, variance, n_classes / (2.0 * scale)
    if not watch.votes:
        return
    for labeler, name in enumerate(names):
        at = 2 * pairs + labeler * n_classes
        near, wide = sum(low[at : at + n_classes]), sum(high[at : at + n_classes])
        mean = 2 * wide / big - 1
        yield "coverage", (name,), 2 * near / r - 1, mean, max(0.0, 1.0 - mean * mean), 1.0
        for c in range(0 if n_classes > 2 else 1, n_classes):
            mean = (2 * high[at + c] - wide) / big
            yield "votes", (name,), (2 * low[at + c] - near) / r, mean, max(0.0, wide / big - mean * mean), 1.0
