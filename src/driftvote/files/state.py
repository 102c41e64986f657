"""The state format: one npz archive with a JSON header, without pickle.

The header names the format, its version and a checksum of every array. A file that was cut short, edited or written
by another version is refused with a sentence that says what is wrong. The same format holds one model
(`write_state`, `read_state`), the models of many streams (`write_states`, `read_states`) and a model in memory
(`pack_state`, `unpack_state`).
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from driftvote._version import __version__
from driftvote.errors import StateError
from driftvote.files.atomic import whole_file

FORMAT = "driftvote state"
VERSION = 2
MANY_STREAMS = "many streams"
"""The `model` of a header whose file holds the models of many streams."""

Header = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]
States = Mapping[Hashable, tuple[Header, Arrays]]

_ADDED = ("format", "version", "driftvote", "checksums")  # written beside the caller's fields, removed on reading
_REQUIRED = ("model", "settings", "labelers", "last_time")


def write_state(path: str | Path, header: Header, arrays: Arrays) -> None:
    """Write one model; a reader sees the old file or the new one."""
    with whole_file(path) as file:
        write_state_to(file, header, arrays)


def write_state_to(file: BinaryIO, header: Header, arrays: Arrays) -> None:
    """Write one model into an open file."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    full = {"format": FORMAT, "version": VERSION, "driftvote": __version__, **header}
    full["checksums"] = {name: _checksum(array) for name, array in arrays.items()}
    text = json.dumps(full, sort_keys=True, default=list)  # a window grid is a list of sizes
    sealed = np.frombuffer(_seal(text).encode(), np.uint8)
    np.savez(file, header=sealed, **arrays)  # type: ignore[arg-type]


def read_state(path: str | Path) -> tuple[Header, Arrays]:
    """Header and arrays of a state file, as they were given to `write_state`."""
    try:
        with open(path, "rb") as file:
            return _read_archive(file, str(path))
    except FileNotFoundError:
        raise StateError(f"{path}: there is no such state file") from None
    except PermissionError:
        raise StateError(f"{path}: the state file may not be read") from None
    except OSError as problem:
        raise StateError(f"{path}: the state file cannot be read ({problem.strerror})") from problem


def pack_state(header: Header, arrays: Arrays) -> bytes:
    """One model as the bytes of a state file."""
    file = io.BytesIO()
    write_state_to(file, header, arrays)
    return file.getvalue()


def unpack_state(data: bytes, name_for_messages: str) -> tuple[Header, Arrays]:
    """Header and arrays of bytes that `pack_state` made."""
    return _read_archive(io.BytesIO(data), name_for_messages)


def write_states(path: str | Path, streams: States, common_header: Header | None = None) -> None:
    """Write the models of many streams to one file; a reader sees the old file or the new one."""
    with whole_file(path) as file:
        write_states_to(file, streams, common_header)


def write_states_to(file: BinaryIO, streams: States, common_header: Header | None = None) -> None:
    """Write the models of many streams into an open file.

    Names of streams are text or numbers. The single name None writes a file of one model, with the fields of
    `common_header` in its header: `driftvote.load` reads it.
    """
    common = common_header or {}
    if set(streams) == {None}:
        header, arrays = streams[None]
        write_state_to(file, header | common, arrays)
        return
    for name in streams:
        if not isinstance(name, (str, int, float)):
            raise StateError(f"stream {name!r} cannot be written to a state file; name streams by text or numbers")
    full: Header = {
        "model": MANY_STREAMS,
        "settings": {"streams": [(name, header) for name, (header, _) in streams.items()]},
        "labelers": [],
        "last_time": None,
    }
    together = {
        f"{number}.{name}": array
        for number, (_, arrays) in enumerate(streams.values())
        for name, array in arrays.items()
    }
    write_state_to(file, full | common, together)


def read_states(path: str | Path) -> tuple[dict[Hashable, tuple[Header, Arrays]], Header]:
    """Models by stream, and the common header; a file of one model has the single stream None.

    The common header of a file of one model is the header of that model.
    """
    common, together = read_state(path)
    if common["model"] != MANY_STREAMS:
        return {None: (common, together)}, common
    streams: dict[Hashable, tuple[Header, Arrays]] = {}
    for number, (name, header) in enumerate(common["settings"]["streams"]):
        _check_fields(f"{path}: stream {name!r}", header)
        prefix = f"{number}."
        arrays = {key.removeprefix(prefix): array for key, array in together.items() if key.startswith(prefix)}
        streams[name] = (header, arrays)
    return streams, common


def _read_archive(file: BinaryIO, shown: str) -> tuple[Header, Arrays]:
    try:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("a single array")
        arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, LookupError, RuntimeError, zlib.error) as bad:
        raise StateError(f"{shown}: not a whole state file; it was cut short or is of another kind") from bad
    if "header" not in arrays:
        raise StateError(f"{shown}: not a driftvote state: it has no header")
    header = _read_header(shown, arrays.pop("header"))
    _check_arrays(shown, header["checksums"], arrays)
    return {key: value for key, value in header.items() if key not in _ADDED}, arrays


def _read_header(shown: str, raw: npt.NDArray[Any]) -> Header:
    try:
        sealed = raw.astype(np.uint8).tobytes().decode()
        text = sealed.partition("\n")[2]
        header = json.loads(text)
    except ValueError as problem:
        raise StateError(f"{shown}: the header is damaged ({problem})") from problem
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StateError(f"{shown}: not a driftvote state: its header is of another kind")
    _check_version(shown, header)
    _check_fields(shown, header, "checksums")
    if sealed != _seal(text):
        raise StateError(f"{shown}: the header does not match its checksum; the file was changed after it was written")
    return header


def _check_version(shown: str, header: Header) -> None:
    version = header.get("version")
    if version == VERSION:
        return
    remedy = "update driftvote"
    if isinstance(version, int) and version < VERSION:
        remedy = (
            "label the history again and save: `driftvote label HISTORY --state NEW_FILE`,"
            " or `model.label_stream(history)` and `model.save(NEW_FILE)`"
        )
    raise StateError(
        f"{shown}: this state has version {version!r} (written by driftvote {header.get('driftvote')}), and driftvote"
        f" {__version__} reads version {VERSION}; {remedy}"
    )


def _check_fields(shown: str, header: Header, *more: str) -> None:
    for name in (*_REQUIRED, *more):
        if name not in header:
            raise StateError(f"{shown}: the header lacks {name!r}")


def _check_arrays(shown: str, checksums: dict[str, str], arrays: Arrays) -> None:
    for name in sorted(set(checksums) | set(arrays)):
        if name not in arrays:
            raise StateError(f"{shown}: the array {name!r} is missing")
        if name not in checksums:
            raise StateError(f"{shown}: the array {name!r} does not belong to the state")
        if _checksum(arrays[name]) != checksums[name]:
            raise StateError(
                f"{shown}: the array {name!r} does not match its checksum; the file was changed after it was written"
            )


def _seal(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def _checksum(array: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.asarray(array, order="C"))  # type: ignore[arg-type]  # reads the memory of the array, no copy
    return digest.hexdigest()
