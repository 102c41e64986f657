"""The default model with one choice changed: every change takes effect, ends with its process, and is on the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from driftvote.errors import DriftvoteError
from experiments.quality import ablation
from experiments.quality.ablation import (
    UNCHANGED,
    VARIANTS,
    choose_by_other_families,
    main,
    measure_in_process,
    measure_variant,
    replace_in_kernels,
    table,
)
from experiments.quality.models import adaptive

from streams_for_tests import DATA, needs_data

DOCS = Path(__file__).parents[1] / "docs"


def test_a_change_reaches_every_kernel_that_uses_it():
    name, value = next((name, value) for variant in VARIANTS for name, value in variant.kernel.items())

    def values():
        modules = [module for key, module in sys.modules.items() if key.startswith("driftvote.")]
        return {getattr(module, name) for module in modules if hasattr(module, name)}

    before = values()
    with replace_in_kernels({name: value}):
        assert values() == {value}
    assert values() == before != {value}
    with pytest.raises(DriftvoteError, match="no kernel has SMOTHING"), replace_in_kernels({"SMOTHING": 1.0}):
        pass


def test_every_variant_exists():
    for variant in VARIANTS:
        with replace_in_kernels(variant.kernel):
            assert adaptive(3, **variant.settings).get_params()["n_classes"] == 3


@needs_data
def test_variants_change_what_is_measured(monkeypatch):
    # Without the compiler a process starts at once; what is measured is the same.
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    titles = [variant.title for variant in VARIANTS]
    places = [0, titles.index("without majority"), titles.index("smoothing worth 10 rows")]
    found = {
        VARIANTS[place].title: measure_in_process(place, DATA, ["air_co", "noaa_rules", "elec2_lf"], 150)
        for place in places
    }
    assert len({tuple(gains.values()) for gains in found.values()}) > 1, found
    assert [row.split(" | ")[0].strip("| ") for row in table(found).splitlines()[2:]] == list(found)


def test_a_family_is_judged_by_the_others():
    results = {
        UNCHANGED: {"air_a": 0.0, "air_b": 0.0, "gas_sensor_a": 0.0},
        "good on air": {"air_a": 2.0, "air_b": 2.0, "gas_sensor_a": -1.0},
    }
    gains, chosen = choose_by_other_families(results)
    # Without air the unchanged model is better; without gas the other one.
    assert gains == {"air_a": 0.0, "air_b": 0.0, "gas_sensor_a": -1.0}
    assert chosen == {UNCHANGED: 1, "good on air": 1}


@needs_data
def test_the_command_writes_a_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(ablation, "VARIANTS", VARIANTS[:2])
    monkeypatch.setattr(ablation, "measure_in_process", measure_variant)
    small = ["--data", str(DATA), "--names", "crowd_leaves,tennis", "--limit", "100"]
    assert main(["--docs", str(tmp_path), *small]) == 0
    page = (tmp_path / "ablation.md").read_text()
    assert "| as it is |" in page
    assert main(["--one", "0", *small]) == 0
    assert '"crowd_leaves": ' in capsys.readouterr().out
    assert main(["--one", "0", "--data", str(tmp_path)]) == 1
    assert "no vote streams there" in capsys.readouterr().err


def test_the_committed_page_has_every_variant():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "ablation.md").read_text(), re.MULTILINE)
    assert rows[1:] == [variant.title for variant in VARIANTS]
