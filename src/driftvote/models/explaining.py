"""Why a row got its label: what each vote counted, what the majority said, and how much of the past was used."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driftvote.kernels.layout import Codes, Floats
from driftvote.labels import plain_vote
from driftvote.models.estimates import Estimates
from driftvote.votes import VoteFormat


@dataclass(frozen=True)
class Contribution:
    """One labeler's part in a label.

    Attributes
    ----------
    labeler: its name.
    vote: the class it voted for; None where it abstained.
    weight: log-odds that its vote added to that class; 0 where it abstained.
    accuracy: how often it is right when it votes, as estimated then.
    for_label: whether it voted for the label.
    """

    labeler: str
    vote: Any
    weight: float
    accuracy: float
    for_label: bool


@dataclass(frozen=True)
class Explanation:
    """Why a row got its label.

    Attributes
    ----------
    label, probability: the label, in the caller's class values, and how likely it is.
    proba: probability of each class.
    majority: what a plain majority says; the abstention value where it is tied.
    window: rows that the weights were estimated from.
    votes: one `Contribution` a labeler, the heaviest first, abstentions last.
    row: number of the row in the stream; None for a row that was not learned from.
    """

    label: Any
    probability: float
    proba: dict[Any, float]
    majority: Any
    window: int
    votes: tuple[Contribution, ...]
    row: int | None = None

    @property
    def overruled(self) -> bool:
        """Whether the label is not the majority's."""
        return bool(self.label != self.majority)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"overruled": self.overruled, "votes": [asdict(vote) for vote in self.votes]}

    def __str__(self) -> str:
        which = "row" if self.row is None else f"row {self.row:,}"
        said = f"{which}: {self.label!r} with probability {self.probability:.3f}, from the last {self.window:,} rows"
        beside = "the majority says the same"
        if self.overruled:
            beside = f"the majority says {self.majority!r}"
        width = max((len(vote.labeler) for vote in self.votes), default=0)
        lines = [
            f"  {vote.labeler:<{width}}  {vote.vote!r} {vote.weight:+.2f}  (right {vote.accuracy:.0%} of the time)"
            for vote in self.votes
            if vote.vote is not None
        ]
        silent = [vote.labeler for vote in self.votes if vote.vote is None]
        return "\n".join([f"{said}; {beside}", *lines, *([f"  no vote: {', '.join(silent)}"] if silent else [])])


def explained(
    votes: Codes, code: int, proba: Floats, estimates: Estimates, form: VoteFormat, names: tuple[str, ...]
) -> Explanation:
    """One row in words: `votes` are its codes, `estimates` those of this row alone."""
    majority = int(plain_vote(votes[None], np.full(1, -1.0), form.n_classes)[0][0])
    weights = np.where(votes >= 0, estimates.vote_weights(votes[None])[0], 0.0).tolist()
    parts = [
        Contribution(
            labeler=name,
            vote=form.decode_one(int(votes[place])) if votes[place] >= 0 else None,
            weight=weights[place],
            accuracy=float(estimates.accuracies[0, place]),
            for_label=bool(votes[place] >= 0 and votes[place] == code),
        )
        for place, name in enumerate(names)
    ]
    return Explanation(
        label=form.decode_one(code),
        probability=float(proba.max()),
        proba=dict(zip(form.classes, proba.tolist(), strict=True)),
        majority=form.decode_one(majority),
        window=int(estimates.windows[0]),
        votes=tuple(sorted(parts, key=lambda part: (part.vote is None, -abs(part.weight)))),
    )
