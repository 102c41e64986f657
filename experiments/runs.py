"""Runs: independent pieces of an experiment whose results are cached in files.

A run is a function of plain arguments that returns plain numbers. Its result is written to a file as soon as it is
there, so an interrupted command continues where it stopped.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import platform
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import driftvote
from driftvote.files.atomic import whole_file

Numbers = dict[str, Any]
Progress = Callable[[str, int, int], None]
"""Called with the name of the experiment, the number of complete runs and the number of all runs."""

PACKAGE = Path(driftvote.__file__).parent
NO_EFFECT = ("__main__.py", "cli", "files", "live", "report", "spark")
"""Parts of the package that change no label and no probability: an edit there leaves cached results valid."""


@dataclass(frozen=True)
class Run:
    """One piece of work: `run(**arguments)` of a module of this package.

    `code` names the modules beside it whose code the result depends on. The arguments in `labels` say who asked and do
    not change the result.
    """

    module: str
    name: str
    arguments: dict[str, Any]
    code: tuple[str, ...]
    labels: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of the arguments and of the code; a cached result must match it."""
        arguments = {key: value for key, value in self.arguments.items() if key not in self.labels}
        text = json.dumps([self.module, arguments, code_digest(PACKAGE), _digest_of(self.code)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def perform(run: Run) -> Numbers:
    """The result of a run; it may be called in another process."""
    numbers: Numbers = importlib.import_module(f"experiments.{run.module}").run(**run.arguments)
    return numbers


class RunCache:
    """Results of runs in a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, run: Run) -> Path:
        return self.folder / run.module / f"{run.name}.json"

    def load(self, run: Run) -> Numbers | None:
        """The stored result, unless the code or the arguments have changed since."""
        try:
            stored = json.loads(self.path(run).read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(stored, dict) or stored.get("fingerprint") != run.fingerprint:
            return None
        numbers: Numbers = stored["numbers"]
        return numbers

    def store(self, run: Run, numbers: Numbers) -> None:
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"fingerprint": run.fingerprint, "numbers": numbers})


def perform_all(name: str, runs: Iterable[Run], stored: RunCache, jobs: int, progress: Progress) -> dict[str, Numbers]:
    """Results by the names of the runs; cached ones are not computed again."""
    wanted = list(runs)
    results = {run.name: numbers for run in wanted if (numbers := stored.load(run)) is not None}
    progress(name, len(results), len(wanted))
    for run, numbers in _perform_in_processes([run for run in wanted if run.name not in results], jobs):
        stored.store(run, numbers)
        results[run.name] = numbers
        progress(name, len(results), len(wanted))
    # In the order of the runs, not of their completion: sums of floats depend on it in their last bits.
    return {run.name: results[run.name] for run in wanted}


def _perform_in_processes(runs: list[Run], jobs: int) -> Iterator[tuple[Run, Numbers]]:
    if jobs == 1 or len(runs) < 2:
        for run in runs:
            yield run, perform(run)
        return
    # A forked child would inherit the locks that other threads hold, and could wait for them for ever.
    fresh = get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(runs)), mp_context=fresh, initializer=_ignore_interrupts) as pool:
        waiting = {pool.submit(perform, run): run for run in runs}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            # An interruption must not wait for everything that was queued.
            pool.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; the parent alone handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def code_digest(package: Path) -> str:
    """A hash of the code of the package that results depend on; comments and docstrings do not count."""
    files = [path for path in sorted(package.rglob("*.py")) if path.relative_to(package).parts[0] not in NO_EFFECT]
    return _digest(package, files)


@cache
def _digest_of(modules: tuple[str, ...]) -> str:
    here = Path(__file__).parent
    return _digest(here, [here / f"{name.replace('.', '/')}.py" for name in modules])


def _digest(root: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(root)).encode())
        digest.update(ast.dump(without_docstrings(ast.parse(path.read_text(encoding="utf-8")))).encode())
    return digest.hexdigest()


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree


def versions() -> dict[str, str]:
    """The versions that results depend on."""
    return {
        "driftvote": driftvote.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
    }


def write_json(path: Path, content: Any) -> None:
    """Write a file that is either complete or absent."""
    with whole_file(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())


def print_progress(name: str, done: int, total: int) -> None:
    """Print a line that overwrites itself on a terminal, elsewhere one at every tenth of the runs."""
    line = f"{name}: {done} of {total} runs"
    if sys.stderr.isatty():
        print(f"\r{line}", end="" if done < total else "\n", file=sys.stderr, flush=True)
    elif done in {total * part // 10 for part in range(11)}:
        print(line, file=sys.stderr, flush=True)
