"""The `driftvote` command: one thin module for each subcommand."""

from __future__ import annotations

import sys

import typer

from driftvote._version import __version__
from driftvote.cli.demo import demo
from driftvote.errors import DriftvoteError

BAD_INPUT = 2

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


app.command()(demo)


def main() -> None:
    """Run the command line; an error is one line and exit code 2, never a traceback."""
    try:
        app()
    except (DriftvoteError, OSError) as problem:
        typer.echo(f"driftvote: {problem}", err=True)
        sys.exit(BAD_INPUT)
