"""The compiler: what Numba is told. This module imports it; `jit.py` imports this module with the first kernel call."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    lower_builtin,
    lower_getattr_generic,
    models,
    overload,
    register_model,
    type_callable,
)

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
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        self._shared_module = self._final_module
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: kernels raise nothing, so they never look at their environment."""


class _Library(JITCodeLibrary):
    """The code of a kernel that Python calls, with that of all kernels that it needs, each of them once."""

    def finalize(self) -> None:
        todo, needed = list(self._linking_libraries), dict[Any, None]()
        while todo:
            library = todo.pop()
            if library not in needed:
                needed[library] = None
                todo += library._linking_libraries if isinstance(library, _InnerLibrary) else []
        self._linking_libraries = list(needed)
        super().finalize()  # type: ignore[no-untyped-call]


class _Compiler(Compiler):
    """Compiles a kernel that Python calls."""

    library: type[JITCodeLibrary] = _Library

    def compile_extra(self, func: Any) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library(codegen, func.__qualname__)  # type: ignore[no-untyped-call]
        self.state.library.enable_object_caching()
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class _InnerCompiler(_Compiler):
    """Compiles a kernel that only kernels call."""

    library = _InnerLibrary


_OUTER = _FLAGS | {"pipeline_class": _Compiler}
_INNER = _FLAGS | {"no_cpython_wrapper": True, "pipeline_class": _InnerCompiler}


def compile_kernel(function: Callable[..., Any], kind: str) -> Any:
    """Return Numba's dispatcher for a kernel; `kind` is the name of its decorator."""
    if kind == "jit":
        return _cached(function)
    fastmath = {"fastmath": {"reassoc", "nnan", "nsz"}} if kind == "summing" else {}
    return _ignore_constants(numba.njit(**_INNER | fastmath)(function))


def _ignore_constants(dispatcher: Any) -> Any:
    """Compile a kernel once for all numbers that it is called with: to Numba, a constant is a type of its own."""
    find = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: find(
        tuple(types.unliteral(one) for one in args), {name: types.unliteral(one) for name, one in kws.items()}
    )
    return dispatcher


def _cached(function: Callable[..., Any]) -> Any:
    try:
        kernel = _ignore_constants(numba.njit(cache=True, **_OUTER)(function))
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        return _ignore_constants(numba.njit(**_OUTER)(function))
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


class _Address(types.Type):
    """The address of a named tuple: to kernels the same, but handed over as one number instead of some hundred."""

    def __init__(self, parts: Any) -> None:
        self.parts, self.instance_class = parts, parts.instance_class
        digest = hashlib.sha256(str(parts).encode()).hexdigest()[:16]
        super().__init__(f"{self.instance_class.__name__}{digest}")  # part of the names of all functions that take it


@register_model(_Address)
class _AddressModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, cgutils.voidptr_t)


@infer_getattr
class _Field(AttributeTemplate):
    key = _Address

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        if attr in typ.parts.fields:
            part = typ.parts.types[typ.parts.fields.index(attr)]
            return _Address(part) if isinstance(part, types.BaseNamedTuple) else part
        return None


@lower_getattr_generic(_Address)
def _read_field(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    place = typ.parts.fields.index(attr)
    where = builder.gep(value, [ir.Constant(ir.IntType(64), _offsets(context, typ.parts)[place])])
    part = typ.parts.types[place]
    if isinstance(part, types.BaseNamedTuple):
        return where
    return builder.load(builder.bitcast(where, context.get_value_type(part).as_pointer()))


_known_offsets: dict[Any, list[int]] = {}


def _offsets(context: Any, parts: Any) -> list[int]:
    """Return where in memory the fields of a named tuple begin."""
    if parts not in _known_offsets:
        layout = ir.LiteralStructType([context.get_value_type(part) for part in parts.types])
        data = context.codegen().target_data
        _known_offsets[parts] = [layout.get_element_offset(data, k) for k in range(len(parts.types))]
    return _known_offsets[parts]


def replace_by_address(function: Callable[..., Any]) -> None:
    """Let kernels store a named tuple, and go on with its address, where they call this function."""

    @type_callable(function)
    def resolve(context: Any) -> Any:
        return lambda parts: _Address(parts) if isinstance(parts, types.BaseNamedTuple) else parts

    @lower_builtin(function, types.Any)
    def store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if signature.args[0] == signature.return_type:
            return args[0]
        room = cgutils.alloca_once(builder, args[0].type)
        builder.store(args[0], room)
        return builder.bitcast(room, cgutils.voidptr_t)


def listen(on_start: Callable[[Callable[..., Any]], Any], on_end: Callable[[], Any]) -> None:
    """Call functions before and after each compilation, the first with the function that is compiled."""

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            on_start(event.data["dispatcher"].py_func)

        def on_end(self, event: event.Event) -> None:
            on_end()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


class _PauseCollector(event.Listener):
    """Keeps the collector of garbage off while Numba compiles: it would look through all that Numba knows."""

    def __init__(self) -> None:
        self._depth, self._wanted = 0, False

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self._wanted = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._wanted:
            gc.enable()


event.register("numba:compile", _PauseCollector())  # type: ignore[no-untyped-call]
