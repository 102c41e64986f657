"""What a release holds: do the wheel and the sdist install and work, with the newest dependencies and with the oldest?

Run by `make test-dist`; not collected by pytest. Everything is built and installed below a temporary folder. Besides the
Python that runs this, every `python3.N` on the path and in pyenv is tried that the package allows.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from glob import glob
from pathlib import Path

from bare_install import ROOT, install_and_try

EXTRAS = ("report", "plots", "lp", "sort", "metrics", "serve")
WITH_EXTRAS = """
import sys, threading, urllib.request
import numpy as np
import driftvote
from driftvote.report import from_arrays
votes = np.random.default_rng(0).integers(0, 2, size=(400, 4))
from_arrays(votes).save(sys.argv[2] + ".html")
driftvote.CommitteeLabelModel(tau=0.1, search_every=200).label_stream(votes)
from driftvote.live.metrics import MetricsServer
server = MetricsServer(0, "127.0.0.1", [])
server.close()
import duckdb, matplotlib, starlette, uvicorn
from driftvote.serve.app import describe
assert "/v1/streams" in describe()["paths"]
print("the extras work")
"""


def lower_bounds(text: str, *extras: str) -> list[str]:
    """The oldest version of each dependency that pyproject.toml allows, as requirements for pip."""
    found = dict(re.findall(r"^(\w+) = (\[.*\])$", text.partition("[project.optional-dependencies]")[2], re.MULTILINE))
    lists = [
        re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)[1],
        *(found[name] for name in extras),
    ]
    return [f"{name}=={version}" for one in lists for name, version in re.findall(r'"([\w-]+)>=([\d.]+)', one)]


def pythons() -> list[str]:
    """One interpreter for each allowed version of Python on this machine."""
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())[1]
    found = {}
    for path in (
        sys.executable,
        *glob("/usr/bin/python3.*"),
        *glob(str(Path.home() / ".pyenv/versions/3.*/bin/python")),
    ):
        asked = [path, "-c", "import sys, venv; print(sys.version_info.minor)"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and int(done.stdout) >= int(oldest):
            found.setdefault(int(done.stdout), path)
    return [found[minor] for minor in sorted(found)]


def build(folder: Path) -> tuple[str, str]:
    """Build the sdist, and the wheel from it: what is missing in the sdist is missing in the wheel."""
    env = folder / "build"
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    pip = [str(env / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build"]
    subprocess.run(pip, check=True)
    command = [str(env / "bin" / "python"), "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (sdist,), (wheel,) = glob(str(folder / "dist/*.tar.gz")), glob(str(folder / "dist/*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "driftvote/py.typed" in names
    assert not [name for name in names if not name.startswith(("driftvote/", "driftvote-"))], "more than the package"
    return sdist, wheel


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sdist, wheel = build(Path(folder))
        print("sdist, newest dependencies", flush=True)
        install_and_try(sdist)
        for python in pythons():
            version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
            print(f"wheel, newest dependencies, {version}", flush=True)
            install_and_try(wheel, python=python)
        text = (ROOT / "pyproject.toml").read_text()
        print("wheel, oldest dependencies:", *lower_bounds(text), flush=True)
        install_and_try(wheel, *lower_bounds(text))
        extras = f"{wheel}[{','.join(EXTRAS)}]"
        print(
            "wheel, oldest dependencies, extras:", *lower_bounds(text, *EXTRAS)[len(lower_bounds(text)) :], flush=True
        )
        install_and_try(extras, *lower_bounds(text, *EXTRAS), smoke=WITH_EXTRAS)
    print("the release can be installed")


if __name__ == "__main__":
    main()
