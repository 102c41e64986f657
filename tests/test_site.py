"""The site that `make docs-site` builds: everything public is in the reference, every page in the navigation."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

import driftvote
from driftvote import cli
from driftvote.serve.app import ENDPOINTS
from website import hooks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLIC_MODULES = ("driftvote.report", "driftvote.streams", "driftvote.spark", "driftvote.theory", "driftvote.client")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


def documented() -> set[str]:
    """The names after `:::` in the reference; of a module, everything public that it defines."""
    found = set()
    for page in (DOCS / "reference").glob("*.md"):
        for name in re.findall(r"^::: ([\w.]+)", page.read_text(), re.MULTILINE):
            found |= {name}
            if find_spec(name.rpartition(".")[0]) and name in sys.modules:
                found |= {f"{name}.{one}" for one in defined_in(name)}
    return found


def defined_in(module: str) -> list[str]:
    """Public names of a module: its `__all__`, or what it defines itself."""
    loaded = importlib.import_module(module)
    own = [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    ]
    return getattr(loaded, "__all__", own)


def test_everything_public_is_in_the_reference():
    known = documented()
    errors = [name for name in driftvote.__all__ if f"driftvote.errors.{name}" in known]
    missing = {f"driftvote.{name}" for name in driftvote.__all__ if name not in errors} - known
    assert missing == {"driftvote.__version__"}  # which the page of the models mentions
    for module in PUBLIC_MODULES:
        if module == "driftvote.spark" and find_spec("pyspark") is None:
            names = re.findall(
                r'"(\w+)"', (ROOT / "src/driftvote/spark/__init__.py").read_text().partition("__all__")[2]
            )
        else:
            names = defined_in(module)
        assert names
        assert {f"{module}.{name}" for name in names} <= known, module


def test_names_in_the_reference_exist():
    for name in documented():
        if name.startswith("driftvote.spark"):
            continue
        module, _, attribute = name.rpartition(".")
        assert name in sys.modules or hasattr(importlib.import_module(module), attribute), name


def test_every_command_and_option_is_in_the_reference():
    page = hooks.commands_page()
    sections = dict(re.findall(r"^## ([\w -]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    commands = dict(hooks.all_commands(typer.main.get_command(cli.app), "driftvote"))
    assert set(sections) == set(commands)
    assert {"driftvote label", "driftvote serve token"} <= set(commands)
    for name, command in commands.items():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[-1]}`" in sections[name], f"{name} {parameter.opts}"
                assert parameter.help, f"{name} {parameter.opts} has no help"


def test_every_route_is_in_the_reference():
    page = hooks.http_page()
    for one in ENDPOINTS:
        assert f"## `{one.method} {one.path.replace(':path', '')}`" in page


def test_the_navigation_has_every_page_once():
    named = re.findall(
        r"^ +- (?:[^:\n]+|\"[^\"]+\"): (\S+\.md)$|^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    shown = [first or second for first, second in named]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in (DOCS / "notebooks").glob("*.ipynb")}
    made = {*hooks.ROOT_PAGES.values(), *notebooks, "reference/commands.md", "reference/http.md"}
    assert sorted(shown) == sorted(pages | made)


def test_links_of_pages_at_the_root_are_made_right_for_the_site():
    text = "[a](docs/cli.md#x) [b](CHANGELOG.md) [c](SECURITY.md)"
    assert hooks.from_root(text) == "[a](cli.md#x) [b](changelog.md) [c](security.md)"


@pytest.mark.skipif(find_spec("material") is None, reason="the site is built by make docs-site, which installs MkDocs")
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_site_opens_from_the_file_system_and_its_search_works(tmp_path):
    """No server, no request to any other host, no error; and the search finds a page."""
    playwright = pytest.importorskip("playwright.sync_api")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    subprocess.run(
        command, check=True, cwd=ROOT, capture_output=True, env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"}
    )
    with playwright.sync_playwright() as start:
        browser = start.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        asked, problems = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        for name in ("index.html", "reference/models.html", "quality.html", "notebooks/llm-judges.html"):
            page.goto((tmp_path / "site" / name).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, f"{name} scrolls sideways on a phone"
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto((tmp_path / "site" / "index.html").as_uri())
        page.wait_for_function("document.documentElement.classList.contains('js')")
        page.keyboard.press("/")
        page.keyboard.type("webhook")
        page.locator(".md-search-result__item h1", has_text="Monitoring").wait_for(timeout=20_000)
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
    assert problems == []


def test_examples_of_docstrings_become_blocks_of_code():
    griffe = pytest.importorskip("griffe")
    from website.docstrings import fence_examples

    assert griffe
    text = "Says.\n\n>>> f(1)\n2\n\nMore.\n\nExamples\n--------\n>>> g()\n"
    assert fence_examples(text) == "Says.\n\n```pycon\n>>> f(1)\n2\n```\n\nMore.\n\nExamples\n--------\n>>> g()\n"
    assert inspect.getdoc(driftvote).count(">>>") == 3
