"""`driftvote compile`, and what whoever waits for the compiler is told."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from streams_for_tests import COMPILED

# Kernels that others than kernels call must all have been used; who calls them is found in the sources. Nothing may be
# compiled: a kernel that Numba does not keep would be, and so would one whose types differ from process to process.
PROBE = """
import ast, importlib
from pathlib import Path
import driftvote
from driftvote.cli.compile import exercise
from driftvote.core.jit import on_compilation
on_compilation(lambda name: print("compiled", name))
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
                    print("unused", name, path.name)
"""


@pytest.mark.skipif(not COMPILED, reason="there is nothing to compile")
def test_everything_is_compiled_and_a_second_process_compiles_nothing():
    first = subprocess.run([sys.executable, "-m", "driftvote", "compile"], capture_output=True, text=True, check=True)
    assert "the report" in first.stderr
    assert first.stdout.endswith("NUMBA_CACHE_DIR sets the folder of the cache\n")
    second = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert second.stdout == ""


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
