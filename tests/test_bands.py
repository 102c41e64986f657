"""After a drift event there is one accuracy now, wherever it is shown, and its band holds the truth."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel
from driftvote.live.metrics import Counts, collect_metrics
from driftvote.report import from_arrays

CHANGE = 1500


def changing_stream(seed: int, before: float, after: float, n: int = 6, k: int = 2, rows: int = 2000):
    """Votes and accuracies; the first labeler changes."""
    rng = np.random.default_rng([seed, n, k])
    accuracies = np.tile(rng.uniform(0.65, 0.85, n), (CHANGE + rows + 1, 1))
    accuracies[:CHANGE, 0], accuracies[CHANGE:, 0] = before, after
    truth = rng.integers(0, k, (len(accuracies), 1))
    wrong = (truth + rng.integers(1, k, accuracies.shape)) % k
    return np.where(rng.random(accuracies.shape) < accuracies, truth, wrong).astype(np.int8), accuracies


@pytest.mark.parametrize(("before", "after", "k"), [(0.85, 0.4, 2), (0.9, 0.6, 2), (0.6, 0.9, 2), (0.85, 0.4, 3)])
def test_now_is_one_number_after_an_event(before, after, k):
    for seed in range(4):
        votes, _ = changing_stream(seed, before, after, k=k)
        event = next(e for e in AdaptiveLabelModel(n_classes=k).label_stream(votes).events if e.row >= CHANGE)
        changed = next(labeler for labeler in event.labelers if labeler.name == "labeler_0")
        for rows in (1, 300):
            model = AdaptiveLabelModel(n_classes=k)
            out = model.label_stream(votes[: event.row + 1 + rows])
            accuracy, low, high = model.accuracies[0], *(end[0] for end in model.bands())
            # The event has the rows from its likeliest row on; windows begin with a block that holds nothing older.
            assert low <= changed.high_after, (seed, rows)
            assert changed.low_after <= high, (seed, rows)
            assert not changed.low_before <= accuracy <= changed.high_before
            assert out.windows[-1] <= event.row + 1 + rows - event.since[0]

            assert (out.accuracies[-1] == model.accuracies).all()
            assert [end[-1, 0] for end in out.bands()] == [low, high]
            shown = {family.name: dict(samples_of(family)) for family in collect_metrics(model, Counts())}
            kinds = [next(v for name, v in shown.items() if name.endswith(f"labeler_accuracy{end}")) for end in ENDS]
            assert [values["labeler_0"] for values in kinds] == [accuracy, low, high]
            reported = from_arrays(out.votes, model, out=out).labelers[0]
            found = reported.accuracy, reported.accuracy_low, reported.accuracy_high
            assert found == pytest.approx((accuracy, low, high), abs=1e-4)


ENDS = ("", "_low", "_high")


def samples_of(family):
    return [(labels.get("labeler"), value) for labels, value in family.samples]


def test_the_report_says_what_is_now_though_its_last_bucket_reaches_across_the_event():
    votes, _ = changing_stream(0, 0.85, 0.4)
    votes = np.concatenate([votes[np.arange(20_000) % CHANGE], votes[CHANGE : CHANGE + 400]])
    model = AdaptiveLabelModel()
    out = model.label_stream(votes)
    report = from_arrays(votes, model, out=out)
    now = [labeler.accuracy for labeler in report.labelers]
    assert now == pytest.approx(model.accuracies.tolist(), abs=1e-4)
    assert report.labelers[0].accuracy_low < now[0] < report.labelers[0].accuracy_high


def test_the_band_holds_the_truth_after_a_change():
    """From the event on; until it is confirmed, windows are older than the change."""
    inside: dict[int, list[float]] = {200: [], 400: [], 1000: [], 2000: []}
    for before, after, n, k in ((0.85, 0.4, 6, 2), (0.9, 0.6, 6, 2), (0.85, 0.4, 20, 2), (0.85, 0.4, 6, 3)):
        for seed in range(8):
            votes, accuracies = changing_stream(seed, before, after, n, k)
            out = AdaptiveLabelModel(n_classes=k).label_stream(votes)
            (low, high), event = out.bands(), next(event.row for event in out.events if event.row >= CHANGE)
            for rows, found in inside.items():
                at = CHANGE + rows
                if at > event:
                    found.append(bool(low[at, 0] <= accuracies[at, 0] <= high[at, 0]))
    # 32 streams: with a true share of 0.95, fewer than 0.84 inside happens about once in 100.
    assert {rows: np.mean(found) for rows, found in inside.items() if np.mean(found) < 0.84} == {}
    assert np.mean(np.concatenate(list(inside.values()))) >= 0.9
    assert len(inside[200]) >= 16
    assert len(inside[400]) >= 30
