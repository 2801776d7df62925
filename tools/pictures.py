"""The pictures of README and docs, and what tells whether they are stale: docs/_static/*.png, demo.svg, pictures.json.

    python tools/pictures.py                      the report and the viewer, of the runs of tools/gallery.py
    python tools/pictures.py --demo build/demo    what the demo found, after: epsgauge demo --out build/demo

The first needs Chromium. The second writes the rungs of the ladder, and from these README's text and the drawing.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gallery
from rich.console import Console

import epsgauge as eg
from epsgauge.cli.demo import OUTRO, STORY
from epsgauge.figures import css
from epsgauge.figures.chart import standalone
from epsgauge.figures.ladder import Ladder, Rung, draw, ladder
from epsgauge.figures.ruler import Shown
from epsgauge.reporting.ladder import show_ladder

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "_static"
MADE = FOLDER / "pictures.json"
README = ROOT / "README.md"
PLANS = ROOT / "src" / "epsgauge" / "cli" / "plans"
VIEWER = ROOT / "src" / "epsgauge" / "reporting" / "viewer"
CHROMIUM = "/usr/bin/chromium"
SHOWN = "violation"  # the sample whose report is shown
PLACES = re.compile(r' (?:x|y|x1|x2|y1|y2|cx|cy|r|d|points|width|height|transform|viewBox|data-x|data-y)="[^"]*"')
DEMO = re.compile(r"```text\n(DP-SGD on handwritten digits\n.*?)```", re.DOTALL)


def digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def of_report(page: str) -> str:
    """The digest of what report.png shows: the page down to the posterior, and its style.

    Where lines are drawn is left out: their last digits depend on the machine.
    """
    head = page[page.index("<style>") : page.index('<section id="posterior">')]
    return digest(PLACES.sub("", head))


def of_viewer() -> str:
    """The digest of what viewer.png is drawn by."""
    files = sorted(path for name in ("templates", "static") for path in (VIEWER / name).iterdir())
    return digest(css.STYLE, *(path.read_text(encoding="utf-8") for path in files))


def of_demo() -> str:
    """The digest of the plans and pipelines that the demo runs."""
    files = [path for path in sorted(PLANS.iterdir()) if path.suffix in (".py", ".toml")]
    return digest(*(path.read_text(encoding="utf-8") for path in files))


def recorded() -> Ladder:
    """What the demo found when the pictures were made."""
    found = json.loads(MADE.read_text(encoding="utf-8"))["demo"]["ladder"]

    def rung(said: dict[str, Any]) -> Rung:
        return Rung(**{**said, "bounds": tuple(Shown(**bound) for bound in said["bounds"])})

    rungs = {title: tuple(map(rung, of)) for title, of in found.pop("pipelines").items()}
    return Ladder(**found, pipelines=rungs)


def demo_text(found: Ladder) -> str:
    """The ladder as the terminal shows it, and what the demo says below it."""
    screen = io.StringIO()
    console = Console(file=screen, width=88)
    show_ladder(found, console)
    console.print(f"\n{OUTRO}")
    return "\n".join(line.rstrip() for line in screen.getvalue().strip("\n").splitlines()) + "\n"


def demo_drawing(found: Ladder) -> str:
    return standalone(draw(found))


def write(key: str, value: object) -> None:
    made = json.loads(MADE.read_text(encoding="utf-8")) if MADE.exists() else {}
    MADE.write_text(json.dumps({**made, key: value}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def from_demo(runs: Path) -> None:
    found = ladder(
        {
            title: {who: eg.audit(eg.Run.open(runs / name)) for name, (who, _) in adversaries.items()}
            for title, adversaries in STORY.items()
        }
    )
    write("demo", {"plans": of_demo(), "ladder": asdict(found)})
    text = README.read_text(encoding="utf-8")
    README.write_text(DEMO.sub(lambda _: f"```text\n{demo_text(recorded())}```", text), encoding="utf-8")
    (FOLDER / "demo.svg").write_text(demo_drawing(recorded()), encoding="utf-8")


def screenshots() -> None:
    from playwright.sync_api import sync_playwright

    from epsgauge.reporting.viewer.server import Viewer

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        os.chdir(scratch)
        audits = {sample.name: gallery.played(sample) for sample in gallery.SAMPLES}
        page = eg.report(audits[SHOWN], out=f"{SHOWN}.html").absolute()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        view = browser.new_page(viewport={"width": 1000, "height": 780}, color_scheme="light")
        view.goto(page.as_uri())
        view.screenshot(path=FOLDER / "report.png")
        write("report", of_report(page.read_text(encoding="utf-8")))
        viewer = Viewer(Path("runs"))
        threading.Thread(target=viewer.serve, daemon=True).start()
        view.set_viewport_size({"width": 1200, "height": 900})
        view.goto(viewer.address)
        view.wait_for_load_state("networkidle")
        view.wait_for_timeout(3000)
        view.screenshot(path=FOLDER / "viewer.png")
        write("viewer", of_viewer())
        viewer.stop()
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, metavar="DIR", help="the folder of the demo's runs")
    demo = parser.parse_args().demo
    if demo is None:
        screenshots()
    else:
        from_demo(demo)


if __name__ == "__main__":
    main()
