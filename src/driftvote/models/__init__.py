"""What users hold. Models only wire the stages together."""

from driftvote.committee import StepCertificate
from driftvote.models.adaptive import AdaptiveLabelModel
from driftvote.models.base import LabelModel, load
from driftvote.models.committee import CommitteeLabelModel
from driftvote.models.fixed_window import FixedWindowLabelModel
from driftvote.models.majority import MajorityLabelModel
from driftvote.models.results import LabeledStream
from driftvote.models.step import Step

__all__ = [
    "AdaptiveLabelModel",
    "CommitteeLabelModel",
    "FixedWindowLabelModel",
    "LabelModel",
    "LabeledStream",
    "MajorityLabelModel",
    "Step",
    "StepCertificate",
    "load",
]
