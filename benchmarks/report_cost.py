"""What a report costs beside labeling, the two timed in turn: `python -m benchmarks.report_cost`."""

from __future__ import annotations

import sys
import time

import numpy as np

from driftvote import AdaptiveLabelModel
from driftvote.report import ReportBuilder
from driftvote.streams import simulate

BATCH = 200_000
N_LABELERS = 6


def cost(n_rows: int) -> tuple[float, float, int]:
    """Seconds of labeling, seconds of the report, bytes that the report holds."""
    stream = simulate(np.tile(np.linspace(0.6, 0.9, N_LABELERS), (BATCH, 1)), seed=0)
    model = AdaptiveLabelModel()
    labeling, reporting = 0.0, 0.0
    names = [f"labeler_{place}" for place in range(N_LABELERS)]
    builder = ReportBuilder(labelers=names, classes=[0, 1])
    # Both compile, or load what was compiled, before the clock runs.
    ReportBuilder(labelers=names, classes=[0, 1]).add(
        stream.votes[:1000], model.clone().label_stream(stream.votes[:1000])
    )
    for batch in range(n_rows // BATCH):
        votes = np.roll(stream.votes, 17 * batch, axis=0)
        start = time.perf_counter()
        out = model.label_stream(votes)
        between = time.perf_counter()
        builder.add(votes, out)
        reporting += time.perf_counter() - between
        labeling += between - start
    return labeling, reporting, builder.nbytes


def main() -> None:
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    labeling, reporting, held = cost(n_rows)
    print(
        f"{n_rows:,} rows x {N_LABELERS}: labeling {labeling:.2f} s, report {reporting:.2f} s,"
        f" {reporting / labeling:.2f} of labeling; the builder holds {held / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
