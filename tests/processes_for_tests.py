"""Processes that begin under other conditions: fewer rights, small files, interrupts that count."""

from __future__ import annotations

import sys
from collections.abc import Sequence

OBEY_FILE_MODES = """import ctypes, os
if os.getuid() == 0:
    drop_capability = 24  # PR_CAPBSET_DROP
    assert ctypes.CDLL(None).prctl(drop_capability, 1, 0, 0, 0) == 0
"""
"""Root may write anywhere; without this one capability (1, CAP_DAC_OVERRIDE) a read-only folder is one."""

SMALL_FILES_ONLY = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"

HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"
"""A job that a shell started in the background ignores Ctrl-C, and so would the process that it starts."""


def run_after(setup: str, command: Sequence[str]) -> list[str]:
    """The command that runs `setup` and then becomes `command`.

    The setup runs in a new process: code between fork and exec (`preexec_fn`) can wait for ever for a lock that another
    thread held.
    """
    return [sys.executable, "-c", f"{setup}\nimport os, sys\nos.execv(sys.argv[1], sys.argv[1:])", *command]
