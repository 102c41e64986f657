"""The pictures of a report and of the live page in the documentation, from their demos. Run by `make picture`; needs
Chromium.

The report is photographed from its verdict down to its events, the live page down to its table of labelers.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from driftvote import cli
from driftvote.serve import demo

from reports_for_tests import CHROMIUM
from serve_for_tests import Server

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
WIDTH = 1080


def photograph(tab: Any, last: str, name: str) -> None:
    """Write a picture of the page, down to the part `last`."""
    path = FIGURES / name
    end = tab.locator(last).first.bounding_box()
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": end["y"] + end["height"] + 12}
    tab.screenshot(path=path, full_page=True, clip=clip)
    # A page has few colours: a palette shows the same in a third of the bytes.
    Image.open(path).convert("RGB").quantize(256, kmeans=3).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size:,} bytes")


def show_report(tab: Any, folder: Path) -> None:
    assert CliRunner().invoke(cli.app, ["demo", "--out", str(folder)]).exit_code == 0
    tab.goto((folder / "report.html").as_uri())
    tab.wait_for_selector("html[data-ready=yes]")
    photograph(tab, "#events", "report.png")


def show_live_page(tab: Any, folder: Path) -> None:
    start = datetime(2026, 5, 4, 9, tzinfo=timezone.utc)
    rows = [demo.make_row(n, start + timedelta(seconds=n)) for n in range(demo.PAST_ROWS + 1_500)]
    with Server(folder / "data") as server:
        path = server.create(demo.STREAM, classes=list(demo.CLASSES))
        for first in range(0, len(rows), 50):
            server.label(path, rows[first : first + 50])
        tab.goto(f"{server.url}/streams/{demo.STREAM}")
        tab.wait_for_selector(".plot .event")
        tab.wait_for_selector("#connection[data-state=live]")
        photograph(tab, ".columns", "serve.png")


def main() -> None:
    if CHROMIUM is None:
        sys.exit("no Chromium found; apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
        for show in (show_report, show_live_page):
            if len(sys.argv) < 2 or sys.argv[1] in show.__name__:
                show(tab, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
