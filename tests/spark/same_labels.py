"""Votes for the tests, and the check of all of them: the labels are those of one process, to the last bit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from driftvote.spark.columns import ERROR_BOUND, OUTPUTS

LABELERS = ["a", "b", "c", "d", "e"]
OF_STREAM = {"label": "labels", "window": "windows", ERROR_BOUND: "error_bounds"}


def votes_of(rows: int, seed: int = 0, n_classes: int = 2, abstain: float = 0.2) -> np.ndarray:
    """Votes of labelers that swap half-way."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, rows)
    skill = np.where(np.arange(rows)[:, None] < rows // 2, [0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.6, 0.7, 0.8, 0.9])
    wrong = (truth[:, None] + rng.integers(1, n_classes, (rows, 5))) % n_classes
    votes = np.where(rng.random((rows, 5)) < skill, truth[:, None], wrong)
    return np.where(rng.random((rows, 5)) < abstain, -1, votes)


def table(sizes: list[int], seed: int = 0, **more) -> pd.DataFrame:
    """Streams of these sizes, rows in random order."""
    parts = []
    for place, size in enumerate(sizes):
        part = pd.DataFrame(votes_of(size, seed + place, **more).astype("int32"), columns=LABELERS)
        part["camera"], part["at"] = f"cam-{place}", np.arange(size) * 10
        parts.append(part)
    return pd.concat(parts).sample(frac=1, random_state=seed).reset_index(drop=True)


def assert_same(found: pd.DataFrame, votes: pd.DataFrame, model, key=None, time="at", labelers=LABELERS, prefix=""):
    """Every output of every row, stream by stream, against `label_stream` on the sorted rows."""
    assert len(found) == len(votes)
    if key is None:  # one long stream is labeled without drift events
        model = type(model)(**model.get_params(deep=False) | {"false_event_rate": None})
    streams = [((), votes)] if key is None else list(votes.groupby(key))
    for name, rows in streams:
        result = found if key is None else found[found[key] == name]
        result = result.sort_values(time)
        rows = rows.sort_values(time)
        assert result[time].tolist() == rows[time].tolist()
        whole = model.clone().label_stream(rows[labelers].to_numpy())
        outputs = [output for output in (*OUTPUTS, ERROR_BOUND) if prefix + output in found.columns]
        assert outputs
        for output in outputs:
            wanted = getattr(whole, OF_STREAM.get(output, output))
            values = result[prefix + output].tolist()
            assert np.array_equal(np.array(values), np.array(wanted.tolist())), (name, output)
