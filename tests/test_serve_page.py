"""The live page of `driftvote serve` in a real browser, against a real server process.

Runs wherever a Chromium is installed (Debian: apt-get install chromium); Playwright only drives it.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from driftvote.serve import demo
from driftvote.serve.access import make_token
from driftvote.serve.streams import SPARK_POINTS
from driftvote.streams import scenario

from reports_for_tests import CHROMIUM, CLASSES, NASTY
from serve_for_tests import Server

LAPTOP, PHONE = {"width": 1366, "height": 900}, {"width": 390, "height": 844}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found; apt-get install chromium to run the browser tests"),
]


class PageServer(Server):
    """A service with streams of the demo's rows."""

    def __init__(self, data: Path, *options: Any, token: str | None = None) -> None:
        super().__init__(data, *options)
        self.options, self.token = options, token

    def restart(self) -> None:
        """Kill it, and start it again on the same port."""
        self.kill()
        super().__init__(self.data, *self.options, "--port", self.port)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        status, answer = self.call(method, f"/v1{path}", body, headers)
        assert status < 300, answer
        return answer

    def fill(self, name: str, rows: int = 0, classes: Sequence[str] = demo.CLASSES) -> str:
        """Create a stream with rows of the demo, and return its path on the page."""
        path = f"/streams/{quote(name, safe='')}"
        self.ask("PUT", path, {"classes": list(classes)})
        if rows:
            self.send(path, 0, rows)
        return path

    def send(self, path: str, first: int, last: int) -> list[dict]:
        """Send these rows of the demo; the events that they brought come back."""
        return self.ask("POST", f"{path}/rows", {"rows": [demo_row(row) for row in range(first, last)]})["events"]


@cache
def demo_row(row: int) -> dict:
    return demo.make_row(row, datetime(2026, 5, 1, tzinfo=timezone.utc))


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser; make install has it")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("serve") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def demo_path(server):
    """A stream with an event behind it, just before the rows in which two labelers change places."""
    return server.fill("forum", rows=demo.PAST_ROWS)


@contextmanager
def opened(browser, server, path="/", size=LAPTOP, scheme="light", complaints=()) -> Iterator:
    """The page; afterwards: nothing complained but `complaints`, and no other host was asked for anything."""
    seen: list[str] = []
    phone = size is PHONE
    context = browser.new_context(
        viewport=size, color_scheme=scheme, has_touch=phone, is_mobile=phone, reduced_motion="reduce"
    )
    tab = context.new_page()
    tab.set_default_timeout(10_000)
    tab.on("console", lambda message: seen.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: seen.append(f"error: {error}"))
    tab.on("dialog", lambda dialog: (seen.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    tab.on("request", lambda request: None if request.url.startswith(server.url) else seen.append(request.url))
    tab.goto(server.url + path)
    tab.wait_for_selector("html[data-ready=yes], main.docs")
    yield tab
    context.close()
    assert [one for one in seen if not any(known in one for known in complaints)] == []


def until(tab, script: str) -> None:
    """Wait until an expression is true. (Playwright's own wait evaluates text in the page, which the page forbids.)"""
    for _ in range(200):
        if tab.evaluate(script):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(f"never true: {script}")


def connected(tab) -> None:
    tab.wait_for_selector("#connection[data-state=live]")


def test_the_list_of_streams_stays_fresh_without_a_reload(browser, server, demo_path):
    path = server.fill("second", rows=70)
    with opened(browser, server) as tab:
        connected(tab)
        card = tab.locator(".stream", has=tab.get_by_role("link", name="second"))
        card.get_by_text("70", exact=True).wait_for()
        forum = tab.locator(".stream", has=tab.get_by_role("link", name="forum"))
        assert len(forum.locator(".spark path").last.get_attribute("d")) > 100
        tab.evaluate("window.kept = 1")
        server.send(path, 70, 95)
        card.get_by_text("95", exact=True).wait_for()
        server.fill("third")
        tab.get_by_role("link", name="third").click()
        tab.get_by_role("heading", name="Waiting for the first rows").wait_for()
        assert tab.url.endswith("/streams/third")
        server.send("/streams/third", 0, 80)
        tab.locator(".tile", has_text="Rows").get_by_text("80", exact=True).wait_for()
        tab.go_back()
        tab.get_by_role("heading", name="Streams", exact=True).wait_for()
        assert tab.evaluate("window.kept") == 1


def test_the_small_chart_of_the_list_is_the_timeline_thinned(server):
    path = server.fill("long")
    steps = []
    for first in range(0, 20_000, 10_000):  # the timeline is thinned on the way
        rows = [{"votes": demo_row(row % 400)["votes"]} for row in range(first, first + 10_000)]
        server.ask("POST", f"{path}/rows", {"rows": rows})
        points = server.ask("GET", f"{path}/timeline?points=10000")["points"]
        steps.append(SPARK_POINTS * (points[1]["row"] - points[0]["row"]))
        stream = next(one for one in server.ask("GET", "/streams")["streams"] if one["name"] == "long")
        assert stream["spark"] == [one["in_dispute"] for one in points if (one["row"] + 1) % steps[-1] == 0]
    assert steps[1] > steps[0]


def drawn(tab, kind: str) -> int:
    """How many lines or bands of the first chart go somewhere."""
    return (
        tab.locator(".chart")
        .first.locator(f"path.{kind}")
        .evaluate_all("paths => paths.filter(path => (path.getAttribute('d') || '').length > 100).length")
    )


def shown_times(text: str) -> str:
    """A sentence with its times as the page writes them."""
    return text.replace("T00:00:00+00:00", " 00:00:00")


def test_a_stream_is_drawn_and_an_event_appears_at_once(browser, server):
    path = server.fill("live", rows=demo.PAST_ROWS)
    before = server.ask("GET", path)["events"]
    with opened(browser, server, path) as tab:
        connected(tab)
        tab.wait_for_selector(".plot .event rect")
        assert tab.locator(".events li").count() == before >= 1
        assert drawn(tab, "line") == drawn(tab, "band") == len(demo.LABELERS)
        assert tab.locator(".plot .event rect").count() == before
        assert tab.locator(".chart").count() == 5
        # The names stand at the ends of the lines, in the colours of the table.
        ends = tab.locator(".chart").first.locator(".end").all_text_contents()
        assert sorted(name for name in demo.LABELERS for end in ends if end.startswith(name)) == sorted(demo.LABELERS)
        # A verdict, and the table as the server has it.
        stream = server.ask("GET", path)
        assert tab.locator(".verdict").text_content() == shown_times(stream["verdict"])
        shown = tab.locator(".labelers .value b").all_text_contents()
        assert shown == [f"{100 * one['accuracy']:.0f}%" for one in stream["labelers"]]

        row = demo.PAST_ROWS
        while not (events := server.send(path, row, row + 16)):
            row += 16
        assert row < demo.PAST_ROWS + 60 * demo.ROWS_A_SECOND  # within a minute of the demo
        tab.wait_for_selector(f".events li:nth-child({before + 1})", timeout=2000)
        assert tab.locator(".events li p").first.text_content() == shown_times(events[-1]["text"])
        until(tab, f"document.querySelectorAll('.plot .event rect').length === {before + 1}")
        until(tab, "document.getElementById('announce').textContent.includes('judge-fast')")
        # The labeler is marked in the table, and drawn strongly.
        tab.locator(".labelers tr", has_text="judge-fast").get_by_text("Worse").wait_for()
        assert tab.locator(".verdict-line .chip").text_content() == "Changed"


def test_values_under_the_pointer_and_by_keyboard(browser, server, demo_path):
    with opened(browser, server, demo_path) as tab:
        tab.wait_for_selector(".plot .line")
        box = tab.locator(".chart").first.bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
        tooltip = tab.locator(".tooltip")
        tooltip.wait_for()
        assert tooltip.locator("li").count() == len(demo.LABELERS)
        assert "Row " in tooltip.text_content()
        tab.mouse.move(5, 5)
        tooltip.wait_for(state="hidden")
        slider = tab.get_by_role("slider")
        slider.focus()
        tab.keyboard.press("End")
        tab.keyboard.press("ArrowLeft")
        assert "judge-large 9" in slider.get_attribute("aria-valuetext")
        tooltip.wait_for()
        # A click greys a labeler and brings its colour back.
        button = tab.get_by_role("button", name="judge-old")
        button.click()
        until(tab, "document.querySelectorAll('.line.grey').length === 1")
        assert button.get_attribute("aria-pressed") == "false"
        button.click()
        assert button.get_attribute("aria-pressed") == "true"


def test_many_labelers_colour_those_that_changed(browser, server):
    path = server.fill("twelve")
    votes = scenario("one-fails", n_rows=1600, n_labelers=12).votes.tolist()
    rows = [
        {"id": str(row), "votes": {f"labeler-{n}": demo.CLASSES[vote] for n, vote in enumerate(line)}}
        for row, line in enumerate(votes)
    ]
    server.ask("POST", f"{path}/rows", {"rows": rows})
    labelers = server.ask("GET", path)["labelers"]
    changed = [one["name"] for one in labelers if one["changed"]]
    assert len(labelers) > 8
    assert 1 <= len(changed) <= 8
    with opened(browser, server, path) as tab:
        tab.wait_for_selector(".plot .line")
        assert drawn(tab, "line") == len(labelers)
        assert drawn(tab, "line.grey") == len(labelers) - len(changed)
        assert tab.locator(".labelers tbody th").first.text_content() == changed[0]
        tab.get_by_role("button", name="labeler-7").click()
        until(tab, f"document.querySelectorAll('.line.grey').length === {len(labelers) - len(changed) - 1}")
        assert drawn(tab, "band") == len(changed) + 1


def weights(tab) -> list[str]:
    return tab.locator(".weights .value").all_text_contents()


def test_three_answers_by_keyboard_change_the_weights_and_undo_takes_them_back(browser, server):
    path = server.fill("review", rows=demo.PAST_ROWS)
    before = server.ask("GET", path)["mixture"]
    with opened(browser, server, f"{path}#review") as tab:
        connected(tab)
        tab.wait_for_selector(".answer")
        start = weights(tab)
        asked = []
        for n in range(3):
            asked.append(tab.locator(".question .kicker").text_content())
            assert len(tab.locator(".question blockquote").text_content()) > 20
            assert tab.locator(".votes tbody tr").count() >= 2
            tab.keyboard.press("1")
            until(tab, f"document.querySelector('.tally').textContent.startsWith('{n + 1} answer')")
            until(tab, f"document.querySelector('.question .kicker')?.textContent !== {json.dumps(asked[-1])}")
        assert len(set(asked)) == 3
        assert tab.evaluate("document.activeElement.id") == "question-title"
        stream = server.ask("GET", path)
        assert stream["answers"]["count"] == 3
        assert stream["mixture"] != before
        until(tab, "document.querySelector('.weights').textContent.includes('→')")
        assert weights(tab) != start
        assert any("→" in text for text in weights(tab))
        until(tab, "document.getElementById('announce').textContent.includes('Answered')")

        tab.keyboard.press("s")
        until(tab, "document.getElementById('announce').textContent.includes('Skipped')")
        skipped = tab.locator(".question .kicker").text_content()
        tab.keyboard.press("u")
        until(tab, "document.querySelector('.tally').textContent.startsWith('2 answers')")
        until(tab, f"document.querySelector('.question .kicker').textContent === {json.dumps(asked[2])}")
        assert skipped not in asked
        assert server.ask("GET", path)["answers"]["count"] == 2
        # After a reload there is no list of this visit; the server knows what can be undone.
        tab.reload()
        tab.get_by_role("button", name="Undo").click()
        until(tab, "document.querySelector('.tally').textContent.startsWith('1 answer')")
        tab.get_by_role("button", name="Undo").click()
        until(tab, "document.querySelector('.tally').textContent === 'No answers yet'")
        assert server.ask("GET", path)["mixture"] == before
        # Keys can be switched off; a tap still answers.
        tab.get_by_label("Answer by key").uncheck()
        tab.keyboard.press("1")
        tab.locator(".answer").first.click()
        until(tab, "document.querySelector('.tally').textContent.startsWith('1 answer')")
        assert server.ask("GET", path)["answers"]["count"] == 1


# What each view shows when it is complete.
VIEWS = {"/": ".stream", "{path}": ".labelers td", "{path}#review": ".answer", "/docs": ".docs .card"}


def test_a_phone_scrolls_down_only(browser, server, demo_path):
    with opened(browser, server, size=PHONE) as tab:
        for view, complete in VIEWS.items():
            tab.goto("about:blank")
            tab.goto(server.url + view.format(path=demo_path))
            tab.wait_for_selector(complete)
            assert tab.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
            outside = tab.locator("main *").evaluate_all(
                "all => all.filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML)"
            )
            assert outside == []
            # Fingers hit what they aim at.
            sizes = tab.locator("main button:visible, header button:visible").evaluate_all(
                "all => all.map(one => one.getBoundingClientRect().height)"
            )
            assert min(sizes, default=24) >= 24


def lightness(tab) -> float:
    """How light the page is, from 0 to 255."""
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(float, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3


def test_dark_by_system_and_by_button(browser, server, demo_path):
    with opened(browser, server, demo_path, scheme="dark") as tab:
        assert lightness(tab) < 60
        tab.get_by_role("button", name="Light colours").click()
        assert lightness(tab) > 200
        tab.reload()
        tab.wait_for_selector("html[data-ready=yes]")
        assert lightness(tab) > 200  # the choice is kept
        tab.get_by_role("button", name="Dark colours").click()
        assert lightness(tab) < 60
    with opened(browser, server, demo_path, scheme="light") as tab:
        assert lightness(tab) > 200


def test_names_and_fields_are_text(browser, server):
    name = NASTY[0].replace("/", "|")  # a name is one part of an address
    path = server.fill(name, classes=CLASSES)
    rows = []
    for row in range(1500):
        votes = demo_row(row)["votes"]
        named = {f"{NASTY[place % 4]}{place}": CLASSES[vote == "spam"] for place, vote in enumerate(votes.values())}
        rows.append({"id": f"<i>{row}</i>", "time": "<b>now</b>", "votes": named, "data": {NASTY[1]: NASTY[0] * 3}})
    server.ask("POST", f"{path}/rows", {"rows": rows})
    with opened(browser, server, size=PHONE) as tab:
        for view, complete in list(VIEWS.items())[:3]:
            tab.goto("about:blank")
            tab.goto(server.url + view.format(path=path))
            tab.get_by_text(name).first.wait_for()
            tab.wait_for_selector(complete)
            assert tab.locator("main script, main img, main i[onclick], blockquote *").count() == 0
            assert tab.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        tab.locator(".answer").first.click()
        until(tab, "document.querySelector('.tally').textContent.startsWith('1 answer')")


def test_an_unknown_stream_gets_a_sentence(browser, server):
    with opened(browser, server, "/streams/nowhere", complaints=["404"]) as tab:
        tab.locator(".problem", has_text="nowhere").wait_for()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that asks for tokens, with a stream."""
    home = tmp_path_factory.mktemp("guarded")
    tokens = {role: make_token(home / "tokens", role, role) for role in ("admin", "review", "read")}
    with PageServer(home / "data", "--tokens", home / "tokens", token=tokens["admin"]) as server:
        server.tokens = tokens
        server.fill("forum", rows=demo.PAST_ROWS)
        yield server


def test_login_and_roles(browser, guarded):
    path = "/streams/forum"
    with opened(browser, guarded, f"{path}#review", complaints=["401"]) as tab:
        field = tab.get_by_label("Token")
        assert tab.evaluate("document.activeElement.id") == "token"
        field.fill("wrong")
        tab.keyboard.press("Enter")
        until(tab, "document.querySelector('.problem').textContent.length > 10")
        field.fill(guarded.tokens["read"])
        tab.keyboard.press("Enter")
        tab.get_by_text("may read, not review").wait_for()
        assert tab.locator(".answer").count() == 0
        tab.keyboard.press("1")
        assert guarded.ask("GET", path)["answers"]["count"] == 0
        tab.get_by_role("button", name="Log out").click()
        tab.get_by_label("Token").fill(guarded.tokens["review"])
        tab.get_by_role("button", name="Log in").click()
        tab.wait_for_selector(".answer")
        tab.reload()  # the cookie stays
        tab.wait_for_selector(".answer")
        tab.keyboard.press("1")
        until(tab, "document.querySelector('.tally').textContent.startsWith('1 answer')")
        assert guarded.ask("GET", path)["answers"]["count"] == 1


def test_a_server_that_compiles_says_so(browser, server):
    with opened(browser, server, "/") as tab:
        assert tab.locator("#starting").is_hidden()
        answers = [{"tokens": False, "role": "write", "csrf": None, "ready": False}]

        def answer(route) -> None:
            route.fulfill(json=answers.pop()) if answers else route.continue_()

        tab.route("**/v1/session", answer)
        tab.reload()
        tab.get_by_text("getting ready").wait_for()
        tab.get_by_text("getting ready").wait_for(state="hidden")


def test_the_page_reconnects_by_itself(browser, guarded):
    path, rows = "/streams/forum", demo.PAST_ROWS
    with opened(browser, guarded, path, complaints=["ERR_", "Failed to load"]) as tab:
        tab.get_by_label("Token").fill(guarded.tokens["read"])
        tab.keyboard.press("Enter")
        connected(tab)
        guarded.process.kill()
        tab.get_by_text("Not connected").wait_for()
        guarded.restart()
        guarded.send(path, rows, rows + 60)
        tab.wait_for_selector("#connection[data-state=live]", timeout=15_000)
        tab.locator(".tile", has_text="Rows").get_by_text(f"{rows + 60:,}", exact=True).wait_for()


@pytest.mark.parametrize("view", VIEWS, ids=["streams", "stream", "review", "docs"])
def test_accessibility(browser, server, demo_path, view):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe looks at the page; make install has it"
    )
    with opened(browser, server, view.format(path=demo_path)) as tab:
        tab.wait_for_selector(VIEWS[view])
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            found = axe.Axe().run(tab).response["violations"]
            assert [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found] == []
            # axe does not judge text in SVG: labels of charts on their card, by the formula of WCAG.
            pairs = tab.locator(".plot text").evaluate_all(
                """all => all.map(one => [getComputedStyle(one).fill,
                   getComputedStyle(one.closest('.event')?.querySelector('rect') ?? one.closest('.card'))
                   [one.closest('.event') ? 'fill' : 'backgroundColor'], one.textContent])"""
            )
            assert [text for front, back, text in pairs if contrast(front, back) < 4.5] == []
            assert bool(pairs) == (view == "{path}")


def contrast(front: str, back: str) -> float:
    """The contrast of two colours, each "rgb(r, g, b)", from 1 to 21.

    >>> round(contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)"), 1), round(contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)"), 2)
    (21.0, 4.48)
    """

    def luminance(colour: str) -> float:
        parts = [float(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(front), luminance(back)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_demo_feeds_itself(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with PageServer(tmp_path / "data", "--demo", "--port", port) as server:
        for _ in range(200):
            streams = server.ask("GET", "/streams")["streams"]
            if streams and streams[0]["rows"] > 100:
                break
            time.sleep(0.1)
        else:
            raise AssertionError(server.read_log())
        assert streams[0]["name"] == demo.STREAM
        assert streams[0]["labelers"] == len(demo.LABELERS)
    assert "Traceback" not in server.read_log()


def test_the_files_of_the_page_are_small_and_name_no_other_host():
    page = files("driftvote.serve") / "page"
    texts = {one.name: one.read_text() for one in page.iterdir()}
    assert {"index.html", "page.css", "page.js", "charts.js"} <= set(texts)
    assert sum(map(len, texts.values())) < 100_000
    for name, text in texts.items():
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), name
        assert "innerHTML" not in text, name
        assert " style=" not in text, name
