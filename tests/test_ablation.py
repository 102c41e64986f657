"""The default model with one choice changed: every change takes effect, ends with its process, and is on the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from driftvote.errors import DriftvoteError
from experiments.quality import ablation
from experiments.quality.ablation import (
    CHANGES,
    UNCHANGED,
    main,
    measure_change,
    measure_in_process,
    replace_in_kernels,
    table,
)

DOCS = Path(__file__).parents[1] / "docs"
SMALL = {"groups": ["synthetic"], "names": ["coverage", "copies"], "limit": 120}


def test_a_change_reaches_every_kernel_that_uses_it():
    def values() -> set[float]:
        modules = [module for name, module in sys.modules.items() if name.startswith("driftvote.")]
        return {module.SMOOTHING for module in modules if hasattr(module, "SMOOTHING")}

    with replace_in_kernels({"SMOOTHING": 10.0}):
        assert values() == {10.0}
    assert values() == {4.0}
    with pytest.raises(DriftvoteError, match="no kernel has SMOTHING"), replace_in_kernels({"SMOTHING": 1.0}):
        pass
    for change in CHANGES:
        with replace_in_kernels(change.kernel):
            assert change.model(3).get_params()["n_classes"] == 3


def test_changes_change_what_is_measured(monkeypatch):
    # Without the compiler a process starts at once; what is measured is the same.
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    titles = [UNCHANGED, "smoothing worth 10 rows", "every abstention a piece of evidence"]
    places = [[change.title for change in CHANGES].index(title) for title in titles]
    found = {CHANGES[place].title: measure_in_process(place, None, SMALL) for place in places}
    usual, smooth, silent = ([line["accuracy_error"] for line in lines] for lines in found.values())
    assert all(error is not None for error in usual)
    assert usual != smooth
    assert usual != silent
    shown = table(found)
    assert [row.split(" | ")[0].strip("| ") for row in shown.splitlines()[2:]] == titles
    assert "(simulated)" in shown


def test_the_command_writes_a_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(ablation, "CHANGES", CHANGES[:2])
    monkeypatch.setattr(
        ablation, "measure_in_process", lambda place, data, limits: measure_change(place, data, **limits)
    )
    limits = '{"groups": ["synthetic"], "names": ["stationary"], "limit": 60}'
    assert main(["--docs", str(tmp_path), "--limits", limits]) == 0
    page = (tmp_path / "ablation.md").read_text()
    assert "| as it is |" in page
    assert main(["--one", "0", "--limits", limits]) == 0
    assert '"name": "stationary"' in capsys.readouterr().out
    assert main(["--one", "0", "--limits", '{"names": ["nowhere"], "groups": ["synthetic"]}']) == 1
    assert "no stream 'nowhere'" in capsys.readouterr().err


def test_the_committed_page_has_every_change():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "ablation.md").read_text(), re.MULTILINE)
    assert rows[1:] == [change.title for change in CHANGES]
