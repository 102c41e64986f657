"""What a label model is to the engine: kernels that fit a window and label a row, and their Python side.

A label model is one file with
- a settings tuple and a fit tuple (named tuples of arrays; a table of fits has one more axis in front),
- five kernels, registered in `KERNELS` under the type of the settings (see below),
- a subclass of `Estimator`, which users pass as `estimator=`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import KernelTable, inner
from driftvote.core.voting import dilute

FITS_PER_WINDOW, FEW_FITS = 8, 4
"""A window is fitted again when an eighth of its rows is new: the cost per row then does not grow with it. Where a
fit is large, when a quarter is new."""

LONG_WINDOW = 1 << 15
"""From so many rows on, a window is fitted again when a quarter of it is new, and one of twice as many when a half is:
by then every new row moves an accuracy by less than a hundredth of a per cent."""

LARGE_FIT = 20_000
"""Numbers in a table of votes by class from which a fit is large: 40 classes and 12 labelers, or 77 and 4."""

MOST_NUMBERS = 1 << 22
"""Numbers in a table of votes by class that a fit may have: 32 MB; the mixture has several of them."""


def tables_fit(n_labelers: int, n_classes: int) -> bool:
    """Return whether tables of labelers x classes x (classes + 1) can be held."""
    return n_labelers * n_classes * (n_classes + 1) <= MOST_NUMBERS


def fit_period(rows: int, refresh: int, per_window: int) -> int:
    """Return the rows between two fits of so many rows: `refresh` times a power of two, about such a part of them."""
    period = refresh
    while 2 * period * per_window <= rows:
        period *= 2
    if rows >= LONG_WINDOW:
        period *= 2
    if rows >= 2 * LONG_WINDOW:
        period *= 2
    return period


fit_period_of = inner(fit_period)

KERNELS = KernelTable()
select_fit = KERNELS.function("select_fit")  # (settings, fits, place) -> one fit of a table
# (settings, state, level, window, begun, room, tables, fit): fit the last `window` rows; `begun` by
# `follows_agreements`
fit_window = KERNELS.function("fit_window")
fill_tables = KERNELS.function("fill_tables")  # (settings, fit, tables): prepare to label rows by the fit
# (settings, state, level, window, room, fit) -> 1 if the window rule counts: begins the fit that tells
follows_agreements = KERNELS.function("follows_agreements")
# (settings, tables, row, draw, support, proba) -> class code or -1
label_row = KERNELS.function("label_row", inline=True)


def always_follow(settings: Any, state: Any, level: int, window: int, room: Any, fit: Any) -> int:
    """The kernel `follows_agreements` of label models that leave the window to the rule."""
    return 1


SHARES = (-1e-9, 1.0 + 1e-9)
"""The range of shares and probabilities, with room for rounding."""


NO_ROOM: Floats = np.empty(0)
"""Room for fits that need none."""


class Estimator(ABC):
    """A label model: how labels are estimated from the votes of a window.

    A fit tuple has at least `votes` (labelers), the votes of each labeler in the window, and `window` (1), its rows.
    """

    name: ClassVar[str]
    bands: ClassVar[str | None] = None  # whose calibrated bands fit its accuracies; None: nothing is estimated
    min_labelers: ClassVar[int] = 3  # with two, only the product of their skills can be seen
    learns_from_verified: ClassVar[bool] = False
    fits_every_row: ClassVar[bool] = False
    ignores_silent: ClassVar[bool] = False  # a labeler that never votes changes no label, to the last bit
    gates_window: ClassVar[bool] = False  # whether `follows_agreements` is asked
    counts_votes: ClassVar[bool] = False  # probabilities are shares of the votes, so one vote alone is certain
    needs_rows: ClassVar[bool] = True  # the rows of the window, not only their sums
    fit_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)  # of the numbers in a fit; others are refused
    refresh: int = 1  # rows between two choices of the window

    @abstractmethod
    def settings(self, n_labelers: int, n_classes: int, diluted: bool) -> Any:
        """Return the settings as kernels need them; `diluted` where abstentions are random votes."""

    @abstractmethod
    def empty_fits(self, n_fits: int, n_labelers: int, n_classes: int) -> Any:
        """Return arrays for so many fits; a window of 0 says that there is none."""

    @abstractmethod
    def new_tables(self, settings: Any, n_labelers: int) -> Any:
        """Return room for what `fill_tables` prepares for labeling; its field `ready` (1) is 0 until then."""

    def new_room(self, n_labelers: int, n_classes: int) -> Any:
        """Return room for the work of a fit; most that read sums only need none."""
        return NO_ROOM

    @abstractmethod
    def accuracies(self, settings: Any, fits: Any) -> Floats:
        """Return the accuracy of each labeler when it votes: fits x labelers."""

    def diluted_accuracies(self, settings: Any, fits: Any, n_classes: int) -> Floats:
        """Return the accuracy of each labeler with abstentions counted as blind guesses: fits x labelers."""
        return dilute(self.accuracies(settings, fits), fits.votes / np.maximum(1, fits.window), n_classes)

    @abstractmethod
    def vote_weights(self, settings: Any, fits: Any, places: Ints, rows: Codes) -> Floats:
        """Return the log-odds that each vote added to its class on its row; `places` says which fit labeled it."""

    def tell(self, room: Any, numbers: Ints, named: Ints, right: Floats, classes: Ints) -> None:  # noqa: B027
        """Give fits verified rows that count wherever they stand in the stream; most label models do not use them."""

    def newcomer(self, n_classes: int) -> dict[str, float]:
        """Return what a fit says, by field, about a labeler that joined later; fields that are not named say 0."""
        return {}

    def widen_fits(self, fits: Any, n_labelers: int, n_classes: int) -> Any:
        """Return fits for more labelers, the newcomers at chance and without votes."""
        wide, n_before = self.empty_fits(len(fits.window), n_labelers, n_classes), fits.votes.shape[1]
        for old, new in zip(fits, wide, strict=True):
            new[tuple(slice(0, size) for size in old.shape)] = old
        for field, value in self.newcomer(n_classes).items():
            getattr(wide, field)[:, n_before:] = value
        return wide

    def fits_per_window(self, n_labelers: int, n_classes: int) -> int:
        """Return into how many parts a window is divided for the schedule of its fits."""
        return FITS_PER_WINDOW if n_labelers * n_classes * (n_classes + 1) < LARGE_FIT else FEW_FITS

    def fit_periods(self, sizes: Sequence[int], per_window: int) -> Ints:
        """Return the rows between two fits of each window."""
        if self.fits_every_row:
            return np.ones(len(sizes), np.int64)
        return np.array([fit_period(size, self.refresh, per_window) for size in sizes], np.int64)

    def check_size(self, n_labelers: int, n_classes: int) -> None:  # noqa: B027
        """Refuse more labelers and classes than tables can be held for; most label models have no tables."""

    def check(self, n_classes: int) -> None:  # noqa: B027
        """Refuse settings that do not fit the number of classes; most fit any number."""

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the settings as plain values, as a state file holds them."""
        return {"name": self.name, **vars(self)}


def concat_fits(tables: list[Any]) -> Any:
    """Return several tables of fits as one."""
    return type(tables[0])(*(np.concatenate(column) for column in zip(*tables, strict=True)))
