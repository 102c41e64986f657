"""State files of the commands: the model of a file, or the models of all its streams.

A state names the input that it learned from last, so that a job that runs twice does not learn twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from driftvote.cli.options import ModelOptions, flat_settings
from driftvote.errors import DriftvoteError, StateError
from driftvote.files.classes import describe_classes
from driftvote.files.state import read_states, write_states_to
from driftvote.models import LabelModel
from driftvote.votes import VoteFormat

_EDGE_BYTES = 1 << 20


@dataclass
class SavedModels:
    """Models by stream (the stream None where a file has no streams), and the last input that they learned from."""

    models: dict[Hashable, LabelModel] = field(default_factory=dict)
    last_input: dict[str, Any] | None = None

    @classmethod
    def read(cls, path: Path | None, many_streams: bool) -> SavedModels:
        """The models in a state file; empty without a path or a file."""
        if path is None or not path.exists():
            return cls()
        states, common = read_states(path)
        if (None not in states) != many_streams:
            found, asked = ("one stream", "--stream") if None in states else ("many streams", "one")
            raise StateError(
                f"{path}: this is the state of {found}, and the command asks for {asked}; use another state file"
            )
        models = {name: LabelModel.from_state(*state, name=str(path)) for name, state in states.items()}
        last_input = common.get("last_input")
        return cls(models, last_input if isinstance(last_input, dict) else None)

    def write(self, file: BinaryIO) -> None:
        """Write the models into an open file."""
        states = {name: model.to_state() for name, model in self.models.items()}
        write_states_to(file, states, {"last_input": self.last_input})

    @property
    def form(self) -> VoteFormat | None:
        """The vote format of the models, None if there are none."""
        return next((model.vote_format for model in self.models.values()), None)

    def check_settings(self, options: ModelOptions, path: Path) -> None:
        """Refuse options whose model or settings differ from those of the state."""
        model = next(iter(self.models.values()))
        fresh = options.make(model.vote_format)
        if type(model) is not type(fresh):
            raise StateError(
                f"{path}: this is the state of {type(model).__name__}, not of --model {options.model}; omit --model"
            )
        saved = flat_settings(model)
        for name, asked in flat_settings(fresh).items():
            if name != "n_jobs" and saved[name] != asked and str(saved[name]) != str(asked):
                raise StateError(
                    f"{path}: it was started with {name}={saved[name]!r}, and the command asks for {asked!r}; omit the"
                    " setting, or start a new state"
                )

    def check_classes(self, declared: VoteFormat | None, path: Path) -> None:
        """Refuse declared classes that differ from those of the state."""
        form = self.form
        if form is None or declared is None:
            return
        if (declared.classes, declared.abstain) != (form.classes, form.abstain):
            raise StateError(
                f"{path}: the state reads classes {describe_classes(form)}, the options declare"
                f" {describe_classes(declared)}; omit them, or start a new state"
            )

    def check_new_input(self, file_hash: str, path: Path, shown: str) -> None:
        """Refuse the input that the state learned from last."""
        if self.last_input is not None and self.last_input.get("mark") == file_hash:
            raise DriftvoteError(
                f"{shown}: {path} has learned from this file already (its labels are in"
                f" {self.last_input.get('output')}); pass --again to learn from it once more"
            )


def hash_file(path: Path) -> str:
    """A hash that identifies a file: of its size and of its first and last megabyte."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_EDGE_BYTES))
        file.seek(max(0, size - _EDGE_BYTES))
        digest.update(file.read(_EDGE_BYTES))
    return digest.hexdigest()
