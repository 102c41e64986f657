"""The real vote streams, with their families: the paper's four and every table `streams/*.csv` of the data folder.

A table has one column for each labeler, an empty cell abstains, classes are 0 .. K-1, the last one is the gold label.
"""

from __future__ import annotations

from csv import reader
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import DriftvoteError, VoteError
from driftvote.streams.awa2 import Awa2
from driftvote.streams.wrench import load_wrench

Codes = npt.NDArray[np.signedinteger[Any]]
"""Class codes, -1 abstains."""
Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

VIDEO = ("tennis", "basketball", "commercial")
PAPER = ("awa2", *VIDEO)
FAMILIES = {
    "video": VIDEO,
    "air": ("air_",),
    "beijing": ("beijing_",),
    "care": ("care_",),
    "covid": ("covid_",),
    "crowdtruth": ("crowdtruth_",),
    "elec2": ("elec2_",),
    "flusight": ("flusight_",),
    "gas": ("gas_sensor_",),
    "imagenet16": ("imagenet16_",),
    "llmbar": ("llmbar_",),
    "mmlupro": ("mmlupro_",),
    "noaa": ("noaa_",),
    "weather-models": ("prcpDJ_", "srft_"),
    "weatherweb": ("weatherweb_",),
    "wrench-news": ("wrench_agnews",),
    "wrench-questions": ("wrench_trec",),
    "wrench-relations": ("wrench_cdr", "wrench_chemprot", "wrench_semeval"),
    "wrench-sentiment": ("wrench_imdb", "wrench_yelp"),
    "wrench-spam": ("wrench_youtube", "wrench_sms"),
    "zencrowd": ("crowd_zencrowd_",),
}
"""Streams of one source, by how their names begin; a stream that is not listed is a family of its own."""

WITHOUT_TIME = ("basketball", "care_", "cifar101_", "crowd_", "wrench_")
"""Streams whose order is random or that of a file; Basketball's file is sorted by class."""


@dataclass(frozen=True)
class GoldStream:
    """Votes with the gold labels that label models are measured against."""

    votes: Codes
    truth: Ints
    n_classes: int

    def first(self, n_rows: int | None) -> GoldStream:
        """The first rows only."""
        return GoldStream(self.votes[:n_rows], self.truth[:n_rows], self.n_classes)

    def shuffled(self, seed: int) -> GoldStream:
        """The same rows in random order: nothing is left to adapt to."""
        order = np.random.default_rng([seed, 7]).permutation(len(self.truth))
        return GoldStream(self.votes[order], self.truth[order], self.n_classes)


def list_streams(data: Path) -> list[str]:
    """Names of the streams below a data folder."""
    found = sorted(path.stem for path in (data / "streams").glob("*.csv"))
    if not found:
        raise DriftvoteError(f"{data / 'streams'}: no vote streams there; name the folder of the data with --data")
    return [*PAPER, *found]


def family_of(name: str) -> str:
    """The family of a stream.

    >>> family_of("wrench_sms"), family_of("room_count")
    ('wrench-spam', 'room_count')
    """
    return next((family for family, begins in FAMILIES.items() if name.startswith(begins)), name)


def has_time(name: str) -> bool:
    """Whether the rows are in the order of time, or of a sequence that means something."""
    return not name.startswith(WITHOUT_TIME)


@lru_cache(maxsize=4)
def load(data: str, name: str) -> GoldStream:
    """The stream of this name."""
    if name == "awa2":
        votes, truth = Awa2.load(Path(data) / "awa2").stream(0)
        return GoldStream(votes, truth, 2)
    if name in VIDEO:
        split = load_wrench(Path(data) / "wrench" / name)
        return GoldStream(split.votes, split.truth, split.n_classes)
    return _load_table(Path(data) / "streams" / f"{name}.csv")


def _load_table(path: Path) -> GoldStream:
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
