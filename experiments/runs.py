"""Runs: small independent pieces of an experiment, done once, on both cores, and kept.

A run is a function of plain arguments that returns plain numbers. Its result is written to a file of its own
as soon as it is there, so an interrupted reproduction goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import driftvote
from driftvote._version import __version__
from driftvote.files.atomic import whole_file

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One piece of work: `experiment` names the module whose `run` does it."""

    experiment: str
    name: str
    arguments: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Changes with the arguments, the version and the code of the package: a kept result must match it."""
        text = json.dumps([asdict(self), __version__, _source_digest()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def perform(run: Run) -> Numbers:
    """Do one run, in whatever process."""
    module = importlib.import_module(f"experiments.{run.experiment}")
    numbers: Numbers = module.run(**run.arguments)
    return numbers


class Keeper:
    """Results of runs in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, run: Run) -> Path:
        return self.folder / run.experiment / f"{run.name}.json"

    def kept(self, run: Run) -> Numbers | None:
        """The result of an earlier session, unless the code or the arguments have changed since."""
        try:
            stored = json.loads(self.path(run).read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(stored, dict) or stored.get("fingerprint") != run.fingerprint:
            return None
        numbers: Numbers = stored["numbers"]
        return numbers

    def keep(self, run: Run, numbers: Numbers) -> None:
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(json.dumps({"fingerprint": run.fingerprint, "numbers": numbers}).encode())


def perform_all(runs: Iterable[Run], keeper: Keeper, jobs: int, step: Callable[[Run], None]) -> dict[str, Numbers]:
    """Results by name; what is kept is not done again. `step` hears of every run that is complete."""
    results: dict[str, Numbers] = {}
    todo, wanted = [], list(runs)
    for run in wanted:
        numbers = keeper.kept(run)
        if numbers is None:
            todo.append(run)
        else:
            results[run.name] = numbers
            step(run)
    for run, numbers in _performed(todo, jobs):
        keeper.keep(run, numbers)
        results[run.name] = numbers
        step(run)
    # In the order of the runs, not of their completion: sums of floats depend on it in their last bits.
    return {run.name: results[run.name] for run in wanted}


def _performed(runs: list[Run], jobs: int) -> Iterator[tuple[Run, Numbers]]:
    if jobs == 1 or len(runs) < 2:
        for run in runs:
            yield run, perform(run)
        return
    with ProcessPoolExecutor(min(jobs, len(runs)), initializer=_leave_interrupts_to_the_parent) as pool:
        waiting = {pool.submit(perform, run): run for run in runs}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            # An interruption must not wait for everything that was queued.
            pool.shutdown(wait=False, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches every process of a terminal; one of them answering is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _source_digest() -> str:
    """One hash of the source of package and experiments: a result does not outlive the code that made it."""
    global _DIGEST
    if not _DIGEST:
        digest = hashlib.sha256()
        for root in (Path(driftvote.__file__).parent, Path(__file__).parent):
            for path in sorted(root.rglob("*.py")):
                digest.update(os.fsencode(path.relative_to(root)) + path.read_bytes())
        _DIGEST = digest.hexdigest()
    return _DIGEST


_DIGEST = ""
