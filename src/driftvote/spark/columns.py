"""The columns of a Spark DataFrame: their roles, the checks of their types, and the columns of the result.

All of this happens on the driver, before a Spark job starts. Tasks receive a `LabelJob`, which holds names and
settings, never a model with its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from driftvote.errors import LabelerError, SettingError, VoteError
from driftvote.models import AdaptiveLabelModel, CommitteeLabelModel, LabelModel
from driftvote.votes import Roster, VoteFormat, declare_votes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

OUTPUTS = (
    "label", "probability", "proba", "window", "n_votes", "accuracies", "diluted_accuracies", "weights", "coverage",
)  # fmt: skip
"""Outputs of every model, by the names of `LabeledStream`."""

ERROR_BOUND = "error_bound"
"""A further output of models with certificates."""

DEFAULT_OUTPUTS = ("label", "probability", "proba", "window", "n_votes")

DUPLICATES = ("error", "sort")

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TIMES = (*_NUMBERS, "date", "timestamp", "timestamp_ntz", "string")
_KEYS = (*_TIMES, "boolean", "binary")

_ARROW_TYPES = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array<double>": pa.list_(pa.float64()),
}


@dataclass(frozen=True)
class LabelJob:
    """Everything that a task needs to know."""

    key: tuple[str, ...]  # empty: one stream
    time: str
    order: tuple[str, ...]
    labelers: tuple[str, ...]
    keep: tuple[str, ...]
    outputs: tuple[str, ...]
    prefix: str
    rejected: str | None  # column for the reason
    duplicates: str
    model_class: type[LabelModel]
    settings: dict[str, Any]  # of the model

    @property
    def plain_settings(self) -> dict[str, Any]:
        """The model's class and settings as plain values, those of nested objects as windows__beta."""
        plain: dict[str, Any] = {"model": self.model_class.__name__}
        for name, value in self.settings.items():
            is_nested = hasattr(value, "to_dict")
            plain |= {f"{name}__{key}": part for key, part in value.to_dict().items()} if is_nested else {name: value}
        return plain

    @cached_property
    def form(self) -> VoteFormat:
        """The declared format of the votes."""
        return declare_votes(*(self.settings[name] for name in ("votes", "n_classes", "classes", "abstain")))

    def new_model(self) -> LabelModel:
        """A model that has seen nothing and takes class codes, which tasks have made of the votes."""
        # Tasks use one core each. Drift events are no output; they are looked for only where windows begin anew after
        # them, and not in one long stream, whose blocks cannot know of the events before them.
        codes = {"votes": "snorkel", "n_classes": self.form.n_classes, "classes": None, "abstain": None}
        is_needed = bool(self.key) and getattr(self.settings.get("windows"), "restarts", False)
        rate = self.settings["false_event_rate"] if is_needed else None
        return self.model_class(**self.settings | codes | {"n_jobs": 1, "false_event_rate": rate})

    @property
    def place(self) -> tuple[str, ...]:
        """Columns that say where a row belongs: stream, time, order."""
        return tuple(dict.fromkeys((*self.key, self.time, *self.order)))

    @property
    def passing(self) -> tuple[str, ...]:
        """Columns that the result takes over from the input."""
        return tuple(dict.fromkeys((*self.key, self.time, *self.keep)))

    @property
    def read(self) -> tuple[str, ...]:
        """Columns that are sent to tasks, each once, whatever the number of its roles."""
        return tuple(dict.fromkeys((*self.place, *self.keep, *self.labelers)))

    @property
    def sorting(self) -> tuple[str, ...]:
        """Columns to sort by. The votes come last, so that rows of one place have the same order in every run."""
        return tuple(dict.fromkeys((*self.place, *self.labelers)))

    @cached_property
    def output_types(self) -> dict[str, str]:
        """Spark types of the requested outputs."""
        types = {"label": _label_type(self.form), "probability": "double", ERROR_BOUND: "double"}
        types |= {"window": "bigint", "n_votes": "int"}
        return {name: types.get(name, "array<double>") for name in self.outputs}

    @property
    def arrow_types(self) -> dict[str, pa.DataType]:
        """Arrow types of the requested outputs."""
        return {name: _ARROW_TYPES[kind] for name, kind in self.output_types.items()}

    @property
    def added(self) -> dict[str, str]:
        """Names and Spark types of the columns that the result has besides `passing`."""
        added = {self.prefix + name: kind for name, kind in self.output_types.items()}
        return added if self.rejected is None else added | {self.rejected: "string"}

    def schema(self, frame: DataFrame) -> StructType:
        """The columns of the result, as Spark expects them."""
        from pyspark.sql.types import DataType, StructField, StructType

        fields = {field.name: field for field in frame.schema.fields}
        passing = [StructField(name, fields[name].dataType, True) for name in self.passing]
        added = [StructField(name, DataType.fromDDL(kind), True) for name, kind in self.added.items()]
        return StructType(passing + added)

    # Columns are sent to tasks as c0, c1, ..., because Spark's Python functions cannot take names with dots.

    def sent(self) -> list[Column]:
        """The columns in `read`, renamed for sending."""
        return [column(name).alias(alias) for name, alias in zip(self.read, self.aliases(self.read), strict=True)]

    def aliases(self, names: Iterable[str]) -> list[str]:
        """Names of columns while they are sent."""
        return [f"c{self.read.index(name)}" for name in names]

    def received(self, batches: Iterable[pa.RecordBatch], *more: str) -> Iterator[pa.RecordBatch]:
        """Batches under their own names again; `more` are columns behind those in `read`."""
        for batch in batches:
            yield batch.rename_columns([*self.read, *more])


def make_job(
    frame: DataFrame,
    *,
    key: str | Sequence[str] | None,
    time: str,
    labelers: Sequence[str] | None,
    model: LabelModel | None,
    keep: Sequence[str] = (),
    order: Sequence[str] = (),
    outputs: Sequence[str] = DEFAULT_OUTPUTS,
    prefix: str = "",
    rejected: str | None = None,
    duplicates: str = "error",
) -> LabelJob:
    """The job, after every check that is possible before a row is read."""
    types = _column_types(frame)
    model = AdaptiveLabelModel() if model is None else model
    if not isinstance(model, LabelModel):
        raise SettingError(f"model must be a label model such as AdaptiveLabelModel(), not {type(model).__name__}")
    if model.n_rows:
        raise SettingError(
            f"the model has learned from {model.n_rows} rows, but every stream on Spark starts with a new model;"
            " pass model.clone(), which has the same settings"
        )
    if duplicates not in DUPLICATES:
        raise SettingError(f"duplicates must be 'error' or 'sort', not {duplicates!r}")
    settings = model.get_params(deep=False)
    names = _labeler_names(settings["labelers"], labelers)
    job = LabelJob(
        key=() if key is None else _column_names("key", key),
        time=_column_names("time", time)[0],
        order=_column_names("order", order),
        labelers=names,
        keep=_column_names("keep", keep),
        outputs=_output_names(outputs, model),
        prefix=prefix,
        rejected=rejected,
        duplicates=duplicates,
        model_class=type(model),
        settings=settings | {"labelers": list(names)},
    )
    job.new_model()  # refuses labelers that do not fit the settings
    _label_type(job.form)
    _check_columns(job, types)
    for name in job.labelers:
        _check_votes(name, types[name], job.form)
    _check_new_names(job)
    return job


def column(name: str) -> Column:
    """A column by its name, which may contain dots, spaces and backticks."""
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def _column_types(frame: DataFrame) -> dict[str, str]:
    """Spark's names of the types, by column."""
    seen: set[str] = set()
    for name in frame.columns:
        if name.casefold() in seen:
            raise VoteError(
                f"the DataFrame has column {name!r} twice (Spark does not distinguish A from a); rename one of them"
            )
        seen.add(name.casefold())
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _column_names(role: str, names: object) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if isinstance(names, str):
        return (names,)
    several = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(name, str) for name in several) or (role in ("key", "time") and not several):
        raise SettingError(f"{role} must be a column name or a list of them, not {names!r}")
    return several


def _labeler_names(declared: list[str] | None, given: Sequence[str] | None) -> tuple[str, ...]:
    """The columns with votes: those of `labelers=`, or those that the model declares."""
    if given is None and declared is None:
        raise LabelerError("labelers= must name the columns with votes, such as labelers=['a', 'b', 'c']")
    names = tuple(declared or ()) if given is None else Roster.declared(given).names
    if declared is not None and names != tuple(declared):
        raise LabelerError(
            f"labelers={list(names)} and the model's labelers={list(declared)} differ; leave one of them out"
        )
    return names


def _output_names(names: Sequence[str], model: LabelModel) -> tuple[str, ...]:
    available = (*OUTPUTS, ERROR_BOUND) if isinstance(model, CommitteeLabelModel) else OUTPUTS
    requested = _column_names("outputs", names)
    for name in requested:
        if name not in available:
            raise SettingError(
                f"outputs has {name!r}, but the outputs of {type(model).__name__} are {', '.join(available)}"
            )
    return tuple(dict.fromkeys(requested))


def _check_columns(job: LabelJob, types: dict[str, str]) -> None:
    roles = {"key": job.key, "time": (job.time,), "order": job.order, "labelers": job.labelers, "keep": job.keep}
    for role, names in roles.items():
        for name in names:
            if name not in types:
                raise VoteError(f"{role}={name!r}: the DataFrame has no such column; it has {', '.join(types)}")
    for role in ("key", "time", "order"):
        for name in roles[role]:
            allowed = _TIMES if role == "time" else _KEYS
            kind = types[name]
            if " collate " in kind:
                raise VoteError(f"{role}={name!r} is a {kind}, which treats unequal text as equal; cast it to string")
            if kind.partition("(")[0] not in allowed:
                raise VoteError(f"{role}={name!r} is a {kind}; it must be a {', '.join(allowed)}; cast it first")
            if name in job.labelers and role != "order":
                raise VoteError(f"{name!r} is the {role} and a labeler; take it out of labelers")
    if job.time in job.key:
        raise VoteError(f"{job.time!r} is the key and the time; name two columns")


def _check_votes(name: str, kind: str, form: VoteFormat) -> None:
    """Refuse a column whose type cannot hold votes of the declared format."""
    base = kind.partition("(")[0]
    if base == "void":
        return
    if all(isinstance(value, bool) for value in form.classes):
        fits, needed = base == "boolean", "boolean"
    elif all(isinstance(value, str) for value in form.classes):
        fits, needed = base == "string", "string"
    else:
        fits, needed = base in _NUMBERS or (base == "boolean" and form.name == "snorkel"), "a number"
    if not fits:
        raise VoteError(
            f"labelers: column {name!r} is a {kind}, but the votes are declared as {form.describe()}, for which it must"
            f" be {needed}; declare its values with classes=[...], cast the column, or take it out of labelers"
        )


def _label_type(form: VoteFormat) -> str:
    """The Spark type of labels, by the class values."""
    kinds = {"bigint" if type(value) is int else type(value).__name__ for value in form.classes}
    names = {"bigint": "bigint", "str": "string", "bool": "boolean", "float": "double"}
    if kinds == {"bigint", "float"}:
        return "double"
    if len(kinds) > 1 or not kinds <= set(names):
        raise SettingError(
            f"classes {list(form.classes)!r} cannot share one Spark column; declare all as text or all as numbers"
        )
    return names[kinds.pop()]


def _check_new_names(job: LabelJob) -> None:
    names = {name.casefold(): name for name in job.passing}
    new = [job.prefix + output for output in job.outputs]
    for name in new if job.rejected is None else [*new, job.rejected]:
        if name.casefold() in names:
            raise SettingError(
                f"{names[name.casefold()]!r} would be the name of two columns of the result; rename it, or put"
                " something before the new names with prefix="
            )
        names[name.casefold()] = name
