"""The front door: sample reports, glossary and workflow are what the code says now."""

import json
import re
from pathlib import Path

import pytest

import epsgauge as eg
from tools.same_text import same_text

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def gallery():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        import gallery

        yield gallery


@pytest.fixture(scope="module")
def audits(gallery, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("gallery"))
        yield {sample.name: gallery.played(sample) for sample in gallery.SAMPLES}


def test_the_gallery_is_what_the_tool_writes(gallery, audits):
    assert same_text(gallery.page(audits), gallery.PAGE.read_text(encoding="utf-8")), "run: python tools/gallery.py"


def test_the_sample_reports_have_these_verdicts(gallery, audits):
    for name, audit in audits.items():
        text = re.sub(r"<[^>]+>", "", (gallery.FOLDER / f"{name}.html").read_text(encoding="utf-8"))
        said = " ".join(text.replace("&#39;", "'").replace("&#34;", '"').split())
        assert audit.verdict.finding in said, "run: python tools/gallery.py"
        assert audit.decision.meaning in said, "run: python tools/gallery.py"
        for step in audit.decision.steps:
            assert step.text in said, "run: python tools/gallery.py"


def test_there_is_one_sample_of_each_verdict_that_judges_a_claim(gallery):
    kinds = [sample.kind for sample in gallery.SAMPLES]
    assert kinds == ["violation", "unsupported", "no objection", "cannot decide"]


def test_the_glossary_has_twenty_words():
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(words) == len(set(words)) == 20


def test_installation_lines_name_what_exists():
    """Until the package is published, a name on an index would be somebody else's."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"), *(ROOT / "src").rglob("*.py")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"pip install (-\w+ )*['\"]?epsgauge", text), page


def test_charts_are_methods_of_what_they_show():
    post = eg.estimate(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    assert dir(post.plot) == ["bars", "contours", "density", "ruler"]
    assert "<svg" in post.plot.density()._repr_html_()
    assert repr(post.plot).startswith("<charts: ")
    with pytest.raises(AttributeError, match="a chart is one of ruler, density, bars, contours, but got 'pie'"):
        post.plot.pie()


@pytest.fixture(scope="module")
def pictures(gallery):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        import pictures

        yield pictures


STALE = "stale. Run: make pictures"


def test_the_pictures_show_what_the_pages_show_now(pictures, audits, tmp_path):
    made = json.loads(pictures.MADE.read_text(encoding="utf-8"))
    page = eg.report(audits[pictures.SHOWN], out=tmp_path / "report.html").read_text(encoding="utf-8")
    assert made["report"] == pictures.of_report(page), f"report.png is {STALE}"
    assert made["viewer"] == pictures.of_viewer(), f"viewer.png is {STALE}"


def test_a_picture_is_stale_once_words_or_colours_change(pictures, audits, tmp_path):
    page = eg.report(audits[pictures.SHOWN], out=tmp_path / "report.html").read_text(encoding="utf-8")
    now = pictures.of_report(page)
    assert now != pictures.of_report(page.replace("Do not release", "Never release"))
    assert now != pictures.of_report(page.replace(":root{", ":root{--extra:1;"))
    assert now == pictures.of_report(page.replace('x="', 'x="1'))  # which is the machine's


def test_the_readme_shows_what_the_demo_found(pictures):
    """Its plans are those of the record, and text and drawing are what they are printed as now."""
    made = json.loads(pictures.MADE.read_text(encoding="utf-8"))
    assert made["demo"]["plans"] == pictures.of_demo(), f"the demo's figures are {STALE}"
    found = pictures.recorded()
    assert pictures.DEMO.findall(pictures.README.read_text(encoding="utf-8")) == [pictures.demo_text(found)], STALE
    assert (pictures.FOLDER / "demo.svg").read_text(encoding="utf-8") == pictures.demo_drawing(found), STALE
