"""Drift events: what a lasting change is reported as.

`detector.py` finds a change and reports it once; `diagnosis.py` says which labelers changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from driftvote.times import show_time

WORSE, BETTER, MIXED = "labeler worse", "labeler better", "labelers changed"
COVERAGE, BALANCE, EVERYTHING = "coverage", "class balance", "most labelers"
KINDS = (WORSE, BETTER, MIXED, COVERAGE, BALANCE, EVERYTHING)
LABELER_KINDS = (WORSE, BETTER, MIXED, COVERAGE, EVERYTHING)
"""Kinds that say that labelers changed, so that what was learned about them before is of another time."""

Time = str | float | int | None
"""A time as a plain value: numbers and text unchanged, dates and times as ISO 8601 text."""

SHOWN = 4
"""Labelers that a sentence names; the others are counted."""


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
        """What changed, as a sentence.

        >>> LabelerChange("judge-b", "worse", 0.89, 0.87, 0.91, 0.71, 0.62, 0.8, 1.0, 1.0).sentence
        'judge-b is right 71% of the time instead of 89%'
        """
        if self.change in ("votes less", "votes more"):
            return f"{self.name} votes on {_percent(self.coverage_after, self.coverage_before)}"
        return f"{self.name} is right {_percent(self.accuracy_after, self.accuracy_before, ' of the time')}"


@dataclass(frozen=True)
class DriftEvent:
    """A lasting change in a stream of votes.

    Attributes
    ----------
    row: number (from 0) of the row at which it was detected.
    time: the caller's time of that row; None without times.
    since, about: first and last row between which it most likely happened, and the likeliest.
    since_time, about_time: the same in times, to within a block of 64 rows.
    kind: one of `KINDS`.
    labelers: the labelers that changed, the clearest change first; empty for a change of the class balance.
    pairs: pairs of labelers whose agreement changed most.
    window_before, window_after: the model's window before the change and at `row`; None without a model.
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
    window_before: int | None
    window_after: int | None
    balance_before: dict[str, float]
    balance_after: dict[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The labelers that changed."""
        return tuple(labeler.name for labeler in self.labelers)

    @property
    def when(self) -> str:
        """Where it began: the time if there is one, otherwise the row."""
        return f"row {self.about:,}" if self.about_time is None else show_time(self.about_time)

    @property
    def what(self) -> str:
        """What changed, without the row or time."""
        if self.kind == BALANCE:
            return _balance_sentence(self.balance_before, self.balance_after)
        text = "; ".join(labeler.sentence for labeler in self.labelers[:SHOWN])
        rest = len(self.labelers) - SHOWN
        text += f"; and {rest} more" if rest > 0 else ""
        return f"most labelers changed: {text}" if self.kind == EVERYTHING else text

    @property
    def sentence(self) -> str:
        """The event as a sentence.

        >>> one = LabelerChange("judge-b", "worse", 0.89, 0.87, 0.91, 0.71, 0.62, 0.8, 1.0, 1.0)
        >>> shares = {"safe": 0.5, "unsafe": 0.5}
        >>> event = DriftEvent(4287, None, (4098, 4140), None, 4120, None, WORSE, (one,), (), 4096, 128, shares, shares)
        >>> event.sentence
        'since about row 4,120, judge-b is right 71% of the time instead of 89%'
        """
        return f"since about {self.when}, {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, the sentence among them."""
        return {"sentence": self.sentence, **as_lists(asdict(self))}

    @classmethod
    def from_dict(cls, plain: dict[str, Any], classes: Sequence[Any] = ()) -> DriftEvent:
        """Return the event that `to_dict` was called on; `classes` give the shares of classes their order."""
        fields = {key: value for key, value in plain.items() if key != "sentence"}
        fields["since"] = tuple(fields["since"])
        fields["since_time"] = None if fields["since_time"] is None else tuple(fields["since_time"])
        fields["labelers"] = tuple(LabelerChange(**labeler) for labeler in fields["labelers"])
        fields["pairs"] = tuple((first, second) for first, second in fields["pairs"])
        places = {str(value): place for place, value in enumerate(classes)}
        for name in ("balance_before", "balance_after"):
            shares = dict(fields[name]).items()
            fields[name] = dict(sorted(shares, key=lambda share: places.get(share[0], len(places))))
        event = cls(**fields)
        if event.kind not in KINDS or not event.sentence:  # which fails if a field is not of its type
            raise ValueError(f"{event.kind!r} is no kind of event")
        return event

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class DriftWarning:
    """A weakness of the panel that is not an event: labelers that err together.

    Attributes
    ----------
    kind: `"near copies"` or `"few independent labelers"`.
    labelers: the labelers that it concerns.
    value: the agreement of near copies, or how many independent labelers the panel is worth.
    row: rows seen when it was given.
    """

    kind: str
    labelers: tuple[str, ...]
    value: float
    row: int

    @property
    def key(self) -> str:
        """What makes two warnings the same warning: kind and labelers."""
        return f"{self.kind}: {', '.join(self.labelers)}"

    @property
    def sentence(self) -> str:
        """The warning as a sentence.

        >>> DriftWarning("near copies", ("a", "b"), 0.97, 1000).sentence
        'a and b vote almost identically: together they count for little more than one labeler'
        """
        if self.kind == "near copies":
            names = " and ".join(self.labelers)
            return f"{names} vote almost identically: together they count for little more than one labeler"
        return f"{len(self.labelers)} labelers are worth only {self.value:.1f} independent ones"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, the sentence among them."""
        return {"sentence": self.sentence, **as_lists(asdict(self))}

    def __str__(self) -> str:
        return self.sentence


def as_lists(value: Any) -> Any:
    """Return plain values with lists in place of tuples, as JSON has them.

    >>> as_lists({"pairs": (("a", "b"),)})
    {'pairs': [['a', 'b']]}
    """
    if isinstance(value, dict):
        return {key: as_lists(part) for key, part in value.items()}
    return [as_lists(part) for part in value] if isinstance(value, (list, tuple)) else value


def _percent(after: float, before: float, of: str = " of the rows") -> str:
    digits = 0 if f"{after:.0%}" != f"{before:.0%}" else 1
    return f"{after:.{digits}%}{of} instead of {before:.{digits}%}"


def _balance_sentence(before: dict[str, float], after: dict[str, float]) -> str:
    name = max(after, key=lambda name: abs(after[name] - before.get(name, 0.0)), default="")
    shares = _percent(after.get(name, 0.0), before.get(name, 0.0))
    return f"the class balance changed: {name} has most votes on {shares}"
