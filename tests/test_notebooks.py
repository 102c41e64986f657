"""The notebooks of the documentation: they run, and print what is stored in them."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("nbclient")

from website import notebooks
from website.hooks import notebook_page, text

PATHS = sorted(notebooks.FOLDER.glob("*.ipynb"))


def printed(cells: list) -> list[str]:
    """What each cell prints, and the text of what it shows; of pictures only that there is one."""
    return ["".join(map(words, cell["outputs"])) for cell in cells if cell["cell_type"] == "code"]


def words(output: dict) -> str:
    if output["output_type"] == "stream":
        return text(output["text"])
    return "picture" if "image/png" in output["data"] else text(output["data"]["text/plain"])


def test_there_are_three():
    assert [path.stem for path in PATHS] == ["crowd", "llm-judges", "paper-by-hand"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_stored_in_it(path):
    stored = json.loads(path.read_text("utf-8"))["cells"]
    assert any(printed(stored))
    assert printed(notebooks.run(path).cells) == printed(stored), "if that is meant: make notebooks"


def test_a_page_of_the_site_has_code_and_outputs():
    page = notebook_page(notebooks.FOLDER / "llm-judges.ipynb")
    assert page.startswith("# LLM judges that drift\n")
    assert "(llm-judges.ipynb){ .download" in page
    assert 'src="data:image/png;base64,' in page
    assert "noticed at row" in page


def test_a_notebook_that_ends_with_an_error_is_no_page(tmp_path):
    path = tmp_path / "x.ipynb"
    error = {"output_type": "error", "ename": "ZeroDivisionError"}
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "1/0", "outputs": [error]}]}))
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        notebook_page(path)
