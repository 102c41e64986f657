"""Labels to a file, in the format that its name asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.files.atomic import whole_file

FORMATS = (".csv", ".parquet")


def write_table(path: str | Path, table: Any) -> None:
    """Write an Arrow table, whole or not at all."""
    import pyarrow.csv
    import pyarrow.parquet

    path = Path(path)
    if path.suffix not in FORMATS:
        raise DriftvoteError(f"{path}: cannot tell the format from {path.suffix!r}; name it {' or '.join(FORMATS)}")
    with whole_file(path) as file:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, file)
        else:
            pyarrow.parquet.write_table(table, file)
