"""driftvote: labels from noisy labelers that drift, without ground truth.

>>> from driftvote import AdaptiveLabelModel
>>> model = AdaptiveLabelModel(n_classes=2)
>>> model.update([1, 0, -1, 1]).label
1
"""

import driftvote._startup  # noqa: F401 - first: it takes care of Ctrl-C during the imports below
from driftvote._version import __version__
from driftvote.core.label_models import Confusion, Majority, Mixture, OneCoin, Triplet, Wawa
from driftvote.core.windows import WindowGrid, WindowRule, WindowTest
from driftvote.drift.bands import AccuracyEstimate
from driftvote.drift.detector import DriftDetector
from driftvote.drift.events import DriftEvent, DriftWarning, LabelerChange
from driftvote.errors import (
    ContradictionError,
    DriftvoteError,
    FeedbackError,
    LabelerError,
    MissingExtraError,
    NotFittedError,
    OrderError,
    SettingError,
    StateError,
    VoteError,
    VoteFormatWarning,
)
from driftvote.models import (
    AdaptiveLabelModel,
    CommitteeLabelModel,
    FixedWindowLabelModel,
    LabeledStream,
    LabelModel,
    MajorityLabelModel,
    Question,
    Questions,
    Step,
    StepCertificate,
    load,
)

__all__ = [
    "AccuracyEstimate",
    "AdaptiveLabelModel",
    "CommitteeLabelModel",
    "Confusion",
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
    "Majority",
    "MajorityLabelModel",
    "MissingExtraError",
    "Mixture",
    "NotFittedError",
    "OneCoin",
    "OrderError",
    "Question",
    "Questions",
    "SettingError",
    "StateError",
    "Step",
    "StepCertificate",
    "Triplet",
    "VoteError",
    "VoteFormatWarning",
    "Wawa",
    "WindowGrid",
    "WindowRule",
    "WindowTest",
    "__version__",
    "load",
]
