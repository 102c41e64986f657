"""`python -m experiments.quality`: measure everything and write the page (`make quality`)."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from driftvote.errors import DriftvoteError, MissingExtraError
from experiments.quality.page import publish
from experiments.quality.streams import GROUPS
from experiments.quality.suite import measure
from experiments.quality.verdicts import Verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code; an interrupted command continues where it stopped when it is started again."""
    parser = argparse.ArgumentParser(prog="quality", description="Label quality of every model on every stream.")
    parser.add_argument("--data", type=Path, default=os.environ.get("DRIFTVOTE_DATA"), help="folder of the streams")
    parser.add_argument("--out", type=Path, default=Path("results/quality"), help="cached runs and figures")
    parser.add_argument("--docs", type=Path, default=None, help="write quality.md, quality.json and figures/ here")
    parser.add_argument("--groups", default=",".join(GROUPS), help="only some groups of streams")
    parser.add_argument("--names", default=None, help="only some streams")
    parser.add_argument("--seeds", type=int, default=5, help="at most so many seeds")
    parser.add_argument("--limit", type=int, default=None, help="only the first rows of each stream")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the cost measurement; 0 leaves it out")
    options = parser.parse_args(arguments)
    try:
        if options.data is None:
            raise DriftvoteError("the vote streams are needed; name their folder with --data or DRIFTVOTE_DATA")
        if importlib.util.find_spec("matplotlib") is None:
            raise MissingExtraError("the figures need matplotlib; install driftvote[plots]")
        results = measure(
            options.data,
            options.out,
            groups=options.groups.split(","),
            names=options.names.split(",") if options.names else None,
            most_seeds=options.seeds,
            limit=options.limit,
            jobs=options.jobs,
            cost_rounds=options.rounds,
        )
    except DriftvoteError as problem:
        print(f"quality: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nquality: interrupted; the same command continues from here", file=sys.stderr)
        return 130
    folder = options.docs or options.out
    publish(results, folder)
    for verdict in results["verdicts"]:
        print(Verdict(**verdict))
    print(f"written: {folder / 'quality.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
