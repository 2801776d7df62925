"""Clopper-Pearson and Jeffreys: limits, coverage by enumeration, and the ε interval of a rectangle."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import epsgauge as eg
from epsgauge.stats import rates
from epsgauge.stats.families import DeltaAtEps, EpsAtDelta, Mu
from epsgauge.stats.region import delta_of_rates, eps_of_rates, mu_of_rates

PAPER = json.loads((Path(__file__).parent / "reference" / "paper.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("k", [0, 1, 7, 19, 20])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_clopper_pearson_is_scipys(k, level):
    want = stats.binomtest(k, 20).proportion_ci(level, method="exact")
    got = rates.clopper_pearson(k, 20, level=level)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=1e-12)
    assert got.kind == "guaranteed"


@pytest.mark.parametrize(("sided", "alternative"), [("upper", "less"), ("lower", "greater")])
def test_one_sided_clopper_pearson(sided, alternative):
    want = stats.binomtest(3, 20, alternative=alternative).proportion_ci(0.95, method="exact")
    got = rates.clopper_pearson(3, 20, level=0.95, sided=sided)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=1e-12)


def test_jeffreys_and_its_footnote():
    got = rates.jeffreys(7, 20, level=0.9)
    assert (got.low, got.high) == pytest.approx(tuple(stats.beta.ppf([0.05, 0.95], 7.5, 13.5)), abs=1e-12)
    assert rates.jeffreys(0, 20, level=0.9).low == 0
    assert rates.jeffreys(20, 20, level=0.9).high == 1
    assert got.kind == "estimate"


def test_clopper_pearson_covers_by_enumeration_and_jeffreys_does_not_always():
    n, level, p = 30, 0.9, np.linspace(0.001, 0.999, 199)
    k = np.arange(n + 1)
    weights = stats.binom.pmf(k, n, p[:, None])
    coverage = {}
    for name in ("clopper_pearson", "jeffreys"):
        ends = getattr(rates, name)(k, n, level=level)
        coverage[name] = (weights * ((ends.low <= p[:, None]) & (p[:, None] <= ends.high))).sum(axis=1)
    assert coverage["clopper_pearson"].min() >= level
    assert coverage["jeffreys"].min() < level


@pytest.mark.parametrize(
    ("family", "of_rates"),
    [
        (EpsAtDelta(np.asarray(0.03)), lambda x, y: eps_of_rates(x, y, delta=0.03)),
        (EpsAtDelta(np.asarray(0.0)), lambda x, y: eps_of_rates(x, y, delta=0.0)),
        (DeltaAtEps(np.asarray(0.4)), lambda x, y: delta_of_rates(x, y, eps=0.4)),
        (Mu(), mu_of_rates),
    ],
    ids=["eps", "eps without delta", "delta", "mu"],
)
@pytest.mark.parametrize("cells", [(31, 96, 5, 68), (90, 100, 0, 10), (10, 5, 60, 50), (8, 9, 9, 8), (0, 12, 0, 9)])
def test_ends_are_the_extremes_over_the_whole_rectangle(family, of_rates, cells):
    """Against a dense grid over the rectangle, corners and edges included."""
    tp, tn, fp, fn = (np.array([float(c)]) for c in cells)
    alpha = 0.1
    low, high = rates.rectangle_interval(rates.clopper_pearson_limits, family, (fn, fn + tp), (fp, fp + tn), alpha)
    (x0, x1), (y0, y1) = (rates.clopper_pearson_limits(k, n, alpha / 4) for k, n in ((fn, fn + tp), (fp, fp + tn)))
    grid = of_rates(np.linspace(x0[0], x1[0], 401)[:, None], np.linspace(y0[0], y1[0], 401))
    spacing = 0.05  # of ε between neighbours of the grid, at most
    assert low[0] <= grid.min() + 1e-12
    assert low[0] == pytest.approx(grid.min(), abs=spacing)
    assert high[0] == pytest.approx(grid.max(), abs=1e-9)


def test_paper_tables():
    rows = PAPER["tables"]["rows"]
    tally = eg.Tally(**{c: [row[c] for row in rows] for c in ("tp", "tn", "fp", "fn")})
    result = eg.intervals(tally, delta=1e-5, level=0.9)
    for method, key in (("bayes", "bayes"), ("jeffreys", "jeffreys"), ("clopper-pearson", "cp")):
        want = np.array([[float(end) for end in row["recomputed"][key]] for row in rows])
        np.testing.assert_allclose(np.stack([result[method].low, result[method].high], 1), want, rtol=1e-9, atol=1e-9)


def test_corner_case_of_the_appendix():
    """At FPR = 0 ε is infinite, so the minimum is 3.124 at both upper limits, not 1.736."""
    row = eg.intervals(eg.Tally(tp=90, tn=100, fp=0, fn=10), delta=1e-5, level=0.9)["clopper-pearson"]
    assert row.low == pytest.approx(3.124368, abs=1e-6)
    assert row.high == np.inf


def test_perfect_attack_of_section_3_1():
    want = {"clopper-pearson": 5.8091, "jeffreys": 6.2543}
    for method, value in want.items():
        assert eg.largest_eps(2000, delta=1e-5, level=0.90, method=method) == pytest.approx(value, abs=5e-5)
    rows = eg.intervals(eg.Tally(tp=1000, tn=1000, fp=0, fn=0), delta=1e-5, level=0.9)
    assert rows["clopper-pearson"].low == pytest.approx(5.6006, abs=5e-5)
    assert rows["bayes"].low == pytest.approx(7.2072, abs=5e-5)


def test_clopper_pearson_for_eps_covers_by_enumeration():
    """Over all outcomes, on a grid of true rates, folded attacks included."""
    level = 0.8
    for n1, n0, delta in ((14, 14, 0.02), (5, 30, 0.0), (25, 4, 0.2)):
        j, k = np.arange(n1 + 1), np.arange(n0 + 1)
        tally = eg.Tally(fn=j[:, None], tp=n1 - j[:, None], fp=k, tn=n0 - k)
        row = eg.intervals(tally, delta=delta, level=level)["clopper-pearson"]
        for x in np.linspace(0, 1, 16):
            for y in np.linspace(0, 1, 16):
                eps = eps_of_rates(x, y, delta=delta)
                weight = stats.binom.pmf(j, n1, x)[:, None] * stats.binom.pmf(k, n0, y)
                assert (weight * ((row.low <= eps) & (eps <= row.high))).sum() >= level


def test_bad_input():
    with pytest.raises(eg.InvalidInput, match="k must be at most n, but got 5"):
        rates.clopper_pearson(5, 4, level=0.9)
    with pytest.raises(eg.InvalidInput, match="sided must be"):
        rates.jeffreys(1, 4, level=0.9, sided="left")
