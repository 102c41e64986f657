"""What the default model costs, as a multiple of the paper's estimator; both take turns in one process."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from driftvote.kernels.layout import Codes
from driftvote.models import LabelModel
from driftvote.streams.scenarios import scenario
from experiments.quality.measures import Numbers
from experiments.quality.models import Factory, paper_zero

LABELERS, ROWS, SINGLE_ROWS, ROUNDS = 6, 20_000, 2_000, 7


def cost(default: Factory, rows: int = ROWS, single_rows: int = SINGLE_ROWS, rounds: int = ROUNDS) -> Numbers:
    """Ratios of the time per row: a batch through `label_stream`, and one row after the other through `update`.

    The paper's estimator runs without its dice (abstentions as zero), which is the faster way: the stricter mark.
    """
    votes = scenario("abrupt", n_rows=rows, n_labelers=LABELERS).votes

    def batch(model: LabelModel) -> Callable[[], object]:
        return lambda: _read(model, votes)

    def singles(model: LabelModel) -> Callable[[], object]:
        # Single rows are met in the middle of a stream, where windows are long.
        model.partial_fit(votes[: rows - single_rows])
        return lambda: [model.update(row) for row in votes[rows - single_rows :]]

    return {
        "labelers": LABELERS,
        "label_stream": _ratio(batch, default, rounds),
        "update": _ratio(singles, default, rounds),
    }


def _read(model: LabelModel, votes: Codes) -> float:
    out = model.label_stream(votes)
    return float(out.proba[-1, 0] + out.accuracies[-1, 0])  # what is worked out late is asked for, too


def _ratio(job: Callable[[LabelModel], Callable[[], object]], default: Factory, rounds: int) -> Numbers:
    ratios = []
    for _ in range(rounds + 1):
        ours, theirs = job(default(2)), job(paper_zero(2))
        ratios.append(_seconds(ours) / _seconds(theirs))
    kept = sorted(ratios[1:])  # the first round compiles
    return {"times": median(kept), "from": kept[0], "to": kept[-1], "rounds": rounds}


def _seconds(job: Callable[[], object]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start
