"""Options that commands share, as dataclasses that travel from the command to the library."""

from __future__ import annotations

import csv
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer

from driftvote.core.label_models import Estimator
from driftvote.errors import DriftvoteError, one_line
from driftvote.files.classes import declare_format
from driftvote.files.table import DUPLICATES, FORMATS, FileOptions
from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, LabelModel, MajorityLabelModel
from driftvote.models.adaptive import ESTIMATOR_SHORTCUTS, WINDOW_SHORTCUTS
from driftvote.votes import VoteFormat

_DECLARED = ("n_classes", "votes", "classes", "abstain", "labelers")  # settings that other options declare

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
To = Annotated[str | None, typer.Option("--to", help="Output format (default: by file ending).", show_default=False)]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv", help="Put an apostrophe before CSV text that starts with = + - @, so that no spreadsheet runs it."
    ),
]
ReviewBelow = Annotated[
    float,
    typer.Option(
        "--review-below", min=0.0, max=1.0, help="Labels less probable than this need review; ties always do."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Model setting, e.g. beta=0.2 or windows=[64,256]; may be repeated.", show_default=False
    ),
]


def print_summary(
    summary: dict[str, Any], lines: Iterable[str], as_json: bool, quiet: bool, to_stderr: bool = False
) -> None:
    """Print the summary of a command: as JSON, as lines of text, or not at all."""
    if as_json:
        typer.echo(json.dumps(summary, indent=2, default=str), err=to_stderr)
    elif not quiet:
        typer.echo("\n".join(map(one_line, lines)), err=to_stderr)


def option(*names: str, help: str, panel: str | None = None, default: bool = False, **more: Any) -> Any:
    """A command-line option; its default value is shown in the help only on request."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=default, **more)


Name = str | None
Names = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """How votes are written: their classes and the value of an abstention."""

    classes: Names | None = None
    abstain: Name = None
    votes: Name = None
    n_classes: int | None = None

    def declared(self) -> VoteFormat | None:
        """The format that the options declare, None if they declare none."""
        if self.votes == "signed" and self.abstain is not None:
            raise DriftvoteError("--votes signed has its own value for no vote, 0; omit --abstain")
        return declare_format(self.votes, self.n_classes, self.classes, self.abstain if self.classes else None)


@dataclass(frozen=True, kw_only=True)
class InputOptions(FileOptions, FormatOptions):
    """A file of votes: its columns, the order of its rows, and how votes are written."""

    file: str
    fold_case: bool = False
    sort: bool = False
    only: Name = None

    @property
    def many_streams(self) -> bool:
        """Whether the file may hold several streams to label."""
        return self.stream is not None and self.only is None

    def check(self) -> None:
        """Refuse options that contradict or need each other."""
        if self.only is not None and self.stream is None:
            raise DriftvoteError("--only selects one stream; name the column of streams with --stream")
        if self.sort and self.time is None:
            raise DriftvoteError("--sort needs --time, the column to sort by")
        if self.time_format is not None and self.time is None:
            raise DriftvoteError("--time-format needs --time, the column that it describes")
        if self.in_order and self.time is not None:
            raise DriftvoteError("--in-order and --time both define the order; pass one of them")
        if self.duplicates not in DUPLICATES:
            raise DriftvoteError(f"--duplicates {self.duplicates}: choose {', '.join(DUPLICATES)}")
        if self.duplicates != "error" and not self.long:
            raise DriftvoteError("--duplicates is for files with one vote per line; name --task, --labeler and --label")
        if self.encoding != "utf-8" and self.format not in (None, "csv", "tsv"):
            raise DriftvoteError(f"--encoding is for CSV and TSV, not for {self.format}")

    def refuse_verified(self) -> None:
        """Refuse --gold-for-learning in a command that does not learn from it."""
        if self.verified is not None:
            raise DriftvoteError("--gold-for-learning goes with label, report and check; omit it here")


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model and its settings."""

    model: Annotated[
        str, typer.Option("--model", help="adaptive, paper, majority, all-past (no window), or window:1024 (fixed).")
    ] = "adaptive"
    settings: Settings = None

    @property
    def are_default(self) -> bool:
        """Whether no option was given, so that a saved model may have any settings."""
        return self.model == "adaptive" and not self.settings

    @property
    def min_labelers(self) -> int:
        """The smallest number of labelers that the model can work with."""
        return 1 if self.model == "majority" else 3

    def make(self, form: VoteFormat) -> LabelModel:
        """A new model for votes in this format."""
        return make_model(self.model, form, self.settings)


def make_model(spec: str, form: VoteFormat, settings: Sequence[str] | None = None) -> LabelModel:
    """The model that `--model` and `--set` describe, for votes in this format."""
    name, _, size = spec.partition(":")
    values = _parse_settings(settings or ())
    kind: Any = AdaptiveLabelModel
    declared = _format_settings(form)
    if name == "window" and size.isdigit():
        kind, declared["window"] = FixedWindowLabelModel, int(size)
    elif spec == "all-past":
        kind, declared["window"] = FixedWindowLabelModel, None
    elif spec == "majority":
        kind = MajorityLabelModel
    elif spec not in ("adaptive", "paper"):
        raise DriftvoteError(
            f"--model {spec}: there is no such model; choose adaptive, paper, majority, all-past or window:1024"
        )
    known = _setting_names(kind)
    for name in values:
        if name not in known:
            raise DriftvoteError(f"--set {name}: {kind.__name__} has no such setting; it has {', '.join(known)}")
    model: LabelModel = (kind.paper if spec == "paper" else kind)(**declared, **values)
    return model


def _setting_names(kind: type[LabelModel]) -> list[str]:
    """The settings of a model that `--set` takes."""
    names = dict.fromkeys(inspect.signature(kind).parameters)
    if "shortcuts" in names:
        names |= dict.fromkeys((*WINDOW_SHORTCUTS, *ESTIMATOR_SHORTCUTS))
    return [name for name in names if name not in (*_DECLARED, "window", "on_event", "shortcuts")]


def flat_settings(model: LabelModel) -> dict[str, Any]:
    """The settings of a model under the names that `--set` takes."""
    found: dict[str, Any] = {}
    for name, value in model.get_params(deep=True).items():
        if isinstance(value, Estimator):
            found[name] = value.name
        elif not is_dataclass(value):
            found["windows" if name == "windows__sizes" else name.rpartition("__")[2]] = value
    return {name: value for name, value in found.items() if name not in _DECLARED}


def _format_settings(form: VoteFormat) -> dict[str, Any]:
    """The settings that declare this format to a model."""
    if form.name == "classes":
        return {"classes": list(form.classes), "abstain": form.abstain}
    return {"votes": form.name if form.declared else None, "n_classes": form.n_classes}


def _parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """The values of `--set`, by name; JSON where possible, otherwise text."""
    values = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise DriftvoteError(f"--set {text}: write name=value, such as --set beta=0.2")
        try:
            values[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            values[name.strip().replace("-", "_")] = value.strip()
    return values


def split_list(text: str) -> Names:
    """The items of a list option; quotes allow a comma in a name.

    >>> split_list('a, b,"c,d"')
    ('a', 'b', 'c,d')
    """
    try:
        items = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as problem:
        raise DriftvoteError(f"{text!r} is not a list such as a,b,c ({problem}); quote names with commas") from None
    return tuple(item.strip() for item in items if item.strip())


_COLUMNS, _VOTES, _FILE = "Columns (lists: a,b,c)", "How votes are written", "The file"
_INPUT_INFOS = {
    "file": typer.Argument(help=f"File of votes: {', '.join(FORMATS)}; - is standard input."),
    "labelers": option(
        "--labelers",
        help="Columns with votes, or patterns such as 'judge_*' (default: all without another role).",
        panel=_COLUMNS,
    ),
    "id": option("--id", help="Column of row ids; copied to the output.", panel=_COLUMNS),
    "time": option("--time", help="Column of times; they must not decrease.", panel=_COLUMNS),
    "time_format": option(
        "--time-format", help="Format of --time, e.g. '%d.%m.%Y %H:%M' (default: detected).", panel=_COLUMNS
    ),
    "sort": option("--sort", help="Sort rows by --time first (files of any size).", panel=_COLUMNS),
    "stream": option("--stream", help="Column that names independent streams.", panel=_COLUMNS),
    "only": option("--only", help="Read one stream: this value of --stream.", panel=_COLUMNS),
    "gold": option("--gold", help="Column of true classes, for scoring only.", panel=_COLUMNS),
    "verified": option(
        "--gold-for-learning",
        help="Column of verified classes, empty where unknown: the model learns from them, and they become labels.",
        panel=_COLUMNS,
    ),
    "keep": option("--keep", help="Other columns to copy to the output.", panel=_COLUMNS),
    "drop": option("--drop", help="Columns to ignore.", panel=_COLUMNS),
    "text": option("--text", help="CSV columns to copy as text, not as numbers.", panel=_COLUMNS),
    "task": option("--task", help="One vote per line: column of the task.", panel=_COLUMNS),
    "labeler": option("--labeler", help="One vote per line: column of the labeler.", panel=_COLUMNS),
    "label": option("--label", help="One vote per line: column of the vote.", panel=_COLUMNS),
    "in_order": option(
        "--in-order", help="One vote per line, without --time: lines are in time order.", panel=_COLUMNS
    ),
    "duplicates": option(
        "--duplicates",
        help="One vote per line: which vote counts if a labeler votes again: error, first, last.",
        panel=_COLUMNS,
    ),
    "classes": option("--classes", help="Class values in order, e.g. ham,spam.", panel=_VOTES),
    "abstain": option("--abstain", help="Value that means no vote; an empty cell always does.", panel=_VOTES),
    "fold_case": option("--fold-case", help="Read Yes, YES and yes as one class.", panel=_VOTES),
    "votes": option("--votes", help="snorkel (0..K-1, -1 is no vote) or signed (-1, +1, 0 is no vote).", panel=_VOTES),
    "n_classes": option("--n-classes", help="Number of classes with --votes snorkel.", panel=_VOTES),
    "format": option("--from", help="Input format (default: by file ending).", panel=_FILE),
    "delimiter": option("--delimiter", help="CSV delimiter, e.g. ';'.", panel=_FILE),
    "encoding": option("--encoding", help="CSV encoding (default: utf-8).", panel=_FILE),
}


def takes_options(infos: Mapping[str, Any] | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that gives a command an option for each field of its parameters that are dataclasses.

    A field is an option if its annotation holds one, or if `infos` has one under its name; those of `InputOptions` are
    known. A field that is a sequence of text is a list option (`a,b,c`).
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, dict[str, bool]]] = {}  # by parameter: the dataclass, its options, are they lists
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            kind = parameter.annotation
            if is_dataclass(kind):
                found = list(_field_parameters(kind, {**_INPUT_INFOS, **(infos or {})}))
                parameters += [each for each, _ in found]
                groups[parameter.name] = kind, {each.name: is_list for each, is_list in found}
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @wraps(command)
        def run(**values: Any) -> None:
            for name, (kind, options) in groups.items():
                given = {option: values.pop(option, None) for option in options}
                values[name] = kind(
                    **{
                        option: split_list(value) if options[option] else value
                        for option, value in given.items()
                        if value is not None
                    }
                )
            command(**values)

        shown: Any = run
        shown.__signature__ = inspect.Signature(parameters)
        shown.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": type(None)}
        del shown.__wrapped__  # otherwise typer would inspect the function inside
        return run

    return decorate


def _field_parameters(kind: Any, infos: Mapping[str, Any]) -> Iterator[tuple[inspect.Parameter, bool]]:
    """A parameter for each field of a dataclass that is an option, and whether it is a list option."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint, info = hints[field.name], infos.get(field.name)
        if hasattr(hint, "__metadata__"):
            hint, info = get_args(hint)[:2]
        if info is None:
            continue
        is_list = hint in (Names, Names | None, Sequence[str])
        default = None if is_list else inspect.Parameter.empty if field.default is MISSING else field.default
        shown: Any = str | None if is_list else hint
        parameter = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default)
        yield parameter.replace(annotation=Annotated[shown, info]), is_list
