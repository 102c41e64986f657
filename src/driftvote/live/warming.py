"""Everything that the first rows would wait for, done before they come."""

from __future__ import annotations

import threading
from collections.abc import Callable

from driftvote.models import LabelModel

PATIENCE = 3.0
"""Seconds after which somebody who waits should know what for."""

ROWS = 40
"""More than the rows between two looks at the window, so that every kernel is there."""


def warm_up(model: LabelModel, say: Callable[[str], None]) -> None:
    """Load or compile the kernels that a model of these settings uses, on votes that are thrown away."""
    notice = threading.Timer(
        PATIENCE, say, ["compiling for the first use here, half a minute or so; later starts find it done"]
    )
    notice.daemon = True
    notice.start()
    try:
        fresh = model.clone()
        first, second = model.classes[:2]
        row = {"a": first, "b": second, "c": None}
        for _ in range(ROWS):
            fresh.update(row)
        fresh.update({**row, "d": first})
    finally:
        notice.cancel()
