"""The demo's report in a real browser: charts drew, hover, legend, zoom, ticks, sorting, dark and print work, offline.

Runs wherever a Chromium is installed (Debian: apt-get install chromium); Playwright only drives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from driftvote import cli

from reports_for_tests import CHROMIUM, nasty_report

LAPTOP, PHONE = {"width": 1366, "height": 900}, {"width": 390, "height": 844}
TIME_CHARTS = ["gold", "accuracy", "window", "coverage", "shares"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found; apt-get install chromium to run the browser tests"),
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser; make install has it")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    home = tmp_path_factory.mktemp("demo")
    done = CliRunner().invoke(cli.app, ["demo", "--out", str(home)])
    assert done.exit_code == 0, done.output
    return home / "report.html"


@contextmanager
def opened(browser, path, size=LAPTOP, scheme="light", touch=False) -> Iterator:
    """The page, drawn; afterwards: nothing complained, and nothing was asked of a network."""
    seen: list[str] = []
    context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=touch, is_mobile=touch, offline=True)
    tab = context.new_page()
    tab.on("console", lambda message: seen.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: seen.append(f"error: {error}"))
    tab.on("dialog", lambda dialog: (seen.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    tab.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else seen.append(request.url),
    )
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-ready=yes]")
    yield tab
    assert seen == []
    context.close()


def chart(tab, name):
    return tab.locator(f'.chart[data-chart="{name}"]')


def drawn(tab, name) -> int:
    """How many lines and bands stand in the chart, each with an outline that goes somewhere."""
    return (
        chart(tab, name)
        .locator(".scatterlayer .trace")
        .evaluate_all(
            """traces => traces.filter(trace => Array.from(trace.querySelectorAll("path.js-line, path.js-fill"))
               .some(path => (path.getAttribute("d") || "").length > 20)).length"""
        )
    )


def colour_of(tab, selector, attribute="color") -> str:
    return tab.eval_on_selector(selector, f"element => getComputedStyle(element)['{attribute}']")


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_charts_draw_and_fit(browser, demo, size):
    with opened(browser, demo, size, touch=size is PHONE) as tab:
        assert drawn(tab, "accuracy") == 10  # five lines, five bands
        assert drawn(tab, "window") == 2
        assert drawn(tab, "gold") == 3
        assert drawn(tab, "shares") == 2
        for name in ("coverage", "agreement"):
            assert chart(tab, name).locator(".heatmaplayer image").count() == 1
            assert chart(tab, name).locator(".heatmaplayer image").bounding_box()["height"] > 50
        for name in [*TIME_CHARTS, "agreement"]:
            box = chart(tab, name).locator(".main-svg").first.bounding_box()
            assert box["width"] <= size["width"]
            assert box["height"] > 150
        assert tab.evaluate("document.documentElement.scrollWidth") == size["width"]
        # Tables scroll in their own frames.
        for table in tab.locator(".scroll").all():
            box = table.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size["width"]


def test_hover_shows_the_values(browser, demo):
    with opened(browser, demo) as tab:
        plot = chart(tab, "accuracy").locator(".nsewdrag").first
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
        tab.wait_for_selector('.chart[data-chart="accuracy"] .hoverlayer .legend')
        text = chart(tab, "accuracy").locator(".hoverlayer").text_content()
        assert "row 5," in text or "row 4," in text
        assert "labeler_4" in text
        assert "%" in text


def test_the_legend_and_the_table_switch_lines(browser, demo):
    with opened(browser, demo) as tab:
        before = drawn(tab, "accuracy")
        chart(tab, "accuracy").locator(".legend .legendtoggle").first.click()
        tab.wait_for_function("document.querySelectorAll('.chart[data-chart=accuracy] .legendtoggle').length === 5")
        tab.wait_for_timeout(500)  # Plotly waits whether it becomes a double click
        assert drawn(tab, "accuracy") == before - 2
        tab.locator("input[data-labeler='3']").click()
        assert drawn(tab, "accuracy") == before - 4
        tab.locator("#theme").click()  # what was hidden stays hidden in other colours
        tab.wait_for_selector("html[data-theme=dark]")
        assert drawn(tab, "accuracy") == before - 4
        tab.locator("input[data-labeler='3']").click()
        assert drawn(tab, "accuracy") == before - 2


def test_one_zoom_moves_all_charts_over_time(browser, demo):
    ranges = f"{TIME_CHARTS}.map(name => document.querySelector(`.chart[data-chart=${{name}}]`).layout.xaxis.range)"
    with opened(browser, demo) as tab:
        whole = tab.evaluate(ranges)
        plot = chart(tab, "window").locator(".nsewdrag").first
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        middle = box["y"] + box["height"] / 2
        tab.mouse.move(box["x"] + box["width"] * 0.4, middle)
        tab.mouse.down()
        tab.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
        tab.mouse.up()
        tab.wait_for_function(f"{ranges}.every(range => range[0] > 7000 && range[1] < 13000)")
        tab.wait_for_timeout(300)
        tab.mouse.dblclick(box["x"] + box["width"] / 2, middle)
        tab.wait_for_function(f"{ranges}.every(range => range[0] < 100 && range[1] > 19000)")
        assert tab.evaluate(ranges) == whole


def test_light_and_dark(browser, demo):
    with opened(browser, demo, scheme="dark") as tab:
        assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
        dark = colour_of(tab, "body", "backgroundColor"), colour_of(tab, ".chart .xtick text", "fill")
        tab.locator("#theme").click()
        tab.wait_for_selector("html[data-theme=light]")
        light = colour_of(tab, "body", "backgroundColor"), colour_of(tab, ".chart .xtick text", "fill")
        assert all(a != b for a, b in zip(dark, light, strict=True))
        tab.emulate_media(color_scheme="light")
        tab.emulate_media(color_scheme="dark")
        assert tab.evaluate("document.documentElement.dataset.theme") == "light"  # the reader's choice stays
    with opened(browser, demo) as tab:
        assert tab.evaluate("document.documentElement.dataset.theme") == "light"
        tab.emulate_media(color_scheme="dark")
        tab.wait_for_selector("html[data-theme=dark]")


def test_headings_sort_the_labelers(browser, demo):
    with opened(browser, demo) as tab:
        column = "Array.from(document.querySelectorAll('#labeler-table tbody tr')).map(row => Number(row.cells[3].dataset.value))"
        tab.locator("#labeler-table thead th", has_text="accuracy").click()
        values = tab.evaluate(column)
        assert values == sorted(values, reverse=True)
        tab.locator("#labeler-table thead th", has_text="accuracy").click()
        assert tab.evaluate(column) == values[::-1]


def test_it_prints(browser, demo):
    with opened(browser, demo, scheme="dark") as tab:
        paper = tab.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        assert len(paper) > 50_000
        tab.wait_for_selector("html[data-theme=dark]")  # and back again
        tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert tab.evaluate("document.documentElement.dataset.theme") == "light"
        assert tab.evaluate("document.querySelector('details').open")
        widths = tab.evaluate("Array.from(document.querySelectorAll('.main-svg')).map(svg => svg.clientWidth)")
        assert max(widths) <= 680


def test_names_that_try_to_be_code_stay_text(browser, tmp_path):
    nasty_report().save(tmp_path / "nasty.html")
    with opened(browser, tmp_path / "nasty.html") as tab:
        assert tab.title() == "<script>alert('title')</script>"
        assert tab.locator("main img, main script, main i:not(:text('tied'))").count() == 0
        legend = chart(tab, "accuracy").locator(".legendtext").all_text_contents()
        assert legend[0].startswith("<script>alert(")
        assert legend[3] == "%{meta} {{ 7 * 7 }}"
        tab.locator("#theme").click()
