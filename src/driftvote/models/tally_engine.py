"""Engines under the sharper window rules: class-conditional labelers, or the paper's estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.agreements import n_pairs
from driftvote.kernels.bounds import Watch, choose
from driftvote.kernels.confusion import Fit
from driftvote.kernels.fits import fit_window
from driftvote.kernels.layout import Codes, Floats, Ints, Outputs, Rule, code_dtype
from driftvote.kernels.refits import (
    REFITS_A_WINDOW,
    Plan,
    Said,
    estimate_now,
    kept,
    label_by_triplets,
    label_with_refits,
    vote_by_fit,
)
from driftvote.kernels.tallies import Tally, absorb_rows
from driftvote.labels import weighted_vote
from driftvote.models.engine import Arrays, Engine, Labeled, expect
from driftvote.models.estimates import EqualEstimates, Estimates, WindowEstimates
from driftvote.models.fit_estimates import FitEstimates
from driftvote.models.id_book import IdBook, Marks
from driftvote.tallies import empty_tally, recent_slots, recounted, tally_of


class TallyEngine(Engine):
    """State of one stream under a `Watch`: what both estimators share."""

    def __init__(
        self,
        watch: Watch,
        rule: Rule,
        n_labelers: int,
        tally: Tally | None = None,
        stride: int = 1,
        spare: int = 0,
    ) -> None:
        self.watch = watch
        self.rule = rule
        self.n_labelers = n_labelers
        self.n_classes = rule.n_classes
        self.tally = tally or empty_tally(watch.sizes, n_labelers, rule.n_classes, stride, spare)

    @property
    def n_rows(self) -> int:
        return int(self.tally.clock[0])

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.tally if isinstance(part, np.ndarray))

    def window_tally(self) -> tuple[Ints, Ints, int]:
        """Pair agreements times K - 1 and votes over the window that the rule picks now, and its rows."""
        level = choose(self.tally, self.watch)
        stats = self.tally.stats[level]
        sums, votes = stats[: n_pairs(self.n_labelers)].copy(), stats[-self.n_labelers :].copy()
        return sums, votes, min(int(self.watch.sizes[level]), self.n_rows)

    def remembered(self) -> int:
        return min(self.n_rows, len(self.tally.ring))

    def widened(self, newcomers: Codes, first: int) -> tuple[Tally, Codes, Ints]:
        """The tally as if newcomers had always been there, up to row `first`; the rows from there on, and what is
        known of them."""
        slots = recent_slots(self.tally)
        rows = np.ascontiguousarray(np.hstack([self.tally.ring[slots], newcomers]))
        known = self.tally.known[slots]
        before = max(0, len(rows) - (self.n_rows - first))
        tally = recounted(rows[:before], known[:before], first, self.watch.sizes, self.tally)
        return tally, rows[before:], known[before:]

    def arrays(self) -> Arrays:
        slots = recent_slots(self.tally)
        return {"rows": self.tally.ring[slots], "known": self.tally.known[slots], "clock": self.tally.clock}

    def restore(self, arrays: Arrays) -> None:
        expect(arrays, "clock", np.int64, (1,))
        seen = int(arrays["clock"][0])
        rows = min(seen, len(self.tally.ring))
        expect(arrays, "rows", code_dtype(self.n_classes), (rows, self.n_labelers))
        expect(arrays, "known", np.int64, (rows,))
        self.tally = recounted(arrays["rows"], arrays["known"], seen, self.watch.sizes, self.tally)


class TripletEngine(TallyEngine):
    """The paper's estimator under another window rule, row by row."""

    def label(self, rows: Codes, draws: Floats) -> Labeled:
        n_rows, n = rows.shape
        out = Outputs(
            labels=np.empty(n_rows, np.int64),
            proba=np.empty((n_rows, self.n_classes)),
            windows=np.empty(n_rows, np.int64),
            estimates=np.empty((n_rows, n)),
            votes=np.empty((n_rows, n), np.int64),
        )
        label_by_triplets(rows, draws, self.tally, self.watch, self.rule, out)
        return Labeled(out.labels, out.proba, WindowEstimates(out.estimates, out.votes, out.windows, self.rule))

    def learn(self, rows: Codes) -> None:
        absorb_rows(rows, self.watch.sizes, self.tally)

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return weighted_vote(rows, self._now().weighing[0], draws, self.rule)

    def current(self) -> Estimates:
        if not self.n_rows:
            return EqualEstimates(1, self.n_labelers, self.n_classes, window=0)
        return self._now()

    def _now(self) -> WindowEstimates:
        estimates, votes = np.empty((1, self.n_labelers)), np.empty((1, self.n_labelers), np.int64)
        window = estimate_now(self.tally, self.watch, self.rule, estimates[0], votes[0])
        return WindowEstimates(estimates, votes, np.array([window]), self.rule)

    def joined_by(self, newcomers: Codes, watch: Watch, rule: Rule) -> TripletEngine:
        """The engine as if newcomers had always been there, under the rules for that many labelers."""
        tally, _, _ = self.widened(newcomers, self.n_rows)
        return TripletEngine(watch, rule, self.n_labelers + newcomers.shape[1], tally)


class ConfusionEngine(TallyEngine):
    """Class-conditional labelers: fitted to the window every so often, by the row's number."""

    estimator = "confusion"

    def __init__(
        self, watch: Watch, rule: Rule, n_labelers: int, plan: tuple[int, Floats], tally: Tally | None = None
    ) -> None:
        refresh, given = plan
        periods = periods_of(watch.sizes, refresh)
        super().__init__(watch, rule, n_labelers, tally, refresh, spare=int(periods[-1]))
        self.plan = Plan(refresh, periods, given)
        self.fit = room_for_fits(1, n_labelers, rule.n_classes)
        self.ids = IdBook()
        self.stale = False  # something was verified since the fit

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(part.nbytes for part in self.fit) + self.ids.nbytes

    @property
    def reach(self) -> int:
        """Rows as far back as anything counts."""
        return int(self.watch.sizes[-1])

    def label(self, rows: Codes, draws: Floats) -> Labeled:
        return self.label_marked(rows, draws, Marks())

    def label_marked(self, rows: Codes, draws: Floats, marks: Marks) -> Labeled:
        if marks.ids is not None:
            self.ids.add(self.n_rows, marks.ids)
        known = np.empty(0, np.int64) if marks.verified is None else marks.verified
        said = self._labeled(rows, known, draws)
        self.ids.forget(self.n_rows - self.reach)
        if len(known):
            sure = np.flatnonzero(known >= 0)
            said.labels[sure] = known[sure]
            said.proba[sure] = np.eye(self.n_classes)[known[sure]]
        return said

    def _labeled(self, rows: Codes, known: Ints, draws: Floats) -> Labeled:
        self._catch_up()
        n_rows = len(rows)
        said = Said(
            labels=np.empty(n_rows, np.int64),
            proba=np.empty((n_rows, self.n_classes)),
            fits=np.empty(n_rows, np.int64),
        )
        most = self._looks(n_rows)
        if not most and self.fit.window[0, 0]:  # most single rows: nothing new to make room for
            label_with_refits(rows, known, draws, self.tally, self.watch, self.plan, self.fit, said)
            return Labeled(said.labels, said.proba, FitEstimates(self.fit, said.fits, self.rule))
        fits = room_for_fits(2 + most, self.n_labelers, self.n_classes)
        for part, now in zip(fits, self.fit, strict=True):
            part[0] = now[0]
        last = label_with_refits(rows, known, draws, self.tally, self.watch, self.plan, fits, said)
        latest: Any = (part[last : last + 1].copy() for part in fits)
        self.fit = Fit(*latest)
        used: Any = (part[: last + 1] for part in fits)
        return Labeled(said.labels, said.proba, FitEstimates(Fit(*used), said.fits, self.rule))

    def _looks(self, n_rows: int) -> int:
        """At most how many fits a chunk of this length makes."""
        first, refresh = self.n_rows, self.plan.refresh
        early = max(0, min(refresh, first + n_rows) - first)
        return early + (first + n_rows - 1) // refresh - (first - 1) // refresh

    def learn(self, rows: Codes) -> None:
        # A fit belongs to rows by their numbers, so learning goes the same way as labeling.
        self.label(rows, np.full(len(rows), -1.0))

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        labels, proba = np.empty(len(rows), np.int64), np.empty((len(rows), self.n_classes))
        self._catch_up()
        vote_by_fit(rows, draws, kept(self.fit, 0), labels, proba)
        return labels, proba

    def current(self) -> Estimates:
        if not self.n_rows:
            return EqualEstimates(1, self.n_labelers, self.n_classes, window=0)
        self._catch_up()
        return FitEstimates(self.fit, np.zeros(1, np.int64), self.rule)

    def accuracies_of(self, rows: Codes) -> Floats:
        fit = room_for_fits(1, self.n_labelers, self.n_classes)
        tally = tally_of(rows, self.n_classes, self.tally.stride)
        fit_window(tally, 0, len(rows), self.plan.given, kept(fit, 0))
        return np.asarray(fit.accuracy[0])

    def verify(self, rows: Ints, classes: Ints) -> None:
        """Rows that are remembered are of these classes. Fitted anew once somebody asks, however many they were."""
        self.tally.known[rows % len(self.tally.known)] = classes
        self.stale = True

    def verified_class(self, row: int) -> int:
        """The verified class of a row that is remembered, or -1."""
        return int(self.tally.known[row % len(self.tally.known)])

    def verified(self) -> tuple[Ints, Ints]:
        """The verified rows that still count, oldest first, and their classes."""
        rows = np.arange(max(0, self.n_rows - self.reach), self.n_rows)
        classes = self.tally.known[rows % len(self.tally.known)]
        return rows[classes >= 0], classes[classes >= 0]

    def _catch_up(self) -> None:
        """Fit again if something was verified since; the same at any moment before the next row."""
        if self.stale:
            level = choose(self.tally, self.watch)
            window = min(int(self.watch.sizes[level]), self.n_rows)
            self.fit = room_for_fits(1, self.n_labelers, self.n_classes)
            fit_window(self.tally, level, window, self.plan.given, kept(self.fit, 0))
            self.stale = False

    def joined_by(self, newcomers: Codes, watch: Watch, rule: Rule) -> ConfusionEngine:
        """The engine as if newcomers had always been there.

        It starts again at the last row at which every window is fitted, so nothing older matters.
        """
        period = int(self.plan.periods[-1])
        first = max(0, self.n_rows - 1) // period * period
        tally, rows, known = self.widened(newcomers, first)
        n = self.n_labelers + newcomers.shape[1]
        wider = ConfusionEngine(watch, rule, n, (self.plan.refresh, self.plan.given), tally)
        if len(rows):
            wider.learn(rows)
            wider.tally.known[recent_slots(wider.tally)[-len(rows) :]] = known
        wider.ids = self.ids
        wider.stale = bool((wider.tally.known >= 0).any())
        return wider

    def arrays(self) -> Arrays:
        self._catch_up()
        fit = {f"fit_{name}": part for name, part in self.fit._asdict().items()}
        return super().arrays() | fit | self.ids.arrays()

    def restore(self, arrays: Arrays) -> None:
        super().restore(arrays)
        fresh = room_for_fits(1, self.n_labelers, self.n_classes)
        for name, part in fresh._asdict().items():
            expect(arrays, f"fit_{name}", part.dtype, part.shape)
        self.fit = Fit(*(arrays[f"fit_{name}"].copy() for name in Fit._fields))
        self.ids = IdBook.restored(arrays, self.n_rows)


def periods_of(sizes: Ints, refresh: int) -> Ints:
    """Rows between two fits, for each window: `refresh` times a power of two, about a sixteenth of the window.

    >>> periods_of(np.array([1, 256, 1024, 8192]), 32)
    array([ 32,  32,  64, 512])
    """
    share = np.maximum(1, sizes // (REFITS_A_WINDOW * refresh))
    return np.asarray(refresh * 2 ** np.floor(np.log2(share)).astype(np.int64))


def room_for_fits(n_fits: int, n_labelers: int, n_classes: int) -> Fit:
    """Arrays for so many fits; a window of 0 says that there is none."""
    return Fit(
        theta=np.zeros((n_fits, n_labelers, n_classes, n_classes + 1)),
        coin=np.zeros((n_fits, n_labelers)),
        balance=np.zeros((n_fits, n_classes)),
        doubts=np.zeros((n_fits, 2)),
        accuracy=np.zeros((n_fits, n_labelers)),
        votes=np.zeros((n_fits, n_labelers), np.int64),
        window=np.zeros((n_fits, 1), np.int64),
    )
