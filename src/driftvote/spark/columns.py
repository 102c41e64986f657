"""Columns of a Spark DataFrame: which is what, whether their types can be that, and what comes out.

All of this happens on the driver, before a job begins. Tasks get a `Plan`, which is plain values: settings and names,
never a model with its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from driftvote.errors import LabelerError, SettingError, VoteError
from driftvote.models import AdaptiveLabelModel, CommitteeLabelModel, LabelModel
from driftvote.votes import Roster, VoteFormat

OUTPUTS = (
    "label", "probability", "proba", "window", "n_votes", "accuracies", "diluted_accuracies", "weights", "coverage",
)  # fmt: skip
"""What can be asked for: the words of `LabeledStream`, for one row."""

CERTIFIED = "error_bound"
"""The same, of models with certificates."""

USUAL = ("label", "probability", "proba", "window", "n_votes")

DUPLICATES = ("error", "sort")

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TIMES = (*_NUMBERS, "date", "timestamp", "timestamp_ntz", "string")
_KEYS = (*_TIMES, "boolean", "binary")


@dataclass(frozen=True)
class Recipe:
    """How tasks make a model: its class and its settings."""

    kind: type[LabelModel]
    settings: dict[str, Any]

    def new(self) -> LabelModel:
        """A model that has seen nothing. It looks for no events: they are not among the outputs."""
        model = self.kind(**self.settings)
        vars(model).update(false_event_rate=None)
        return model

    @cached_property
    def form(self) -> VoteFormat:
        return self.new()._form

    @cached_property
    def voters(self) -> tuple[str, ...]:
        """Names behind the arrays of accuracies, weights and coverage: labelers, or families of them."""
        return self.new().labelers


@dataclass(frozen=True)
class Plan:
    """Everything that a task needs to know."""

    key: tuple[str, ...]  # none: one stream
    time: str
    order: tuple[str, ...]
    labelers: tuple[str, ...]
    keep: tuple[str, ...]
    outputs: tuple[str, ...]
    prefix: str
    rejected: str | None  # column for the reason
    duplicates: str
    model: Recipe

    @property
    def place(self) -> tuple[str, ...]:
        """Columns that say where a row belongs, in the order by which rows are sorted."""
        return tuple(dict.fromkeys((*self.key, self.time, *self.order)))

    @property
    def passing(self) -> tuple[str, ...]:
        """Columns that pass through."""
        return tuple(dict.fromkeys((*self.key, self.time, *self.keep)))

    @property
    def read(self) -> tuple[str, ...]:
        """Columns that a task gets; a column may have several parts to play and is sent once."""
        return tuple(dict.fromkeys((*self.place, *self.keep, *self.labelers)))

    @property
    def sorting(self) -> tuple[str, ...]:
        """Columns to sort by. The votes come last: rows that nothing else tells apart must not come in an order that
        changes from one run to the next."""
        return tuple(dict.fromkeys((*self.place, *self.labelers)))


def make_plan(
    frame: Any,
    *,
    key: str | Sequence[str] | None,
    time: str,
    labelers: Sequence[str] | None,
    model: LabelModel | None,
    keep: Sequence[str] = (),
    order: Sequence[str] = (),
    outputs: Sequence[str] = USUAL,
    prefix: str = "",
    rejected: str | None = None,
    duplicates: str = "error",
) -> Plan:
    """Check everything that can be known before a row is read."""
    types = column_types(frame)
    model = AdaptiveLabelModel() if model is None else model
    if not isinstance(model, LabelModel):
        raise SettingError(f"model must be a label model such as AdaptiveLabelModel(), not {type(model).__name__}")
    keys = () if key is None else _names("key", key)
    if duplicates not in DUPLICATES:
        raise SettingError(f"duplicates must be 'error' or 'sort', not {duplicates!r}")
    plan = Plan(
        key=keys,
        time=_names("time", time)[0],
        order=_names("order", order),
        labelers=_labelers(model, labelers),
        keep=_names("keep", keep),
        outputs=_outputs(outputs, model),
        prefix=prefix,
        rejected=rejected,
        duplicates=duplicates,
        model=_recipe(model, _labelers(model, labelers)),
    )
    _check_columns(plan, types)
    for name in plan.labelers:
        _check_votes(name, types[name], plan.model.form)
    _check_new_names(plan)
    return plan


def column_types(frame: Any) -> dict[str, str]:
    """Spark's names of the types, by column."""
    names = list(frame.columns)
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name for place, name in enumerate(names) if name.casefold() in folded[:place])
        raise VoteError(f"the DataFrame has column {twice!r} twice (Spark does not tell A from a); rename one of them")
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _names(what: str, names: Any) -> tuple[str, ...]:
    """One name, or several."""
    if isinstance(names, str):
        return (names,)
    found = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(name, str) for name in found) or (what in ("key", "time") and not found):
        raise SettingError(f"{what} must be a column name or a list of them, not {names!r}")
    return found


def _labelers(model: LabelModel, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The columns with votes: those that are named, or those that the model declares."""
    declared = model.get_params()["labelers"]
    if asked is None and declared is None:
        raise LabelerError("labelers= must name the columns with votes, such as labelers=['a', 'b', 'c']")
    names = tuple(declared) if asked is None else Roster.declared(asked).names
    if declared is not None and names != tuple(declared):
        raise LabelerError(
            f"labelers={list(names)} and the model's labelers={list(declared)} differ; leave one of them out"
        )
    return names


def _recipe(model: LabelModel, labelers: tuple[str, ...]) -> Recipe:
    if model.n_rows:
        raise SettingError(
            f"the model has learned from {model.n_rows} rows, and here every stream begins with nothing known;"
            " pass model.clone(), which has the same settings"
        )
    settings = model.get_params() | {"labelers": list(labelers)}
    if "n_jobs" in settings:
        settings["n_jobs"] = 1  # Spark gives a task one core
    recipe = Recipe(type(model), settings)
    _label_type(recipe.form)
    return recipe


def _outputs(names: Sequence[str], model: LabelModel) -> tuple[str, ...]:
    known = (*OUTPUTS, CERTIFIED) if isinstance(model, CommitteeLabelModel) else OUTPUTS
    found = _names("outputs", names)
    for name in found:
        if name not in known:
            raise SettingError(f"outputs has {name!r}, which {type(model).__name__} does not give: {', '.join(known)}")
    return tuple(dict.fromkeys(found))


def _check_columns(plan: Plan, types: dict[str, str]) -> None:
    asked = {"key": plan.key, "time": (plan.time,), "order": plan.order, "labelers": plan.labelers, "keep": plan.keep}
    for what, names in asked.items():
        for name in names:
            if name not in types:
                raise VoteError(f"{what}={name!r}: the DataFrame has no such column; it has {', '.join(types)}")
    for what in ("key", "time", "order"):
        for name in asked[what]:
            allowed = _TIMES if what == "time" else _KEYS
            kind = types[name]
            if " collate " in kind:
                raise VoteError(f"{what}={name!r} is a {kind}, which takes unequal text for equal; cast it to string")
            if kind.partition("(")[0] not in allowed:
                raise VoteError(f"{what}={name!r} is a {kind}; it must be a {', '.join(allowed)}; cast it first")
            if name in plan.labelers and what != "order":
                raise VoteError(f"{name!r} is the {what} and a labeler; take it out of labelers")
    if plan.time in plan.key:
        raise VoteError(f"{plan.time!r} is the key and the time; name two columns")


def _check_votes(name: str, kind: str, form: VoteFormat) -> None:
    """Whether a column of this type can hold votes of the declared format."""
    base = kind.partition("(")[0]
    if base == "void":
        return
    classes = form.classes
    if all(isinstance(value, bool) for value in classes):
        fits, needed = base == "boolean", "boolean"
    elif all(isinstance(value, str) for value in classes):
        fits, needed = base == "string", "string"
    else:
        fits, needed = base in _NUMBERS or (base == "boolean" and form.name == "snorkel"), "a number"
    if not fits:
        raise VoteError(
            f"labelers: column {name!r} is a {kind}, but the votes are declared as {form.describe()}, for which it must"
            f" be {needed}; declare its values with classes=[...], cast the column, or take it out of labelers"
        )


def _label_type(form: VoteFormat) -> str:
    """The type of the label column, by the class values."""
    kinds = {"bigint" if type(value) is int else type(value).__name__ for value in form.classes}
    names = {"bigint": "bigint", "str": "string", "bool": "boolean", "float": "double"}
    if kinds == {"bigint", "float"}:
        return "double"
    if len(kinds) > 1 or not kinds <= set(names):
        raise SettingError(
            f"classes {list(form.classes)!r} cannot share one Spark column; declare all as text or all as numbers"
        )
    return names[kinds.pop()]


def output_types(plan: Plan) -> dict[str, str]:
    """Names and types of what is added to the columns that pass through."""
    kinds = {"label": _label_type(plan.model.form), "probability": "double", "window": "bigint", "n_votes": "int"}
    kinds[CERTIFIED] = "double"
    added = {plan.prefix + name: kinds.get(name, "array<double>") for name in plan.outputs}
    return added if plan.rejected is None else added | {plan.rejected: "string"}


def _check_new_names(plan: Plan) -> None:
    there = {name.casefold(): name for name in plan.passing}
    for name in (*(plan.prefix + output for output in plan.outputs), *((plan.rejected,) if plan.rejected else ())):
        if name.casefold() in there:
            raise SettingError(
                f"{there[name.casefold()]!r} would be the name of two columns of the result; rename it, or put"
                " something before the new names with prefix="
            )
        there[name.casefold()] = name


def output_schema(frame: Any, plan: Plan) -> Any:
    """The result's columns, as Spark wants them said."""
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    fields = {field.name: field for field in frame.schema.fields}
    passing = [StructField(name, fields[name].dataType, True) for name in plan.passing]
    added = [StructField(name, _parse_datatype_string(kind), True) for name, kind in output_types(plan).items()]
    return StructType(passing + added)


def column(name: str) -> Any:
    """A column by its name, dots, spaces and backticks included."""
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def columns(names: Iterable[str]) -> list[Any]:
    """Columns by their names."""
    return [column(name) for name in names]
