"""Reading ahead and writing behind: files are read and written in threads of their own while rows are labeled."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

Item = TypeVar("Item")
_END = object()


def ahead(items: Iterable[Item], most: int = 1) -> Iterator[Item]:
    """The same items, made in a thread that stays at most `most` items in front."""
    waiting: queue.Queue[Any] = queue.Queue(most)
    stop = threading.Event()

    def put(thing: object) -> bool:
        while not stop.is_set():
            with suppress(queue.Full):
                waiting.put(thing, timeout=0.1)
                return True
        return False

    def work() -> None:
        source = iter(items)
        try:
            for item in source:
                if not put(item):
                    break
            put(_END)
        except BaseException as problem:  # it belongs to whoever asked for the items
            put(_Trouble(problem))
        finally:
            close: Any = getattr(source, "close", None)
            if close is not None:
                close()

    thread = threading.Thread(target=work, name="reader", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Trouble):
                raise item.problem
            yield item
    finally:
        stop.set()
        thread.join()


class _Trouble:
    def __init__(self, problem: BaseException) -> None:
        self.problem = problem


class Behind:
    """Calls `work` with items in a thread, at most one item behind; an error there is raised here."""

    def __init__(self, work: Callable[[Any], None]) -> None:
        self._work = work
        self._waiting: queue.Queue[Any] = queue.Queue(1)
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (item := self._waiting.get()) is not _END:
            if self._trouble is None:
                try:
                    self._work(item)
                except BaseException as problem:
                    self._trouble = problem

    def put(self, item: Any) -> None:
        """Hand an item over."""
        self._raise()
        self._waiting.put(item)

    def finish(self) -> None:
        """Wait until everything is done."""
        self._waiting.put(_END)
        self._thread.join()
        self._raise()

    def abandon(self) -> None:
        """Wait for the item in hand, and forget the rest."""
        self._trouble = self._trouble or InterruptedError()
        if self._thread.is_alive():
            self._waiting.put(_END)
            self._thread.join()

    def _raise(self) -> None:
        if self._trouble is not None:
            raise self._trouble
