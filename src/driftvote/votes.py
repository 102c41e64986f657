"""Votes and labelers: the declared format of votes, the one encoder, and the names of labelers.

Inside the package a vote is a class code 0 .. K-1, and -1 is an abstention. {-1, 0, +1} has two meanings in this field
(Snorkel: abstain, class 0, class 1; FlyingSquid: negative, abstain, positive), and the values do not tell which one is
meant. So the format is declared, never guessed, and `VoteFormat.describe` shows it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Bools, Codes, Floats, Ints, code_dtype
from driftvote.errors import LabelerError, SettingError, VoteError, VoteFormatWarning

BAD = -2
"""The code of a value that is neither a class nor an abstention. It never reaches an engine."""

MOST_CLASSES = 2**15 - 3

EMPTY_WORDS = frozenset(["", "NA", "N/A", "<NA>", "NaN", "nan", "null", "NULL"])
"""How programs write an empty cell. A word of these that is declared as a class is that class."""

_CHECK_FROM = 100  # rows from which a first batch of only -1 and +1 is refused under the assumed format
_PLAIN_FROM = 10  # single rows from which only -1 and +1 are pointed out
_LOOK_AT = 1000  # first rows of a stream that are looked at
_NARROW = 4096  # widest range of whole numbers that is encoded by a table with an entry for each number


class EncodedColumn(NamedTuple):
    """A column of votes as class codes."""

    codes: Codes  # BAD where a value has no meaning
    literal: bool  # whether some abstention was written out, not left empty
    has_bad: bool

    def first_bad(self) -> int:
        """The row of the first value without a meaning."""
        return int(np.argmax(self.codes == BAD))


def _with_empty(codes: Codes, empty: Bools | None) -> EncodedColumn:
    """Codes of a column, with abstentions where cells are empty."""
    if empty is not None:
        np.copyto(codes, 0, where=empty)  # neither an abstention nor bad
    lowest = int(codes.min(initial=0))
    literal = lowest == -1 or (lowest == BAD and bool((codes == -1).any()))
    if empty is not None:
        np.copyto(codes, -1, where=empty)  # faster than codes[empty] = -1
    return EncodedColumn(codes, literal, lowest == BAD)


@dataclass(frozen=True)
class VoteFormat:
    """How votes are written: the classes in code order, and the value that abstains.

    `declared` is False when nothing was declared and the Snorkel format is assumed.
    """

    name: str  # snorkel, signed or classes
    classes: tuple[Hashable, ...]
    abstain: Hashable
    declared: bool
    fold_case: bool = False  # cells of files that differ from a class only in case are that class

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """Code of each value; None is always an abstention."""
        table: dict[Hashable, int] = {None: -1, self.abstain: -1}
        table.update({value: code for code, value in enumerate(self.classes)})
        return table

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {str(value): code for value, code in self.codes.items() if value is not None}

    @cached_property
    def _by_folded_text(self) -> dict[str, int]:
        return {text.casefold(): code for text, code in self._by_text.items()} if self.fold_case else {}

    # -- values to codes -----------------------------------------------------------------------

    def code_of(self, value: object, *, lenient: bool = False) -> int:
        """The code of one value, `BAD` if it has no meaning.

        `lenient` is for cells of files and messages, where the number 1 may be written as 1, 1.0, "1" or " 1.0", and
        None, NaN and `EMPTY_WORDS` abstain. Values in memory have a type, so text is never read as a number there, and
        NaN abstains only if it is declared or if the classes are declared without an abstention.

        >>> form = declare_votes(n_classes=3)
        >>> [form.code_of(value) for value in (2, 2.0, -1, None, "2", 3)]
        [2, 2, -1, -1, -2, -2]
        >>> [form.code_of(value, lenient=True) for value in ("2", " 2.0", "-1", "NA", float("nan"), "two")]
        [2, 2, -1, -1, -1, -2]
        """
        if lenient:
            return self._code_of_cell(value)
        if self.name == "signed" and isinstance(value, (bool, np.bool_)):
            return BAD  # False would read as an abstention
        if _is_nan(value):
            # Among text classes NaN is how pandas writes a missing cell.
            return -1 if _is_nan(self.abstain) or (self.name == "classes" and self.abstain is None) else BAD
        try:
            return self.codes.get(value, BAD)
        except TypeError:  # unhashable
            return BAD

    def _code_of_cell(self, value: Any) -> int:
        if isinstance(value, str):
            text = value.strip()
            if text in self._by_text:
                return self._by_text[text]
            if text in EMPTY_WORDS:
                return -1
            if self.fold_case and text.casefold() in self._by_folded_text:
                return self._by_folded_text[text.casefold()]
            number = parse_number(text)
            return BAD if number is None else self._by_text.get(str(number), BAD)
        if is_missing(value):
            return -1
        if isinstance(value, bool):
            if self.name == "snorkel":
                return int(value)
            return self._by_text.get(str(value).lower(), self._by_text.get(str(value), BAD))
        return self._by_text.get(str(parse_number(str(value))), self._by_text.get(str(value), BAD))

    def _is_empty(self, value: object) -> bool:
        """Whether a cell that abstains is empty, in contrast to one that holds the declared abstention."""
        if isinstance(value, str):
            return value.strip() in EMPTY_WORDS and value.strip() not in self._by_text
        return is_missing(value)

    def encode(self, values: npt.NDArray[Any]) -> Codes:
        """Codes of an array of any shape, `BAD` where a value has no meaning."""
        if values.dtype.kind in "iu":
            return self._encode_whole(values)
        if values.dtype.kind == "f":
            return self._encode_floats(values)
        if values.dtype.kind == "b" and self.name == "snorkel":
            return values.astype(self.dtype)
        codes = [self.code_of(value) for value in values.ravel().tolist()]
        return np.array(codes, self.dtype).reshape(values.shape)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The smallest integer type that holds every code."""
        return code_dtype(self.n_classes)

    def _encode_whole(self, values: npt.NDArray[Any], lenient: bool = False) -> Codes:
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        if self.name == "snorkel" and low >= -1 and high < self.n_classes:
            return values.astype(self.dtype)
        if high - low < min(_NARROW, 4 * values.size):
            table = np.array([self.code_of(value, lenient=lenient) for value in range(low, high + 1)], self.dtype)
            return table[(values - low).astype(np.int64) if low >= 0 else values.astype(np.int64) - low]
        distinct, places = np.unique(values, return_inverse=True)
        table = np.array([self.code_of(value, lenient=lenient) for value in distinct.tolist()], self.dtype)
        return table[places.reshape(values.shape)]

    def _encode_floats(self, values: npt.NDArray[Any]) -> Codes:
        if self.name == "snorkel":
            with np.errstate(invalid="ignore"):  # a value that the type cannot hold differs from its code
                codes = values.astype(self.dtype)
            np.copyto(codes, BAD, where=(codes != values) | (codes < -1) | (codes >= self.n_classes))
            return codes
        codes = np.full(values.shape, BAD, self.dtype)
        for value, code in self.codes.items():
            if isinstance(value, (int, float)) and not _is_nan(value):
                codes[values == value] = code
        if _is_nan(self.abstain):
            codes[np.isnan(values)] = -1
        return codes

    def encode_column(self, column: Any, *, lenient: bool = False) -> EncodedColumn:
        """Codes of a column: an Arrow array, a NumPy array or a list. Empty cells abstain, and so does NaN.

        A column that is not Arrow's is read value by value, except for NumPy's numbers. `lenient`: see `code_of`.
        """
        if hasattr(column, "null_count"):
            return self._encode_arrow(column, lenient)
        if isinstance(column, np.ndarray) and column.dtype.kind in "iuf" and not lenient:
            return _with_empty(self.encode(column), np.isnan(column) if column.dtype.kind == "f" else None)
        values = column.tolist() if isinstance(column, np.ndarray) else list(column)
        codes = np.array([-1 if is_missing(v) else self.code_of(v, lenient=lenient) for v in values], self.dtype)
        literal = any(code == -1 and not self._is_empty(v) for code, v in zip(codes.tolist(), values, strict=True))
        return EncodedColumn(codes, literal, BAD in codes)

    def _encode_arrow(self, column: Any, lenient: bool) -> EncodedColumn:
        """Numbers by their own value, anything else by a table with an entry for each distinct value."""
        import pyarrow as pa

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        kind = column.type
        if pa.types.is_null(kind):
            return EncodedColumn(np.full(len(column), -1, self.dtype), False, False)
        if pa.types.is_integer(kind):
            empty = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
            values = (column if empty is None else column.fill_null(0)).to_numpy()
            return _with_empty(self._encode_whole(values, lenient), empty)
        if pa.types.is_floating(kind) and (not lenient or self.name != "classes"):
            return self.encode_column(column.to_numpy(zero_copy_only=False))  # an empty cell becomes NaN
        if not pa.types.is_dictionary(kind):
            column = column.dictionary_encode()
        distinct = column.dictionary.to_pylist()
        # An empty cell takes the last entry of the table.
        table = [*(-1 if is_missing(v) else self.code_of(v, lenient=lenient) for v in distinct), -1]
        written = [i for i, value in enumerate(distinct) if table[i] == -1 and not self._is_empty(value)]
        indices = column.indices
        places = (indices.cast(pa.int64()).fill_null(len(distinct)) if indices.null_count else indices).to_numpy()
        codes = np.array(table, self.dtype)[places]
        literal = bool(np.isin(places, written).any()) if written else False
        return EncodedColumn(codes, literal, BAD in table and bool((codes == BAD).any()))

    # -- codes to values -----------------------------------------------------------------------

    def decode(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Labels in the declared values.

        >>> declare_votes(votes="signed").decode(np.array([0, 1, -1]))
        array([-1,  1,  0])
        >>> declare_votes(classes=["ham", "spam"]).decode(np.array([1, -1]))
        array(['spam', None], dtype=object)
        """
        return codes.copy() if self.name == "snorkel" else self._values[codes]

    @cached_property
    def _values(self) -> npt.NDArray[Any]:
        """Values by code; the abstention stands last, where code -1 finds it."""
        values = [*self.classes, self.abstain]
        if all(type(value) is int for value in values):
            return np.array(values, np.int64)
        table = np.empty(len(values), object)
        table[:] = values
        return table

    def decode_one(self, code: int) -> Any:
        """The label of one row, as a plain Python value."""
        return self.abstain if code < 0 else self.classes[code]

    def by_class(self, proba: Floats) -> dict[str, Floats]:
        """Columns of probabilities, named by class (1 and "1" by how they are written)."""
        texts = [str(value) for value in self.classes]
        if len(set(texts)) < len(texts):
            texts = [repr(value) for value in self.classes]
        return {f"proba_{text}": proba[:, place] for place, text in enumerate(texts)}

    # -- messages ------------------------------------------------------------------------------

    def refuse(self, row: int, column: str, value: object) -> VoteError:
        """The error for a value in memory that has no meaning."""
        return VoteError(self.refuse_at(f"row {row} of this batch (counting from 0)", column, value))

    def refuse_at(self, place: str, column: str, value: object) -> str:
        """The sentence about a value that has no meaning; `place` says where its row is."""
        return (
            f"{place}, column {column!r}: {_show(value)} is neither a class"
            f" ({self.show_classes()}) nor an abstention ({_show(self.abstain)}); {self._remedy(value, column)}"
        )

    def _remedy(self, value: object, column: str) -> str:
        if _is_nan(value):
            abstention = "None" if self.abstain is None else _show(self.abstain)
            return f"write abstentions as {abstention}, or pass a data frame, where a missing cell abstains"
        if self.name == "classes":
            return (
                "add it to classes=[...], declare it as abstain=..., or name the labelers with labelers=[...]"
                f" if {column!r} is not one"
            )
        if isinstance(value, str):
            return f"pass classes=[...] for text classes, or labelers=[...] if {column!r} is not a labeler"
        whole = type(value) is int or (isinstance(value, float) and value.is_integer())
        if self.name == "snorkel" and whole and self.n_classes <= value < MOST_CLASSES:  # type: ignore[operator]
            most = int(value)  # type: ignore[call-overload]
            counted = str(list(range(1, most + 1))) if most <= 6 else f"range(1, {most + 1})"
            return f"pass n_classes={most + 1} or more for classes from 0, or classes={counted} for classes from 1"
        if self.name == "signed" and whole:
            return "pass votes='snorkel' and n_classes=... for class codes from 0"
        return "declare the values with classes=[...], abstain=..."

    def show_classes(self) -> str:
        """The classes for a message; of many, the first five and the last.

        >>> declare_votes(n_classes=50).show_classes()
        '0, 1, 2, 3, 4, ..., 49'
        """
        shown = [_show(value) for value in self.classes[:5]]
        if len(self.classes) > 6:
            shown.append("...")
        shown += [_show(value) for value in self.classes[max(5, len(self.classes) - 1) :]]
        return ", ".join(shown)

    def describe_values(self, missing: str = "missing") -> str:
        """The values of votes in one phrase; `missing` is the word for a value that is not there.

        >>> declare_votes().describe_values("an empty cell")
        'classes 0, 1; abstention -1 or an empty cell'
        """
        abstention = missing if self.abstain is None else f"{_show(self.abstain)} or {missing}"
        return f"classes {self.show_classes()}; abstention {abstention}"

    def describe(self) -> str:
        """How votes are read, in one sentence.

        >>> declare_votes().describe()
        'classes 0, 1; abstention -1 or missing (Snorkel format, assumed)'
        """
        source = {"snorkel": "Snorkel format", "signed": "signed format"}.get(self.name, "classes")
        return f"{self.describe_values()} ({source}, {'declared' if self.declared else 'assumed'})"


def find_similar(classes: Sequence[Hashable]) -> list[list[str]]:
    """Groups of text classes that differ only in case or in surrounding blanks.

    >>> find_similar(["no", "No", "yes", "yes ", "maybe", 3])
    [['no', 'No'], ['yes', 'yes ']]
    """
    groups: dict[str, list[str]] = {}
    for value in classes:
        if isinstance(value, str):
            groups.setdefault(value.strip().casefold(), []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def fold_case(form: VoteFormat) -> VoteFormat:
    """The format for cells whose case does not matter; classes that differ only in case are refused."""
    similar = find_similar([*form.classes, form.abstain])
    if similar:
        names = " and ".join(repr(name) for name in similar[0])
        raise SettingError(f"classes {names} differ only in case, which does not count here; name one of them")
    return replace(form, fold_case=True)


def declare_votes(
    votes: str | None = None,
    n_classes: int | None = None,
    classes: Sequence[Hashable] | None = None,
    abstain: Hashable = None,
) -> VoteFormat:
    """The format that settings declare, or an error that says what is wrong with them."""
    if classes is not None:
        return _declare_classes(votes, n_classes, classes, abstain)
    if abstain is not None:
        raise SettingError(f"abstain={abstain!r} goes with classes=[...]; name the classes too")
    if votes not in (None, "snorkel", "signed"):
        raise SettingError(
            f"votes must be 'snorkel' (0..K-1, -1 abstains) or 'signed' (-1/+1, 0 abstains), not {votes!r};"
            " for other values pass classes=[...], abstain=..."
        )
    count = 2 if n_classes is None else n_classes
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 2 <= count <= MOST_CLASSES:
        raise SettingError(f"n_classes must be a whole number from 2 to {MOST_CLASSES}, not {n_classes!r}")
    if votes == "signed":
        if count != 2:
            raise SettingError(f"votes='signed' has two classes, -1 and +1, but n_classes is {n_classes!r}")
        return VoteFormat("signed", (-1, 1), 0, True)
    return VoteFormat("snorkel", tuple(range(int(count))), -1, votes is not None)


def _declare_classes(
    votes: str | None, n_classes: int | None, classes: Sequence[Hashable], abstain: Hashable
) -> VoteFormat:
    if votes is not None:
        raise SettingError(f"votes={votes!r} and classes=[...] both declare the format; pass one of them")
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise SettingError(f"classes must be a list such as ['no', 'yes'], not {classes!r}")
    plain = tuple(_plain(value) for value in classes)
    for value in (*plain, abstain):
        if not isinstance(value, Hashable):
            raise SettingError(f"{value!r} cannot be a class or an abstention; use text or numbers")
    if not 2 <= len(plain) <= MOST_CLASSES:
        raise SettingError(f"classes must name from 2 to {MOST_CLASSES} classes, not {len(plain)}")
    if len(set(plain)) < len(plain):
        twice = next(value for place, value in enumerate(plain) if value in plain[:place])
        raise SettingError(f"classes names {twice!r} twice; each class once")
    if n_classes is not None and n_classes != len(plain):
        raise SettingError(f"n_classes={n_classes!r} but classes names {len(plain)}; leave n_classes out")
    abstain = _plain(abstain)
    if any(value is None or _is_nan(value) for value in plain):
        raise SettingError("a missing value (None, NaN) cannot be a class: it abstains")
    if abstain in plain:
        raise SettingError(f"abstain={abstain!r} is one of the classes; it must be another value")
    return VoteFormat("classes", plain, abstain, True)


def check_first_batch(form: VoteFormat, codes: Codes, literal: bool) -> None:
    """Refuse a first batch that contradicts the assumed Snorkel format: only -1 and +1.

    `literal` says that abstentions were written as -1, not left empty.
    """
    if form.declared or form.n_classes != 2 or len(codes) < _CHECK_FROM or not literal:
        return
    if not (codes == 0).any() and (codes == 1).any():
        raise VoteError(
            f"the first {len(codes)} rows hold only -1 and +1, which the default format reads as abstentions"
            " and class 1; pass votes='signed' if -1 is the negative class, or votes='snorkel' to insist"
        )


@dataclass
class SignedVotesCheck:
    """Looks at the first rows of a stream in the assumed Snorkel format, and warns once if they look like signed votes.

    `done` says that no more rows are looked at: from the start, if the format is declared.

    Two classes meet on a row less often than by chance, because labelers agree; an abstention meets both of them. So if
    -1 and +1 avoid each other, and both meet 0, then 0 is the abstention. `votes` counts the values -1, 0 and +1 by
    labeler, since rules may vote for one class only, and `pairs` how often two meet: 0 and 1, -1 and 1, -1 and 0.
    """

    rows: int = 0
    done: bool = False
    votes: Floats = field(default_factory=lambda: np.zeros((3, 0)))
    pairs: Floats = field(default_factory=lambda: np.zeros(3))

    @classmethod
    def of(cls, form: VoteFormat) -> SignedVotesCheck:
        """The check for a stream of votes in this format."""
        return cls(done=form.declared or form.n_classes != 2)

    def look(self, form: VoteFormat, codes: Codes, labelers: Sequence[int], literal: bool, n_rows: int) -> None:
        """Look at more rows, of which `n_rows` came before.

        `labelers` are the places of the columns in the panel; `literal` says that abstentions were written as -1.
        """
        if n_rows == 0:
            check_first_batch(form, codes, literal)
        if n_rows != self.rows or n_rows >= _LOOK_AT:  # the stream began elsewhere, or is known well enough
            self.done = True
            return
        self.rows += len(codes)
        codes = codes[: _LOOK_AT - n_rows]
        held = np.stack([codes == value for value in (-1, 0, 1)])
        if (more := max(labelers, default=-1) + 1 - self.votes.shape[1]) > 0:  # labelers joined
            self.votes = np.pad(self.votes, ((0, 0), (0, more)))
        self.votes[:, list(labelers)] += held.sum(axis=1)
        low, zero, one = held.sum(axis=2, dtype=np.float64)
        self.pairs += [zero @ one, low @ one, low @ zero]
        if not literal:  # cells that are empty are no sign of anything
            return
        only_signs = not self.votes[1].any() and self.votes[2].any() and (len(codes) > 1 or self.rows >= _PLAIN_FROM)
        looks = len(codes) > 1 or self.rows & (self.rows - 1) == 0  # single rows: few looks, few false warnings
        if only_signs or (looks and self._looks_signed()):
            self.done = True
            found = "only -1 and +1" if only_signs else "-1, 0 and +1, of which -1 and +1 look like the classes"
            warnings.warn(
                f"the first {self.rows} rows hold {found}; the default format reads -1 as an abstention; pass"
                " votes='signed' if -1 is the negative class, or votes='snorkel' to insist",
                VoteFormatWarning,
                stacklevel=6,
            )

    def _looks_signed(self) -> bool:
        """Whether -1 and +1 meet less often than 0 meets either, clearly more so than by chance."""
        n_rows, width = min(self.rows, _LOOK_AT), self.votes.shape[1]
        low, zero, one = self.votes
        chance = [a.sum() * b.sum() - a @ b for a, b in ((zero, one), (low, one), (low, zero))]  # of two labelers
        by_chance = np.array(chance) / n_rows
        if self.rows < _PLAIN_FROM or not by_chance.all():
            return False
        ratio = self.pairs / by_chance
        # Pairs on a row are not independent: a row of n votes counts as about n.
        noise = np.maximum(ratio, 0.5) / by_chance * max(1.0, (width - 1) / 2.0)
        return all(ratio[place] - ratio[1] > 2.5 * math.sqrt(noise[place] + noise[1]) for place in (0, 2))


# -- labelers ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roster:
    """The names of the labelers, in the order of their columns.

    A roster that was declared is closed. One that is read from the votes can grow. `least` is the smallest number of
    labelers that the model can work with: with two labelers only the product of their skills can be estimated.
    """

    names: tuple[str, ...] = ()
    closed: bool = False
    least: int = 3

    @classmethod
    def declared(cls, names: Iterable[object] | None, least: int = 3) -> Roster:
        """The roster of the `labelers=` setting; None leaves the names to the votes."""
        if names is None:
            return cls(least=least)
        if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
            raise LabelerError(f"labelers must be a list of names such as ['a', 'b', 'c'], not {names!r}")
        roster = cls(unique_names(names), closed=True, least=least)
        roster.check_enough(len(roster))
        return roster

    def __len__(self) -> int:
        return len(self.names)

    def check_enough(self, n_labelers: int, remedy: str = "add labelers") -> None:
        """Refuse fewer labelers than the model can work with."""
        if n_labelers < self.least:
            raise LabelerError(
                f"at least {self.least} labelers are needed to tell from their agreement who is right, not"
                f" {n_labelers}; {remedy}"
            )

    def for_width(self, width: int) -> Roster:
        """The roster for rows without names: all labelers, in order."""
        if self.names and width != len(self.names):
            raise LabelerError(
                f"a row must hold {len(self.names)} votes, one for each of {show_names(self.names)}, not"
                f" {width}; a labeler that did not vote abstains, and a new one needs a name (a dict or a frame)"
            )
        if self.names:
            return self
        self.check_enough(width)
        return replace(self, names=tuple(f"labeler_{i}" for i in range(width)))

    def joined_by(self, names: Sequence[str]) -> Roster:
        """The roster after a batch that names these labelers."""
        if names and names == self.names:
            return self
        known = set(self.names)
        newcomers = tuple(name for name in names if name not in known)
        if newcomers and self.closed:
            raise LabelerError(
                f"unknown labeler {newcomers[0]!r}: labelers= declares {show_names(self.names)};"
                " correct the name, declare it too, or leave labelers= out to let labelers join"
            )
        self.check_enough(
            len(self.names) + len(newcomers),
            "if the first rows name only some, declare all with labelers=[...], or name the rest with a vote of None",
        )
        return replace(self, names=self.names + newcomers) if newcomers else self

    def places(self, names: Sequence[str]) -> Ints:
        """The place of each name; -1 for a name that is not on the roster."""
        place = {name: i for i, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in names], np.int64)


def unique_names(names: Iterable[object]) -> tuple[str, ...]:
    """Names as text; a name that appears twice is refused."""
    texts = tuple(str(name) for name in names)
    if len(set(texts)) < len(texts):
        twice = next(text for place, text in enumerate(texts) if text in texts[:place])
        raise LabelerError(f"labeler {twice!r} is named twice; give every labeler a name of its own")
    return texts


def show_name(name: str) -> str:
    """A name in a list of names: quoted if it holds a comma or blanks at its ends, or is empty.

    >>> show_name("Dee"), show_name("Dee, J.")
    ('Dee', "'Dee, J.'")
    """
    return name if name and "," not in name and name == name.strip() else repr(name)


def show_names(names: Sequence[str], most: int = 6) -> str:
    """A few names for a message.

    >>> show_names(["a", "b", "c", "d"], most=3)
    'a, b, ... d (4 in all)'
    """
    names = [show_name(name) for name in names]
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])}, ... {names[-1]} ({len(names)} in all)"


# -- values ------------------------------------------------------------------------------------


def parse_number(text: str) -> int | float | None:
    """The number that a text writes; 1.0 is 1, as pandas writes whole numbers beside empty cells.

    >>> parse_number(" 1.0"), parse_number("-2"), parse_number("0.5"), parse_number("1_000"), parse_number("inf")
    (1, -2, 0.5, None, None)
    """
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or one of pandas' missing values."""
    return value is None or _is_nan(value) or type(value).__name__ in ("NAType", "NaTType")


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def _plain(value: Any) -> Any:
    """NumPy scalars as Python values, so that labels and saved states hold plain ones."""
    return value.item() if isinstance(value, np.generic) else value


def _show(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if value is None:
        return "a missing value"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
