"""Checks the site that `make docs` built: every page and public name is there, and nothing is loaded from elsewhere.

python tools/check_site.py build/docs
"""

from __future__ import annotations

import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import epsgauge as eg
from epsgauge.methods.table import METHODS

DOCS = Path(__file__).parent.parent / "docs"
# What a page loads by itself; an <a> is followed only if somebody clicks it.
LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
}
ELSEWHERE = re.compile(r"^\s*([a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Loads(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        value = dict(attrs).get(LOADS.get(tag, ""))
        if value:
            self.found.append(value)


def loads(text: str) -> list[str]:
    """What a page or a style loads from another host."""
    parser = Loads()
    parser.feed(text)
    styles = [a or b for a, b in IN_CSS.findall(text)]
    return [value for value in parser.found + styles if ELSEWHERE.match(value)]


def problems(site: Path) -> list[str]:
    """What is wrong with the site, one sentence each."""
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    wrong = [f"{file} loads {address}." for file in files for address in loads(file.read_text())]
    if len(files) <= 20:
        wrong.append(f"{site} must have more than 20 pages and styles, but has {len(files)}.")
    built = {path.stem for path in site.glob("*.html")}
    wrong += [f"docs/{path.name} was not built." for path in sorted(DOCS.glob("*.md")) if path.stem not in built]
    shown = f">{METHODS['clusters'].label}<"  # the table of methods, on each page that includes it
    pages = [path for path in sorted(DOCS.glob("*.md")) if "{include} numbers.md" in path.read_text()]
    wrong += [
        f"{p.stem} lacks the table of methods." for p in pages if shown not in (site / f"{p.stem}.html").read_text()
    ]
    reference = site / "reference.html"
    page = reference.read_text() if reference.exists() else ""
    wrong += [f"epsgauge.{name} is not in the reference." for name in eg.__all__ if f'id="epsgauge.{name}"' not in page]
    if "TypeAliasForwardRef" in page:
        wrong.append("the reference shows a type as TypeAliasForwardRef.")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="the folder that sphinx-build has written")
    sys.exit("\n".join(problems(parser.parse_args().site)) or None)


if __name__ == "__main__":
    main()
