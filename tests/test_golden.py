"""Golden files say "unchanged"; the toys say "right"."""

from __future__ import annotations

import json

import pytest

import make_golden

CASES = make_golden.cases()


def test_every_golden_file_has_a_case():
    assert {path.stem for path in make_golden.FOLDER.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("name", list(CASES))
def test_unchanged(name):
    kept = json.loads((make_golden.FOLDER / f"{name}.json").read_text())
    found = json.loads(json.dumps(make_golden.summary(*CASES[name])))
    rows, kept_rows = found.pop("rows"), kept.pop("rows")
    assert found == kept
    for row, kept_row in zip(rows, kept_rows, strict=True):
        for key, value in kept_row.items():
            # Logarithms and exponentials may differ in the last bit between machines.
            assert row[key] == pytest.approx(value, rel=1e-12), (kept_row["row"], key)
