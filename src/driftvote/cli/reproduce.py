"""`driftvote reproduce`: the paper's experiments."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import typer

from driftvote.cli.progress import counting
from driftvote.experiments import reproduce as experiments
from driftvote.experiments.claims import claims
from driftvote.experiments.page import write_page


def reproduce(
    name: str = typer.Argument("all", help="all, synthetic, video, images, beta or theory."),
    data: Path | None = typer.Option(None, "--data", envvar="DRIFTVOTE_DATA", help="Folder of the paper's data."),
    out: Path = typer.Option(Path("results"), "--out", help="Folder for figures, tables and results.json."),
    runs: int = typer.Option(experiments.PAPER_RUNS, "--runs", min=1, help="Runs of what is random; the paper has 30."),
    jobs: int = typer.Option(os.cpu_count() or 1, "--jobs", min=1, help="Processes."),
    docs: Path | None = typer.Option(None, "--docs", help="Also write reproduction.md and its figures here."),
    quiet: bool = typer.Option(False, "--quiet", help="Say nothing while it runs."),
) -> None:
    """Run the paper's experiments on its data and compare with what it says.

    Interrupted, the same command goes on where it stopped.

    Example: driftvote reproduce all --data ../shared/data --out results
    """
    with counting(quiet) as listen:
        results = experiments.reproduce(experiments.chosen(name), data, out, runs, jobs, listen)
    if docs is not None:
        (docs / "figures").mkdir(parents=True, exist_ok=True)
        for figure in (out / "figures").glob("*.png"):
            shutil.copyfile(figure, docs / "figures" / figure.name)
        write_page(results, docs / "reproduction.md", "figures")
    judged = claims(results["experiments"])
    typer.echo(f"{len(judged)} claims: {out / 'reproduction.md'}; figures, tables and results.json beside it")
