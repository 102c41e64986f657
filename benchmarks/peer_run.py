"""One peer labels one file of votes: `python benchmarks/peer_run.py PEER VOTES.npy LABELS.npy`, prints JSON.

Run by the interpreter of the peer's own environment, which has NumPy and the peer and nothing of ours.
Importing is not timed. Votes are class codes without abstentions; labels go to the second file.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np


def snorkel() -> Callable[[np.ndarray], np.ndarray]:
    """Snorkel's LabelModel with its defaults: 100 passes over the agreement matrix of all rows."""
    from snorkel.labeling.model import LabelModel

    def label(votes: np.ndarray) -> np.ndarray:
        model = LabelModel(cardinality=2, verbose=False)
        model.fit(votes.astype(np.int64), seed=0, progress_bar=False)
        return model.predict(votes.astype(np.int64), tie_break_policy="abstain")

    return label


def crowdkit() -> Callable[[np.ndarray], np.ndarray]:
    """crowd-kit's Dawid-Skene, at most 100 steps of expectation maximisation; its long frame is timed too."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    def label(votes: np.ndarray) -> np.ndarray:
        rows, labelers = votes.shape
        frame = pd.DataFrame(
            {
                "task": np.repeat(np.arange(rows), labelers),
                "worker": np.tile(np.arange(labelers), rows),
                "label": votes.ravel().astype(np.int64),
            }
        )
        return DawidSkene(n_iter=100).fit_predict(frame).sort_index().to_numpy()

    return label


def flyingsquid() -> Callable[[np.ndarray], np.ndarray]:
    """FlyingSquid's triplets, closed form; its votes are -1 and +1."""
    from flyingsquid.label_model import LabelModel

    def label(votes: np.ndarray) -> np.ndarray:
        signed = np.where(votes == 1, 1, -1)
        model = LabelModel(votes.shape[1])
        model.fit(signed)
        return (np.asarray(model.predict(signed)).ravel() > 0).astype(np.int64)

    return label


def main() -> None:
    warnings.simplefilter("ignore")
    name, source, target = sys.argv[1:]
    label = {"snorkel": snorkel, "crowdkit": crowdkit, "flyingsquid": flyingsquid}[name]()
    votes = np.load(source)
    label(votes[:50])  # what a library sets up on its first call is not the price of a row
    start = time.perf_counter()
    labels = label(votes)
    seconds = time.perf_counter() - start
    np.save(target, np.asarray(labels, dtype=np.int64))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
