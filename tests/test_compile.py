"""`driftvote compile`, and the message while the compiler works."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from streams_for_tests import COMPILED

# Every kernel that Python code names must have been used. Nothing may be compiled: a kernel that Numba does not cache
# would be, and so would one whose types differ from process to process.
PROBE = """
import ast, importlib
from pathlib import Path
import driftvote
from driftvote.cli.compile import exercise
from driftvote.core.jit import on_compilation
on_compilation(lambda name: print("compiled", name))
list(exercise())
root, kernels, named = Path(driftvote.__file__).parent, {}, set()
for path in root.rglob("*.py"):
    for node in ast.parse(path.read_text()).body:
        marks = {getattr(mark, "id", "") for mark in getattr(node, "decorator_list", [])}
        if "jit" in marks:
            kernels[node.name] = ".".join(["driftvote", *path.relative_to(root).with_suffix("").parts])
        elif "inner" not in marks and not isinstance(node, ast.ImportFrom):
            named |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
assert len(named & kernels.keys()) > 10
for name in named & kernels.keys():
    if not getattr(importlib.import_module(kernels[name]), name).dispatcher.signatures:
        print("unused", name, kernels[name])
"""


@pytest.mark.skipif(not COMPILED, reason="there is nothing to compile")
def test_everything_is_compiled_and_a_second_process_compiles_nothing():
    first = subprocess.run([sys.executable, "-m", "driftvote", "compile"], capture_output=True, text=True, check=True)
    assert "the report" in first.stderr
    assert first.stdout.endswith("NUMBA_CACHE_DIR sets the folder of the cache\n")
    second = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert second.stdout == ""


@pytest.mark.skipif(not COMPILED, reason="there is nothing to compile")
def test_a_terminal_shows_that_the_compiler_works(tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("a,b,c\n1,1,0\n0,0,0\n")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "driftvote", "label", str(votes), "-o", str(tmp_path / "labels.csv")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while b"a minute or two" not in said:
            said += os.read(ours, 4096)  # fails when the process ends without having said so
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert said.decode().count("compiling for this machine") == 1
