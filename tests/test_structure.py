"""The structure of the package: import direction, public names, and no path of one machine in the tree."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
from pathlib import Path

import pytest

import driftvote

PACKAGE = Path(driftvote.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))

# Layers, lowest first: a module imports from its own layer or from a lower one.
LAYERS = [
    ["kernels", "errors", "_version"],
    ["theory", "randomness", "agreements", "windows", "accuracies", "weights", "labels", "votes", "labelers", "doors", "inputs", "core", "frames", "frames_out", "times", "stretches", "marks", "tallies", "committee", "drift"],
    ["files", "streams"],
    ["models"],
    ["report", "live", "spark"],
    ["cli", "__main__"],
]  # fmt: skip
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports_of(path: Path) -> set[str]:
    """First-level driftvote modules that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "driftvote" else [f"driftvote.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("driftvote.")}
    return found


def place_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def upward_imports(files: dict[str, set[str]]) -> list[str]:
    return [f"{who} -> {what}" for who, found in files.items() for what in found if LAYER[what] > LAYER[who]]


def test_imports_point_one_way():
    files: dict[str, set[str]] = {}
    for path in MODULES:
        if place_of(path) != "__init__":
            files.setdefault(place_of(path), set()).update(imports_of(path))
    assert set(files) <= set(LAYER), "a module that is in no layer"
    assert upward_imports(files) == []


def test_the_direction_check_can_fail():
    assert upward_imports({"kernels": {"models"}}) == ["kernels -> models"]


def test_the_package_imports_nothing_from_beside_it():
    for path in MODULES:
        found = {name for node in ast.walk(ast.parse(path.read_text())) for name in names_imported(node)}
        assert not found & {"benchmarks", "experiments", "tests"}, path


def test_kernels_import_numba_in_one_place_only():
    for path in MODULES:
        if "import numba" in path.read_text() or "from numba" in path.read_text():
            assert path.name == "_jit.py"


def test_spark_is_imported_by_the_adapter_only():
    for path in MODULES:
        found = {name for node in ast.walk(ast.parse(path.read_text())) for name in names_imported(node)}
        assert place_of(path) == "spark" or not any(name.startswith("pyspark") for name in found), path
        if place_of(path) not in ("spark", "cli"):
            assert not any(name.startswith("driftvote.spark") for name in found), path


def names_imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [
            node.module or "",
            (node.module or "").split(".")[0],
            *(f"{node.module}.{alias.name}" for alias in node.names),
        ]
    if isinstance(node, ast.Import):
        return [name for alias in node.names for name in (alias.name, alias.name.split(".")[0])]
    return []


def all_modules() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages([str(PACKAGE)], "driftvote.")]
    return [name for name in found if not name.endswith("__main__")]  # importing that one runs the command


@pytest.mark.parametrize("name", ["driftvote", *all_modules()])
def test_every_public_name_resolves(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public)
    assert module.__doc__, "a module says what it is for"


def test_public_classes_and_methods_are_documented():
    for name in driftvote.__all__:
        thing = getattr(driftvote, name)
        if isinstance(thing, type):
            assert thing.__doc__
            for member, value in vars(thing).items():
                if not member.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{member}"


def test_the_tree_names_no_machine():
    """No absolute home or work paths, and no data files, in what is committed."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split():
        path = ROOT / name
        if not path.is_file():
            continue
        assert path.stat().st_size < 500_000, f"{name} is too large to be source"
        text = path.read_text(errors="ignore")
        assert not re.search(r"(?<![\w.])/(?:root|home|work)/\w", text.replace("/(?:root|home|work)/", "")), name
