"""What each choice in the default model is worth: the streams again, with one choice changed (`make quality-ablation`).

A choice is a setting of `AdaptiveLabelModel`, or a constant or a function of a kernel. Kernels are compiled with their
constants inside, so every change of a kernel has a process and a compiler cache of its own.
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

from numba import njit

from driftvote.errors import DriftvoteError
from driftvote.models import LabelModel
from experiments.output import markdown
from experiments.quality.models import adaptive
from experiments.quality.streams import PLAIN, SYNTHETIC
from experiments.quality.trial import evaluate
from experiments.runs import Numbers

GROUPS = (PLAIN, SYNTHETIC)
UNCHANGED = "as it is"
ROOT = Path(__file__).parents[2]
SHOWN = ("name", "group", "accuracy", "gain", "accuracy_error")


@dataclass(frozen=True)
class Variant:
    """One choice made otherwise: settings of the model, or values of names in kernels."""

    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    kernel: dict[str, Any] = field(default_factory=dict)
    even_balance: bool = False

    def model(self, n_classes: int) -> LabelModel:
        """The model with this change."""
        given = {"class_balance": [1 / n_classes] * n_classes} if self.even_balance else {}
        return adaptive(n_classes, **self.settings, **given)


CHANGES = (
    Variant(UNCHANGED),
    Variant("`bound='bernstein'`", {"bound": "bernstein"}),
    Variant("`bound='mcdiarmid'`", {"bound": "mcdiarmid"}),
    Variant("`estimator='triplet'`", {"estimator": "triplet"}),
    Variant("`refresh=8`", {"refresh": 8}),
    Variant("`refresh=128`", {"refresh": 128}),
    Variant("classes taken for equally likely", even_balance=True),
    Variant("no even first steps", kernel={"EVEN_STEPS": 0}),
    Variant("smoothing worth 1 row", kernel={"SMOOTHING": 1.0}),
    Variant("smoothing worth 10 rows", kernel={"SMOOTHING": 10.0}),
    Variant("smoothing towards right 9 in 10", kernel={"PRIOR_SKILL": 0.9}),
    Variant("unchecked labelers trusted like others", kernel={"CHECKED": 0.0}),
    Variant("every abstention a piece of evidence", kernel={"silence_weight": njit(lambda active, votes: 1.0)}),
    Variant("class-conditional always", kernel={"evidence_for_classes": njit(lambda patterns, window, cast, fit: 1.0)}),
    Variant("one accuracy always", kernel={"evidence_for_classes": njit(lambda patterns, window, cast, fit: 0.0)}),
    Variant("no leaning towards the majority", kernel={"ANCHOR": 0.0}),
    Variant("leaning always, as at a misfit of 0.05", kernel={"misfit_of": njit(lambda fit, sums, both: 0.05)}),
    Variant("leaning without a limit", kernel={"HEAVIEST_ANCHOR": 1e9}),
    Variant("further votes count in full", kernel={"CROWDING": 0.0}),
)


@contextmanager
def replace_in_kernels(names: dict[str, Any]) -> Iterator[None]:
    """Replace names in every module of the package that has them; the kernels must not be compiled yet."""
    before: list[tuple[Any, str, Any]] = []
    for name, value in names.items():
        places = [
            module for key, module in sys.modules.items() if key.startswith("driftvote.") and hasattr(module, name)
        ]
        if not places:
            raise DriftvoteError(f"no kernel has {name}; the change that names it is out of date")
        for module in places:
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def measure_change(place: int, data: str | None, **limits: Any) -> list[Numbers]:
    """Measures of one change on every stream, in this process."""
    change = CHANGES[place]
    with replace_in_kernels(change.kernel):
        chosen: dict[str, Any] = {"groups": GROUPS, "most_seeds": 1, **limits}
        trial = evaluate(change.model, data, **chosen)
    return [{name: line[name] for name in SHOWN} for line in trial.lines]


def measure_in_process(place: int, data: str | None, limits: dict[str, Any]) -> list[Numbers]:
    """The same in a fresh process, with a compiler cache of its own if kernels are changed."""
    command = [sys.executable, "-m", "experiments.quality.ablation"]
    command += ["--one", str(place), "--limits", json.dumps(limits), *(["--data", data] if data else [])]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        if CHANGES[place].kernel:
            environment["NUMBA_CACHE_DIR"] = cache
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DriftvoteError(f"{CHANGES[place].title}: {done.stderr.strip().splitlines()[-1]}")
    measured: list[Numbers] = json.loads(done.stdout)
    return measured


def table(results: dict[str, list[Numbers]]) -> str:
    """A row for each change: mean and worst gains, and the streams whose accuracy moves most."""
    usual = {(line["name"], line["group"]): line["accuracy"] for line in results[UNCHANGED]}
    rows: list[list[Any]] = []
    for title, lines in results.items():
        gains = {group: [line["gain"] for line in lines if line["group"] == group] for group in GROUPS}
        errors = [line["accuracy_error"] for line in lines if line["accuracy_error"] is not None]
        steps = [(line, line["accuracy"] - usual[line["name"], line["group"]]) for line in lines]
        shown = [
            f"{line['name']}{'' if line['group'] == PLAIN else ' (simulated)'} {step:+.1f}"
            for line, step in sorted(steps, key=lambda pair: -abs(pair[1]))[:4]
            if abs(step) >= 0.05
        ]
        means = [f"{sum(found) / len(found):+.2f}" if found else "" for found in gains.values()]
        worst = f"{min(gains[PLAIN]):+.2f}" if gains[PLAIN] else ""
        error = f"{sum(errors) / len(errors):.4f}" if errors else ""
        rows.append([title, means[0], worst, means[1], error, ", ".join(shown)])
    return markdown(["change", "real", "worst", "simulated", "error of the accuracies", "where it shows most"], rows)


PAGE = """# One choice changed

The default model, and the same with one choice made otherwise. *Real* and *simulated* are mean gains over majority in
points, on real streams and on simulated drift, *worst* the least gain on a real stream. The last column has the streams
whose accuracy moves most. One seed each, so the last digit is noise. The choices are described in
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
    options = parser.parse_args(arguments)
    try:
        if options.one is not None:
            print(json.dumps(measure_change(options.one, options.data, **options.limits)))
            return 0
        results: dict[str, list[Numbers]] = {}
        for place, change in enumerate(CHANGES):
            results[change.title] = measure_in_process(place, options.data, options.limits)
            print(f"ablation: {place + 1} of {len(CHANGES)}: {change.title}", file=sys.stderr, flush=True)
    except DriftvoteError as problem:
        print(f"ablation: {problem}", file=sys.stderr)
        return 1
    text = PAGE + table(results) + "\n"
    if options.docs is None:
        print(text)
    else:
        (options.docs / "ablation.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
