"""Where the figures come from: cores, processor, memory, versions. No names and no paths of the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("driftvote", "numpy", "numba", "llvmlite")


def processor() -> str:
    """The model of the processor as the system prints it, or at least its architecture."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.machine()


def memory_gb() -> float | None:
    """Memory of the machine in GB (10^9 bytes), where the system says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        return None


def describe() -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    return {
        "cores": os.cpu_count(),
        "processor": processor(),
        "memory_gb": memory_gb(),
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def sentence(machine: dict[str, Any]) -> str:
    """The machine and the versions in words."""
    memory = "" if machine["memory_gb"] is None else f", {machine['memory_gb']:.0f} GB of memory"
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    load = "" if machine["load"] is None else f" Load when it started: {machine['load']}."
    return f"{machine['system']}, {machine['cores']} cores, {machine['processor']}{memory}; {versions}.{load}"
