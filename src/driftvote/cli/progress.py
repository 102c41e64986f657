"""Progress of rows: a bar with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

Rows = Callable[[int, "float | None"], None]
"""Called with the number of rows done and, if it is known, the share of the file."""

_EVERY = 5.0  # seconds between plain lines


@contextmanager
def rows_done(what: str, quiet: bool) -> Iterator[Rows]:
    """A listener for rows: a bar with rate and time left on a terminal, a line every few seconds elsewhere."""
    console = Console(stderr=True, quiet=quiet)
    # Not `console.is_terminal`, which is also true in CI and in Jupyter where they ask for colours (FORCE_COLOR).
    if quiet or not sys.stderr.isatty():
        yield _row_lines(what, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,} per second"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None, rows=0, rate=0)
        start = time.monotonic()

        def listen(rows: int, share: float | None) -> None:
            rate = int(rows / max(1e-9, time.monotonic() - start))
            total, done = (None, 0.0) if share is None else (1.0, share)
            progress.update(task, total=total, completed=done, rows=rows, rate=rate)

        yield listen


def _row_lines(what: str, console: Console) -> Rows:
    start = last = time.monotonic()

    def listen(rows: int, share: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY:
            return
        last = now
        left = "" if not share else f", {share:.0%} of the file, {(now - start) * (1 / share - 1):,.0f} s left"
        console.print(f"{what}: {rows:,} rows, {rows / (now - start):,.0f} per second{left}", highlight=False)

    return listen
