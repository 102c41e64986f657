"""How far a row travels: the functions and files of the package that one call enters, with the compiler off."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# Kernels are functions like any other while the compiler is off, so the whole path is seen.
PROBE = """
import json, sys
from pathlib import Path
import numpy as np
import driftvote
from driftvote import AdaptiveLabelModel

root = str(Path(driftvote.__file__).parent)
rng = np.random.default_rng(0)
truth = rng.integers(0, 2, (700, 1))
votes = np.where(rng.random((700, 5)) < 0.8, truth, 1 - truth)


def entered(call):
    seen = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
            seen.add((code.co_filename[len(root) + 1 :], code.co_qualname if hasattr(code, "co_qualname") else code.co_name))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(seen)


model = AdaptiveLabelModel()
model.label_stream(votes[:300])
model.update(votes[300])
found = {"update": entered(lambda: model.update(votes[301]))}
fitted = AdaptiveLabelModel()
fitted.label_stream(votes[:100])
found["label_stream"] = entered(lambda: fitted.label_stream(votes[100:420]))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def paths():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("call", "most_files", "most_functions"), [("update", 12, 43), ("label_stream", 20, None)])
def test_the_path_is_short(paths, call, most_files, most_functions):
    functions, files = paths[call], sorted({file for file, _ in paths[call]})
    print(f"{call}: {len(functions)} functions in {len(files)} files")
    for file in files:
        print(f"  {file}: {', '.join(name for where, name in functions if where == file)}")
    assert len(files) <= most_files
    assert most_functions is None or len(functions) <= most_functions
    assert "models/base.py" in files  # something was seen
    assert "core/engine.py" in files
    assert len(functions) >= 10
