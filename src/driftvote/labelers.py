"""Who votes: names of labelers, their places, and who may still join."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from driftvote.accuracies import check_enough_labelers
from driftvote.errors import LabelerError
from driftvote.kernels.layout import Ints


@dataclass(frozen=True)
class Roster:
    """Labelers by place. A roster that was declared is closed; one read from the votes can grow."""

    names: tuple[str, ...] = ()
    closed: bool = False

    @classmethod
    def declared(cls, names: Iterable[object] | None) -> Roster:
        """The roster of the `labelers=` setting; None leaves it to the votes."""
        if names is None:
            return cls()
        if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
            raise LabelerError(f"labelers must be a list of names such as ['a', 'b', 'c'], not {names!r}")
        checked = unique_names(names)
        check_enough_labelers(len(checked))
        return cls(checked, closed=True)

    def __len__(self) -> int:
        return len(self.names)

    def for_width(self, width: int) -> Roster:
        """The roster for rows without names: everybody, in order."""
        if self.names and width != len(self.names):
            raise LabelerError(
                f"a row must hold {len(self.names)} votes, one for each of {show_names(self.names)}, not"
                f" {width}; a labeler that did not vote abstains, and a new one needs a name (a dict or a frame)"
            )
        if self.names:
            return self
        check_enough_labelers(width)
        return Roster(tuple(f"labeler_{i}" for i in range(width)))

    def joined_by(self, names: Sequence[str]) -> Roster:
        """The roster after a batch that names these labelers."""
        known = set(self.names)
        newcomers = tuple(name for name in names if name not in known)
        if newcomers and self.closed:
            raise LabelerError(
                f"unknown labeler {newcomers[0]!r}: labelers= declares {show_names(self.names)};"
                " correct the name, declare it too, or leave labelers= out to let labelers join"
            )
        check_enough_labelers(
            len(self.names) + len(newcomers),
            "if the first rows name only some, declare all with labelers=[...], or name the rest with a vote of None",
        )
        return Roster(self.names + newcomers, self.closed) if newcomers else self

    def places(self, names: Sequence[str]) -> Ints:
        """Place of each name; -1 for a name that is not on the roster."""
        place = {name: i for i, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in names], np.int64)


def unique_names(names: Iterable[object]) -> tuple[str, ...]:
    """Names as text, each once."""
    texts = tuple(str(name) for name in names)
    if len(set(texts)) < len(texts):
        twice = next(text for place, text in enumerate(texts) if text in texts[:place])
        raise LabelerError(f"labeler {twice!r} is named twice; give every labeler a name of its own")
    return texts


def show_names(names: Sequence[str], most: int = 6) -> str:
    """A few names for a message.

    >>> show_names(["a", "b", "c", "d"], most=3)
    'a, b, ... d (4 in all)'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])}, ... {names[-1]} ({len(names)} in all)"
