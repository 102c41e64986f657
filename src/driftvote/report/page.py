"""The page: one HTML file that works offline, and the JSON twin, each written whole or not at all."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import whole_file
from driftvote.report.context import Report
from driftvote.report.twin import report_to_json

TEMPLATES = Path(__file__).parent / "templates"
FORMATS = (".html", ".htm", ".json")


def write_report(report: Report, path: str | Path) -> None:
    """Write the page (`.html`) or its JSON twin (`.json`), whole or not at all.

    The page needs the extra `driftvote[report]`; JSON needs nothing.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DriftvoteError(f"{path}: cannot tell the format from {path.suffix!r}; name it .html or .json")
    text = report_to_json(report) if path.suffix.lower() == ".json" else render(report)
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def check_extra() -> None:
    """Refuse early, before a long stream is labeled, when the page cannot be made in the end."""
    _libraries()


def _libraries() -> tuple[Any, Any]:
    try:
        import jinja2
        from plotly.offline import get_plotlyjs
    except ImportError as problem:
        raise MissingExtraError(
            f"an HTML report needs {problem.name}: pip install 'driftvote[report]', or write it as .json"
        ) from None
    return jinja2, get_plotlyjs


def embedded(value: Any) -> str:
    """JSON that may stand inside a script element, whatever names and ids hold."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, code in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(character, code)
    return text


@lru_cache(maxsize=1)
def _template() -> Any:
    """The compiled template; text is escaped, and a name that it does not know is an error."""
    jinja2, _ = _libraries()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html")


def render(report: Report) -> str:
    """The page as text; the same report gives the same text."""
    from driftvote.report.charts import charts
    from driftvote.report.view import view

    _, get_plotlyjs = _libraries()
    page: str = _template().render(
        report=report,
        view=view(report),
        charts=embedded(charts(report)),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
    )
    return page
