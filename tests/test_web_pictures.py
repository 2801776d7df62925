"""Pictures for the web: well-formed, escaped, without inline style, readable on a phone, also in extreme cases."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from markupsafe import escape

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.figures import bars, contours, css, dependence, histogram, narrowing, percentiles, roc, ruler, style
from epsgauge.figures.cdfs import cdfs
from epsgauge.figures.chart import Chart
from epsgauge.figures.charts import CHARTS, chart, charts_of
from epsgauge.figures.density import density, density_of
from epsgauge.figures.groups import Group, Groups
from epsgauge.figures.labels import Flag, placed, wide
from epsgauge.figures.ladder import Ladder, Rung
from epsgauge.figures.ruler import Shown
from epsgauge.figures.scales import Scale, decades, power_name, tick_names, ticks
from epsgauge.figures.subject import Subject
from epsgauge.figures.words import Words
from epsgauge.methods.evidence import Evidence
from epsgauge.numbers import grouped
from epsgauge.paper import draw
from epsgauge.reporting.report import written
from epsgauge.scores.rules import judge

DRAW = {c.name: c.draw for c in CHARTS.values()} | {c.also.name: c.also.draw for c in CHARTS.values() if c.also}
HOSTILE = "<script>alert('1')</script> & \"long\" " + "name " * 12


def scores_of(tp: int, tn: int, fp: int, fn: int) -> eg.Scores:
    """Scores 1 and 0 with these counts at the threshold ½."""
    score, bit = np.repeat([1.0, 0.0, 1.0, 0.0], [tp, fn, fp, tn]), np.repeat([1, 1, 0, 0], [tp, fn, fp, tn])
    order = np.random.default_rng(0).permutation(len(bit))
    return eg.Scores(np.arange(len(bit)), np.zeros(len(bit)), bit[order], score[order], "substitute")


def normal_scores(n: int, m: int = 1, *, seed: int = 0) -> eg.Scores:
    rng = np.random.default_rng(seed)
    bit = rng.integers(0, 2, (n, m))
    score = rng.normal(size=(n, m)) + bit + 0.5 * rng.normal(size=(n, 1))
    return eg.Scores(np.repeat(np.arange(n), m), np.tile(np.arange(m), n), bit.ravel(), score.ravel(), "substitute")


def with_outliers() -> eg.Scores:
    table = normal_scores(100)
    score = table.score.copy()
    score[:3] = [1e308, -1e308, 400.0]
    return replace(table, score=score)


# name -> scores, δ, claimed ε
CASES: dict[str, tuple[eg.Scores, float, float | None]] = {
    "usual": (normal_scores(300), 1e-5, 4.0),
    "perfect": (scores_of(1000, 1000, 0, 0), 1e-5, 8.0),
    "no leak": (scores_of(500, 500, 500, 500), 0.01, 1.0),
    "worse than chance": (scores_of(30, 30, 70, 70), 1e-5, 0.0),
    "low FPR": (scores_of(31, 996, 5, 968), 1e-5, 1.0),
    "tiny": (normal_scores(10, seed=3), 1e-5, None),
    "delta 0, claim 50": (scores_of(300, 299, 1, 0), 0.0, 50.0),
    "claim infinite": (normal_scores(50), 1e-5, math.inf),
    "many pairs": (normal_scores(40, 6), 1e-5, 2.0),
    "tied": (scores_of(200, 0, 200, 0), 1e-5, 1.0),
    "outliers": (with_outliers(), 1e-5, 500.0),
    "a million": (scores_of(6, 6, 4, 4), 1e-5, 1.0),
}


@pytest.fixture(scope="module")
def base() -> eg.Audit:
    return eg.audit(normal_scores(60), rule="given", threshold=0.5)


def ladder_of(eps: float, claimed: float | None) -> Ladder:
    finite = None if claimed is None or math.isinf(claimed) else claimed  # an infinite one is none
    bounds = [Shown(value, "weighted", "Weighted", 0.99, "guaranteed") for value in (0.0, eps / 2)]
    curve = Shown(eps, "curve", "Curve", 0.99, "guaranteed", "if …", "if DP-SGD", conditional=True)
    rungs = (Rung("<nobody>", (bounds[0],), "cannot decide"), Rung("everybody", (bounds[1], curve), "violation"))
    return Ladder(1e-5, 0.99, finite, {"a training": rungs, "another": rungs[1:]}, max(finite or 0.0, eps) or 1.0)


def groups_of() -> Groups:
    return Groups(0.9, "guaranteed", (Group("<b>old</b>", 0.6, 0.4, 0.8), Group("young", -0.1, -0.4, 0.2)), -0.4)


def shown_of(base: eg.Audit, name: str) -> dict[str, Any]:
    """What every picture of a case shows, by the name of the function that draws it."""
    scores, delta, claimed = CASES[name]
    judged = judge(scores, eg.Given(0.5), delta=delta)
    tally = eg.Tally(tp=600_000, tn=600_000, fp=400_000, fn=400_000) if name == "a million" else judged.tally
    rows = eg.intervals(tally, delta=delta)
    subject = Subject.of(rows, claimed=claimed)
    found = replace(
        base,
        evidence=Evidence(judged),
        posterior=rows.posterior,
        facts=replace(base.facts, pairs_per_model=judged.pairs_per_model),
        settings=base.settings.model_copy(update={"delta": delta}),
    )
    limit = None if claimed is None else roc.limit_of(claimed, delta)
    return {
        "ruler": ruler.ruler(subject),
        "density": density(rows.posterior, claimed=claimed, points=80),
        "cdf": density(rows.posterior, claimed=claimed, points=80),
        "bars": bars.bars(subject),
        "contours": contours.contours(rows.posterior, level=0.9, masses=(0.5, 0.95)),
        "histogram": histogram.histogram(found),
        "roc": replace(roc.roc(found), claim=limit),
        "percentiles": percentiles.percentiles(found),
        "narrowing": replace(narrowing.narrowing(found), claimed=claimed),
        "dependence": dependence.dependence(found),
        "cdfs": cdfs({"m = 1": rows.posterior, HOSTILE: rows.posterior}),
        "ladder": ladder_of(float(rows.posterior.median()), claimed),
        "groups": groups_of(),
    }


@pytest.fixture(scope="module")
def pictures(base: eg.Audit) -> dict[str, dict[str, str]]:
    """Every case's pictures, as text; made once. "a million" is of counts, and its scores are few."""
    out: dict[str, dict[str, str]] = {}
    for place, name in enumerate(CASES):
        made = {
            kind: DRAW[kind](shown, prefix=f"c{place}-")
            for kind, shown in shown_of(base, name).items()
            if shown is not None
        }
        made["roc-log"] = DRAW["roclog"](shown_of_roc(base, name), prefix=f"c{place}-")
        out[name] = made
    return out


def shown_of_roc(base: eg.Audit, name: str) -> roc.Roc:
    scores, delta, claimed = CASES[name]
    found = roc.roc(replace(base, evidence=Evidence(judge(scores, eg.Given(0.5), delta=delta))))
    return replace(found, claim=None if claimed is None else roc.limit_of(claimed, delta))


def text_of(picture: str) -> str:
    """All that a reader can read in it."""
    root = ElementTree.fromstring(picture)
    return " | ".join("".join(element.itertext()) for element in root.iter() if element.tag.endswith("}text"))


@pytest.mark.parametrize("name", CASES)
def test_a_picture_is_sound(pictures: dict[str, dict[str, str]], name: str) -> None:
    seen: set[str] = set()
    defined = set(re.findall(r"\.eg \.([a-z-]+)|,\.eg \.([a-z-]+)", css.STYLE))
    classes = {one or other for one, other in defined}
    for kind, picture in pictures[name].items():
        root = ElementTree.fromstring(picture)
        assert root.get("role") == "img"
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert not seen & set(ids), kind
        seen |= set(ids)  # type: ignore[arg-type]
        assert set(root.get("aria-labelledby", "").split()) <= set(ids)
        assert all(part.strip() for part in (root[0].text or "", root[1].text or ""))
        used = {word for element in root.iter() for word in (element.get("class") or "").split()} - {"eg"}
        assert used <= classes, used - classes
        assert not any(element.get("style") for element in root.iter())
        assert not re.search(r'="[^"]*\b(nan|inf)\b[^"]*"', picture), kind
        assert all(mark not in picture for mark in ("<script", "#0", "#D", "javascript", "href"))
        places = " ".join(v for e in root.iter() for k, v in e.items() if k in ("d", "x", "y", "x2", "y2", "width"))
        assert all(abs(float(number)) < 5_000 for number in re.findall(r"-?[0-9.]+", places))
        assert len(picture) < 30_000


def test_names_of_runs_stay_text(pictures: dict[str, dict[str, str]]) -> None:
    picture = pictures["usual"]["cdfs"]
    assert "&lt;script&gt;" in picture
    assert "<script>alert" in text_of(picture)
    assert HOSTILE in "".join(ElementTree.fromstring(picture).itertext())
    rows = eg.intervals(eg.Tally(tp=6, tn=7, fp=3, fn=4), delta=0)
    assert 'id="a-b--ruler-t"' in ruler.draw(ruler.ruler(Subject.of(rows)), prefix='a b"-')


def test_the_numbers_can_be_read(pictures: dict[str, dict[str, str]]) -> None:
    usual, rows = pictures["low FPR"], eg.intervals(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    assert (round(float(rows["bayes"].low), 2), round(float(rows["bayes"].high), 2)) == (1.09, 2.65)
    for kind in ("ruler", "density", "bars", "narrowing"):
        assert "1.09 – 2.65" in text_of(usual[kind]), kind
    assert "ε ≥ 0.6 guaranteed at 95 % (Clopper-Pearson)" in text_of(usual["ruler"])
    assert "claimed ε = 1" in text_of(usual["ruler"])
    assert "Pr[ε > 1] = 0.969" in text_of(usual["cdf"])
    assert "31 of 999 guessed 1 (3.1 %)" in text_of(usual["histogram"])
    assert "FPR 0.005, TPR 0.031" in text_of(usual["roc"])
    assert "more than ε = 1, δ = 1e-05 allows" in text_of(usual["roc-log"])
    assert "claimed ε = ∞ →" in text_of(pictures["claim infinite"]["ruler"])
    assert "claimed ε = 500 →" in text_of(pictures["outliers"]["density"])
    assert "Pr[ε = 0] = 0.345" in text_of(pictures["no leak"]["density"])
    assert "claimed" not in text_of(pictures["tiny"]["ruler"])
    assert "1 lower" in text_of(pictures["outliers"]["histogram"])
    assert "2 higher" in text_of(pictures["outliers"]["histogram"])
    assert "design effect" in text_of(pictures["many pairs"]["dependence"])


def test_a_bar_without_end_is_an_arrow(pictures: dict[str, dict[str, str]]) -> None:
    assert pictures["perfect"]["bars"].count("<path") == 2  # Jeffreys and Clopper-Pearson
    assert pictures["usual"]["bars"].count("<path") == 0


def test_a_violation_is_red() -> None:
    rows = eg.intervals(eg.Tally(tp=90, tn=90, fp=10, fn=10), delta=1e-5)
    shown = ruler.ruler(Subject.of(rows, claimed=0.5))
    assert "text-red" not in ruler.draw(shown)
    assert "text-red" in ruler.draw(replace(shown, kind="violation"))


# Style


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [css.LIGHT, css.DARK], ids=["light", "dark"])
def test_letters_have_contrast(colours: dict[str, str]) -> None:
    """WCAG AA: 4.5 for letters, 3 for marks that carry meaning by themselves."""
    paper = _luminance(colours["paper"])
    for name, least in [(n, 4.5) for n in colours if n.endswith("-text")] + [("ink", 7), ("muted", 4.5), ("blue", 3)]:
        other = _luminance(colours[name])
        ratio = (max(paper, other) + 0.05) / (min(paper, other) + 0.05)
        assert ratio >= least, name
    assert set(css.LIGHT) == set(css.DARK)


# Scales and labels


@pytest.mark.parametrize(
    ("low", "high", "most"), [(0, 1, 5), (0, 0.0013, 6), (-3.2, 17, 4), (0, 2e6, 5), (5, 5, 3), (0.9, 1, 3)]
)
def test_ticks_are_round_and_few(low: float, high: float, most: int) -> None:
    values = ticks(low, high, most)
    assert 1 <= len(values) <= most
    assert all(low - 1e-9 <= v <= high + 1e-9 for v in values)
    assert len(set(tick_names(values))) == len(values)


def test_names_of_ticks() -> None:
    assert tick_names([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert tick_names([-2.0, 0.0, 2.0]) == ["−2", "0", "2"]
    assert [power_name(v) for v in decades(1e-4, 1.0, 5)] == ["10⁻⁴", "10⁻³", "0.01", "0.1", "1"]
    assert decades(1e-6, 1.0, 4) == pytest.approx([1e-6, 1e-4, 1e-2, 1.0])
    assert grouped(1234567) == "1\u2009234\u2009567"


def test_a_scale_goes_both_ways_and_stays_inside() -> None:
    linear, log = Scale(0, 10, 100, 0), Scale(0.001, 1, 0, 300, log=True)
    assert [linear(v) for v in (0, 5, 10, 99, -1)] == [100, 50, 0, 0, 100]
    assert [log(v) for v in (0.001, 0.1, 1, 0)] == pytest.approx([0, 200, 300, 0])
    assert log.all([0.001, 0.1, 1]) == pytest.approx([0, 200, 300])


def test_flags_never_overlap() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        flags = [
            Flag(float(x), "claimed ε = 4.56"[: int(n)])
            for x, n in zip(rng.uniform(0, 480, 4), rng.integers(3, 17, 4), strict=True)
        ]
        rows: dict[int, list[tuple[float, float]]] = {}
        for p in placed(flags, 4, 476):
            start = p.at - {"start": 0, "middle": 0.5, "end": 1}[p.anchor] * wide(p.flag.text)
            assert start >= 3.9
            assert start + wide(p.flag.text) <= 476.1
            rows.setdefault(p.row, []).append((start, start + wide(p.flag.text)))
        for row in rows.values():
            row.sort()
            assert all(a[1] < b[0] for a, b in itertools.pairwise(row))


# The table of charts


def whole_audits() -> dict[str, eg.Audit]:
    scores, many, stated = normal_scores(120), normal_scores(40, 4), {"claimed_adjacency": "substitute"}
    of_eps = {"claimed_eps": 1.0, "claimed_delta": 1e-5, **stated}
    made = eg.audit(scores, rule="given", threshold=0.5)
    adversary = replace(made.verdict.adversary, attack="from elsewhere")
    return {
        "one-run": eg.audit(many, rule="given", threshold=0.5, verdict_method="one-run", **of_eps),
        "gaussian": eg.audit(scores, rule="given", threshold=0.5, claimed_mu=1.0, **stated),
        "an attack from elsewhere": replace(made, verdict=replace(made.verdict, adversary=adversary)),
    }


@pytest.mark.parametrize(("name", "found"), whole_audits().items(), ids=lambda value: value if value in CHARTS else "")
def test_every_chart_is_drawn_whatever_method_and_attack(name: str, found: eg.Audit) -> None:
    subject = Subject.of(found)
    assert name in ("an attack from elsewhere", *(bar.method for bar in subject.bars))
    charts = charts_of(subject)
    assert {c.name for c in CHARTS.values()} - {c.name for c in charts} <= {"cdfs", "dependence", "groups", "ladder"}
    page = written(found, "html")
    for each in charts:
        drawn = each.drawn(subject)
        assert not drawn.absent
        assert all(svg in page for svg in drawn.svgs)
        assert drawn.words is not None
        assert escape(drawn.words.shows) in page
    assert all(bar.label in text_of(chart("bars", found).svgs[0]) for bar in subject.bars)
    assert histogram.histogram(found).axis == "score"
    assert draw.density(density_of(subject)).axes  # in matplotlib each method has a colour too
    assert style.method_colour(name).startswith("#")


def test_a_chart_is_one_row(base: eg.Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the table is on the page of the report, with its title and its words."""
    mine = Chart(
        "mine",
        "A chart of mine",
        "attack",
        ("audit",),
        lambda subject: subject.audit.judged.n_models,
        lambda n, prefix="": f"<svg>{n} models</svg>",
        lambda subject, n: Words("It shows how many.", "It hides who."),
    )
    monkeypatch.setitem(CHARTS, "mine", mine)
    page = written(base, "html")
    for text in ("<h3>A chart of mine</h3>", "<svg>60 models</svg>", "It shows how many.", "It hides who."):
        assert text in page


def test_a_chart_by_its_name(base: eg.Audit, tmp_path: Path) -> None:
    rows = eg.intervals(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    first, second = chart("ruler", rows, claimed=1.0), chart("ruler", base)
    assert "claimed ε = 1" in text_of(first.svgs[0])
    ids = [re.findall(r'id="([^"]*)"', drawn._repr_html_()) for drawn in (first, second)]
    assert not set(ids[0]) & set(ids[1])  # both may be on one page
    with pytest.raises(InvalidInput, match=r"a chart must be one of ruler, .* but got 'pie'"):
        chart("pie", rows)
    with pytest.raises(InvalidInput, match="'roc' is of audit, but got counts"):
        chart("roc", rows)
    with pytest.raises(InvalidInput, match="'dependence' is of several pairs, but got audit"):
        chart("dependence", base)
    with pytest.raises(InvalidInput, match="both bits"):
        chart("roc", replace(base, evidence=Evidence(judge(scores_of(9, 0, 0, 9), eg.Given(0.5), delta=0.0))))


def test_a_file_needs_nothing_else(base: eg.Audit, tmp_path: Path) -> None:
    path = chart("density", base).save(tmp_path / "posterior.svg")
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert text.startswith("<?xml")
    assert text_of(text) == text_of(chart("density", base).svgs[0])
    assert "var(" not in text  # which few programs besides browsers know
    assert css.LIGHT["blue"] in text
    assert float(root.get("height", "0")) > 200
    assert text == chart("density", base).save(tmp_path / "again.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.png", "must end in .svg"), ("none/a.svg", "folder must exist"), ("folder.svg", "not be a folder")],
)
def test_a_bad_file_is_refused(base: eg.Audit, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InvalidInput, match=message):
        chart("ruler", base).save(tmp_path / name)


# In a browser

OVERLAPS = """() => {
  const bad = [];
  for (const svg of document.querySelectorAll('svg.eg')) {
    const frame = svg.getBoundingClientRect(), name = svg.querySelector('title').id;
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const [text, r] of texts) {
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 2 || r.bottom > frame.bottom + 2)
        bad.push(`${name} cuts off ${text}`);
      for (const [other, s] of texts) {
        const wide = Math.min(r.right, s.right) - Math.max(r.left, s.left);
        const high = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
        if (r !== s && wide > 1 && high > 3) bad.push(`${name}: ${text} over ${other}`);
      }
    }
  }
  return bad;
}"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('svg.eg text')].map(text => {
  const matrix = text.getScreenCTM();
  return Math.hypot(matrix.a, matrix.b) * parseFloat(getComputedStyle(text).fontSize);
}))"""


def test_no_text_overlaps_or_is_cut_off(pictures: dict[str, dict[str, str]], tmp_path: Path, browser: Any) -> None:
    figures = "".join(f"<figure>{picture}</figure>" for case in pictures.values() for picture in case.values())
    page = tmp_path / "gallery.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><style>{css.STYLE}body,figure{{margin:0}}</style>{figures}",
        encoding="utf-8",
    )
    tab = browser.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(page.as_uri())
    for width in (340, 390, 500, 760):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate(OVERLAPS) == [], width
        assert tab.evaluate(SMALLEST) >= 11.9, width
    assert said == []
    tab.close()
