"""Datasets of the WRENCH benchmark: votes of labeling functions with gold labels, as JSON.

A dataset is a folder with `train.json`, `valid.json`, `test.json` and `label.json`, from the WRENCH benchmark
(Zhang et al. 2021, JieyuZ2/wrench on GitHub, which links to the download). A split maps row numbers to
`{"label": 1, "weak_labels": [0, 1, -1, ...], "data": {...}}`, -1 abstains; `label.json` maps class codes to names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.arrays import Codes, Ints, code_dtype
from driftvote.errors import VoteError

_ORIGIN = "a dataset folder of the WRENCH benchmark (JieyuZ2/wrench on GitHub) holds it"


@dataclass(frozen=True)
class WrenchDataset:
    """One split: votes (rows x labeling functions, -1 abstains), gold labels, class names in code order."""

    name: str
    votes: Codes
    truth: Ints
    classes: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        return len(self.classes)


def load_wrench(folder: str | Path, split: str = "train") -> WrenchDataset:
    """Read one split of a dataset folder; a missing or malformed file is named, and the row in it."""
    folder = Path(folder)
    classes = _read_classes(folder / "label.json")
    path = folder / f"{split}.json"
    table = _read_json(path)
    if not isinstance(table, dict) or not table:
        raise VoteError(f"{path}: not a WRENCH split: it must map row numbers to rows, and hold at least one")
    rows = [_row(path, number, table) for number in range(len(table))]
    width = len(rows[0][0])
    codes = range(-1, len(classes))
    for number, (votes, label) in enumerate(rows):
        if len(votes) != width:
            raise VoteError(f"{path}: row {number} has {len(votes)} weak labels, but row 0 has {width}")
        for place, vote in enumerate(votes):
            if isinstance(vote, bool) or vote not in codes:
                raise VoteError(
                    f"{path}: row {number}, weak label {place} is {vote!r}, not -1 or a class code up to {codes[-1]}"
                )
        if isinstance(label, bool) or label not in codes[1:]:
            raise VoteError(f"{path}: row {number}: label {label!r} is not a class code from 0 to {codes[-1]}")
    return WrenchDataset(
        name=folder.name,
        votes=np.array([votes for votes, _ in rows], code_dtype(len(classes))),
        truth=np.array([label for _, label in rows], np.int64),
        classes=classes,
    )


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise VoteError(f"{path}: cannot be read ({problem}); {_ORIGIN}") from problem
    try:
        return json.loads(text)
    except ValueError as problem:
        raise VoteError(f"{path}: not JSON ({problem})") from problem


def _read_classes(path: Path) -> tuple[str, ...]:
    table = _read_json(path)
    try:
        names = tuple(str(table[str(code)]) for code in range(len(table)))
    except (TypeError, KeyError):
        names = ()
    if len(names) < 2:
        raise VoteError(f'{path}: must map class codes from "0" on to names, at least two of them')
    return names


def _row(path: Path, number: int, table: dict[str, Any]) -> tuple[list[Any], Any]:
    row = table.get(str(number))
    if not isinstance(row, dict):
        raise VoteError(f'{path}: there is no row "{number}"; rows are numbered from 0 without gaps')
    votes, label = row.get("weak_labels"), row.get("label")
    if not isinstance(votes, list) or not votes:
        raise VoteError(f"{path}: row {number} has no list weak_labels")
    return votes, label
