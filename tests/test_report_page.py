"""The page: it shows every field of the report and nothing else, escapes what users wrote, and is one whole file."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from driftvote import DriftvoteError, MissingExtraError, cli
from driftvote.report import Report, check_report_path, from_arrays, page, write_report
from driftvote.report.charts import charts
from driftvote.report.data import WindowDrop

from reports_for_tests import dataclasses_of, full, nasty_report
from streams_for_tests import random_stream

DROP = WindowDrop(7, 7, 64, 8)


@pytest.fixture(scope="module")
def reports():
    """One report by row number, one by time, with every optional part filled and more rows than buckets."""
    votes = random_stream(3, 1_500, 4, abstain=0.2)
    gold = np.random.default_rng(0).integers(-1, 2, len(votes))
    ids = [f"item-{row}" for row in range(len(votes))]
    days = np.datetime64("2026-01-01") + np.arange(len(votes))
    both = [from_arrays(votes, gold=gold, ids=ids, times=times) for times in (np.zeros(len(votes)), days)]
    found = [full(dataclasses.replace(report, window_drops=[DROP])) for report in both]
    assert [report.timeline.by_time for report in found] == [False, True]
    assert found[0].timeline.step > 1
    return found


def changed(thing, kind, name):
    """The same report with one field of the first `kind` in it changed; None where there is no such thing."""
    if isinstance(thing, kind):
        return dataclasses.replace(thing, **{name: other(getattr(thing, name), name)})
    if isinstance(thing, tuple):
        found = changed(list(thing), kind, name)
        return None if found is None else tuple(found)
    if isinstance(thing, list):
        for place, inner in enumerate(thing):
            found = changed(inner, kind, name)
            if found is not None:
                return [*thing[:place], found, *thing[place + 1 :]]
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            found = changed(getattr(thing, field.name), kind, name)
            if found is not None:
                return dataclasses.replace(thing, **{field.name: found})
    return None


def other(value, name):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return "2031-05-05" if re.match(r"\d{4}-", value) else "changed & changed"
    if isinstance(value, (int, float)):
        return value + 1 if isinstance(value, int) else (value + 0.2 if value < 0.5 else value - 0.2)
    if value is None:
        return "here" if name in ("id", "label", "majority", "gold", "labeler", "usual_class") else 0.625
    if isinstance(value, tuple):
        return tuple(other(list(value), name))
    if isinstance(value, dict) and (name.startswith("balance") or name == "classes"):
        return {**value, "changed": 0.125}
    if isinstance(value, dict):
        return {**value, "changed": "& changed"}
    if isinstance(value, list) and name in (
        "ranges",
        "examples",
        "votes",
        "findings",
        "classes",
        "labelers",
        "scores",
    ):
        return value[:-1] if name not in ("labelers", "scores") else value[::-1]
    if isinstance(value, list) and value and not isinstance(value[0], (str, int, float, list, type(None))):
        return value[:-1]
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [other(value[0], ""), *value[1:]]
    if isinstance(value, list):
        # The time at which the last bucket ends is shown, those of the others are not.
        # Of the agreements, the first is that of a labeler with itself, which is not drawn.
        place = len(value) - 1 if name == "last_time" else min(1, len(value) - 1)
        return [*value[:place], other(value[place], "") if value else 1, *value[place + 1 :]]
    return dataclasses.replace(
        value, **{dataclasses.fields(value)[0].name: other(getattr(value, dataclasses.fields(value)[0].name), "")}
    )


def shown(report) -> str:
    """The page without what only sorting sees."""
    return re.sub(r' data-value="[^"]*"', "", page.render(report))


def test_every_field_shows_on_the_page(reports):
    """Change any one field, and the page is another: nothing is in the report that the page does not show."""
    pages = [shown(report) for report in reports]
    unseen = []
    for kind in dataclasses_of(Report):
        for field in dataclasses.fields(kind):
            for report, before in zip(reports, pages, strict=True):
                variant = changed(report, kind, field.name)
                assert variant is not None, f"no {kind.__name__} in the reports of this test"
                if shown(variant) != before:
                    break
            else:
                unseen.append(f"{kind.__name__}.{field.name}")
    assert not unseen, f"these can change without a trace on the page: {unseen}"


def test_optional_sections_appear_only_when_filled(reports):
    whole = page.render(reports[0])
    bare = dataclasses.replace(
        reports[0],
        events=None,
        committee=None,
        dependence=None,
        gold=None,
        questions=None,
        review=[],
        next_steps=[],
        differences=dataclasses.replace(reports[0].differences, examples=[]),
    )
    for section in ("events", "gold", "questions", "review", "majority"):
        for text, there in ((whole, True), (page.render(bare), False)):
            assert (f'<section id="{section}">' in text) == there
            assert (f'<a href="#{section}">' in text) == there  # the contents name what there is
    for words in ("Certified committee", "near-copies", "Drift events"):
        assert words in whole
        assert words not in page.render(bare)
    assert "gold" not in charts(bare)["charts"]


def test_the_same_report_gives_the_same_bytes(reports, tmp_path):
    for name in ("a.html", "b.html"):
        write_report(reports[0], tmp_path / name)
    first = (tmp_path / "a.html").read_bytes()
    assert first == (tmp_path / "b.html").read_bytes()
    assert first.count(b"<script") == 2
    assert len(first) < 500_000


def test_what_users_wrote_is_text():
    text = page.render(nasty_report())
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "<b>bold" not in text
    assert "<i>8</i>" not in text
    assert "&lt;script&gt;alert(&#39;title&#39;)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text
    # Inside the data of the charts, names cannot end the script element that they stand in.
    data = text.split('id="charts">')[1].split("</script>")[0]
    assert data.count("<") == 0
    assert "alert" in data


def test_nothing_is_fetched(reports, tmp_path):
    write_report(reports[0], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    markup = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "Content-Security-Policy" in markup
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:|//)""", markup)
    assert "url(" not in markup
    assert "@import" not in markup


def test_files_are_written_by_extension_and_whole_or_not_at_all(reports, tmp_path, monkeypatch):
    for name in ("r.html", "r.htm", "r.HTML"):
        reports[0].save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith("<!doctype html>")
    with pytest.raises(DriftvoteError, match=r"r.pdf: a report is written as .html or .json; choose one"):
        write_report(reports[0], tmp_path / "r.pdf")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_report(reports[0], tmp_path / "nowhere" / "r.html")
    before = (tmp_path / "r.html").read_bytes()
    monkeypatch.setattr("driftvote.report.page.charts", lambda report: {"bad": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        write_report(reports[0], tmp_path / "r.html")
    assert (tmp_path / "r.html").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.HTML", "r.htm", "r.html"]


def test_without_the_extra_json_works_and_html_says_what_to_install(reports, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    page._template.cache_clear()
    write_report(reports[0], tmp_path / "r.json")
    message = r"an HTML report needs jinja2: pip install 'driftvote\[report\]', or write it as .json"
    with pytest.raises(MissingExtraError, match=message):
        write_report(reports[0], tmp_path / "r.html")
    with pytest.raises(MissingExtraError, match=message):
        check_report_path(tmp_path / "r.html")
    check_report_path(tmp_path / "r.json")
    assert not (tmp_path / "r.html").exists()
    done = CliRunner().invoke(cli.app, ["demo", "--out", str(tmp_path / "demo"), "--rows", "200"])
    assert done.exit_code == 0, done.output
    assert "pip install 'driftvote[report]'" in done.output
    assert not (tmp_path / "demo" / "report.html").exists()


def test_the_demo_ends_with_its_report(tmp_path):
    done = CliRunner().invoke(cli.app, ["demo", "--out", str(tmp_path / "demo"), "--rows", "400"])
    assert done.exit_code == 0, done.output
    path = tmp_path / "demo" / "report.html"
    assert done.output.splitlines()[-1] == (
        f"report: {path}; open it in any browser, no network needed: {path.resolve().as_uri()}"
    )
    assert "Five labelers that change places" in path.read_text()


def test_reading_a_report_needs_no_page(tmp_path):
    """Making JSON does not import jinja2."""
    code = (
        "import sys; from driftvote.report import from_arrays;"
        f" from_arrays([[1, 0, 1]] * 4).save({str(tmp_path / 'r.json')!r});"
        " print([m for m in ('jinja2',) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
