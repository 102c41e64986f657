"""Labeling a stream of votes line by line, as `driftvote watch` does.

`lines` reads lines from a file descriptor, `messages` parses a line and formats its answer, `loop` labels line by line,
`state` saves the model and the position in the input, `metrics` counts and exports to Prometheus, `notify` sends events
to standard error, to a file and to a webhook.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from driftvote.settings import REVIEW_BELOW

LATE = ("take", "refuse")
UNKNOWN = ("refuse", "abstain")


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """Options of a `StreamLoop`; the help texts of `driftvote watch` describe them."""

    # How lines are read
    labelers: tuple[str, ...] = ()  # empty: every name that appears
    unknown: str = "refuse"  # one of UNKNOWN
    late: str = "take"  # one of LATE
    time_format: str | None = None  # of times that are text, as for strptime
    arrival: bool = False
    keep_ids: bool = False
    # What an answer contains
    review_below: float = REVIEW_BELOW
    proba: bool = False
    accuracies: bool = False
    weights: bool = False
    explain: bool = False
    ask: bool = False
    ask_every: int = 500  # rows
    # State and files
    state: Path | None = None
    save_every: float = 10.0  # seconds
    save_lines: int | None = None
    skip_seen: bool = False
    again: bool = False
    events: Path | None = None
    webhook: str | None = None
    webhook_token: str | None = None
    metrics: Path | None = None
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    quiet: bool = False
