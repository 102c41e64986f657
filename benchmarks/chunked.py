"""A stream too long to hold, fed in chunks: time, and memory that must not grow with the rows."""

from __future__ import annotations

from typing import Any

from benchmarks import child
from benchmarks.ours import warm_up
from benchmarks.plan import Case, Plan
from benchmarks.streams import make_votes


def chunked(plan: Plan) -> dict[str, Any]:
    """Each length in a fresh process; the pool of ready-made chunks (one byte a vote) counts as ours.

    Kernels are compiled here first: a process that compiles holds the compiler's memory, and that is a
    matter of the first call (docs/startup.md), not of the stream.
    """
    case = Case(2 * plan.chunk)
    warm_up(make_votes(case)[0], case)
    lines = []
    for rows in plan.chunked_rows:
        found = child.measure("chunked", {"rows": rows, "chunk": plan.chunk})
        lines.append(
            {
                "rows": rows,
                "seconds": found["seconds"],
                "rows_per_second": rows / found["seconds"],
                "peak_mb": found["peak_mb"],
                "idle_mb": found["idle_mb"],
            }
        )
        print(f"  {rows:,} rows: {lines[-1]['rows_per_second']:,.0f} rows/s, {found['peak_mb']:.0f} MB above idle")
    return {
        "chunk": plan.chunk,
        "labelers": case.labelers,
        "lines": lines,
        "growth": lines[-1]["peak_mb"] / lines[0]["peak_mb"],
    }
