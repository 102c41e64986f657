"""The one place that decides how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

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
        return numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        return numba.njit(**_FLAGS)(function)
