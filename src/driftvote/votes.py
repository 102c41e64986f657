"""1 VOTES: the declared format of votes, and their one encoding.

Inside, a vote is a class code 0 .. K-1 and -1 is an abstention. {-1, 0, +1} means two things in this
field (Snorkel: abstain, class 0, class 1; FlyingSquid: negative, abstain, positive), and nothing in
the values tells which; so the format is declared, never guessed, and echoed back.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import SettingError, VoteError
from driftvote.kernels.layout import Codes, Floats, code_dtype

BAD = -2
"""The code of a value that is neither a class nor an abstention; it never leaves this package."""

JUDGE_FROM = 100
"""Rows from which a first batch of nothing but -1 and +1 is held to be a mistaken format."""

MOST_CLASSES = 2**15 - 3


@dataclass(frozen=True)
class VoteFormat:
    """How votes are written: the classes in code order, and the value that abstains.

    `declared` is False when the caller said nothing and the Snorkel format is assumed.
    """

    name: str
    classes: tuple[Hashable, ...]
    abstain: Hashable
    declared: bool

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """Value -> code; None is always an abstention."""
        table: dict[Hashable, int] = {None: -1, self.abstain: -1}
        table.update({value: code for code, value in enumerate(self.classes)})
        return table

    def encode(self, values: npt.NDArray[Any]) -> Codes:
        """Codes of an array of any shape, `BAD` where a value has no meaning."""
        if values.dtype.kind in "iuf":
            return self._encode_numbers(values)
        if values.dtype.kind == "b" and self.name == "snorkel":
            return values.astype(code_dtype(self.n_classes))
        found = [self.encode_one(value) for value in values.ravel().tolist()]
        return np.array(found, code_dtype(self.n_classes)).reshape(values.shape)

    def encode_one(self, value: object) -> int:
        """Code of one value."""
        if isinstance(value, (bool, np.bool_)) and self.name == "signed":
            return BAD  # False would read as an abstention
        if _is_nan(value):
            # Among text classes NaN is how pandas writes a missing cell.
            return -1 if _is_nan(self.abstain) or (self.name == "classes" and self.abstain is None) else BAD
        try:
            return self.codes.get(value, BAD)
        except TypeError:  # unhashable
            return BAD

    def _encode_numbers(self, values: npt.NDArray[Any]) -> Codes:
        dtype = code_dtype(self.n_classes)
        if self.name == "snorkel":
            if values.dtype.kind in "iu" and values.size and values.min() >= -1 and values.max() < self.n_classes:
                return values.astype(dtype)
            fits = (values >= -1) & (values < self.n_classes)
            if values.dtype.kind == "f":
                fits &= values == np.floor(values)
            if fits.all():
                return values.astype(dtype)
            # BAD goes in after the cast: an unsigned array would turn it into a class.
            out = np.where(fits, values, 0).astype(dtype)
            out[~fits] = BAD
            return out
        out = np.full(values.shape, BAD, dtype)
        for value, code in self.codes.items():
            if _is_nan(value):
                out[np.isnan(values)] = code
            elif isinstance(value, (int, float)):
                out[values == value] = code
        return out

    def decode(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Labels in the caller's own values.

        >>> declare_votes(votes="signed").decode(np.array([0, 1, -1]))
        array([-1,  1,  0])
        >>> declare_votes(classes=["ham", "spam"]).decode(np.array([1, -1]))
        array(['spam', None], dtype=object)
        """
        if self.name == "snorkel":
            return codes.copy()
        return self._values[codes]

    @cached_property
    def _values(self) -> npt.NDArray[Any]:
        """Values by code; the abstention stands last, where code -1 finds it."""
        values = [*self.classes, self.abstain]
        if all(type(value) is int for value in values):
            return np.array(values, np.int64)
        table = np.empty(len(values), object)
        table[:] = values
        return table

    def by_class(self, proba: Floats) -> dict[str, Floats]:
        """Columns of probabilities, named by class (1 and "1" by how they are written)."""
        texts = [str(value) for value in self.classes]
        if len(set(texts)) < len(texts):
            texts = [repr(value) for value in self.classes]
        return {f"proba_{text}": proba[:, place] for place, text in enumerate(texts)}

    def decode_one(self, code: int) -> Any:
        """The label of one row, as a plain Python value."""
        return self.abstain if code < 0 else self.classes[code]

    def refuse(self, row: int, column: str, value: object) -> VoteError:
        """The error for a value without a meaning."""
        return VoteError(self.refuse_at(f"row {row} of this batch (counting from 0)", column, value))

    def refuse_at(self, place: str, column: str, value: object) -> str:
        """The sentence about a value without a meaning; `place` says where its row is."""
        return (
            f"{place}, column {column!r}: {_show(value)} is neither a class"
            f" ({self._show_classes()}) nor an abstention ({_show(self.abstain)}); {self._way_out(value, column)}"
        )

    def _way_out(self, value: object, column: str) -> str:
        if _is_nan(value):
            written = "None" if self.abstain is None else _show(self.abstain)
            return f"write abstentions as {written}, or pass a data frame, where a missing cell abstains"
        if self.name == "classes":
            return (
                "add it to classes=[...], declare it as abstain=..., or name the labelers with labelers=[...]"
                f" if {column!r} is not one"
            )
        if isinstance(value, str):
            return f"pass classes=[...] for text classes, or labelers=[...] if {column!r} is not a labeler"
        whole = type(value) is int or (isinstance(value, float) and value.is_integer())
        if self.name == "snorkel" and whole and self.n_classes <= value < MOST_CLASSES:  # type: ignore[operator]
            return f"pass n_classes={int(value) + 1} or more if there are more classes"  # type: ignore[call-overload]
        if self.name == "signed" and whole:
            return "pass votes='snorkel' and n_classes=... for class codes from 0"
        return "declare the values with classes=[...], abstain=..."

    def _show_classes(self) -> str:
        shown = [_show(value) for value in self.classes[:5]]
        if len(self.classes) > 6:
            shown.append("...")
        shown += [_show(value) for value in self.classes[max(5, len(self.classes) - 1) :]]
        return ", ".join(shown)

    def describe(self) -> str:
        """How votes are read, in one sentence.

        >>> declare_votes().describe()
        'classes 0, 1; abstention -1 or missing (Snorkel format, assumed)'
        """
        source = {"snorkel": "Snorkel format", "signed": "signed format"}.get(self.name, "classes")
        missing = "missing" if self.abstain is None else f"{_show(self.abstain)} or missing"
        said = "declared" if self.declared else "assumed"
        return f"classes {self._show_classes()}; abstention {missing} ({source}, {said})"


def declare_votes(
    votes: str | None = None,
    n_classes: int | None = None,
    classes: Sequence[Hashable] | None = None,
    abstain: Hashable = None,
) -> VoteFormat:
    """Turn the caller's declaration into a format, or say what is wrong with it."""
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
    """Refuse a first batch that the assumed Snorkel format cannot be meant for.

    `literal` says that abstentions were written as -1, not left out.
    """
    if form.declared or form.n_classes != 2 or len(codes) < JUDGE_FROM or not literal:
        return
    if not (codes == 0).any() and (codes == 1).any():
        raise VoteError(
            f"the first {len(codes)} rows hold only -1 and +1, which the default format reads as abstentions"
            " and class 1; pass votes='signed' if -1 is the negative class, or votes='snorkel' to insist"
        )


def _plain(value: Any) -> Any:
    """NumPy scalars as Python values, so that labels and saved states hold plain ones."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: object) -> bool:
    """None, NaN, or one of pandas' words for a missing value."""
    return value is None or _is_nan(value) or type(value).__name__ in ("NAType", "NaTType")


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def _show(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if value is None:
        return "a missing value"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
