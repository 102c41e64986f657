"""How kernels are compiled and cached; no other module decides that."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import event
from numba.extending import overload

P = ParamSpec("P")
R = TypeVar("R")

# fastmath stays off: thresholds and ties are compared exactly, and reordered sums would move them. (`summing` is for
# the sums of EM, which end in probabilities.)
# The GIL is released so that several streams can be labeled from several threads.
# Kernels are never passed to other kernels as values, so the wrappers for that are not compiled.
# Kernels of core allocate nothing and keep no references, so counting references is left out: it took a third of the
# time to compile.
_FLAGS: Any = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as a kernel that is compiled on first call and cached on disk.

    Numba puts the cache beside the source, or in the user's cache folder when the package folder is
    read-only. Where neither can be written it raises on decoration; the kernel is then compiled in memory.
    """
    return _compile(function, _FLAGS)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as a kernel that only kernels call: the wrapper for Python, slow to compile, is left out.

    Calling it from Python crashes the process; tests/test_structure.py looks for such calls.
    """
    return _compile(function, _FLAGS | {"no_cpython_wrapper": True})


def summing(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as an inner kernel whose sums may be taken in any order, so in several parts at once.

    The same values give the same sum on one machine; on another one the last bits may differ.
    """
    return _compile(function, _FLAGS | {"no_cpython_wrapper": True, "fastmath": {"reassoc"}})


def _compile(function: Callable[P, R], flags: dict[str, Any]) -> Callable[P, R]:
    try:
        kernel = numba.njit(cache=True, **flags)(function)
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        return numba.njit(**flags)(function)
    # Numba looks only at the file that a kernel stands in. Kernels call kernels of core and of their own folder, and
    # hold their machine code, so a change in any of these files makes the cache stale. The version is compared before
    # anything else is read: an index may name types of a label model that is gone.
    index = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if index is not None:
        folder = Path(function.__code__.co_filename).parent
        index._version = f"{index._version} {_digest(Path(__file__).parent)} {_digest(folder)}"
    return kernel


@cache
def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class KernelTable:
    """Kernels by the type of their first argument, so that one compiled loop serves every label model.

    A label model registers its kernels under the type of its settings (a named tuple). `function(name)` returns a
    function that kernels can call: the compiler replaces it by the kernel for the type of the first argument, so the
    call costs nothing; without the compiler it is a dictionary lookup.
    """

    def __init__(self) -> None:
        self._kernels: dict[type, dict[str, Callable[..., Any]]] = {}

    def register(self, settings: type, **kernels: Callable[..., Any]) -> None:
        """Register the kernels of a label model by name; they are plain functions, compiled where they are called."""
        self._kernels[settings] = kernels

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function that calls the kernel `name` for the type of its first argument."""

        def call(settings: Any, *rest: Any) -> Any:
            return self._kernels[type(settings)][name](settings, *rest)

        def resolve(settings: Any, *rest: Any) -> Callable[..., Any]:
            return self._kernels[settings.instance_class][name]

        overload(call, strict=False, jit_options=_FLAGS)(resolve)
        return call


NOTICE = (
    "driftvote: compiling for this machine; this happens once, and takes about half a minute (DRIFTVOTE_QUIET=1 hides"
    " this line)"
)
"""Printed on standard error where compiling takes long, once in a process."""


class _Notice(event.Listener):
    """Tells people why they wait: prints a line when a kernel is compiled for longer than `after` seconds."""

    def __init__(self, after: float = 2.0) -> None:
        self.after, self._depth, self._timer = after, 0, threading.Timer(0.0, self._print)

    def on_start(self, event: event.Event) -> None:
        """Start the clock with the outermost kernel; others are compiled inside it."""
        self._depth += 1
        if self._depth == 1 and event.data["dispatcher"].__module__.startswith("driftvote."):
            self._timer = threading.Timer(self.after, self._print)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: event.Event) -> None:
        """Stop the clock."""
        self._depth -= 1
        if self._depth == 0:
            self._timer.cancel()

    def _print(self) -> None:
        if not os.environ.get("DRIFTVOTE_QUIET"):
            print(NOTICE, file=sys.stderr, flush=True)
        drop_notice()


_notice = _Notice()
event.register("numba:compile", _notice)  # type: ignore[no-untyped-call]


def drop_notice() -> None:
    """Say nothing about compiling from now on: it was said, or somebody else says it."""
    with contextlib.suppress(ValueError):
        event.unregister("numba:compile", _notice)  # type: ignore[no-untyped-call]


class _Compilations(event.Listener):
    """Calls `callback` with the name of each kernel that has to be compiled because the cache does not hold it."""

    def __init__(self, callback: Callable[[str], Any]) -> None:
        self._callback = callback

    def on_start(self, event: event.Event) -> None:
        self._callback(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        pass


def on_compilation(callback: Callable[[str], Any]) -> None:
    """Call `callback` with the name of each kernel that is compiled from now on; cached ones are not reported."""
    event.register("numba:compile", _Compilations(callback))  # type: ignore[no-untyped-call]
