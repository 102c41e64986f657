"""The state of one stream in Spark's store: one small value, and the ring of votes in chunks that are written once.

The value holds what changes with every row: sums over the windows, the last fit, the clock, and the *tail*, the rows
since the last full chunk. A chunk is about 8 KiB of rows; it is written when it is full, under its number modulo as
many as the ring needs, so a full ring overwrites its oldest rows. So a micro-batch of a few rows writes the value and
at most one chunk, however large the ring is, and reads the chunks that its keeper asks for.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftvote._version import __version__
from driftvote.errors import StateError
from driftvote.kernels.layout import Codes, Ints, code_dtype
from driftvote.models.engine import Arrays
from driftvote.models.keepers import Keeper, Past

VERSION = 1
CHUNK_BYTES = 8192

_FRAME = struct.Struct("<4sHI")  # mark, version, bytes of the header
_MARK = b"dvss"
_CHUNK = struct.Struct("<q?")  # number; whether verified classes follow the rows


class Value(Protocol):
    """Spark's ValueState."""

    def get(self) -> Any: ...
    def update(self, newValue: Any) -> None: ...  # noqa: N803 - Spark's name
    def clear(self) -> None: ...


class Chunks(Protocol):
    """Spark's MapState."""

    def getValue(self, key: Any) -> Any: ...  # noqa: N802
    def updateValue(self, key: Any, value: Any) -> None: ...  # noqa: N802
    def clear(self) -> None: ...


@dataclass
class Notes:
    """What a stream carries beside its model."""

    late: int = 0  # rows that came too late so far
    last: bytes = b""  # time and order of the latest row, as Arrow writes them
    seen: int = 0  # when a row came last, by Spark's clock, in milliseconds


@dataclass(frozen=True)
class Identity:
    """What a state must have been made with to be taken up."""

    model: str
    settings: str  # as JSON
    labelers: tuple[str, ...]

    @classmethod
    def of(cls, model: Any) -> Identity:
        settings = {name: value for name, value in model.get_params().items() if name not in ("n_jobs", "labelers")}
        text = json.dumps(settings, sort_keys=True, default=list)
        return cls(type(model).__name__, text, tuple(model._families.members.names or model.labelers))


class ChunkedState:
    """Takes a keeper's model up from the store, and puts it away again."""

    def __init__(self, keeper: Keeper, value: Value, chunks: Chunks) -> None:
        self.keeper = keeper
        self.identity = Identity.of(keeper.model)
        self.value = value
        self.chunks = chunks
        self.width = len(keeper.model._roster)
        self.dtype = code_dtype(keeper.model._form.n_classes)
        self.chunk = max(1, CHUNK_BYTES // max(1, self.width * self.dtype.itemsize))
        # One more than the ring needs: the chunk that is overwritten holds nothing that is remembered.
        self.slots = -(-keeper.capacity // self.chunk) + 1
        self._clock = 0
        self._tail = Past(0, np.zeros((0, self.width), self.dtype), np.zeros(0, np.int64))

    def open(self) -> Notes | None:
        """The notes of the stream that Spark is at; None if it has no state. `resume` then takes the model up."""
        found = self.value.get()
        if not found or found[0] is None:
            self._small, self._clock, self._kept = self.keeper.fresh, 0, 0
            self._tail = self._tail._replace(first=0, rows=self._tail.rows[:0], known=self._tail.known[:0])
            return None
        header, self._small = unpacked(bytes(found[0]))
        self._check(header)
        self._clock, self._kept = header["clock"], header["kept"]
        rows, known = self._small.pop("tail_rows"), self._small.pop("tail_known")
        self._tail = Past(self._clock - len(rows), rows, known)
        return Notes(header["late"], self._small.pop("last").tobytes(), header["seen"])

    @property
    def clock(self) -> int:
        """Rows that the stream has seen."""
        return self._clock

    def resume(self, n_rows: int) -> None:
        """Let the model go on where the stream stopped, for so many rows."""
        oldest = self._clock - self._kept
        ranges = [(max(first, oldest), last) for first, last in self.keeper.needed(self._clock, n_rows)]
        past = [self._read(first, last) for first, last in ranges if self._kept and first < last]
        self.keeper.resume(self._small, past, n_rows)

    def save(self, notes: Notes, n_rows: int) -> None:
        """Put the model away after so many further rows; after none, only the notes have changed."""
        if not n_rows:
            self.put(self._small, notes)
            return
        new = self.keeper.remembered(n_rows)
        self._clock += n_rows
        self._kept = min(self._kept + n_rows, self.keeper.capacity) if len(new.rows) else 0
        small = {name: array for name, array in self.keeper.small_arrays().items() if not name.startswith("id_")}
        self._write_rows(new)
        self.put(small, notes)

    def put(self, small: Arrays, notes: Notes) -> None:
        """Write the value."""
        header = {
            "driftvote": __version__,
            "model": self.identity.model,
            "settings": self.identity.settings,
            "labelers": self.identity.labelers,
            "clock": self._clock,
            "kept": self._kept,
            "chunk": self.chunk,
            "late": notes.late,
            "seen": notes.seen,
        }
        more = {
            "tail_rows": self._tail.rows,
            "tail_known": self._tail.known,
            "last": np.frombuffer(notes.last, np.uint8),
        }
        self._small = small
        self.value.update((packed(header, small | more),))

    def clear(self) -> None:
        """Forget the stream."""
        self.value.clear()
        self.chunks.clear()

    # -- rows ----------------------------------------------------------------------------------

    def _write_rows(self, new: Past) -> None:
        """Rows behind the tail; what fills a chunk is written as one."""
        tail = self._tail
        if tail.first + len(tail.rows) == new.first:
            new = Past(tail.first, np.concatenate([tail.rows, new.rows]), np.concatenate([tail.known, new.known]))
        first, end = new.first, new.first + len(new.rows)
        # Where more came than is remembered the first chunk has a gap, which nobody asks for.
        for number in range(first // self.chunk, end // self.chunk):
            begin = number * self.chunk
            part = slice(max(0, begin - first), begin - first + self.chunk)
            rows, known = new.rows[part], new.known[part]
            gap = self.chunk - len(rows)
            if gap:
                rows = np.concatenate([np.full((gap, self.width), -1, self.dtype), rows])
                known = np.concatenate([np.full(gap, -1, np.int64), known])
            self.chunks.updateValue((number % self.slots,), (chunk_bytes(number, rows, known),))
        rest = slice(max(0, end // self.chunk * self.chunk - first), len(new.rows))
        self._tail = Past(first + rest.start, new.rows[rest].copy(), new.known[rest].copy())

    def _read(self, first: int, last: int) -> Past:
        """Rows from the chunks and the tail."""
        rows: list[Codes] = []
        known: list[Ints] = []
        for number in range(first // self.chunk, -(-last // self.chunk)):
            begin = number * self.chunk
            part = self._tail if begin == self._clock // self.chunk * self.chunk else self._chunk(number)
            cut = slice(max(0, first - part.first), last - part.first)
            rows.append(part.rows[cut])
            known.append(part.known[cut])
        return Past(first, np.concatenate(rows), np.concatenate(known))

    def _chunk(self, number: int) -> Past:
        found = self.chunks.getValue((number % self.slots,))
        if not found or found[0] is None:
            raise StateError(f"the state lacks rows {number * self.chunk} to {(number + 1) * self.chunk - 1}")
        held, rows, known = chunk_rows(bytes(found[0]), self.width, self.dtype)
        if held != number or len(rows) != self.chunk:
            raise StateError(f"the state holds chunk {held} of {len(rows)} rows where chunk {number} should be")
        return Past(number * self.chunk, rows, known)

    # -- whether it fits -----------------------------------------------------------------------

    def _check(self, header: dict[str, Any]) -> None:
        """Refuse the state of another model, naming what differs."""
        mine = self.identity
        if tuple(header["labelers"]) != mine.labelers:
            self._refuse("labelers", list(header["labelers"]), list(mine.labelers))
        if header["model"] != mine.model:
            self._refuse("model", header["model"], mine.model)
        if header["settings"] != mine.settings:
            theirs, ours = json.loads(header["settings"]), json.loads(mine.settings)
            for name in sorted(set(theirs) | set(ours)):
                if theirs.get(name) != ours.get(name):
                    self._refuse(name, theirs.get(name), ours.get(name))
        if header["chunk"] != self.chunk:
            self._refuse("rows in a chunk", header["chunk"], self.chunk)

    def _refuse(self, what: str, theirs: object, ours: object) -> None:
        raise StateError(
            f"the checkpoint holds state that was made with {what} {theirs!r}, and the query now says {ours!r}; run it"
            " with the old value, or begin a new checkpoint folder (start= can give it a saved model)"
        )


def packed(header: dict[str, Any], arrays: Arrays) -> bytes:
    """A header and arrays as bytes, compressed: sums are mostly zeros in their high bytes."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = header | {"arrays": [[name, array.dtype.str, array.shape] for name, array in arrays.items()]}
    text = json.dumps(header).encode()
    body = text + b"".join(array.tobytes() for array in arrays.values())
    return _FRAME.pack(_MARK, VERSION, len(text)) + zlib.compress(body, 1)


def unpacked(raw: bytes) -> tuple[dict[str, Any], Arrays]:
    """What `packed` made; a state of another version is refused."""
    mark, version, length = _FRAME.unpack_from(raw)
    if mark != _MARK:
        raise StateError("the checkpoint holds something else than the state of a driftvote stream; use a new folder")
    if version != VERSION:
        raise StateError(
            f"the checkpoint holds state of version {version}, but driftvote {__version__} reads version {VERSION}; use"
            " the driftvote that wrote it, or begin a new checkpoint folder (start= can give it a saved model)"
        )
    body = zlib.decompress(raw[_FRAME.size :])
    header = json.loads(body[:length])
    arrays, at = {}, length
    for name, dtype, shape in header.pop("arrays"):
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(body, dtype, count, at).reshape(shape).copy()
        at += arrays[name].nbytes
    return header, arrays


def chunk_bytes(number: int, rows: Codes, known: Ints) -> bytes:
    """A chunk; verified classes take room only where there are any."""
    verified = bool((known >= 0).any())
    raw = _CHUNK.pack(number, verified) + np.ascontiguousarray(rows).tobytes()
    return raw + known.astype(np.int16).tobytes() if verified else raw


def chunk_rows(raw: bytes, width: int, dtype: Any) -> tuple[int, Codes, Ints]:
    """Number, rows and verified classes of a chunk."""
    number, verified = _CHUNK.unpack_from(raw)
    each = width * np.dtype(dtype).itemsize
    n_rows = (len(raw) - _CHUNK.size) // (each + 2 * verified)
    rows = np.frombuffer(raw, dtype, n_rows * width, _CHUNK.size).reshape(n_rows, width)
    known = np.full(n_rows, -1, np.int64)
    if verified:
        known = np.frombuffer(raw, np.int16, n_rows, _CHUNK.size + n_rows * each).astype(np.int64)
    return number, rows, known
