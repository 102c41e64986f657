"""The report as files: one HTML page that works offline, or JSON; each is written whole or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import whole_file
from driftvote.models.results import round_parts
from driftvote.report.charts import charts
from driftvote.report.data import ExampleRow, Report, report_to_json
from driftvote.report.findings import brief, counted, event_tone, percent, write_titles
from driftvote.times import show_time

TEMPLATES = Path(__file__).parent / "templates"
FORMATS = (".html", ".htm", ".json")
MAX_CLASSES = 20  # classes in the page's table; JSON has all of them


def write_report(report: Report, path: str | Path) -> None:
    """Write the page (`.html`) or the same content as JSON (`.json`), whole or not at all."""
    path = Path(path)
    check_report_path(path)
    text = report_to_json(report) if path.suffix.lower() == ".json" else render(report)
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def check_report_path(path: Path) -> None:
    """Raise an error if `write_report` cannot write this file: the ending is wrong, or the extra is not installed.

    Call it before a long stream is labeled.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise DriftvoteError(f"{path}: a report is written as .html or .json; choose one of these endings")
    if ending != ".json":
        try:
            _libraries()
        except ImportError as problem:
            raise MissingExtraError(
                f"{path}: an HTML report needs {problem.name}: pip install 'driftvote[report]', or write it as .json"
            ) from None


def _libraries() -> tuple[Any, Any]:
    """The module jinja2, and the function that returns Plotly's JavaScript."""
    import jinja2
    from plotly.offline import get_plotlyjs

    return jinja2, get_plotlyjs


@lru_cache(maxsize=1)
def _template() -> Any:
    """The compiled template; it escapes text, and an unknown name is an error."""
    jinja2, _ = _libraries()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "percent": percent,
        "position": lambda share: f"{100 * share:.1f}",
        "brief": brief,
        "show_time": show_time,
        "event_tone": event_tone,
        "parts": parts_of,
        "signed": lambda part: f"{round(part, 2) + 0.0:+.2f}".replace("-", "\N{MINUS SIGN}"),
        "sparkline": sparkline,
    }
    return environment.get_template("report.html")


def render(report: Report) -> str:
    """The page as text; equal reports give equal text."""
    _, get_plotlyjs = _libraries()
    classes = report.classes
    if len(classes) > MAX_CLASSES:
        classes = sorted(classes, key=lambda one: -one.votes)[:MAX_CLASSES]
    page: str = _template().render(
        report=report,
        titles=write_titles(report) if report.tally.rows else {},
        tiles=tiles(report) if report.tally.rows else [],
        span=_span(report),
        classes=classes,
        charts=_json_for_script(charts(report)),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
    )
    return page


def _json_for_script(value: Any) -> str:
    """JSON that may stand inside a script element, whatever names and ids contain."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def tiles(report: Report) -> list[tuple[str, str, str]]:
    """The large numbers at the top of the page: name, value, and the text below."""
    tally, overruled = report.tally, report.differences.overruled
    found = [
        ("rows", f"{tally.rows:,}", f"{counted(len(report.labelers), 'labeler')}, {counted(tally.votes, 'vote')}"),
        ("labeled", percent(tally.labeled, tally.rows), f"{tally.tied:,} tied, {tally.silent:,} without a vote"),
        ("doubtful", percent(tally.doubtful, tally.rows), f"{counted(tally.doubtful, 'row')} to review"),
        ("majority overruled", percent(overruled, tally.rows), counted(overruled, "row")),
        ("window at the end", f"{report.timeline.window_high[-1]:,}", "rows of the past that count"),
    ]
    if report.gold is not None:
        ours, majority = report.gold.scores[:2]
        found.insert(1, ("labeled right", percent(ours.accuracy), f"majority vote {percent(majority.accuracy)}"))
    return [(name, value.replace("over ", "> ").replace("under ", "< "), below) for name, value, below in found]


def _span(report: Report) -> str:
    """The first and the last time."""
    ends = [*report.timeline.first_time[:1], *report.timeline.last_time[-1:]]
    return "" if not ends or None in ends else " to ".join(map(show_time, ends))


@dataclass(frozen=True)
class Part:
    """A line of an example row: what the votes for one class, or something else, add to the log-odds of the label."""

    name: str
    total: float
    votes: list[tuple[str, float]]  # labelers and their shares; none where the line is not about votes
    left: float  # the bar, in percent of the width: it begins where the one above ends
    width: float


def parts_of(example: ExampleRow) -> list[Part]:
    """The classes with votes in a row, those for the label first, and what else adds to its log-odds; then the sum.

    Figures are rounded as they are shown, and the last but one so that they add up to the last.
    """
    by_class: dict[str, list[tuple[str, float]]] = {}
    for vote in example.votes:
        by_class.setdefault(vote.vote, []).append((vote.labeler, round(vote.share, 2) + 0.0))
    sums = {name: sum(share for _, share in votes) for name, votes in by_class.items()}
    lines = [(f"voted {name}", sums[name], by_class[name]) for name in sorted(sums, key=lambda name: -sums[name])]
    lines += [("other votes", example.others, [])] if example.others else []
    lines += [("without any vote", example.base, []), ("votes together", example.together, [])]
    shown = round_parts(example.log_odds, [total for _, total, _ in lines], 2)
    ends = [0.0, *accumulate(shown)]
    low, high = min(ends), max(ends)
    scale = 100.0 / ((high - low) or 1.0)
    bars = [(scale * (min(a, b) - low), scale * abs(a - b)) for a, b in pairwise([*ends, 0.0])]
    parts = zip([*lines, (f"log-odds of {example.explained}", 0.0, [])], [*shown, ends[-1] + 0.0], bars, strict=True)
    return [Part(name, total, votes, *bar) for (name, _, votes), total, bar in parts]


def sparkline(values: list[Any], n_classes: int, width: int = 120, height: int = 26) -> str:
    """The SVG path of a small line, from blind guessing (bottom) to always right (top), with gaps."""
    n, chance = len(values), 1.0 / max(2, n_classes)
    path: list[str] = []
    pen = "M"
    for t in range(0, n, max(1, n // width)):
        if values[t] is None:
            pen = "M"
            continue
        x = width * t / max(n - 1, 1)
        y = (height - 2) * (1.0 - (values[t] - chance) / (1.0 - chance)) + 1
        path.append(f"{pen}{x:.1f} {min(max(y, 0), height):.1f}")
        pen = "L"
    return " ".join(path)
