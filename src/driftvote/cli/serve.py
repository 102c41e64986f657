"""`driftvote serve`: streams of votes behind an HTTP interface, with a live page."""

from __future__ import annotations

import threading
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.serve import PORT, Limits, ServeOptions

serve_app = typer.Typer(invoke_without_command=True, no_args_is_help=False, add_completion=False)

Data = typer.Option(Path("driftvote-data"), "--data", help="Folder of the streams; created if missing.")


@serve_app.callback()
def serve(
    context: typer.Context,
    data: Path = Data,
    host: str = typer.Option("127.0.0.1", "--host", help="Address to listen on; all but loopback need --tokens."),
    port: int = typer.Option(PORT, "--port", min=0, max=65535, help="Port; 0 chooses a free one."),
    tokens: Path | None = typer.Option(None, "--tokens", help="File of tokens; see 'driftvote serve token'."),
    name: list[str] = typer.Option([], "--name", help="Additional host name that requests may use (header Host)."),
    limit: list[str] = typer.Option([], "--limit", help="Limit, e.g. rows=1000; docs/serve.md lists them all."),
    workers: int = typer.Option(4, "--workers", min=1, max=64, help="Threads that label and write."),
    demo: bool = typer.Option(False, "--demo", help="Also run a demo stream, to see the live page."),
) -> None:
    """Serve streams of votes: labels, drift events, questions and a live page over HTTP.

    Example: driftvote serve --data judges
    """
    if context.invoked_subcommand is not None:
        return
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("driftvote serve needs a web server: pip install 'driftvote[serve]'")
    from driftvote.serve.server import run_service

    if demo:
        start_demo(port, tokens)
    run_service(
        ServeOptions(
            data=data,
            host=host,
            port=port,
            tokens=tokens,
            names=tuple(name),
            workers=workers,
            limits=read_limits(limit),
        )
    )


def start_demo(port: int, tokens: Path | None) -> None:
    """Feed the demo's stream from a thread, as a client would."""
    from driftvote.serve import demo

    if port == 0 or tokens is not None:
        raise DriftvoteError("--demo feeds a known port without tokens: leave out --tokens and --port 0")
    url = f"http://127.0.0.1:{port}"
    threading.Thread(target=demo.feed, args=(url,), daemon=True).start()
    typer.echo(f"driftvote: open {url}/streams/{demo.STREAM}; two labelers change within a minute", err=True)


def read_limits(given: list[str]) -> Limits:
    """Return the limits with those that were given as name=number."""
    usual: dict[str, Any] = {one.name: type(one.default) for one in fields(Limits)}
    found: dict[str, float] = {}
    for text in given:
        key, _, value = text.partition("=")
        if key not in usual:
            raise DriftvoteError(f"--limit {text}: there is no limit {key!r}; the limits are {', '.join(usual)}")
        try:
            found[key] = usual[key](value)
        except ValueError:
            raise DriftvoteError(f"--limit {text}: write a number, such as {key}={getattr(Limits(), key)}") from None
        if not found[key] > 0:
            raise DriftvoteError(f"--limit {text}: a limit must be above 0")
    return Limits(**found)  # type: ignore[arg-type]


@serve_app.command()
def token(
    tokens: Path = typer.Option(..., "--tokens", help="File that the hash of the token is added to."),
    role: str = typer.Option(..., "--role", help="read, review (and read), write, admin; several: write,read."),
    name: str = typer.Option(..., "--name", help="Name of the token's owner, for the log."),
) -> None:
    """Make a token, add its hash to a file, and print the token, which is stored nowhere.

    Example: driftvote serve token --tokens tokens.txt --role write --name pipeline
    """
    from driftvote.serve.access import make_token

    typer.echo(make_token(tokens, role, name))
    typer.echo("driftvote: this is shown once; a running service reads the file again on SIGHUP", err=True)


@serve_app.command()
def backup(
    data: Path = typer.Argument(..., help="Data folder of a service, running or not."),
    out: Path = typer.Argument(..., help="New folder for the copy."),
) -> None:
    """Copy every stream of a data folder, also while it is served; the copy can be served in its place.

    Example: driftvote serve backup judges judges-backup
    """
    from driftvote.serve.store import back_up

    typer.echo(f"copied {back_up(data, out)} streams to {out}")
