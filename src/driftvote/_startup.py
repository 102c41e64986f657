"""Ctrl-C while the command starts: its imports take a second or two, and a traceback through them helps nobody."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import NoReturn


def _end(*_: object) -> NoReturn:
    """End the process; nothing has been read or written yet."""
    os.write(2, b"driftvote: interrupted\n")
    os._exit(130)


def _is_command() -> bool:
    """Whether this process is the command: `driftvote ...` or `python -m driftvote ...`."""
    words = list(sys.orig_argv)
    if "-m" in words[:-1] and words[words.index("-m") + 1] == "driftvote":
        return True
    return any(os.path.basename(word) in ("driftvote", "driftvote.exe") for word in words[:3])


def guard_start() -> None:
    """End without a traceback on Ctrl-C, until `driftvote.cli.main` begins."""
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def end_guard() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


guard_start()
