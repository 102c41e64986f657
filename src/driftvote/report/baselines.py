"""What the labels are compared with, by the models themselves. (The majority is counted on the way, in the kernel.)"""

from __future__ import annotations

from typing import Any

from driftvote.kernels.layout import Codes, Ints
from driftvote.models import FixedWindowLabelModel, LabelModel


class Baseline:
    """A model that follows the stream; labelers may join."""

    def __init__(self, model: LabelModel) -> None:
        self.model = model
        self.width = 0

    @classmethod
    def all_past(cls, n_classes: int) -> Baseline:
        """One accuracy for each labeler from all the past, as batch label models do; ties stay open."""
        return cls(FixedWindowLabelModel(window=None, n_classes=n_classes, votes="snorkel"))

    def label(self, votes: Codes) -> Ints:
        """Class codes of the next rows, -1 where tied."""
        data: Any = votes
        if self.width and votes.shape[1] > self.width:
            # An array cannot say that somebody joined; a frame with the names that arrays get can.
            import pyarrow as pa

            data = pa.table({f"labeler_{place}": votes[:, place] for place in range(votes.shape[1])})
        self.width = votes.shape[1]
        codes: Ints = self.model.label_stream(data).codes
        return codes
