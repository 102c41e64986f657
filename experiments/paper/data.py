"""The data of the paper: where they come from, where they belong, and whether they are the ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driftvote.errors import DriftvoteError
from driftvote.streams.awa2 import Awa2
from driftvote.streams.wrench import load_wrench

WRENCH = (
    "datasets.zip of the WRENCH benchmark: its README, https://github.com/JieyuZ2/wrench, has the link; unzip it and"
    " copy these three folders (label.json and train.json are used)"
)
AUTHORS = (
    "attr_detectors.csv and class_attr_matrix.json of the authors' repository,"
    " https://github.com/BatsResearch/mazzetto-arxiv23-code"
)


def _digest_wrench(folder: Path) -> str:
    found = load_wrench(folder)
    return _digest(found.votes.astype("int8").tobytes(), found.truth.astype("int8").tobytes())


def _digest_awa2(folder: Path) -> str:
    return _digest(*(votes.astype("int8").tobytes() for votes in Awa2.load(folder).votes.values()))


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """A folder of data: what it is, who has it, and the digest of its votes (files with the same votes may differ)."""

    folder: str
    what: str
    origin: str
    read: Callable[[Path], str]
    digest: str

    def state(self, data: Path) -> str:
        """`found`, `missing`, `differs`, or what is wrong with a file."""
        folder = data / self.folder
        if not folder.exists():
            return "missing"
        try:
            return "found" if self.read(folder) == self.digest else "differs"
        except (DriftvoteError, OSError) as problem:
            return str(problem)


SOURCES = (
    Source("wrench/tennis", "6 labelers, 6,959 frames", WRENCH, _digest_wrench, "a883ab19dd7f5b0d"),
    Source("wrench/basketball", "4 labelers, 17,970 frames", WRENCH, _digest_wrench, "d1f8fde473ba2528"),
    Source("wrench/commercial", "4 labelers, 64,130 frames", WRENCH, _digest_wrench, "f32d08e279f9444a"),
    Source("awa2", "85 attribute detectors on images of 10 animals", AUTHORS, _digest_awa2, "8e02562168a97122"),
)


def describe(data: Path | None) -> tuple[bool, str]:
    """Whether the data are complete, and a text: state of each folder, where to get what is missing."""
    shown = data or Path("DATA")
    states = {source: source.state(shown) if data else "missing" for source in SOURCES}
    lines = [f"{shown / source.folder}: {source.what}: {state}" for source, state in states.items()]
    for origin in dict.fromkeys(source.origin for source, state in states.items() if state != "found"):
        folders = ", ".join(str(shown / source.folder) for source in SOURCES if source.origin == origin)
        lines.append(f"{folders}: {origin}")
    if "differs" in states.values():
        lines.append("differs: other votes, or another order of the rows, than those behind docs/reproduction.md")
    complete = all(state in ("found", "differs") for state in states.values())
    return complete, "\n".join(lines)
