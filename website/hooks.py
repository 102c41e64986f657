"""What MkDocs cannot do by itself: pages from outside docs/, from notebooks, from the commands and from the routes.

MkDocs calls the functions `on_*`. Everything that is made here is made from the code or from a committed file, so
it cannot differ from it.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

# Pages that stand at the root of the repository, where people look for them.
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
ASSETS = {"site.css", "iframe-worker.js", "favicon.svg"}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not files of docs/."""
    from mkdocs.structure.files import File

    def add(place: str, content: str) -> None:
        files.append(File.generated(config, place, content=content))

    for name, place in ROOT_PAGES.items():
        add(place, from_root((ROOT / name).read_text("utf-8")))
    for path in sorted((ROOT / "deploy").iterdir()):
        add(f"deploy/{path.name}", path.read_text("utf-8"))
    for name in sorted(ASSETS):
        add(f"assets/{name}", (ROOT / "website" / name).read_text("utf-8"))
    for path in sorted((DOCS / "notebooks").glob("*.ipynb")):
        add(f"notebooks/{path.stem}.md", notebook_page(path))
    add("reference/commands.md", commands_page())
    add("reference/http.md", http_page())
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links as they are right in the repository, made right for the site; examples with prompts as such."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    up = "../" * page.file.src_uri.count("/")
    for name, place in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)+{re.escape(name)}", f"]({up}{place}", markdown)
    markdown = re.sub(r"\]\((?:\.\./)+deploy/", f"]({up}deploy/", markdown)
    markdown = re.sub(r"\]\((?!http)([\w./-]+)\.ipynb\)(?!{)", r"](\1.md)", markdown)
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)


def from_root(markdown: str) -> str:
    """A page of the repository's root as a page of the site: links to docs/x.md become links to x.md."""
    markdown = re.sub(r"\]\(docs/", "](", markdown)
    for name, place in ROOT_PAGES.items():
        markdown = markdown.replace(f"]({name}", f"]({place}")
    return markdown


# --- Notebooks ---


def notebook_page(path: Path) -> str:
    """A notebook with its stored outputs as Markdown."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    parts = [
        part
        for cell in cells
        for part in (cell_markdown(cell) if cell["cell_type"] == "code" else [text(cell["source"])])
    ]
    # Below the title, so that the page begins with it.
    parts.insert(1, f'[Download this notebook]({path.name}){{ .download download="{path.name}" }}')
    return "\n\n".join(parts) + "\n"


def text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def fence(language: str, content: str) -> str:
    return f"````{language}\n{content.rstrip()}\n````"


def cell_markdown(cell: dict[str, Any]) -> Iterator[str]:
    yield fence("python", text(cell["source"]))
    for output in cell["outputs"]:
        yield f'<div class="output" markdown="1">\n\n{output_markdown(output)}\n\n</div>'


def output_markdown(output: dict[str, Any]) -> str:
    """One output: pictures before pages before text, as Jupyter chooses."""
    if output["output_type"] == "stream":
        return fence("text", text(output["text"]))
    if output["output_type"] == "error":
        raise ValueError(f"a notebook ends with {output['ename']}")
    data = output["data"]
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{text(data["image/png"]).strip()}">'
    if "text/html" in data:
        return f'<div class="html">{text(data["text/html"])}</div>'
    return fence("text", text(data["text/plain"]))


# --- Commands ---


def commands_page() -> str:
    """Every command with its arguments and options, from the help that the command prints."""
    import typer

    from driftvote.cli import app

    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        "What `driftvote COMMAND --help` prints. [Files of votes](../cli.md), [streams of votes](../watch.md) and"
        " [the service](../serve.md) explain how the commands are used;"
        " [formats and exit codes](formats.md) apply to all of them.",
    ]
    for name, command in all_commands(root, "driftvote"):
        parts += [f"## {name}", plain(command.help), *parameter_tables(command)]
    return "\n\n".join(part for part in parts if part) + "\n"


def all_commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Commands and their subcommands, with their full names."""
    for name, command in group.commands.items():
        yield f"{prefix} {name}", command
        if hasattr(command, "commands"):
            yield from all_commands(command, f"{prefix} {name}")


def plain(help_text: str | None) -> str:
    """The text of a help, as paragraphs; the example as code."""
    paragraphs = [" ".join(one.split()) for one in re.split(r"\n\s*\n", (help_text or "").strip())]
    return "\n\n".join(
        fence("text", one.removeprefix("Example: ")) if one.startswith("Example: ") else cell(one) for one in paragraphs
    )


def cell(content: str) -> str:
    """Text that is neither a cell border nor a tag."""
    return html.escape(content, quote=False).replace("|", "\\|")


def parameter_tables(command: Any) -> Iterator[str]:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    options = [one for one in shown if one.param_type_name == "option"]
    if arguments:
        lines = [f"| `{(one.metavar or one.name).upper()}` | {cell(one.help or '')} |" for one in arguments]
        yield "\n".join(["| argument | |", "|---|---|", *lines])
    if options:
        yield "\n".join(["| option | |", "|---|---|", *map(option_line, options)])


def option_line(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = option.default() if callable(option.default) else option.default
    shown = getattr(option, "show_default", None)
    if isinstance(shown, str):
        default = shown
    said = " ".join((option.help or "").split())
    if option.required:
        said += " Required."
    elif default not in (None, False, True, [], (), "") and "efault" not in said:
        said += f" Default: {default}."
    return f"| {names} | {cell(said)} |"


# --- HTTP ---


def http_page() -> str:
    """The routes of the service, from the table that the service itself uses."""
    from driftvote.serve.app import ENDPOINTS

    parts = [
        "# HTTP API",
        "The routes of [`driftvote serve`](../serve.md). A running service describes itself in the same way at `/docs`"
        " and `/openapi.json`. With [tokens](../serve.md#tokens), each route needs the right that stands beside it."
        ' Errors are `{"error": {"code": ..., "message": ..., "row": ...}}`.',
    ]
    for one in ENDPOINTS:
        path = re.sub(r"{(\w+):\w+}", r"{\1}", one.path)
        right = f"Needs the right to {one.needs}." if one.needs else "Open to all."
        parts += [f"## `{one.method} {path}`", f"{cell(one.summary)} *{right}*"]
        for name in ("query", "body", "answer"):
            if example := getattr(one, name):
                parts += [f"{name.title()}:", fence("json" if example.startswith("{") else "text", indented(example))]
    return "\n\n".join(parts) + "\n"


def indented(example: str) -> str:
    try:
        return json.dumps(json.loads(example), indent=2) if len(example) > 80 else example
    except ValueError:
        return example


def on_config(config: Any) -> Any:
    """Use the checkout, whatever else is installed."""
    source = str(ROOT / "src")
    if source not in sys.path:
        sys.path.insert(0, source)
    return config
