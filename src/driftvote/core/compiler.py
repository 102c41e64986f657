"""The compiler: what Numba is told. This module imports it; `jit.py` imports this module with the first kernel call."""

# Numba has no types: its functions, decorators and classes are untyped to mypy.
# mypy: disable-error-code="no-untyped-call, untyped-decorator, misc, override, import-untyped, arg-type"

from __future__ import annotations

import gc
import hashlib
import operator
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global
from numba.cpython import slicing
from numba.extending import (
    lower_builtin,
    lower_getattr,
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
        super().finalize()


_NEEDLESS = {
    "DeadBranchPrune",
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NopythonRewrites",
    "RewriteDynamicRaises",
    "RewriteSemanticConstants",
    "WithLifting",
}
"""Passes of Numba for what kernels do not do: closures, arithmetic with whole arrays, exceptions, `with`, constants as
types. Each looks through all of a function."""


class _Compiler(Compiler):
    """Compiles a kernel that Python calls."""

    library: type[JITCodeLibrary] = _Library

    def define_pipelines(self) -> Any:
        whole = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = PassManager("kernel")
        passes.passes.extend(one for one in whole.passes if one[0].__name__ not in _NEEDLESS)
        passes.finalize()
        return [passes]

    def compile_extra(self, func: Any) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library(codegen, func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


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
    find = getattr(dispatcher, "get_call_template", None)
    if find is None:
        return dispatcher
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


class _Cells(types.Type):
    """An array, its cells one after the other: where they are and their shape, all that kernels look at."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(f"Cells{ndim}{dtype}")

    def part(self, n_indices: int) -> Any:
        """Return the type of what so many indices lead to: a cell, or an array of fewer dimensions."""
        return self.dtype if n_indices == self.ndim else _Cells(self.dtype, self.ndim - n_indices)


class _Address(types.Type):
    """The address of a named tuple: to kernels the same, but handed over as one number instead of some hundred."""

    def __init__(self, parts: Any) -> None:
        self.parts, self.instance_class = parts, parts.instance_class
        digest = hashlib.sha256(str(parts).encode()).hexdigest()[:16]
        super().__init__(f"{self.instance_class.__name__}{digest}")  # part of the names of all functions that take it

    def place(self, field: str) -> tuple[int, Any]:
        """Return the place of a field, and its type."""
        place = self.parts.fields.index(field)
        return place, _short_type(self.parts.types[place])


def _short_type(given: Any) -> Any:
    """Return the type that stands for a type where kernels hand it over to others."""
    if isinstance(given, types.BaseNamedTuple):
        return _Address(given)
    if isinstance(given, types.Array) and given.layout == "C" and given.ndim > 0:
        return _Cells(given.dtype, given.ndim)
    return given


@register_model(_Cells)
class _CellsModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        members = [("data", types.CPointer(fe_type.dtype)), ("shape", types.UniTuple(types.intp, fe_type.ndim))]
        super().__init__(dmm, fe_type, members)


@register_model(_Address)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, cgutils.voidptr_t)


@infer_getattr
class _CellsShape(AttributeTemplate):
    key = _Cells

    def resolve_shape(self, cells: Any) -> Any:
        return types.UniTuple(types.intp, cells.ndim)


@lower_getattr(_Cells, "shape")
def _read_shape(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    return builder.extract_value(value, 1)


def _count_indices(index: Any) -> int:
    """Return how many whole numbers an index is made of; 0 for another kind of index."""
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    return len(parts) if all(isinstance(part, types.Integer) for part in parts) else 0


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        cells, index = args[0], types.unliteral(args[1])
        if isinstance(cells, _Cells) and 0 < _count_indices(index) <= cells.ndim:
            return cells.part(_count_indices(index))(cells, index)
        if isinstance(cells, _Cells) and cells.ndim == 1 and isinstance(index, types.SliceType):
            return cells(cells, index)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        cells, index = args[0], types.unliteral(args[1])
        if isinstance(cells, _Cells) and _count_indices(index) == cells.ndim:
            return types.none(cells, index, cells.dtype)
        return None


def _find_part(context: Any, builder: Any, cells: Any, value: Any, kind: Any, index: Any) -> tuple[Any, list[Any]]:
    """Return where that begins which an index leads to, and its shape."""
    kinds = tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)
    parts = cgutils.unpack_tuple(builder, index) if isinstance(kind, types.BaseTuple) else [index]
    shape = cgutils.unpack_tuple(builder, builder.extract_value(value, 1))
    offset = None
    for axis, size in enumerate(shape):
        if offset is not None:
            offset = builder.mul(offset, size)
        if axis < len(parts):
            at = context.cast(builder, parts[axis], kinds[axis], types.intp)
            if kinds[axis].signed:  # from the end
                at = builder.select(builder.icmp_signed("<", at, at.type(0)), builder.add(at, size), at)
            offset = at if offset is None else builder.add(offset, at)
    return builder.gep(builder.extract_value(value, 0), [offset]), shape[len(parts) :]


def _make_cells(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """Return cells of this kind as a value."""
    value = builder.insert_value(ir.Constant(context.get_value_type(kind), ir.Undefined), data, 0)
    for axis, size in enumerate(shape):
        value = builder.insert_value(value, size, (1, axis))
    return value


@lower_builtin(operator.getitem, _Cells, types.Any)
def _get_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    cells, index = signature.args
    if isinstance(index, types.SliceType):
        cut = context.make_helper(builder, index, args[1])
        slicing.guard_invalid_slice(context, builder, index, cut)
        slicing.fix_slice(builder, cut, builder.extract_value(args[0], (1, 0)))
        data = builder.gep(builder.extract_value(args[0], 0), [cut.start])
        return _make_cells(context, builder, cells, data, [slicing.get_slice_length(builder, cut)])
    data, shape = _find_part(context, builder, cells, args[0], index, args[1])
    if shape:
        return _make_cells(context, builder, signature.return_type, data, shape)
    return context.unpack_value(builder, cells.dtype, data)


@lower_builtin(operator.setitem, _Cells, types.Any, types.Any)
def _set_item(context: Any, builder: Any, signature: Any, args: Any) -> None:
    cells, index, _ = signature.args
    data, _ = _find_part(context, builder, cells, args[0], index, args[1])
    context.pack_value(builder, cells.dtype, args[2], data)


@infer_getattr
class _Field(AttributeTemplate):
    key = _Address

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        return typ.place(attr)[1] if attr in typ.parts.fields else None


@lower_getattr_generic(_Address)
def _read_field(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    place, kind = typ.place(attr)
    where = builder.gep(value, [ir.Constant(ir.IntType(64), _offsets(context, typ)[place])])
    if isinstance(kind, _Address):
        return where
    return builder.load(builder.bitcast(where, context.get_value_type(kind).as_pointer()))


def _layout(context: Any, kind: Any) -> Any:
    """Return how a value of this type is stored where an address leads to."""
    if isinstance(kind, _Address):
        return ir.LiteralStructType([_layout(context, _short_type(part)) for part in kind.parts.types])
    return context.get_value_type(kind)


_known_offsets: dict[Any, list[int]] = {}


def _offsets(context: Any, address: _Address) -> list[int]:
    """Return where in memory the fields of a named tuple begin."""
    if address not in _known_offsets:
        data, offsets, end = context.codegen().target_data, list[int](), 0
        for part in _layout(context, address).elements:
            step = part.get_abi_alignment(data)
            offsets.append(-(-end // step) * step)
            end = offsets[-1] + part.get_abi_size(data)
        _known_offsets[address] = offsets
    return _known_offsets[address]


def _shorten(context: Any, builder: Any, given: Any, value: Any) -> Any:
    """Return a value in its short form; a named tuple as a structure, which is not stored yet."""
    kind = _short_type(given)
    if isinstance(kind, _Address):
        result = ir.Constant(_layout(context, kind), ir.Undefined)
        for place, part in enumerate(given.types):
            short = _shorten(context, builder, part, builder.extract_value(value, place))
            result = builder.insert_value(result, short, place)
        return result
    if kind == given:
        return value
    model = context.data_model_manager[given]
    data, shape = (builder.extract_value(value, model.get_field_position(name)) for name in ("data", "shape"))
    return _make_cells(context, builder, kind, data, cgutils.unpack_tuple(builder, shape))


def replace_by_address(function: Callable[..., Any]) -> None:
    """Let kernels go on with the short form of a value, where they call this function."""

    @type_callable(function)
    def resolve(context: Any) -> Any:
        return _short_type

    @lower_builtin(function, types.Any)
    def store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = _shorten(context, builder, signature.args[0], args[0])
        if not isinstance(signature.return_type, _Address):
            return value
        room = cgutils.alloca_once(builder, value.type)
        builder.store(value, room)
        return builder.bitcast(room, cgutils.voidptr_t)


def listen(on_start: Callable[[Callable[..., Any]], Any], on_end: Callable[[], Any]) -> None:
    """Call functions before and after each compilation, the first with the function that is compiled."""

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            on_start(event.data["dispatcher"].py_func)

        def on_end(self, event: event.Event) -> None:
            on_end()

    event.register("numba:compile", Listener())


class _PauseCollector(event.Listener):
    """Keeps the garbage collector off while our kernels are compiled: it would look through all that Numba knows."""

    def __init__(self) -> None:
        self._depth, self._wanted = 0, False

    def on_start(self, event: event.Event) -> None:
        ours = (event.data["dispatcher"].py_func.__module__ or "").startswith("driftvote.")
        if self._depth == 0 and ours:
            self._wanted = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._wanted:
            self._wanted = False
            gc.enable()


event.register("numba:compile", _PauseCollector())
