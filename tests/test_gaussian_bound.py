"""Lower bounds of μ: known values, coverage by enumeration, an obvious twin, and each step of the exact one's proof."""

import sys
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx
from scipy import optimize, special, stats

import epsgauge as eg
from epsgauge.bounds import exact
from epsgauge.bounds.cells import Rectangle, Tail, _clipped, improbable
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.bounds.ordering import MuOrdering
from epsgauge.bounds.outcomes import DownSet, window
from epsgauge.bounds.regions import CURVE, MuRegion, _highest
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import GaussianEps, Mu
from epsgauge.stats.law import Law
from epsgauge.stats.quick import CLOPPER_PEARSON
from epsgauge.stats.region import gaussian_eps, mu_of_rates

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from enumerate_exact import MuCase


def tally_of(tp, tn, fp, fn):
    return eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn)


def bound(*cells, delta=1e-5, level=0.95, **kwargs):
    return gaussian_bound(tally_of(*cells), delta=delta, level=level, **kwargs).mu


def curve(x, mu):
    return special.ndtr(-special.ndtri(x) - mu)


@pytest.mark.parametrize(
    ("cells", "clopper_pearson", "want", "bayes"),
    [
        ((31, 996, 5, 968), 0.2396, 0.4283, 0.4346),
        ((63, 511, 2, 424), 0.9203, 1.1222, 1.1493),
        ((65, 75, 25, 35), 0.5156, 0.7450, 0.7510),
        ((600, 600, 400, 400), 0.3470, 0.4116, 0.4134),
        ((1000, 1000, 0, 0), 5.3598, 5.9327, 6.1190),
    ],
)
def test_between_clopper_pearson_and_the_posterior(cells, clopper_pearson, want, bayes):
    result = gaussian_bound(tally_of(*cells), delta=1e-5, level=0.95)
    assert (result.delta, result.level, result.method) == (1e-5, 0.95, "exact")
    assert result.mu == pytest.approx(want, abs=6e-5)
    assert result.eps == gaussian_eps(result.mu, delta=1e-5)
    assert bound(*cells, direction="either") == pytest.approx(want, abs=6e-5)
    assert bound(*cells, method="clopper-pearson") == pytest.approx(clopper_pearson, abs=6e-5)
    assert eg.estimate_mu(tally_of(*cells)).lower_bound(0.95) == pytest.approx(bayes, abs=6e-5)
    assert clopper_pearson < want < bayes


@pytest.mark.parametrize("cells", [(600, 600, 400, 400), (31, 996, 5, 968), (50, 40, 60, 50), (100, 100, 0, 0)])
def test_clopper_pearson_in_mu_is_that_of_the_methods(cells):
    counts = Counts(*(np.array([float(c)]) for c in cells))
    result = gaussian_bound(tally_of(*cells), delta=1e-5, level=0.95, method="clopper-pearson")
    lower = CLOPPER_PEARSON.lower_bound
    assert result.method == "clopper-pearson"
    assert result.mu == lower(Mu(), counts, 1 - 0.95, (0.5, 0.5))[0]
    assert result.eps == lower(GaussianEps(np.array([1e-5])), counts, 1 - 0.95, (0.5, 0.5))[0]
    assert "Gaussian DP" in result.under
    assert bound(*cells, method="clopper-pearson", direction="either") <= result.mu


@pytest.mark.parametrize("n", [30, 1000, 50_000])
def test_perfect_attack_has_a_closed_form(n):
    """Its tail is the outcome without errors alone, which is most probable at FNR = FPR = Φ(−μ/2)."""
    want = -2 * special.ndtri(1.0 - (0.05 * (1 - exact.GAMMA_SHARE)) ** (1 / (2 * n)))
    for direction in ("right", "either"):
        assert want - 1.1e-5 <= bound(n, n, 0, 0, direction=direction) <= want


@pytest.mark.parametrize(
    ("n1", "n0", "level", "direction"),
    [(6, 6, 0.95, "either"), (7, 3, 0.9, "either"), (3, 4, 0.6, "either"), (4, 8, 0.9, "right"), (2, 5, 0.3, "right")],
)
def test_covers_by_enumeration(n1, n0, level, direction):
    """All outcomes, on the whole square of rates, and where coverage is smallest; it costs little more than it must."""
    case = MuCase(n1, n0, 0.0, level, direction)
    bounds = case.bounds()
    assert bounds.max() > 0
    assert case.coverage_on_grid(bounds, points=61) >= level
    worst = case.coverage_on_boundaries(bounds)
    assert worst >= level
    assert worst <= level + (1 - level) * exact.GAMMA_SHARE + 0.01


class Twin:
    """The same bound in the most obvious way: every outcome by itself, no cells, no windows, dense grids."""

    def __init__(self, n1, n0, level, direction):
        self.n1, self.n0, self.level, self.folded = n1, n0, level, direction == "either"
        few = np.array([[self.rank(i, j) for j in range(n0 + 1)] for i in range(n1 + 1)])
        self.ranks = np.maximum(few, few[::-1, ::-1]) if self.folded else few

    def beyond(self, fn, fp, mu):
        x = np.sin((np.arange(4000) + 0.5) / 4000 * np.pi / 2) ** 2  # Beta(1/2, 1/2) is even in the angle
        weight = x**fn * (1 - x) ** (self.n1 - fn)
        return (weight @ special.betainc(fp + 0.5, self.n0 - fp + 0.5, curve(x, mu))) / weight.sum()

    def rank(self, fn, fp):
        at_zero = self.beyond(fn, fp, 0.0) - self.level
        return at_zero if at_zero < 0 else optimize.brentq(lambda mu: self.beyond(fn, fp, mu) - self.level, 0.0, 40.0)

    def bound(self, fn, fp):
        event = (self.ranks >= self.ranks[fn, fp] - 1e-5).astype(float)
        alpha = 1 - self.level
        gamma = alpha * exact.GAMMA_SHARE
        limits = [stats.binomtest(k, n).proportion_ci(1 - gamma / 2) for k, n in ((fn, self.n1), (fp, self.n0))]
        (x0, x1), (y0, y1) = ((c.low, c.high) for c in limits)
        xs, ys = np.linspace(x0, x1, 801), np.linspace(y0, y1, 801)
        inner = [q.ravel() for q in np.meshgrid(xs[::20], ys[::20])]

        def sup(mu):
            x = np.concatenate([xs, curve(ys, mu), xs, 1 - curve(1 - ys, mu), inner[0]])
            y = np.concatenate([curve(xs, mu), ys, 1 - curve(1 - xs, mu), ys, inner[1]])
            here = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1) & (y >= curve(x, mu) - 1e-12)
            if self.folded:
                here &= 1 - y >= curve(1 - x, mu) - 1e-12
            rows = stats.binom.pmf(np.arange(self.n1 + 1), self.n1, x[here, None])
            cols = stats.binom.pmf(np.arange(self.n0 + 1), self.n0, y[here, None])
            return np.einsum("pi,ij,pj->p", rows, event, cols, optimize=True).max(initial=0.0)

        if sup(0.0) + gamma > alpha:
            return 0.0
        low, high = 0.0, 10.0
        while high - low > 1e-5:
            middle = (low + high) / 2
            low, high = (low, middle) if sup(middle) + gamma > alpha else (middle, high)
        return high


@pytest.mark.parametrize(
    ("n1", "n0", "level", "direction"), [(3, 3, 0.8, "either"), (5, 2, 0.9, "right"), (5, 4, 0.95, "either")]
)
def test_is_its_obvious_twin(n1, n0, level, direction):
    twin = Twin(n1, n0, level, direction)
    seen = 0
    for fn in range(n1 + 1):
        for fp in range(n0 // 2 + 1):
            want = twin.bound(fn, fp)
            got = bound(n1 - fn, n0 - fp, fp, fn, level=level, direction=direction)
            assert got <= want + 1e-5
            assert got == pytest.approx(want, abs=1e-3)
            seen += want > 0
    assert seen


def test_the_curve_is_rounded_down_and_its_mirror_image_up(monkeypatch):
    """ndtr(−ndtri(x) − μ) has a relative error below 3e-13 wherever it is above 1e-300; 1e-10 is taken off."""
    monkeypatch.setattr(ctx, "prec", 200)
    rng = np.random.default_rng(2)
    x = np.concatenate([10.0 ** rng.uniform(-300, 0, 80), 1 - 10.0 ** rng.uniform(-15.5, 0, 80), rng.uniform(0, 1, 80)])
    for mu in (0.0, 1e-5, 0.7, 6.0, 25.0):
        region = MuRegion(mu)
        plain, least, most = curve(x, mu), region.least(x), region.most(x)
        for i, rate in enumerate(x):
            z = exact_probit(float(rate))
            true, mirrored = normal_cdf(-z - mu), normal_cdf(z - mu)  # f(x) and f(1 − x)
            assert 0 <= least[i] <= true
            assert mirrored * (1 - 2 * CURVE) - 3e-15 <= 1 - arb(float(most[i])) <= mirrored
            if true > 1e-299:
                assert abs(plain[i] - true) <= 3e-13 * true
                assert least[i] >= true * (1 - 2 * CURVE)
    ends = np.array([0.0, 1.0])
    np.testing.assert_array_equal(MuRegion(3.0).least(ends), [1.0 - CURVE, 0.0])
    np.testing.assert_allclose(MuRegion(3.0).most(ends), [1.0, CURVE], rtol=1e-4)
    np.testing.assert_array_equal(MuRegion(3.0, folded=False).most(ends), [1.0, 1.0])


def normal_cdf(z):
    return (-arb(z) / arb(2).sqrt()).erfc() / 2


def exact_probit(rate):
    """Newton's steps in ball arithmetic, from the nearest double."""
    tail = min(rate, 1 - rate)  # 1 − rate is exact above a half
    z = arb(float(special.ndtri(tail)))
    for _ in range(3):
        z = (z - (normal_cdf(z) - tail) * (z * z / 2).exp() * (2 * arb.pi()).sqrt()).mid()
    return z if tail == rate else -z


def random_cell(rng, mu):
    """A cell that has a piece of the curve, or of its mirror image, and slopes that are often parallel to it there."""
    size, x = 10.0 ** rng.uniform(-6, -0.5), rng.uniform(0.001, 0.999)
    centre = np.array([x, np.clip(curve(x, mu) + size * rng.uniform(-0.2, 0.2), 1e-4, 1 - 1e-4)])
    slopes = -np.array([np.exp(-mu * special.ndtri(x) - mu**2 / 2) * np.exp(rng.normal(0, min(1, size))), 1.0])
    if rng.random() < 0.5:
        centre, slopes = 1 - centre, -slopes
    if rng.random() < 0.2:
        slopes = slopes * rng.choice([-1, 1], 2)
    half = size * rng.uniform(0.1, 0.5, 2)
    (x0, y0), (x1, y1) = np.clip(centre - half, 1e-5, 1 - 1e-5), np.clip(centre + half, 1e-5, 1 - 1e-5)
    return np.array([[x0], [x1], [y0], [y1]]), slopes


def largest_value(points, cell, slopes, mu, folded):
    """Of the plane, at those of the points that are in the cell and in the region."""
    x, y = (np.concatenate(q) for q in zip(*points, strict=True))
    x0, x1, y0, y1 = cell[:, 0]
    inside = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1) & (y >= curve(x, mu) * (1 - 1e-14))
    if folded:
        inside &= 1 - y >= curve(1 - x, mu) * (1 - 1e-14)
    values = slopes[0] * (x - (x0 + x1) / 2) + slopes[1] * (y - (y0 + y1) / 2)
    return values[inside].max(initial=-np.inf)


@pytest.mark.parametrize("folded", [True, False])
def test_no_point_of_a_cell_is_above_the_highest_plane(folded):
    """Against points along each curve and along the edges; and it is hardly higher than needed."""
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(200):
        mu = float(rng.choice([0.0, 1e-5, 0.02, 0.5, 2.0, 5.0]))
        whole, slopes = random_cell(rng, mu)
        region = MuRegion(mu, folded)
        cell = _clipped(whole, region)
        if not cell.size:
            continue
        x0, x1, y0, y1 = cell[:, 0]
        x, y = np.linspace(x0, x1, 2001), np.linspace(y0, y1, 2001)
        edges = [(x, np.full_like(x, y0)), (x, np.full_like(x, y1)), (np.full_like(y, x0), y), (np.full_like(y, x1), y)]
        curves = [(x, curve(x, mu)), (curve(y, mu), y)]
        if folded:
            curves += [(x, 1 - curve(1 - x, mu)), (1 - curve(1 - y, mu), y)]
        got = region.highest_plane(cell, slopes[:1], slopes[1:])[0]
        at_edges, at_curves = (largest_value(p, cell, slopes, mu, folded) for p in (edges, curves))
        spread = np.abs(slopes) @ [x1 - x0, y1 - y0]
        assert got >= max(at_edges, at_curves)
        if max(at_edges, at_curves) > -np.inf:
            assert got <= max(at_edges, at_curves) + 2e-3 * spread + 1e-9 * np.abs(slopes).sum()
        # without the curve's own highest point it would be too low
        seen += at_curves > max(at_edges, _highest(cell, slopes[:1], slopes[1:], region._on_edges(cell))[0])
    assert seen > 10


def tail_of(n1, n0, fn, fp, within):
    order = MuOrdering(n1, n0, 0.95)
    rank = order.rank(fn, fp)
    rows, cols = window(n1, within.x_low, within.x_high), window(n0, within.y_low, within.y_high)
    few = DownSet(n1, n0, rows, cols, order.ends(rank, rows, cols))
    rows, cols = n1 - rows[::-1], n0 - cols[::-1]
    return Tail(few, DownSet(n1, n0, rows, cols, order.ends(rank, rows, cols)))


def probability(tail, x, y):
    return tail.few.probability(x, y) + tail.many.probability(1 - x, 1 - y)


def test_both_bounds_of_a_cell_hold_in_it():
    tail = tail_of(40, 60, 16, 22, Rectangle(0.0, 1.0, 0.0, 1.0))
    assert not tail.few.empty
    assert not tail.many.empty
    rng = np.random.default_rng(1)
    checked = sharper = 0
    for size in (0.3, 0.1, 0.03, 0.01) * 40:
        region = MuRegion(float(rng.choice([0.0, 0.3, 1.5])))
        x = rng.uniform(0.01, 0.97 - size)
        low = np.array([x, np.clip(curve(x, region.mu) - size * rng.uniform(), 0.01, 0.97 - size)])
        width = size * rng.uniform(0.2, 1.0, 2)
        cell = np.array([[low[0]], [low[0] + width[0]], [low[1]], [low[1] + width[1]]])
        corners = tail.by_corners(cell)
        tangent = tail.by_tangent(cell, region, corners)
        x, y = low[:, None] + width[:, None] * rng.uniform(0, 1, (2, 200))
        true, inside = probability(tail, x, y), mu_of_rates(x, y) <= region.mu
        assert (true <= corners).all()
        assert (true[inside] <= tangent).all()
        checked += inside.sum()
        sharper += tangent[0] < corners[0] and inside.any()
    assert checked > 1000
    assert sharper > 5


@pytest.mark.parametrize("mu", [0.0, 0.3, 0.8])
def test_the_supremum_is_that_of_a_dense_search(mu):
    within = Rectangle(0.1, 0.5, 0.05, 0.6)
    tail = tail_of(30, 20, 6, 5, within)
    x, y = np.linspace(0.1, 0.5, 4001), np.linspace(0.05, 0.6, 4001)
    grid = [q.ravel() for q in np.meshgrid(x[::40], y[::40])]
    x, y = np.concatenate([grid[0], x, curve(y, mu)]), np.concatenate([grid[1], curve(x, mu), y])
    inside = (x >= 0.1) & (x <= 0.5) & (y >= 0.05) & (y <= 0.6)
    inside &= (y >= curve(x, mu) * (1 - 1e-14)) & (1 - y >= curve(1 - x, mu) * (1 - 1e-14))
    top = probability(tail, x[inside], y[inside]).max()
    assert not improbable(tail, MuRegion(mu), within, top)
    assert improbable(tail, MuRegion(mu), within, top * (1 + 1e-6))


def test_probabilities_of_the_order_are_those_of_the_posterior():
    """Beyond the curve and, mirrored, beyond its mirror image there is what the posterior of μ has above it."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        n1, n0 = (int(np.exp(rng.uniform(0, np.log(5e4)))) for _ in range(2))
        mu, x = float(rng.choice([0.01, 0.3, 1, 3, 8])), rng.uniform(0, 1)
        fn, fp = np.sort(rng.binomial(n1, x, 3)), np.sort(rng.binomial(n0, curve(x, mu), 3))
        fn[0] *= rng.integers(0, 2)
        fp[-1] = n0 if rng.random() < 0.5 else fp[-1]
        order = MuOrdering(n1, n0, 0.95)
        here = order.beyond(fn, fp, mu)
        there = order.beyond(n1 - fn[::-1], n0 - fp[::-1], mu)[::-1, ::-1]
        i, j = (q.ravel().astype(float) for q in np.meshgrid(fn, fp, indexing="ij"))
        law = Law(Mu(), (i + 0.5, n1 - i + 0.5), (j + 0.5, n0 - j + 0.5))
        np.testing.assert_allclose((here + there).ravel(), law.at(np.full(9, mu), np.arange(9)).sf, rtol=0, atol=5e-11)


@pytest.mark.parametrize("level", [0.95, 0.3])
def test_the_tail_has_the_outcome_and_all_that_are_ranked_higher(level):
    order = MuOrdering(9, 4, level)
    rows, cols = np.arange(10), np.arange(5)
    ranks = [[order.rank(i, j) for j in cols] for i in rows]
    for fn in rows[::2]:
        for fp in cols[::2]:
            ends = order.ends(ranks[fn][fp], rows, cols)
            assert ends[fn] >= fp
            assert (np.diff(ends) <= 0).all()
            for i in rows:
                assert all(j <= ends[i] for j in cols if ranks[i][j] >= ranks[fn][fp])


def test_folding():
    value = bound(40, 45, 15, 10, direction="either")
    assert value == bound(10, 15, 45, 40, direction="either")  # the attack that says the opposite
    assert value == pytest.approx(bound(45, 40, 10, 15, direction="either"), abs=2e-5)  # bits exchanged
    assert value <= bound(40, 45, 15, 10) + 1e-5
    for method in ("exact", "clopper-pearson"):
        assert bound(10, 15, 45, 40, method=method) == 0
        assert bound(10, 15, 45, 40, method=method, direction="either") > 0


@pytest.mark.parametrize(
    "cells", [(0, 9, 0, 0), (0, 0, 3, 0), (0, 0, 0, 0), (4, 0, 0, 4), (50, 0, 50, 0), (1, 1, 0, 0)]
)
@pytest.mark.parametrize("direction", ["right", "either"])
@pytest.mark.parametrize("method", ["exact", "clopper-pearson"])
def test_what_shows_nothing_gives_zero(cells, direction, method):
    result = gaussian_bound(tally_of(*cells), delta=0.0, level=0.95, direction=direction, method=method)
    assert result.mu == result.eps == 0


def test_levels_and_deltas():
    values = [bound(80, 90, 0, 2, level=level) for level in (0.5, 0.9, 0.99, 0.9999, 1 - 1e-9)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 1
    results = [gaussian_bound(tally_of(80, 90, 0, 2), delta=delta, level=0.95) for delta in (0.0, 1e-5, 0.1)]
    assert len({result.mu for result in results}) == 1  # μ knows no δ
    assert np.isinf(results[0].eps)
    assert results[1].eps > results[2].eps


def test_many_trials_fall_back_on_clopper_pearson():
    n, errors = exact.MAX_TRIALS + 1, 1000
    for direction in ("right", "either"):
        pair = [
            bound(n - errors, n - errors, errors, errors, direction=direction, method=method)
            for method in ("exact", "clopper-pearson")
        ]
        assert pair[0] == pair[1] > 3


def test_bad_input():
    with pytest.raises(eg.InvalidInput, match="method must be 'exact' or 'clopper-pearson', but got 'wald'"):
        bound(1, 2, 3, 4, method="wald")
    for method in ("exact", "clopper-pearson"):
        with pytest.raises(eg.InvalidInput, match="direction must be 'either' or 'right', but got 'left'"):
            bound(1, 2, 3, 4, direction="left", method=method)
        with pytest.raises(eg.InvalidInput, match="must be one tally, but got an array of shape"):
            bound([1, 2], 3, 4, 5, method=method)
    with pytest.raises(eg.InvalidInput, match="delta must be in"):
        bound(1, 2, 3, 4, delta=1.5)
    with pytest.raises(eg.InvalidInput, match="level must be in"):
        bound(1, 2, 3, 4, level=1.0)
