"""All models on all streams: runs that are kept, and one table of figures from them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from driftvote._version import __version__
from experiments.quality import verified
from experiments.quality.cost import cost
from experiments.quality.models import DEFAULT, MODELS, TRUE_WEIGHTS, Factory, settings_of
from experiments.quality.streams import GROUPS, PLAIN, SEEDS, SYNTHETIC, Spec, catalogue
from experiments.quality.summary import averaged
from experiments.quality.verdicts import verdicts
from experiments.quality.work import QualityRun, loaded, run_of, throws_dice, unanimity
from experiments.runs import Keeper, Run, perform_all

Results = dict[str, Any]
Listener = Callable[[int, int], None]
"""Hears (runs done, runs in all)."""


def measure(
    data: Path,
    out: Path,
    *,
    groups: Sequence[str] = GROUPS,
    names: Sequence[str] | None = None,
    most_seeds: int = 5,
    limit: int | None = None,
    jobs: int = 1,
    listen: Listener = lambda done, total: None,
    cost_rounds: int = 7,
) -> Results:
    """Every model of the registry on every stream; what an earlier call has kept below `out` is not done again."""
    specs = [spec for spec in catalogue(data, groups, most_seeds) if names is None or spec.name in names]
    planned = {(spec, model): runs for spec in specs for model, runs in _runs(data, spec, limit).items()}
    # Models with the same settings share a run: by its name, which holds the settings.
    distinct = {run.name: run for runs in planned.values() for run in runs}
    plain = [spec for spec in specs if spec.group == PLAIN]
    checked = verified.runs_of(data, plain, _settings({DEFAULT: MODELS[DEFAULT]}), limit)
    distinct |= {run.name: run for runs in checked.values() for run in runs}
    done = 0

    def step(_: Run) -> None:
        nonlocal done
        done += 1
        listen(done, len(distinct))

    found = perform_all(distinct.values(), Keeper(out / "runs"), jobs, step)
    results: Results = {
        "versions": _versions(),
        "limit": limit,
        "models": {name: repr(factory(2)) for name, factory in MODELS.items()},
        "streams": {},
        # At the end and alone: beside other work it would measure that.
        "cost": cost(MODELS[DEFAULT], rounds=cost_rounds) if cost_rounds else None,
    }
    for spec in specs:
        results["streams"].setdefault(spec.group, {}).setdefault(spec.name, _about(data, spec, limit))
    for group, streams in results["streams"].items():
        for name, entry in streams.items():
            seeds = [spec for spec in specs if (spec.group, spec.name) == (group, name)]
            for model in [key for spec, key in planned if spec == seeds[0]]:
                runs = [found[run.name] for spec in seeds for run in planned[spec, model]]
                entry["models"][model] = averaged(seeds[0], runs)
    results["verified"] = verified.summed_up(results["streams"].get(PLAIN, {}), checked, found)
    results["verdicts"] = [verdict.as_dict() for verdict in verdicts(results)]
    return results


def _runs(data: Path, spec: Spec, limit: int | None) -> dict[str, list[QualityRun]]:
    """The runs of each model on a stream: several where the model throws dice and the stream itself is one draw."""
    made = {}
    for name, settings in _settings(MODELS).items():
        seeds: Sequence[int] = (0,)
        if throws_dice(MODELS[name](2)):
            seeds = SEEDS[SYNTHETIC] if spec.group == PLAIN and not spec.fresh_rows else (spec.seed,)
        made[name] = [run_of(data, spec, name, settings, seed, limit) for seed in seeds]
    if spec.group == SYNTHETIC:
        made[TRUE_WEIGHTS] = [run_of(data, spec, TRUE_WEIGHTS, {"kind": TRUE_WEIGHTS}, 0, limit)]
    return made


def _settings(models: Mapping[str, Factory]) -> dict[str, Any]:
    """Settings by name, for two classes and for more: a model may choose otherwise there."""
    return {name: {str(k): settings_of(factory(k)) for k in (2, 3)} for name, factory in models.items()}


def _about(data: Path, spec: Spec, limit: int | None) -> dict[str, Any]:
    stream = loaded(str(data), spec).first(limit)
    rows, labelers = stream.votes.shape
    return {
        "rows": rows,
        "labelers": labelers,
        "classes": stream.n_classes,
        "coverage": float((stream.votes >= 0).mean()),
        **unanimity(stream),
        "models": {},
    }


def _versions() -> dict[str, str]:
    return {
        "driftvote": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
    }
