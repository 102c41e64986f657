"""`driftvote compile`, and what whoever waits for the compiler is told."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from streams_for_tests import COMPILED

# Kernels that others than kernels call must all have been used; who calls them is found in the sources.
NOT_USED = """
import ast, importlib
from pathlib import Path
import driftvote
from driftvote.cli.compile import exercise
list(exercise())
root = Path(driftvote.__file__).parent
for path in root.rglob("*.py"):
    if path.parent.name == "kernels":
        continue
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("driftvote.kernels"):
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                if getattr(getattr(module, name), "signatures", [1]) == []:
                    print(name, path.name)
"""


@pytest.mark.skipif(not COMPILED, reason="there is nothing to compile")
def test_everything_is_compiled():
    done = subprocess.run([sys.executable, "-c", NOT_USED], capture_output=True, text=True, check=True)
    left = {line.split()[1] for line in done.stdout.splitlines()}
    assert left <= {"keepers.py"}, done.stdout  # Spark's workers compile these


@pytest.mark.skipif(not COMPILED, reason="there is nothing to compile")
def test_who_waits_at_a_terminal_is_told_why(tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("a,b,c\n1,1,0\n0,0,0\n")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "driftvote", "label", str(votes), "-o", str(tmp_path / "labels.csv")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while b"half a minute" not in said:
            said += os.read(ours, 4096)  # fails when the process ends without having said so
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert said.decode().count("compiling for this machine") == 1


def test_compile_says_what_it_did(tmp_path):
    done = subprocess.run([sys.executable, "-m", "driftvote", "compile"], capture_output=True, text=True, check=True)
    assert "the report" in done.stderr
    assert done.stdout.endswith("NUMBA_CACHE_DIR chooses the folder that they are kept in\n")
