"""The paper's estimator on a window of fixed size, or on all the past."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from driftvote.kernels.layout import Rule
from driftvote.models.settings import Number
from driftvote.models.windowed import WindowedLabelModel
from driftvote.windows import ALL_PAST, checked_size


class FixedWindowLabelModel(WindowedLabelModel):
    """Accuracies from the last `window` rows, or from all the past.

    The paper's baselines, and the right model when you know how long the past stays true. While fewer
    rows than the window have come, those there are count.

    Parameters
    ----------
    window
        Rows that count; None for all the past.

    The other parameters are those of `AdaptiveLabelModel`.

    Examples
    --------
    >>> model = FixedWindowLabelModel(window=2)
    >>> model.label_stream([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).windows
    array([1, 2, 2])
    >>> FixedWindowLabelModel(window=None).label_stream([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).windows
    array([1, 2, 3])
    """

    def __init__(
        self,
        *,
        window: int | None,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        clip: tuple[Number, Number] = (0.1, 0.9),
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
    ) -> None:
        super().__init__(
            n_classes=n_classes,
            votes=votes,
            classes=classes,
            abstain=abstain,
            labelers=labelers,
            clip=clip,
            abstentions=abstentions,
            tie_break_policy=tie_break_policy,
            seed=seed,
            n_jobs=n_jobs,
            groups=groups,
        )
        self.fixed_window = None if window is None else checked_size(window, "window")
        self._settings["window"] = self.fixed_window

    @property
    def reach(self) -> int | None:
        """The window; None for all the past."""
        return self.fixed_window

    def _rule(self, n_labelers: int) -> Rule:
        size = ALL_PAST if self.fixed_window is None else self.fixed_window
        none = np.zeros(0, np.int64)
        return Rule(
            sizes=np.array([size], np.int64),
            near=none,
            far=none,
            limit=none,
            certain=np.zeros(0, np.bool_),
            **self._rule_ends(n_labelers),
        )
