"""Classes that nobody declared, found in one pass over the file and echoed to the user.

Text: the distinct values, sorted. Whole numbers: 0 .. the largest, and -1 abstains (the Snorkel format, as everywhere
in driftvote); 1 .. the largest if there is neither a 0 nor a -1. What cannot be meant as votes is refused: columns with
a different value in every row, fractions, numbers among text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from driftvote.errors import DriftvoteError, VoteError
from driftvote.files.table import Table, shown_names
from driftvote.votes import EMPTY_WORDS, VoteFormat, declare_votes, parse_number

MOST = 1000
"""Classes that are found by themselves; more must be declared."""

JUDGE_FROM = 20
"""Rows from which a column with hardly a value twice is held to be no labeler."""

ABSTAIN_WORDS = frozenset(["abstain", "none", "unknown", "?", "-", "n/a", "skip", "unsure"])


@dataclass
class Found:
    """What a column holds: whole numbers by their range, anything else by its distinct values."""

    column: str
    low: int | None = None
    high: int | None = None
    texts: dict[str, None] = field(default_factory=dict)  # in order of appearance
    fraction: Any = None
    zero: bool | None = False  # whether 0 occurs; None if nobody looked

    def add_range(self, low: int, high: int) -> None:
        self.zero = self.zero or low == 0
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


def find_format(table: Table, columns: Sequence[str], abstain: str | None) -> tuple[VoteFormat, list[str]]:
    """The format of votes in these columns, and notes for the user."""
    found = [Found(name) for name in columns]
    ranges = {name: table.limits(name) for name in columns}
    for entry in found:
        limits = ranges[entry.column]
        if limits is not None:
            entry.add_range(*limits)
            entry.zero = None
    rest = [name for name in columns if ranges[name] is None]
    wide = [name for name, limits in ranges.items() if limits and limits[1] - limits[0] >= JUDGE_FROM]
    _look(table, found, rest, wide, abstain)
    if all(entry.low is None and not entry.texts for entry in found):
        raise _no_votes(table, columns)
    _refuse_mixtures(table, found)
    if any(entry.texts for entry in found):
        return _text_format(table, found, abstain)
    return _number_format(table, found, abstain)


def _look(table: Table, found: list[Found], rest: list[str], wide: list[str], abstain: str | None) -> None:
    """One pass over the columns that the file tells nothing about; of the others, the first batch if they are
    suspicious."""
    by_name = {entry.column: entry for entry in found}
    names = [*rest, *wide]
    if not names:
        return
    skip = set() if abstain is None else {abstain}
    for place, batch in enumerate(table.batches(names, names)):
        if place == 0:
            for name in names:
                _refuse_an_id(table, name, batch.column(name))
        if not rest:
            return
        for name in rest:
            _collect(table, by_name[name], batch.column(name), skip)


def _collect(table: Table, entry: Found, array: Any, skip: set[str]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(array.type) and not skip:
        ends = pc.min_max(array).as_py()
        if ends["min"] is not None:
            entry.add_range(ends["min"], ends["max"])
            entry.zero = entry.zero or pc.any(pc.equal(array, 0)).as_py()
        return
    values = pc.unique(array)  # a dictionary may name more than occurs
    if len(values) > MOST:
        raise _too_many(table, entry.column)
    for value in values.to_pylist():
        _take(entry, value, skip)
    if len(entry.texts) > MOST:
        raise _too_many(table, entry.column)


def _take(entry: Found, value: Any, skip: set[str]) -> None:
    if isinstance(value, bool):
        entry.add_range(int(value), int(value))
        return
    text = "" if value is None else str(value).strip()
    if text in EMPTY_WORDS or text in skip:
        return
    number = parse_number(text)
    if number is None:
        entry.texts.setdefault(text)
    elif isinstance(number, float):
        entry.fraction = entry.fraction or text
    elif str(number) not in skip:
        entry.add_range(number, number)


def _refuse_an_id(table: Table, column: str, array: Any) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.indices
    cells = len(array) - array.null_count
    if cells >= JUDGE_FROM and pc.count_distinct(array).as_py() > cells // 2:
        raise VoteError(
            f"{table.shown}: column {column!r} holds a different value in nearly every row, so it is no labeler;"
            f" set it aside with --keep {column} (or --id, --time), or name the labelers with --labelers"
        )


def _refuse_mixtures(table: Table, found: list[Found]) -> None:
    for entry in found:
        if entry.fraction is not None:
            raise VoteError(
                f"{table.shown}: {_where(table, entry.column, entry.fraction)}column {entry.column!r}:"
                f" {entry.fraction} is no"
                " class; votes are classes. Declare them with --classes, or set the column aside with --keep"
                f" {entry.column}"
            )
    texts = [entry for entry in found if entry.texts]
    numbers = [entry for entry in found if entry.low is not None]
    if not texts or not numbers:
        _refuse_strangers(table, texts)
        return
    # What fewer columns hold is the odd one, first of all in a column that holds both.
    few, many = (numbers, texts) if len(numbers) <= len(texts) else (texts, numbers)
    odd = next((entry for entry in few if entry.texts and entry.low is not None), few[0])
    value, other = (
        (str(odd.low), next(iter(texts[0].texts))) if few is numbers else (next(iter(odd.texts)), numbers[0].low)
    )
    raise VoteError(
        f"{table.shown}: {_where(table, odd.column, value)}column {odd.column!r}: {value!r} among votes such as"
        f" {other!r}"
        f" (column {many[0].column!r}): numbers and text are mixed; correct it, declare all with --classes, say"
        " --abstain"
        f" {value}, or set a column that is no labeler aside with --keep"
    )


def _refuse_strangers(table: Table, texts: list[Found]) -> None:
    """A column with several values that no other column has is about something else."""
    if len(texts) < 4:
        return
    for entry in texts:
        others = {text for other in texts if other is not entry for text in other.texts}
        if len(entry.texts) > 1 and others.isdisjoint(entry.texts):
            raise VoteError(
                f"{table.shown}: column {entry.column!r} ({shown_names(list(entry.texts), 3)}) has no value in"
                " common with the"
                f" other columns ({shown_names(sorted(others), 3)}); set it aside with --keep {entry.column}, or"
                " declare"
                " --classes if it is a labeler"
            )


def _text_format(table: Table, found: list[Found], abstain: str | None) -> tuple[VoteFormat, list[str]]:
    classes = sorted({text for entry in found for text in entry.texts})
    if len(classes) > MOST:
        raise _too_many(table, max(found, key=lambda entry: len(entry.texts)).column)
    if len(classes) == 1:
        raise VoteError(
            f"{table.shown}: every vote is {classes[0]!r}; declare all classes, such as --classes {classes[0]},other"
        )
    notes = [
        f"note: {name!r} is read as a class; if it means no vote, pass --abstain {name}"
        for name in classes
        if name.lower() in ABSTAIN_WORDS
    ]
    return declare_votes(classes=classes, abstain=abstain), notes


def _number_format(table: Table, found: list[Found], abstain: str | None) -> tuple[VoteFormat, list[str]]:
    seen = [entry for entry in found if entry.low is not None and entry.high is not None]
    low, high = min(entry.low or 0 for entry in seen), max(entry.high or 0 for entry in seen)
    wrong = next((entry for entry in seen if (entry.low or 0) < -1 or (entry.high or 0) >= MOST), None)
    if wrong is not None:
        value = wrong.low if (wrong.low or 0) < -1 else wrong.high
        raise VoteError(
            f"{table.shown}: {_where(table, wrong.column, str(value))}column {wrong.column!r}: {value} is not a"
            " class code from"
            f" 0 to {MOST - 1} or -1; declare the classes with --classes, or set the column aside with --keep"
            f" {wrong.column}"
        )
    number = None if abstain is None else parse_number(abstain)
    if abstain is not None:
        classes = [value for value in range(low, high + 1) if value != number]
        return declare_votes(classes=classes, abstain=abstain if number is None else number), []
    if (low, high) == (-1, 1) and all(entry.zero is False for entry in seen):
        raise VoteError(
            f"{table.shown}: the votes are -1 and 1, which mean two things; pass --votes signed if -1 is the"
            " negative class,"
            " or --votes snorkel if it is no vote"
        )
    if low >= 1 and high >= 2:
        return declare_votes(classes=list(range(low, high + 1))), []
    return declare_votes(n_classes=max(2, high + 1)), []


def _where(table: Table, column: str, value: str) -> str:
    """The place of the first cell that says so."""
    for row, cell in _cells(table, column):
        text = "" if cell is None else str(cell).strip()
        if text == value or (parse_number(text) is not None and str(parse_number(text)) == value):
            return f"{table.place(row)}, "
    return ""


def _cells(table: Table, column: str) -> Iterator[tuple[int, Any]]:
    row = 0
    for batch in table.batches([column], [column]):
        for cell in batch.column(0).to_pylist():
            yield row, cell
            row += 1


def _no_votes(table: Table, columns: Sequence[str]) -> DriftvoteError:
    if table.n_rows == 0 or next(_cells(table, columns[0]), None) is None:
        return table.error("there are no rows after the header; there is nothing to label")
    return VoteError(f"{table.shown}: there is not one vote in {shown_names(columns, 6)}; every cell is empty")


def _too_many(table: Table, column: str) -> VoteError:
    return VoteError(
        f"{table.shown}: column {column!r} holds more than {MOST:,} different values; if it is no labeler, set it"
        " aside with"
        f" --keep {column}, otherwise declare the classes with --classes"
    )


def declared_format(
    votes: str | None, n_classes: int | None, classes: Sequence[str] | None, abstain: str | None
) -> VoteFormat | None:
    """The format that options declare, or None if it is left to the file. Numbers are numbers, whatever is
    around them."""
    if classes is None:
        if votes is None and n_classes is None:
            return None
        return declare_votes(votes, n_classes, None, abstain)
    numbers = [parse_number(text) for text in classes]
    values: list[Any] = [text.strip() for text in classes] if None in numbers else numbers
    special: Any = abstain
    if abstain is not None and None not in numbers and parse_number(abstain) is not None:
        special = parse_number(abstain)
    return declare_votes(votes, n_classes, values, special)


def shown_classes(form: VoteFormat) -> str:
    """How votes are read, for the summary."""
    few = [str(value) for value in form.classes[:10]]
    more = "" if form.n_classes <= 10 else f" and {form.n_classes - 10} more"
    abstention = "an empty cell" if form.abstain is None else f"{form.abstain} or an empty cell"
    return f"{', '.join(few)}{more}; {abstention} is no vote"
