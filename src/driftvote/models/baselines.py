"""The models that the adaptive one is measured against: a fixed window, and the plain majority."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.label_models import ESTIMATORS, Estimator, Majority, Triplet
from driftvote.core.voting import majority_vote
from driftvote.core.windows import FixedWindow, check_size
from driftvote.drift.events import DriftEvent
from driftvote.errors import SettingError
from driftvote.models.adaptive import resolve_estimator
from driftvote.models.base import LabelModel
from driftvote.settings import Number


class FixedWindowLabelModel(LabelModel):
    """Accuracies from the last `window` rows, or from every row so far.

    The paper's baselines, and the right model if you know how long the past stays valid. Until the
    window is full, all rows so far count. Parameters that are not listed are those of
    `AdaptiveLabelModel`.

    Parameters
    ----------
    window
        Rows that count; None for every row so far.
    estimator
        The label model; default the paper's, `"triplet"`. With None it must be that one.
    clip
        Accuracies are limited to this range before they become weights (`estimator="triplet"`).

    Examples
    --------
    >>> model = FixedWindowLabelModel(window=2)
    >>> model.label_stream([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).windows
    array([1, 2, 2])
    >>> FixedWindowLabelModel(window=None).label_stream([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).windows
    array([1, 2, 3])
    """

    _resolved_defaults: ClassVar[dict[str, Any]] = {"estimator": Triplet(), "n_classes": 2}

    def __init__(
        self,
        *,
        window: int | None,
        estimator: Estimator | str = "triplet",
        clip: tuple[Number, Number] | None = None,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
        false_event_rate: Number | None = 2e-7,
        on_event: Callable[[DriftEvent], Any] | None = None,
    ) -> None:
        params = {name: value for name, value in locals().items() if name not in ("self", "on_event", "__class__")}
        self.estimator = resolve_estimator(estimator, {} if clip is None else {"clip": clip})
        self.fixed_window = None if window is None else check_size(window, "window")
        if self.fixed_window is None and self.estimator.needs_rows:
            raise SettingError(
                f"window=None keeps no rows, which estimator={self.estimator.name!r} needs; use a large window"
            )
        params |= {"window": self.fixed_window, "estimator": self.estimator, "clip": None}
        super().__init__(params, FixedWindow(self.fixed_window), self.estimator, on_event)

    @classmethod
    def _from_settings(cls, plain: dict[str, Any]) -> Any:
        estimator = dict(plain["estimator"])
        kind = ESTIMATORS[estimator.pop("name")]
        return cls(**(plain | {"estimator": kind(**estimator)}))


class MajorityLabelModel(LabelModel):
    """Every labeler counts the same; nothing is learned.

    Abstentions do not count (or are random votes, with `abstentions="random"`). Probabilities are the
    shares of the votes. Every weight is 1, and `accuracies` are the one accuracy that a log-odds weight
    of 1 stands for: assumed, not estimated. The window is the row itself.

    The parameters are those of `AdaptiveLabelModel`.

    Examples
    --------
    >>> out = MajorityLabelModel().label_stream([[1, 1, 0, -1], [0, 1, -1, -1]])
    >>> out.labels, out.proba[0].round(3)
    (array([ 1, -1]), array([0.333, 0.667]))
    """

    _resolved_defaults: ClassVar[dict[str, Any]] = {"n_classes": 2}

    def __init__(
        self,
        *,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
        false_event_rate: Number | None = 2e-7,
        on_event: Callable[[DriftEvent], Any] | None = None,
    ) -> None:
        params = {name: value for name, value in locals().items() if name not in ("self", "on_event", "__class__")}
        super().__init__(params, FixedWindow(1), Majority(), on_event)

    def _first_vote(self, codes: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return majority_vote(codes, draws, self._form.n_classes)
