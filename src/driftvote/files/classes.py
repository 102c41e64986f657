"""The classes of votes: as options declare them, or found in one pass over the file.

Text: the distinct values, sorted. Whole numbers: 0 to the largest, and -1 abstains (the Snorkel format, as everywhere
in driftvote); 1 to the largest if there is neither a 0 nor a -1. Columns that cannot be votes are refused: a different
value in every row, fractions, numbers among text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from driftvote.errors import DriftvoteError, VoteError
from driftvote.files.table import Table, quote_names
from driftvote.votes import EMPTY_WORDS, VoteFormat, declare_votes, find_similar, fold_case, parse_number, show_name

MOST = 1000
"""Classes that are found without being declared; more must be declared."""

MANY = 20
"""Classes above which their number is pointed out."""

RARE = 0.001
"""Share of the votes below which a class that was found is pointed out."""

CHECK_FROM = 20
"""Rows from which a column with hardly a value twice is refused as a labeler."""

ABSTAIN_WORDS = frozenset(["abstain", "none", "unknown", "?", "-", "n/a", "skip", "unsure"])


def declare_format(
    votes: str | None, n_classes: int | None, classes: Sequence[str] | None, abstain: str | None
) -> VoteFormat | None:
    """The format that options declare, or None if it is left to the file. Classes that are all numbers are numbers."""
    if classes is None:
        if votes is None and n_classes is None:
            return None
        return declare_votes(votes, n_classes, None, abstain)
    numbers = [parse_number(text) for text in classes]
    if None in numbers:
        return declare_votes(votes, n_classes, [text.strip() for text in classes], abstain)
    number = None if abstain is None else parse_number(abstain)
    return declare_votes(votes, n_classes, numbers, abstain if number is None else number)


def describe_classes(form: VoteFormat) -> str:
    """How votes are read, for the summary of a command."""
    some = ", ".join(show_name(str(value)) for value in form.classes[:10])
    more = "" if form.n_classes <= 10 else f" and {form.n_classes - 10} more"
    abstention = "an empty cell" if form.abstain is None else f"{form.abstain} or an empty cell"
    return f"{some}{more}; {abstention} is no vote"


@dataclass
class ColumnValues:
    """The values of a column: whole numbers by their range, anything else by its distinct values."""

    name: str
    low: int | None = None
    high: int | None = None
    texts: dict[str, int] = field(default_factory=dict)  # in order of appearance, with how often they occur
    fraction: Any = None
    has_zero: bool = False

    def add_range(self, low: int, high: int) -> None:
        self.has_zero = self.has_zero or low == 0
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def add(self, value: Any, abstain: str | None, count: int = 1) -> None:
        """Add a value that occurs so often, unless it is empty or the abstention."""
        if isinstance(value, bool):
            self.add_range(int(value), int(value))
            return
        text = "" if value is None else str(value).strip()
        if text in EMPTY_WORDS or text == abstain:
            return
        number = parse_number(text)
        if number is None:
            self.texts[text] = self.texts.get(text, 0) + count
        elif isinstance(number, float):
            self.fraction = self.fraction or text
        elif str(number) != abstain:
            self.add_range(number, number)


def find_format(
    table: Table, names: Sequence[str], abstain: str | None, folded: bool = False
) -> tuple[VoteFormat, list[str]]:
    """The format of votes in these columns, and notes for the user; `folded`: case does not matter."""
    columns = {name: ColumnValues(name) for name in names}
    _collect(table, columns, abstain)
    values = list(columns.values())
    if all(column.low is None and not column.texts and column.fraction is None for column in values):
        raise _no_votes(table, names)
    _refuse_mixtures(table, values)
    if any(column.texts for column in values):
        form, notes = _text_format(table, values, abstain, folded)
    else:
        form, notes = _number_format(table, values, abstain), []
    if form.n_classes > MANY:
        notes.append(f"note: {form.n_classes} classes were found; if some are mistakes, declare --classes")
    return form, notes


def _collect(table: Table, columns: dict[str, ColumnValues], abstain: str | None) -> None:
    """One pass over the columns. (Reading the statistics of a damaged Parquet file can crash the process.)"""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = list(columns)
    for number, batch in enumerate(table.batches(names, names)):
        if number == 0:
            for name in names:
                _refuse_an_id(table, name, batch.column(name))
        for name in names:
            array, column = batch.column(name), columns[name]
            if pa.types.is_integer(array.type) and abstain is None:
                ends = pc.min_max(array).as_py()
                if ends["min"] is not None:
                    column.add_range(ends["min"], ends["max"])
                    column.has_zero = column.has_zero or pc.any(pc.equal(array, 0)).as_py()
                continue
            values = pc.value_counts(array)  # a dictionary may name more than occurs
            if len(values) <= MOST:
                for pair in values.to_pylist():
                    column.add(pair["values"], abstain, pair["counts"])
            if len(values) > MOST or len(column.texts) > MOST:
                raise _too_many(table, name)


def _refuse_an_id(table: Table, name: str, array: Any) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.indices
    cells = len(array) - array.null_count
    if cells >= CHECK_FROM and pc.count_distinct(array).as_py() > cells // 2:
        raise VoteError(
            f"{table.shown}: column {name!r} holds a different value in nearly every row, so it is no labeler;"
            f" set it aside with --keep {name} (or --id, --time), or name the labelers with --labelers"
        )


def _refuse_mixtures(table: Table, columns: list[ColumnValues]) -> None:
    for column in columns:
        if column.fraction is not None:
            raise VoteError(
                f"{table.shown}: {_find_place(table, column.name, column.fraction)}column {column.name!r}:"
                f" {column.fraction} is no class; votes are classes. Declare them with --classes, or set the column"
                f" aside with --keep {column.name}"
            )
    texts = [column for column in columns if column.texts]
    numbers = [column for column in columns if column.low is not None]
    if not texts or not numbers:
        _refuse_strangers(table, texts)
        return
    # The kind that fewer columns hold is the odd one, first of all in a column that holds both.
    few, many = (numbers, texts) if len(numbers) <= len(texts) else (texts, numbers)
    odd = next((column for column in few if column.texts and column.low is not None), few[0])
    value, other = (
        (str(odd.low), next(iter(texts[0].texts))) if few is numbers else (next(iter(odd.texts)), numbers[0].low)
    )
    raise VoteError(
        f"{table.shown}: {_find_place(table, odd.name, value)}column {odd.name!r}: {value!r} among votes such as"
        f" {other!r} (column {many[0].name!r}): numbers and text are mixed; correct it, declare all with --classes, say"
        f" --abstain {value}, or set a column that is no labeler aside with --keep"
    )


def _refuse_strangers(table: Table, texts: list[ColumnValues]) -> None:
    """Refuse a column with several values that no other column has: it is about something else."""
    if len(texts) < 4:
        return
    for column in texts:
        others = {text for other in texts if other is not column for text in other.texts}
        if len(column.texts) > 1 and others.isdisjoint(column.texts):
            raise VoteError(
                f"{table.shown}: column {column.name!r} ({quote_names(list(column.texts), 3)}) has no value in common"
                f" with the other columns ({quote_names(sorted(others), 3)}); set it aside with --keep {column.name},"
                " or declare --classes if it is a labeler"
            )


def _text_format(
    table: Table, columns: list[ColumnValues], abstain: str | None, folded: bool
) -> tuple[VoteFormat, list[str]]:
    counts: dict[str, int] = {}
    for column in columns:
        for text, count in column.texts.items():
            counts[text] = counts.get(text, 0) + count
    classes = sorted(counts)
    similar = find_similar(classes)
    if folded:  # the spelling that occurs most often names the class
        if abstain is not None:
            classes = [name for name in classes if name.casefold() != abstain.strip().casefold()]
        others = {name for group in similar for name in group if name != max(group, key=lambda name: counts[name])}
        classes = [name for name in classes if name not in others]
    if len(classes) > MOST:
        raise _too_many(table, max(columns, key=lambda column: len(column.texts)).name)
    if len(classes) == 1:
        raise VoteError(
            f"{table.shown}: every vote is {classes[0]!r}; declare all classes, such as --classes {classes[0]},other"
        )
    notes = [
        f"note: {name!r} is read as a class; if it means no vote, pass --abstain {name}"
        for name in classes
        if name.lower() in ABSTAIN_WORDS
    ]
    if folded:
        return fold_case(declare_votes(classes=classes, abstain=abstain)), notes
    for group in similar:
        names = ", ".join(f"{name!r} ({counts[name]:,})" for name in group)
        notes.append(
            f"note: {names} differ only in case and are {len(group)} classes; pass --fold-case to read them as one"
        )
    return declare_votes(classes=classes, abstain=abstain), notes


def _number_format(table: Table, columns: list[ColumnValues], abstain: str | None) -> VoteFormat:
    ranges = [
        (column, column.low, column.high) for column in columns if column.low is not None and column.high is not None
    ]
    low, high = min(low for _, low, _ in ranges), max(high for _, _, high in ranges)
    for column, lowest, highest in ranges:
        if lowest < -1 or highest >= MOST:
            value = lowest if lowest < -1 else highest
            raise VoteError(
                f"{table.shown}: {_find_place(table, column.name, str(value))}column {column.name!r}: {value} is not a"
                f" class code from 0 to {MOST - 1} or -1; declare the classes with --classes, or set the column aside"
                f" with --keep {column.name}"
            )
    if abstain is not None:
        number = parse_number(abstain)
        classes = [value for value in range(low, high + 1) if value != number]
        return declare_votes(classes=classes, abstain=abstain if number is None else number)
    if (low, high) == (-1, 1) and not any(column.has_zero for column, _, _ in ranges):
        raise VoteError(
            f"{table.shown}: the votes are -1 and 1, which mean two things; pass --votes signed if -1 is the negative"
            " class, or --votes snorkel if it is no vote"
        )
    if low >= 1 and high >= 2:
        return declare_votes(classes=list(range(low, high + 1)))
    return declare_votes(n_classes=max(2, high + 1))


def rare_classes(form: VoteFormat, votes: Sequence[int]) -> list[str]:
    """A note about classes that hardly occur, from the number of votes for each class."""
    total = sum(votes)
    rare = [(value, count) for value, count in zip(form.classes, votes, strict=True) if count < RARE * total]
    if not rare or total < 1 / RARE:
        return []
    some = ", ".join(f"{value!r} ({count:,})" for value, count in rare[:6])
    more = "" if len(rare) <= 6 else f" and {len(rare) - 6} more"
    return [
        f"note: of {total:,} votes, under {RARE:.1%} are for {some}{more}; if that is a mistake, correct it, or declare"
        " --classes"
    ]


def _find_place(table: Table, name: str, value: str) -> str:
    """The place of the first cell with this value, for a message."""
    for row, cell in _cells(table, name):
        text = "" if cell is None else str(cell).strip()
        if text == value or (parse_number(text) is not None and str(parse_number(text)) == value):
            return f"{table.place(row)}, "
    return ""


def _cells(table: Table, name: str) -> Iterator[tuple[int, Any]]:
    row = 0
    for batch in table.batches([name], [name]):
        for cell in batch.column(0).to_pylist():
            yield row, cell
            row += 1


def _no_votes(table: Table, names: Sequence[str]) -> DriftvoteError:
    if table.n_rows == 0 or next(_cells(table, names[0]), None) is None:
        return table.error("there are no rows after the header; there is nothing to label")
    return VoteError(f"{table.shown}: there is not one vote in {quote_names(names, 6)}; every cell is empty")


def _too_many(table: Table, name: str) -> VoteError:
    return VoteError(
        f"{table.shown}: column {name!r} holds more than {MOST:,} different values; if it is no labeler, set it aside"
        f" with --keep {name}, otherwise declare the classes with --classes"
    )
