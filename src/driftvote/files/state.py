"""State files: one npz with a JSON header, written whole or not at all, never pickled.

The header names the format, its version and a checksum of every array, so that a file that was cut
short, edited or written by another version is refused by name of what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from driftvote._version import __version__
from driftvote.errors import StateError
from driftvote.files.atomic import whole_file

FORMAT = "driftvote state"
VERSION = 1

Arrays = dict[str, npt.NDArray[Any]]


def write_state(path: str | Path, header: dict[str, Any], arrays: Arrays) -> None:
    """Write header and arrays; a reader sees the old file or the new one."""
    with whole_file(path) as file:
        write_state_to(file, header, arrays)


def write_state_to(file: BinaryIO, header: dict[str, Any], arrays: Arrays) -> None:
    """The same into an open file."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    full = {"format": FORMAT, "version": VERSION, "driftvote": __version__, **header}
    full["checksums"] = {name: _checksum(array) for name, array in arrays.items()}
    text = json.dumps(full, sort_keys=True, default=list)  # a window grid is a list of sizes
    full_bytes = np.frombuffer(_sealed(text).encode(), np.uint8)
    np.savez(file, header=full_bytes, **arrays)  # type: ignore[arg-type]


def read_state(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a state file, or an error that names what is wrong with it."""
    try:
        with open(path, "rb") as file, _archive(file) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise StateError(f"{path}: there is no such state file") from None
    except PermissionError:
        raise StateError(f"{path}: the state file may not be read") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, LookupError, RuntimeError, zlib.error) as problem:
        raise StateError(f"{path}: not a whole state file; it was cut short or is of another kind") from problem
    if "header" not in arrays:
        raise StateError(f"{path}: not a driftvote state: it has no header")
    header = _opened(path, arrays.pop("header"))
    _check_arrays(path, header, arrays)
    return header, arrays


def _archive(file: BinaryIO) -> Any:
    archive = np.load(file, allow_pickle=False)
    if isinstance(archive, np.ndarray):
        raise ValueError("a single array")
    return archive


def _opened(path: str | Path, raw: npt.NDArray[Any]) -> dict[str, Any]:
    try:
        sealed = raw.astype(np.uint8).tobytes().decode()
        seal, _, text = sealed.partition("\n")
        header = json.loads(text)
    except ValueError as problem:
        raise StateError(f"{path}: the header is damaged ({problem})") from problem
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StateError(f"{path}: not a driftvote state: its header is of another kind")
    if header.get("version") != VERSION:
        raise StateError(
            f"{path}: state version {header.get('version')!r} (written by driftvote {header.get('driftvote')}),"
            f" but driftvote {__version__} reads version {VERSION}; replay the votes, or use that driftvote"
        )
    missing = {"model", "settings", "labelers", "last_time", "checksums"} - set(header)
    if missing:
        raise StateError(f"{path}: the header lacks {sorted(missing)[0]!r}")
    if _sealed(text) != f"{seal}\n{text}":
        raise StateError(f"{path}: the header does not match its checksum; the file was changed after it was written")
    return header


def _check_arrays(path: str | Path, header: dict[str, Any], arrays: Arrays) -> None:
    expected = header["checksums"]
    for name in sorted(set(expected) | set(arrays)):
        if name not in arrays:
            raise StateError(f"{path}: the array {name!r} is missing")
        if name not in expected:
            raise StateError(f"{path}: the array {name!r} does not belong to the state")
        if _checksum(arrays[name]) != expected[name]:
            raise StateError(
                f"{path}: the array {name!r} does not match its checksum; the file was changed after it was written"
            )


def _sealed(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def _checksum(array: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array))  # type: ignore[arg-type]  # its memory as it lies there, not a copy
    return digest.hexdigest()
