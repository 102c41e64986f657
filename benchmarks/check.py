"""`make bench-check`: has labeling become slower, against the majority line, than the committed figure says?

The ratio is measured the way `make bench` did and compared with the one in docs/performance.json of a
commit (HEAD unless told), so that writing the file anew does not move the mark. A slow-down must show twice: the
second look costs seconds, a false alarm costs somebody an afternoon.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.plan import PLANS, ROOT
from benchmarks.throughput import check_ratios

ALLOWED = 1.2
STORED = "docs/performance.json"


def stored(revision: str) -> dict[str, Any]:
    """The figures of a commit; without git, or before the first commit of the file, those of the file."""
    shown = subprocess.run(
        ["git", "show", f"{revision}:{STORED}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    text = shown.stdout if shown.returncode == 0 else (ROOT / STORED).read_text()
    return dict(json.loads(text))


def slower(now: dict[str, float], before: dict[str, float], allowed: float = ALLOWED) -> list[str]:
    """Which ratios grew by more than is allowed."""
    return [name for name, value in now.items() if name in before and value > allowed * before[name]]


def report(now: dict[str, float], before: dict[str, float]) -> None:
    for name, value in now.items():
        if name in before:
            change = value / before[name] - 1
            print(f"{name}: {value:.2f} x majority, was {before[name]:.2f} ({change:+.0%})")
        else:
            print(f"{name}: {value:.2f} x majority, nothing to compare with")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--plan", choices=PLANS, default="full", help="sizes; the stored figures must be of the same")
    parser.add_argument("--against", default="HEAD", help="the commit whose figures are the mark")
    parser.add_argument("--file", type=Path, help="compare with this file instead of a commit")
    asked = parser.parse_args()
    try:
        figures = json.loads(asked.file.read_text()) if asked.file else stored(asked.against)
    except OSError:
        print(f"no {STORED} to compare with: run `make bench` and commit it", file=sys.stderr)
        return 2
    if figures["plan"] != asked.plan:
        print(f"the stored figures are of the {figures['plan']} plan, not of {asked.plan}", file=sys.stderr)
        return 2
    before = figures["check"]
    now = check_ratios(PLANS[asked.plan])
    if slower(now, before):
        print("slower than stored; looking again")
        again = check_ratios(PLANS[asked.plan])
        now = {name: min(value, again[name]) for name, value in now.items()}
    report(now, before)
    late = slower(now, before)
    if late:
        print(f"slower than the stored ratio by more than {ALLOWED - 1:.0%}: {', '.join(late)}", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
