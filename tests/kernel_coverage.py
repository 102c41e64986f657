"""How many lines of the kernels a run without the compiler saw: `python tests/kernel_coverage.py DATA LEAST`.

Kernels are the functions of core that are decorated with `jit` or `inner`, and those that label models register. Lines
of other functions in the same files do not count.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import coverage

import driftvote

CORE = Path(driftvote.__file__).parent / "core"


def kernel_lines(tree: ast.Module) -> set[int]:
    """Lines of statements inside kernels, without their docstrings."""
    registered = {
        ast.unparse(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "KERNELS.register"
        for keyword in node.keywords
    }
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
        if decorators & {"jit", "inner"} or node.name in registered:
            lines |= {part.lineno for body in node.body[1:] for part in ast.walk(body) if isinstance(part, ast.stmt)}
    return lines


def main() -> int:
    data, least = coverage.Coverage(data_file=sys.argv[1]), float(sys.argv[2])
    data.load()
    total = missed = 0
    for path in sorted(CORE.rglob("*.py")):
        lines = kernel_lines(ast.parse(path.read_text()))
        if not lines:
            continue
        unseen = sorted(lines & set(data.analysis2(str(path))[3]))
        total, missed = total + len(lines), missed + len(unseen)
        print(f"{path.relative_to(CORE)}: {len(lines)} lines of kernels, not seen: {unseen or 'none'}")
    share = 100.0 * (total - missed) / total
    print(f"{share:.1f}% of {total} lines seen; at least {least:g}% are required")
    return 0 if share >= least else 1


if __name__ == "__main__":
    sys.exit(main())
