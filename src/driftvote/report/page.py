"""The report as files: one HTML page that works offline, or JSON; each is written whole or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from driftvote.drift.dependence import FEW
from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import whole_file
from driftvote.models.results import round_parts
from driftvote.report.charts import charts, labeler_colours
from driftvote.report.data import ExampleRow, Report, report_to_json
from driftvote.report.findings import brief, event_tone, percent, ranked_pairs, shown_pair, write_titles
from driftvote.times import show_time

TEMPLATES = Path(__file__).parent / "templates"
FORMATS = (".html", ".htm", ".json")
MAX_CLASSES = 20  # classes in the page's table; JSON has all of them
MAX_MATRIX, EXTREMES = 30, 12  # with more labelers, some pairs are listed in place of a table of all


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
            _template()
        except ImportError as problem:
            raise MissingExtraError(
                f"{path}: an HTML report needs {problem.name}: pip install 'driftvote[report]', or write it as .json"
            ) from None


@lru_cache(maxsize=1)
def _template() -> Any:
    """The compiled template; it escapes text, and an unknown name is an error."""
    import jinja2

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
        "shown_pair": shown_pair,
        "parts": parts_of,
        "signed": lambda part: f"{round(part, 2) + 0.0:+.2f}".replace("-", "\N{MINUS SIGN}"),
        "sparkline": sparkline,
    }
    return environment.get_template("report.html")


def render(report: Report) -> str:
    """The page as text; equal reports give equal text."""
    template, classes, names = _template(), report.classes, [labeler.name for labeler in report.labelers]
    if len(classes) > MAX_CLASSES:
        classes = sorted(classes, key=lambda one: -one.votes)[:MAX_CLASSES]
    titles = write_titles(report) if report.tally.rows else {}
    changed = {name: number for number, event in enumerate(report.events or (), 1) for name in event.names}
    page: str = template.render(
        report=report,
        titles=titles,
        sections=_sections(report, titles),
        span=_span(report),
        classes=classes,
        chance=1.0 / max(2, len(report.classes)),
        colours=dict(zip(names, labeler_colours(report), strict=True)),
        changed=changed,
        ordered=sorted(enumerate(report.labelers), key=lambda pair: pair[1].name not in changed),
        dependent=_is_dependent(report),
        matrix=_matrix(report) if len(names) <= MAX_MATRIX else [],
        extremes=_extremes(report) if len(names) > MAX_MATRIX else [],
        charts=_json_for_script(charts(report)),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
    )
    return page


def _sections(report: Report, titles: dict[str, str]) -> list[tuple[str, str]]:
    """The sections that the page has, with their names in its contents."""
    there = bool(report.tally.rows)
    found = [
        ("events", "Events", bool(report.events)),
        ("labelers", "Labelers", there),
        ("gold", "True labels", report.gold is not None),
        ("questions", "Questions", report.questions is not None and bool(report.questions.rows)),
        ("review", "Review", bool(report.review)),
        ("majority", "Majority", bool(report.differences.examples)),
        ("agreement", "Agreement", there),
        ("model", "Model", there and bool(titles["window"] or report.label_models or report.committee)),
        ("input", "Input", True),
    ]
    return [(section, name) for section, name, shown in found if shown]


def _is_dependent(report: Report) -> bool:
    """Whether there is something to say about labelers that err together."""
    found = report.dependence
    if found is None or found.effective_labelers is None:
        return False
    return (
        bool(found.near_copies) or found.effective_labelers < FEW * len(report.labelers) or found.note.count(". ") > 0
    )


def _matrix(report: Report) -> list[list[tuple[float | None, int, int]]]:
    """The lines of the table of agreements: share, common rows (-1 on the diagonal), and its shade in percent."""
    known = [
        value
        for i, line in enumerate(report.agreement.share)
        for j, value in enumerate(line)
        if j != i and value is not None
    ]
    low = min(known, default=0.0)
    scale = 100.0 / (max(known, default=1.0) - low or 1.0)
    return [
        [
            (0.0, -1, 0) if i == j else (value, rows, 0 if value is None else round(scale * (value - low)))
            for j, (value, rows) in enumerate(zip(shares, counts, strict=True))
        ]
        for i, (shares, counts) in enumerate(zip(report.agreement.share, report.agreement.rows, strict=True))
    ]


def _extremes(report: Report) -> list[tuple[str, list[tuple[float, int, int]]]]:
    """The pairs that agree most and least: a table of all pairs of many labelers would be too large."""
    pairs = ranked_pairs(report)
    return [("Agree most", pairs[:EXTREMES]), ("Agree least", pairs[: -EXTREMES - 1 : -1])]


def _json_for_script(value: Any) -> str:
    """JSON that may stand inside a script element, whatever names and ids contain."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


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


def sparkline(values: list[Any], lowest: float, width: int = 120, height: int = 26) -> str:
    """The SVG path of a small line, from `lowest` (bottom) to 1 (top), with gaps; points are means of neighbours."""
    n, size = len(values), max(1, len(values) // width)
    path: list[str] = []
    pen = "M"
    for t in range(0, n, size):
        known = [value for value in values[t : t + size] if value is not None]
        if not known:
            pen = "M"
            continue
        x = width * t / max(n - 1, 1)
        y = (height - 2) * (1.0 - (sum(known) / len(known) - lowest) / (1.0 - lowest)) + 1
        path.append(f"{pen}{x:.1f} {min(max(y, 0), height):.1f}")
        pen = "L"
    return " ".join(path)
