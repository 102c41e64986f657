"""Tables of the experiments, as CSV for machines and Markdown for people."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from experiments.paper.video import DATASETS, SETUPS

Row = list[Any]


def markdown(header: Row, rows: list[Row]) -> str:
    """A Markdown table.

    >>> print(markdown(["window", "accuracy"], [["2", 57.218]]))
    | window | accuracy |
    |---|---|
    | 2 | 57.22 |
    """
    lines = [header, ["---"] * len(header), *rows]
    shown = ["| " + " | ".join(_cell(value) for value in line) + " |" for line in lines]
    shown[1] = shown[1].replace(" ", "")
    return "\n".join(shown)


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def write_tables(experiments: dict[str, Any], folder: Path) -> None:
    """A CSV and a Markdown file for every table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (header, rows) in tables(experiments).items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        (folder / f"{name}.md").write_text(markdown(header, rows) + "\n", encoding="utf-8")


def tables(experiments: dict[str, Any]) -> dict[str, tuple[Row, list[Row]]]:
    """Header and rows by name, of the experiments that have been run."""
    made: dict[str, tuple[Row, list[Row]]] = {}
    if "synthetic" in experiments:
        made["synthetic"] = _synthetic(experiments["synthetic"])
    if "images" in experiments:
        made["images"] = _images(experiments["images"])
    if "video" in experiments:
        made |= {f"video-{name}": _video(experiments["video"][name]) for name in DATASETS}
    if "beta" in experiments:
        made["beta"] = _beta(experiments["beta"])
    if "theory" in experiments:
        numbers = experiments["theory"]
        curves = zip(numbers["betas"], numbers["powers of two"], numbers["best ratio"], strict=True)
        made["phi"] = (["beta", "powers of two", "best ratio"], [list(row) for row in curves])
    return made


def _synthetic(numbers: dict[str, Any]) -> tuple[Row, list[Row]]:
    header = ["block", "rows", "mean window in its last quarter", "error of the accuracies at its end", "spread (sd)"]
    rows = [
        [
            place + 1,
            block["length"],
            block["window"]["mean"],
            f"{block['error']['mean']:.4f}",
            f"{block['error']['sd']:.4f}",
        ]
        for place, block in enumerate(numbers["blocks"])
    ]
    return header, rows


def _images(numbers: dict[str, Any]) -> tuple[Row, list[Row]]:
    header = ["window", "accuracy", "standard error", "tied rows (%)"]
    rows: list[Row] = [
        [name, row["mean"], row["se"], 100 * numbers["tied"][name]] for name, row in numbers["accuracy"].items()
    ]
    code = numbers["authors_code"]
    return header, [*rows, ["adaptive, authors' code", code["mean"], code["se"], ""]]


def _video(part: dict[str, Any]) -> tuple[Row, list[Row]]:
    header = ["window"]
    for setup in SETUPS:
        header += [f"accuracy, {setup}", "sd", f"F1, {setup}", "sd"]
    rows = []
    for name in part["permute"]["accuracy"]:
        row: list[Any] = [name]
        for setup in SETUPS:
            for measure in ("accuracy", "f1"):
                row += [part[setup][measure][name]["mean"], part[setup][measure][name]["sd"]]
        rows.append(row)
    return header, rows


def _beta(numbers: dict[str, Any]) -> tuple[Row, list[Row]]:
    header = ["beta"]
    columns = []
    for name in ("basketball", "tennis"):
        for setup in SETUPS:
            for measure in ("accuracy", "f1"):
                header.append(f"{name} {measure}, {setup}")
                columns.append([row["mean"] for row in numbers[name][setup][measure]])
    rows = [[f"{beta:.3f}", *values] for beta, *values in zip(numbers["betas"], *columns, strict=True)]
    return header, rows
