"""The one place that decides how kernels are compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")

# fastmath stays off: thresholds and ties are compared exactly, and reordered sums would move them.
# The GIL is released so that several streams can be labeled from several threads.
_FLAGS: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call and keep the machine code on disk.

    Numba puts the cache beside the source, or in the user's cache folder when the package folder is
    read-only. Where neither can be written it raises on decoration; compiling in memory is then the
    better answer than failing to import.
    """
    try:
        kernel = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        return numba.njit(**_FLAGS)(function)
    _tie_to_all_kernels(kernel)
    return kernel


def _tie_to_all_kernels(kernel: Any) -> None:
    """Make a cached kernel stale when any kernel file changes.

    Kernels call each other across files, and Numba looks only at the file that a kernel stands in: without this
    an edit of `weights.py` would leave the machine code of `chunk.py`, which has the old weights inside, in use.
    """
    index = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if index is not None:
        own = Path(kernel.py_func.__code__.co_filename).parent
        index._source_stamp = (index._source_stamp, _sources_digest(Path(__file__).parent), _sources_digest(own))


@cache
def _sources_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Compilations(event.Listener):
    """Hears of each kernel that has to be compiled, because the cache does not have it."""

    def __init__(self, heard: Callable[[str], Any]) -> None:
        self._heard = heard

    def on_start(self, event: event.Event) -> None:
        self._heard(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        pass


def on_compilation(heard: Callable[[str], Any]) -> None:
    """From now on, tell the name of each function that is being compiled; those that the cache has are not."""
    event.register("numba:compile", _Compilations(heard))  # type: ignore[no-untyped-call]
