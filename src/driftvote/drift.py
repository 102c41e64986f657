"""7 EVENTS: when something changed, who changed, from what to what.

An event is a change that stays: the rows since differ from those before by more than chance explains, however often
one looks. It is reported once. `watching.py` finds it, `diagnosis.py` says who it was; here is what comes out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from driftvote.times import show_time

WORSE, BETTER, MIXED = "labeler worse", "labeler better", "labelers changed"
COVERAGE, BALANCE, EVERYTHING = "coverage", "class balance", "everything"
KINDS = (WORSE, BETTER, MIXED, COVERAGE, BALANCE, EVERYTHING)

Time = str | float | int | None
"""A time as plain values can hold it: numbers and text as they came, dates and times as ISO 8601 text."""

SHOWN = 4
"""Labelers that a sentence names; the rest is counted."""


@dataclass(frozen=True)
class LabelerChange:
    """One labeler before and after a change.

    Attributes
    ----------
    name: its name.
    change: `"worse"`, `"better"`, `"votes less"` or `"votes more"`.
    accuracy_before, accuracy_after: its accuracy when it votes, estimated from the rows on either side.
    low_before, high_before, low_after, high_after: 95% bands around them.
    coverage_before, coverage_after: share of the rows on which it voted.
    """

    name: str
    change: str
    accuracy_before: float
    low_before: float
    high_before: float
    accuracy_after: float
    low_after: float
    high_after: float
    coverage_before: float
    coverage_after: float

    @property
    def sentence(self) -> str:
        """What changed, in words.

        >>> LabelerChange("judge-b", "worse", 0.89, 0.87, 0.91, 0.71, 0.62, 0.8, 1.0, 1.0).sentence
        'judge-b is right 71% of the time instead of 89%'
        """
        if self.change in ("votes less", "votes more"):
            return f"{self.name} votes on {_percent(self.coverage_after, self.coverage_before)}"
        return f"{self.name} is right {_percent(self.accuracy_after, self.accuracy_before, ' of the time')}"


@dataclass(frozen=True)
class DriftEvent:
    """A change that was noticed.

    Attributes
    ----------
    row: number (from 0) of the row at which it was noticed.
    time: the caller's time of that row; None without times.
    since, about: first and last row between which it most likely happened, and the likeliest.
    since_time, about_time: the same in times, to within a block of 64 rows.
    kind: one of `KINDS`.
    labelers: who changed, the clearest change first; empty for a change of the class balance.
    pairs: pairs of labelers whose agreement changed most.
    window_before, window_after: rows that counted before the change and when it was noticed.
    balance_before, balance_after: share of the rows on which most votes go to each class, by class.
    """

    row: int
    time: Time
    since: tuple[int, int]
    since_time: tuple[Time, Time] | None
    about: int
    about_time: Time
    kind: str
    labelers: tuple[LabelerChange, ...]
    pairs: tuple[tuple[str, str], ...]
    window_before: int
    window_after: int
    balance_before: dict[str, float]
    balance_after: dict[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The labelers that changed."""
        return tuple(who.name for who in self.labelers)

    @property
    def when(self) -> str:
        """Where it began, in words: the time if there is one."""
        return f"row {self.about:,}" if self.about_time is None else show_time(self.about_time)

    @property
    def what(self) -> str:
        """What changed, in words."""
        if self.kind == BALANCE:
            return _balance_sentence(self.balance_before, self.balance_after)
        told = "; ".join(who.sentence for who in self.labelers[:SHOWN])
        rest = len(self.labelers) - SHOWN
        told += f"; and {rest} more" if rest > 0 else ""
        return f"most labelers changed: {told}" if self.kind == EVERYTHING else told

    @property
    def sentence(self) -> str:
        """The event for people.

        >>> one = LabelerChange("judge-b", "worse", 0.89, 0.87, 0.91, 0.71, 0.62, 0.8, 1.0, 1.0)
        >>> shares = {"safe": 0.5, "unsafe": 0.5}
        >>> event = DriftEvent(4287, None, (4098, 4140), None, 4120, None, WORSE, (one,), (), 4096, 128, shares, shares)
        >>> event.sentence
        'since about row 4,120, judge-b is right 71% of the time instead of 89%'
        """
        return f"since about {self.when}, {self.what}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold, the sentence among them."""
        told = asdict(self)
        told["since"] = list(self.since)
        told["since_time"] = None if self.since_time is None else list(self.since_time)
        told["labelers"] = [asdict(who) for who in self.labelers]
        told["pairs"] = [list(pair) for pair in self.pairs]
        return {"sentence": self.sentence, **told}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> DriftEvent:
        """An event from what `as_dict` gave."""
        told = {key: value for key, value in plain.items() if key != "sentence"}
        told["since"] = tuple(told["since"])
        told["since_time"] = None if told["since_time"] is None else tuple(told["since_time"])
        told["labelers"] = tuple(LabelerChange(**who) for who in told["labelers"])
        told["pairs"] = tuple((first, second) for first, second in told["pairs"])
        return cls(**told)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class DriftWarning:
    """Something about the panel that is no event: labelers that err together.

    Attributes
    ----------
    kind: `"near copies"` or `"few independent labelers"`.
    labelers: whom it concerns.
    value: the agreement of near copies, or how many independent labelers the panel is worth.
    row: rows seen when it was found.
    """

    kind: str
    labelers: tuple[str, ...]
    value: float
    row: int

    @property
    def sentence(self) -> str:
        """The warning for people.

        >>> DriftWarning("near copies", ("a", "b"), 0.97, 1000).sentence
        'a and b vote nearly alike: together they count for little more than one'
        """
        if self.kind == "near copies":
            return f"{' and '.join(self.labelers)} vote nearly alike: together they count for little more than one"
        return f"{len(self.labelers)} labelers are worth only {self.value:.1f} independent ones"

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold, the sentence among them."""
        return {"sentence": self.sentence, **asdict(self), "labelers": list(self.labelers)}

    def __str__(self) -> str:
        return self.sentence


def _percent(after: float, before: float, of: str = " of the rows") -> str:
    digits = 0 if f"{after:.0%}" != f"{before:.0%}" else 1
    return f"{after:.{digits}%}{of} instead of {before:.{digits}%}"


def _balance_sentence(before: dict[str, float], after: dict[str, float]) -> str:
    moved = max(after, key=lambda name: abs(after[name] - before.get(name, 0.0)), default="")
    told = _percent(after.get(moved, 0.0), before.get(moved, 0.0))
    return f"the classes come in other shares: most votes are for {moved} on {told}"
