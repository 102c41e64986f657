"""All experiments in one go: runs, numbers, tables, figures and the page that compares them with the paper."""

from __future__ import annotations

import importlib
import importlib.util
import json
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from driftvote._version import __version__
from driftvote.errors import DriftvoteError, MissingExtraError, SettingError
from driftvote.files.atomic import whole_file
from experiments.paper import guarantee, images, sensitivity, synthetic, video
from experiments.paper.page import write_page
from experiments.paper.tables import write_tables
from experiments.runs import Keeper, Run, perform_all

EXPERIMENTS: dict[str, ModuleType] = {
    "synthetic": synthetic,
    "video": video,
    "images": images,
    "beta": sensitivity,
    "theory": guarantee,
}
NEED_DATA = ("video", "images", "beta")
PAPER_RUNS = 30

Listener = Callable[[str, int, int], None]
"""Hears (experiment, runs done, runs in all)."""


def chosen(name: str) -> list[str]:
    """The experiments that a name stands for."""
    if name == "all":
        return list(EXPERIMENTS)
    if name not in EXPERIMENTS:
        raise SettingError(f"there is no experiment {name!r}; choose all, {', '.join(EXPERIMENTS)}")
    return [name]


def reproduce(
    names: Sequence[str], data: Path | None, out: Path, n_runs: int, jobs: int, listen: Listener
) -> dict[str, Any]:
    """Run experiments and write everything below `out`; returns what `results.json` holds."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("the figures need matplotlib; install driftvote[plots]")
    if data is None and set(names) & set(NEED_DATA):
        raise DriftvoteError("the paper's data are needed; name their folder with --data or DRIFTVOTE_DATA")
    keeper = Keeper(out / "runs")
    results = _earlier(out / "results.json")
    for name in names:
        module = EXPERIMENTS[name]
        runs = module.runs(data or Path(), n_runs)
        results["experiments"][name] = module.collect(_perform(name, runs, keeper, jobs, listen))
    with whole_file(out / "results.json") as file:
        file.write(json.dumps(results, indent=1).encode())
    finish(results, out)
    return results


def _perform(name: str, runs: list[Run], keeper: Keeper, jobs: int, listen: Listener) -> dict[str, Any]:
    done = 0
    listen(name, 0, len(runs))

    def step(_: Run) -> None:
        nonlocal done
        done += 1
        listen(name, done, len(runs))

    return perform_all(runs, keeper, jobs, step)


def finish(results: dict[str, Any], out: Path) -> None:
    """Tables, figures and the page, from the numbers alone."""
    for name, numbers in results["experiments"].items():
        drawing = importlib.import_module(f"experiments.paper.figures.{_module_name(name)}")
        drawing.draw(numbers, out / "figures")
    write_tables(results["experiments"], out / "tables")
    write_page(results, out / "reproduction.md", "figures")


def _module_name(name: str) -> str:
    return EXPERIMENTS[name].__name__.rsplit(".", 1)[1]


def _earlier(path: Path) -> dict[str, Any]:
    """What an earlier call of the same version found, so that experiments can be run one by one."""
    versions = {"driftvote": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "numba")}
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        kept = json.loads(path.read_text())
        if kept["versions"] == versions:
            return {"versions": versions, "experiments": kept["experiments"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"versions": versions, "experiments": {}}
