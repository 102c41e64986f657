"""Committees: how long programs and searches take, and how committees label the paper's streams.

`make committee` writes the tables of docs/committee.md between their marks; figures are never typed in.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, MajorityLabelModel
from driftvote.committee import PanelFacts, find_committee, worst_case
from driftvote.streams import paper_blocks, permute, simulate
from driftvote.streams.awa2 import Awa2
from driftvote.streams.wrench import load_wrench

PAGE = Path(__file__).parents[1] / "docs" / "committee.md"
RUNS = 3
MODELS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "majority": lambda _: MajorityLabelModel(),
    "adaptive": lambda _: AdaptiveLabelModel(),
    "tau 0.1": lambda _: CommitteeLabelModel(tau=0.1),
    "verified": lambda accuracies: CommitteeLabelModel(known_accuracies=accuracies),
}
COMMITTEES = ("tau 0.1", "verified")


def panel(n: int, seed: int) -> PanelFacts:
    """Return the facts about labelers in blocks of five that share four errors in ten."""
    rng = np.random.default_rng(seed)
    right = rng.random((5000, n)) < rng.uniform(0.75, 0.9, n)
    for block in range(0, n, 5):
        copying = rng.random(5000) < 0.4
        right[copying, block : block + 5] = right[copying, block : block + 1]
    signed = np.where(right, 1.0, -1.0)
    accuracies = [(float(p), 1.0) for p in right.mean(axis=0)]
    return PanelFacts.from_agreements(signed.T @ signed / 5000, accuracies=accuracies, allowance=0.01)


def cpu_time(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call: the solver has one thread, and the machine may be busy."""
    start = time.process_time()
    work()
    return time.process_time() - start


def programs(rounds: int) -> str:
    """Return a table of the times of exact programs, searches and a stream; medians over panels."""
    lines = ["| | labelers | programs | CPU time |", "|---|---|---|---|"]
    for n in (6, 10, 12, 14):
        panels = [panel(n, seed) for seed in range(rounds)]
        worst_case(panels[0])
        times = [cpu_time(lambda facts=facts: worst_case(facts)) for facts in panels]
        lines.append(f"| one program, {2**n:,} patterns | {n} | 1 | {_seconds(times)} |")
    for n, largest in ((6, 5), (12, 5), (10, 9), (12, 9), (20, 9), (40, 9)):
        panels = [panel(n, seed) for seed in range(rounds)]
        committee = find_committee(panels[0], largest)
        times = [cpu_time(lambda facts=facts, most=largest: find_committee(facts, most)) for facts in panels]
        how = "every committee" if committee.exhaustive else "growing"
        lines.append(f"| search up to {largest}, {how} | {n} | {committee.n_programs:,} | {_seconds(times)} |")
    votes = simulate(np.full((20_000, 6), 0.8), seed=1).votes
    times = [cpu_time(lambda: CommitteeLabelModel().label_stream(votes)) / 20 for _ in range(rounds + 1)]
    lines.append(f"| 1,000 rows of a stream, with one search up to 5 | 6 | 32 | {_seconds(times[1:])} |")
    return "\n".join(lines)


def _seconds(times: list[float]) -> str:
    middle = statistics.median(times)
    return f"{middle * 1e3:.0f} ms" if middle < 1.0 else f"{middle:.1f} s"


def streams(data: Path) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """Yield the paper's streams: votes and truth of every run."""
    made = [paper_blocks(seed=seed) for seed in range(RUNS)]
    yield "Synthetic", [(stream.votes, stream.truth) for stream in made]
    for name in ("tennis", "basketball", "commercial"):
        dataset = load_wrench(data / "wrench" / name)
        yield name.capitalize(), [(dataset.votes, dataset.truth)]
        moved = [permute(dataset.votes, seed)[0] for seed in range(RUNS)]
        yield f"{name.capitalize()}, permuted", [(votes, dataset.truth) for votes in moved]
    images = Awa2.load(data / "awa2")
    yield "Images (AwA2)", [images.stream(seed) for seed in range(RUNS)]


def verified(votes: Any, truth: Any) -> dict[str, tuple[float, float]]:
    """Return what verified labels would tell: accuracies over the whole stream, two points off at most."""
    accuracies = {}
    for place in range(votes.shape[1]):
        voted = votes[:, place] >= 0
        right = float((votes[voted, place] == truth[voted]).mean())
        accuracies[f"labeler_{place}"] = (max(0.0, right - 0.02), min(1.0, right + 0.02))
    return accuracies


def comparison(data: Path) -> str:
    """Return a table of each model's accuracy (a row without a label counts half) and of the certified accuracies."""
    heads = [*MODELS, "certified: tau 0.1", "verified", "worst labeler", "members"]
    lines = ["| stream | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for title, runs in streams(data):
        scores: dict[str, list[float]] = {name: [] for name in MODELS}
        bounds: dict[str, list[float]] = {name: [] for name in COMMITTEES}
        members, worst = [], []
        for votes, truth in runs:
            accuracies = verified(votes, truth)
            worst.append(min(high for _, high in accuracies.values()) - 0.02)
            for name, make in MODELS.items():
                out = make(accuracies).label_stream(votes)
                scores[name].append(float(np.where(out.codes < 0, 0.5, out.codes == truth).mean()))
                if name in COMMITTEES:
                    bounds[name].append(float(1.0 - out.error_bounds.mean()))
            members.append(float(out.weights.sum(axis=1).mean()))
        cells = [_spread(values) for values in (*scores.values(), *bounds.values(), worst)]
        lines.append(f"| {title} | " + " | ".join(cells) + f" | {statistics.mean(members):.1f} |")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def write_table(page: str, name: str, table: str) -> str:
    """Return the page with the table between its marks."""
    begin, end = f"<!-- {name}: written by make committee -->", f"<!-- end of {name} -->"
    head, _, rest = page.partition(begin)
    _, mark, tail = rest.partition(end)
    if not mark:
        raise SystemExit(f"{PAGE}: the marks of {name!r} are missing")
    return f"{head}{begin}\n\n{table}\n\n{end}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the paper's data")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    page = PAGE.read_text()
    page = write_table(page, "streams", comparison(chosen.data))
    page = write_table(page, "programs", programs(chosen.rounds))
    PAGE.write_text(page)
    print(f"wrote the tables of {PAGE}")


if __name__ == "__main__":
    main()
