"""The benchmark suite runs, its two sides do the same work, and its verdicts can fail. No time is asserted."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "driftvote"


@pytest.fixture
def bench(monkeypatch):
    """Modules of `benchmarks/`, which is no part of the package, by name."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """One run of every section that needs no peer, at the smallest sizes."""
    folder = tmp_path_factory.mktemp("bench")
    sections = ["growth", "latency", "chunked", "axes"]
    done = run("benchmarks", "--plan", "tiny", "--out", str(folder), "--only", *sections)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_suite_writes_figures_page_and_summary(small_run):
    results = json.loads((small_run / "performance.json").read_text())
    page = (small_run / "performance.md").read_text()
    assert {line["verdict"] for line in results["targets"]} <= {"pass", "fail", "not measured"}
    for line in results["targets"]:
        assert line["statement"] in page
    assert "too small for a verdict" in page
    assert [line["rows"] for line in results["sections"]["chunked"]["lines"]] == [1_000, 3_000]
    assert len(list((small_run / "figures").glob("performance-*.png"))) == 3
    assert str(ROOT) not in page + json.dumps(results)


SMALL = ("--rows", "3000", "--rounds", "0.1", "--only", "batch", "row")


@pytest.mark.slow
def test_the_check_passes_and_fails(tmp_path):
    path = tmp_path / "marks.json"
    assert run("benchmarks.check", *SMALL, "--marks", str(path), "--write-marks").returncode == 0
    marks = json.loads(path.read_text())
    assert set(marks["ratios"]) == {"batch", "row"}
    for factor, code in ((1_000.0, 0), (0.001, 1)):
        path.write_text(json.dumps({**marks, "ratios": {k: v * factor for k, v in marks["ratios"].items()}}))
        done = run("benchmarks.check", *SMALL, "--marks", str(path))
        assert done.returncode == code, done.stdout + done.stderr
        assert ("by more than 20%, twice" in done.stderr) == bool(code)


@pytest.mark.slow
def test_the_check_measures_another_checkout_in_turns():
    done = run("benchmarks.check", *SMALL, "--against", str(ROOT))
    assert done.stdout.count("the other checkout") >= 2, done.stderr


def test_the_check_refuses_marks_of_other_sizes(bench, tmp_path):
    path = tmp_path / "marks.json"
    path.write_text(json.dumps({"rows": 5, "ratios": {}}))
    with pytest.raises(SystemExit, match="was measured with 5 rows"):
        bench("check").main(["--marks", str(path)])


def test_the_marks_are_of_every_figure(bench):
    check = bench("check")
    marks = json.loads(check.MARKS.read_text())
    assert set(marks["ratios"]) == set(check.FIGURES)
    assert marks["rows"] == check.Rounds.rows


def test_every_target_can_pass_fail_and_be_missing(bench):
    targets = bench("page")
    for target in targets.TARGETS:
        worse, better = target.bound * 1.01, target.bound * 0.99
        if not target.at_most:
            worse, better = better, worse
        for value, verdict in ((better, "pass"), (target.bound, "pass"), (worse, "fail"), (None, "not measured")):
            (line,) = [line for line in targets.judge({target.key: value}) if line["key"] == target.key]
            assert line["verdict"] == verdict
            assert targets.failing([line]) == ([target.key] if verdict == "fail" else [])


def test_nothing_measured_passes_nothing(bench):
    page = bench("page")
    assert {line["verdict"] for line in page.judge(page.collect_values({}))} == {"not measured"}


def test_slower_by_a_fifth_is_the_border(bench):
    slower = bench("check").slower
    assert slower({"a": 1.19, "b": 3.0}, {"a": 1.0, "b": 2.0}) == ["b"]
    assert slower({"new": 9.0}, {}) == []
    assert bench("check").ratio_of_least([(4.0, 2.0), (3.0, 1.0), (9.0, 1.5)]) == 3.0


def test_ratios_are_medians_within_rounds(bench):
    timing = bench("common")
    # The machine is three times slower in the second round: each ratio is 2, that of the medians is not.
    assert timing.ratio({"a": [2.0, 6.0, 2.2], "b": [1.0, 3.0, 1.1]}, "a", "b") == 2.0
    turns: list[str] = []
    sides = {"a": lambda: turns.append("a"), "b": lambda: turns.append("b")}
    timing.interleave(sides, rounds=3, budget=60.0)
    assert turns == list("ababab")
    assert len(timing.interleave(sides, rounds=3, budget=0.0)["b"]) == 1


def test_a_child_is_not_measured_by_its_parent(bench):
    """A large parent must not show in the memory of what it starts."""
    ballast = np.ones(400_000_000, np.int8)
    found = bench("throughput").in_process("chunked", {"rows": 100, "chunk": 50})
    assert found["idle_mb"] < ballast.nbytes / 1e6


def test_reasons_name_no_machine(bench):
    reason = bench("peers").reason
    said = reason("x\nImportError: cannot import name 'A' from 'b' (/some/where/b.py)\n")
    assert said.startswith("ImportError: cannot import name 'A'")
    assert "/" not in said
    assert "/" not in reason("ERROR: Could not reach https://host.example/simple/torch\n")


def test_the_bench_of_events_and_bands_writes_its_tables(bench, tmp_path):
    events, bands = bench("events"), bench("bands")
    page, source = tmp_path / "events.md", tmp_path / "bands.py"
    page.write_text((ROOT / "docs" / "events.md").read_text())
    source.write_text((PACKAGE / "drift" / "bands.py").read_text())
    found = events.tables(events.Plan(1, 1000, 2, 1, 1, 1), None)
    assert {line.split("|")[2].strip() for line in found["summary"][2:]} <= {"holds", "**does not hold**"}
    text = page.read_text()
    for name, lines in found.items():
        text = events.written(text, name, lines)
    assert all("\n".join(lines) in text for lines in found.values())
    with pytest.raises(AssertionError, match="no place for other"):
        events.written(text, "other", [])
    factors = bands.fitted(1)
    assert set(factors) == {"em", "triplet"} == set(bands.bands.FACTORS)
    assert all(0.3 < factor < 3.0 for factor in factors.values())
    assert len(bands.tried(factors, 1)) == 10
    assert len(bands.changes(1)) == 2 + len(bands.CHANGES)
    assert events._found([100, 500], [150, 160, 400, 1600], 2000) == 1
    assert events._found([100, 500], [150, 520], 2000) == 2


def test_every_summary_of_events_holds():
    text = (ROOT / "docs" / "events.md").read_text()
    assert text.count("| holds |") >= 9
    assert "does not hold" not in text
