"""Reports in a real browser: nothing is loaded, nothing runs, nothing is cut off on a phone, and print is light."""

import numpy as np
import pytest

import epsgauge as eg
from epsgauge.reporting.report import report
from epsgauge.runner.executors import InProcess

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
NAMES = "() => [...document.querySelectorAll('svg[role=img]')].map(svg => svg.getAttribute('aria-labelledby'))"


def hostile_plan():
    return eg.Plan(
        name=HOSTILE,
        n_models=30,
        data={"use": "zeros", "size": 60},
        trainer={"use": "laplace", "eps": 2.0},
        game={"train_size": 20, "reference_size": 10, "pairs_per_model": 3},
        audit={"attack": "loss", "fit_models": 10},
    )


@pytest.fixture(scope="module")
def run_report(tmp_path_factory):
    """Of a run with a hostile name and several pairs per model: every section is there."""
    folder = tmp_path_factory.mktemp("report")
    run = eg.run(hostile_plan(), out=folder / "run", executor=InProcess())
    return report(eg.audit(run), out=folder / "report.html")


def opened(page, file, **media):
    """With every request on record: a file that is complete asks for itself alone."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.emulate_media(**media)
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    return page


def test_a_hostile_name_stays_text(page, run_report):
    opened(page, run_report)
    assert page.title() == f"Privacy audit: {HOSTILE}"
    assert page.inner_text("h1") == HOSTILE
    assert page.locator("script, img, iframe, [onerror], [style]").count() == 0
    headings = page.locator("h2").all_inner_texts()
    assert headings[0] == "How large is ε?"
    assert headings[-2:] == ["Do the guesses about one model depend on each other?", "What was run"]


def test_every_picture_has_a_name_and_ids_are_unique(page, run_report):
    opened(page, run_report)
    names = page.evaluate(NAMES)
    assert len(names) >= 10
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    links = page.evaluate("() => [...document.querySelectorAll('a[href^=\"#\"]')].map(e => e.getAttribute('href'))")
    assert links
    assert {one for name in names for one in name.split()} | {link[1:] for link in links} <= set(ids)


def test_nothing_is_cut_off_on_a_phone(page, run_report):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, run_report)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    widths = page.evaluate("() => [...document.querySelectorAll('table')].map(e => e.getBoundingClientRect().width)")
    assert widths
    assert max(widths) <= 390


def background(page):
    rgb = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return np.array([int(part) for part in rgb.removeprefix("rgb(").removesuffix(")").split(",")]).mean()


def test_light_dark_and_print(page, run_report):
    opened(page, run_report, color_scheme="dark")
    assert background(page) < 60
    page.emulate_media(color_scheme="light")
    assert background(page) > 240
    page.emulate_media(media="print", color_scheme="dark")  # paper is white whatever the screen is
    assert background(page) > 240
    ink = page.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
    assert ink in ("rgb(27, 27, 27)", "rgb(90, 90, 90)")
    folded = page.locator("details:not([open]) svg").first
    assert folded.is_visible()  # what is folded on the screen is printed


def test_the_distribution_function_is_shown_on_demand(page, run_report):
    opened(page, run_report)
    drawing = page.locator("details svg").first
    assert not drawing.is_visible()
    page.locator("summary", has_text="distribution function").press("Enter")
    assert drawing.is_visible()


def test_counts_alone(page, tmp_path):
    rows = eg.intervals(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    opened(page, report(rows, out=tmp_path / "counts.html", claimed=4.0))
    assert "[1.086, 2.655]" in page.inner_text(".headline")
    assert page.locator("svg[role=img]").count() == 5
