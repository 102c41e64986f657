"""What must hold of the default model, one configuration for everything, and whether it does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.quality.models import ALL_PAST, DEFAULT
from experiments.quality.questions import ANY, ASK
from experiments.quality.scoring import summarize
from experiments.quality.simulated import LONG_ROWS

Figures = Mapping[str, Any]

CLIPPED, LOSS, WORST = 0.9, -0.35, -3.0
LEAST_ACCURACY = {"awa2": 78.0, "elec2_lf": 70.0, "commercial": 91.5}
CALIBRATED, REVIEW_LIFT, OF_STREAMS = 0.001, 2.0, 45 / 59
RARE_LOSS, RANDOM_SHARE, RANDOM_WORST = -0.5, 0.01, -5.0
DRIFT_LOSS, ACCURACY_ERROR, HELD, BEHIND, COST = -0.5, 0.05, 0.9, 0.3, 2.0
TWENTY, FIVE, SLIPS, ASK_TIME = (1.4, -0.15, -1.2), 1.1, (1.1, -2.0), 0.05
WINDOW_FACTOR, ROWS_PER_EVENT = 2.0, 100_000

FORMER = json.loads((Path(__file__).parent / "former_default.json").read_text(encoding="utf-8"))
"""Figures of the default model of version 0.2.0, measured once by the functions of `simulated`."""


@dataclass(frozen=True)
class Check:
    """A statement, what it asks for, what was measured, and whether it holds (None: not measured)."""

    statement: str
    target: str
    measured: str = ""
    holds: bool | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        return "not measured" if self.holds is None else "pass" if self.holds else "FAIL"

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        return f"{self.verdict:12}  {self.statement}: {self.measured or '-'} ({self.target}{note})"


def check_all(results: Figures, parts: Sequence[str] | None = None) -> list[Check]:
    """All checks of the parts that the results hold, or of some; parts that were not run are left out."""
    checks = {
        "streams": check_streams,
        "peers": check_peers,
        "rare": check_rare,
        "random": check_random,
        "drift": check_drift,
        "abrupt": check_abrupt,
        "runs": check_runs,
        "shuffled": check_shuffled,
        "questions": check_questions,
        "cost": check_cost,
    }
    judged = [part for part in checks if results.get(part) and (parts is None or part in parts)]
    return [check for part in judged for check in checks[part](results)]


def gains_of(results: Figures) -> dict[str, float]:
    """The default model's gains over majority by stream."""
    return {name: entry["gain"] for name, entry in results["streams"].items()}


def check_streams(results: Figures) -> Iterator[Check]:
    streams = results["streams"]
    found = summarize(gains_of(results))
    count = f"{len(streams)} streams"
    yield Check(
        "clipped mean gain", f"at least {CLIPPED:+g}", f"{found['clipped']:+.2f}", found["clipped"] >= CLIPPED, count
    )
    yield Check(
        "loss (mean of the negative gains)", f"at least {LOSS:+g}", f"{found['loss']:+.2f}", found["loss"] >= LOSS
    )
    worst = f"{found['worst']:+.2f} ({found['worst_stream']})"
    yield Check("worst stream, Basketball aside", f"at least {WORST:+g}", worst, found["worst"] >= WORST)
    for name, least in LEAST_ACCURACY.items():
        if name in streams:
            accuracy = streams[name]["accuracy"]
            yield Check(f"{name}: accuracy", f"at least {least:g}", f"{accuracy:.2f}", accuracy >= least)
    wanted = round(OF_STREAMS * len(streams))
    calibrated = sum(entry["calibration"] <= entry["calibration_share"] + CALIBRATED for entry in streams.values())
    statement = "calibration no worse than the vote share's"
    yield Check(statement, f"on at least {wanted} of {count}", str(calibrated), calibrated >= wanted)
    lifted = sum(entry["review"] >= REVIEW_LIFT for entry in streams.values())
    statement = "the least certain 10% of rows hold twice their share of the errors"
    possible = [entry for entry in streams.values() if entry["review_limit"] >= REVIEW_LIFT]
    reached = sum(entry["review"] >= REVIEW_LIFT for entry in possible)
    hindsight = sum(entry["review_hindsight"] >= REVIEW_LIFT for entry in streams.values())
    note = (
        f"calibrated probabilities can on {len(possible)}, of which {reached}; an order by gold labels on {hindsight}"
    )
    yield Check(statement, f"on at least {wanted} of {count}", str(lifted), lifted >= wanted, note)


def check_peers(results: Figures) -> Iterator[Check]:
    for peer, entry in results["peers"].items():
        if not entry.get("whole_stream"):
            continue
        statement, target = f"ahead of {peer}", "larger clipped mean and worst stream"
        if entry.get("reason"):
            yield Check(statement, target, note=entry["reason"])
            continue
        # On the streams that the peer labeled.
        theirs = summarize(entry["gains"])
        ours = summarize({name: gain for name, gain in gains_of(results).items() if name in entry["gains"]})
        ahead = ours["clipped"] > theirs["clipped"] and ours["worst"] > theirs["worst"]
        shown = [f"{figures['clipped']:+.2f} and {figures['worst']:+.2f}" for figures in (ours, theirs)]
        yield Check(statement, target, " against ".join(shown), ahead)


def check_rare(results: Figures) -> Iterator[Check]:
    cells = results["rare"]
    names = {
        "share": "a rare class",
        "absent": "declared classes that never occur",
        "runs": "classes in runs of 5,000 rows",
    }
    for kind, name in names.items():
        found = sorted((cell for cell in cells if cell["kind"] == kind), key=lambda cell: cell["gain"])
        if found:
            failed = [cell for cell in found if cell["gain"] < RARE_LOSS]
            note = f"{len(failed)} of {len(found)} cells lose more" if failed else f"{len(found)} cells"
            measured = f"{found[0]['gain']:+.2f} ({show_cell(found[0])})"
            yield Check(f"{name}: worst loss to majority", f"at least {RARE_LOSS:+g}", measured, not failed, note)


def show_cell(cell: Figures) -> str:
    """A cell of the grid of rare classes in words.

    >>> show_cell({"kind": "share", "labelers": 3, "accuracy": 0.6, "case": [0.01]})
    '3 labelers right 60%, class on 1%'
    """
    case = cell["case"]
    shown = {
        "share": lambda: f"class on {100 * case[0]:g}%",
        "absent": lambda: f"{case[1]} of {case[0]} classes occur",
        "runs": lambda: f"runs of {case[0]:,}",
    }[cell["kind"]]()
    return f"{cell['labelers']} labelers right {100 * cell['accuracy']:g}%, {shown}"


def check_random(results: Figures) -> Iterator[Check]:
    found, worst = results["random"], results["random"]["worst"]
    share = found["behind"] / found["count"]
    note = "worst seeds: " + ", ".join(f"{seed} {gain:+.1f}" for seed, gain in list(worst.items())[:5])
    statement = f"{found['count']:,} random panels: more than 1 point below majority"
    yield Check(
        statement, f"at most {RANDOM_SHARE:.0%}", f"{share:.1%} ({found['behind']})", share <= RANDOM_SHARE, note
    )
    least = min(worst.values())
    yield Check("the same: worst", f"at least {RANDOM_WORST:+g}", f"{least:+.2f}", least >= RANDOM_WORST)


def check_drift(results: Figures) -> Iterator[Check]:
    lost = {
        name: float(np.mean(found["ours"]) - np.mean(FORMER["drift"][name][: len(found["ours"])]))
        for name, found in results["drift"].items()
    }
    worst = min(lost, key=lost.__getitem__)
    note = f"on average {np.mean(list(lost.values())):+.2f} over {len(lost)} scenarios"
    measured = f"{lost[worst]:+.2f} ({worst})"
    statement = "simulated drift: against the former default, worst scenario"
    yield Check(statement, f"at least {DRIFT_LOSS:+g}", measured, lost[worst] >= DRIFT_LOSS, note)


def check_abrupt(results: Figures) -> Iterator[Check]:
    for name, found in results["abrupt"].items():
        error, held, across = found["error"], found["held"], found["across"]
        note = f"event found in {found['detected']:.0%}; the other labelers: {found['error_others']:.3f}"
        statement = f"a labeler falls from 0.85 to 0.40 ({name}): error of its accuracy, 200 to 2,000 rows later"
        yield Check(statement, f"at most {ACCURACY_ERROR:g}", f"{error:.3f}", error <= ACCURACY_ERROR, note)
        after = min(held, key=held.__getitem__)
        note = ", ".join(f"{share:.0%} after {int(rows):,} rows" for rows, share in held.items())
        statement = f"the same ({name}): its 95% band holds the truth"
        yield Check(statement, f"in at least {HELD:.0%}", f"{held[after]:.0%}", held[after] >= HELD, note)
        statement = f"the same ({name}): rows whose window reaches across a confirmed event"
        yield Check(statement, "0%", f"{across:.1%}", across == 0)


def check_runs(results: Figures) -> Iterator[Check]:
    for name, by_length in results["runs"].items():
        usual = by_length["1"]["window"]
        factors = {length: entry["window"] / usual for length, entry in by_length.items() if length != "1"}
        worst = max(factors, key=lambda length: max(factors[length], 1 / factors[length]))
        holds = 1 / WINDOW_FACTOR <= factors[worst] <= WINDOW_FACTOR
        note = f"without runs {usual:,.0f} rows"
        measured = f"{by_length[worst]['window']:,.0f} rows in runs of {int(worst):,}"
        statement = f"classes in runs, {name}: median window"
        yield Check(statement, f"within a factor of {WINDOW_FACTOR:g}", measured, holds, note)
        events = {length: entry["events"] for length, entry in by_length.items()}
        most = max(events, key=events.__getitem__)
        measured = f"{events[most]} in {LONG_ROWS:,} rows" + (f", runs of {int(most):,}" if events[most] else "")
        holds = events[most] * ROWS_PER_EVENT <= LONG_ROWS
        yield Check(f"the same, {name}: events", f"at most 1 in {ROWS_PER_EVENT:,} rows", measured, holds)


def check_shuffled(results: Figures) -> Iterator[Check]:
    behind = {name: np.mean(found[ALL_PAST]) - np.mean(found[DEFAULT]) for name, found in results["shuffled"].items()}
    mean, worst = float(np.mean(list(behind.values()))), max(behind, key=behind.__getitem__)
    statement = "shuffled streams: behind the same model fitted to every row so far, on average"
    note = f"most {behind[worst]:+.2f} ({worst})"
    yield Check(statement, f"at most {BEHIND:g} points", f"{mean:+.2f}", mean <= BEHIND, note)


def answer_gains(results: Figures, way: str, wrong: float, count: int) -> dict[str, float]:
    """Gains by stream with so many verified rows; without any, those of the votes alone."""
    key = "free" if count == 0 else f"{way}, {wrong:.0%} wrong, {count}"
    return {name: found[key] for name, found in results["questions"]["streams"].items()}


def check_questions(results: Figures) -> Iterator[Check]:
    twenty = summarize(answer_gains(results, ASK, 0.0, 20))
    for key, least in zip(("clipped", "loss", "worst"), TWENTY, strict=True):
        title = {"clipped": "clipped mean gain", "loss": "loss", "worst": "worst stream, Basketball aside"}[key]
        yield Check(f"20 answers: {title}", f"at least {least:+g}", f"{twenty[key]:+.2f}", twenty[key] >= least)
    five = summarize(answer_gains(results, ASK, 0.0, 5))["clipped"]
    yield Check("5 answers: clipped mean gain", f"at least {FIVE:+g}", f"{five:+.2f}", five >= FIVE)
    slips = summarize(answer_gains(results, ASK, 0.1, 20))
    measured = f"{slips['clipped']:+.2f} and {slips['worst']:+.2f}"
    target = f"at least {SLIPS[0]:+g} and {SLIPS[1]:+g}"
    holds = slips["clipped"] >= SLIPS[0] and slips["worst"] >= SLIPS[1]
    yield Check("20 answers, one in ten wrong: clipped mean gain and worst stream", target, measured, holds)
    for count in (5, 10, 20):
        ours = summarize(answer_gains(results, ASK, 0.0, count))["clipped"]
        theirs = summarize(answer_gains(results, ANY, 0.0, 2 * count))["clipped"]
        statement = f"{count} answers against {2 * count} random rows: clipped mean gain"
        yield Check(statement, "at least as good", f"{ours:+.2f} against {theirs:+.2f}", ours >= theirs)
    drift = results["questions"]["drift"]
    worth = {when: np.subtract(drift["20"][when], drift["0"][when]) for when in ("before", "after")}
    gap = worth["after"] - worth["before"]
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0
    measured = f"{worth['after'].mean():+.1f} against {worth['before'].mean():+.1f}"
    reached = " and ".join(f"{np.mean(drift['20'][when]):.1f}% {when}" for when in ("before", "after"))
    statement = "20 answers after a drift event: worth as much as before it"
    note = f"standard error of the difference {error:.1f}; right with answers {reached}"
    yield Check(statement, "not less by two standard errors", measured, bool(gap.mean() >= -2 * error), note)
    time = results["questions"]["time"]
    share = time["ask"] / time["label"]
    statement = "time of ask(20) over labeling 100,000 rows of 20 labelers"
    yield Check(statement, f"at most {ASK_TIME:.0%}", f"{share:.1%}", share <= ASK_TIME)


def check_cost(results: Figures) -> Iterator[Check]:
    for name, title in (("row", "one row, `update`"), ("batch", "1,000,000 rows, `label_stream`")):
        times = results["cost"].get(name)
        note = results["cost"].get("reason") or ""
        statement = f"time over that of the former default, {title}"
        measured = "" if times is None else f"{times:.2f}"
        yield Check(statement, f"at most {COST:g}", measured, None if times is None else times <= COST, note)
