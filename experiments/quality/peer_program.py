"""Label models of other projects on files of votes: `python peer_program.py METHOD`.

It is run by the interpreter of the peer's environment, which has NumPy and the peer and nothing of ours. Each line of
standard input names two files, with a tab between them: votes to read (`votes`, rows x labelers of class codes, -1
abstains, and `n_classes`) and probabilities to write (`proba`, rows x classes; NaN where the method says nothing). Each
line is answered with a line of JSON: seconds, or an error.
"""

from __future__ import annotations

import codecs
import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

Votes = npt.NDArray[np.int64]
Proba = npt.NDArray[np.float64]
REFIT = 1_000


def majority(votes: Votes, n_classes: int) -> Proba:
    """Equal shares for the classes with the most votes. It stands in until a method has been fitted."""
    counts = np.stack([(votes == label).sum(axis=1) for label in range(n_classes)], axis=1)
    top = counts == counts.max(axis=1, keepdims=True)
    return top / top.sum(axis=1, keepdims=True)


def fit_snorkel(votes: Votes, n_classes: int) -> Callable[[Votes], Proba]:
    """Snorkel's LabelModel with its defaults."""
    model = import_module("snorkel.labeling.model").LabelModel(cardinality=n_classes, verbose=False)
    model.fit(votes, seed=0, progress_bar=False)
    return lambda rows: np.asarray(model.predict_proba(rows))


def snorkel(votes: Votes, n_classes: int) -> Proba:
    """Fitted to the whole stream."""
    return fit_snorkel(votes, n_classes)(votes)


def patient(votes: Votes, n_classes: int) -> Proba:
    """Fitted anew every 1,000 rows, to all rows so far; labels the next 1,000. Majority before the first fit."""
    parts = [majority(votes[:REFIT], n_classes)]
    parts += [
        fit_snorkel(votes[:begin], n_classes)(votes[begin : begin + REFIT]) for begin in range(REFIT, len(votes), REFIT)
    ]
    return np.concatenate(parts)


def crowdkit(votes: Votes, n_classes: int, name: str) -> Proba:
    """A model of crowd-kit with its defaults, fitted to the whole stream."""
    model = getattr(import_module("crowdkit.aggregation"), name)()
    rows, labelers = np.nonzero(votes >= 0)
    frame = import_module("pandas").DataFrame({"task": rows, "worker": labelers, "label": votes[rows, labelers]})
    found = model.fit_predict_proba(frame)
    proba = np.full((len(votes), n_classes), np.nan)
    proba[np.ix_(found.index.to_numpy(), found.columns.to_numpy())] = found.fillna(0).to_numpy()
    unknown = np.isnan(proba) & ~np.isnan(proba).all(axis=1, keepdims=True)
    proba[unknown] = 0.0  # classes without a vote
    return proba


def wawa(votes: Votes, n_classes: int) -> Proba:
    return crowdkit(votes, n_classes, "Wawa")


def dawid_skene(votes: Votes, n_classes: int) -> Proba:
    return crowdkit(votes, n_classes, "DawidSkene")


def hyperlm(votes: Votes, n_classes: int) -> Proba:
    """The trained network, on the whole stream."""
    # Beside its weights the checkpoint of 2023 holds a few NumPy numbers, which torch 2.6 and newer read only if named.
    scalar = (import_module("numpy._core.multiarray").scalar, "numpy.core.multiarray.scalar")
    known = [scalar, np.dtype, np.dtypes.Float64DType, codecs.encode]
    import_module("torch").serialization.add_safe_globals(known)
    found = np.asarray(import_module("hyperlm").HyperLabelModel(device="cpu").infer(votes, return_probs=True))
    proba = np.full((len(votes), n_classes), np.nan)
    proba[: len(found)] = 0.0
    proba[: len(found), : found.shape[1]] = found
    return proba


METHODS: dict[str, Callable[[Votes, int], Proba]] = {
    "majority": majority,
    "snorkel": snorkel,
    "patient": patient,
    "wawa": wawa,
    "dawid_skene": dawid_skene,
    "hyperlm": hyperlm,
}


def label_file(method: str, source: str, target: str) -> dict[str, Any]:
    """Label one file; the answer to its line."""
    with np.load(source) as given:
        votes, n_classes = given["votes"].astype(np.int64), int(given["n_classes"])
    start = time.perf_counter()
    try:
        proba = METHODS[method](votes, n_classes)
    except Exception as problem:  # a peer that fails on one stream goes on with the next
        return {"error": f"{type(problem).__name__}: {problem}"[:300]}
    proba[(votes < 0).all(axis=1)] = np.nan
    np.savez(target, proba=proba)
    return {"seconds": round(time.perf_counter() - start, 2)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        answer = label_file(sys.argv[1], *line.rstrip("\n").split("\t"))
        print(json.dumps(answer), flush=True)
