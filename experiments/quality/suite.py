"""All models on all streams: cached runs, and one table of figures from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from driftvote.models import LabelModel
from driftvote.streams import scenario
from experiments.quality.measures import average, unanimity
from experiments.quality.models import DEFAULT, MODELS, TRUE_WEIGHTS, Factory, draws_randomly, paper_zero, settings_of
from experiments.quality.streams import GROUPS, PLAIN, SEEDS, SYNTHETIC, Codes, StreamSpec, catalogue
from experiments.quality.verdicts import verdicts
from experiments.quality.work import load_cached, plan_run, plan_verified
from experiments.runs import Numbers, Progress, Run, RunCache, perform_all, print_progress, versions

COST_LABELERS, COST_ROWS, COST_SINGLE_ROWS = 6, 20_000, 2_000


def measure(
    data: Path,
    out: Path,
    *,
    groups: Sequence[str] = GROUPS,
    names: Sequence[str] | None = None,
    most_seeds: int = 5,
    limit: int | None = None,
    jobs: int = 1,
    progress: Progress = print_progress,
    cost_rounds: int = 7,
) -> dict[str, Any]:
    """Figures of every model on every stream; runs that an earlier call cached below `out` are not done again."""
    specs = [spec for spec in catalogue(data, groups, most_seeds) if names is None or spec.name in names]
    settings = {name: _settings_by_classes(factory) for name, factory in MODELS.items()}
    planned = {spec: _plan(data, spec, settings, limit) for spec in specs}
    verified = {spec: plan_verified(data, spec, settings[DEFAULT], limit) for spec in specs if spec.group == PLAIN}
    plans: list[Mapping[Any, list[Run]]] = [*planned.values(), *verified.values()]
    # Models with the same settings share a run: by its name, which holds the settings.
    distinct = {run.name: run for plan in plans for runs in plan.values() for run in runs}
    found = perform_all("quality", distinct.values(), RunCache(out / "runs"), jobs, progress)
    results: dict[str, Any] = {
        "versions": versions(),
        "limit": limit,
        "models": {name: repr(factory(2)) for name, factory in MODELS.items()},
        "streams": {},
        # At the end and alone: beside other work it would measure that.
        "cost": measure_cost(MODELS[DEFAULT], rounds=cost_rounds) if cost_rounds else None,
    }
    for group, name in dict.fromkeys((spec.group, spec.name) for spec in specs):
        seeds = [spec for spec in specs if (spec.group, spec.name) == (group, name)]
        entry = results["streams"].setdefault(group, {})[name] = _describe(data, seeds[0], limit)
        for model in planned[seeds[0]]:
            runs = [found[run.name] for spec in seeds for run in planned[spec][model]]
            entry["models"][model] = average(seeds[0], runs)
    results["verified"] = _summarize_verified(results["streams"].get(PLAIN, {}), verified, found)
    results["verdicts"] = [verdict.to_dict() for verdict in verdicts(results)]
    return results


def _settings_by_classes(factory: Factory) -> dict[str, Any]:
    """Settings for two classes and for more: a model may choose otherwise there."""
    return {str(k): settings_of(factory(k)) for k in (2, 3)}


def _plan(data: Path, spec: StreamSpec, settings: Mapping[str, Any], limit: int | None) -> dict[str, list[Run]]:
    """The runs of each model on a stream: several where the model draws randomly and the stream itself is one draw."""
    made = {}
    for name, factory in MODELS.items():
        seeds: Sequence[int] = (0,)
        if draws_randomly(factory(2)):
            seeds = SEEDS[SYNTHETIC] if spec.group == PLAIN and not spec.fresh_rows else (spec.seed,)
        made[name] = [plan_run(data, spec, name, settings[name], limit, seed=seed) for seed in seeds]
    if spec.group == SYNTHETIC:
        made[TRUE_WEIGHTS] = [plan_run(data, spec, TRUE_WEIGHTS, {"kind": TRUE_WEIGHTS}, limit, seed=0)]
    return made


def _describe(data: Path, spec: StreamSpec, limit: int | None) -> dict[str, Any]:
    stream = load_cached(str(data), spec).first(limit)
    rows, labelers = stream.votes.shape
    return {
        "rows": rows,
        "labelers": labelers,
        "classes": stream.n_classes,
        "coverage": float((stream.votes >= 0).mean()),
        **unanimity(stream),
        "models": {},
    }


def _summarize_verified(
    plain: Mapping[str, Any], planned: Mapping[StreamSpec, Mapping[float, list[Run]]], found: Mapping[str, Numbers]
) -> dict[str, Any]:
    """For each stream the mean accuracy by share of verified rows, and the lowest draw."""
    values: dict[tuple[str, float], list[float]] = {}
    for spec, plan in planned.items():
        for share, runs in plan.items():
            values.setdefault((spec.name, share), []).extend(found[run.name]["accuracy"] for run in runs)
    made: dict[str, Any] = {}
    for name, entry in plain.items():
        own = entry["models"][DEFAULT]
        made[name] = {"0": {"accuracy": own["accuracy"], "lowest": own["lowest"], "runs": own["seeds"]}}
    for (name, share), accuracies in values.items():
        mean = float(np.mean(accuracies))
        made[name][f"{share:g}"] = {"accuracy": mean, "lowest": min(accuracies), "runs": len(accuracies)}
    return made


def measure_cost(
    default: Factory, rows: int = COST_ROWS, single_rows: int = COST_SINGLE_ROWS, rounds: int = 7
) -> Numbers:
    """The default model's time as a multiple of the paper's estimator: in a batch, and row by row through `update`.

    Both take turns in one process. The paper's estimator runs without randomness (abstentions as zero), which is
    faster: the stricter mark.
    """
    votes = scenario("abrupt", n_rows=rows, n_labelers=COST_LABELERS).votes

    def batch(model: LabelModel) -> Callable[[], object]:
        return lambda: _label_and_read(model, votes)

    def singles(model: LabelModel) -> Callable[[], object]:
        # Single rows are labeled in the middle of a stream, where windows are long.
        model.partial_fit(votes[: rows - single_rows])
        return lambda: [model.update(row) for row in votes[rows - single_rows :]]

    return {
        "labelers": COST_LABELERS,
        "label_stream": _time_ratio(batch, default, rounds),
        "update": _time_ratio(singles, default, rounds),
    }


def _label_and_read(model: LabelModel, votes: Codes) -> float:
    out = model.label_stream(votes)
    return float(out.proba[-1, 0] + out.accuracies[-1, 0])  # what is computed on demand is asked for, too


def _time_ratio(job: Callable[[LabelModel], Callable[[], object]], default: Factory, rounds: int) -> Numbers:
    def seconds(work: Callable[[], object]) -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    ratios = [seconds(job(default(2))) / seconds(job(paper_zero(2))) for _ in range(rounds + 1)]
    counted = sorted(ratios[1:])  # the first round compiles
    return {"times": median(counted), "from": counted[0], "to": counted[-1], "rounds": rounds}
