"""`python -m experiments.paper`: run the paper's experiments and compare with what it says (`make reproduce`)."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from driftvote.errors import DriftvoteError
from experiments.paper.claims import claims
from experiments.paper.page import write_page
from experiments.paper.reproduce import PAPER_RUNS, chosen, reproduce


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code; an interrupted command continues where it stopped when it is started again."""
    parser = argparse.ArgumentParser(prog="paper", description="Run the paper's experiments and compare with it.")
    parser.add_argument("name", nargs="?", default="all", help="all, synthetic, video, images, beta or theory")
    parser.add_argument("--data", type=Path, default=os.environ.get("DRIFTVOTE_DATA"), help="folder of the data")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for figures, tables and results.json")
    parser.add_argument("--runs", type=int, default=PAPER_RUNS, help="runs of what is random; the paper has 30")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--docs", type=Path, default=None, help="also write reproduction.md and its figures here")
    options = parser.parse_args(arguments)
    try:
        results = reproduce(chosen(options.name), options.data, options.out, options.runs, options.jobs, _progress)
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
        write_page(results, options.docs / "reproduction.md", "figures")
    judged = claims(results["experiments"])
    print(f"{len(judged)} claims: {options.out / 'reproduction.md'}; figures, tables and results.json beside it")
    return 0


def _progress(experiment: str, done: int, total: int) -> None:
    """Print a line at the beginning, at every quarter and at the end."""
    if done in {total * part // 4 for part in range(5)}:
        print(f"{experiment}: {done} of {total} runs", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
