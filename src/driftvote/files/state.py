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
import math
import os
import platform
import sys
import time
import zipfile
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.lib.format as npy
import numpy.typing as npt

from driftvote._version import __version__
from driftvote.errors import StateError
from driftvote.files.atomic import follow_links, whole_file

FORMAT = "driftvote state"
VERSION = 2
MANY_STREAMS = "many streams"
"""The `model` of a header whose file holds the models of many streams."""

Header = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]
States = Mapping[Hashable, tuple[Header, Arrays]]

_ADDED = ("format", "version", "driftvote", "checksums")  # written beside the caller's fields, removed on reading
_REQUIRED = ("model", "settings", "labelers", "last_time")
_TYPES = {"model": str, "settings": dict, "labelers": list, "checksums": dict}


@contextmanager
def hold_state(path: str | Path | None) -> Iterator[None]:
    """Be the only process that continues a state, by a lock file beside it; another one is told who holds it.

    The system frees the lock of a process that ended, however that was; a lock file that it left is taken over.
    """
    if path is None:
        yield
        return
    target = follow_links(path)
    lock = target.with_name(f"{target.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(handle)
        except OSError:
            owner = os.read(handle, 300).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise StateError(
                f"{path}: {owner} is continuing this state; wait for its end, or use another state file"
            ) from None
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                break
        os.close(handle)  # whoever held it has just removed the file: others would lock a new one
    try:
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()} (since {since})\n".encode())
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(handle)


def _lock(handle: int) -> None:
    """Lock an open file for this process, or raise an OSError if another one has it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)  # behind the text, which others read
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
    by_stream: dict[str, Arrays] = {}
    for key, array in together.items():
        number, _, name = key.partition(".")
        by_stream.setdefault(number, {})[name] = array
    for place, entry in enumerate(_list_streams(str(path), common["settings"])):
        _check_fields(f"{path}: stream {entry[0]!r}", entry[1])
        streams[entry[0]] = entry[1], by_stream.get(str(place), {})
    return streams, common


def _list_streams(shown: str, settings: Header) -> list[tuple[Hashable, Header]]:
    """Return the names and the headers of the streams of a file."""
    entries = settings.get("streams")
    if isinstance(entries, list):
        pairs = [(entry[0], entry[1]) for entry in entries if isinstance(entry, list) and len(entry) == 2]
        names = {name for name, header in pairs if type(name) in (str, int, float) and isinstance(header, dict)}
        if len(names) == len(entries):
            return pairs
    raise StateError(f"{shown}: the list of streams in the header is damaged")


def _read_archive(file: BinaryIO, shown: str) -> tuple[Header, Arrays]:
    try:
        arrays = _read_members(file)
    except Exception as bad:  # whatever a damaged archive makes its readers say
        raise StateError(f"{shown}: not a whole state file; it was cut short or is of another kind") from bad
    if "header" not in arrays:
        raise StateError(f"{shown}: not a driftvote state: it has no header")
    header = _read_header(shown, arrays.pop("header"))
    _check_arrays(shown, header["checksums"], arrays)
    return {key: value for key, value in header.items() if key not in _ADDED}, arrays


def _read_members(file: BinaryIO) -> Arrays:
    """Return the arrays of an archive. It is not compressed, so they are not larger than the file, or it is none."""
    arrays: Arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members):
            raise ValueError("the archive is compressed")
        if sum(member.file_size for member in members) > file.seek(0, io.SEEK_END):
            raise ValueError("the archive holds more than the file")
        for member in members:
            arrays[member.filename.removesuffix(".npy")] = _read_array(archive.read(member))
    if len(arrays) < len(members):
        raise ValueError("two arrays have one name")
    return arrays


def _read_array(data: bytes) -> npt.NDArray[Any]:
    """Return the array of numbers in the bytes of an .npy file; nothing is allocated for what is not there."""
    part = io.BytesIO(data)
    if npy.read_magic(part) != (1, 0):
        raise ValueError("an array of another format")
    shape, is_fortran, dtype = npy.read_array_header_1_0(part)
    size = len(data) - part.tell()
    if dtype.kind not in "biuf" or is_fortran or math.prod(shape) * dtype.itemsize != size:
        raise ValueError("the array is not as large as it says")
    return np.frombuffer(data, dtype, offset=part.tell()).reshape(shape).copy()  # a writable one: kernels take no other


def _read_header(shown: str, raw: npt.NDArray[Any]) -> Header:
    try:
        sealed = raw.astype(np.uint8).tobytes().decode()
        text = sealed.partition("\n")[2]
        header = json.loads(text)
    except (ValueError, RecursionError) as problem:
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
    if version == VERSION and type(version) is int:
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
        if not isinstance(header[name], _TYPES.get(name, object)):
            raise StateError(f"{shown}: {name!r} in the header is of another kind")


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
