"""From options to batches of votes: open the file, settle roles and classes, read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from driftvote.cli.options import Given, listed
from driftvote.errors import DriftvoteError
from driftvote.files.found_classes import declared_format, find_format, shown_classes
from driftvote.files.opening import opened
from driftvote.files.roles import Asked, Roles, roles_of
from driftvote.files.rows import VoteReader, VoteRows, only_stream
from driftvote.files.table import Table
from driftvote.votes import VoteFormat


@dataclass(frozen=True)
class Votes:
    """An open file of votes with everything that was settled about it."""

    given: Given
    table: Table
    roles: Roles
    form: VoteFormat
    declared: bool
    notes: tuple[str, ...]

    def batches(self, typed: bool) -> Iterator[VoteRows]:
        """Rows in the order in which they are labeled; `typed` for outputs that know numbers from text."""
        given, as_text = self.given, listed(self.given.text)
        if self.roles.long:
            from driftvote.files.long_in import LongReader

            yield from self._chosen(iter(LongReader(self.table, self.roles, self.form, typed, as_text)))
            return
        rows = self._chosen(iter(VoteReader(self.table, self.roles, self.form, typed, as_text)))
        if given.sort:
            from driftvote.files.sorting import sorted_rows

            rows = sorted_rows(rows, by_stream=self.many)
        yield from rows

    def _chosen(self, rows: Iterator[VoteRows]) -> Iterator[VoteRows]:
        return rows if self.given.only is None else only_stream(rows, self.given.only, self.table)

    @property
    def many(self) -> bool:
        """Whether there may be several streams."""
        return self.roles.stream is not None and self.given.only is None

    def how_read(self) -> str:
        """Classes and where they come from, for the summary."""
        return f"{shown_classes(self.form)} ({'declared' if self.declared else 'found in the file'})"

    def describe(self) -> dict[str, Any]:
        """What was read and how, for reports and JSON."""
        roles = self.roles
        named = {"id": roles.id, "time": roles.time or None, "stream": roles.stream, "gold": roles.gold}
        return {
            "file": self.table.shown,
            "layout": "long" if roles.long else "wide",
            "classes": list(self.form.classes),
            "abstain": self.form.abstain,
            "classes_from": "declared" if self.declared else "file",
            "columns": {key: value for key, value in named.items() if value},
        }


@contextmanager
def votes_in(given: Given, form: VoteFormat | None = None) -> Iterator[Votes]:
    """Open a file of votes; `form` is that of a saved state, which the file must keep to."""
    _check(given)
    declared = declared_format(given.votes, given.n_classes, _classes(given), given.abstain if given.classes else None)
    if (
        form is not None
        and declared is not None
        and (declared.classes, declared.abstain) != (form.classes, form.abstain)
    ):
        raise DriftvoteError(
            f"the state reads classes {shown_classes(form)}, the options declare {shown_classes(declared)}; leave"
            " them out,"
            " or begin a new state"
        )
    labelers = listed(given.labelers)
    with opened(given.file, given.format, given.delimiter, given.encoding, labelers) as table:
        roles = roles_of(table, _asked(given))
        if roles.long and given.in_order:
            roles = replace(roles, time="")
        known = form or declared or _stored_format(table, given)
        notes: list[str] = []
        if known is None:
            columns = [roles.label] if roles.long else list(roles.labelers)
            known, notes = find_format(table, columns, given.abstain)
        yield Votes(given, table, roles, known, form is not None or declared is not None, tuple(notes))


def _stored_format(table: Table, given: Given) -> VoteFormat | None:
    """Class values that an NPZ brings along for its codes."""
    classes = getattr(table, "classes", None)
    if classes is None or given.abstain is not None:
        return None
    if list(classes) == list(range(len(classes))):
        return declared_format("snorkel", len(classes), None, None)
    return declared_format(None, None, [str(value) for value in classes], None)


def _asked(given: Given) -> Asked:
    return Asked(
        labelers=listed(given.labelers),
        id=given.id,
        time=given.time,
        stream=given.stream,
        gold=given.gold,
        verified=given.gold_for_learning,
        keep=listed(given.keep),
        drop=listed(given.drop),
        task=given.task,
        labeler=given.labeler,
        label=given.label,
        text=listed(given.text),
    )


def _classes(given: Given) -> list[str] | None:
    return None if given.classes is None else listed(given.classes)


def _check(given: Given) -> None:
    """Options that need each other."""
    if given.only is not None and given.stream is None:
        raise DriftvoteError("--only names one stream; name the column of streams too with --stream")
    if given.sort and given.time is None:
        raise DriftvoteError("--sort needs --time, the column to sort by")
    if given.in_order and given.time is not None:
        raise DriftvoteError("--in-order and --time both say what the order is; pass one of them")
    if given.votes == "signed" and given.abstain is not None:
        raise DriftvoteError("--votes signed has its own value for no vote, 0; leave --abstain out")
    if given.encoding != "utf-8" and given.format not in (None, "csv", "tsv"):
        raise DriftvoteError(f"--encoding is for CSV and TSV, not for {given.format}")
