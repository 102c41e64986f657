"""A tally made again from its sums over every window and from the few rows that the next ones will ask for."""

from __future__ import annotations

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Ints
from driftvote.kernels.refits import Plan, is_due, is_look
from driftvote.kernels.tallies import Tally, count_row, key_of, sum_up


@jit
def note_keys(first: int, last: int, tally: Tally) -> None:
    """The keys of rows that were put back into the ring."""
    capacity = tally.ring.shape[0]
    for t in range(first, last):
        tally.keys[t % capacity] = key_of(tally.ring, t % capacity, tally.n_classes)


@jit
def note_totals(first: int, last: int, total: Ints, tally: Tally) -> None:
    """Running totals after the rows from `first` on; `total` is that of all rows before, and is carried along."""
    capacity, slots = tally.ring.shape[0], tally.totals.shape[0]
    for t in range(first, last):
        count_row(tally.ring, t % capacity, tally.n_classes, 1, total)
        if t % tally.stride == 0:
            at = (t // tally.stride) % slots
            for d in range(total.shape[0]):
                tally.totals[at, d] = total[d]


@jit
def sum_up_all(sizes: Ints, tally: Tally) -> None:
    """The sums over every window."""
    for level in range(sizes.shape[0]):
        sum_up(level, sizes, tally)


@jit
def fitted_from(clock: int, n_rows: int, sizes: Ints, plan: Plan) -> int:
    """The oldest row that fits may look at during the next rows. Which window is chosen shows only then, so it is the
    first row of the widest one that may be chosen and is due."""
    first = clock
    for row in range(clock, clock + n_rows):
        if not is_look(row, plan.refresh):
            continue
        for level in range(sizes.shape[0]):
            if (level == 0 or sizes[level] <= row + 1) and is_due(row, level, sizes, plan):
                first = min(first, row + 1 - sizes[level])
    return max(0, first)
