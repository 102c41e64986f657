"""The documentation: examples run, links lead somewhere, settings are listed."""

from __future__ import annotations

import doctest
import inspect
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from driftvote import AdaptiveLabelModel, Confusion, Mixture, OneCoin, Triplet, Wawa, WindowRule
from experiments import readme

from streams_for_tests import COMPILED

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ids = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_examples_run(page):
    if page.name == "quickstart.md" and not COMPILED:
        pytest.skip("its stream is long enough to show drift; that needs compiled kernels")
    parser = doctest.DocTestParser()
    test = parser.get_doctest(page.read_text(), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.summarize().failed == 0


def test_the_readmes_figures_are_those_of_the_tables():
    quality, startup = (json.loads((ROOT / "docs" / f"{name}.json").read_text()) for name in ("quality", "startup"))
    text = (ROOT / "README.md").read_text()
    assert readme.fill(text, quality, startup) == text, "run make readme"


@pytest.mark.parametrize("name", ["spark.md", "spark-streaming.md"])
def test_the_python_of_the_spark_pages_is_python(name):
    """`make test-spark` runs the script; the rest needs a cluster or a stream."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, name, "exec")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_page_can_be_reached_from_the_readme():
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        todo += [(page.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text())]
    assert set(PAGES) <= reached


def test_every_setting_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    settings = [name for name in inspect.signature(AdaptiveLabelModel).parameters if name != "shortcuts"]
    for kind in (WindowRule, Mixture, Confusion, OneCoin, Wawa, Triplet):
        assert f"`{kind.__name__}`" in page
        settings += [field.name for field in fields(kind)]
    for name in settings:
        assert f"`{name}`" in page or f"`{name}=" in page or f"{name}=" in page, name
