"""Options that several commands share: what a file of votes holds, and which model labels it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from driftvote.files.formats import FORMATS

_COLUMNS = "Columns (lists: a,b,c)"
_VOTES = "How votes are written"
_FILE = "The file"


def _option(*names: str, help: str, panel: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


@dataclass(frozen=True)
class Given:
    """The votes that a command was given, in the words of the command line."""

    file: Annotated[str, typer.Argument(help=f"File of votes: {', '.join(FORMATS)}; - is standard input.")]
    labelers: Annotated[
        str | None,
        _option(
            "--labelers",
            help="Columns with votes, also as patterns ('judge_*'). Default: all that are not named otherwise.",
            panel=_COLUMNS,
        ),
    ] = None
    id: Annotated[str | None, _option("--id", help="Column that names the row; passes through.", panel=_COLUMNS)] = None
    time: Annotated[str | None, _option("--time", help="Column of times; checks their order.", panel=_COLUMNS)] = None
    sort: Annotated[bool, _option("--sort", help="Sort rows by --time first (files of any size).", panel=_COLUMNS)] = (
        False
    )
    stream: Annotated[
        str | None, _option("--stream", help="Column that tells independent streams apart.", panel=_COLUMNS)
    ] = None
    only: Annotated[str | None, _option("--only", help="Read one stream, this value of --stream.", panel=_COLUMNS)] = (
        None
    )
    gold: Annotated[str | None, _option("--gold", help="Column with the true class, where known.", panel=_COLUMNS)] = (
        None
    )
    gold_for_learning: Annotated[
        str | None,
        _option(
            "--gold-for-learning",
            help="Column with verified classes, empty where there is none: learned from, and the label of their rows.",
            panel=_COLUMNS,
        ),
    ] = None
    keep: Annotated[
        str | None, _option("--keep", help="Columns that are no labelers and pass through.", panel=_COLUMNS)
    ] = None
    drop: Annotated[str | None, _option("--drop", help="Columns to leave out.", panel=_COLUMNS)] = None
    text: Annotated[
        str | None, _option("--text", help="CSV columns to keep as text, though they begin as numbers.", panel=_COLUMNS)
    ] = None
    task: Annotated[str | None, _option("--task", help="One vote a line: column of the task.", panel=_COLUMNS)] = None
    labeler: Annotated[
        str | None, _option("--labeler", help="One vote a line: column of who votes.", panel=_COLUMNS)
    ] = None
    label: Annotated[str | None, _option("--label", help="One vote a line: column of the vote.", panel=_COLUMNS)] = None
    in_order: Annotated[
        bool, _option("--in-order", help="One vote a line, without --time: lines are in time order.", panel=_COLUMNS)
    ] = False
    classes: Annotated[
        str | None,
        _option("--classes", help="Class values in order: ham,spam. Default: found in the file.", panel=_VOTES),
    ] = None
    abstain: Annotated[
        str | None, _option("--abstain", help="Value that means no vote; an empty cell always does.", panel=_VOTES)
    ] = None
    votes: Annotated[
        str | None,
        _option("--votes", help="snorkel (0..K-1, -1 is no vote) or signed (-1, +1, 0 is no vote).", panel=_VOTES),
    ] = None
    n_classes: Annotated[
        int | None, _option("--n-classes", help="Number of classes with --votes snorkel.", panel=_VOTES)
    ] = None
    format: Annotated[str | None, _option("--from", help="Format, where the name does not tell.", panel=_FILE)] = None
    delimiter: Annotated[
        str | None, _option("--delimiter", help="Between cells of a CSV, such as ';'.", panel=_FILE)
    ] = None
    encoding: Annotated[str, _option("--encoding", help="Of a CSV. Default: utf-8.", panel=_FILE)] = "utf-8"


Model = Annotated[
    str, typer.Option("--model", help="adaptive, paper, majority, all-past, or window:1024 for a fixed window.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the model: beta=0.2, windows=[64,256].", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]


def takes_votes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, written with one parameter `given: Given`, an option for each field of it."""
    own = inspect.signature(command).parameters
    hints = get_type_hints(command, include_extras=True)
    shared = get_type_hints(Given, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters, annotations = [], {"return": type(None)}
    for field in fields(Given):
        required = field.name == "file"
        default = inspect.Parameter.empty if required else field.default
        parameters.append(inspect.Parameter(field.name, keyword, default=default, annotation=shared[field.name]))
    for name, parameter in own.items():
        if name != "given":
            parameters.append(parameter.replace(kind=keyword, annotation=hints[name]))
    annotations |= {parameter.name: parameter.annotation for parameter in parameters}

    @wraps(command)
    def run(**values: Any) -> None:
        said = {field.name: values.pop(field.name) for field in fields(Given) if field.name in values}
        command(given=Given(**said), **values)

    shown: Any = run
    shown.__signature__ = inspect.Signature(parameters)
    shown.__annotations__ = annotations
    del shown.__wrapped__  # else typer would look at the function inside
    return run


def listed(text: str | None) -> list[str]:
    """The items of a list option; a name that holds a comma is quoted.

    >>> listed('a, b,"c,d"'), listed(None)
    (['a', 'b', 'c,d'], [])
    """
    import csv

    if text is None:
        return []
    return [item.strip() for item in next(csv.reader([text], skipinitialspace=True)) if item.strip()]
