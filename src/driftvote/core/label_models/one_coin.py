"""One accuracy for each labeler, whatever the class, fitted by EM.

Unlike the triplets it uses every vote, not only agreements of pairs; unlike the confusion model it cannot tell a
labeler that is good at one class from one that is good at another, and needs fewer rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from driftvote import settings as checks
from driftvote.core.label_models.confusion import STEPS, EmEstimator, EmSettings


@dataclass(frozen=True)
class OneCoin(EmEstimator):
    """One accuracy for each labeler, fitted by EM.

    Parameters
    ----------
    refresh
        Rows between two choices of the window. A window is fitted again when an eighth of its rows is new.
    class_balance
        `"even"`: all classes are as likely; `"estimated"`; or the shares of the classes, if you know them.
    """

    refresh: int = 32
    class_balance: str | Sequence[float] = "even"
    name: ClassVar[str] = "one_coin"

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", checks.n_rows("refresh", self.refresh, 2**20))
        object.__setattr__(self, "class_balance", checks.class_balance(self.class_balance))

    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> EmSettings:
        """Return the settings as kernels need them."""
        return EmSettings(
            pooled=True,
            silence=False,
            estimated=self.class_balance == "estimated",
            even_steps=0,
            steps=STEPS,
            pull=0.0,
            given=self.given_balance(n_classes),
        )
