"""The paper's image stream: animals whose attribute detectors vote on which of two groups they show.

Files: `attr_detectors.csv` (an image a line: its class, its file, the outputs of 85 detectors) and
`class_attr_matrix.json` (class -> attribute -> 0 or 1), from the repository
BatsResearch/mazzetto-arxiv23-code on GitHub.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.arrays import Codes, Ints
from driftvote.errors import VoteError

LABELERS = ("black", "white", "orange", "yellow", "spots", "domestic")
FIRST_GROUP = ("horse", "sheep")  # class 0
SECOND_GROUP = ("giraffe", "bobcat")  # class 1
BLOCK, RATIOS = 4_000, (0.1, 0.9, 0.1, 0.9, 0.1)  # share of the second animal of each group, by block

_DETECTORS, _MATRIX = "attr_detectors.csv", "class_attr_matrix.json"


@dataclass(frozen=True)
class Awa2:
    """Votes of the six detectors on every image of the four animals, by animal and in file order."""

    votes: dict[str, Codes]

    @classmethod
    def load(cls, folder: str | Path) -> Awa2:
        """Read the two files; one that is missing or malformed is named, with where it comes from."""
        folder = Path(folder)
        matrix = _read_matrix(folder / _MATRIX)
        votes: dict[str, list[list[int]]] = {animal: [] for animal in FIRST_GROUP + SECOND_GROUP}
        with _open(folder / _DETECTORS) as file:
            lines = csv.DictReader(file)
            _require_columns(folder / _DETECTORS, lines.fieldnames or [])
            for line in lines:
                if line["animal"] in votes:
                    votes[line["animal"]].append(_votes_of(line, matrix, folder / _DETECTORS, lines.line_num))
        for animal, rows in votes.items():
            if not rows:
                raise VoteError(f"{folder / _DETECTORS}: there is no image of {animal!r}")
        return cls({animal: np.array(rows, np.int8) for animal, rows in votes.items()})

    def stream(self, seed: int) -> tuple[Codes, Ints]:
        """Votes and true classes of one drifting stream of 20,000 rows: the paper's own for seeds 0, 1, 2.

        The draws are the authors', in their order: a fair coin for the group, the block's ratio for the
        animal, then an image of that animal with repetition.
        """
        rng = np.random.RandomState(seed)
        rows, truth = [], []
        for ratio in RATIOS:
            for _ in range(BLOCK):
                group = int(rng.binomial(1, 0.5))
                second = int(rng.binomial(1, ratio))
                images = self.votes[(FIRST_GROUP, SECOND_GROUP)[group][second]]
                rows.append(images[rng.choice(len(images))])
                truth.append(group)
        return np.array(rows, np.int8), np.array(truth, np.int64)


def _open(path: Path) -> Any:
    try:
        return path.open(encoding="utf-8", newline="")
    except OSError as problem:
        raise VoteError(
            f"{path}: cannot be read ({problem.strerror}); it comes from BatsResearch/mazzetto-arxiv23-code on GitHub"
        ) from problem


def _read_matrix(path: Path) -> dict[str, dict[str, int]]:
    with _open(path) as file:
        try:
            matrix = json.load(file)
        except ValueError as problem:
            raise VoteError(f"{path}: not JSON ({problem})") from problem
    for animal in FIRST_GROUP + SECOND_GROUP:
        for name in LABELERS:
            try:
                value = matrix[animal][name]
            except (KeyError, TypeError):
                raise VoteError(f"{path}: there is no entry {animal!r} -> {name!r}") from None
            if value not in (0, 1):
                raise VoteError(f"{path}: {animal!r} -> {name!r} is {value!r}, not 0 or 1")
    return matrix


def _require_columns(path: Path, columns: Any) -> None:
    for name in ("animal", *LABELERS):
        if name not in columns:
            raise VoteError(f"{path}: there is no column {name!r}")


def _votes_of(line: dict[str, str], matrix: dict[str, dict[str, int]], path: Path, number: int) -> list[int]:
    """A detector's output votes for the group whose animals have that value of the attribute."""
    votes = []
    for name in LABELERS:
        try:
            output = int(float(line[name]))
        except (TypeError, ValueError):
            raise VoteError(f"{path}: line {number}, column {name!r}: {line[name]!r} is not 0 or 1") from None
        votes.append(int(output == matrix[SECOND_GROUP[0]][name]))
    return votes
