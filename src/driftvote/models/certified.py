"""The certificate that a step carries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class StepCertificate:
    """Who decided a row, and how often they are wrong at most: whatever the dependence, if the accuracies hold."""

    members: tuple[str, ...]
    bound: float
    searched_at: int  # row number of the search
    window: int  # rows it was made from
    allowance: float  # for the agreements of those rows

    @classmethod
    def of(cls, record: Any, names: tuple[str, ...]) -> StepCertificate:
        """From the engine's record."""
        members = tuple(name for name, member in zip(names, record.members, strict=True) if member)
        return cls(members, record.bound, record.row, record.window, record.allowance)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "members": list(self.members)}
