"""States of the command line: a file that `driftvote.load` reads too, or one with the models of many streams.

The state remembers which input it learned from last, so that a job which is run twice does not learn twice.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from driftvote.errors import DriftvoteError, StateError
from driftvote.files.state import Arrays, read_state, write_state, write_state_to
from driftvote.models import LabelModel, load

MANY = "many streams"
_EDGE = 1 << 20


@dataclass
class Saved:
    """Models by stream (None where there are no streams) and the mark of the last input."""

    models: dict[Hashable, LabelModel] = field(default_factory=dict)
    last_input: dict[str, Any] | None = None
    many: bool = False


def read_saved(path: Path, many: bool) -> Saved:
    """The state in a file, or an empty one if there is none yet."""
    if not path.exists():
        return Saved(many=many)
    header, arrays = read_state(path)
    found = header["model"] == MANY
    if found != many:
        kept, asked = ("many streams", "one") if found else ("one stream", "--stream")
        raise StateError(
            f"{path}: this is the state of {kept}, and the command asks for {asked}; use another state file"
        )
    if not many:
        return Saved({None: load(path)}, header.get("last_input"))
    models: dict[Hashable, LabelModel] = {}
    with tempfile.TemporaryDirectory(prefix="driftvote-") as folder:
        one = Path(folder) / "one.npz"
        for place, (name, part) in enumerate(header["settings"]["streams"]):
            mark = f"{place}."
            own = {key.removeprefix(mark): array for key, array in arrays.items() if key.startswith(mark)}
            write_state(one, part, own)
            models[name] = load(one)
    return Saved(models, header.get("last_input"), many=True)


def write_saved(file: BinaryIO, saved: Saved) -> None:
    """Write the state into an open file."""
    with tempfile.TemporaryDirectory(prefix="driftvote-") as folder:
        one = Path(folder) / "one.npz"
        if not saved.many:
            saved.models[None].save(one)
            header, arrays = read_state(one)
            write_state_to(file, {**_own(header), "last_input": saved.last_input}, arrays)
            return
        parts, together = [], Arrays()
        for place, (name, model) in enumerate(saved.models.items()):
            model.save(one)
            header, arrays = read_state(one)
            parts.append((name, _own(header)))
            together |= {f"{place}.{key}": array for key, array in arrays.items()}
    full: dict[str, Any] = {"model": MANY, "settings": {"streams": parts}, "labelers": [], "last_time": None}
    write_state_to(file, {**full, "last_input": saved.last_input}, together)


def _own(header: dict[str, Any]) -> dict[str, Any]:
    """A header without what is written anew every time."""
    anew = ("format", "version", "driftvote", "checksums", "last_input", "place")
    return {key: value for key, value in header.items() if key not in anew}


def mark_of(path: Path) -> str:
    """A mark by which a file is known again: its size and its first and last megabyte."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_EDGE))
        file.seek(max(0, size - _EDGE))
        digest.update(file.read(_EDGE))
    return digest.hexdigest()


def refuse_again(saved: Saved, mark: str, state: Path, shown: str) -> None:
    """Refuse an input that the state has learned from already."""
    last = saved.last_input
    if last is None or last.get("mark") != mark:
        return
    raise DriftvoteError(
        f"{shown}: {state} has learned from this file already (its labels went to {last.get('output')}); there is"
        " nothing left"
        " to do, unless it should be learned once more: then pass --again"
    )


def refuse_other_settings(saved: Saved, wanted: LabelModel, spec: str, state: Path) -> None:
    """A state goes on with the settings it was begun with."""
    for model in saved.models.values():
        theirs, ours = model.get_params(), wanted.get_params()
        names = [name for name in ours if name not in ("labelers", "n_jobs") and name in theirs]
        if type(model) is not type(wanted):
            raise StateError(
                f"{state}: this is the state of {type(model).__name__}, not of --model {spec}; leave --model out"
            )
        for name in names:
            if theirs[name] != ours[name] and str(theirs[name]) != str(ours[name]):
                raise StateError(
                    f"{state}: it was begun with {name}={theirs[name]!r}, and the command asks for {ours[name]!r};"
                    " leave the setting out, or begin a new state"
                )
        return


def same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two names mean one file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.abspath(one) == os.path.abspath(other)
