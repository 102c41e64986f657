"""A fresh environment with the base dependencies and nothing else: does the package install and work?

Run by `make test-bare`; not collected by pytest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = """
import importlib.util, sys
from pathlib import Path
for name in ("pandas", "polars", "matplotlib", "jinja2", "scipy", "pytest", "pyspark", "duckdb", "prometheus_client"):
    assert importlib.util.find_spec(name) is None, f"{name} came with the base install"
import numpy as np
import driftvote
import pyarrow as pa
votes = np.random.default_rng(0).integers(0, 2, size=(300, 4))
model = driftvote.AdaptiveLabelModel()
out = model.label_stream(votes)
assert len(out) == 300 and np.isfinite(out.proba).all()
assert out.to_frame().num_rows == 300
names = [f"labeler_{i}" for i in range(4)]
again = driftvote.AdaptiveLabelModel().label_stream(pa.table({n: votes[:, i] for i, n in enumerate(names)}))
assert (again.proba == out.proba).all()
model.save(sys.argv[1])
assert driftvote.load(sys.argv[1]).update(votes[0]).label == model.update(votes[0]).label
from driftvote.report import from_arrays, page, report_from_json
report = from_arrays(votes)
report.save(sys.argv[2])
assert report_from_json(Path(sys.argv[2])) == report
assert {"report.html", "parts.html", "report.css", "report.js"} <= {path.name for path in page.TEMPLATES.iterdir()}
try:
    report.save("r.html")
    raise AssertionError("a page without jinja2")
except driftvote.MissingExtraError as problem:
    assert "driftvote[report]" in str(problem)
try:
    driftvote.CommitteeLabelModel()
except driftvote.MissingExtraError as problem:
    assert "driftvote[lp]" in str(problem)
else:
    raise AssertionError("committees need SciPy, which is not here")
print("bare install: labels, frames, state and the JSON of a report work")
"""


def install_and_try(*requirements: str, python: str = sys.executable, smoke: str = SMOKE) -> None:
    """Install into an empty environment of this Python, and use what came: the library, then the commands."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run([python, "-m", "venv", str(home / "env")], check=True)
        python = str(home / "env" / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirements], check=True)
        subprocess.run([python, "-c", smoke, str(home / "state.npz"), str(home / "report.json")], check=True, cwd=home)
        command = str(home / "env" / "bin" / "driftvote")
        subprocess.run([command, "demo", "--out", str(home / "demo"), "--rows", "2000"], check=True, cwd=home)
        assert (home / "demo" / "labels.csv").stat().st_size > 0
        subprocess.run([command, "simulate", "swap", "-o", "votes.csv", "--rows", "2000"], check=True, cwd=home)
        columns = ["--id", "row", "--gold", "truth"]
        subprocess.run([command, "label", "votes.csv", *columns, "-o", "labels.parquet"], check=True, cwd=home)
        assert (home / "labels.parquet").stat().st_size > 0
        line = b'{"votes": {"a": 1, "b": 0, "c": 1}}\n'
        watch = [command, "watch", "--n-classes", "2", "--metrics", "m.prom"]
        done = subprocess.run([*watch, "--quiet"], input=line, stdout=subprocess.PIPE, check=True, cwd=home)
        assert b'"label": 1' in done.stdout
        assert "driftvote_rows_total 1.0" in (home / "m.prom").read_text()
        if smoke is SMOKE:
            done = subprocess.run([*watch, "--metrics-port", "0"], stderr=subprocess.PIPE, check=False, cwd=home)
            assert done.returncode == 2
            assert b"driftvote[metrics]" in done.stderr


if __name__ == "__main__":
    install_and_try(str(ROOT))
