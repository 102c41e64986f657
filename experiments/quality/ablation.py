"""What each choice in the default model is worth: the streams again, with one choice changed (`make quality-ablation`).

A choice is a setting of `AdaptiveLabelModel`, or a constant or a function of a kernel. Kernels are compiled with their
constants inside, so every change of a kernel has a process and a cache of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.files.atomic import whole_file
from driftvote.kernels._jit import jit
from driftvote.models import LabelModel
from experiments.paper.tables import markdown
from experiments.quality.models import adaptive
from experiments.quality.scratch import Line, evaluate
from experiments.quality.streams import PLAIN, SYNTHETIC

GROUPS = (PLAIN, SYNTHETIC)
AS_IT_IS = "as it is"
ROOT = Path(__file__).parents[2]
MODULE = "experiments.quality.ablation"


@jit
def _whole_weight(active: int, votes: int) -> float:
    return 1.0


@jit
def _classes_matter(patterns: Any, cast: Any, fit: Any) -> float:
    return 1.0


@jit
def _classes_do_not_matter(patterns: Any, cast: Any, fit: Any) -> float:
    return 0.0


@jit
def _always_some(fit: Any, sums: Any, both: Any) -> float:
    return 0.05


@dataclass(frozen=True)
class Change:
    """One choice made otherwise: settings of the model, or names in kernels."""

    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    kernel: dict[str, Any] = field(default_factory=dict)
    even_balance: bool = False

    def model(self, n_classes: int) -> LabelModel:
        """The model with this change."""
        given = {"class_balance": [1 / n_classes] * n_classes} if self.even_balance else {}
        return adaptive(n_classes, **self.settings, **given)


CHANGES = (
    Change(AS_IT_IS),
    Change("`bound='bernstein'`", {"bound": "bernstein"}),
    Change("`bound='mcdiarmid'`", {"bound": "mcdiarmid"}),
    Change("`watch='votes'`", {"watch": "votes"}),
    Change("`estimator='triplet'`", {"estimator": "triplet"}),
    Change("`refresh=8`", {"refresh": 8}),
    Change("`refresh=128`", {"refresh": 128}),
    Change("classes taken for equally likely", even_balance=True),
    Change("no even first steps", kernel={"EVEN_STEPS": 0}),
    Change("smoothing worth 1 row", kernel={"SMOOTHING": 1.0}),
    Change("smoothing worth 10 rows", kernel={"SMOOTHING": 10.0}),
    Change("smoothing towards right 9 in 10", kernel={"PRIOR_SKILL": 0.9}),
    Change("unchecked labelers trusted like others", kernel={"CHECKED": 0.0}),
    Change("every abstention a piece of evidence", kernel={"silence_weight": _whole_weight}),
    Change("class-conditional always", kernel={"evidence_for_classes": _classes_matter}),
    Change("one accuracy always", kernel={"evidence_for_classes": _classes_do_not_matter}),
    Change("no leaning towards the majority", kernel={"ANCHOR": 0.0}),
    Change("leaning always, as at a misfit of 0.05", kernel={"misfit_of": _always_some}),
    Change("leaning without a limit", kernel={"HEAVIEST_ANCHOR": 1e9}),
    Change("further votes count in full", kernel={"CROWDING": 0.0}),
)


@contextmanager
def changed(names: dict[str, Any]) -> Iterator[None]:
    """Put other values in the place of names of kernels, wherever they are imported; they must not be compiled yet."""
    before: list[tuple[Any, str, Any]] = []
    for name, value in names.items():
        places = [m for key, m in sys.modules.items() if key.startswith("driftvote.kernels.") and hasattr(m, name)]
        if not places:
            raise DriftvoteError(f"no kernel knows {name}; the change that names it is out of date")
        for module in places:
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def measured(place: int, data: str | None, **limits: Any) -> list[Line]:
    """The lines of one change, in this process."""
    change = CHANGES[place]
    with changed(change.kernel):
        chosen: dict[str, Any] = {"groups": GROUPS, "most_seeds": 1, **limits}
        trial = evaluate(change.model, data, **chosen)
    kept = ("name", "group", "accuracy", "gain", "accuracy_error")
    return [{name: line[name] for name in kept} for line in trial.lines]


def measured_apart(place: int, data: str | None, limits: dict[str, Any]) -> list[Line]:
    """The same in a fresh process, whose compiled kernels nobody else uses."""
    command = [sys.executable, "-m", MODULE, "--one", str(place), "--limits", json.dumps(limits)]
    with tempfile.TemporaryDirectory() as cache:
        place_for_code = {"NUMBA_CACHE_DIR": cache} if CHANGES[place].kernel else {}
        place_for_code["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
        command += ["--data", data] if data else []
        done = subprocess.run(command, env=os.environ | place_for_code, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DriftvoteError(f"{CHANGES[place].title}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def table(results: dict[str, list[Line]]) -> str:
    """A row for each change: what it does on average, at worst, and where it shows most."""
    usual = {(line["name"], line["group"]): line for line in results[AS_IT_IS]}
    rows: list[list[Any]] = []
    for title, lines in results.items():
        gains = {group: [line["gain"] for line in lines if line["group"] == group] for group in GROUPS}
        errors = [line["accuracy_error"] for line in lines if line["accuracy_error"] is not None]
        moved = sorted(lines, key=lambda line: -abs(line["accuracy"] - usual[line["name"], line["group"]]["accuracy"]))
        shown = [
            f"{line['name']}{'' if line['group'] == PLAIN else ' (simulated)'} {step:+.1f}"
            for line in moved[:4]
            if abs(step := line["accuracy"] - usual[line["name"], line["group"]]["accuracy"]) >= 0.05
        ]
        means = [f"{sum(found) / len(found):+.2f}" if found else "" for found in gains.values()]
        worst = f"{min(gains[PLAIN]):+.2f}" if gains[PLAIN] else ""
        error = f"{sum(errors) / len(errors):.4f}" if errors else ""
        rows.append([title, means[0], worst, means[1], error, ", ".join(shown)])
    header = ["change", "real", "worst", "simulated", "error of the accuracies", "where it shows most"]
    return markdown(header, rows)


PAGE = """# One choice changed

The default model, and the same with one choice made otherwise. *Real* and *simulated* are mean gains over majority in
points, on real streams and on simulated drift, *worst* the least gain on a real stream. The last column has the streams
whose accuracy moves most. One seed each, so the last digit is noise. What the choices are is told in
[the estimators](estimators.md) and [the windows](windows.md). Made by

```
make quality-ablation
```

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m experiments.quality.ablation`."""
    parser = argparse.ArgumentParser(prog="ablation", description="The default model with one choice changed.")
    parser.add_argument("--data", default=os.environ.get("DRIFTVOTE_DATA"), help="folder of the real streams")
    parser.add_argument("--docs", type=Path, default=None, help="write ablation.md here; otherwise it is printed")
    parser.add_argument("--limits", type=json.loads, default={}, help='such as {"groups": ["synthetic"], "limit": 500}')
    parser.add_argument("--one", type=int, default=None, help="one change by its place, as JSON")
    told = parser.parse_args(arguments)
    try:
        if told.one is not None:
            print(json.dumps(measured(told.one, told.data, **told.limits)))
            return 0
        results: dict[str, list[Line]] = {}
        for place, change in enumerate(CHANGES):
            results[change.title] = measured_apart(place, told.data, told.limits)
            print(f"ablation: {place + 1} of {len(CHANGES)}: {change.title}", file=sys.stderr, flush=True)
    except DriftvoteError as problem:
        print(f"ablation: {problem}", file=sys.stderr)
        return 1
    text = PAGE + table(results) + "\n"
    if told.docs is None:
        print(text)
    else:
        with whole_file(told.docs / "ablation.md") as file:
            file.write(text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
