"""Estimates of the committee model: those of the window, and at every row the committee and its certified error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from driftvote.agreements import n_pairs
from driftvote.errors import StateError
from driftvote.kernels.layout import Bools, Floats, Ints
from driftvote.models.engine import Arrays, expect
from driftvote.models.estimates import Estimates, WindowEstimates


@dataclass(frozen=True)
class Record:
    """One search: the window it was made from, and what it found."""

    row: int  # rows seen when it was made; 0 before the first one
    window: int
    sums: Ints
    votes: Ints
    members: Bools
    bound: float = 1.0
    allowance: float = 2.0

    @classmethod
    def nobody_knows(cls, n_labelers: int) -> Record:
        """Before the first search everybody votes, and nothing is certified."""
        nothing = np.zeros(n_pairs(n_labelers), np.int64)
        return cls(0, 0, nothing, np.zeros(n_labelers, np.int64), np.ones(n_labelers, np.bool_))

    @classmethod
    def of_window(cls, row: int, window: int, sums: Ints, votes: Ints) -> Record:
        """A search that has not been made yet."""
        return cls(row, window, sums, votes, np.ones(len(votes), np.bool_))

    def decided(self, places: Sequence[int], bound: float, allowance: float) -> Record:
        """The search once it is made."""
        members = np.zeros(len(self.votes), np.bool_)
        members[list(places)] = True
        return Record(self.row, self.window, self.sums, self.votes, members, bound, allowance)

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes + self.votes.nbytes + self.members.nbytes + 32

    def arrays(self, name: str) -> Arrays:
        """As named arrays of a state file."""
        return {
            f"{name}_search": np.array([self.row, self.window], np.int64),
            f"{name}_sums": self.sums,
            f"{name}_votes": self.votes,
            f"{name}_members": self.members,
            f"{name}_bound": np.array([self.bound, self.allowance]),
        }

    @classmethod
    def restored(cls, arrays: Arrays, name: str, n_labelers: int) -> Record:
        """Back from a state file."""
        expect(arrays, f"{name}_search", np.int64, (2,))
        expect(arrays, f"{name}_sums", np.int64, (n_pairs(n_labelers),))
        expect(arrays, f"{name}_votes", np.int64, (n_labelers,))
        expect(arrays, f"{name}_members", np.bool_, (n_labelers,))
        expect(arrays, f"{name}_bound", np.float64, (2,))
        row, window = (int(value) for value in arrays[f"{name}_search"])
        bound, allowance = (float(value) for value in arrays[f"{name}_bound"])
        if not arrays[f"{name}_members"].any() or row < 0 or window < 0 or not 0.0 <= bound <= 1.0:
            raise StateError(f"the state's arrays {name!r} are not those of a committee")
        return cls(
            row, window, arrays[f"{name}_sums"], arrays[f"{name}_votes"], arrays[f"{name}_members"], bound, allowance
        )


def one_after_the_other(parts: Sequence[Any]) -> WindowEstimates:
    """Estimates of the same labelers over parts of a chunk."""
    if len(parts) == 1:
        return parts[0]
    votes = None
    if any(part.votes is not None for part in parts):
        votes = np.concatenate([part.counted_votes() for part in parts])
    weighing = np.concatenate([part.weighing for part in parts])
    return WindowEstimates(weighing, votes, np.concatenate([part.windows for part in parts]), parts[0].rule)


class CommitteeEstimates(Estimates):
    """The window's estimates; weights are 1 for the members of the row's committee and 0 for the others."""

    def __init__(self, base: WindowEstimates, spans: Ints, records: list[Record]) -> None:
        self.base = base
        self.windows = base.windows
        self.spans = spans  # (rows,): which record holds
        self.records = records

    @property
    def accuracies(self) -> Floats:
        return self.base.accuracies

    @property
    def diluted_accuracies(self) -> Floats:
        return self.base.diluted_accuracies

    @property
    def coverage(self) -> Floats:
        return self.base.coverage

    @cached_property
    def membership(self) -> Bools:
        """(rows, labelers): who is in the committee."""
        return np.array([record.members for record in self.records])[self.spans]

    @cached_property
    def weights(self) -> Floats:
        return self.membership.astype(np.float64)

    @property
    def error_bounds(self) -> Floats:
        """(rows,): the certified error of the row's committee."""
        return np.array([record.bound for record in self.records])[self.spans]

    def record(self, row: int) -> Record:
        """The search behind a row."""
        return self.records[int(self.spans[row])]

    def __getitem__(self, rows: slice) -> CommitteeEstimates:
        return CommitteeEstimates(self.base[rows], self.spans[rows], self.records)

    @classmethod
    def joined(cls, parts: Sequence[CommitteeEstimates]) -> CommitteeEstimates:
        records: list[Record] = []
        spans = []
        width = parts[-1].base.weighing.shape[1]
        for part in parts:
            spans.append(part.spans + len(records))
            records += [_widened(record, width) for record in part.records]
        base: Any = WindowEstimates.joined([part.base for part in parts])
        return cls(base, np.concatenate(spans), records)


def _widened(record: Record, width: int) -> Record:
    """Who joins later was in no committee before."""
    return replace(record, members=np.pad(record.members, (0, width - len(record.members))))
