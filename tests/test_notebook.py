"""What notebooks and terminals show of objects: pictures with names, text that stays text, plain text in a pipe."""

import io
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from test_report import HOSTILE, Tags, exact_bounds_once, scores
from tiny_runs import plan, played

import epsgauge as eg
from epsgauge.reporting import audit as audit_answer
from epsgauge.runner.view import Run

__all__ = ["exact_bounds_once"]  # a fixture of this module too
TALLY = eg.Tally(tp=31, tn=996, fp=5, fn=968)
SETTINGS = {"fit_models": 10, "verdict_method": "clopper-pearson"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return played(plan(name=HOSTILE, n_models=40, audit=SETTINGS), tmp_path_factory.mktemp("run") / "a")


@pytest.fixture(scope="module")
def found(run):
    return eg.audit(run)


def shown(thing):
    """Its HTML, which must be closed and harmless."""
    page = thing._repr_html_()
    tags = Tags(page).tags
    assert not [tag for tag, _ in tags if tag == "script"]
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on") or name == "style"]
    for tag in ("div", "svg", "table", "details", "p", "ul"):
        assert len(re.findall(f"<{tag}[ >]", page)) == page.count(f"</{tag}>"), tag
    assert 'data-jp-theme-light="false"' in page  # follows the notebook's theme
    return page


def pictures(page):
    return page.count("<svg")


def printed(thing, *, width=100, colours=False):
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=colours, color_system="standard" if colours else None)
    console.print(thing)
    return file.getvalue()


def test_posterior():
    page = shown(eg.estimate(TALLY, delta=1e-5))
    assert pictures(page) == 1
    assert "[1.086, 2.655]" in page
    assert "credible" in page
    assert pictures(shown(eg.estimate_mu(TALLY))) == 1
    assert pictures(shown(eg.estimate_delta(TALLY, eps=1.0))) == 1


def test_intervals():
    page = shown(eg.intervals(TALLY, delta=1e-5, level=0.8))
    assert pictures(page) == 1
    assert "80 % interval" in page
    assert "Clopper-Pearson" in page
    assert "anytime" in shown(eg.intervals(TALLY, delta=1e-5, methods=["anytime"])).lower()


def test_tally():
    page = shown(TALLY)
    for cell in ("TP 31", "TN 996", "FP 5", "FN 968", "FNR 0.969", "FPR 0.005", "N = 2000"):
        assert cell in page
    assert "FNR" not in shown(eg.Tally(tp=0, tn=1, fp=1, fn=0))


def test_arrays_are_shown_as_text():
    many = eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1)
    post = eg.estimate(many, delta=1e-5)
    for thing in (many, post, eg.intervals(many, delta=1e-5)):
        assert "2 tallies" in shown(thing)
        assert pictures(shown(thing)) == 0
        assert "2 tallies" in printed(thing)


def test_audit(found):
    page = shown(found)
    assert pictures(page) == 1
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert found.verdict.kind.split()[0] in page.lower()
    assert pictures(shown(eg.audit(scores(1.0, 60), verdict_method="clopper-pearson"))) == 1


def test_run_shows_how_it_stands_and_is_no_look(run):
    before = len(run.looks)
    page = shown(run)
    assert '<progress value="40" max="40"' in page
    assert "&lt;script&gt;" in page
    assert "40 of 40 models done" in printed(run)
    assert len(Run.open(run.path).looks) == before


def test_two_pictures_on_one_page_have_ids_of_their_own():
    pages = [shown(eg.estimate(eg.Tally(tp=n, tn=50, fp=5, fn=20), delta=1e-5)) for n in (20, 30)]
    ids = [set(re.findall(r' id="([^"]+)"', page)) for page in pages]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_rich_shows_what_the_command_prints(found):
    file = io.StringIO()
    audit_answer.show(found, Console(file=file, width=88, highlight=False))
    assert [line.rstrip() for line in printed(found, width=88).splitlines()] == [
        line.rstrip() for line in file.getvalue().rstrip().splitlines()
    ]
    assert "\x1b[" in printed(found, colours=True)
    assert "\x1b[" not in printed(found)
    few = eg.Tally(tp=9, tn=27, fp=3, fn=21)
    assert "Exact" in printed(eg.estimate(few, delta=1e-5))
    assert "80 % interval" in printed(eg.intervals(few, delta=1e-5, level=0.8))
    assert "TP 31" in printed(TALLY)


def test_rich_keeps_within_its_width():
    for width in (60, 100):
        few = eg.estimate(eg.Tally(tp=9, tn=27, fp=3, fn=21), delta=1e-5)
        assert max(map(len, printed(few, width=width).splitlines())) <= width


def test_the_library_needs_no_jinja_and_no_matplotlib():
    """Neither to be imported, nor for what a notebook shows."""
    code = (
        "import sys; sys.modules['jinja2'] = sys.modules['matplotlib'] = None\n"
        "import epsgauge as eg\n"
        "post = eg.estimate(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)\n"
        "assert not [name for name in sys.modules if name.startswith('epsgauge.reporting')]\n"
        "assert '<svg' in post._repr_html_()\n"
        "import rich; rich.print(post)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout  # a pipe gets plain text


def test_a_posterior_at_zero_has_a_picture():
    page = shown(eg.estimate(eg.Tally(tp=0, tn=500, fp=0, fn=500), delta=0.1))
    assert pictures(page) == 1
    assert "Pr[ε = 0] &gt; 0.999" in page
    assert np.isclose(float(eg.estimate(eg.Tally(tp=0, tn=500, fp=0, fn=500), delta=0.1).mass_at_zero), 1, atol=0.05)
