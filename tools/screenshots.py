"""The pictures of the report and the viewer in README and docs, from the demo's runs: docs/_static/*.png.

    epsgauge demo --out build/demo && python tools/screenshots.py build/demo

Looks at copies, so that the runs stay as they are.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

import epsgauge as eg
from epsgauge.reporting.viewer.server import Viewer

CHROMIUM = "/usr/bin/chromium"
FOLDER = Path(__file__).parent.parent / "docs" / "_static"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("demo", type=Path, help="the folder of the demo's runs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        runs = Path(shutil.copytree(args.demo, Path(scratch) / "runs"))
        page = eg.report(eg.audit(eg.Run.open(runs / "digits-canary")), out=Path(scratch) / "report.html")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": 1000, "height": 820}, color_scheme="light")
        view.goto(page.as_uri())
        view.screenshot(path=FOLDER / "report.png")
        viewer = Viewer(runs)
        threading.Thread(target=viewer.serve, daemon=True).start()
        view.set_viewport_size({"width": 1200, "height": 1000})
        view.goto(viewer.address)
        view.get_by_role("link", name="digits-canary").click()
        view.get_by_role("slider", name="Level").press("ArrowRight")
        view.wait_for_load_state("networkidle")
        view.wait_for_timeout(3000)
        view.evaluate("window.scrollTo(0, 0)")
        view.screenshot(path=FOLDER / "viewer.png")
        viewer.stop()
        browser.close()
    for file in ("report.png", "viewer.png"):
        print(f"{FOLDER / file}: {(FOLDER / file).stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
