"""Rows worth a look, picked from a stream of any length without a random generator.

Each kind keeps the rows with the smallest keys. The key of a row is a hash of its number, so that picks are spread
over the stream, do not depend on batches, and are the same every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.kernels.layout import Floats, Ints
from driftvote.models.results import LabeledStream
from driftvote.randomness import uniforms
from driftvote.report.parts import Example, Vote
from driftvote.report.values import plain_time

MOST_VOTES = 400
"""Votes of one row that are kept with it; the heaviest come first."""

_SEED = 20250


@dataclass(frozen=True)
class Block:
    """A block of rows as the builder sees it: its first row's number, votes, and what was said."""

    first: int
    votes: Any
    out: LabeledStream
    majority: Ints
    times: Any
    ids: Any
    gold: Any


class Picked:
    """At most `most` rows, those with the smallest keys."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: list[tuple[tuple[float, float], Example]] = []

    def offer(self, rows: Ints, rank: Floats, block: Block, classes: list[str], labelers: list[str]) -> None:
        """Consider rows of a block (places in it); a smaller `rank` goes first, then the hash decides."""
        if not len(rows):
            return
        draws = uniforms(_SEED, rows + block.first, np.zeros(1, np.int64))
        if len(self.kept) == self.most:
            worst_rank, worst_draw = self.kept[-1][0]
            chosen = (rank < worst_rank) | ((rank == worst_rank) & (draws < worst_draw))
            rows, rank, draws = rows[chosen], rank[chosen], draws[chosen]
        for place in np.lexsort((draws, rank))[: self.most].tolist():
            key = (float(rank[place]), float(draws[place]))
            self.kept.append((key, example(int(rows[place]), block, classes, labelers)))
            self.kept.sort(key=lambda entry: entry[0])
            del self.kept[self.most :]

    def by_row(self) -> list[Example]:
        """In the order of the stream."""
        return sorted((entry for _, entry in self.kept), key=lambda entry: entry.row)

    def by_rank(self) -> list[Example]:
        """Smallest rank first, in the order of the stream where it is equal."""
        return [entry for _, entry in sorted(self.kept, key=lambda kept: (kept[0][0], kept[1].row))]


def example(place: int, block: Block, classes: list[str], labelers: list[str]) -> Example:
    """A row of a block with the votes that made its label."""
    step = block.out[place : place + 1]
    row = block.votes[place]
    weights = np.zeros(len(row))
    weights[: len(step.labelers)] = step.vote_weights(row[None, : len(step.labelers)])[0]
    voters = np.flatnonzero(row >= 0)
    voters = voters[np.argsort(-weights[voters], kind="stable")][:MOST_VOTES]

    def named(code: int) -> str | None:
        return None if code < 0 else classes[code]

    return Example(
        row=block.first + place,
        id=None if block.ids is None else str(block.ids[place]),
        time=None if block.times is None else plain_time(block.times[place]),
        label=named(int(step.codes[0])),
        majority=named(int(block.majority[place])),
        gold=None if block.gold is None else named(int(block.gold[place])),
        probability=round(float(step.proba[0].max()), 6),
        window=int(step.windows[0]),
        votes=[Vote(labelers[h], classes[int(row[h])], round(float(weights[h]), 4) + 0.0) for h in voters.tolist()],
    )
