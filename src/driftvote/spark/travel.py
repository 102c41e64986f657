"""How rows travel to a task: under numbers, because Spark's Python functions stumble over a dot in a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from driftvote.spark.columns import Plan, column


def travelling(plan: Plan) -> list[Any]:
    """The columns that a task gets, under the names they travel by."""
    return [column(name).alias(alias) for name, alias in zip(plan.read, aliases(plan, plan.read), strict=True)]


def aliases(plan: Plan, names: Iterable[str]) -> list[str]:
    """Names by which columns travel."""
    return [f"c{plan.read.index(name)}" for name in names]


def named_again(batches: Iterable[Any], plan: Plan, *more: str) -> Iterator[Any]:
    """Batches that have arrived, under their own names; `more` came behind the plan's columns."""
    for batch in batches:
        yield batch.rename_columns([*plan.read, *more])
