"""Kinds of drift by name: streams whose truth and accuracies are known, from one seed.

>>> stream = scenario("one-fails", n_rows=1000, seed=3)
>>> stream.votes.shape, stream.borders, stream.accuracies[499, 0], stream.accuracies[500, 0]
((1000, 5), (500,), np.float64(0.9), np.float64(0.5))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from driftvote.errors import SettingError
from driftvote.kernels.layout import Floats
from driftvote.streams.synthetic import SimulatedStream, simulate


@dataclass(frozen=True)
class World:
    """How a stream is drawn: what holds at every row."""

    accuracies: Floats  # rows x labelers, or rows x labelers x classes
    borders: tuple[int, ...] = ()
    coverage: float | Floats = 1.0  # share of the rows on which a labeler votes
    class_balance: Floats | None = None  # rows x classes
    copies: tuple[int, ...] = ()  # labelers that mostly repeat labeler 0


@dataclass(frozen=True)
class Size:
    """What a world is made for; `seed` is for the worlds that are drawn themselves."""

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
    world: Callable[[Size], World]
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
    size = Size(
        _at_least("n_rows", n_rows, 1, usual.n_rows),
        _at_least("n_labelers", n_labelers, 3, usual.n_labelers),
        _at_least("n_classes", n_classes, 2, usual.n_classes),
        _at_least("seed", seed, 0, 0),
    )
    world = usual.world(size)
    # Six decimals: sines may differ in their last bits between machines, the drawn votes must not.
    stream = simulate(
        np.round(world.accuracies, 6), size.seed, size.classes, world.coverage, world.borders, world.class_balance
    )
    return _with_copies(stream, world, size) if world.copies else stream


def _at_least(name: str, value: int | None, least: int, usual: int) -> int:
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def _with_copies(stream: SimulatedStream, world: World, size: Size) -> SimulatedStream:
    votes, accuracies = stream.votes.copy(), stream.accuracies.copy()
    rng = np.random.default_rng([size.seed, 2])
    for place in world.copies:
        repeats = rng.random(size.rows) < COPYING
        votes[repeats, place] = votes[repeats, 0]
        accuracies[:, place] = COPYING * accuracies[:, 0] + (1 - COPYING) * accuracies[:, place]
    return dataclasses.replace(stream, votes=votes, accuracies=accuracies)


def _blocks(rows: int, borders: Sequence[int], regimes: Sequence[Floats]) -> Floats:
    """Each regime from one border to the next."""
    edges = [0, *borders, rows]
    return np.concatenate(
        [np.tile(regime, (last - first, 1)) for first, last, regime in zip(edges[:-1], edges[1:], regimes, strict=True)]
    )


def _evenly(size: Size, low: float, high: float) -> Floats:
    """Accuracies from high to low in even steps."""
    return np.linspace(high, low, size.labelers)


def _good_and_poor(size: Size) -> tuple[Floats, Floats]:
    """Three in five are good, the others poor; and the same with their places changed."""
    good = np.arange(size.labelers) < round(0.6 * size.labelers)
    return np.where(good, 0.9, 0.55), np.where(good, 0.55, 0.9)


def _drawn(size: Size, borders: tuple[int, ...], low: float, high: float) -> World:
    """New accuracies for everybody at every border."""
    rng = np.random.default_rng([size.seed, 1])
    regimes = rng.uniform(low, high, size=(len(borders) + 1, size.labelers))
    return World(_blocks(size.rows, borders, list(regimes)), borders)


def _stationary(size: Size) -> World:
    return World(np.tile(_evenly(size, 0.6, 0.9), (size.rows, 1)))


def _swap(size: Size) -> World:
    borders = (size.rows // 2,)
    return World(_blocks(size.rows, borders, _good_and_poor(size)), borders)


def _abrupt(size: Size) -> World:
    return _drawn(size, size.at(0.15, 0.4, 0.5, 0.8), 0.55, 0.95)


def _gradual(size: Size) -> World:
    first = _evenly(size, 0.55, 0.95)
    return World(first + (first[::-1] - first) * size.time)


def _recurring(size: Size) -> World:
    borders = size.at(*(step / 8 for step in range(1, 8)))
    return World(_blocks(size.rows, borders, _good_and_poor(size) * 4), borders)


def _abstaining(size: Size) -> World:
    # The last labeler votes most: in each half a good one and a poor one are rarely heard.
    return dataclasses.replace(_swap(size), coverage=np.linspace(0.2, 0.8, size.labelers))


def _many_classes(size: Size) -> World:
    # Range and usual length were picked for figures near those known of K = 5, n = 7, eight blocks: majority 91.4, true
    # weights 94.1. The gap to the true weights shrinks with the length: 0.31 points at 20,000 rows, 0.19 at 40,000,
    # 0.10 at 80,000 (the paper's rule, ten seeds).
    return _drawn(size, size.at(*(step / 8 for step in range(1, 8))), 0.4, 0.85)


def _paper(size: Size) -> World:
    borders = size.at(0.25, 0.75)
    regimes = [np.where(np.arange(size.labelers) == poor, 0.6, 0.9) for poor in range(3)]
    return World(_blocks(size.rows, borders, regimes), borders)


def _one_fails(size: Size) -> World:
    before = _evenly(size, 0.7, 0.9)
    after = before.copy()
    after[0] = 1 / size.classes
    borders = (size.rows // 2,)
    return World(_blocks(size.rows, borders, [before, after]), borders)


def _class_balance(size: Size) -> World:
    """The share of class 0 goes from 0.2 to 0.8 and back; labelers are good at class 0 or at the others in turn."""
    share = 0.5 - 0.3 * np.cos(2 * np.pi * size.time)
    rest = np.repeat((1 - share) / (size.classes - 1), size.classes - 1, axis=1)
    at_zero = np.arange(size.classes) == 0
    by_class = [np.where(at_zero == (place % 2 == 0), 0.9, 0.65) for place in range(size.labelers)]
    accuracies = np.broadcast_to(np.array(by_class), (size.rows, size.labelers, size.classes))
    return World(accuracies, class_balance=np.hstack([share, rest]).round(6))


def _coverage(size: Size) -> World:
    often = np.where(np.arange(size.labelers) < round(0.6 * size.labelers), 0.9, 0.2)
    borders = size.at(1 / 3, 2 / 3)
    accuracies = np.tile(_evenly(size, 0.65, 0.9), (size.rows, 1))
    return World(accuracies, borders, coverage=_blocks(size.rows, borders, [often, 1.1 - often, often]))


def _sinusoids(size: Size) -> World:
    phase = np.arange(size.labelers) / size.labelers
    return World(0.7 + 0.15 * np.sin(2 * np.pi * (np.arange(size.rows)[:, None] / PERIOD + phase)))


def _together(size: Size) -> World:
    return World(np.repeat(0.75 + 0.15 * np.cos(2 * np.pi * size.time), size.labelers, axis=1))


def _copies(size: Size) -> World:
    copies = tuple(range(1, max(2, size.labelers // 2)))
    accuracies = np.where(np.arange(size.labelers) <= copies[-1], 0.65, 0.8)
    return World(np.tile(accuracies, (size.rows, 1)), copies=copies)


SCENARIOS: dict[str, Scenario] = {
    made.name: made
    for made in (
        Scenario("stationary", "Nothing drifts: accuracies from 0.6 to 0.9 throughout.", _stationary, drifts=False),
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
            "Nothing drifts, but some labelers mostly repeat a poor one: their errors are shared.",
            _copies,
            n_labelers=7,
            independent=False,
            drifts=False,
        ),
    )
}
