"""The streams that quality is measured on: real ones, plain, permuted and shuffled, and simulated ones.

Every table `streams/*.csv` of the data folder takes part: one column for each labeler, an empty cell abstains,
classes 0 .. K-1, the last column is the gold label.
"""

from __future__ import annotations

from collections.abc import Sequence
from csv import reader
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import DriftvoteError, SettingError, VoteError
from driftvote.streams import SCENARIOS, permute, scenario
from driftvote.streams.awa2 import Awa2
from driftvote.streams.wrench import load_wrench

Codes = npt.NDArray[np.signedinteger[Any]]
"""Class codes, -1 abstains."""
Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

PAPER = ("awa2", "tennis", "basketball", "commercial")
PLAIN, PERMUTED, SHUFFLED, SYNTHETIC = "plain", "permuted", "shuffled", "synthetic"
GROUPS = (PLAIN, PERMUTED, SHUFFLED, SYNTHETIC)
AWA2_SEEDS = (0, 1, 2)  # the paper's own streams
SEEDS = {PLAIN: (0,), PERMUTED: (0, 1, 2, 3, 4), SHUFFLED: (0, 1, 2), SYNTHETIC: (0, 1, 2, 3, 4)}


@dataclass(frozen=True)
class StreamSpec:
    """Which stream: its name, its group, and the seed of what is random about it."""

    name: str
    group: str
    seed: int

    @property
    def fresh_rows(self) -> bool:
        """Whether another seed draws other rows."""
        return self.group == SYNTHETIC or self.name == "awa2"


@dataclass(frozen=True)
class GoldStream:
    """Votes with the gold labels that a model is measured against."""

    votes: Codes
    truth: Ints
    n_classes: int
    accuracies: Floats | None = None  # known where the stream is simulated

    def first(self, n_rows: int | None) -> GoldStream:
        """The first rows only."""
        accuracies = None if self.accuracies is None else self.accuracies[:n_rows]
        return GoldStream(self.votes[:n_rows], self.truth[:n_rows], self.n_classes, accuracies)


def real_names(data: Path) -> list[str]:
    """The paper's four and every table in `streams/`."""
    found = sorted(path.stem for path in (data / "streams").glob("*.csv"))
    if not found:
        raise DriftvoteError(f"{data / 'streams'}: no vote streams there; name the folder of the data with --data")
    return [*PAPER, *found]


def catalogue(data: Path | None, groups: Sequence[str] = GROUPS, most_seeds: int = 5) -> list[StreamSpec]:
    """Every stream of these groups, seeds of one stream side by side; simulated streams need no data."""
    made: list[StreamSpec] = []
    for group in groups:
        if group not in GROUPS:
            raise SettingError(f"there is no group of streams {group!r}; choose {', '.join(GROUPS)}")
        for name in _names(data, group):
            seeds = AWA2_SEEDS if name == "awa2" else SEEDS[group]
            made += [StreamSpec(name, group, seed) for seed in seeds[:most_seeds]]
    return made


def _names(data: Path | None, group: str) -> list[str]:
    if group == SYNTHETIC:
        return list(SCENARIOS)
    if data is None:
        raise DriftvoteError("the real vote streams are needed; name their folder with --data or DRIFTVOTE_DATA")
    return list(PAPER) if group == PERMUTED else real_names(data)


def load(data: str, spec: StreamSpec) -> GoldStream:
    """The stream, read from files or drawn."""
    if spec.group == SYNTHETIC:
        stream = scenario(spec.name, seed=spec.seed)
        return GoldStream(stream.votes, stream.truth, stream.n_classes, stream.accuracies)
    plain = _real(data, spec.name, spec.seed if spec.name == "awa2" else 0)
    if spec.group == PERMUTED:
        return GoldStream(permute(plain.votes, spec.seed)[0], plain.truth, plain.n_classes)
    if spec.group == SHUFFLED:
        order = np.random.default_rng([spec.seed, 7]).permutation(len(plain.truth))
        return GoldStream(plain.votes[order], plain.truth[order], plain.n_classes)
    return plain


@lru_cache(maxsize=8)
def _real(data: str, name: str, seed: int) -> GoldStream:
    if name == "awa2":
        votes, truth = _images(data).stream(seed)
        return GoldStream(votes, truth, 2)
    if name in PAPER:
        split = load_wrench(Path(data) / "wrench" / name)
        return GoldStream(split.votes, split.truth, split.n_classes)
    return _table(Path(data) / "streams" / f"{name}.csv")


@lru_cache(maxsize=1)
def _images(data: str) -> Awa2:
    return Awa2.load(Path(data) / "awa2")


def _table(path: Path) -> GoldStream:
    import pyarrow
    from pyarrow import csv

    try:
        with path.open(encoding="utf-8", newline="") as file:
            columns = next(reader(file), [])
        # Declared, because a labeler that never votes in the first block would be guessed to be text.
        types = dict.fromkeys(columns, pyarrow.int64())
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types))
    except (OSError, pyarrow.ArrowInvalid) as problem:
        raise VoteError(f"{path}: not a table of class codes ({problem})") from problem
    if not columns or columns[-1] != "gold" or not len(table):
        raise VoteError(f"{path}: it needs rows, a column for each labeler, and a last column named 'gold'")
    codes = np.column_stack([column.fill_null(-1).to_numpy() for column in table.columns])
    votes, truth = codes[:, :-1], codes[:, -1]
    if truth.min() < 0 or votes.min() < -1:
        raise VoteError(f"{path}: every row needs a gold class, and votes are classes from 0 on or empty")
    n_classes = max(2, int(codes.max()) + 1)
    return GoldStream(votes.astype(np.int8 if n_classes <= 126 else np.int16), truth, n_classes)
