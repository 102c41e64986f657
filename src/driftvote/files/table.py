"""Tables in files: columns by name, read batch by batch, and the place of a row for messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError

BATCH = 1 << 17
"""Rows read at a time: long enough for the kernels, some tens of MB with everything that is made from them."""


class FileError(DriftvoteError, ValueError):
    """A file that cannot be read as a table of votes."""


class Table(ABC):
    """A file with named columns.

    `textual` says that cells are text whatever they mean, as in CSV; other formats have types of their own.
    """

    textual = False
    word = "row"
    n_rows: int | None = None

    def __init__(self, path: str | Path, shown: str | None = None) -> None:
        self.path = Path(path)
        self.shown = shown or str(path)
        self.names: list[str] = []

    @abstractmethod
    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of these columns, in this order; text columns in `votes` come as dictionaries."""

    def place(self, row: int) -> str:
        """Where a row (counting from 0) stands in the file, for a person who opens it."""
        return f"{self.word} {row + 1:,}"

    def done(self) -> float | None:
        """Share of the file that the running `batches` has read, if it is known."""
        return None

    def complete(self) -> None:  # noqa: B027 - most files tell in their header
        """Make sure that `names` holds every column, where the beginning of a file does not tell."""

    def limits(self, column: str) -> tuple[int, int] | None:
        """Smallest and largest of a column of whole numbers, if the file tells without being read."""
        return None

    def labeler(self, column: str) -> str:
        """The name of the labeler whose votes a column holds."""
        return column

    def type_of(self, column: str) -> Any:
        """The Arrow type of a column, if it is known before reading."""
        return None

    def error(self, sentence: str) -> FileError:
        """An error that names the file."""
        return FileError(f"{self.shown}: {sentence}")

    def require(self, columns: Sequence[str | None]) -> None:
        """Refuse names of columns that are not there."""
        for name in columns:
            if name is not None and name not in self.names:
                raise self.error(f"there is no column {name!r}; it has {shown_names(self.names)}")

    def refuse_repeated(self) -> None:
        """Columns are known by name, so each needs its own."""
        for place, name in enumerate(self.names):
            first = self.names.index(name)
            if first < place:
                raise self.error(
                    f"column {name!r} appears twice in the header (columns {first + 1} and {place + 1}); rename"
                    " one of them"
                )


def shown_names(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, not too many."""
    some = ", ".join(repr(name) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most} more"
