"""The label models, by name. A new one is a file beside these and a line here; CONTRIBUTING.md has the recipe."""

from __future__ import annotations

from driftvote.core.label_models.confusion import Confusion, EmEstimator
from driftvote.core.label_models.interface import Estimator
from driftvote.core.label_models.majority import Majority
from driftvote.core.label_models.mixture import Mixture
from driftvote.core.label_models.one_coin import OneCoin
from driftvote.core.label_models.triplet import Triplet
from driftvote.core.label_models.wawa import Wawa

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (Mixture, Confusion, OneCoin, Wawa, Triplet, Majority)
}

__all__ = ["ESTIMATORS", "Confusion", "EmEstimator", "Estimator", "Majority", "Mixture", "OneCoin", "Triplet", "Wawa"]
