"""Good rows in Spark's own words, so that they can be counted without Python; `rows.RowReader` has the sentences."""

from __future__ import annotations

from functools import reduce
from typing import Any

from driftvote.spark.columns import Plan, column, column_types
from driftvote.votes import VoteFormat


def is_good(frame: Any, plan: Plan) -> Any:
    """Whether a row has a time and votes with a meaning; never null."""
    from pyspark.sql import functions

    types = column_types(frame)
    tests = [column(plan.time).isNotNull() & ~_is_nan(plan.time, types[plan.time])]
    tests += [_is_vote(name, types[name], plan.model.form) for name in plan.labelers]
    return functions.coalesce(reduce(lambda left, right: left & right, tests), functions.lit(False))


def _is_nan(name: str, kind: str) -> Any:
    from pyspark.sql import functions

    return functions.isnan(column(name)) if kind in ("float", "double") else functions.lit(False)


def _is_vote(name: str, kind: str, form: VoteFormat) -> Any:
    from pyspark.sql import functions

    value = column(name)
    if kind == "void" or (kind == "boolean" and form.name == "snorkel"):
        return functions.lit(True)
    if form.name == "snorkel":
        meant = value.between(-1, form.n_classes - 1) & (value == functions.floor(value))
    else:
        alike = str if kind == "string" else bool if kind == "boolean" else (int, float)
        meant = value.isin([known for known in form.codes if isinstance(known, alike)])
    return value.isNull() | _is_nan(name, kind) | meant
