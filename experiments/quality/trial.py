"""Try a model that is still being designed: its accuracies against majority, in seconds, without a cache.

In a notebook:

    from experiments.quality.trial import evaluate
    print(evaluate(lambda k: AdaptiveLabelModel(n_classes=k, beta=0.2), "../shared/data"))

From the shell, with settings of `AdaptiveLabelModel`:

    python -m experiments.quality.trial --data ../shared/data --groups plain,permuted beta=0.2

`judge`, or --judge, compares it with everything that must hold of the default model.
"""

from __future__ import annotations

import argparse
import ast
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from driftvote.errors import SettingError
from driftvote.models import LabelModel
from experiments.output import markdown
from experiments.quality.measures import average
from experiments.quality.models import DEFAULT, MODELS, Factory, adaptive
from experiments.quality.streams import GROUPS, PERMUTED, PLAIN, SHUFFLED, StreamSpec, catalogue
from experiments.quality.suite import measure
from experiments.quality.verdicts import FLOORS, WORST_GAIN, Verdict, verdicts
from experiments.quality.work import load_cached, measure_model
from experiments.runs import Numbers

COLUMNS = {
    "accuracy": ".2f",
    "majority": ".2f",
    "gain": "+.2f",
    "gain_se": ".2f",
    "calibration": ".3f",
    "auroc": ".3f",
    "accuracy_error": ".4f",
    "microseconds": ".1f",
}


@dataclass
class Trial:
    """What a model reached: measures for each stream (means over its seeds), and a mean for each group."""

    lines: list[Numbers]

    def __getitem__(self, name: str) -> Numbers:
        """The measures of "tennis", or of "tennis/permuted"."""
        wanted = name if "/" in name else f"{name}/{PLAIN}"
        for line in self.lines:
            if f"{line['name']}/{line['group']}" == wanted:
                return line
        raise KeyError(name)

    def mean(self, group: str, measure: str = "gain") -> float:
        """A measure averaged over the streams of a group."""
        return float(np.mean([line[measure] for line in self.lines if line["group"] == group]))

    def __str__(self) -> str:
        rows = []
        for group in dict.fromkeys(line["group"] for line in self.lines):
            for line in (line for line in self.lines if line["group"] == group):
                cells = ["" if line[name] is None else f"{line[name]:{form}}" for name, form in COLUMNS.items()]
                rows.append([f"{line['name']} {group}", *cells, _complaint(line)])
            means = [f"{self.mean(group, name):{form}}" for name, form in list(COLUMNS.items())[:3]]
            rows.append([f"mean of {group}", *means, *[""] * (len(COLUMNS) - 2)])
        return markdown(["stream", *COLUMNS, ""], rows)


def _complaint(line: Numbers) -> str:
    for name, group, least in FLOORS:
        if (name, group) == (line["name"], line["group"]) and line["accuracy"] < least:
            return f"below {least:g}"
    return f"below {WORST_GAIN:+g}" if line["group"] == PLAIN and line["gain"] < WORST_GAIN else ""


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

    `data` is the folder of the real streams (default: the environment variable DRIFTVOTE_DATA), `groups` are some of
    "plain", "permuted", "shuffled" and "synthetic", `names` selects streams, `most_seeds` limits the seeds of what is
    random, `limit` the rows of each stream.

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
    runs: dict[tuple[str, str], list[Numbers]] = {}
    for spec in specs:
        runs.setdefault((spec.name, spec.group), []).append(_measure_timed(factory, str(folder), spec, limit))
    lines = []
    for (name, group), found in runs.items():
        averages = average(StreamSpec(name, group, 0), found)
        pace = float(np.mean([run["microseconds"] for run in found]))
        majority = averages["accuracy"] - averages["gain"]
        lines.append({"name": name, "group": group, "microseconds": pace, "majority": majority, **averages})
    return Trial(lines)


def _measure_timed(factory: Factory, data: str, spec: StreamSpec, limit: int | None) -> Numbers:
    stream = load_cached(data, spec).first(limit)
    model = factory(stream.n_classes)
    start = perf_counter()
    numbers = measure_model(stream, model)
    return numbers | {"microseconds": 1e6 * (perf_counter() - start) / len(stream.truth)}


def judge(factory: Factory, data: str | Path, out: str | Path = "results/quality", rounds: int = 3) -> list[Verdict]:
    """What must hold of the default model, judged with `factory(n_classes)` in its place.

    The other models are not run again when `out` is the folder of `make quality`.
    """
    before = dict(MODELS)
    try:
        MODELS[DEFAULT] = factory
        results = measure(Path(data), Path(out), cost_rounds=rounds)
    finally:
        MODELS.update(before)
    return verdicts(results)


def _parse_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingError(f"{text!r} is not a setting such as beta=0.2")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m experiments.quality.trial`."""
    parser = argparse.ArgumentParser(prog="trial", description="Accuracies of a model against majority.")
    parser.add_argument("--data", default=None, help="folder of the real streams (default: DRIFTVOTE_DATA)")
    parser.add_argument("--groups", default=",".join((PLAIN, PERMUTED, SHUFFLED)), help=f"some of {','.join(GROUPS)}")
    parser.add_argument("--names", default=None, help="only these streams")
    parser.add_argument("--seeds", type=int, default=5, help="at most so many seeds")
    parser.add_argument("--limit", type=int, default=None, help="only the first rows")
    parser.add_argument("--judge", action="store_true", help="all that must hold; --groups to --limit do not count")
    parser.add_argument("settings", nargs="*", help="settings of AdaptiveLabelModel: beta=0.2")
    options = parser.parse_args(arguments)
    settings = dict(_parse_setting(text) for text in options.settings)

    def factory(n_classes: int) -> LabelModel:
        return adaptive(n_classes, **settings)

    if options.judge:
        for verdict in judge(factory, options.data or os.environ["DRIFTVOTE_DATA"]):
            print(verdict)
        return
    names = options.names.split(",") if options.names else None
    groups = options.groups.split(",")
    print(evaluate(factory, options.data, groups, names=names, most_seeds=options.seeds, limit=options.limit))


if __name__ == "__main__":
    main()
