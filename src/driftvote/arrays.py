"""Names for the array types that the package passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.signedinteger[Any]]  # encoded votes: int8, or int16 beyond 126 classes
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]  # a state as named arrays


def code_dtype(n_classes: int) -> np.dtype[np.signedinteger[Any]]:
    """The narrowest type that holds a class code, -1, and a random fill's -2 - class."""
    return np.dtype(np.int8 if n_classes <= 126 else np.int16)
