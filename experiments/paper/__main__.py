"""`python -m experiments.paper`: run the paper's experiments and compare with what it says (`make reproduce`)."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError, MissingExtraError
from experiments.paper.data import describe
from experiments.paper.page import EXPERIMENTS, all_claims, page, write_results
from experiments.runs import Progress, RunCache, perform_all, print_progress, versions, write_json

NEED_DATA = ("video", "images", "beta")


def reproduce(
    names: Sequence[str], data: Path | None, out: Path, n_runs: int, jobs: int = 1, progress: Progress = print_progress
) -> dict[str, Any]:
    """Run experiments and write everything below `out`; returns the content of `results.json`."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("the figures need matplotlib; install driftvote[plots]")
    if data is None and set(names) & set(NEED_DATA):
        raise DriftvoteError("the paper's data are needed; name their folder with --data or DRIFTVOTE_DATA")
    out.mkdir(parents=True, exist_ok=True)
    results = _load_results(out / "results.json")
    for name in names:
        runs = EXPERIMENTS[name].plan(data or Path(), n_runs)
        found = perform_all(name, runs, RunCache(out / "runs"), jobs, progress)
        results["experiments"][name] = EXPERIMENTS[name].collect(found)
    write_json(out / "results.json", results)
    write_results(results, out)
    return results


def _load_results(path: Path) -> dict[str, Any]:
    """What an earlier call with the same versions found, so that experiments can be run one by one."""
    try:
        stored = json.loads(path.read_text())
        if stored["versions"] == versions():
            return {"versions": versions(), "experiments": stored["experiments"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"versions": versions(), "experiments": {}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code; an interrupted command continues where it stopped when it is started again."""
    parser = argparse.ArgumentParser(prog="paper", description="Run the paper's experiments and compare with it.")
    parser.add_argument(
        "name",
        nargs="?",
        default="all",
        choices=["all", "data", *EXPERIMENTS],
        help="which experiment; data: only look whether the data are there, and say where to get them",
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("DRIFTVOTE_DATA"), help="folder of the data")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for figures, tables and results.json")
    parser.add_argument("--runs", type=int, default=30, help="runs of what is random; the paper has 30")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--docs", type=Path, default=None, help="also write reproduction.md and its figures here")
    options = parser.parse_args(arguments)
    complete = True
    if options.name in ("all", "data"):
        complete, found = describe(options.data)
        print(found)
    if options.name == "data":
        return 0 if complete else 1
    names = list(EXPERIMENTS) if options.name == "all" else [options.name]
    if not complete:
        names = [name for name in names if name not in NEED_DATA]
        print(f"without these data: only {', '.join(names)}; docs/reproduction.md stays as it is")
        options.docs = None
    try:
        results = reproduce(names, options.data, options.out, options.runs, options.jobs)
    except DriftvoteError as problem:
        print(f"paper: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("paper: interrupted; the same command continues from here", file=sys.stderr)
        return 130
    if options.docs is not None:
        (options.docs / "figures").mkdir(parents=True, exist_ok=True)
        for figure in (options.out / "figures").glob("*.png"):
            shutil.copyfile(figure, options.docs / "figures" / figure.name)
        (options.docs / "reproduction.md").write_text(page(results, "figures"), encoding="utf-8")
    judged = all_claims(results["experiments"])
    print(f"{len(judged)} claims: {options.out / 'reproduction.md'}; figures, tables and results.json beside it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
