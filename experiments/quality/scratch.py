"""Try a model that is still being designed: accuracies against majority, in seconds, kept nowhere.

In a notebook:

    from experiments.quality.scratch import evaluate
    print(evaluate(lambda k: AdaptiveLabelModel(n_classes=k, beta=0.2), "../shared/data"))

From the shell, with settings of `AdaptiveLabelModel`:

    python -m experiments.quality.scratch --data ../shared/data --groups plain,permuted beta=0.2

`judge`, or --judge, holds it against everything that must hold of the default model.
"""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from driftvote.errors import SettingError
from driftvote.models import LabelModel
from experiments.quality.models import ALL_PAST_DEFAULT, DEFAULT, MODELS, Factory, adaptive, fixed
from experiments.quality.streams import GROUPS, PERMUTED, PLAIN, SHUFFLED, Spec, catalogue
from experiments.quality.suite import measure
from experiments.quality.summary import averaged
from experiments.quality.verdicts import FLOORS, WORST_GAIN, Verdict, verdicts
from experiments.quality.work import loaded, measured_model

Line = dict[str, Any]


@dataclass
class Trial:
    """What a model reached: a line for each stream (mean over its seeds), and a mean for each group."""

    lines: list[Line] = field(default_factory=list)

    def __getitem__(self, name: str) -> Line:
        """The line of "tennis", or of "tennis/permuted"."""
        wanted = name if "/" in name else f"{name}/{PLAIN}"
        for line in self.lines:
            if f"{line['name']}/{line['group']}" == wanted:
                return line
        raise KeyError(name)

    def mean(self, group: str, measure: str = "gain") -> float:
        """A measure averaged over the streams of a group."""
        return float(np.mean([line[measure] for line in self.lines if line["group"] == group]))

    def __str__(self) -> str:
        heads = [
            ("accuracy", 9),
            ("majority", 9),
            ("gain", 8),
            ("se", 6),
            ("ECE", 7),
            ("AUROC", 7),
            ("error", 8),
            ("µs", 7),
        ]
        shown = [f"{'stream':32}" + "".join(f"{head:>{width}}" for head, width in heads)]
        for group in dict.fromkeys(line["group"] for line in self.lines):
            shown += [_shown(line) for line in self.lines if line["group"] == group]
            shown.append(f"{'mean of ' + group:32}{self.mean(group, 'accuracy'):9.2f}{'':9}{self.mean(group):+8.2f}")
        return "\n".join(shown)


def _shown(line: Line) -> str:
    optional = {name: "" if line[name] is None else f"{line[name]:.4f}" for name in ("auroc", "accuracy_error")}
    return (
        f"{line['name'] + ' ' + line['group']:32}{line['accuracy']:9.2f}{line['accuracy'] - line['gain']:9.2f}"
        f"{line['gain']:+8.2f}{line['gain_se']:6.2f}{line['calibration']:7.3f}{optional['auroc'][:5]:>7}"
        f"{optional['accuracy_error']:>8}{line['microseconds']:7.1f}{_complaint(line)}"
    )


def _complaint(line: Line) -> str:
    for name, group, least in FLOORS:
        if (name, group) == (line["name"], line["group"]) and line["accuracy"] < least:
            return f"  below {least:g}"
    return f"  below {WORST_GAIN:+g}" if line["group"] == PLAIN and line["gain"] < WORST_GAIN else ""


def evaluate(
    factory: Factory,
    data: str | Path | None = None,
    groups: Sequence[str] = (PLAIN, PERMUTED, SHUFFLED),
    *,
    names: Iterable[str] | None = None,
    most_seeds: int = 5,
    limit: int | None = None,
) -> Trial:
    """Measure `factory(n_classes)` on streams, one fresh model for each.

    Parameters
    ----------
    factory
        Makes a model for a number of classes.
    data
        Folder of the real streams; by default the environment variable DRIFTVOTE_DATA.
    groups
        Of "plain", "permuted", "shuffled" and "synthetic".
    names
        Only these streams.
    most_seeds
        Seeds of what is random: fewer are faster.
    limit
        Only the first rows of each stream.

    Examples
    --------
    >>> found = evaluate(adaptive, groups=["synthetic"], names=["stationary"], most_seeds=1, limit=500)
    >>> found["stationary/synthetic"]["accuracy"] > 80
    True
    """
    folder = data or os.environ.get("DRIFTVOTE_DATA")
    specs = catalogue(Path(folder) if folder else None, groups, most_seeds)
    if names is not None:
        wanted = set(names)
        unknown = wanted - {spec.name for spec in specs}
        if unknown:
            raise SettingError(f"there is no stream {sorted(unknown)[0]!r} in {', '.join(groups)}")
        specs = [spec for spec in specs if spec.name in wanted]
    runs: dict[tuple[str, str], list[Line]] = {}
    for spec in specs:
        runs.setdefault((spec.name, spec.group), []).append(_one(factory, str(folder), spec, limit))
    return Trial([_line(Spec(name, group, 0), lines) for (name, group), lines in runs.items()])


def _one(factory: Factory, data: str, spec: Spec, limit: int | None) -> Line:
    stream = loaded(data, spec).first(limit)
    model = factory(stream.n_classes)
    start = perf_counter()
    numbers = measured_model(stream, model)
    numbers["microseconds"] = 1e6 * (perf_counter() - start) / len(stream.truth)
    return numbers


def _line(spec: Spec, runs: list[Line]) -> Line:
    pace = float(np.mean([run["microseconds"] for run in runs]))
    return {"name": spec.name, "group": spec.group, "microseconds": pace, **averaged(spec, runs)}


def judge(factory: Factory, data: str | Path, out: str | Path = "results/quality", rounds: int = 3) -> list[Verdict]:
    """What must hold of the default model, held against `factory(n_classes)` in its place.

    The other models are not run again when `out` is the folder of `make quality`.
    """
    before = dict(MODELS)
    try:
        MODELS[DEFAULT] = factory
        MODELS[ALL_PAST_DEFAULT] = lambda n_classes: fixed(factory(n_classes), None)
        results = measure(Path(data), Path(out), cost_rounds=rounds)
    finally:
        MODELS.update(before)
    return verdicts(results)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingError(f"{text!r} is not a setting such as beta=0.2")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m experiments.quality.scratch`."""
    parser = argparse.ArgumentParser(prog="scratch", description="Accuracies of a model against majority.")
    parser.add_argument("--data", default=None, help="folder of the real streams (default: DRIFTVOTE_DATA)")
    parser.add_argument("--groups", default=",".join((PLAIN, PERMUTED, SHUFFLED)), help=f"some of {','.join(GROUPS)}")
    parser.add_argument("--names", default=None, help="only these streams")
    parser.add_argument("--seeds", type=int, default=5, help="at most so many seeds")
    parser.add_argument("--limit", type=int, default=None, help="only the first rows")
    parser.add_argument("--judge", action="store_true", help="all that must hold; --groups to --limit do not count")
    parser.add_argument("settings", nargs="*", help="settings of AdaptiveLabelModel: beta=0.2")
    told = parser.parse_args(arguments)
    settings = dict(_setting(text) for text in told.settings)
    names = told.names.split(",") if told.names else None

    def factory(n_classes: int) -> LabelModel:
        return adaptive(n_classes, **settings)

    if told.judge:
        for verdict in judge(factory, told.data or os.environ["DRIFTVOTE_DATA"]):
            print(verdict)
        return
    found = evaluate(
        factory,
        told.data,
        told.groups.split(","),
        names=names,
        most_seeds=told.seeds,
        limit=told.limit,
    )
    print(found)


if __name__ == "__main__":
    main()
