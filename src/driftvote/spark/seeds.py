"""Saved models as what streams begin with: read on the driver, sent to executors as the store would hold them.

They are sent as files. Inside the function that Spark sends to its workers they would be megabytes, and Spark 4.3
makes a broadcast variable of such a function, which the worker that it asks for the kinds of state cannot load.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.errors import LabelerError, SettingError, StateError
from driftvote.models import LabelModel
from driftvote.models.base import load
from driftvote.models.keepers import adopt, keeper_for
from driftvote.spark.chunked_state import ChunkedState, Identity, Notes, packed, unpacked
from driftvote.spark.columns import Plan
from driftvote.spark.keyed import Seed
from driftvote.spark.packing import plain


def load_models(start: Any) -> dict[Any, LabelModel]:
    """Saved models by key; None is the key of all others."""
    if start is None:
        return {}
    files = start if isinstance(start, Mapping) else {None: start}
    return {key: load(path) for key, path in files.items()}


def declared_by(saved: Mapping[Any, LabelModel]) -> list[str] | None:
    for model in saved.values():
        names = model._families.members.names or model.labelers
        return list(names) if model.get_params()["labelers"] is None else None
    return None


def stream_text(key: Any, frame: Any, plan: Plan) -> str | None:
    """A key of `start` as streams are called in the store."""
    from pyspark.sql.pandas.types import to_arrow_type

    if key is None:
        return None
    values = key if isinstance(key, tuple) else (key,)
    if len(values) != len(plan.key):
        raise SettingError(f"start names the stream {key!r}, but key={list(plan.key)}; give a value for each of them")
    kinds = [to_arrow_type(frame.schema[name].dataType) for name in plan.key]
    try:
        return json.dumps([plain(pa.scalar(value, kind)) for value, kind in zip(values, kinds, strict=True)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as problem:
        raise SettingError(f"start names the stream {key!r}, which key={list(plan.key)} cannot hold") from problem


class _Cell:
    """A value, and a map, in memory: where a saved model is put as the store would have it."""

    def __init__(self) -> None:
        self.held: dict[Any, bytes] = {}

    def get(self) -> Any:
        return None

    def update(self, newValue: Any) -> None:  # noqa: N803
        self.held[0] = newValue[0]

    def getValue(self, key: Any) -> Any:  # noqa: N802
        return None

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self.held[key[0]] = value[0]

    def clear(self) -> None:
        self.held.clear()


def make_seed(plan: Plan, model: LabelModel) -> Seed:
    """A saved model as the beginning of a stream."""
    fresh = plan.model.new()
    names = model._families.members.names or model.labelers
    if tuple(names) != plan.labelers:
        raise LabelerError(f"start: the saved model knows {list(names)}, and labelers={list(plan.labelers)}")
    theirs, mine = Identity.of(model), Identity.of(fresh)
    if (theirs.model, theirs.settings) != (mine.model, mine.settings):
        raise StateError(
            f"start: the saved model is {model!r}, and the query's is {fresh!r}; leave model= out to take the saved"
            " one's settings"
        )
    value, chunks = _Cell(), _Cell()
    keeper = keeper_for(fresh)
    state = ChunkedState(keeper, value, chunks)
    state.open()
    if model.n_rows:
        adopt(keeper, model)
        state.save(Notes(), model.n_rows)
    else:
        state.put(keeper.fresh, Notes())
    return Seed(value.held[0], chunks.held, model._last_time)


@dataclass(frozen=True)
class SentSeed:
    """A seed that Spark has brought to the executors as a file."""

    name: str

    def read(self) -> Seed:
        """The seed itself."""
        return _read_file(self.name)


def send(seed: Seed, session: Any) -> SentSeed:
    """Let Spark bring a seed to every executor."""
    places = sorted(seed.chunks)
    header = {"last_time": seed.last_time, "chunks": [[place, len(seed.chunks[place])] for place in places]}
    chunks = b"".join(seed.chunks[place] for place in places)
    raw = packed(header, {"value": np.frombuffer(seed.value, np.uint8), "rows": np.frombuffer(chunks, np.uint8)})
    name = f"driftvote-{hashlib.sha256(raw).hexdigest()[:20]}.seed"
    folder = tempfile.mkdtemp(prefix="driftvote-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors may ask for it as long as the driver runs
    path = Path(folder) / name
    path.write_bytes(raw)
    session.sparkContext.addFile(str(path))
    return SentSeed(name)


@lru_cache(maxsize=4)
def _read_file(name: str) -> Seed:
    from pyspark import SparkFiles

    header, arrays = unpacked(Path(SparkFiles.get(name)).read_bytes())
    rows, chunks, at = arrays["rows"].tobytes(), {}, 0
    for place, length in header["chunks"]:
        chunks[place] = rows[at : at + length]
        at += length
    last = header["last_time"]
    return Seed(arrays["value"].tobytes(), chunks, None if last is None else (last[0], last[1]))
