"""`python -m experiments.quality`: measure and write the page (`make quality`)."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from driftvote.errors import DriftvoteError, MissingExtraError
from experiments.quality.checks import check_all
from experiments.quality.page import publish
from experiments.quality.suite import PARTS, measure
from experiments.runs import Numbers


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code; an interrupted command continues where it stopped when it is started again."""
    parser = argparse.ArgumentParser(prog="quality", description="Label quality on real and simulated votes.")
    parser.add_argument("--data", type=Path, default=os.environ.get("DRIFTVOTE_DATA"), help="folder of the streams")
    parser.add_argument("--out", type=Path, default=Path("results/quality"), help="cached runs and environments")
    parser.add_argument("--docs", type=Path, default=None, help="write quality.md, quality.json and figures/ here")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--names", default=None, help="only these streams")
    parser.add_argument("--limit", type=int, default=None, help="only the first rows of each stream")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(arguments)
    parts = options.only.split(",")
    try:
        if unknown := set(parts) - set(PARTS):
            raise DriftvoteError(f"there is no part {sorted(unknown)[0]!r}; choose {', '.join(PARTS)}")
        if options.data is None:
            raise DriftvoteError("the vote streams are needed; name their folder with --data or DRIFTVOTE_DATA")
        if importlib.util.find_spec("matplotlib") is None:
            raise MissingExtraError("the figure needs matplotlib; install driftvote[plots]")
        names = options.names.split(",") if options.names else None
        results = measure(options.data, options.out, parts, names=names, limit=options.limit, jobs=options.jobs)
    except DriftvoteError as problem:
        print(f"quality: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nquality: interrupted; the same command continues from here", file=sys.stderr)
        return 130
    folder = options.docs or options.out
    if options.docs and options.limit is None and names is None:
        keep_other_parts(results, options.docs / "quality.json")
    publish(results, folder)
    for check in check_all(results):
        print(check)
    print(f"written: {folder / 'quality.md'}")
    return 0


def keep_other_parts(results: Numbers, path: Path) -> None:
    """Keep the committed figures of parts that were not measured this time; the page says which ones they are."""
    before: Numbers = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept = [part for part in PARTS if part in before and part not in results]
    results |= {part: before[part] for part in kept} | {"earlier": kept}
    results["seconds"] = {**before.get("seconds", {}), **results["seconds"]}


if __name__ == "__main__":
    sys.exit(main())
