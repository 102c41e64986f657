"""What must hold: each ratio of the suite with its bound, and whether it was kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PASS, FAIL, MISSING = "pass", "fail", "not measured"


@dataclass(frozen=True)
class Target:
    """A bound on one measured number; `at_most` says on which side it lies."""

    key: str
    statement: str
    bound: float
    at_most: bool = True
    unit: str = "x"

    def verdict(self, value: float | None) -> str:
        if value is None:
            return MISSING
        kept = value <= self.bound if self.at_most else value >= self.bound
        return PASS if kept else FAIL


TARGETS = (
    Target("majority", "`label_stream`, n = 6, 1e6 rows, all outputs, one thread, over the majority line", 6.0),
    Target("threads", "two threads: how much faster than one", 1.6, at_most=False),
    Target("labelers", "n = 20 over n = 6, 1e6 rows", 13.0),
    Target("rows", "1e7 rows over 1e6 rows", 11.0),
    Target("adwin_6", "`update()` over one ADWIN per pair, n = 6 (15 updates)", 1.5),
    Target("adwin_20", "`update()` over one ADWIN per pair, n = 20 (190 updates)", 1 / 3),
    Target("recompute", "faster per row than recomputing the windows, t = 50,000, n = 10", 20_000, at_most=False),
    Target("chunked_memory", "1e8 rows in chunks: peak memory above the idle process", 300.0, unit="MB"),
    Target("chunked_growth", "the same: peak of the longest stream over that of the shortest", 1.1),
)


def measured(sections: Mapping[str, Any]) -> dict[str, float | None]:
    """The number behind every target, from what the sections found; None where one did not run."""
    threads, growth = sections.get("threads", {}), sections.get("growth", {})
    chunked = sections.get("chunked", {})
    latency = {line["labelers"]: line["ratio"] for line in sections.get("latency", {}).get("lines", [])}
    return {
        "majority": threads.get("over_majority"),
        "threads": threads.get("speed_up"),
        "labelers": growth.get("labelers", {}).get("ratio"),
        "rows": growth.get("rows", {}).get("ratio"),
        "adwin_6": latency.get(6),
        "adwin_20": latency.get(20),
        "recompute": sections.get("recompute", {}).get("times_faster"),
        "chunked_memory": max((line["peak_mb"] for line in chunked.get("lines", [])), default=None),
        "chunked_growth": chunked.get("growth"),
    }


def judge(values: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """The pass/fail summary."""
    return [
        {
            "key": target.key,
            "statement": target.statement,
            "bound": target.bound,
            "at_most": target.at_most,
            "unit": target.unit,
            "value": values.get(target.key),
            "verdict": target.verdict(values.get(target.key)),
        }
        for target in TARGETS
    ]


def quantity(value: float | None, unit: str) -> str:
    """A figure with as many digits as it deserves."""
    if value is None:
        return "-"
    if unit == "MB":
        return f"{value:.0f} MB"
    return f"{value:,.0f} x" if value >= 100 else f"{value:.2f} x"


def lines(summary: list[dict[str, Any]]) -> list[list[str]]:
    """The summary as cells: statement, bound, value, verdict."""
    return [
        [
            line["statement"],
            ("at most " if line["at_most"] else "at least ") + quantity(line["bound"], line["unit"]),
            quantity(line["value"], line["unit"]),
            line["verdict"],
        ]
        for line in summary
    ]


def failing(summary: list[dict[str, Any]]) -> list[str]:
    return [line["key"] for line in summary if line["verdict"] == FAIL]
