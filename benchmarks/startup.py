"""What the first call costs, without and with the kernel cache; writes docs/startup.json and docs/startup.md.

Run by `make bench`, or alone: `python -m benchmarks.startup`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numba
import numpy as np

import driftvote

DOCS = Path(__file__).parents[1] / "docs"
RUNS = 3
PROBES = {
    "trivial": """
import time
import numba

@numba.njit(cache=True)
def one_more(x):
    return x + 1

one_more(1)
print(time.process_time())
""",
    "first_call": """
import time
import driftvote
driftvote.AdaptiveLabelModel().update([1, 1, 0, 1, 0, 1])
print(time.process_time())
""",
    "import": """
import time
import driftvote
print(time.process_time())
""",
}
"""Programs that print their processor time, which a busy machine changes less than the time of the clock."""


def measure(runs: int = RUNS) -> dict[str, Any]:
    """Median seconds of each program with an empty and with a filled cache, the programs taking turns."""
    seconds: dict[str, dict[str, list[float]]] = {name: {"empty": [], "filled": []} for name in PROBES}
    for _ in range(runs):
        for name, program in PROBES.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "program.py"  # Numba caches functions of files only
                path.write_text(program)
                for state in ("empty", "filled"):
                    seconds[name][state].append(run(path))
    found: dict[str, Any] = {
        name: {state: statistics.median(values) for state, values in states.items()} for name, states in seconds.items()
    }
    return found | {"installed_mb": installed_mb(), "versions": versions()}


def run(program: Path) -> float:
    """Seconds of processor time that a fresh process says it took; kernels are kept beside the program."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(program.parent / "cache")}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def installed_mb() -> float:
    """Megabytes of the installed packages that driftvote needs, and of driftvote itself."""
    todo, seen = ["driftvote"], set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        needed = [re.split(r"[^\w.-]", line)[0] for line in metadata.requires(name) or () if "extra ==" not in line]
        todo += [each for each in needed if _is_installed(each)]
    files = [Path(str(file.locate())) for name in seen for file in metadata.files(name) or () if file.suffix != ".pyc"]
    own = Path(driftvote.__file__).parent
    files += [path for path in own.rglob("*") if path.suffix in (".py", ".js", ".css", ".html")]
    return sum(path.stat().st_size for path in set(files) if path.exists()) / 1e6


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def versions() -> dict[str, str]:
    """What the figures were made with."""
    return {
        "driftvote": driftvote.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def page(found: dict[str, Any]) -> str:
    def row(title: str, name: str) -> str:
        return f"| {title} | {found[name]['empty']:.2f} s | {found[name]['filled']:.2f} s |"

    ratio = found["first_call"]["empty"] / found["trivial"]["empty"]
    made = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"""# What the first call costs

Numba compiles the kernels when they are first used, and keeps them on disk: next to the package or, if that folder is
read-only, in the user's cache folder. `NUMBA_CACHE_DIR` selects another folder. A second process compiles nothing, and
importing compiles nothing. Each kind of call (one row, a batch, a report, questions) compiles its own kernels.
[`driftvote compile`](cli.md#driftvote-compile) compiles all of them in advance. If compiling takes longer than two
seconds, a line on standard error says so; `DRIFTVOTE_QUIET=1` hides it.

| processor time of a fresh process | empty cache | filled cache |
|---|---|---|
{row("`import driftvote`", "import")}
{row("`import driftvote`, then the first `update()` of the default model", "first_call")}
{row("for comparison: `import numba`, then a function of one line", "trivial")}

With an empty cache, the first `update()` takes {ratio:.0f} times as long as that function of one line. driftvote and
its dependencies take {found["installed_mb"]:.0f} MB on disk.

Medians of {RUNS} fresh processes each, which took turns. Made with {made}. Times depend on the machine. Run it
again: `make bench`.
"""


def write(found: dict[str, Any], folder: Path) -> None:
    """Write startup.json and startup.md into a folder."""
    (folder / "startup.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "startup.md").write_text(page(found))


def main() -> None:
    write(measure(), DOCS)


if __name__ == "__main__":
    main()
