"""`driftvote spark-label`: the job of `label` on Apache Spark, for tables that outgrow one machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from driftvote.cli.options import Force, Quiet, Settings, make_model
from driftvote.cli.options import _format_settings as format_settings
from driftvote.cli.options import _parse_settings as read_settings
from driftvote.cli.options import split_list as _split
from driftvote.errors import DriftvoteError
from driftvote.files.found_classes import declared_format
from driftvote.votes import declare_votes


def _text(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, show_default=False)


def spark_label(
    votes: Annotated[str, typer.Argument(help="Parquet, CSV, JSON lines or ORC: a file, a folder, or an address.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of Parquet files for the labels, or an address.")],
    labelers: Annotated[str, typer.Option("--labelers", help="Columns with votes, also as patterns ('judge_*').")],
    time: Annotated[str, typer.Option("--time", help="Column to sort by.")],
    stream: Annotated[
        str | None, _text("--stream", help="Columns that tell streams apart. Without: one long stream, in blocks.")
    ] = None,
    order: Annotated[str | None, _text("--order", help="Columns that order rows of one time.")] = None,
    keep: Annotated[str | None, _text("--keep", help="Columns that pass through.")] = None,
    classes: Annotated[str | None, _text("--classes", help="Class values in order: ham,spam.")] = None,
    abstain: Annotated[str | None, _text("--abstain", help="Value that means no vote; null always does.")] = None,
    format: Annotated[str | None, _text("--votes", help="snorkel (0..K-1, -1 is no vote) or signed.")] = None,
    n_classes: Annotated[int | None, _text("--n-classes", help="Number of classes with --votes snorkel.")] = None,
    model: Annotated[str, typer.Option("--model", help="adaptive, paper, majority, ...")] = "adaptive",
    settings: Settings = None,
    accuracies: Annotated[bool, typer.Option("--accuracies", help="Add the accuracy of each labeler.")] = False,
    weights: Annotated[bool, typer.Option("--weights", help="Add the weight of each labeler.")] = False,
    prefix: Annotated[str, _text("--prefix", help="Put before the names of results.")] = "",
    rejected: Annotated[
        str | None,
        _text("--rejected", help="Column for the reason why a row was not labeled; without, it ends the job."),
    ] = None,
    sort_duplicates: Annotated[
        bool, typer.Option("--sort-duplicates", help="Order rows of one time by their votes instead of refusing them.")
    ] = False,
    partitions: Annotated[int | None, _text("--partitions", help="Partitions of many streams.")] = None,
    blocks: Annotated[int | None, _text("--blocks", help="Blocks of one stream.")] = None,
    source: Annotated[str | None, _text("--from", help="Format, where the name does not tell.")] = None,
    master: Annotated[
        str | None, _text("--master", help="local[2], or the URL of a cluster. Default: local[*].")
    ] = None,
    conf: Annotated[list[str] | None, _text("--conf", help="A setting of Spark: spark.driver.memory=4g.")] = None,
    write_job: Annotated[
        Path | None, _text("--write-job", help="Write the job as a script for spark-submit, and run nothing.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Label a table on Spark: many streams side by side, or one long stream in blocks; the labels of `label`.

    Example: driftvote spark-label votes.parquet -o labels --labelers 'judge_*' --stream camera --time at
    """
    from driftvote.spark.columns import USUAL
    from driftvote.spark.job import Job, kind_of

    outputs = [*USUAL, *(["accuracies"] if accuracies else []), *(["weights"] if weights else [])]
    keys = listed(stream)
    asked: dict[str, Any] = {"key": keys[0] if len(keys) == 1 else keys or None, "time": time}
    optional = {
        "order": listed(order),
        "keep": listed(keep),
        "outputs": outputs if len(outputs) > len(USUAL) else None,
        "prefix": prefix,
        "rejected": rejected,
        "duplicates": "sort" if sort_duplicates else None,
        "partitions": partitions,
        "blocks": blocks,
    }
    asked |= {name: value for name, value in optional.items() if value}
    text = _model_text(model, settings, (format, n_classes, listed(classes) or None, abstain))
    job = Job(votes, kind_of(votes, source), out, text, tuple(listed(labelers)), asked, overwrite=force)
    if write_job is not None:
        _write(write_job, job.script(), force, quiet)
        return
    _run(job, master, conf or [], quiet)


def _model_text(spec: str, settings: list[str] | None, declared: tuple[Any, ...]) -> str:
    """The model as Python; wrong settings are refused here, not on a cluster."""
    form = declared_format(*declared) or declare_votes()
    make_model(spec, form, settings)
    given = {name: value for name, value in format_settings(form).items() if value is not None}
    given |= read_settings(settings or ())
    kind, _, size = spec.partition(":")
    if kind in ("window", "all-past"):
        given["window"] = int(size) if size else None
    name = {"adaptive": "AdaptiveLabelModel", "paper": "AdaptiveLabelModel.paper", "majority": "MajorityLabelModel"}
    words = ", ".join(f"{key}={value!r}" for key, value in given.items())
    return f"{name.get(kind, 'FixedWindowLabelModel')}({words})"


def _write(path: Path, script: str, force: bool, quiet: bool) -> None:
    from driftvote.files.atomic import WholeFiles

    if path.exists() and not force:
        raise DriftvoteError(f"{path}: the file exists; pass --force to overwrite it, or choose another name")
    with WholeFiles() as files:
        files.open(path).write(script.encode())
    if not quiet:
        typer.echo(f"wrote    {path}; run it with: spark-submit {path}")


def _run(job: Any, master: str | None, conf: list[str], quiet: bool) -> None:
    place = Path(job.out)
    if place.exists() and not job.overwrite:
        raise DriftvoteError(f"{place}: the folder exists; pass --force to overwrite it, or choose another name")
    new = not place.exists()
    try:
        rows = job.run(master, conf)
    except BaseException:
        if new and place.is_dir():  # what Spark left of a job that failed
            shutil.rmtree(place, ignore_errors=True)
        raise
    if not quiet:
        typer.echo(f"wrote    {job.out}: {rows:,} rows")


def listed(text: str | None) -> list[str]:
    return list(_split(text or ""))
