"""Run the notebooks of docs/notebooks and store their outputs: `make notebooks`. The site shows what is stored."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def run(path: Path) -> Any:
    """The notebook with fresh outputs. It runs in an empty folder, so what it writes is gone afterwards."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    # What depends on the machine, or changes with every run, is not stored.
    notebook.metadata = {"language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
    return notebook


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(path.name)


if __name__ == "__main__":
    sys.exit(main())
