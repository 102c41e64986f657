"""Constants and bounds of the guarantee; nothing else computes them.

Symbols of the paper (Mazzetto et al., AISTATS 2025): n labelers, m windows, `beta` sensitivity,
`delta` failure probability, A the deviation factor, T(k) the threshold of line 5 of Algorithm 1,
Phi the constant of the general theorem, B(r) the bound that the algorithm keeps for a window r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

BEST_BETA = math.sqrt(2.0) - 1.0
"""The sensitivity at which Phi is smallest, together with `BEST_RATIO`."""

BEST_RATIO = 1.0 / (math.sqrt(2.0) - 1.0) ** 2
"""The ratio of consecutive window sizes at which Phi is smallest, about 5.83."""


def deviation_factor(n_labelers: int, n_windows: int, delta: float) -> float:
    """A = sqrt(2 ln((2m - 1) n (n - 1) / delta)), line 2 of Algorithm 1.

    >>> round(deviation_factor(6, 20, 0.1), 4)
    4.3284
    """
    return statistics_factor(n_labelers * (n_labelers - 1) // 2, n_windows, delta)


def statistics_factor(n_statistics: int, n_windows: int, delta: float) -> float:
    """A for any d statistics a row with values in an interval of length 2.

    The union bound runs over d statistics and 2m - 1 comparisons: A = sqrt(2 ln((2m - 1) 2d / delta)).
    """
    return math.sqrt(2.0 * math.log((2 * n_windows - 1) * 2 * n_statistics / delta))


def normal_factor(n_statistics: int, n_windows: int, delta: float) -> float:
    """The normal quantile in the place of A, for the same union bound: asymptotic, not a theorem.

    >>> round(normal_factor(15, 20, 0.1), 4), round(statistics_factor(15, 20, 0.1), 4)
    (3.7585, 4.3284)
    """
    factor = statistics_factor(n_statistics, n_windows, delta)
    tail = math.exp(-factor * factor / 2.0)
    # Beyond what a double can hold of the tail, the exponential bound is as good as the quantile.
    return -NormalDist().inv_cdf(tail) if tail > 0.0 else factor


def bernstein_log(n_statistics: int, n_windows: int, delta: float) -> float:
    """L = ln((7m - 5) d / delta), which makes e^-L the probability left to each event of the empirical Bernstein rule.

    For each statistic: 2m - 1 deviations by boundedness and m - 1 by variance, both ways, and m - 1 variances.

    >>> round(bernstein_log(15, 20, 0.1), 4)
    9.9159
    """
    return math.log((7 * n_windows - 5) * n_statistics / delta)


def bernstein_terms(log_term: float, beta: float, size: int, next_size: int) -> tuple[float, float]:
    """(a, b): a statistic with standard deviation s in the larger window may change by a s + b h between the two.

    s has 1 / rows in front of its sum of squares, h is half the range of the values. Proof: docs/windows.md.

    >>> a, b = bernstein_terms(9.9158, 0.1, 512, 1024)
    >>> round(a, 4), round(b, 4)
    (0.1787, 0.0588)
    """
    if next_size < 3 or not math.isfinite(log_term):
        return 0.0, math.inf  # two rows say nothing about a variance
    heaviest = max(1.0 / size - 1.0 / next_size, 1.0 / next_size)
    per_spread = heaviest * math.sqrt(2.0 * log_term * next_size) + 2.0 * beta * math.sqrt(2.0 * log_term / size)
    jumps = 2.0 * log_term / 3.0 * (heaviest + 2.0 * beta / size)
    doubt = 2.0 * math.sqrt(2.0 * log_term / (next_size - 2.0))
    return per_spread * math.sqrt(next_size / (next_size - 2.0)), per_spread * doubt + jumps


def threshold(factor: float, beta: float, size: int, next_size: int) -> float:
    """T(k) = A (2 beta / sqrt(r_k) + sqrt((1 - r_k / r_(k+1)) / r_k)), line 5 of Algorithm 1.

    >>> round(threshold(deviation_factor(6, 20, 0.1), 0.1, 16, 32), 4)
    0.9816
    """
    return factor * (2.0 * beta / math.sqrt(size) + math.sqrt((1.0 - size / next_size) / size))


def range_factor(n_classes: int) -> float:
    """How much a threshold shrinks for K classes: the rescaled agreement ranges over K / (K - 1), not 2.

    >>> range_factor(2), range_factor(5)
    (1.0, 0.625)
    """
    return n_classes / (2.0 * (n_classes - 1))


def statistical_error(factor: float, size: int) -> float:
    """A / sqrt(r): how far the agreements of r rows stray from their mean, with probability 1 - delta."""
    return factor / math.sqrt(size)


def window_allowances(factor: float, size: int, n_classes: int) -> tuple[float, float]:
    """How far agreements and coverages of r rows may stray from their means: A / sqrt(r), scaled to their ranges.

    `factor` is `statistics_factor` over all pairs, and over the labelers too where coverages are used. Drift inside
    the window comes on top; it is unknown.

    >>> window_allowances(4.0, 1600, 2)
    (0.1, 0.05)
    """
    stray = statistical_error(factor, size)
    return range_factor(n_classes) * stray, stray / 2.0


def phi(sizes: Sequence[float], beta: float) -> float:
    """Phi of the general theorem: how far from the best window in hindsight the bound can be.

    >>> round(phi([2.0**k for k in range(20)], 0.1), 1)
    76.1
    >>> round(phi([BEST_RATIO**k for k in range(10)], BEST_BETA), 4) == round(7 + 4 * math.sqrt(2), 4)
    True
    """
    gammas = [math.sqrt(a / b) for a, b in zip(sizes, sizes[1:], strict=False)]
    if not gammas:
        return 1.0  # a single window: nothing to choose
    smallest, largest = min(gammas), max(gammas)
    head = 2.0 * beta + 2.0
    return 1.0 + max(head / (smallest * (1.0 - largest)), head / (beta * (1.0 - largest)))


def window_bound(sizes: Sequence[float], beta: float, factor: float, size: int, drift: float) -> float:
    """B(r) = A / sqrt(r) (2 beta + 2) / (1 - gamma_M) + drift error of the window."""
    largest = max((math.sqrt(a / b) for a, b in zip(sizes, sizes[1:], strict=False)), default=0.0)
    return statistical_error(factor, size) * (2.0 * beta + 2.0) / (1.0 - largest) + drift


def agreement_bound(sizes: Sequence[float], beta: float, factor: float, drift_sums: Sequence[float]) -> float:
    """The bound of the main lemma on ||C_hat - C(t)||: Phi min_r (A / sqrt(r) + drift of the last r rows).

    `drift_sums[r - 1]` is the sum of ||C(u) - C(u+1)|| over the last r rows (0 for r = 1); r runs
    from the smallest window to the rows given, at most the largest window.

    >>> agreement_bound([1, 2, 4], 1.0, 2.0, [0.0, 0.0, 0.0, 0.0]) == phi([1, 2, 4], 1.0)
    True
    """
    low, high = int(sizes[0]), min(len(drift_sums), int(sizes[-1]))
    best = min(statistical_error(factor, r) + drift_sums[r - 1] for r in range(low, high + 1))
    return phi(sizes, beta) * best


def accuracy_bound(agreement_error: float, tau: float, n_classes: int = 2) -> float:
    """From agreements to accuracies: ||p_hat - p|| <= 5 / (2 tau^2) times the error of the agreements.

    Every labeler must be right with probability at least 1/2 + tau; with K classes 1/K + tau. The lemma speaks of
    skills q = (K p - 1) / (K - 1), which are then at least K tau / (K - 1), twice the tau of two classes.

    >>> accuracy_bound(0.01, 0.25), accuracy_bound(0.01, 0.25, 2) == accuracy_bound(0.01, 0.25)
    (0.4, True)
    """
    half_skill = n_classes * tau / (2.0 * (n_classes - 1))
    return 5.0 * agreement_error / (2.0 * half_skill * half_skill) * 2.0 * (n_classes - 1) / n_classes


@dataclass(frozen=True)
class Guarantee:
    """Constants and bounds of the guarantee at one row; this module has the formulas.

    Attributes
    ----------
    factor
        A: how far agreements may stray from their means, in units of 1 / sqrt(rows).
    thresholds
        T(k) for each window and the next: a larger change of an agreement stops the growth.
    phi
        Phi: how far from the best window in hindsight the bound can be.
    agreement_error
        The statistical part at the current window: with probability 1 - delta no pair's agreement over the window is
        further than this from its mean over the window's rows.
    accuracy_error
        The same for accuracies, if every labeler is right with probability at least 1/K + tau. At most 1.
    window_error
        What the rule keeps below its bound B(r) apart from drift: agreement_error (2 beta + 2) / (1 - gamma).
    best_error
        The theorem without any drift: Phi A / sqrt(rows that could count).
    proved
        False where the model picks its window by a sharper bound than the theorem's.
    """

    rows: int
    window: int
    delta: float
    tau: float
    factor: float
    thresholds: tuple[tuple[int, int, float], ...]
    phi: float
    agreement_error: float
    accuracy_error: float
    window_error: float
    best_error: float
    proved: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; thresholds as [window, next window, T]."""
        return {**asdict(self), "thresholds": [list(line) for line in self.thresholds]}

    def __str__(self) -> str:
        accuracy = (
            f"within {self.accuracy_error:.3f}"
            if self.accuracy_error < 1.0
            else "not bounded yet (the bound is above 1: more rows, or labelers known to be better, would help)"
        )
        sharper = "This model's bound is sharper than the theorem's; for what is proved, use bound='mcdiarmid'."
        return "\n".join(
            [
                f"With probability {1 - self.delta:.3g}, at row {self.rows}:",
                f"  agreements over the last {self.window} rows are within {self.agreement_error:.3f} of their means",
                f"  accuracies are then {accuracy},"
                f" if every labeler is right with probability {self.tau:.3g} above chance",
                f"  the window is at most {self.phi:.1f} times worse than the best one in hindsight",
                "Unknown: how much the labelers drifted inside the window. That comes on top; the rule keeps it near",
                "the level of the noise, because a window with more would have been refused.",
                *([] if self.proved else [sharper]),
            ]
        )


def make_guarantee(
    sizes: Sequence[int],
    n_labelers: int,
    n_classes: int,
    *,
    beta: float,
    delta: float,
    rows: int,
    window: int,
    tau: float,
    proved: bool = True,
) -> Guarantee:
    """Return the guarantee for a grid of windows after `rows` rows, with this current window."""
    factor = deviation_factor(n_labelers, len(sizes), delta)
    scale = range_factor(n_classes)
    steps = [(a, b, scale * threshold(factor, beta, a, b)) for a, b in zip(sizes, sizes[1:], strict=False)]
    error = scale * statistical_error(factor, window)
    reach = min(rows, int(sizes[-1]))
    return Guarantee(
        rows=rows,
        window=window,
        delta=delta,
        tau=float(tau),
        factor=factor,
        thresholds=tuple(steps),
        phi=phi(sizes, beta),
        agreement_error=error,
        accuracy_error=min(1.0, accuracy_bound(error, tau, n_classes)),
        window_error=scale * window_bound(sizes, beta, factor, window, 0.0),
        best_error=scale * phi(sizes, beta) * statistical_error(factor, reach),
        proved=proved,
    )
