"""The picture of a report in the documentation, from the demo. Run by `make picture`; needs Chromium.

The page is photographed as it opens, without the confusion table between the first two charts, so that the picture
holds the headline, accuracy, labelers and window.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from driftvote import cli

from reports_for_tests import CHROMIUM

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "report.png"


def main() -> None:
    if CHROMIUM is None:
        sys.exit("no Chromium found; apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        assert CliRunner().invoke(cli.app, ["demo", "--out", folder]).exit_code == 0
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1080, "height": 900})
        tab.goto((Path(folder) / "report.html").as_uri())
        tab.wait_for_selector("html[data-ready=yes]")
        tab.add_style_tag(content="#gold h3, #gold .scroll, #gold h3 + .about { display: none }")
        end = tab.locator("#accuracy").bounding_box()
        tab.screenshot(
            path=PICTURE, full_page=True, clip={"x": 0, "y": 0, "width": 1080, "height": end["y"] + end["height"] + 12}
        )
        browser.close()
    # A page has few colours: a palette of 128 shows the same in a third of the bytes.
    Image.open(PICTURE).convert("RGB").quantize(128).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
