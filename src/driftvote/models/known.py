"""What a model knows now: the part of every model that only reads."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from driftvote.kernels.layout import Floats
from driftvote.models.engine import Engine
from driftvote.models.estimates import EqualEstimates, Estimates
from driftvote.models.families import Families
from driftvote.votes import Roster, VoteFormat, show_names


class KnownNow:
    """Names, settings and the estimates after the rows seen so far."""

    _form: VoteFormat
    _roster: Roster
    _families: Families
    _engine: Engine | None
    _settings: dict[str, Any]

    def _current(self) -> Estimates:
        if self._engine is None:
            return EqualEstimates(1, len(self._roster), self._form.n_classes, window=0)
        return self._engine.current()

    @property
    def labelers(self) -> tuple[str, ...]:
        """Names of the labelers (with `groups=` of the families), in the order of every array."""
        return self._roster.names

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class values, in the order of `predict_proba`."""
        return self._form.classes

    @property
    def n_rows(self) -> int:
        """Rows learned from."""
        return 0 if self._engine is None else self._engine.n_rows

    @property
    def window(self) -> int:
        """How many of the last rows count now; 0 before the first row."""
        return int(self._current().windows[0])

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler when it votes, now."""
        return self._current().accuracies[0]

    @property
    def diluted_accuracies(self) -> Floats:
        """Accuracy of each labeler with abstentions counted as blind guesses, now."""
        return self._current().diluted_accuracies[0]

    @property
    def weights(self) -> Floats:
        """What a vote of each labeler counts now."""
        return self._current().weights[0]

    @property
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._current().coverage[0]

    @property
    def reach(self) -> int | None:
        """How many rows before a block, with their numbers, decide what it comes out as; None: all of them."""
        return None

    @property
    def state_nbytes(self) -> int:
        """Bytes of state; bounded by the largest window, whatever the number of rows."""
        return 0 if self._engine is None else self._engine.nbytes

    def get_params(self) -> dict[str, Any]:
        """The settings, as keywords that make the same model again."""
        return copy.deepcopy(self._settings)

    def describe(self) -> str:
        """What the model is, how it reads votes, and what it knows, in a few lines."""
        names = show_names(self.labelers) if self.labelers else "named by the first votes"
        lines = [
            repr(self),
            f"votes: {self._form.describe()}",
            f"labelers: {names}",
            *self._families.describe(),
            f"rows: {self.n_rows}, window: {self.window}",
        ]
        return "\n".join(lines + (self._describe_labelers() if self.n_rows else []))

    def _describe_labelers(self) -> list[str]:
        """A line for each labeler."""
        now = self._current()
        return [
            f"  {name}: accuracy {now.accuracies[0, place]:.3f} when it votes,"
            f" coverage {now.coverage[0, place]:.3f}, weight {now.weights[0, place]:.3f}"
            for place, name in enumerate(self.labelers)
        ]

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        told = {key: value for key, value in self._settings.items() if value != usual[key].default}
        shown = [f"{key}={value!r}" for key, value in told.items()]
        return f"{type(self).__name__}({', '.join(shown)})"
