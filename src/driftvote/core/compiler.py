"""The compiler: what Numba is told. This module imports it; `jit.py` imports this module with the first kernel call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import overload

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


class _InnerLibrary(JITCodeLibrary):
    """The code of a kernel that only kernels call: it is linked into theirs, and optimised and made executable there.

    Numba would do both for each kernel by itself, and again for every kernel that calls it: most of the time that
    compiling takes.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        pass

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: kernels raise nothing, so they never look at their environment."""


class _InnerCompiler(Compiler):
    """Compiles a kernel that only kernels call."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, _InnerLibrary(targetctx.codegen(), "inner"), *rest)  # type: ignore[no-untyped-call]


_INNER = _FLAGS | {"no_cpython_wrapper": True, "pipeline_class": _InnerCompiler}


def compile_kernel(function: Callable[..., Any], kind: str) -> Any:
    """Return Numba's dispatcher for a kernel; `kind` is the name of its decorator."""
    if kind == "jit":
        return _cached(function)
    return numba.njit(**_INNER | ({"fastmath": {"reassoc", "nnan", "nsz"}} if kind == "summing" else {}))(function)


def _cached(function: Callable[..., Any]) -> Any:
    try:
        kernel = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        return numba.njit(**_FLAGS)(function)
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


def replace_call(call: Callable[..., Any], resolve: Callable[..., Any], inline: bool) -> None:
    """Let kernels call what `resolve` returns, for the types of the arguments, in the place of `call`."""
    overload(call, strict=False, jit_options=_INNER, inline="always" if inline else "never")(resolve)


def listen(on_start: Callable[[Callable[..., Any]], Any], on_end: Callable[[], Any]) -> None:
    """Call functions before and after each compilation, the first with the function that is compiled."""

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            on_start(event.data["dispatcher"].py_func)

        def on_end(self, event: event.Event) -> None:
            on_end()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
