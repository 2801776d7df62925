"""What the pictures show, and that they can be drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.figures.cdfs import cdfs
from epsgauge.figures.charts import chart
from epsgauge.figures.contours import contours
from epsgauge.figures.density import density
from epsgauge.figures.region import advantage, region
from epsgauge.numbers import span
from epsgauge.paper import canvas, draw
from epsgauge.paper.figures import FIGURES, chosen, posterior_of, write
from epsgauge.paper.sizes import sizes
from epsgauge.stats.region import contains

TALLY = eg.Tally(tp=65, tn=75, fp=25, fn=35)
POSTERIORS = {
    "eps": eg.estimate(TALLY, delta=1e-5),
    "eps, mass at 0": eg.estimate(eg.Tally(tp=50, tn=52, fp=50, fn=48), delta=0.05),
    "eps, a count of 0": eg.estimate(eg.Tally(tp=487, tn=1, fp=512, fn=0), delta=1e-5),
    "eps, narrow": eg.estimate(eg.Tally(tp=600_000, tn=600_000, fp=400_000, fn=400_000), delta=1e-5),
    "eps, no data": eg.estimate(eg.Tally(tp=0, tn=0, fp=0, fn=0), delta=1e-5),
    "delta": eg.estimate_delta(TALLY, eps=0.5),
    "mu": eg.estimate_mu(TALLY),
    "eps if gaussian": eg.estimate_mu(TALLY).eps_at(1e-5),
}


# Density


@pytest.mark.parametrize("posterior", POSTERIORS.values(), ids=POSTERIORS.keys())
def test_a_density_integrates_to_what_is_not_at_0(posterior: eg.Posterior) -> None:
    shown = density(posterior)
    left, right = shown.x[0], shown.x[-1]
    inside = posterior.cdf(right) - posterior.cdf(left)
    assert trapezoid(shown.pdf, shown.x) == pytest.approx(inside, abs=1e-4)
    assert inside + shown.mass_at_zero * (left == 0) > 0.98
    assert shown.mass_at_zero == posterior.mass_at_zero
    assert np.all(np.diff(shown.x) > 0)
    assert np.all(np.isfinite(shown.pdf))


def test_a_density_shows_the_claim_wherever_it_is() -> None:
    near = density(POSTERIORS["eps"]).x[-1]
    for claimed in (0.0, 0.5, 2 * near):
        shown = density(POSTERIORS["eps"], claimed=claimed)
        assert shown.x[0] <= claimed <= shown.x[-1]


def test_a_claim_far_away_does_not_flatten_the_curve() -> None:
    far = density(POSTERIORS["eps"], claimed=1000.0)
    assert far.x[-1] == density(POSTERIORS["eps"]).x[-1]
    assert far.claimed == 1000


def test_the_bars_are_the_intervals() -> None:
    shown = density(POSTERIORS["eps"], level=0.8, methods=("jeffreys", "bayes"))
    every = eg.intervals(TALLY, delta=1e-5, level=0.8)
    assert [(bar.method, bar.low, bar.high) for bar in shown.bars] == [
        (name, every[name].low, every[name].high) for name in ("jeffreys", "bayes")
    ]


def test_a_density_is_of_one_tally() -> None:
    with pytest.raises(InvalidInput, match=r"shape \(2,\)"):
        density(eg.estimate(eg.Tally(tp=[1, 2], tn=3, fp=4, fn=5), delta=1e-5))
    with pytest.raises(InvalidInput, match="'bootstrap'"):
        density(POSTERIORS["eps"], methods=("bootstrap",))
    with pytest.raises(InvalidInput, match="claimed must be"):
        density(POSTERIORS["eps"], claimed=-1.0)


# The others


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_corners_are_on_the_edge_of_the_region(delta: float) -> None:
    shown = region(eps=1.0, delta=delta)
    inward = 0.5 + (shown.corners - 0.5) * (1 - 1e-9)
    outward = shown.corners[1] * (1 - 1e-6)
    assert contains(*inward.T, eps=1.0, delta=delta).all()
    assert not contains(*outward, eps=1.0, delta=delta)


def test_the_line_of_the_advantage_goes_through_the_vertex() -> None:
    shown = advantage(eps=1.0, delta=0.1)
    assert shown.vertex.sum() == pytest.approx(1 - shown.bound, abs=1e-15)
    assert shown.line.sum(axis=1) == pytest.approx([1 - shown.bound] * 2, abs=1e-15)
    assert shown.vertex[0] == shown.vertex[1]


def test_the_contours_of_the_worked_example() -> None:
    posterior = eg.estimate(TALLY, delta=0.05)
    shown = contours(posterior, level=0.95, method="clopper-pearson")
    assert shown.rectangle is not None
    assert shown.other is not None
    assert shown.rectangle.mass == pytest.approx(0.96301, abs=5e-6)
    assert shown.other.mass == pytest.approx(0.99790, abs=5e-6)
    assert shown.credible.mass == pytest.approx(0.95, abs=1e-9)
    # the rectangle lies between the two regions: its near corner on one, its far corner on the other
    inner, outer = shown.other.inner, shown.other.outer
    assert eg_at(shown.rectangle.fnr[1], shown.rectangle.fpr[1]) == pytest.approx(inner.eps)
    corners = [eg_at(x, y) for x in shown.rectangle.fnr for y in shown.rectangle.fpr]
    assert max(corners) == pytest.approx(outer.eps)
    # the outlines are level sets, and nested
    levels = [posterior.joint.pdf(*outline.points.T) for outline in shown.outlines]
    assert all(np.ptp(level) < 1e-6 * level.max() for level in levels)
    assert np.all(np.diff([level.mean() for level in levels]) < 0)
    assert [outline.mass for outline in shown.outlines] == [0.2, 0.5, 0.8, 0.95]


def eg_at(fnr: float, fpr: float) -> float:
    from epsgauge.stats.region import eps_of_rates

    return float(eps_of_rates(fnr, fpr, delta=0.05))


def test_contours_need_one_posterior_of_eps() -> None:
    with pytest.raises(InvalidInput, match="one posterior of eps"):
        contours(POSTERIORS["mu"])
    with pytest.raises(InvalidInput, match="'bayes'"):
        contours(POSTERIORS["eps"], method="bayes")


def test_an_infinite_end_is_the_whole_square() -> None:
    shown = contours(eg.estimate(eg.Tally(tp=90, tn=100, fp=0, fn=10), delta=1e-5), method="clopper-pearson")
    assert shown.other is not None
    assert shown.other.outer.corners[1] == pytest.approx([0, 0], abs=1e-300)
    assert shown.other.mass <= 1


def test_the_sizes_meet_the_band_where_they_are_short_enough() -> None:
    shown = sizes(np.arange(100, 1601, 50), accuracy=0.6, half_width=0.15, delta=1e-5)
    assert [m.reached for m in shown.methods] == [544, 1423, 1478]
    for method in shown.methods:
        assert method.reached is not None
        assert method.at_reached is not None
        low, high = method.at_reached
        assert high - low == pytest.approx(0.30, abs=2e-4)
        centre = np.interp(method.reached, shown.n_samples, shown.centre)
        assert (low, high) == pytest.approx((centre - 0.15, centre + 0.15), abs=2e-3)
        assert np.all(np.diff(method.high - method.low)[shown.n_samples[1:] > 300] < 0)
    exact = eg.intervals(eg.Tally(tp=300, tn=300, fp=200, fn=200), delta=1e-5, level=0.9)
    at = list(shown.n_samples).index(1000)
    assert shown.methods[0].low[at] == pytest.approx(exact["bayes"].low, rel=1e-9)
    assert shown.methods[2].high[at] == pytest.approx(exact["clopper-pearson"].high, rel=1e-9)


def test_distribution_functions_rise_from_the_mass_at_0_to_1() -> None:
    posteriors = {f"m = {m}": posterior_of("cifar-worst-dp10", m) for m in (1, 1000)}
    shown = cdfs(posteriors)
    assert [curve.label for curve in shown.curves] == ["m = 1", "m = 1000"]
    assert shown.x[0] == 0
    for curve, posterior in zip(shown.curves, posteriors.values(), strict=True):
        # one value at a time or many at once: the last bit may differ
        assert curve.cdf[0] == pytest.approx(posterior.mass_at_zero, rel=1e-13, abs=1e-300)
        assert curve.cdf[-1] >= 0.995 - 1e-9
        assert np.all(np.diff(curve.cdf) >= 0)


def test_distribution_functions_are_of_one_quantity() -> None:
    with pytest.raises(InvalidInput, match="one quantity"):
        cdfs({"a": POSTERIORS["eps"], "b": POSTERIORS["mu"]})


# Drawing


def test_every_figure_of_the_paper_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(canvas.RC, "savefig.dpi", 50)  # coarse, to be quick
    for figure in FIGURES:
        for path in write(figure, tmp_path / "new" / "folder"):
            assert path.name.startswith(f"figure-{figure.number}-")
            content = path.read_bytes()
            assert content.startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
            assert f"Figure {figure.number}: {figure.title}".encode() in content
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 2 * len(FIGURES) == 20


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    figure = chosen(["contours"])[0]
    first = [path.read_bytes() for path in write(figure, tmp_path / "a")]
    second = [path.read_bytes() for path in write(figure, tmp_path / "b")]
    assert first == second
    assert figure.title.encode() in first[0]
    assert b"<dc:date>" not in first[0]


@pytest.mark.parametrize("name", ["eps, mass at 0", "eps, narrow", "delta", "mu"])
def test_any_posterior_can_be_drawn(tmp_path: Path, name: str) -> None:
    posterior = POSTERIORS[name]
    drawn = chart("density", posterior, claimed=0.3).save(tmp_path / "density.svg").read_text(encoding="utf-8")
    symbol, ends = posterior.family.symbol, posterior.interval(0.90)
    interval = span(float(ends.low), float(ends.high))
    for text in (f"claimed {symbol} = 0.3", f"90 % credible {interval}", f"{symbol}{posterior.family.given}"):
        assert text in drawn
    assert ("Pr[ε = 0] =" in drawn) == (name == "eps, mass at 0")


ENDS = POSTERIORS["eps, a count of 0"].interval(0.90)
PRINTED = f"[{ENDS.low:.3f}, {ENDS.high:.3f}]"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("density", {"claimed ε = 10", "● Pr[ε = 0] = 0.00327", f"Bayesian 90 % credible {PRINTED}"}),
        ("region", {"(v, v)", "(1 − v, 1 − v)", "(0, 1 − δ)", "(δ, 1)", "ε = 2", "ε = 4"}),
        ("contours", {"its rectangle of rates: holds 96.3 %"}),
        ("sizes", {"544", "1423", "1478", "± 0.15", "Bayesian", "Jeffreys", "Clopper-Pearson"}),
        ("cifar10-worst", {"m = 1", "m = 10", "m = 100", "m = 1000"}),
        ("advantage", {"(v, v)", "FNR + FPR\n= 1 − 0.516"}),
        ("convergence", {"contours around 20, 50, 80, 95 % of the posterior"}),
    ],
)
def test_a_figure_of_the_paper_says_what_it_shows(name: str, said: set[str]) -> None:
    assert said <= texts(chosen([name])[0].make())


def texts(figure: Any) -> set[str]:
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text)}


def test_a_region_without_delta_has_two_named_corners(tmp_path: Path) -> None:
    drawn = draw.region(region(eps=1.0, delta=0.0))
    assert {text for text in texts(drawn) if text.startswith("(")} == {"(v, v)", "(1 − v, 1 − v)"}
    assert canvas.save(drawn, tmp_path / "region.pdf").read_bytes().startswith(b"%PDF")


def test_drawing_leaves_matplotlib_as_it_was(tmp_path: Path) -> None:
    done = python(
        "import sys, matplotlib\n"
        "before = matplotlib.rcParams.copy()\n"
        "from epsgauge.figures import region\n"
        "from epsgauge.paper import canvas, draw\n"
        f"canvas.save(draw.region(region.region(eps=1.0, delta=0.1)), {str(tmp_path / 'region.svg')!r})\n"
        "print(matplotlib.rcParams.copy() == before, 'matplotlib.pyplot' in sys.modules)\n"
    )
    assert done.stdout == "True False\n", done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.gif", "must end in"), ("none/a.svg", "folder must exist"), ("folder.svg", "not be a folder")],
)
def test_a_bad_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InvalidInput, match=message):
        canvas.save(draw.region(region(eps=1.0, delta=0.1)), tmp_path / name)


def python(code: str) -> Any:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)


def test_what_a_picture_shows_is_computed_without_matplotlib() -> None:
    done = python(
        "import sys; sys.modules['matplotlib'] = None\n"
        "import epsgauge as eg\n"
        "from epsgauge.errors import MissingExtra\n"
        "from epsgauge.figures import charts, density\n"
        "from epsgauge.paper import draw\n"
        "import epsgauge.paper.figures\n"
        "shown = density.density(eg.estimate(eg.Tally(tp=65, tn=75, fp=25, fn=35), delta=1e-5))\n"
        "try:\n"
        "    draw.density(shown)\n"
        "except MissingExtra as error:\n"
        "    print(error)\n"
    )
    assert done.stdout == "this needs matplotlib. Install it with: pip install '.[plot]' in the folder of epsgauge\n", (
        done.stderr
    )
