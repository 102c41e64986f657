"""Engines: a stream's state and the kernels that advance it, behind one small interface.

Models read votes and speak to users; an engine sees encoded rows only. Every door of every model
leads to `label` or `learn` here, and from there to the one chunk kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.agreements import StreamState, n_pairs
from driftvote.errors import StateError
from driftvote.kernels.chunk import estimate, label_rows, learn_chunk
from driftvote.kernels.layout import Codes, Floats, Ints, Outputs, Rule, code_dtype
from driftvote.kernels.windows import nothing_known
from driftvote.labels import weighted_vote
from driftvote.models.estimates import EqualEstimates, Estimates, WindowEstimates
from driftvote.models.id_book import Marks
from driftvote.models.recent import RecentRows
from driftvote.stretches import LongChunks, fits
from driftvote.weights import EQUAL_WEIGHT, accuracy_at_weight
from driftvote.windows import ALL_PAST

Arrays = dict[str, npt.NDArray[Any]]

LONG = 256
"""Rows from which a chunk is worth a history."""


@dataclass(frozen=True)
class Labeled:
    """What an engine says of a chunk: class codes, probabilities, and the estimates behind them."""

    labels: Ints
    proba: Floats
    estimates: Estimates


class Engine(RecentRows, ABC):
    """State of one stream, for a fixed set of labelers."""

    n_labelers: int
    n_classes: int
    has_short_way = False  # True: `state` and `rule` are all there is to a row, see `quick.py`

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows seen."""

    @property
    def can_grow(self) -> bool:
        """Whether the rows are kept that a newcomer's past would be made from."""
        return True

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of state."""

    @abstractmethod
    def label(self, rows: Codes, draws: Floats) -> Labeled:
        """Learn from each row, then label it."""

    def label_marked(self, rows: Codes, draws: Floats, marks: Marks) -> Labeled:
        """The same with ids and verified labels of the rows, of which most engines have no use."""
        return self.label(rows, draws)

    def label_beside(self, rows: Codes, draws: Floats, work: Callable[[], None]) -> Labeled:
        """The same as `label`, while another thread does some other work."""
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(work)
            said = self.label(rows, draws)
            other.result()
        return said

    @abstractmethod
    def learn(self, rows: Codes) -> None:
        """Learn from each row."""

    @abstractmethod
    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        """Label rows by what is known now; learn nothing."""

    @abstractmethod
    def current(self) -> Estimates:
        """The estimates after the rows seen, as a chunk of one row."""

    @abstractmethod
    def remembered(self) -> int:
        """Rows of the past that a newcomer must be given codes for."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The state as named arrays, rows oldest first."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Take over a saved state."""


class WindowEngine(Engine):
    """Pair sums over a grid of windows: the adaptive rule, or one fixed window."""

    has_short_way = True

    def __init__(self, rule: Rule, n_labelers: int, n_jobs: int, state: StreamState | None = None) -> None:
        self.rule = rule
        self.n_labelers = n_labelers
        self.n_classes = rule.n_classes
        self.n_jobs = n_jobs
        largest = int(rule.sizes[-1])
        capacity = 0 if largest == ALL_PAST else largest
        self.state = state or StreamState.empty(rule.sizes, capacity, n_labelers, rule.n_classes)
        self._long: LongChunks | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave the history behind: it is made again from the rows when it is needed."""
        return {**self.__dict__, "_long": None}

    @property
    def n_rows(self) -> int:
        return self.state.n_rows

    @property
    def nbytes(self) -> int:
        return self.state.nbytes

    @property
    def can_grow(self) -> bool:
        return len(self.state.memory.ring) > 0

    def label(self, rows: Codes, draws: Floats) -> Labeled:
        return self.label_beside(rows, draws, lambda: None)

    def label_beside(self, rows: Codes, draws: Floats, work: Callable[[], None]) -> Labeled:
        n_rows, n = len(rows), self.n_labelers
        counts = n_rows < LONG or self._counts_votes(rows)
        out = Outputs(
            labels=np.empty(n_rows, np.int64),
            proba=np.empty((n_rows, self.n_classes)),
            windows=np.empty(n_rows, np.int64),
            estimates=np.empty((n_rows, n)),
            votes=np.empty((n_rows if counts else 0, n), np.int64),
        )
        short = self._short_part(rows, counts)
        if short:
            label_rows(rows[:short], draws, self.state.memory, self.rule, out)
        if short < n_rows:
            assert self._long is not None
            parts: Any = (part[short:] for part in out)
            self._long.label(rows[short:], draws[short:], self.state, Outputs(*parts), work)
        else:
            work()
        votes = out.votes if counts else None
        return Labeled(out.labels, out.proba, WindowEstimates(out.estimates, votes, out.windows, self.rule))

    def learn(self, rows: Codes) -> None:
        short = len(rows) if len(rows) < LONG else self._short_part(rows, self._counts_votes(rows))
        if short:
            learn_chunk(rows[:short], self.state.memory, self.rule)
        if short < len(rows):
            assert self._long is not None
            self._long.learn(rows[short:], self.state)

    def _counts_votes(self, rows: Codes) -> bool:
        """Whether anybody abstains in the chunk or in the windows: if not, votes need not be counted."""
        memory = self.state.memory
        full = np.minimum(self.rule.sizes, self.n_rows)[:, None]
        return bool((rows.size and rows.min() < 0) or (memory.votes != full).any())

    def _short_part(self, rows: Codes, counts: bool) -> int:
        """How many rows to take one by one; the rest is worth a history, which is then there."""
        # Until the next row fills the smallest window; with a window of 1 that is at once, and the kernel for single
        # rows need not even be compiled.
        before = max(0, int(self.rule.sizes[0]) - self.n_rows - 1)
        if len(rows) - before < LONG or not fits(self.rule, self.n_labelers):
            return len(rows)
        if self._long is None or self._long.counts_votes != counts:
            self._long = LongChunks(self.rule, self.n_labelers, counts, self.n_jobs)
        if len(rows) - before < self._long.lacking(self.n_rows) // 16:
            return len(rows)  # bringing the history up to date would cost more than it saves
        return before

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return weighted_vote(rows, self._now().weighing[0], draws, self.rule)

    def current(self) -> Estimates:
        if not self.n_rows:
            return EqualEstimates(1, self.n_labelers, self.n_classes, window=0)
        return self._now()

    def _now(self) -> WindowEstimates:
        estimates = np.empty((1, self.n_labelers))
        votes = np.empty((1, self.n_labelers), np.int64)
        window = estimate(self.state.memory, self.rule, nothing_known(self.rule), estimates[0], votes[0])
        return WindowEstimates(estimates, votes, np.array([window]), self.rule)

    def remembered(self) -> int:
        return min(self.n_rows, len(self.state.memory.ring))

    def joined_by(self, newcomers: Codes, rule: Rule) -> WindowEngine:
        """The engine as if newcomers had always been there, under the rule for that many labelers."""
        state = self.state.with_labelers(rule.sizes, rule.n_classes, newcomers)
        return WindowEngine(rule, self.n_labelers + newcomers.shape[1], self.n_jobs, state)

    def arrays(self) -> Arrays:
        memory = self.state.memory
        return {
            "rows": self.state.recent_rows(),
            "sums": memory.sums,
            "votes": memory.votes,
            "clock": memory.clock,
        }

    def restore(self, arrays: Arrays) -> None:
        memory = self.state.memory
        n, windows = self.n_labelers, len(self.rule.sizes)
        expect(arrays, "clock", np.int64, (1,))
        expect(arrays, "sums", np.int64, (windows, n_pairs(n)))
        expect(arrays, "votes", np.int64, (windows, n))
        kept = min(int(arrays["clock"][0]), len(memory.ring))
        expect(arrays, "rows", code_dtype(self.n_classes), (kept, n))
        memory.clock[:] = arrays["clock"]
        memory.sums[:] = arrays["sums"]
        memory.votes[:] = arrays["votes"]
        self.state.set_recent_rows(arrays["rows"])


def joined(parts: list[Labeled]) -> Labeled:
    """Parts of a batch as one; labelers that joined later have no estimates before."""
    if len(parts) == 1:
        return parts[0]
    estimates = type(parts[0].estimates).joined([part.estimates for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    return Labeled(labels, np.concatenate([part.proba for part in parts]), estimates)


def equal_vote(rows: Codes, draws: Floats, rule: Rule) -> tuple[Ints, Floats]:
    """The vote before anything is known: every labeler with the same weight."""
    p = accuracy_at_weight(EQUAL_WEIGHT, rule.n_classes)
    return weighted_vote(rows, np.full(rows.shape[1], p), draws, rule)


def expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    """Refuse a state whose arrays cannot belong to this model."""
    if name not in arrays:
        raise StateError(f"the state lacks the array {name!r}")
    found = arrays[name]
    if found.dtype != np.dtype(dtype) or found.shape != shape:
        raise StateError(
            f"the state's array {name!r} is {found.dtype} of shape {found.shape}, not"
            f" {np.dtype(dtype)} of shape {shape}"
        )
