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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftvote.core.jit import inner
from driftvote.core.label_models import mixture
from driftvote.errors import DriftvoteError
from experiments.output import markdown
from experiments.quality.models import adaptive
from experiments.quality.scoring import score, summarize
from experiments.quality.streams import family_of, list_streams, load

UNCHANGED = "as it is"


@dataclass(frozen=True)
class Variant:
    """One choice made otherwise: settings of the model, or values of names in kernels."""

    title: str
    settings: dict[str, Any] = field(default_factory=dict)
    kernel: dict[str, Any] = field(default_factory=dict)


@inner
def all_general(sums: Any, n: int, work: Any) -> float:
    """In the place of `mixture.generality`: nobody is a specialist."""
    return 1.0


def leave_out(member: str) -> dict[str, Any]:
    """What to replace so that a member of the mixture has no weight."""
    place, weigh = mixture.MEMBERS.index(member), mixture.weigh_members

    @inner
    def weigh_others(misfits: Any, shared: Any, general: float, fit: Any) -> None:
        weigh(misfits, shared, general, fit)
        others = 1.0 - fit.weights[place]
        fit.weights[place] = 0.0
        for m in range(fit.weights.shape[0]):
            fit.weights[m] /= others

    return {"weigh_members": weigh_others}


VARIANTS = (
    Variant(UNCHANGED),
    *(Variant(f"without {member}", kernel=leave_out(member)) for member in mixture.MEMBERS),
    Variant("members weigh the same, whatever they explain", kernel={"ONE_EVIDENCE": 0.0, "CLASS_EVIDENCE": 0.0}),
    Variant("what one accuracy explains counts twice as much", kernel={"ONE_EVIDENCE": 6.0}),
    Variant("what classes explain counts half as much", kernel={"CLASS_EVIDENCE": 5.0}),
    Variant("specialists change no weight", kernel={"generality": all_general}),
    Variant("copies count in full", kernel={"SURELY": 1e9}),
    Variant(
        "errors count as shared from 5% of missing disagreements (changes probabilities only)", kernel={"SHARED": 0.05}
    ),
    Variant("half a vote more by chance (changes probabilities only)", kernel={"CHANCE_VOTES": 0.5}),
    Variant("no vote more by the mixture (changes probabilities only)", kernel={"MIXTURE_VOTES": 0.0}),
    Variant("the window always follows the agreements", kernel={"FOLLOW": -1.0}),
    Variant("the window never follows the agreements", kernel={"FOLLOW": 2.0}),
    Variant("the cautious member keeps to the majority by 1", kernel={"CAUTIOUS_PULL": 1.0}),
    Variant("the cautious member keeps to the majority by 4", kernel={"CAUTIOUS_PULL": 4.0}),
    Variant("the cautious member takes 24 steps", kernel={"CAUTIOUS_STEPS": 24}),
    Variant("no even first steps", kernel={"EVEN_STEPS": 0}),
    Variant("smoothing worth 1 row", kernel={"SMOOTHING": 1.0}),
    Variant("smoothing worth 10 rows", kernel={"SMOOTHING": 10.0}),
    Variant("`estimator='confusion'`", {"estimator": "confusion"}),
    Variant("`estimator='one_coin'`", {"estimator": "one_coin"}),
    Variant("`estimator='wawa'`", {"estimator": "wawa"}),
    Variant("`estimator='triplet'`", {"estimator": "triplet"}),
    Variant("`bound='bernstein'`", {"bound": "bernstein"}),
)
"""One line for every choice that somebody may ask about; a name that kernels no longer have is an error."""

ROOT = Path(__file__).parents[2]
Gains = dict[str, float]
"""Gain over majority by stream."""


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


def measure_variant(place: int, data: Path, names: Sequence[str] | None = None, limit: int | None = None) -> Gains:
    """Gains of one variant on every stream, in this process."""
    variant, gains = VARIANTS[place], {}
    with replace_in_kernels(variant.kernel):
        for name in list_streams(data) if names is None else names:
            stream = load(str(data), name).first(limit)
            out = adaptive(stream.n_classes, **variant.settings).label_stream(stream.votes)
            gains[name] = score(stream, out.codes)["gain"]
    return gains


def measure_in_process(place: int, data: Path, names: Sequence[str] | None, limit: int | None) -> Gains:
    """The same in a fresh process, with a compiler cache of its own if kernels are changed."""
    command = [sys.executable, "-m", "experiments.quality.ablation", "--one", str(place), "--data", str(data)]
    command += ["--names", ",".join(names)] if names else []
    command += ["--limit", str(limit)] if limit else []
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        if VARIANTS[place].kernel:
            environment["NUMBA_CACHE_DIR"] = cache
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DriftvoteError(f"{VARIANTS[place].title}: {done.stderr.strip().splitlines()[-1]}")
    gains: Gains = json.loads(done.stdout)
    return gains


def choose_by_other_families(results: Mapping[str, Gains]) -> tuple[Gains, dict[str, int]]:
    """Gains of the variant that is best on all other families, by stream, and how often each variant is chosen.

    Best is the largest clipped mean. What this gains over the unchanged model can be expected on new streams; what the
    best variant gains on all streams cannot, because it was chosen on them.
    """
    streams = list(next(iter(results.values())))
    gains: Gains = {}
    chosen: dict[str, int] = dict.fromkeys(results, 0)
    for family in dict.fromkeys(map(family_of, streams)):
        others = [name for name in streams if family_of(name) != family] or streams
        best = max(results, key=lambda title: summarize({name: results[title][name] for name in others})["clipped"])
        chosen[best] += 1
        gains |= {name: results[best][name] for name in streams if family_of(name) == family}
    return gains, {title: count for title, count in chosen.items() if count}


def table(results: Mapping[str, Gains]) -> str:
    """A row for each variant: the four figures, and the streams whose gain moves most."""
    usual, rows = results[UNCHANGED], []
    for title, gains in results.items():
        steps = sorted(((name, gains[name] - usual[name]) for name in gains), key=lambda pair: -abs(pair[1]))
        moved = ", ".join(f"{name} {step:+.1f}" for name, step in steps[:4] if abs(step) >= 0.05)
        rows.append([title, *show_summary(gains), moved])
    return markdown(["change", "mean", "clipped", "loss", "worst", "where it shows most"], rows)


def show_summary(gains: Gains) -> list[str]:
    found = summarize(gains)
    return [
        *(f"{found[key]:+.2f}" for key in ("mean", "clipped", "loss")),
        f"{found['worst']:+.2f} ({found['worst_stream']})",
    ]


def page(results: Mapping[str, Gains], limit: int | None = None) -> str:
    """The page docs/ablation.md."""
    of = f"the first {limit:,} rows of " if limit else ""
    gains, chosen = choose_by_other_families(results)
    mean, clipped, loss, worst = show_summary(gains)
    picks = ", ".join(f"{title} ({count})" for title, count in sorted(chosen.items(), key=lambda pair: -pair[1]))
    return f"""# One choice changed

What if one choice of the default model were different? Each row of the table changes one choice and labels
{of}{len(gains)} real streams again. The figures are gains over a majority vote in points: *mean*, *clipped* (gains
limited to +5, so that a few streams do not decide), *loss* (gains above 0 counted as 0), and the *worst* stream without
Basketball. Basketball's file is sorted by class, so its first rows have one class; it alone changes some means by
several tenths. The last column names the streams whose gain changes most. [Label models](estimators.md) and
[windows](windows.md) describe the choices. `make quality-ablation` writes this page.

{table(results)}

**Leave one family out.** For each family of streams, we choose the row that is best (clipped mean) on all *other*
families, and measure it on this one: mean {mean}, clipped {clipped}, loss {loss}, worst {worst}. The rows chosen, with
the number of families: {picks}. If a change is better in the table but not here, it was luck.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m experiments.quality.ablation`."""
    parser = argparse.ArgumentParser(prog="ablation", description="The default model with one choice changed.")
    parser.add_argument("--data", type=Path, default=os.environ.get("DRIFTVOTE_DATA"), help="folder of the streams")
    parser.add_argument("--docs", type=Path, default=None, help="write ablation.md here; otherwise it is printed")
    parser.add_argument("--names", default=None, help="only these streams")
    parser.add_argument("--limit", type=int, default=None, help="only the first rows of each stream")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--one", type=int, default=None, help="one variant by its place, as JSON")
    options = parser.parse_args(arguments)
    names = options.names.split(",") if options.names else None
    try:
        if options.data is None:
            raise DriftvoteError("the vote streams are needed; name their folder with --data or DRIFTVOTE_DATA")
        if options.one is not None:
            print(json.dumps(measure_variant(options.one, options.data, names, options.limit)))
            return 0

        def measure(place: int) -> Gains:
            return measure_in_process(place, options.data, names, options.limit)

        results: dict[str, Gains] = {}
        with ThreadPoolExecutor(options.jobs) as pool:
            for variant, gains in zip(VARIANTS, pool.map(measure, range(len(VARIANTS))), strict=True):
                results[variant.title] = gains
                print(f"ablation: {len(results)} of {len(VARIANTS)}: {variant.title}", file=sys.stderr, flush=True)
    except DriftvoteError as problem:
        print(f"ablation: {problem}", file=sys.stderr)
        return 1
    if options.docs is None:
        print(page(results, options.limit))
    else:
        (options.docs / "ablation.md").write_text(page(results, options.limit), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
