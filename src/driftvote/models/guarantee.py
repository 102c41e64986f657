"""The general guarantee as numbers: what is proved at a row, and what nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from driftvote import theory


@dataclass(frozen=True)
class Guarantee:
    """Constants and bounds of the guarantee at one row; `driftvote.theory` holds the formulas.

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
        """Plain values; thresholds as [window, next window, T]."""
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
    settings: tuple[float, float],
    now: tuple[int, int],
    tau: float,
    proved: bool = True,
) -> Guarantee:
    """The guarantee for a grid of windows under `settings` (beta, delta), `now` (rows seen, current window)."""
    (beta, delta), (rows, window) = settings, now
    factor = theory.deviation_factor(n_labelers, len(sizes), delta)
    scale = theory.range_factor(n_classes)
    steps = [(a, b, scale * theory.threshold(factor, beta, a, b)) for a, b in zip(sizes, sizes[1:], strict=False)]
    error = scale * theory.statistical_error(factor, window)
    reach = min(rows, int(sizes[-1]))
    return Guarantee(
        rows=rows,
        window=window,
        delta=delta,
        tau=float(tau),
        factor=factor,
        thresholds=tuple(steps),
        phi=theory.phi(sizes, beta),
        agreement_error=error,
        accuracy_error=min(1.0, theory.accuracy_bound(error, tau, n_classes)),
        window_error=scale * theory.window_bound(sizes, beta, factor, window, 0.0),
        best_error=scale * theory.phi(sizes, beta) * theory.statistical_error(factor, reach),
        proved=proved,
    )
