"""What the adaptive and the fixed-window model share: estimates over a window of pair agreements."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from driftvote.agreements import agreement_matrix
from driftvote.drift.dependence import Dependence, dependence
from driftvote.errors import DriftvoteError
from driftvote.kernels.layout import Codes, Floats, Ints, Rule
from driftvote.kernels.windows import choose_level, nothing_known
from driftvote.models.base import LabelModel
from driftvote.models.engine import Engine, WindowEngine, equal_vote
from driftvote.models.settings import Number, clip_range, threads
from driftvote.weights import effective_clip, products_may_overflow

DESCRIBED = 30
"""Labelers up to which `describe` looks for dependence: the pairs of more take seconds."""


class WindowedLabelModel(LabelModel):
    """A model whose accuracies come from the pair agreements of a window."""

    def __init__(self, *, clip: tuple[Number, Number], n_jobs: int, **shared: Any) -> None:
        super().__init__(**shared)
        self.clip = clip_range(clip)
        self.n_jobs = threads("n_jobs", n_jobs)
        self._settings |= {"clip": self.clip, "n_jobs": self.n_jobs}

    @abstractmethod
    def _rule(self, n_labelers: int) -> Rule:
        """The settings as kernels need them, for this many labelers."""

    def _rule_ends(self, n_labelers: int) -> dict[str, Any]:
        """The part of the rule that does not depend on the windows."""
        low, high = effective_clip(self.clip, self._form.n_classes)
        return {
            "n_classes": self._form.n_classes,
            "clip_low": low,
            "clip_high": high,
            "diluted": self.abstentions == "random",
            "by_logs": products_may_overflow(n_labelers, high, self._form.n_classes),
        }

    def _new_engine(self, n_labelers: int) -> Engine:
        return WindowEngine(self._rule(n_labelers), n_labelers, self.n_jobs)

    def _grown(self, engine: Engine, newcomers: Codes) -> Engine:
        assert isinstance(engine, WindowEngine)
        return engine.joined_by(newcomers, self._rule(engine.n_labelers + newcomers.shape[1]))

    def _first_vote(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return equal_vote(rows, draws, self._rule(rows.shape[1]))

    def _started(self) -> WindowEngine:
        if not isinstance(self._engine, WindowEngine) or not self.n_rows:
            raise DriftvoteError("there are no agreements yet: the model has seen no rows")
        return self._engine

    def dependence(self) -> Dependence:
        """Whether labelers err independently, as far as the agreements of the current window tell.

        Pairs that agree more than independent errors explain, near-copies, and how many independent labelers the
        panel is worth; see `driftvote.drift.dependence` for what cannot be seen.
        """
        sums, votes, window = self._tallied()
        if self.abstentions == "random":  # random votes stand for abstentions, as the paper's protocol asks
            votes = np.full(len(votes), window)
        return dependence(sums, votes, window, self._form.n_classes, self.labelers)

    def _tallied(self) -> tuple[Ints, Ints, int]:
        """Pair agreements times K - 1 and votes over the current window, and its rows."""
        engine = self._started()
        memory = engine.state.memory
        level = choose_level(memory, engine.rule, nothing_known(engine.rule))
        return memory.sums[level], memory.votes[level], self.window

    def _describe_labelers(self) -> list[str]:
        many = len(self.labelers) > DESCRIBED
        told = [f"dependence: dependence() looks at all pairs of {len(self.labelers)} labelers"]
        return super()._describe_labelers() + (told if many else self.dependence().lines())

    @property
    def agreements(self) -> Floats:
        """Agreement matrix over the current window: 1 always agree, 0 as by chance, 1 on the diagonal."""
        sums, votes, window = self._tallied()
        return agreement_matrix(sums, len(votes), window, self._form.n_classes)
