"""Progress: bars with rate and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Listener = Callable[[str, int, int], None]


@contextmanager
def counting(quiet: bool) -> Iterator[Listener]:
    """A listener for (what, done, in all) that shows how far things are, on standard error."""
    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def listen(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done)

        yield listen


def _lines(console: Console) -> Listener:
    """A line at the beginning, at every quarter and at the end."""

    def listen(what: str, done: int, total: int) -> None:
        quarters = {0, total} | {total * part // 4 for part in (1, 2, 3)}
        if done in quarters:
            console.print(f"{what}: {done} of {total} runs")

    return listen
