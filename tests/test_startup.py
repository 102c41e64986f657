"""What importing costs, and where compiled code is kept; `test_compile.py` has the rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import driftvote
from driftvote.core import jit as _jit
from processes_for_tests import OBEY_FILE_MODES, run_after

# Numba asks for the version of SciPy where it is installed, which loads its top level; the solver is what weighs.
HEAVY = ["numba", "pandas", "polars", "pyarrow", "matplotlib", "plotly", "pyspark", "scipy.optimize", "duckdb", "typer", "rich", "http.server", "jinja2"]  # fmt: skip

# The few kernels of a majority vote, and whether their code came from the cache.
SMALL_PROBE = """
import gc, json, driftvote
from numba.core.dispatcher import Dispatcher
driftvote.MajorityLabelModel(false_event_rate=None).update([1, 0, 1])
kernels = [k for k in gc.get_objects() if isinstance(k, Dispatcher) and k.__module__.startswith("driftvote")]
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
misses = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
print(json.dumps({"hits": [hits], "misses": [misses]}))
"""


def run(code: str, **env: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light():
    code = f"import sys, driftvote; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["label", "--help"], ["watch", "--help"], []])
def test_help_waits_for_no_compiler(words):
    """Nor for libraries that read files. On a terminal the command listens for the compiler, which must not load it."""
    code = f"""
import sys
sys.argv[1:] = {words!r}
sys.stderr.isatty = lambda: True
import driftvote.cli
try:
    driftvote.cli.main()
except SystemExit:
    print([name for name in ("numba", "pyarrow", "pandas", "polars") if name in sys.modules])
"""
    assert run(code).splitlines()[-1] == "[]"


@pytest.mark.slow
def test_a_read_only_package_is_cached_in_the_users_folder(tmp_path):
    site, home = tmp_path / "site", tmp_path / "home"
    shutil.copytree(Path(driftvote.__file__).parent, site / "driftvote", ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    for path in [site, *site.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG"))}
    env |= {"HOME": str(home), "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}

    def probe() -> dict[str, list[int]]:
        code = f"import driftvote; assert driftvote.__file__.startswith({str(site)!r})\n{SMALL_PROBE}"
        done = subprocess.run(
            run_after(OBEY_FILE_MODES, [sys.executable, "-c", code]),
            env=env,
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert all(probe()["misses"])
    assert probe()["misses"] == [0]
    assert not list(site.rglob("*.nbi"))
    # With nowhere to write at all, the package still works; it only compiles in memory.
    shutil.rmtree(home / ".cache")
    home.chmod(0o555)
    assert all(count == 0 for count in probe()["hits"])


def test_without_a_place_for_the_cache_kernels_compile_in_memory(monkeypatch):
    calls = []

    def njit(**flags):
        calls.append(flags)
        if flags.get("cache"):
            raise RuntimeError("cannot cache function 'f': no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", njit)
    assert _jit.jit(len)("abc") == 3
    assert [flags.get("cache", False) for flags in calls] == [True, False]
    monkeypatch.setattr("numba.njit", lambda **flags: (_ for _ in ()).throw(RuntimeError("other trouble")))
    with pytest.raises(RuntimeError, match="other trouble"):
        _jit.jit(len)("abc")


@pytest.mark.slow
@pytest.mark.parametrize("quiet", ["", "1"])
def test_long_compiling_is_explained(tmp_path, quiet):
    """One line, on standard error, and not where the environment says so. The clock is set to nothing here."""
    code = """
import driftvote
from driftvote.core import jit
jit._notice.after = 0.0
for _ in range(2):
    driftvote.MajorityLabelModel(false_event_rate=None).update([1, 0, 1])
"""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "DRIFTVOTE_QUIET": quiet}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ("" if quiet else _jit.NOTICE + "\n")
    assert done.stdout == ""
