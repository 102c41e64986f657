"""Simulated streams whose truth and accuracies are known at every row: kinds of drift by name, from one seed.

>>> stream = scenario("one-fails", n_rows=1000, seed=3)
>>> stream.votes.shape, stream.borders, stream.accuracies[499, 0], stream.accuracies[500, 0]
((1000, 5), (500,), np.float64(0.9), np.float64(0.5))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driftvote.arrays import Codes, Floats, Ints, code_dtype
from driftvote.errors import SettingError


@dataclass(frozen=True)
class SimulatedStream:
    """Votes with their true labels and the labelers' accuracies, which are unknown in practice."""

    votes: Codes  # (rows, labelers): class codes, -1 abstains
    truth: Ints  # (rows,)
    accuracies: Floats  # (rows, labelers): when voting
    n_classes: int
    borders: tuple[int, ...] = ()  # rows at which a new regime begins

    def score(self, codes: Ints, part: slice = slice(None)) -> float:
        """Share of the rows in `part` that are labeled right; a tied row counts 1/K."""
        right = np.where(codes < 0, 1.0 / self.n_classes, codes == self.truth)
        return float(right[part].mean())


def simulate(
    accuracies: Floats,
    seed: int,
    n_classes: int = 2,
    coverage: float | Floats = 1.0,
    borders: tuple[int, ...] = (),
    class_balance: Floats | None = None,
) -> SimulatedStream:
    """A stream of independent labelers with the given accuracies; wrong votes fall evenly on the other classes.

    `accuracies` is a table of rows x labelers, or of rows x labelers x classes when a labeler is better at one class
    than at another; the stream then holds the averages over the classes of each row. `class_balance` is a table of
    rows x classes, the shares of the classes; without it all classes are equally likely.

    >>> stream = simulate(np.full((1000, 3), 0.9), seed=0)
    >>> bool(abs((stream.votes == stream.truth[:, None]).mean() - 0.9) < 0.02)
    True
    """
    accuracies = np.asarray(accuracies, np.float64)
    if accuracies.ndim not in (2, 3) or not ((accuracies >= 0) & (accuracies <= 1)).all():
        raise SettingError("accuracies must be a table of rows x labelers with values from 0 to 1")
    if accuracies.ndim == 3 and accuracies.shape[2] != n_classes:
        raise SettingError(f"accuracies by class must have {n_classes} classes, not {accuracies.shape[2]}")
    rng = np.random.default_rng(seed)
    truth = _truth(rng, len(accuracies), n_classes, class_balance)
    now, on_average = accuracies, accuracies
    if accuracies.ndim == 3:
        shares = np.full((len(truth), n_classes), 1 / n_classes) if class_balance is None else class_balance
        now = np.take_along_axis(accuracies, truth[:, None, None], axis=2)[:, :, 0]
        on_average = (accuracies * shares[:, None, :]).sum(axis=2)
    right = rng.random(now.shape) < now
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=now.shape)) % n_classes
    votes = np.where(right, truth[:, None], wrong)
    votes[rng.random(now.shape) >= coverage] = -1
    return SimulatedStream(votes.astype(code_dtype(n_classes)), truth, on_average, n_classes, borders)


def _truth(rng: np.random.Generator, n_rows: int, n_classes: int, balance: Floats | None) -> Ints:
    if balance is None:
        return rng.integers(n_classes, size=n_rows)
    if balance.shape != (n_rows, n_classes) or (balance < 0).any() or not np.allclose(balance.sum(axis=1), 1):
        raise SettingError("class_balance must be a table of rows x classes, each row adding up to 1")
    below = np.cumsum(balance, axis=1)[:, :-1]
    return (rng.random((n_rows, 1)) >= below).sum(axis=1)


def swap(n_rows: int = 20_000, seed: int = 0) -> SimulatedStream:
    """Three good labelers and two poor ones that change places half-way.

    The stream on which a label model fitted to all the data does worse than a majority vote.
    """
    half = n_rows // 2
    before, after = [0.9, 0.9, 0.9, 0.55, 0.55], [0.55, 0.55, 0.55, 0.9, 0.9]
    return simulate(np.array([before] * half + [after] * (n_rows - half)), seed, borders=(half,))


def paper_blocks(block: int = 5_000, seed: int = 0) -> SimulatedStream:
    """The paper's synthetic stream: blocks of T, 2T and T rows, one labeler of three poor in each."""
    regimes = [([0.6, 0.9, 0.9], block), ([0.9, 0.6, 0.9], 2 * block), ([0.9, 0.9, 0.6], block)]
    rows = np.concatenate([np.tile(accuracy, (length, 1)) for accuracy, length in regimes])
    return simulate(rows, seed, borders=(block, 3 * block))


def permute(votes: Codes, seed: int, rate: float = 1e-3) -> tuple[Codes, Ints]:
    """Votes under shuffled names, and the rows at which the names were shuffled.

    Before each row, with probability `rate`, the labelers' names are shuffled anew; they stay so until the next
    time.

    >>> votes = np.arange(12).reshape(4, 3)
    >>> moved, rows = permute(votes, seed=1, rate=1.0)
    >>> rows, bool((np.sort(moved, axis=1) == votes).all())
    (array([0, 1, 2, 3]), True)
    """
    if not 0.0 <= rate <= 1.0:
        raise SettingError(f"rate must lie between 0 and 1, not {rate!r}")
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(votes)) < rate)
    moved = votes.copy()
    for first, last in zip(rows, [*rows[1:], len(votes)], strict=False):
        moved[first:last] = votes[first:last, rng.permutation(votes.shape[1])]
    return moved, rows


# -- scenarios ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamRecipe:
    """How a stream is drawn, row by row."""

    accuracies: Floats  # rows x labelers, or rows x labelers x classes
    borders: tuple[int, ...] = ()
    coverage: float | Floats = 1.0  # share of the rows on which a labeler votes
    class_balance: Floats | None = None  # rows x classes
    copies: tuple[int, ...] = ()  # labelers that mostly repeat labeler 0


@dataclass(frozen=True)
class StreamSize:
    """The size of a stream; `seed` is for scenarios whose accuracies are drawn too."""

    rows: int
    labelers: int
    classes: int
    seed: int

    @property
    def time(self) -> Floats:
        """From 0 at the first row to just below 1 at the last, as a column."""
        return (np.arange(self.rows) / self.rows)[:, None]

    def at(self, *shares: float) -> tuple[int, ...]:
        """Row numbers at these shares of the stream."""
        return tuple(round(share * self.rows) for share in shares)


@dataclass(frozen=True)
class Scenario:
    """A kind of drift: its name, what drifts and how, and its usual size."""

    name: str
    drift: str
    make: Callable[[StreamSize], StreamRecipe]
    n_rows: int = 20_000
    n_labelers: int = 5
    n_classes: int = 2
    independent: bool = True  # given the true class, the labelers err independently
    drifts: bool = True


COPYING = 0.8  # how often a copy repeats the original
PERIOD = 4_000  # rows of one sine wave


def scenario(
    name: str,
    *,
    n_rows: int | None = None,
    n_labelers: int | None = None,
    n_classes: int | None = None,
    seed: int = 0,
) -> SimulatedStream:
    """A stream of one of the `SCENARIOS`; what is not given has the scenario's usual size.

    >>> scenario("many-classes", n_rows=800).votes.shape
    (800, 7)
    >>> sorted(SCENARIOS)[:3]
    ['abrupt', 'abstaining', 'class-balance']
    """
    if name not in SCENARIOS:
        raise SettingError(f"there is no scenario {name!r}; choose {', '.join(SCENARIOS)}")
    usual = SCENARIOS[name]
    size = StreamSize(
        _at_least("n_rows", n_rows, 1, usual.n_rows),
        _at_least("n_labelers", n_labelers, 3, usual.n_labelers),
        _at_least("n_classes", n_classes, 2, usual.n_classes),
        _at_least("seed", seed, 0, 0),
    )
    spec = usual.make(size)
    # Six decimals: sines may differ in their last bits between machines, the drawn votes must not.
    stream = simulate(
        np.round(spec.accuracies, 6), size.seed, size.classes, spec.coverage, spec.borders, spec.class_balance
    )
    return _with_copies(stream, spec, size) if spec.copies else stream


def _at_least(name: str, value: int | None, least: int, usual: int) -> int:
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def _with_copies(stream: SimulatedStream, spec: StreamRecipe, size: StreamSize) -> SimulatedStream:
    votes, accuracies = stream.votes.copy(), stream.accuracies.copy()
    rng = np.random.default_rng([size.seed, 2])
    for place in spec.copies:
        repeats = rng.random(size.rows) < COPYING
        votes[repeats, place] = votes[repeats, 0]
        accuracies[:, place] = COPYING * accuracies[:, 0] + (1 - COPYING) * accuracies[:, place]
    return replace(stream, votes=votes, accuracies=accuracies)


def _blocks(rows: int, borders: Sequence[int], regimes: Sequence[Floats]) -> Floats:
    """Each regime from one border to the next."""
    edges = [0, *borders, rows]
    return np.concatenate(
        [np.tile(regime, (last - first, 1)) for first, last, regime in zip(edges[:-1], edges[1:], regimes, strict=True)]
    )


def _evenly(size: StreamSize, low: float, high: float) -> Floats:
    """Accuracies from high to low in even steps."""
    return np.linspace(high, low, size.labelers)


def _good_and_poor(size: StreamSize) -> tuple[Floats, Floats]:
    """Three in five are good, the others poor; and the same with their places changed."""
    good = np.arange(size.labelers) < round(0.6 * size.labelers)
    return np.where(good, 0.9, 0.55), np.where(good, 0.55, 0.9)


def _drawn(size: StreamSize, borders: tuple[int, ...], low: float, high: float) -> StreamRecipe:
    """New accuracies for every labeler at every border."""
    rng = np.random.default_rng([size.seed, 1])
    regimes = rng.uniform(low, high, size=(len(borders) + 1, size.labelers))
    return StreamRecipe(_blocks(size.rows, borders, list(regimes)), borders)


def _stationary(size: StreamSize) -> StreamRecipe:
    return StreamRecipe(np.tile(_evenly(size, 0.6, 0.9), (size.rows, 1)))


def _swap(size: StreamSize) -> StreamRecipe:
    borders = (size.rows // 2,)
    return StreamRecipe(_blocks(size.rows, borders, _good_and_poor(size)), borders)


def _abrupt(size: StreamSize) -> StreamRecipe:
    return _drawn(size, size.at(0.15, 0.4, 0.5, 0.8), 0.55, 0.95)


def _gradual(size: StreamSize) -> StreamRecipe:
    first = _evenly(size, 0.55, 0.95)
    return StreamRecipe(first + (first[::-1] - first) * size.time)


def _recurring(size: StreamSize) -> StreamRecipe:
    borders = size.at(*(step / 8 for step in range(1, 8)))
    return StreamRecipe(_blocks(size.rows, borders, _good_and_poor(size) * 4), borders)


def _abstaining(size: StreamSize) -> StreamRecipe:
    # The last labeler votes most: in each half a good one and a poor one are rarely heard.
    return replace(_swap(size), coverage=np.linspace(0.2, 0.8, size.labelers))


def _many_classes(size: StreamSize) -> StreamRecipe:
    # Range and usual length were picked for figures near those known of K = 5, n = 7, eight blocks: majority 91.4, true
    # weights 94.1. The gap to the true weights shrinks with the length: 0.31 points at 20,000 rows, 0.19 at 40,000,
    # 0.10 at 80,000 (the paper's rule, ten seeds).
    return _drawn(size, size.at(*(step / 8 for step in range(1, 8))), 0.4, 0.85)


def _paper(size: StreamSize) -> StreamRecipe:
    borders = size.at(0.25, 0.75)
    regimes = [np.where(np.arange(size.labelers) == poor, 0.6, 0.9) for poor in range(3)]
    return StreamRecipe(_blocks(size.rows, borders, regimes), borders)


def _one_fails(size: StreamSize) -> StreamRecipe:
    before = _evenly(size, 0.7, 0.9)
    after = before.copy()
    after[0] = 1 / size.classes
    borders = (size.rows // 2,)
    return StreamRecipe(_blocks(size.rows, borders, [before, after]), borders)


def _class_balance(size: StreamSize) -> StreamRecipe:
    """The share of class 0 goes from 0.2 to 0.8 and back; labelers are good at class 0 or at the others in turn."""
    share = 0.5 - 0.3 * np.cos(2 * np.pi * size.time)
    rest = np.repeat((1 - share) / (size.classes - 1), size.classes - 1, axis=1)
    at_zero = np.arange(size.classes) == 0
    by_class = [np.where(at_zero == (place % 2 == 0), 0.9, 0.65) for place in range(size.labelers)]
    accuracies = np.broadcast_to(np.array(by_class), (size.rows, size.labelers, size.classes))
    return StreamRecipe(accuracies, class_balance=np.hstack([share, rest]).round(6))


def _coverage(size: StreamSize) -> StreamRecipe:
    often = np.where(np.arange(size.labelers) < round(0.6 * size.labelers), 0.9, 0.2)
    borders = size.at(1 / 3, 2 / 3)
    accuracies = np.tile(_evenly(size, 0.65, 0.9), (size.rows, 1))
    return StreamRecipe(accuracies, borders, coverage=_blocks(size.rows, borders, [often, 1.1 - often, often]))


def _sinusoids(size: StreamSize) -> StreamRecipe:
    phase = np.arange(size.labelers) / size.labelers
    return StreamRecipe(0.7 + 0.15 * np.sin(2 * np.pi * (np.arange(size.rows)[:, None] / PERIOD + phase)))


def _together(size: StreamSize) -> StreamRecipe:
    return StreamRecipe(np.repeat(0.75 + 0.15 * np.cos(2 * np.pi * size.time), size.labelers, axis=1))


def _copies(size: StreamSize) -> StreamRecipe:
    copies = tuple(range(1, max(2, size.labelers // 2)))
    accuracies = np.where(np.arange(size.labelers) <= copies[-1], 0.65, 0.8)
    return StreamRecipe(np.tile(accuracies, (size.rows, 1)), copies=copies)


SCENARIOS: dict[str, Scenario] = {
    made.name: made
    for made in (
        Scenario("stationary", "No labeler changes: accuracies from 0.6 to 0.9 throughout.", _stationary, drifts=False),
        Scenario("swap", "Three good labelers and two poor ones change places half-way.", _swap),
        Scenario("abrupt", "At four rows, unevenly spaced, every labeler gets a new accuracy.", _abrupt),
        Scenario("gradual", "The best labeler slowly becomes the worst and the worst the best.", _gradual),
        Scenario("recurring", "Two regimes, in which good and poor change places, take turns eight times.", _recurring),
        Scenario("abstaining", "Labelers vote on 20% to 80% of the rows and swap as in `swap`.", _abstaining),
        Scenario(
            "many-classes",
            "Seven labelers on five classes; every eighth of the stream all accuracies are new.",
            _many_classes,
            n_rows=40_000,
            n_labelers=7,
            n_classes=5,
        ),
        Scenario(
            "paper", "The paper's stream: in three blocks another labeler of three is poor.", _paper, n_labelers=3
        ),
        Scenario("one-fails", "The best labeler falls to blind guessing half-way and stays there.", _one_fails),
        Scenario(
            "class-balance",
            "The share of class 0 goes from 20% to 80% and back; each labeler is better at some of the classes.",
            _class_balance,
        ),
        Scenario("coverage", "Who votes often and who rarely changes, twice; accuracies stay.", _coverage),
        Scenario("sinusoids", "Ten accuracies between 0.55 and 0.85 on slow sine waves.", _sinusoids, n_labelers=10),
        Scenario("together", "All labelers fall from 0.9 to 0.6 and recover, side by side.", _together),
        Scenario(
            "copies",
            "No labeler changes, but some labelers mostly repeat a poor one: their errors are shared.",
            _copies,
            n_labelers=7,
            independent=False,
            drifts=False,
        ),
    )
}
