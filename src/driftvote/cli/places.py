"""Where results go: checked before anything is read, because labeling a long file takes time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from driftvote.cli.saved import same_file
from driftvote.errors import DriftvoteError


def check_places(
    source: str, outputs: dict[str, str | Path | None], force: bool, reused: str | Path | None = None
) -> None:
    """Refuse an output that exists (without --force), that is the input, or that is named twice.

    `outputs` are by option; `reused` (a state) may exist.
    """
    known: dict[str, Path] = {}
    for option, path in [*outputs.items(), ("--state", reused)]:
        if path is None or str(path) == "-":
            continue
        place = Path(path)
        if place.is_dir():
            raise DriftvoteError(f"{place}: this is a folder; name a file in it")
        if source != "-" and same_file(source, place):
            raise DriftvoteError(f"{place}: {option} is the input itself; choose another name")
        for other, taken in known.items():
            if same_file(place, taken):
                raise DriftvoteError(f"{place}: {option} and {other} name one file; give each its own")
        known[option] = place
        if place.exists() and option != "--state" and not force:
            raise DriftvoteError(f"{place}: the file exists; pass --force to overwrite it, or choose another name")
        if not place.parent.is_dir():
            raise DriftvoteError(f"{place}: there is no folder {place.parent}; make it first, or choose another place")
        if not os.access(place.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place.parent))
