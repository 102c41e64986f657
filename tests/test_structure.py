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

# Layers, lowest first: a module imports from its own layer or from a lower one. The package `files` knows of votes, not
# of models; models use it for their state files.
LAYERS = [
    ["errors", "_version", "_startup", "arrays"],
    ["settings", "theory", "randomness", "times", "votes"],
    ["inputs"],
    ["core"],
    ["drift", "committee", "files", "streams"],
    ["models"],
    ["report", "live", "spark"],
    ["serve", "client"],
    ["cli", "__main__"],
]
BESIDE = {("drift", "committee"), ("drift", "files"), ("committee", "drift"), ("files", "drift"), ("files", "core")}
"""Packages of which neither may import the other, although the layers would allow it."""
SHOWN_BY = {("models", "report")}
"""Imports against the direction, made when they are called: results write their own report (`LabeledStream.report`)."""
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}

# Lines: 20,400 before the mixture and its members, windows that begin at events, and explanations that add up; 450 read
# dates as people write them; 1,000 take back what failed, and check files before they are used; 3,000 serve streams; 500 show results in notebooks and as figures,
# and say in the report what to do next; 100 carry rows by columns through the service; 700 diagnose an event in kernels,
# import Numba with the first of them, count and label rows in stretches, and share batches among threads.
MOST_MODULES, MOST_LINES, MOST_KERNELS, MOST_SMALL = 113, 30_050, 136, 11
SMALL = 150  # lines of a module that should have more than one importer


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
    return [
        f"{who} -> {what}"
        for who, found in files.items()
        for what in found
        if (LAYER[what] > LAYER[who] and (who, what) not in SHOWN_BY) or (who, what) in BESIDE
    ]


def test_imports_point_one_way():
    files: dict[str, set[str]] = {}
    for path in MODULES:
        if place_of(path) != "__init__":
            files.setdefault(place_of(path), set()).update(imports_of(path))
    assert set(files) <= set(LAYER), "a module that is in no layer"
    assert upward_imports(files) == []


def test_the_direction_check_can_fail():
    assert upward_imports({"core": {"models"}, "drift": {"core", "files"}}) == ["core -> models", "drift -> files"]


def test_the_package_imports_nothing_from_beside_it():
    for path in MODULES:
        found = {name for node in ast.walk(ast.parse(path.read_text())) for name in names_imported(node)}
        assert not found & {"benchmarks", "experiments", "tests"}, path


def test_numba_is_imported_in_one_place_only():
    for path in MODULES:
        if "import numba" in path.read_text() or "from numba" in path.read_text():
            assert path == PACKAGE / "core" / "compiler.py"


def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in MODULES}


def test_classes_have_names_of_their_own_and_no_mixins():
    where: dict[str, list[str]] = {}
    bases: dict[str, list[str]] = {}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
                if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
                    bases[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]
    assert {name: files for name, files in where.items() if len(files) > 1} == {}
    # One base of the package at most: behaviour is composed, not mixed in. (Dataclasses of options join their fields.)
    assert [name for name, parents in bases.items() if sum(parent in where for parent in parents) > 1] == []


def private_names(tree: ast.Module) -> set[str]:
    """Names with a leading underscore that a module defines: attributes, methods, functions, slots."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            names.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # __slots__
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def foreign_accesses(tree: ast.Module, own: set[str]) -> list[str]:
    """Accesses to private attributes that the package of the module does not define."""
    return [
        f"{ast.unparse(node)} in line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and ast.unparse(node.value) not in ("self", "cls")
        and node.attr not in own
    ]


FOREIGN = {"_jvm", "_jsc", "_asdict", "_fields", "_replace", "_cache", "_cache_file", "_version", "_exit"}
FOREIGN |= {"_linking_libraries", "_final_module", "_numba_type_"}
"""Private or underscored names of other libraries that the package uses: Spark, named tuples, Numba's cache and code libraries, the system."""


def test_no_package_touches_private_attributes_of_another():
    parsed = trees()
    own: dict[str, set[str]] = {}
    for path, tree in parsed.items():
        own.setdefault(place_of(path), set(FOREIGN)).update(private_names(tree))
    found = {
        f"{path.relative_to(PACKAGE)}: {access}"
        for path, tree in parsed.items()
        for access in foreign_accesses(tree, own[place_of(path)])
    }
    assert found == set()


def test_the_check_of_private_attributes_can_fail():
    tree = ast.parse("def f(model):\n    return model._engine, model._asdict()")
    assert foreign_accesses(tree, FOREIGN) == ["model._engine in line 2"]


def kernels_of(tree: ast.Module) -> dict[str, set[str]]:
    """Names of the functions that are compiled: by `jit`, by `inner`, and those registered for label models."""
    kinds: dict[str, set[str]] = {"jit": set(), "inner": set(), "registered": set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Name) and decorator.id in ("jit", "inner"):
                    kinds[decorator.id].add(node.name)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "KERNELS.register":
            kinds["registered"] |= {ast.unparse(keyword.value) for keyword in node.keywords}
    return kinds


def crashing_calls(tree: ast.Module, inner: set[str]) -> list[str]:
    """Calls of inner kernels from functions that are not compiled themselves."""
    kinds = kernels_of(tree)
    compiled = kinds["jit"] | kinds["inner"] | kinds["registered"]
    return [
        f"{node.name} calls {call.func.id}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name not in compiled
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in inner
    ]


def test_inner_kernels_are_called_by_kernels_only():
    parsed = trees()
    inner = set().union(*(kernels_of(tree)["inner"] for tree in parsed.values()))
    assert inner
    assert [call for tree in parsed.values() for call in crashing_calls(tree, inner)] == []
    assert crashing_calls(ast.parse("def f():\n    return count_row(1)"), inner) == ["f calls count_row"]


def test_the_package_stays_small():
    parsed = trees()
    lines = {path: path.read_text().count("\n") for path in MODULES}
    kernels = sum(len(names) for tree in parsed.values() for kind, names in kernels_of(tree).items())
    importers: dict[str, set[Path]] = {}
    for path, tree in parsed.items():
        for name in {name for node in ast.walk(tree) for name in names_imported(node)}:
            importers.setdefault(name, set()).add(path)
    small = [
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.name not in ("__init__.py", "__main__.py")
        and path.parent.name != "label_models"  # one file for each, by its registry
        and lines[path] < SMALL
        and len(importers.get(".".join(("driftvote", *path.relative_to(PACKAGE).with_suffix("").parts)), ())) == 1
    ]
    print(f"{len(MODULES)} modules, {sum(lines.values())} lines, {kernels} kernels; small, one importer: {small}")
    assert len(MODULES) <= MOST_MODULES
    assert sum(lines.values()) <= MOST_LINES
    assert kernels <= MOST_KERNELS
    assert len(small) <= MOST_SMALL


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


def test_public_functions_never_return_any():
    """Class values are `Hashable`, frames are those of narwhals: a caller's type checker knows what comes back."""
    found = []
    for name in driftvote.__all__:
        thing = getattr(driftvote, name)
        members = vars(thing) if isinstance(thing, type) else {name: thing}
        for member, value in members.items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            annotations = getattr(getattr(function, "func", function), "__annotations__", {})
            if not member.startswith("_") and annotations.get("return") == "Any":
                found.append(f"{name}.{member}")
    assert found == []


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
