"""3 WINDOW: the grid of window sizes, the thresholds between them, and why the choice stopped.

Algorithm 1 starts from the smallest window and takes the next one as long as the pair agreements of
the two differ by no more than the threshold T(k): the larger window then holds no drift that the
noise of the smaller one would not hide. Agreements are integer sums, so the test is made in integers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np

from driftvote import theory
from driftvote.errors import SettingError
from driftvote.kernels.layout import Bools, Ints

LARGEST_WINDOW = 2**27
"""A window of 134 million rows; the integer tests are exact up to here, and memory ends first."""

ALL_PAST = 2**62
"""The size that stands for "no limit"; no stream reaches it."""


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
        self._sizes = _checked_sizes(sizes)

    @classmethod
    def powers_of_two(cls, n_windows: int = 20) -> WindowGrid:
        """1, 2, 4 ... 2^(n_windows - 1): the paper's grid."""
        return cls(2**k for k in range(n_windows))

    @classmethod
    def geometric(cls, first: int, last: int, ratio: float = theory.BEST_RATIO) -> WindowGrid:
        """Sizes that grow by `ratio` from `first` up to `last` (the default ratio has the best guarantee)."""
        if not 1.01 <= ratio < math.inf:
            raise SettingError(f"ratio must be at least 1.01 so that the windows grow, not {ratio!r}")
        first, last = checked_size(first, "first"), checked_size(last, "last")
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


def _checked_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise SettingError(f"windows must be a list of increasing sizes such as [16, 64, 256], not {sizes!r}")
    checked: list[int] = []
    for place, size in enumerate(sizes):
        checked.append(checked_size(size, f"windows[{place}]"))
        if place and checked[place] <= checked[place - 1]:
            raise SettingError(
                f"windows must increase: windows[{place}] = {checked[place]} comes after"
                f" {checked[place - 1]}; sort the sizes and drop repeats"
            )
    if not checked:
        raise SettingError("windows must hold at least one size, such as [16, 64, 256]; it is empty")
    return tuple(checked)


def check_exact(sizes: Sequence[int], n_classes: int) -> None:
    """Refuse windows so large, for so many classes, that the integer tests would overflow."""
    for size, after in zip(sizes, sizes[1:], strict=False):
        if n_classes * size * after // math.gcd(size, after) >= 2**62:
            raise SettingError(
                f"windows {size} and {after} are too large to be compared exactly with {n_classes} classes;"
                " use powers of two, or smaller windows"
            )


def checked_size(size: object, name: str) -> int:
    """A window size as an int, or an error that names it."""
    try:
        value = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        value = 0
    if isinstance(size, bool) or not 1 <= value <= LARGEST_WINDOW:
        raise SettingError(f"{name} must be a whole number of rows from 1 to {LARGEST_WINDOW}, not {size!r}")
    return value


@dataclass(frozen=True)
class LevelTests:
    """The test between each window and the next, in integers.

    Level k passes when ``|near[k] S_(k+1) - far[k] S_k| <= limit[k]`` for every pair, where S are
    pair sums times K - 1. `certain[k]` marks levels that cannot fail.
    """

    near: Ints
    far: Ints
    limit: Ints
    certain: Bools
    threshold: tuple[float, ...]  # T(k), scaled to the range of the agreements


def level_tests(sizes: Sequence[int], n_labelers: int, n_classes: int, beta: float, delta: float) -> LevelTests:
    """The tests of a grid. Models of the same settings share them, so nobody may write to them."""
    return _level_tests(tuple(sizes), n_labelers, n_classes, beta, delta)


@lru_cache(maxsize=128)
def _level_tests(sizes: tuple[int, ...], n_labelers: int, n_classes: int, beta: float, delta: float) -> LevelTests:
    """Thresholds T(k) turned into integer limits, exactly.

    With C = S / (r (K - 1)) and g the common divisor of the two sizes, C_(k+1) - C_k is
    (r_k S_(k+1) - r_(k+1) S_k) / (r_k r_(k+1) (K - 1)); both sides are multiplied by
    r_k r_(k+1) (K - 1) / g. For powers of two that leaves |S_(k+1) - 2 S_k| <= floor(2 r T(k)).
    """
    levels = len(sizes) - 1
    factor = theory.deviation_factor(n_labelers, len(sizes), delta)
    thresholds = [theory.threshold(factor, beta, a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    tests = LevelTests(
        near=np.zeros(levels, np.int64),
        far=np.zeros(levels, np.int64),
        limit=np.zeros(levels, np.int64),
        certain=np.zeros(levels, np.bool_),
        threshold=tuple(t * theory.range_factor(n_classes) for t in thresholds),
    )
    for k in range(levels):
        size, after = sizes[k], sizes[k + 1]
        divisor = math.gcd(size, after)
        tests.near[k], tests.far[k] = size // divisor, after // divisor
        # The limit is T(k) range_factor(K) (K - 1) = T(k) K / 2, scaled; Fraction keeps the float's exact value.
        # Means of either part lie in an interval of length K, in these units.
        largest = n_classes * (after - size) * size // divisor
        limit = largest
        if math.isfinite(thresholds[k]):
            limit = math.floor(Fraction(thresholds[k]) * n_classes / 2 * size * after / divisor)
        tests.certain[k] = limit >= largest
        tests.limit[k] = min(limit, largest)
    return tests


@dataclass(frozen=True)
class WindowTest:
    """One comparison of Algorithm 1: was the next window accepted, and which pair (or labeler) decided."""

    window: int
    next_window: int
    difference: float
    threshold: float
    pair: tuple[str, ...]
    accepted: bool
    what: str = "agreement"

    def __str__(self) -> str:
        verb = "accepted" if self.accepted else "refused"
        sign = "<=" if self.accepted else ">"
        return (
            f"{self.next_window} rows {verb} after {self.window}: largest change of {self.what}"
            f" {self.difference:.4f} ({', '.join(self.pair)}) {sign} {self.threshold:.4f}"
        )


def explain_choice(
    sizes: Sequence[int], sums: Ints, seen: int, tests: LevelTests, n_classes: int, names: Sequence[str]
) -> list[WindowTest]:
    """The comparisons that led to the current window, smallest first; the last one may be a refusal."""
    pairs = list(combinations(names, 2))
    told: list[WindowTest] = []
    for k in range(len(sizes) - 1):
        if sizes[k + 1] > seen or (told and not told[-1].accepted):
            break
        gaps = np.abs(tests.near[k] * sums[k + 1] - tests.far[k] * sums[k])
        worst = int(gaps.argmax())
        # Undo the scaling of the integer test: both sides were multiplied by this.
        scale = sizes[k] * sizes[k + 1] * (n_classes - 1) / math.gcd(sizes[k], sizes[k + 1])
        told.append(
            WindowTest(
                window=sizes[k],
                next_window=sizes[k + 1],
                difference=float(gaps[worst] / scale),
                threshold=tests.threshold[k],
                pair=pairs[worst],
                accepted=bool(gaps[worst] <= tests.limit[k]),
            )
        )
    return told
