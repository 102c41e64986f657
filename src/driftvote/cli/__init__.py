"""The `driftvote` command line: one module for each command, which parses options, calls the library and prints."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

from driftvote._startup import end_guard
from driftvote._version import __version__
from driftvote.cli.ask import ask
from driftvote.cli.check import check
from driftvote.cli.compare import compare
from driftvote.cli.compile import compile
from driftvote.cli.convert import convert
from driftvote.cli.demo import demo
from driftvote.cli.label import label, report
from driftvote.cli.serve import serve_app
from driftvote.cli.simulate import simulate
from driftvote.cli.watch import watch
from driftvote.core.jit import drop_notice, on_compilation
from driftvote.errors import DriftvoteError, VoteFormatWarning, one_line

COMPILING = "compiling for this machine; this happens once, and takes a minute or two"
"""Printed on a terminal when compilation starts."""

BUG = 1
BAD_INPUT = 2
INTERRUPTED = 130  # the convention of shells: 128 + SIGINT
NO_READER = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM

app = typer.Typer(
    help="Labels from noisy labelers that drift, without ground truth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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


for command in (label, ask, watch, check, report, compare, convert, simulate, demo, compile):
    app.command()(command)
app.add_typer(serve_app, name="serve")


# The base class of errors in the arguments, which typer does not export.
_UsageError: Any = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run the command line and exit; an error prints one line, never a traceback, and exits with code 2."""
    end_guard()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that temporary files are removed
    drop_notice()  # commands have their own line
    show: Any = _show_warning
    warnings.showwarning = show
    if sys.stderr.isatty() and sys.argv[1:2] != ["compile"] and "--quiet" not in sys.argv:
        on_compilation(_print_once(COMPILING))
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer turns Ctrl-C into this code without a message
            raise KeyboardInterrupt
        sys.exit(code)
    except _UsageError as problem:
        if type(problem).__name__ == "NoArgsIsHelpError":
            problem.show()  # the help text
        else:
            _print_error(f"{' '.join(problem.format_message().split())} ('driftvote --help' lists the commands)")
    except BrokenPipeError:
        _exit_without_reader()
    except SystemExit as end:  # typer turns a broken pipe into exit code 1
        if isinstance(end.__context__, BrokenPipeError):
            _exit_without_reader()
        raise
    except FileNotFoundError as problem:
        _print_error(f"{problem.filename or 'input'}: there is no such file; check its name")
    except OSError as problem:
        _print_error(f"{problem.filename or 'output'}: {problem.strerror or problem}; choose another path")
    except DriftvoteError as problem:
        _print_error(str(problem))
    except (typer.Abort, KeyboardInterrupt):
        _print_error("interrupted; no incomplete file is left")
        sys.exit(INTERRUPTED)
    except MemoryError:
        _print_error("out of memory; no incomplete file is left")
    except Exception as problem:
        if os.environ.get("DRIFTVOTE_TRACEBACK"):
            raise
        _print_error(
            f"internal error ({type(problem).__name__}: {' '.join(str(problem).split())[:200]}); please report it with"
            " the traceback that DRIFTVOTE_TRACEBACK=1 shows"
        )
        sys.exit(BUG)
    sys.exit(BAD_INPUT)


def _print_once(message: str) -> Callable[[str], None]:
    """A listener that prints a message on its first call."""
    names: list[str] = []

    def listen(name: str) -> None:
        if not names:
            names.append(name)
            _print_error(message)

    return listen


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning about the votes as one line, with the options of a command; other warnings are not for users."""
    if issubclass(category, VoteFormatWarning) and "--quiet" not in sys.argv:
        _print_error(
            str(message).replace("votes='signed'", "--votes signed").replace("votes='snorkel'", "--votes snorkel")
        )


def _exit_without_reader() -> None:
    """Exit silently because the reader of standard output has closed it, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(NO_READER)


def _print_error(message: str) -> None:
    typer.echo(f"driftvote: {one_line(message)}", err=True)
