"""driftvote: labels from noisy labelers that drift, without ground truth.

>>> from driftvote import AdaptiveLabelModel
>>> model = AdaptiveLabelModel(n_classes=2)
>>> model.update([1, 0, -1, 1]).label
1
"""

from driftvote._version import __version__
from driftvote.drift.bands import AccuracyEstimate
from driftvote.drift.detector import DriftDetector
from driftvote.drift.events import DriftEvent, DriftWarning, LabelerChange
from driftvote.errors import (
    ContradictionError,
    DriftvoteError,
    FeedbackError,
    LabelerError,
    MissingExtraError,
    OrderError,
    SettingError,
    StateError,
    VoteError,
)
from driftvote.models import (
    AdaptiveLabelModel,
    CommitteeLabelModel,
    FixedWindowLabelModel,
    LabeledStream,
    LabelModel,
    MajorityLabelModel,
    Step,
    StepCertificate,
    load,
)
from driftvote.windows import WindowGrid, WindowTest

__all__ = [
    "AccuracyEstimate",
    "AdaptiveLabelModel",
    "CommitteeLabelModel",
    "ContradictionError",
    "DriftDetector",
    "DriftEvent",
    "DriftWarning",
    "DriftvoteError",
    "FeedbackError",
    "FixedWindowLabelModel",
    "LabelModel",
    "LabeledStream",
    "LabelerChange",
    "LabelerError",
    "MajorityLabelModel",
    "MissingExtraError",
    "OrderError",
    "SettingError",
    "StateError",
    "Step",
    "StepCertificate",
    "VoteError",
    "WindowGrid",
    "WindowTest",
    "__version__",
    "load",
]
