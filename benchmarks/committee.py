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

from benchmarks.common import clock
from driftvote import AdaptiveLabelModel, CommitteeLabelModel, MajorityLabelModel
from driftvote.committee import Known, find_committee, known, worst_case
from driftvote.models.committee_engine import CommitteeEngine
from driftvote.streams import paper_blocks, permute, simulate
from driftvote.streams.awa2 import Awa2
from driftvote.streams.wrench import load_wrench

PAGE = Path(__file__).parents[1] / "docs" / "committee.md"
RUNS = 3
MODELS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "majority": lambda _: MajorityLabelModel(),
    "adaptive": lambda _: AdaptiveLabelModel(),
    "tau 0.1": lambda _: CommitteeLabelModel(tau=0.1),
    "estimated": lambda _: CommitteeLabelModel(accuracies="estimated"),
    "verified": lambda accuracies: CommitteeLabelModel(accuracies=accuracies),
}


def panel(n: int, seed: int = 0) -> Known:
    """Labelers in blocks of five that share four errors in ten."""
    rng = np.random.default_rng(seed)
    right = rng.random((5000, n)) < rng.uniform(0.75, 0.9, n)
    for block in range(0, n, 5):
        copying = rng.random(5000) < 0.4
        right[copying, block : block + 5] = right[copying, block : block + 1]
    signed = np.where(right, 1.0, -1.0)
    return known(signed.T @ signed / 5000, accuracies=[(p, 1.0) for p in right.mean(axis=0)], allowance=0.01)


def programs(rounds: int) -> str:
    """Times of exact programs and of searches; the median over panels."""
    lines = ["| | labelers | programs | median time | target |", "|---|---|---|---|---|"]
    for n, target in ((6, ""), (10, "0.5 s"), (14, "20 s")):
        panels = [panel(n, seed) for seed in range(rounds)]
        worst_case(panels[0])
        times = [clock(lambda facts=facts: worst_case(facts)) for facts in panels]
        lines.append(f"| one program, {2**n:,} patterns | {n} | 1 | {_seconds(times)} | {target} |")
    for n, largest in ((6, 5), (10, 9), (20, 9), (40, 9)):
        panels = [panel(n, seed) for seed in range(rounds)]
        found = find_committee(panels[0], largest)
        times = [clock(lambda facts=facts, most=largest: find_committee(facts, most)) for facts in panels]
        how = "every committee" if found.exhaustive else "growing"
        lines.append(f"| search up to {largest}, {how} | {n} | {found.n_programs:,} | {_seconds(times)} | |")
    return "\n".join(lines)


def share(n_rows: int, rounds: int) -> str:
    """How much of a stream's time goes into searches, every 1,000 rows with six labelers."""
    lines = [
        "| stream | rows | searches | share of the time | the rest, over `AdaptiveLabelModel` |",
        "|---|---|---|---|---|",
    ]
    for title, coverage in (("everybody votes", 1.0), ("one vote in ten is missing", 0.9)):
        votes = simulate(np.full((n_rows, 6), 0.8), seed=1, coverage=coverage).votes
        whole = [_searching(lambda votes=votes: CommitteeLabelModel().label_stream(votes)) for _ in range(rounds + 1)]
        plain = [clock(lambda votes=votes: AdaptiveLabelModel().label_stream(votes)) for _ in range(rounds)]
        lines.append(_share_line(f"{title}, one batch", n_rows, whole[1:], statistics.median(plain)))
        few = votes[: n_rows // 20]
        rows = [_searching(lambda few=few: _one_by_one(CommitteeLabelModel(), few)) for _ in range(rounds)]
        base = [clock(lambda few=few: _one_by_one(AdaptiveLabelModel(), few)) for _ in range(rounds)]
        lines.append(_share_line(f"{title}, `update` row by row", len(few), rows, statistics.median(base)))
    return "\n".join(lines)


def _share_line(title: str, n_rows: int, runs: list[tuple[float, float, int]], base: float) -> str:
    part = statistics.median(spent / total for total, spent, _ in runs)
    rest = statistics.median((total - spent) / base for total, spent, _ in runs)
    return f"| {title} | {n_rows:,} | {runs[0][2]:,} | {part:.0%} | {rest:.1f} x |"


def _one_by_one(model: Any, rows: Any) -> None:
    for row in rows:
        model.update(row)


def _searching(work: Callable[[], Any]) -> tuple[float, float, int]:
    """Seconds of a call, those inside searches, and how many there were."""
    spent, count, search = 0.0, 0, CommitteeEngine._search_at

    def timed(self: CommitteeEngine, row: int, window: int) -> None:
        nonlocal spent, count
        began = time.perf_counter()
        search(self, row, window)
        spent, count = spent + time.perf_counter() - began, count + 1

    CommitteeEngine._search_at = timed  # type: ignore[method-assign]
    try:
        return clock(work), spent, count
    finally:
        CommitteeEngine._search_at = search  # type: ignore[method-assign]


def _seconds(times: list[float]) -> str:
    middle = statistics.median(times)
    return f"{middle * 1e3:.1f} ms" if middle < 0.5 else f"{middle:.1f} s"


def streams(data: Path) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """The paper's streams: votes and truth of every run."""
    made = [paper_blocks(seed=seed) for seed in range(RUNS)]
    yield "Synthetic", [(stream.votes, stream.truth) for stream in made]
    for name in ("tennis", "basketball", "commercial"):
        dataset = load_wrench(data / "wrench" / name)
        yield name.capitalize(), [(dataset.votes, dataset.truth)]
        moved = [permute(dataset.votes, seed)[0] for seed in range(RUNS)]
        yield f"{name.capitalize()}, permuted", [(votes, dataset.truth) for votes in moved]
    images = Awa2.load(data / "awa2")
    yield "Images (AwA2)", [images.stream(seed) for seed in range(RUNS)]


def verified(votes: Any, truth: Any) -> dict[str, Any]:
    """What verified labels would tell: accuracies over the whole stream, two points off at most."""
    found = {}
    for place in range(votes.shape[1]):
        voted = votes[:, place] >= 0
        right = float((votes[voted, place] == truth[voted]).mean())
        found[f"labeler_{place}"] = (max(0.0, right - 0.02), min(1.0, right + 0.02))
    return found


def comparison(data: Path) -> str:
    """Accuracy of every model (a row without a label counts half), and what the committees certified."""
    heads = [*MODELS, "certified: tau 0.1", "estimated", "verified", "worst labeler", "members"]
    lines = ["| stream | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for title, runs in streams(data):
        scores: dict[str, list[float]] = {name: [] for name in MODELS}
        bounds: dict[str, list[float]] = {name: [] for name in MODELS}
        members, worst = [], []
        for votes, truth in runs:
            told = verified(votes, truth)
            worst.append(min(high for _, high in told.values()) - 0.02)
            for name, make in MODELS.items():
                out = make(told).label_stream(votes)
                scores[name].append(float(np.where(out.codes < 0, 0.5, out.codes == truth).mean()))
                if out.error_bounds is not None:
                    bounds[name].append(float(1.0 - out.error_bounds.mean()))
                if name == "verified":
                    members.append(float(out.weights.sum(axis=1).mean()))
        cells = [_spread(scores[name]) for name in MODELS]
        cells += [_spread(bounds[name]) for name in ("tau 0.1", "estimated", "verified")]
        cells += [_spread(worst), f"{statistics.mean(members):.1f}"]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def written(page: str, name: str, table: str) -> str:
    """The page with the table between its marks."""
    begin, end = f"<!-- {name}: written by make committee -->", f"<!-- end of {name} -->"
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"{PAGE}: the marks of {name!r} are missing")
    return f"{head}{begin}\n\n{table}\n\n{end}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the paper's data")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the timed stream")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    tables = {
        "streams": comparison(chosen.data),
        "programs": programs(chosen.rounds),
        "share": share(chosen.rows, chosen.rounds),
    }
    page = PAGE.read_text()
    for name, table in tables.items():
        page = written(page, name, table)
    PAGE.write_text(page)
    print(f"wrote the tables of {PAGE}")


if __name__ == "__main__":
    main()
