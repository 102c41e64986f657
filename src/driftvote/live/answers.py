"""An answer: one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from driftvote.live.reading import Row, Verification
from driftvote.models import Step


@dataclass(frozen=True)
class Answers:
    """Which parts an answer has beside label, probability, window and number of votes."""

    review_below: float
    proba: bool = False
    accuracies: bool = False
    weights: bool = False
    explain: bool = False

    def of_row(self, number: int, row: Row, step: Step) -> dict[str, Any]:
        """The answer to votes; `number` is that of the row in the stream, from 0."""
        probability = step.probability
        said: dict[str, Any] = {} if row.id is None else {"id": row.id}
        said |= {
            "row": number,
            "label": step.label,
            "probability": probability,
            "window": step.window,
            "n_votes": sum(vote is not None for vote in row.votes.values()),
            "needs_review": step.code < 0 or probability < self.review_below,
        }
        if row.unknown:
            said["unknown"] = row.unknown
        if row.verified is not None:
            said["verified"] = row.verified
        if self.proba:
            said["proba"] = dict(zip(map(str, step.classes), step.proba.tolist(), strict=True))
        if self.accuracies:
            said["accuracies"] = dict(zip(step.labelers, step.accuracies.tolist(), strict=True))
        if self.weights:
            said["weights"] = dict(zip(step.labelers, step.weights.tolist(), strict=True))
        if self.explain:
            told = step.explain().as_dict()
            said["explain"] = {key: told[key] for key in ("majority", "overruled", "votes")}
        return said

    def of_verification(self, verification: Verification) -> dict[str, Any]:
        """That an earlier row was verified."""
        return {verification.by: verification.key, "verified": verification.label}

    def of_error(self, line: int, row_id: Any, problem: str) -> dict[str, Any]:
        """A line that could not be taken, so that lines and answers stay side by side."""
        return ({} if row_id is None else {"id": row_id}) | {"line": line, "error": problem}


def as_line(said: dict[str, Any]) -> bytes:
    """One line of ASCII, which no reader can misunderstand."""
    return json.dumps(said, separators=(", ", ": ")).encode() + b"\n"
