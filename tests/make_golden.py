"""Golden runs: the results of each model on fixed streams. `make golden` writes them anew."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, LabelModel, MajorityLabelModel
from driftvote.streams import paper_blocks, simulate, swap

from streams_for_tests import PAPERS_RULE

FOLDER = Path(__file__).parent / "golden"


def cases() -> dict[str, tuple[LabelModel, np.ndarray]]:
    many = simulate(np.tile([0.8, 0.7, 0.6, 0.5, 0.9], (1500, 1)), 4, n_classes=4, coverage=0.6).votes
    return {
        "default_swap": (AdaptiveLabelModel(), swap(1600, 1).votes),
        "default_many_classes": (AdaptiveLabelModel(n_classes=4), many),
        "bernstein_triplets": (AdaptiveLabelModel(estimator="triplet", bound="bernstein"), swap(1600, 1).votes),
        "adaptive_swap": (AdaptiveLabelModel(**PAPERS_RULE), swap(1600, 1).votes),
        "adaptive_paper_blocks": (
            AdaptiveLabelModel(windows=[10, 40, 200, 700], beta=0.05, **PAPERS_RULE),
            paper_blocks(400, 2).votes,
        ),
        "adaptive_many_classes": (AdaptiveLabelModel(n_classes=4, **PAPERS_RULE), many),
        "paper_with_abstentions": (AdaptiveLabelModel.paper(4, seed=3), many),
        "fixed_100": (FixedWindowLabelModel(window=100, n_classes=4), many),
        "all_past": (FixedWindowLabelModel(window=None), swap(1600, 1).votes),
        "majority": (MajorityLabelModel(n_classes=4, tie_break_policy="random", seed=9), many),
    }


def summary(model: LabelModel, votes: np.ndarray) -> dict[str, object]:
    """Every label and window by digest, and some rows in full for a reader who looks for what moved."""
    out = model.label_stream(votes)
    shown = [0, 1, 2, 17, len(votes) // 2, len(votes) - 1]
    return {
        "labels": hashlib.sha256(out.codes.astype("<i8").tobytes()).hexdigest(),
        "windows": hashlib.sha256(out.windows.astype("<i8").tobytes()).hexdigest(),
        "label_counts": np.bincount(out.codes + 1).tolist(),
        "mean_window": float(out.windows.mean()),
        "rows": [{"row": row, **out[row].to_dict(), "proba": out.proba[row].tolist()} for row in shown],
    }


def write() -> None:
    for name, (model, votes) in cases().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(summary(model, votes), indent=1) + "\n")


if __name__ == "__main__":
    write()
