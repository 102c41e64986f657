"""`make watch-bench`, at a small size; and that the page holds what it wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import watch

PAGE = (Path(__file__).parents[1] / "docs" / "watch.md").read_text()


@pytest.mark.slow
def test_latency_is_measured_through_pipes():
    found = watch.latency(4, rows=20, warm=40)
    assert 0 < found["median"] <= found["p99"] <= found["max"]


def test_tables_tell_what_does_not_hold():
    assert watch.latency_table({"x": {"median": 0.2, "p99": 1.0, "max": 3.0}}).endswith("| yes |")
    assert watch.latency_table({"x": {"median": 1.2, "p99": 2.0, "max": 3.0}}).endswith("| **no** |")
    lines = [{"lines": 10, "peak_mb": 100.0, "a_second": 5.0}, {"lines": 100, "peak_mb": 104.0, "a_second": 5.0}]
    assert watch.memory_table(lines).endswith("+4.0 MB, flat.")
    lines[1]["peak_mb"] = 140.0
    assert watch.memory_table(lines).endswith("**not flat**.")


def test_tables_go_between_their_marks():
    page = "a\n<!-- kills: written by make watch-bench -->\nold\n<!-- end of kills -->\nb"
    assert "old" not in watch.write_table(page, "kills", "| new |")
    assert watch.write_table(page, "kills", "| new |").endswith("| new |\n\n<!-- end of kills -->\nb")
    with pytest.raises(SystemExit, match="no marks <!-- memory: written by make watch-bench -->"):
        watch.write_table(page, "memory", "")


def test_the_page_keeps_the_promises():
    parts = {name: re.search(rf"<!-- {name}: .*?-->(.*?)<!-- end of {name}", PAGE, re.DOTALL)[1] for name in ("latency", "memory", "kills")}  # fmt: skip
    assert parts["latency"].count("| yes |") == 3
    assert "| 1,000,000 | " in parts["memory"]
    assert ", flat." in parts["memory"]
    killed = re.findall(r"\| ([\d,]+) \| (\d+) \| [\d,]+ \| (\d+) \| (\d+) \|", parts["kills"])
    assert len(killed) == 3
    assert all((missing, different) == ("0", "0") for _, _, missing, different in killed)
