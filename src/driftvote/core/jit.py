"""How functions become kernels; no other module decides that.

Importing Numba takes longer than all the rest, so it is imported when the first kernel is called (`compiler.py`): who
calls none, such as `driftvote --help`, does not wait for it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.RLock()
_prepared: list[Callable[[Any], Any]] = []  # what the compiler is told as soon as it is there


@cache
def _compiler() -> Any:
    """Return the compiler, told what it has to know before it compiles."""
    from driftvote.core import compiler

    while _prepared:
        _prepared.pop(0)(compiler)
    return compiler


def _prepare(tell: Callable[[Any], Any]) -> None:
    """Tell the compiler something before it compiles: now, if it is there."""
    with _lock:
        if _compiler.cache_info().currsize:
            tell(_compiler())
        else:
            _prepared.append(tell)


class Kernel(Generic[P, R]):
    """A function that is compiled: Numba's dispatcher of it, made when it is needed, stands for it in other kernels."""

    def __init__(self, function: Callable[P, R], kind: str) -> None:
        update_wrapper(self, function)
        self._function, self._kind = function, kind

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher."""
        with _lock:  # from Python 3.12 on, a cached property has none
            made = self.__dict__.get("dispatcher")
            return _compiler().compile_kernel(self._function, self._kind) if made is None else made

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.dispatcher(*args, **kwargs)
        return result


class InnerKernel(Kernel[P, R]):
    """A function that only kernels call: it has no entry for Python, and calling it would end the process."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise TypeError(f"{self._function.__name__} is called by kernels only")


def _kernel(function: Callable[P, R], kind: str) -> Callable[P, R]:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return function
    return Kernel(function, kind) if kind == "jit" else InnerKernel(function, kind)


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as a kernel that is compiled on first call and cached on disk.

    Numba puts the cache beside the source, or in the user's cache folder when the package folder is
    read-only. Where neither can be written it raises on decoration; the kernel is then compiled in memory.
    """
    return _kernel(function, "jit")


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as a kernel that only kernels call: their code holds its own.

    Python cannot call it.
    """
    return _kernel(function, "inner")


def summing(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as an inner kernel whose sums may be taken in any order, so in several parts at once.

    The same values give the same sum on one machine; on another one the last bits may differ. Values are never NaN.
    """
    return _kernel(function, "summing")


T = TypeVar("T")


def by_address(parts: T) -> T:
    """Return a named tuple; kernels that call this go on with its address, which takes less to hand over to others."""
    return parts


_prepare(lambda compiler: compiler.replace_by_address(by_address))


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

    def function(self, name: str, inline: bool = False) -> Callable[..., Any]:
        """Return the function that calls the kernel `name` for the type of its first argument.

        `inline` writes the kernel out where it is called: for one that is called for every row, because handing over
        its arrays takes longer than its work.
        """

        def call(settings: Any, *rest: Any) -> Any:
            return self._kernels[type(settings)][name](settings, *rest)

        def resolve(settings: Any, *rest: Any) -> Callable[..., Any]:
            return self._kernels[settings.instance_class][name]

        _prepare(lambda compiler: compiler.replace_call(call, resolve, inline))
        return call


NOTICE = (
    "driftvote: compiling for this machine; this happens once, and usually takes 10 to 20 seconds (DRIFTVOTE_QUIET=1"
    " hides this line)"
)
"""Printed on standard error where compiling takes long, once in a process."""


class _Notice:
    """Tells people why they wait: prints a line when a kernel is compiled for longer than `after` seconds."""

    def __init__(self, after: float = 2.0) -> None:
        self.after, self.wanted, self._depth, self._timer = after, True, 0, threading.Timer(0.0, self._print)

    def start(self, function: Any) -> None:
        """Start the clock with the outermost kernel; others are compiled inside it."""
        self._depth += 1
        if self.wanted and self._depth == 1 and (function.__module__ or "").startswith("driftvote."):
            self._timer = threading.Timer(self.after, self._print)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Stop the clock."""
        self._depth -= 1
        if self._depth == 0:
            self._timer.cancel()

    def _print(self) -> None:
        if self.wanted and not os.environ.get("DRIFTVOTE_QUIET"):
            print(NOTICE, file=sys.stderr, flush=True)
        self.wanted = False


_notice = _Notice()
_prepare(lambda compiler: compiler.listen(_notice.start, _notice.end))


def drop_notice() -> None:
    """Say nothing about compiling from now on: it was said, or somebody else says it."""
    _notice.wanted = False


def on_compilation(callback: Callable[[str], Any]) -> None:
    """Call `callback` with the name of each kernel that is compiled from now on; cached ones are not reported."""
    _prepare(lambda compiler: compiler.listen(lambda function: callback(function.__name__), lambda: None))
