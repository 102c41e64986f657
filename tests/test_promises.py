"""docs/promises.md: every promise names the tests that hold it, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "promises.md"
NAMED = re.compile(r"`(\w+\.py)::(\w+)`")


def promises() -> list[str]:
    """The lines of the page that promise something."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [line for line in lines if not re.match(r"\|(---|\s*(promise|limit)\s*\|)", line)]


def find_tests(name: str) -> set[str]:
    """The tests of a file, methods of classes too."""
    (path,) = TESTS.rglob(name)
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("line", promises(), ids=lambda line: line.split("|")[1].strip()[:60])
def test_a_promise_is_held_by_tests_that_exist(line):
    _, promise, holders, _ = line.split("|")
    named = NAMED.findall(holders)
    assert promise.strip()
    assert named, f"nothing holds: {promise}"
    assert len(named) == holders.count("::"), f"a test is not named as `file.py::test`: {holders}"
    for name, test in named:
        assert test in find_tests(name), f"{name} has no {test}"


def test_there_are_promises_of_every_kind():
    assert len(promises()) > 40
    headings = re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)
    assert headings == ["Results", "Errors", "Threads", "State", "Files", "Live streams", "The service", "Limits"]
