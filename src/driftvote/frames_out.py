"""Results as frames of the library that the votes came in."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from driftvote.errors import SettingError

BACKENDS = ("pandas", "polars", "pyarrow")


def make_frame(columns: dict[str, Any], backend: Any, index: Any = None) -> Any:
    """Columns as a frame of the given library, with the index a pandas frame came with."""
    columns = {name: _one_type(values) for name, values in columns.items()}
    native = nw.from_dict(columns, backend=_known(backend)).to_native()
    if nw.dependencies.is_pandas_dataframe(native):
        for name, values in columns.items():
            if _whole_with_gaps(values):  # pandas would make them floats
                native[name] = native[name].astype("Int64")
        if index is not None:
            native.index = index
    return native


def make_series(name: str, values: Any, backend: Any, index: Any = None) -> Any:
    """One column, likewise."""
    values = _one_type(values)
    native = nw.new_series(name, values, backend=_known(backend)).to_native()
    if nw.dependencies.is_pandas_series(native):
        if _whole_with_gaps(values):
            native = native.astype("Int64")
        if index is not None:
            native.index = index
    return native


def _known(backend: Any) -> Any:
    """The library, if it is one that holds frames in memory and is installed."""
    name = backend if isinstance(backend, str) else str(getattr(backend, "value", backend))
    if isinstance(backend, str) and name not in BACKENDS:
        raise SettingError(f"backend must be {', '.join(map(repr, BACKENDS))}, not {backend!r}")
    try:
        nw.from_dict({"a": [0]}, backend=backend)
    except ImportError:
        raise SettingError(f"backend {name!r} is not installed; choose another of {', '.join(BACKENDS)}") from None
    return backend


def _one_type(values: Any) -> Any:
    """Class values of several types share a column only as text."""
    if not isinstance(values, list) or len({type(value) for value in values if value is not None}) <= 1:
        return values
    return [None if value is None else str(value) for value in values]


def _whole_with_gaps(values: Any) -> bool:
    """A list of ints in which some are missing."""
    if not isinstance(values, list) or None not in values:
        return False
    return all(value is None or type(value) is int for value in values)
