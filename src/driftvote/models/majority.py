"""The plain majority of each row: what everything else is measured against."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from driftvote.kernels.layout import Codes, Floats, Ints
from driftvote.labels import plain_vote
from driftvote.models.base import LabelModel
from driftvote.models.engine import Engine
from driftvote.models.equal_engine import EqualEngine


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
        groups: Any = None,
    ) -> None:
        super().__init__(
            n_classes=n_classes,
            votes=votes,
            classes=classes,
            abstain=abstain,
            labelers=labelers,
            abstentions=abstentions,
            tie_break_policy=tie_break_policy,
            seed=seed,
            groups=groups,
        )

    @property
    def reach(self) -> int | None:
        """Nothing but the row itself decides; its window is one row."""
        return 1

    def _new_engine(self, n_labelers: int) -> EqualEngine:
        return EqualEngine(n_labelers, self._form.n_classes)

    def _grown(self, engine: Engine, newcomers: Codes) -> Engine:
        assert isinstance(engine, EqualEngine)
        return engine.joined_by(newcomers.shape[1])

    def _describe_labelers(self) -> list[str]:
        return ["  every labeler counts the same; accuracies are not estimated"]

    def _first_vote(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return plain_vote(rows, draws, self._form.n_classes)
