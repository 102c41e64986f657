"""Run the suite: `python -m benchmarks`, or `make bench`; writes performance.json, performance.md and figures."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import page, startup
from benchmarks.common import ROOT, describe_machine
from benchmarks.peers import measure_latency, measure_peers
from benchmarks.throughput import PLANS, SuitePlan, measure_axes, measure_chunked, measure_growth

SECTIONS: dict[str, Callable[[SuitePlan], Any]] = {
    "growth": measure_growth,
    "latency": measure_latency,
    "peers": measure_peers,
    "chunked": measure_chunked,
    "axes": measure_axes,
    "startup": lambda plan: startup.measure(1 if plan.name == "tiny" else startup.RUNS),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--plan", choices=PLANS, default="full", help="sizes (default: full)")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="some sections only")
    parser.add_argument("--out", type=Path, help="folder to write to (default: docs, or build/bench-PLAN)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--page-only", action="store_true", help="write the page anew from performance.json")
    return parser.parse_args()


def rounded(value: Any) -> Any:
    """The same with five digits."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def measure(plan: SuitePlan, names: list[str]) -> dict[str, Any]:
    """Results of some sections, and the verdicts."""
    where = describe_machine()
    found: dict[str, Any] = {}
    started = time.perf_counter()
    for name, section in SECTIONS.items():
        if name in names:
            print(f"{name} ({time.perf_counter() - started:.0f} s)", flush=True)
            found[name] = section(plan)
    return {
        "plan": plan.name,
        "minutes": (time.perf_counter() - started) / 60,
        "machine": where,
        "targets": page.judge(page.collect_values(found)),
        "sections": found,
    }


def main() -> int:
    asked = arguments()
    # Only the complete full suite may replace the committed page: half a page would pass for a whole one.
    complete = asked.plan == "full" and set(asked.only) == set(SECTIONS)
    folder: Path = asked.out or (ROOT / "docs" if complete else ROOT / "build" / f"bench-{asked.plan}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "performance.json"
    if asked.page_only:
        results = json.loads(path.read_text())
    else:
        results = rounded(measure(PLANS[asked.plan], asked.only))
        path.write_text(json.dumps(results, indent=1) + "\n")
    page.write(results, folder)
    if "startup" in results["sections"]:
        startup.write(results["sections"]["startup"], folder)
    print("\nWhat must hold" + ("" if asked.plan == "full" else " (at these sizes the verdicts say nothing)"))
    for line in page.summary_rows(results["targets"]):
        print(" | ".join(line))
    return 1 if asked.strict and page.failing(results["targets"]) else 0


if __name__ == "__main__":
    sys.exit(main())
