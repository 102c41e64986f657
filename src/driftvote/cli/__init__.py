"""The `driftvote` command: one thin module for each subcommand."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import typer

from driftvote._version import __version__
from driftvote.cli.check import check
from driftvote.cli.compare import compare
from driftvote.cli.compile import compile
from driftvote.cli.convert import convert
from driftvote.cli.demo import demo
from driftvote.cli.label import label
from driftvote.cli.report import report
from driftvote.cli.simulate import simulate
from driftvote.cli.spark_label import spark_label
from driftvote.cli.watch import watch
from driftvote.errors import DriftvoteError
from driftvote.kernels._jit import on_compilation

COMPILING = "compiling for this machine; this happens once, and takes about half a minute"
"""Said to whoever sits at a terminal and wonders."""

BUG = 1
BAD_INPUT = 2
INTERRUPTED = 130  # as shells have it: 128 + SIGINT
NO_READER = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM

app = typer.Typer(
    help="Labels from noisy labelers that drift, without ground truth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"driftvote {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    pass


for command in (label, watch, check, report, compare, convert, simulate, demo, compile):
    app.command()(command)
app.command("spark-label")(spark_label)


# The parent of every mistake in the arguments; typer carries it but does not export it.
_Misuse: Any = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run the command line; an error is one line and exit code 2, never a traceback."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that temporary files are removed
    if sys.stderr.isatty() and sys.argv[1:2] != ["compile"] and "--quiet" not in sys.argv:
        on_compilation(_say_once(COMPILING))
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer turns Ctrl-C into this code, and says nothing
            raise KeyboardInterrupt
        sys.exit(code)
    except _Misuse as problem:
        if type(problem).__name__ == "NoArgsIsHelpError":
            problem.show()  # the help text
        else:
            _complain(f"{problem.format_message()} ('driftvote --help' tells the commands)")
    except BrokenPipeError:
        _leave_quietly()
    except SystemExit as end:  # typer turns a broken pipe into exit code 1
        if isinstance(end.__context__, BrokenPipeError):
            _leave_quietly()
        raise
    except OSError as problem:
        _complain(f"{problem.filename or 'output'}: {problem.strerror or problem}; choose another place")
    except DriftvoteError as problem:
        _complain(str(problem))
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted; nothing half-written is left behind")
        sys.exit(INTERRUPTED)
    except MemoryError:
        _complain("out of memory; nothing half-written is left behind")
    except Exception as problem:
        if os.environ.get("DRIFTVOTE_TRACEBACK"):
            raise
        _complain(
            f"this should not happen ({type(problem).__name__}: {' '.join(str(problem).split())[:200]}); please"
            " report it"
            " with the lines that DRIFTVOTE_TRACEBACK=1 shows"
        )
        sys.exit(BUG)
    sys.exit(BAD_INPUT)


def _say_once(sentence: str) -> Callable[[str], None]:
    said: list[str] = []

    def say(name: str) -> None:
        if not said:
            said.append(name)
            typer.echo(f"driftvote: {sentence}", err=True)

    return say


def _leave_quietly() -> None:
    """Whoever read our output has gone, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(NO_READER)


def _complain(sentence: str) -> None:
    typer.echo(f"driftvote: {sentence}", err=True)
