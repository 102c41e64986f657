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
CHARTS = ["accuracy", "gold", "shares", "window"]

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
    outlines = "paths => paths.filter(path => path.getAttribute('d').length > 20).length"
    return chart(tab, name).locator(".plot .line, .plot .band").evaluate_all(outlines)


def colour_of(tab, selector, attribute="color") -> str:
    return tab.eval_on_selector(selector, f"element => getComputedStyle(element)['{attribute}']")


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_charts_draw_and_fit(browser, demo, size):
    with opened(browser, demo, size, touch=size is PHONE) as tab:
        assert [drawn(tab, name) for name in CHARTS] == [10, 3, 2, 2]  # five labelers: lines and bands
        for name in CHARTS:
            plot = chart(tab, name).locator(".plot")
            box = plot.bounding_box()
            assert box["width"] <= size["width"]
            assert box["height"] > 150
            # The lines reach the end of the axis.
            ends = plot.evaluate("""svg => {
                const x = Number(svg.querySelector("svg").getAttribute("x")), width = Number(svg.querySelector("svg").getAttribute("width"));
                return [x + width, Math.max(...Array.from(svg.querySelectorAll(".line"), (line) => line.getBBox().x + line.getBBox().width))];
            }""")
            assert ends[1] == pytest.approx(ends[0], abs=12)
            assert plot.locator(".number text").text_content() == "1"
        assert tab.evaluate("document.documentElement.scrollWidth") == size["width"]
        # Verdict and chart stand on the first screen; what changed is read without scrolling sideways.
        for words in (tab.locator("h1"), chart(tab, "accuracy").locator(".mark").first):
            box = words.bounding_box()
            assert box["y"] + box["height"] <= size["height"]
        assert "labeler_1 most: 55% right instead of 90%" in tab.locator("h1").text_content()
        for change in tab.locator("#event-1 .change .numbers").all():
            box = change.bounding_box()
            assert box["x"] + box["width"] <= size["width"]
        for frame in tab.locator(".scroll").all():
            box = frame.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size["width"]


def test_the_contents_lead_to_sections(browser, demo):
    with opened(browser, demo) as tab:
        links = tab.locator("nav .jump a, aside a").evaluate_all("links => links.map((link) => link.hash.slice(1))")
        assert links[:2] == ["events", "labelers"]
        assert [tab.locator(f"section#{name}").count() for name in links] == [1] * len(links)


def test_a_labeler_has_one_colour(browser, demo):
    with opened(browser, demo) as tab:
        for place in range(5):
            swatch = tab.locator(f"tr:has(input[data-labeler='{place}']) .swatch")
            wanted = swatch.evaluate("element => getComputedStyle(element).backgroundColor")
            name = swatch.evaluate("element => element.className.replace('swatch ', '')")
            line = chart(tab, "accuracy").locator(f".line.{name}")
            assert line.evaluate("element => getComputedStyle(element).stroke") == wanted
            event = tab.locator("#event-1 .who", has_text=f"labeler_{place}").locator(".swatch")
            assert event.evaluate("element => getComputedStyle(element).backgroundColor") == wanted


def test_hover_shows_the_values(browser, demo):
    with opened(browser, demo) as tab:
        box = chart(tab, "accuracy").locator(".plot").bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
        text = chart(tab, "accuracy").locator(".tip").inner_text()
        assert text.startswith(("row 4,", "row 5,"))
        assert "labeler_4" in text
        assert "%" in text
        assert tab.locator(".tip:visible").count() == 1


def test_the_table_switches_lines(browser, demo):
    with opened(browser, demo) as tab:
        before = drawn(tab, "accuracy")
        tab.locator("input[data-labeler='3']").click()
        assert drawn(tab, "accuracy") == before - 2
        tab.locator("#theme").click()  # what was hidden stays hidden in other colours
        assert drawn(tab, "accuracy") == before - 2
        tab.locator("input[data-labeler='3']").click()
        assert drawn(tab, "accuracy") == before


def test_one_zoom_moves_all_charts(browser, demo):
    with opened(browser, demo) as tab:
        ticks = [chart(tab, name).locator(".plot .tick") for name in CHARTS]
        whole = [one.all_text_contents() for one in ticks]
        assert all("18,000" in texts or "15,000" in texts for texts in whole)
        plot = chart(tab, "window").locator(".plot")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        middle = box["y"] + box["height"] / 2
        tab.mouse.move(box["x"] + box["width"] * 0.45, middle)
        tab.mouse.down()
        tab.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=3)
        tab.mouse.up()
        texts = [one.all_text_contents() for one in ticks]
        assert not any("18,000" in one or "15,000" in one for one in texts)
        tab.mouse.dblclick(box["x"] + box["width"] / 2, middle)
        assert [one.all_text_contents() for one in ticks] == whole


def test_light_and_dark(browser, demo):
    with opened(browser, demo, scheme="dark") as tab:
        assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
        dark = colour_of(tab, "body", "backgroundColor"), colour_of(tab, ".plot .tick", "fill")
        tab.locator("#theme").click()
        tab.wait_for_selector("html[data-theme=light]")
        light = colour_of(tab, "body", "backgroundColor"), colour_of(tab, ".plot .tick", "fill")
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
        column = "Array.from(document.querySelectorAll('#labeler-table tbody tr')).map(row => Number(row.cells[2].dataset.value))"
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
        widths = tab.evaluate("Array.from(document.querySelectorAll('.plot')).map(svg => svg.clientWidth)")
        assert max(widths) <= 680


def test_names_that_try_to_be_code_stay_text(browser, tmp_path):
    nasty_report().save(tmp_path / "nasty.html")
    with opened(browser, tmp_path / "nasty.html") as tab:
        assert tab.title() == "<script>alert('title')</script>"
        assert tab.locator("main img, main script, main b:text-is('bold')").count() == 0
        names = chart(tab, "accuracy").locator(".end title").all_text_contents()
        assert "<script>alert('name')</script>" in names
        assert "%{meta} {{ 7 * 7 }}" in names
        tab.locator("#theme").click()
