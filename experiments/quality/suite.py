"""All parts of the measurement: cached runs, and one table of figures from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from experiments.quality import questions, simulated
from experiments.quality.cost import measure_cost
from experiments.quality.models import ALL_PAST, DEFAULT, PAPER, PAPER_SEEDS, SHUFFLES, plan_run
from experiments.quality.peers import measure_peers
from experiments.quality.streams import family_of, has_time, list_streams, load
from experiments.runs import Numbers, Run, RunCache, perform_all, print_progress, versions

SIZE = ("rows", "labelers", "classes", "coverage", "majority")


class Suite:
    """The streams and the cache that the parts share."""

    def __init__(self, data: Path, out: Path, names: Sequence[str] | None, limit: int | None, jobs: int) -> None:
        self.data, self.out, self.limit, self.jobs = data, out, limit, jobs
        self.names = [name for name in list_streams(data) if names is None or name in names]

    def perform(self, part: str, runs: Sequence[Run]) -> list[Numbers]:
        """Results of the runs in their order; the long streams are started first."""
        found = perform_all(part, runs, RunCache(self.out / "runs"), self.jobs, print_progress)
        return [found[run.name] for run in runs]

    def on_streams(self, model: str, seeds: Sequence[int] = (0,), shuffles: Sequence[int] = (0,)) -> dict[str, Any]:
        """Figures of a label model by stream: a list over seeds and shuffles."""
        plans = {
            name: [plan_run(self.data, name, model, s, shuffle, self.limit) for s in seeds for shuffle in shuffles]
            for name in self.names
        }
        found = iter(
            self.perform(f"{model}{', shuffled' * any(shuffles)}", [run for plan in plans.values() for run in plan])
        )
        return {name: [next(found) for _ in plan] for name, plan in plans.items()}

    def streams(self) -> Numbers:
        """Sizes of the streams, and figures of the default model on each."""
        made: Numbers = {}
        for name, (found,) in self.on_streams(DEFAULT).items():
            size = {key: found.pop(key) for key in SIZE}
            made[name] = {"family": family_of(name), "time": has_time(name), **size, **found}
        return made

    def models(self) -> Numbers:
        """Gains by stream of the other label models of this package; means where one draws at random."""
        seeds = {ALL_PAST: (0,), PAPER: PAPER_SEEDS}
        return {
            model: {
                name: float(np.mean([run["gain"] for run in found]))
                for name, found in self.on_streams(model, seeds[model]).items()
            }
            for model in seeds
        }

    def shuffled(self) -> Numbers:
        """Accuracies on shuffled streams, with windows and on all past."""
        found = {model: self.on_streams(model, shuffles=SHUFFLES) for model in (DEFAULT, ALL_PAST)}
        return {
            name: {model: [run["accuracy"] for run in runs[name]] for model, runs in found.items()}
            for name in self.names
        }

    def peers(self) -> Numbers:
        """Figures of the label models of other projects."""
        streams = {name: load(str(self.data), name).first(self.limit) for name in self.names}
        return measure_peers(streams, self.out, self.jobs)

    def questions(self) -> Numbers:
        """Gains with verified rows, on the streams and on simulated ones that drift; and the time of asking."""
        found = self.perform("questions", questions.plan_streams(self.data, self.names, self.limit))
        drift = self.perform("questions while it drifts", questions.plan_drift())
        by_count = {
            count: {when: [run[count][when] for run in drift] for when in ("before", "after")} for count in drift[0]
        }
        return {
            "streams": dict(zip(self.names, found, strict=True)),
            "drift": by_count,
            "time": questions.measure_time(),
        }

    def cost(self) -> Numbers:
        """Times over those of the former default."""
        return measure_cost(self.out)

    def simulate(self, part: str) -> list[tuple[Run, Numbers]]:
        runs = simulated.plan(part)
        return list(zip(runs, self.perform(part, runs), strict=True))

    def rare(self) -> list[Numbers]:
        return [cell for _, found in self.simulate(simulated.RARE) for cell in found["cells"]]

    def random(self) -> Numbers:
        """How many random streams there are, how many lose a point, and the worst of them by their seeds."""
        gains = {seed: gain for _, found in self.simulate(simulated.RANDOM) for seed, gain in found["gains"].items()}
        worst = sorted(gains, key=gains.__getitem__)[:20]
        return {
            "count": len(gains),
            "behind": sum(gain < -1 for gain in gains.values()),
            "mean": float(np.mean(list(gains.values()))),
            "worst": {seed: gains[seed] for seed in worst},
        }

    def drift(self) -> Numbers:
        return {run.arguments["name"]: found for run, found in self.simulate(simulated.DRIFT)}

    def abrupt(self) -> Numbers:
        titles = {False: "2 classes, all vote", True: "3 classes, 4 of 6 vote"}
        return {titles[run.arguments["sparse"]]: found for run, found in self.simulate(simulated.ABRUPT)}

    def runs(self) -> Numbers:
        titles = {False: "one accuracy each", True: "accuracy by class"}
        made: Numbers = {}
        for run, found in self.simulate(simulated.RUNS):
            made.setdefault(titles[run.arguments["by_class"]], {})[str(run.arguments["length"])] = found
        return made


PARTS: dict[str, Callable[[Suite], Any]] = {
    "streams": Suite.streams,
    "models": Suite.models,
    "peers": Suite.peers,
    "rare": Suite.rare,
    "random": Suite.random,
    "drift": Suite.drift,
    "abrupt": Suite.abrupt,
    "runs": Suite.runs,
    "shuffled": Suite.shuffled,
    "questions": Suite.questions,
    "cost": Suite.cost,  # at the end and alone: beside other work it would measure that
}


def measure(
    data: Path,
    out: Path,
    parts: Sequence[str] = tuple(PARTS),
    *,
    names: Sequence[str] | None = None,
    limit: int | None = None,
    jobs: int = 1,
) -> Numbers:
    """Figures of the parts; runs that an earlier call cached below `out` are not done again."""
    suite = Suite(data, out, names, limit, jobs)
    results: Numbers = {"versions": versions(), "limit": limit, "seconds": {}}
    for part in parts:
        start = perf_counter()
        results[part] = PARTS[part](suite)
        results["seconds"][part] = round(perf_counter() - start, 1)
        print(f"{part}: {results['seconds'][part]:.0f} s", file=sys.stderr, flush=True)
    return results
