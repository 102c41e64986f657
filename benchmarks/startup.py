"""What the first call costs, without and with the kernel cache; writes docs/startup.md.

Run by `make bench`. Every figure is the median of several fresh processes.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np

from driftvote import __version__

PAGE = Path(__file__).parents[1] / "docs" / "startup.md"
RUNS = 3
PROBE = """
import time
start = time.perf_counter()
import numpy as np
numpy_done = time.perf_counter()
import driftvote
imported = time.perf_counter()
votes = np.random.default_rng(0).integers(0, 2, size=(1000, 6))
made = time.perf_counter()
model = driftvote.AdaptiveLabelModel()
model.label_stream(votes)
first = time.perf_counter()
model.label_stream(votes)
second = time.perf_counter()
print(numpy_done - start, imported - numpy_done, first - made, second - first)
"""


def measure(cache: str, fresh: bool) -> list[float]:
    """Median seconds of importing NumPy, importing driftvote, the first call and the second one."""
    runs = []
    for _ in range(RUNS):
        if fresh:
            shutil.rmtree(cache, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append([float(part) for part in done.stdout.split()])
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def page(without: list[float], with_cache: list[float]) -> str:
    def row(name: str, place: int) -> str:
        return f"| {name} | {without[place]:.2f} s | {with_cache[place]:.2f} s |"

    return f"""# What the first call costs

Kernels are compiled by Numba on first use and kept on disk, beside the package or, where that folder
is read-only, in the user's cache folder. A second process compiles nothing. `NUMBA_CACHE_DIR` chooses
another folder. Importing compiles nothing either. [`driftvote compile`](cli.md#driftvote-compile) does all of it
beforehand.

| | empty cache | filled cache |
|---|---|---|
{row("import numpy", 0)}
{row("import driftvote (on top of NumPy; most of it is Numba)", 1)}
{row("first `label_stream`, 1,000 rows x 6", 2)}
| second `label_stream`, the same | {without[3] * 1e3:.1f} ms | {with_cache[3] * 1e3:.1f} ms |

Median of {RUNS} fresh processes; driftvote {__version__}, Python {platform.python_version()},
NumPy {np.__version__}, Numba {numba.__version__}, {platform.machine()}, {os.cpu_count()} cores.
Times move with the machine and its load; what carries over is that a filled cache saves all the compiling.

Run it again: `make bench`.
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder) / "cache")
        without = measure(cache, fresh=True)
        with_cache = measure(cache, fresh=False)
    PAGE.write_text(page(without, with_cache))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
