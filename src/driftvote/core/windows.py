"""How many of the last rows count: the window sizes, the thresholds between them, and the choice.

Algorithm 1 of the paper starts from the smallest window and takes the next one as long as the pair agreements of the
two differ by no more than a threshold: the larger window then holds no drift that the noise of the smaller one would
not hide. There are three thresholds (`BOUNDS`). The paper's, by McDiarmid's inequality, is compared in integers; the
other two look at how much an agreement varies, with the same few floating operations wherever this runs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftvote import settings, theory
from driftvote.arrays import Floats, Ints
from driftvote.core.jit import by_address, inner, jit
from driftvote.core.state import (
    ALL_PAST,
    SHARES,
    STRETCHES,
    StreamState,
    count_row,
    n_pairs,
    n_pairs_of,
    rows_of_window,
    rows_that_count,
    sum_window,
)
from driftvote.errors import SettingError

LARGEST_WINDOW = 2**27
"""A window of 134 million rows; the integer tests are exact up to here, and memory ends first."""

SMALL_PANEL = 256
"""Labelers up to which a panel has as many columns as labelers; see `room_for`."""

SHORTEST, FEWEST = 32, 8
"""Rows of a stretch that shows how agreements follow the classes, and stretches, at least."""

MCDIARMID, BERNSTEIN, NORMAL = 0, 1, 2
BOUNDS = {"normal": NORMAL, "bernstein": BERNSTEIN, "mcdiarmid": MCDIARMID}


class WindowTests(NamedTuple):
    """The comparisons between each window and the next, in the form that kernels need.

    Arrays have one entry for each step from one window to the next.
    """

    bound: int
    plain: Floats  # threshold for a half range (McDiarmid, Bernstein) or a standard deviation (normal) of 1
    by_spread: Floats  # Bernstein's, for each unit of the standard deviation
    by_range: Floats  # Bernstein's, for each unit of the half range
    near: Ints  # McDiarmid's step k passes when |near S_(k+1) - far S_k| <= limit for every pair, all integers
    far: Ints
    limit: Ints
    n_certain: int  # so many steps, from the first on, pass whatever the rows are
    factor: float  # of `theory.threshold`, for the normal bound
    beta: float


class Comparison(NamedTuple):
    """One step as plain numbers, because arrays are expensive to pass from kernel to kernel."""

    rows: int  # of the smaller window
    next_rows: int  # of the larger one
    bound: int
    plain: float
    by_spread: float
    by_range: float


def threshold(variance: float, half_range: float, step: Comparison) -> float:
    """Return how far the means over the two windows may be apart; values span 2 half_range.

    `variance` is that of the rows of the larger window, divided by their number.
    """
    if step.bound == NORMAL:
        # Four values' worth of doubt about the variance: a pair that never varied is not beyond doubt.
        return step.plain * math.sqrt(variance + 4.0 * half_range * half_range / step.next_rows)
    if step.bound == BERNSTEIN:
        spread = step.by_spread * math.sqrt(variance)
        # Both hold at the same time (docs/windows.md), so the smaller one does.
        return min(step.plain * half_range, spread + step.by_range * half_range)
    return step.plain * half_range


_threshold = inner(threshold)


@inner
def exceeds(near: int, wide: int, squares: int, scale: int, step: Comparison) -> bool:
    """Return whether a statistic differs by more than its threshold.

    `near` and `wide` are its sums over the two windows, times `scale`, and `squares` is the sum of its squares over
    the larger one, times `scale` squared.
    """
    r, big = step.rows, step.next_rows
    if step.bound == NORMAL:
        # The same as below, both sides squared and times (r big scale)^2: most of the time of a choice is spent here,
        # and this way it needs neither a root nor a division.
        apart, limit = float(r * wide - big * near), step.plain * r
        spread = max(0.0, float(big) * squares - float(wide) * wide)
        return apart * apart > limit * limit * (spread + float(big) * ((scale + 1) * (scale + 1)))
    gap = abs(r * wide - big * near) / float(r * big * scale)
    mean = wide / float(big * scale)
    variance = max(0.0, squares / float(big * scale * scale) - mean * mean)
    return gap > _threshold(variance, (scale + 1.0) / (2.0 * scale), step)


@inner
def gap_accepted(level: int, state: StreamState, tests: WindowTests) -> bool:
    """Return whether McDiarmid's test accepts window level + 1; the sums of both windows are there.

    One row changes the gap of a pair by at most 2 far (K - 1): three of its terms move, by that much together. So a
    test that passes (or fails) with room to spare decides those of the next rows: `settled` says until which row (a
    negative number: until which row it fails). That is true whatever the rows are, as long as they follow.
    """
    near, far, limit = tests.near[level], tests.far[level], tests.limit[level]
    small, large = state.sums[level], state.sums[level + 1]
    gap = 0
    for pair in range(n_pairs_of(state)):
        gap = max(gap, abs(near * large[pair] - far * small[pair]))
    most = 2 * far * (state.n_classes - 1)
    seen = state.clock[0]
    if gap <= limit:
        state.settled[level] = seen + (limit - gap) // most
        return True
    state.settled[level] = -(seen + (gap - limit - 1) // most)
    return False


@inner
def add_shares(sums: Ints, per: float, state: StreamState, column: int) -> None:
    """Add the votes for each class, or each group of classes, times `per`, to a column of the room for work."""
    n, n_classes = state.ring.shape[1], state.n_classes
    for h in range(n):
        for c in range(n_classes):
            state.room[c % SHARES, column] += per * sums[n * (n - 1) + h * n_classes + c]


@inner
def product(x: Floats, left: int, right: int, count: int) -> float:
    """Return the product of two lines, over their first numbers."""
    total = 0.0
    for g in range(count):
        total += x[left, g] * x[right, g]
    return total


@inner
def gap_at_equal_shares(level: int, rows: int, pair: int, state: StreamState) -> float:
    """Return the change of a pair's agreement between two windows that the votes for the classes do not explain.

    Labelers agree more often on one class than on another, so where classes come in runs, agreements move though no
    labeler does. On average they are a linear function of the shares of the classes, and so are the votes for each
    class: the slopes are found by least squares over the last stretches of rows (Gram and Schmidt's procedure).
    """
    k, stride, seen, x = state.n_classes, state.stride, state.clock[0], state.room
    near, wide, r = state.sums[level], state.sums[level + 1], state.sizes[level]
    gap = (wide[pair] / rows - near[pair] / r) / (k - 1)
    length = max(1, max(SHORTEST, rows // STRETCHES) // stride) * stride
    end = 1 + (seen - 1) // stride * stride  # running totals were stored after so many rows
    reach = min(state.sizes[-1], rows_that_count(state)) - (seen - end) - 1
    count = min(STRETCHES, reach // length)
    if count < FEWEST:
        return gap
    m, n_near = min(k, SHARES), state.sizes.shape[0] - state.lags.shape[0]
    stored = n_near > 0 and count * length <= state.sizes[n_near - 1]
    sums = state.sums[state.sizes.shape[0] + 1]
    # Lines of x: votes for each class by stretch, the change between the windows last; then the agreement by stretch.
    for c in range(m):
        for g in range(count + 1):
            x[c, g] = 0.0
    for g in range(count):
        first, last = end - (count - g) * length, end - (count - g - 1) * length
        for d in range(sums.shape[0]):
            sums[d] = 0
        if stored:
            low, high = (first - 1) // stride % state.totals.shape[0], (last - 1) // stride % state.totals.shape[0]
            for d in range(sums.shape[0]):
                sums[d] = state.totals[high, d] - state.totals[low, d]
        else:
            for t in range(first, last):
                count_row(state.ring, t % state.ring.shape[0], k, sums)
        x[SHARES, g] = sums[pair] / (length * (k - 1))
        add_shares(sums, 1.0 / length, state, g)
    add_shares(wide, 1.0 / rows, state, count)
    add_shares(near, -1.0 / r, state, count)
    for c in range(m):
        mean = 0.0
        for g in range(count):
            mean += x[c, g] / count
        for g in range(count):
            x[c, g] -= mean
        whole = product(x, c, c, count)
        for b in range(c):
            shared = product(x, b, c, count)
            for g in range(count + 1):
                x[c, g] -= shared * x[b, g]
        norm = math.sqrt(product(x, c, c, count))
        # Where it is next to nothing, the votes for this class follow from those for the others.
        scale = 1.0 / norm if norm * norm > 1e-9 * (whole + 1e-9) else 0.0
        for g in range(count + 1):
            x[c, g] *= scale
        gap -= product(x, c, SHARES, count) * x[c, count]
    return gap


@inner
def accepts(level: int, rows: int, state: StreamState, tests: WindowTests) -> bool:
    """Return whether window level + 1, which holds so many rows, is accepted after window level; both are summed up."""
    if tests.bound == MCDIARMID:
        return gap_accepted(level, state, tests)
    near, wide = state.sums[level], state.sums[level + 1]
    pairs, n_classes = n_pairs_of(state), state.n_classes
    scale = n_classes - 1
    r, plain = state.sizes[level], tests.plain[level]
    if rows < state.sizes[level + 1]:
        plain = tests.factor * (2.0 * tests.beta / math.sqrt(r) + math.sqrt((1.0 - r / rows) / r))
    step = Comparison(r, rows, tests.bound, plain, tests.by_spread[level], tests.by_range[level])
    for pair in range(pairs):
        both = wide[pairs + pair]
        agreed = (wide[pair] + both) // n_classes
        squares = agreed * (scale * scale) + both - agreed
        if exceeds(near[pair], wide[pair], squares, scale, step):
            if tests.bound != NORMAL:
                return False
            mean = wide[pair] / float(rows * scale)
            variance = max(0.0, squares / float(rows * scale * scale) - mean * mean)
            gap = abs(gap_at_equal_shares(level, rows, pair, state))
            if gap > _threshold(variance, (scale + 1.0) / (2.0 * scale), step):
                return False
    return True


@inner
def choose_window(state: StreamState, tests: WindowTests, limit: int) -> int:
    """Return the index of the window that the rule stops at, after the rows seen so far; its sums are then there.

    If the rule does not stop before the window `limit`, that is the answer, and it is not summed up.

    After a floor rows are scarce: a window that does not fit is then compared, too, cut to the rows that count (under
    the normal bound, whose threshold takes any two windows).
    """
    seen, count, last = state.clock[0], rows_that_count(state), state.sizes.shape[0] - 1
    if state.follows[0] == 0:
        sum_window(last, state)
        return last
    cuts = tests.bound == NORMAL and count < seen
    level = 0
    while level < tests.n_certain and state.sizes[level + 1] <= count:
        level += 1
    summed = -1  # the last window that was summed
    while level < min(last, limit):
        rows = min(state.sizes[level + 1], count)
        if rows < state.sizes[level + 1] and (not cuts or rows <= state.sizes[level]):
            break
        if abs(state.settled[level]) >= seen:
            if state.settled[level] < 0:
                break
        else:
            if summed != level:
                sum_window(level, state)
            sum_window(level + 1, state)
            summed = level + 1
            if not accepts(level, rows, state, tests):
                return level
        level += 1
    if summed != level and level < limit:
        sum_window(level, state)
    return level


@jit
def current_window(state: StreamState, tests: WindowTests) -> tuple[int, int]:
    """Return the index of the window that the rule chooses now, and its rows."""
    state, tests = by_address(state), by_address(tests)
    level = choose_window(state, tests, state.sizes.shape[0])
    return level, rows_of_window(level, state)


@jit
def unexplained_gap(level: int, rows: int, pair: int, state: StreamState) -> float:
    """Return the change of a pair's agreement that the votes for the classes do not explain."""
    return gap_at_equal_shares(level, rows, pair, by_address(state))


@jit
def sum_all_windows(state: StreamState) -> None:
    """Sum up every window that may be compared."""
    state = by_address(state)
    for level in range(state.sizes.shape[0]):
        if level == 0 or state.sizes[level - 1] < rows_that_count(state):
            sum_window(level, state)


class WindowGrid(Sequence[int]):
    """Increasing window sizes that the adaptive rule may choose from.

    Parameters
    ----------
    sizes
        Window sizes in rows, strictly increasing, at least one.

    Examples
    --------
    >>> WindowGrid([10, 30, 100])
    WindowGrid([10, 30, 100])
    >>> WindowGrid.powers_of_two(20)
    WindowGrid(1, 2, 4, ..., 524288; 20 sizes)
    >>> list(WindowGrid.geometric(1, 5000, ratio=5.83))
    [1, 6, 34, 198, 1155]
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        self._sizes = _check_sizes(sizes)

    @classmethod
    def powers_of_two(cls, n_windows: int = 20) -> WindowGrid:
        """Return 1, 2, 4 ... 2^(n_windows - 1): the paper's grid."""
        return cls(2**k for k in range(n_windows))

    @classmethod
    def geometric(cls, first: int, last: int, ratio: float = theory.BEST_RATIO) -> WindowGrid:
        """Return sizes that grow by `ratio` from `first` up to `last` (the default ratio has the best guarantee)."""
        if not 1.01 <= ratio < math.inf:
            raise SettingError(f"ratio must be at least 1.01 so that the windows grow, not {ratio!r}")
        first, last = check_size(first, "first"), check_size(last, "last")
        sizes: list[int] = []
        size = float(first)
        while round(size) <= last:
            if not sizes or round(size) > sizes[-1]:
                sizes.append(round(size))
            size *= ratio
        return cls(sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._sizes[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowGrid) and self._sizes == other._sizes

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __repr__(self) -> str:
        if len(self._sizes) <= 6:
            return f"WindowGrid({list(self._sizes)})"
        head = ", ".join(str(size) for size in self._sizes[:3])
        return f"WindowGrid({head}, ..., {self._sizes[-1]}; {len(self._sizes)} sizes)"


def _check_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise SettingError(f"windows must be a list of increasing sizes such as [16, 64, 256], not {sizes!r}")
    checked: list[int] = []
    for place, size in enumerate(sizes):
        checked.append(check_size(size, f"windows[{place}]"))
        if place and checked[place] <= checked[place - 1]:
            raise SettingError(
                f"windows must increase: windows[{place}] = {checked[place]} comes after"
                f" {checked[place - 1]}; sort the sizes and drop repeats"
            )
    if not checked:
        raise SettingError("windows must hold at least one size, such as [16, 64, 256]; it is empty")
    return tuple(checked)


def check_size(size: object, name: str) -> int:
    """Return a window size as an int, or raise an error that names it."""
    try:
        value = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        value = 0
    if isinstance(size, bool) or not 1 <= value <= LARGEST_WINDOW:
        raise SettingError(f"{name} must be a whole number of rows from 1 to {LARGEST_WINDOW}, not {size!r}")
    return value


@dataclass(frozen=True)
class WindowTest:
    """One comparison of the window rule: was the next window accepted, and which pair decided."""

    window: int
    next_window: int
    difference: float
    threshold: float
    pair: tuple[str, ...]
    accepted: bool

    def __str__(self) -> str:
        verb = "accepted" if self.accepted else "refused"
        sign = "<=" if self.accepted else ">"
        return (
            f"{self.next_window} rows {verb} after {self.window}: largest change of agreement"
            f" {self.difference:.4f} ({', '.join(self.pair)}) {sign} {self.threshold:.4f}"
        )


@dataclass(frozen=True)
class WindowRule:
    """How the adaptive window is chosen.

    Parameters
    ----------
    sizes
        Window sizes to choose from, increasing; a list or a `WindowGrid`. Default 1, 2, 4 ... 2^19.
    bound
        Threshold: `"normal"` (sharpest; by the normal approximation), `"bernstein"` (a theorem that looks at the
        variance), `"mcdiarmid"` (the paper's theorem).
    beta
        Sensitivity: how much drift is tolerated before a larger window is refused. The paper uses 0.1.
    delta
        Probability, at a fixed row, that the guarantee fails.
    restart
        Whether windows begin anew where a drift event says that labelers changed. Default (None): yes, unless the bound
        is the paper's, whose rule does without events.

    Examples
    --------
    >>> WindowRule([16, 64, 256], bound="bernstein")
    WindowRule(sizes=WindowGrid([16, 64, 256]), bound='bernstein', beta=0.1, delta=0.1, restart=None)
    """

    sizes: WindowGrid | Iterable[int] | None = None
    bound: str = "normal"
    beta: float = 0.1
    delta: float = 0.1
    restart: bool | None = None

    def __post_init__(self) -> None:
        sizes = WindowGrid.powers_of_two() if self.sizes is None else WindowGrid(self.sizes)
        object.__setattr__(self, "sizes", sizes)
        settings.one_of("bound", self.bound, BOUNDS)
        object.__setattr__(self, "beta", settings.positive("beta", self.beta))
        object.__setattr__(self, "delta", settings.probability("delta", self.delta))
        if self.restart is not None and not isinstance(self.restart, bool):
            raise SettingError(f"restart must be True, False or None, not {self.restart!r}")

    @property
    def grid(self) -> WindowGrid:
        """The window sizes."""
        assert isinstance(self.sizes, WindowGrid)
        return self.sizes

    @property
    def restarts(self) -> bool:
        """Whether windows begin anew after drift events."""
        return self.bound != "mcdiarmid" if self.restart is None else self.restart

    @property
    def tests_room(self) -> bool:
        """Whether thresholds count the columns of a panel, not its labelers; see `room_for`."""
        return self.bound == "normal"

    def tests(self, n_labelers: int, n_classes: int) -> WindowTests:
        """Return the comparisons for so many labelers and classes; models of the same settings share the arrays."""
        return _window_tests(tuple(self.grid), self.bound, self.beta, self.delta, n_labelers, n_classes)

    def check_exact(self, n_classes: int) -> None:
        """Refuse windows so large, for so many classes, that the integer tests would overflow."""
        for size, after in zip(self.grid, self.grid[1:], strict=False):
            if n_classes * size * after // math.gcd(size, after) >= 2**62:
                raise SettingError(
                    f"windows {size} and {after} are too large to be compared exactly with {n_classes} classes;"
                    " use powers of two, or smaller windows"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as a state file holds them."""
        return {name: getattr(self, name) for name in ("bound", "beta", "delta", "restart")} | {
            "sizes": list(self.grid)
        }


@dataclass(frozen=True)
class FixedWindow:
    """A window of always the same size; None for all the past. The engine uses it in the place of a `WindowRule`."""

    size: int | None
    restarts: ClassVar[bool] = False
    tests_room: ClassVar[bool] = True

    @property
    def grid(self) -> tuple[int, ...]:
        """The one window size."""
        return (ALL_PAST if self.size is None else self.size,)

    def tests(self, n_labelers: int, n_classes: int) -> WindowTests:
        """Return no comparisons."""
        none, whole = np.zeros(0), np.zeros(0, np.int64)
        return WindowTests(MCDIARMID, none, none, none, whole, whole, whole, 0, 0.0, 0.0)


def room_for(n_labelers: int) -> int:
    """Return the columns that a large panel has room for: up to an eighth more, so that a join seldom needs more.

    The thresholds of `bound="normal"` are those of so many labelers: they stay as they are while labelers join.

    >>> [room_for(n) for n in (3, 256, 257, 289, 513, 2000)]
    [3, 256, 288, 320, 576, 2048]
    """
    if n_labelers <= SMALL_PANEL:
        return n_labelers
    step = 1 << ((n_labelers - 1).bit_length() - 4)
    return -(-n_labelers // step) * step


@lru_cache(maxsize=128)
def _window_tests(
    sizes: tuple[int, ...], bound: str, beta: float, delta: float, n_labelers: int, n_classes: int
) -> WindowTests:
    """Return the thresholds of every step. All bounds share delta among all pairs and windows."""
    pairs, m = n_pairs(room_for(n_labelers) if bound == "normal" else n_labelers), len(sizes)
    log_term = theory.bernstein_log(pairs, m, delta)
    factor = {
        "normal": theory.normal_factor(pairs, m, delta),
        "bernstein": math.sqrt(2.0 * log_term),
        "mcdiarmid": theory.statistics_factor(pairs, m, delta),
    }[bound]
    steps = list(zip(sizes, sizes[1:], strict=False))
    terms = [theory.bernstein_terms(log_term, beta, r, wide) for r, wide in steps]
    plain = [theory.threshold(factor, beta, r, wide) for r, wide in steps]
    exact = [_integer_test(r, wide, plain[k], n_classes) for k, (r, wide) in enumerate(steps)]
    certain = [_cannot_fail(bound, r, wide, plain[k], terms[k][1]) for k, (r, wide) in enumerate(steps)]
    return WindowTests(
        bound=BOUNDS[bound],
        plain=np.array(plain, np.float64),
        by_spread=np.array([by_spread for by_spread, _ in terms], np.float64),
        by_range=np.array([by_range for _, by_range in terms], np.float64),
        near=np.array([near for near, _, _ in exact], np.int64),
        far=np.array([far for _, far, _ in exact], np.int64),
        limit=np.array([limit for _, _, limit in exact], np.int64),
        n_certain=next((k for k, passes in enumerate(certain) if not passes), len(certain)),
        factor=factor,
        beta=beta,
    )


def _integer_test(size: int, after: int, plain: float, n_classes: int) -> tuple[int, int, int]:
    """Return near, far and limit of McDiarmid's test between two windows, exactly.

    With C = S / (r (K - 1)) and g the common divisor of the two sizes, C_(k+1) - C_k is
    (r_k S_(k+1) - r_(k+1) S_k) / (r_k r_(k+1) (K - 1)); both sides are multiplied by r_k r_(k+1) (K - 1) / g. For
    powers of two that leaves |S_(k+1) - 2 S_k| <= floor(2 r T(k)). The limit is T(k) range_factor(K) (K - 1) =
    T(k) K / 2, scaled; a Fraction has the exact value of the float. Gaps are at most `largest`.
    """
    divisor = math.gcd(size, after)
    limit = largest = n_classes * (after - size) * size // divisor
    if math.isfinite(plain):
        limit = min(largest, math.floor(Fraction(plain) * n_classes / 2 * size * after / divisor))
    return size // divisor, after // divisor, limit


def _cannot_fail(bound: str, r: int, wide: int, plain: float, by_range: float) -> bool:
    """Return whether a window is accepted whatever its rows are; half the range is 1, which cancels.

    The means can differ by 2 (1 - r / R) at most. Under the normal bound such a difference is variance as well: that
    between the older and the newer rows is at least rho / (1 - rho) times its square, with rho = r / R.
    """
    share = r / wide
    if bound == "normal":
        least = (1.0 - share) * share + 1.0 / wide
        return (1.0 - share) ** 2 <= 0.999 * plain * plain * least
    return 2.0 * (1.0 - share) <= (min(plain, by_range) if bound == "bernstein" else plain)


def explain_choice(state: StreamState, tests: WindowTests, names: Sequence[str]) -> list[WindowTest]:
    """Return the comparisons that led to the current window, smallest first, each by the pair nearest to a refusal.

    None, where the label model says that the rule does not count.
    """
    if state.follows[0] == 0:
        return []
    pairs, k = list(combinations(names, 2)), state.n_classes
    scale = k - 1
    steps: list[WindowTest] = []
    sum_all_windows(state)
    count, cuts = int(state.clock[0] - state.floor[0]), tests.bound == NORMAL and state.floor[0] > 0
    for level in range(len(state.sizes) - 1):
        r, big = int(state.sizes[level]), min(int(state.sizes[level + 1]), count)
        cut = big < state.sizes[level + 1]
        if (cut and (not cuts or big <= r)) or (steps and not steps[-1].accepted):
            break
        near, wide = state.sums[level, : len(pairs)], state.sums[level + 1, : len(pairs)]
        if tests.bound == MCDIARMID:
            gaps = np.abs(tests.near[level] * wide - tests.far[level] * near)
            worst = int(gaps.argmax())
            # Undo the scaling of the integer test: both sides were multiplied by this.
            difference = float(gaps[worst] / (r * big * scale / math.gcd(r, big)))
            limit = float(tests.plain[level]) * theory.range_factor(k)
            accepted = bool(gaps[worst] <= tests.limit[level])
        else:
            both = state.sums[level + 1, len(pairs) : 2 * len(pairs)]
            agreed = (wide + both) / k
            means = wide / (big * scale)
            variances = np.maximum(0.0, (agreed + (both - agreed) / scale**2) / big - means * means)
            terms = (float(part[level]) for part in (tests.plain, tests.by_spread, tests.by_range))
            step = Comparison(r, big, tests.bound, *terms)
            if cut:
                step = step._replace(plain=theory.threshold(tests.factor, tests.beta, r, big))
            limits = np.array([threshold(variance, k / (2.0 * scale), step) for variance in variances.tolist()])
            differences = np.abs(means - near / (r * scale))
            for pair in np.flatnonzero(differences > limits).tolist() if tests.bound == NORMAL else ():
                differences[pair] = min(differences[pair], abs(unexplained_gap(level, big, pair, state)))
            worst = int((differences - limits).argmax())
            difference, limit = float(differences[worst]), float(limits[worst])
            accepted = difference <= limit
        steps.append(WindowTest(r, big, difference, limit, pairs[worst], accepted))
    return steps
