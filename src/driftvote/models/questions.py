"""Questions: the few rows whose true class says most about the others.

Label models that fit the votes equally well can name different classes. Where they do, a verified row tells which of
them to believe, and what is true of rows like it: those on which each label model names the same classes, a *kind* of
disagreement. Questions are spread over the kinds, most to those with many uncertain rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.engine import Engine, Estimates, Known
from driftvote.core.label_models.mixture import MEMBERS, MIXTURE_ROWS, Mixture
from driftvote.drift.events import LABELER_KINDS, DriftEvent
from driftvote.models.show import html_note, html_table
from driftvote.randomness import uniforms
from driftvote.votes import VoteFormat

MOST_ROWS = 1 << 13
"""Rows of a window that `AdaptiveLabelModel.ask` looks at; of a larger one it takes a sample."""

ONE_OF = 3
"""At most every third row in dispute is asked for: answers are for the others."""

SURE = 0.1
"""Rows count as at least so uncertain: a mixture that is sure can be wrong where its label models disagree."""

ENOUGH = 0.002
"""No more questions if twenty of them would change a smaller share of the labels."""

LOOK_AHEAD = 20
"""Questions that the expected change is estimated for."""


@dataclass(frozen=True)
class Question:
    """A row whose true class would help most to label the others.

    Attributes
    ----------
    row: its number in the stream, from 0.
    id: its id, if it came with one.
    time: the time of the row, to within a block of 64 rows; None without times.
    votes: the votes by labeler; labelers that abstain are left out.
    classes: the classes in dispute and their probabilities, the likeliest first.
    why: one sentence.
    """

    row: int
    id: Hashable
    time: Any
    votes: dict[str, Any]
    classes: dict[Any, float]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON takes them."""
        classes = [{"class": value, "probability": round(p, 4)} for value, p in self.classes.items()]
        return {
            "row": self.row,
            "id": self.id,
            "time": self.time,
            "votes": self.votes,
            "classes": classes,
            "why": self.why,
        }

    def _repr_html_(self) -> str:
        rows = [(name, str(vote)) for name, vote in self.votes.items()]
        title, *_ = str(self).split(" ".join(("", self.why)))
        return html_note(title, self.why, after=html_table(("labeler", "vote"), rows))

    def __str__(self) -> str:
        name = f"row {self.row}" if self.id is None else f"row {self.row} ({self.id})"
        shown = ", ".join(f"{value} {p:.0%}" for value, p in self.classes.items())
        return f"{name}: {shown}? {self.why}"


class Questions(list[Question]):
    """A list of questions, most valuable first, with the expected effect of answers.

    Attributes
    ----------
    expected_change: share of the labels that `LOOK_AHEAD` more answers are expected to change.
    note: why there are fewer questions than asked for; empty otherwise.
    """

    def __init__(self, questions: Iterable[Question] = (), expected_change: float = 0.0, note: str = "") -> None:
        super().__init__(questions)
        self.expected_change = expected_change
        self.note = note

    def _repr_html_(self) -> str:
        shown = [", ".join(f"{value} {p:.0%}" for value, p in one.classes.items()) for one in self]
        ids = [str(one.row) if one.id is None else f"{one.row} ({one.id})" for one in self]
        rows = [
            (number, id, classes, one.why)
            for number, (id, classes, one) in enumerate(zip(ids, shown, self, strict=True), 1)
        ]
        change = f"{LOOK_AHEAD} answers are expected to change {self.expected_change:.1%} of the labels"
        title = f"{len(self)} questions; {change}"
        return html_note(
            title, *([self.note] if self.note else []), after=html_table(("", "row", "class", "why"), rows)
        )

    def __str__(self) -> str:
        return "\n".join([*map(str, self), *([self.note] if self.note else [])])


class Scores(NamedTuple):
    """What the label models say of rows."""

    parts: Floats  # (rows, members, classes): their probabilities
    named: Ints  # (rows, members): the class that each names, -1 if two are alike
    doubt: Floats  # (rows,): the probability, by the mixture, that its likeliest class is wrong
    disputed: Any  # (rows,): whether the votes differ and the label models name different classes


def score(estimates: Estimates, rows: Codes) -> Scores:
    """Return what the label models of a mixture say of rows; `estimates` are those that labeled them."""
    panel, fits, places = estimates.panel, estimates.fits, estimates.places
    assert isinstance(panel.estimator, Mixture)
    parts = panel.estimator.score(panel.settings, fits, places, np.ascontiguousarray(rows))
    tops = parts > parts.max(axis=2, keepdims=True) - 1e-9
    named = np.where(tops.sum(axis=2) > 1, -1, tops.argmax(axis=2))
    mixed = np.einsum("tm,tmk->tk", fits.weights[places], parts)
    votes = np.where(rows < -1, -2 - rows, rows)  # random votes that stand for abstentions count too
    highest = votes.max(axis=1)
    unanimous = (np.where(votes < 0, highest[:, None], votes) == highest[:, None]).all(axis=1)
    disputed = ~unanimous & (named != named[:, :1]).any(axis=1)
    return Scores(parts, named, 1.0 - mixed.max(axis=1), disputed)


def known_stretches(numbers: Ints, scores: Scores, classes: Ints, starts: Sequence[int]) -> list[Known]:
    """Return verified rows for `LabelModel.know`, by the stretch that they lie in.

    For a stream that is labeled again: `scores` are those of the verified rows when it was labeled before, `numbers`
    are in order, and `starts` are the rows at which a stretch begins (`stretch_starts`).
    """
    at = np.flatnonzero(scores.disputed)
    numbers, classes, named = numbers[at], classes[at], scores.named[at]
    shares = np.take_along_axis(scores.parts[at], classes[:, None, None], axis=2)[:, :, 0]
    right = np.where(named < 0, shares, named == classes[:, None])
    known = []
    for begin, end in pairwise([0, *starts, 2**62]):
        own = slice(*np.searchsorted(numbers, (begin, end)))
        if own.start < own.stop:
            known.append(Known(begin, end, numbers[own], named[own], right[own], classes[own]))
    return known


def stretch_starts(events: Iterable[DriftEvent]) -> list[int]:
    """Return the rows at which labelers changed."""
    return sorted({event.about for event in events if event.kind in LABELER_KINDS})


@dataclass
class Kind:
    """Rows in one stretch on which the label models disagree in the same way."""

    rows: int
    doubt: float  # sum over its rows
    answered: int  # rows of it that are verified
    free: Ints  # the numbers of the others, in the order in which questions take them
    asked: int = 0

    @property
    def mean_doubt(self) -> float:
        return max(self.doubt / max(1, self.rows), SURE)

    def value(self) -> float:
        """What one more question is worth: rows by doubt, less for each one that is asked already."""
        n_asked = self.asked + self.answered
        return self.rows * self.mean_doubt / (n_asked + 1) ** 1.5

    def expected_change(self, more: int) -> float:
        """Rows whose label is expected to change by so many more answers.

        The share of rows that are wrong has a beta distribution whose mean is the doubt, worth as many rows as the
        mixture counts for beside answers; the label changes if more than half of the evidence is against it.
        """
        doubt, strength = min(self.mean_doubt, 0.5), MIXTURE_ROWS + self.answered
        against, in_favour = strength * doubt, strength * (1.0 - doubt)
        flips = 0.0
        for wrong in range(more + 1):
            if against + wrong > in_favour + more - wrong:
                flips += math.exp(
                    _log_choose(more, wrong)
                    + _log_beta(against + wrong, in_favour + more - wrong)
                    - _log_beta(against, in_favour)
                )
        return self.rows * flips


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


class Chosen(NamedTuple):
    """Rows to ask for."""

    rows: list[int]  # most valuable first
    likes: dict[int, int]  # for each: rows of its kind
    expected_change: float
    note: str


class Pool:
    """Rows in dispute, taken in pieces, and the choice among them."""

    def __init__(self, seed: int) -> None:
        self.n_rows = 0
        self._seed = seed
        self._pieces: list[tuple[Ints, Any, Any, Any]] = []  # of rows in dispute: numbers, classes named, doubt, known

    def add(self, numbers: Ints, scores: Scores, verified: Any = None) -> None:
        """Add rows by their numbers; a row with a verified class counts as answered."""
        self.n_rows += len(numbers)
        at = np.flatnonzero(scores.disputed)
        known = np.zeros(len(at), np.bool_) if verified is None or not len(verified) else verified[at] >= 0
        self._pieces.append(
            (numbers[at], scores.named[at].astype(np.int16), scores.doubt[at].astype(np.float32), known)
        )

    def choose(self, n: int, starts: Sequence[int] = ()) -> Chosen:
        """Return the rows to ask for, at most `n`; `starts` are the rows at which stretches begin."""
        kinds = self._kinds(starts)
        disputed = sum(kind.rows for kind in kinds)
        if not disputed:
            return Chosen([], {}, 0.0, "The label models agree on every row: there is nothing to ask.")
        most = max(1, disputed // ONE_OF) - sum(kind.answered for kind in kinds)
        self._spread(kinds, LOOK_AHEAD, most)
        change = sum(kind.expected_change(kind.asked) for kind in kinds if kind.asked) / self.n_rows
        if change < ENOUGH:
            return Chosen([], {}, change, f"{LOOK_AHEAD} more answers would change {change:.2%} of the labels: enough.")
        chosen = self._spread(kinds, n, most)
        note = "" if len(chosen) >= n else f"{len(chosen)} questions are enough for {disputed:,} rows in dispute."
        return Chosen([row for row, _ in chosen], dict(chosen), change, note)

    def _kinds(self, starts: Sequence[int]) -> list[Kind]:
        if not self._pieces:
            return []
        numbers, named, doubt, known = (np.concatenate(column) for column in zip(*self._pieces, strict=True))
        stretches = np.searchsorted(np.asarray(starts, np.int64), numbers, side="right")
        names, member = np.unique(np.column_stack([stretches, named]), axis=0, return_inverse=True)
        member = member.ravel()
        draws = uniforms(self._seed, numbers, np.zeros(1, np.int64))
        order = np.lexsort((draws, member))
        borders = np.searchsorted(member[order], np.arange(len(names) + 1))
        kinds = []
        for begin, end in pairwise(borders.tolist()):
            own = order[begin:end]
            free = numbers[own[~known[own]]]
            kinds.append(Kind(len(own), float(doubt[own].sum()), int(known[own].sum()), free))
        return kinds

    @staticmethod
    def _spread(kinds: list[Kind], n: int, most: int) -> list[tuple[int, int]]:
        """Return rows and the sizes of their kinds: again and again one of the kind that is worth most."""
        chosen: list[tuple[int, int]] = []
        for kind in kinds:
            kind.asked = 0
        while len(chosen) < min(n, most):
            kind = max(kinds, key=lambda one: one.value() if one.asked < len(one.free) else -1.0)
            if kind.asked >= len(kind.free):
                break
            chosen.append((int(kind.free[kind.asked]), kind.rows))
            kind.asked += 1
        return chosen


def dispute(named: Ints, proba: Floats, form: VoteFormat, likes: int) -> tuple[dict[Any, float], str]:
    """Return the classes in dispute on one row with their probabilities, and why it is asked for."""
    by_class: dict[int, list[str]] = {}
    for member, code in zip(MEMBERS, named.tolist(), strict=True):
        by_class.setdefault(code, []).append(member)
    codes = sorted((code for code in by_class if code >= 0), key=lambda code: -proba[code])
    if len(codes) < 2:  # the majority is tied: the runner-up is the other class
        codes += [code for code in np.argsort(-proba, kind="stable").tolist() if code not in codes][: 2 - len(codes)]
    said = [f"{', '.join(by_class[code])} say {form.decode_one(code)}" for code in codes if code in by_class]
    if -1 in by_class:
        said.append(f"{', '.join(by_class[-1])} cannot tell")
    like = f"; {likes:,} rows are like this one" if likes > 1 else ""
    return {form.decode_one(code): float(proba[code]) for code in codes}, f"{'; '.join(said)}{like}."


def choose_from_window(engine: Engine, n: int, seed: int, since: int) -> tuple[Chosen, Ints, Floats]:
    """Return the rows of the current window, from row `since` on, to ask for, what label models name on them, and their
    probabilities.
    """
    estimates = engine.current()
    window = int(estimates.windows[0])
    numbers = np.arange(min(max(since, engine.n_rows - window), engine.n_rows), engine.n_rows)
    if len(numbers) > MOST_ROWS:
        draws = uniforms(seed, numbers, np.ones(1, np.int64))
        numbers = np.sort(numbers[np.argpartition(draws, MOST_ROWS)[:MOST_ROWS]])
    rows, verified = engine.rows_at(numbers)
    scores = score(Estimates(estimates.panel, estimates.fits, np.zeros(len(numbers), np.int64)), rows)
    pool = Pool(seed)
    pool.add(numbers, scores, verified)
    chosen = pool.choose(n)
    places = np.searchsorted(numbers, np.array(chosen.rows, np.int64))
    _, proba = engine.predict(np.ascontiguousarray(rows[places]), np.zeros(0))
    return chosen, scores.named[places], proba
