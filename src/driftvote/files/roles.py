"""Which column is what: labelers, time, id, stream, gold, and what only passes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from driftvote.files.arrays_in import ArraysTable
from driftvote.files.table import Table, shown_names

TRUTH_WORDS = frozenset(["gold", "truth", "ground_truth", "y_true", "gold_label", "true_label"])
"""Columns that nobody means as a labeler: learning from the truth unawares would look like a miracle."""


@dataclass(frozen=True)
class Asked:
    """What the caller said about the columns."""

    labelers: Sequence[str] = ()
    id: str | None = None
    time: str | None = None
    stream: str | None = None
    gold: str | None = None
    verified: str | None = None
    keep: Sequence[str] = ()
    drop: Sequence[str] = ()
    task: str | None = None
    labeler: str | None = None
    label: str | None = None
    text: Sequence[str] = field(default=())

    @property
    def long(self) -> bool:
        return any(name is not None for name in (self.task, self.labeler, self.label))


@dataclass(frozen=True)
class Roles:
    """Every column's part; `kept` pass through to the output, in the order of the file."""

    labelers: tuple[str, ...]
    kept: tuple[str, ...]
    time: str | None = None
    id: str | None = None
    stream: str | None = None
    gold: str | None = None
    task: str = ""
    labeler: str = ""
    label: str = ""
    verified: str | None = None

    @property
    def long(self) -> bool:
        return bool(self.task)


def roles_of(table: Table, asked: Asked) -> Roles:
    """The roles in a table, or an error that names the column."""
    if asked.long:
        if asked.verified:
            raise table.error(
                "--gold-for-learning goes with a column for each labeler; convert the file first: driftvote convert"
            )
        return _long_roles(table, asked)
    if not asked.labelers:
        table.complete()
    named = [asked.id, asked.time, asked.stream, asked.gold, asked.verified, *asked.keep, *asked.drop]
    table.require([*named, *asked.text])
    labelers = _labelers(table, asked, {name for name in named if name})
    both = next((name for name in labelers if name in named), None)
    if both:
        raise table.error(f"column {both!r} is named as a labeler and as something else; give it one role")
    if len(labelers) < 3:
        raise table.error(
            f"at least 3 labelers are needed, and there are {len(labelers)} ({shown_names(labelers) or 'none'});"
            f" its columns are {shown_names(table.names)}; for one vote a line pass --task, --labeler and --label"
        )
    refuse_containers(table, [*labelers, *(name for name in (asked.gold, asked.verified) if name)])
    kept = tuple(name for name in table.names if name not in labelers and name not in asked.drop)
    return Roles(tuple(labelers), kept, asked.time, asked.id, asked.stream, asked.gold, verified=asked.verified)


def refuse_containers(table: Table, columns: Sequence[str]) -> None:
    """Votes are single values."""
    import pyarrow as pa

    for name in columns:
        kind = table.type_of(name)
        if kind is None:
            continue
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise table.error(f"column {name!r} holds {kind}, not votes; leave it out with --drop {name}")


def _labelers(table: Table, asked: Asked, set_aside: set[str]) -> list[str]:
    if not asked.labelers:
        if isinstance(table, ArraysTable):
            return [name for name in table.labelers if name not in set_aside]
        found = [name for name in table.names if name not in set_aside]
        for name in found:
            if name.lower() in TRUTH_WORDS:
                raise table.error(
                    f"column {name!r} looks like the truth, not like a labeler; pass --gold {name}, or name the"
                    " labelers"
                    " with --labelers"
                )
        return found
    if isinstance(table, ArraysTable):
        return list(table.labelers)  # the names were given to its columns
    found = []
    for pattern in asked.labelers:
        names = [pattern] if pattern in table.names else [name for name in table.names if fnmatchcase(name, pattern)]
        if not names:
            table.require([pattern])
        found += [name for name in names if name not in found]
    return found


def _long_roles(table: Table, asked: Asked) -> Roles:
    for option, name in (("--task", asked.task), ("--labeler", asked.labeler), ("--label", asked.label)):
        if name is None:
            raise table.error(f"one vote a line needs --task, --labeler and --label; {option} is missing")
    if asked.labelers:
        raise table.error(
            "--labelers names the columns of a wide file; with one vote a line they are the values of --labeler"
        )
    task, labeler, label = str(asked.task), str(asked.labeler), str(asked.label)
    table.require([asked.task, asked.labeler, asked.label, asked.time, asked.stream, asked.gold, *asked.text])
    refuse_containers(table, [task, labeler, label, *([asked.gold] if asked.gold else [])])
    known = [asked.task, asked.labeler, asked.label, asked.time, asked.stream, asked.gold]
    names = [name for name in known if name is not None]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice:
        raise table.error(f"column {twice!r} is named twice; give it one role")
    kept = [name for name in (asked.stream, asked.task, asked.time, asked.gold) if name and name not in asked.drop]
    return Roles((), tuple(kept), asked.time, asked.task, asked.stream, asked.gold, task, labeler, label)
