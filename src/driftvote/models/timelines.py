"""Accuracies over time: bands around them, and all that is known of labelers as a tidy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftvote.drift.bands import bound_half_width, calibrated_half_width
from driftvote.errors import SettingError
from driftvote.kernels.layout import Floats, Ints
from driftvote.models.estimates import Estimates, WindowEstimates
from driftvote.models.fit_estimates import FitEstimates

if TYPE_CHECKING:
    from driftvote.models.results import LabeledStream


def estimator_of(estimates: Estimates) -> str:
    """Whose bands fit these estimates."""
    return "confusion" if isinstance(estimates, FitEstimates) else "triplet"


def bands_of(estimates: Estimates, n_classes: int, kind: str, tau: float, delta: float) -> tuple[Floats, Floats]:
    """Lower and upper ends of the band around each accuracy."""
    if kind not in ("calibrated", "bound"):
        raise SettingError(f"kind must be 'calibrated' or 'bound', not {kind!r}")
    accuracies, coverage = estimates.accuracies, estimates.coverage
    windows = estimates.windows.astype(np.float64)
    if not isinstance(estimates, (WindowEstimates, FitEstimates)):
        return np.zeros(accuracies.shape), np.ones(accuracies.shape)  # nothing is estimated
    if kind == "bound":
        for name, value, most in (("tau", tau, 1.0 - 1.0 / n_classes), ("delta", delta, 1.0)):
            if not 0.0 < value <= most:
                raise SettingError(f"{name} must lie above 0 and be at most {most:.4g}, not {value!r}")
        n_windows = len(estimates.rule.sizes)
        half = np.repeat(
            bound_half_width(windows, accuracies.shape[1], n_classes, n_windows, float(delta), float(tau))[:, None],
            accuracies.shape[1],
            1,
        )
    else:
        how = (n_classes, estimates.rule.diluted, estimator_of(estimates))
        half = calibrated_half_width(accuracies, coverage, windows, *how)
    return np.maximum(accuracies - half, 0.0), np.minimum(accuracies + half, 1.0)


def timeline_columns(out: LabeledStream, places: Ints) -> dict[str, Any]:
    """The columns of a tidy table: these rows, one line for each labeler."""
    n = len(out.labelers)
    places = places if len(out) else places[:0]
    low, high = out.bands()
    return {
        "t": np.repeat(out.first_row + places, n),
        "labeler": list(out.labelers) * len(places),
        "accuracy": out.accuracies[places].ravel(),
        "low": low[places].ravel(),
        "high": high[places].ravel(),
        "coverage": out.coverage[places].ravel(),
        "weight": out.weights[places].ravel(),
        "window": np.repeat(out.windows[places], n),
    }


def whole_number(name: str, value: Any) -> int:
    """A number of rows, at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SettingError(f"{name} must be a number of rows, at least 1, not {value!r}")
    return int(value)
