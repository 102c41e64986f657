"""The models that users hold."""

from __future__ import annotations

from driftvote.committee import StepCertificate
from driftvote.models.adaptive import AdaptiveLabelModel
from driftvote.models.base import LabelModel, load
from driftvote.models.baselines import FixedWindowLabelModel, MajorityLabelModel
from driftvote.models.committee import CommitteeLabelModel
from driftvote.models.questions import Question, Questions
from driftvote.models.results import Explanation, LabeledStream, Step

__all__ = [
    "AdaptiveLabelModel",
    "CommitteeLabelModel",
    "Explanation",
    "FixedWindowLabelModel",
    "LabelModel",
    "LabeledStream",
    "MajorityLabelModel",
    "Question",
    "Questions",
    "Step",
    "StepCertificate",
    "load",
]
