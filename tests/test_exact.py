"""The exact lower bound: known values, coverage by enumeration, an obvious twin, and each step of its proof."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import epsgauge as eg
from epsgauge.bounds import exact
from epsgauge.bounds.cells import Rectangle, Tail, improbable
from epsgauge.bounds.exact import exact_lower_bound, lower_with_one_error_fewer
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.bounds.ordering import TIE, EpsOrdering, _Rate
from epsgauge.bounds.outcomes import DownSet, window
from epsgauge.bounds.peak import seen
from epsgauge.bounds.regions import EpsRegion
from epsgauge.stats import rates
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.law import Law
from epsgauge.stats.region import contains

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from enumerate_exact import Case


def bound(tp, tn, fp, fn, *, delta=1e-5, level=0.95, **kwargs):
    return exact_lower_bound(eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn), delta=delta, level=level, **kwargs)


@pytest.mark.parametrize(
    ("cells", "want"),
    [
        ((31, 996, 5, 968), 1.0591),
        ((63, 511, 2, 424), 2.4277),
        ((179, 510, 3, 308), 3.2550),
        ((65, 75, 25, 35), 0.6138),
        ((600, 600, 400, 400), 0.3273),
        ((2, 487, 0, 511), 0.0),
    ],
)
def test_between_clopper_pearson_and_the_posterior(cells, want):
    got = bound(*cells)
    assert want <= got < want + 2e-4
    rows = eg.intervals(eg.Tally(**dict(zip(("tp", "tn", "fp", "fn"), cells, strict=True))), delta=1e-5, level=0.9)
    assert rows["clopper-pearson"].low <= got <= rows["bayes"].low


def test_a_search_by_points_finds_what_a_search_with_proofs_finds(monkeypatch):
    cells = [(31, 996, 5, 968), (65, 75, 25, 35), (5, 6, 1, 0), (9, 2, 7, 3), (0, 40, 0, 40), (3, 2, 40, 30)]
    bounds = [
        lambda tally: exact_lower_bound(tally, delta=1e-5, level=0.95),
        lambda tally: exact_lower_bound(tally, delta=0.1, level=0.9, direction="right"),
        lambda tally: gaussian_bound(tally, delta=1e-5, level=0.95).mu,
    ]

    def found():
        exact._of_counts.cache_clear()
        return [bound(eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn)) for tp, tn, fp, fn in cells for bound in bounds]

    quick = found()
    monkeypatch.setattr(exact, "seen", lambda *_: 0.0)  # nothing speaks against any θ: every step is proven
    assert found() == quick
    assert 0 < np.count_nonzero(quick) < len(quick)


@pytest.mark.parametrize(("n", "delta"), [(1, 0.0), (30, 0.1), (1000, 1e-5), (50, 0.0)])
def test_perfect_attack_has_a_closed_form(n, delta):
    """Its tail is the outcome without errors alone, which is most probable at the vertex FNR = FPR = v."""
    alpha = 0.05
    v = 1.0 - (alpha * (1 - exact.GAMMA_SHARE)) ** (1 / (2 * n))
    want = max(0.0, np.log((1.0 - delta) / v - 1.0)) if v < (1 - delta) / 2 else 0.0
    got = bound(n, n, 0, 0, delta=delta)
    assert want - 2e-5 <= got <= want
    assert bound(n, n, 0, 0, delta=delta, direction="right") == pytest.approx(got, abs=2e-5)


@pytest.mark.parametrize(
    ("n1", "n0", "delta", "level", "direction"),
    [
        (6, 6, 1e-5, 0.95, "either"),
        (7, 3, 0.2, 0.9, "either"),
        (2, 9, 0.0, 0.95, "either"),
        (3, 4, 0.05, 0.6, "either"),
        (3, 5, 0.2, 0.8, "right"),
    ],
)
def test_covers_by_enumeration(n1, n0, delta, level, direction):
    """All outcomes, on the whole square of rates, and where coverage is smallest; it costs little more than it must."""
    case = Case(n1, n0, delta, level, direction)
    bounds = case.bounds()
    assert bounds.max() > 0
    assert case.coverage_on_grid(bounds, points=61) >= level
    worst = case.coverage_on_boundaries(bounds)
    assert worst >= level
    assert worst <= level + (1 - level) * exact.GAMMA_SHARE + 0.01


class Twin:
    """The same bound in the most obvious way: every outcome by itself, no cells, no windows, dense grids."""

    def __init__(self, n1, n0, delta, level):
        self.n1, self.n0, self.delta, self.level = n1, n0, delta, level
        few = np.array([[self.rank(i, j) for j in range(n0 + 1)] for i in range(n1 + 1)])
        self.ranks = np.maximum(few, few[::-1, ::-1])

    def least(self, x, eps):
        slack = 1 - self.delta
        return np.maximum(0, np.maximum(slack - np.exp(eps) * x, np.exp(-eps) * (slack - x)))

    def beyond(self, fn, fp, eps):
        x = np.sin((np.arange(4000) + 0.5) / 4000 * np.pi / 2) ** 2  # Beta(1/2, 1/2) is even in the angle
        weight = x**fn * (1 - x) ** (self.n1 - fn)
        inner = special.betainc(fp + 0.5, self.n0 - fp + 0.5, self.least(x, eps))
        return (weight @ inner) / weight.sum()

    def rank(self, fn, fp):
        if self.beyond(fn, fp, 0.0) < self.level:
            return self.beyond(fn, fp, 0.0) - self.level
        low, high = 0.0, 40.0
        while high - low > 1e-7:
            middle = (low + high) / 2
            low, high = (middle, high) if self.beyond(fn, fp, middle) >= self.level else (low, middle)
        return low

    def bound(self, fn, fp):
        event = self.ranks >= self.ranks[fn, fp] - 1e-5
        alpha = 1 - self.level
        gamma = alpha * exact.GAMMA_SHARE
        limits = [stats.binomtest(k, n).proportion_ci(1 - gamma / 2) for k, n in ((fn, self.n1), (fp, self.n0))]
        (x0, x1), (y0, y1) = ((c.low, c.high) for c in limits)

        def sup(eps):
            side = [np.linspace(a, b, 801) for a, b in ((x0, x1), (y0, y1))]
            v = (1 - self.delta) / (1 + np.exp(eps))
            inner = np.meshgrid(side[0][::20], side[1][::20])
            x = np.concatenate([side[0], self.least(side[1], eps), 1 - self.least(1 - side[1], eps), [v, 1 - v]])
            y = np.concatenate([self.least(side[0], eps), side[1], side[1], [v, 1 - v]])
            x, y = (
                np.concatenate([x, side[0], inner[0].ravel()]),
                np.concatenate([y, 1 - self.least(1 - side[0], eps), inner[1].ravel()]),
            )
            here = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
            here &= (y >= self.least(x, eps) - 1e-12) & (1 - y >= self.least(1 - x, eps) - 1e-12)
            rows = stats.binom.pmf(np.arange(self.n1 + 1), self.n1, x[here, None])
            cols = stats.binom.pmf(np.arange(self.n0 + 1), self.n0, y[here, None])
            return np.einsum("pi,ij,pj->p", rows, event.astype(float), cols).max(initial=0.0)

        if sup(0.0) + gamma > alpha:
            return 0.0
        low, high = 0.0, 20.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (low, middle) if sup(middle) + gamma > alpha else (middle, high)
        return low


@pytest.mark.parametrize(
    ("n1", "n0", "delta", "level"), [(3, 3, 0.0, 0.8), (6, 2, 1e-5, 0.9), (2, 4, 0.2, 0.6), (5, 5, 0.05, 0.95)]
)
def test_is_its_obvious_twin(n1, n0, delta, level):
    twin = Twin(n1, n0, delta, level)
    seen = 0
    for fn in range(n1 + 1):
        for fp in range(n0 // 2 + 1):
            want = twin.bound(fn, fp)
            got = bound(n1 - fn, n0 - fp, fp, fn, delta=delta, level=level)
            assert got <= want + 2e-6
            assert got == pytest.approx(want, abs=5e-4)
            seen += want > 0
    assert seen


def test_probabilities_of_the_order_are_those_of_the_posterior():
    """Beyond the lower and, mirrored, beyond the upper lines there is what the posterior has outside R."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        n1, n0 = (int(np.exp(rng.uniform(0, np.log(5e4)))) for _ in range(2))
        delta, eps = rng.choice([0, 1e-9, 1e-5, 0.05, 0.6]), rng.choice([0, 0.1, 1, 4, 12])
        fn, fp = np.sort(rng.integers(0, n1 + 1, 3)), np.sort(rng.integers(0, n0 + 1, 3))
        fn[0] *= rng.integers(0, 2)
        order = EpsOrdering(n1, n0, delta, 0.95)
        here = order.beyond(fn, fp, eps)
        there = order.beyond(n1 - fn[::-1], n0 - fp[::-1], eps)[::-1, ::-1]
        i, j = (q.ravel().astype(float) for q in np.meshgrid(fn, fp, indexing="ij"))
        law = Law(EpsAtDelta(np.full(9, delta)), (i + 0.5, n1 - i + 0.5), (j + 0.5, n0 - j + 0.5))
        np.testing.assert_allclose((here + there).ravel(), law.at(np.full(9, eps), np.arange(9)).sf, rtol=0, atol=5e-11)


@pytest.mark.parametrize(
    ("n", "first", "last"), [(12, 0, 12), (900, 430, 640), (50_000, 0, 300), (50_000, 49_700, 50_000)]
)
def test_one_count_after_the_other_is_what_scipy_has_for_each(n, first, last):
    k = np.arange(first, last + 1.0)
    shares = (k[:: len(k) // 10] + 0.5) / (n + 1.0)
    x = np.unique(np.concatenate([shares, [1e-300, 1e-9, 0.25, 0.75, 1.0 - 1e-9]]))
    each = special.betainc((k + 0.5)[:, None], (n - k + 0.5)[:, None], x)
    np.testing.assert_allclose(_Rate(k, n).cdf(x), each, rtol=0, atol=TIE / 100)


@pytest.mark.parametrize(("n1", "n0", "delta"), [(6, 6, 0.0), (9, 3, 0.2), (2, 11, 1e-5)])
@pytest.mark.parametrize("level", [0.95, 0.3])
def test_the_tail_has_the_outcome_and_all_that_are_ranked_higher(n1, n0, delta, level):
    order = EpsOrdering(n1, n0, delta, level)
    rows, cols = np.arange(n1 + 1), np.arange(n0 + 1)
    ranks = [[order.rank(i, j) for j in cols] for i in rows]
    for fn in rows[::2]:
        for fp in cols[::2]:
            ends = order.ends(ranks[fn][fp], rows, cols)
            assert ends[fn] >= fp
            assert (np.diff(ends) <= 0).all()
            for i in rows:
                assert all(j <= ends[i] for j in cols if ranks[i][j] >= ranks[fn][fp])


def tail_of(n1, n0, delta, fn, fp, within):
    order = EpsOrdering(n1, n0, delta, 0.95)
    rank = order.rank(fn, fp)
    rows, cols = window(n1, within.x_low, within.x_high), window(n0, within.y_low, within.y_high)
    few = DownSet(n1, n0, rows, cols, order.ends(rank, rows, cols))
    rows, cols = n1 - rows[::-1], n0 - cols[::-1]
    return Tail(few, DownSet(n1, n0, rows, cols, order.ends(rank, rows, cols)))


def plain_probability(tail, n1, n0, x, y):
    """Outcome by outcome, without windows."""
    i, j = np.arange(n1 + 1)[:, None], np.arange(n0 + 1)
    inside = np.zeros((n1 + 1, n0 + 1))
    for k, end in zip(tail.few.rows, tail.few.ends, strict=True):
        inside[k, : end + 1] += 1
    for k, end in zip(tail.many.rows, tail.many.ends, strict=True):
        inside[n1 - k, n0 - end :] += 1
    return (stats.binom.pmf(i, n1, x) * inside * stats.binom.pmf(j, n0, y)).sum()


@pytest.mark.parametrize(("n1", "n0", "fn", "fp", "delta"), [(40, 40, 14, 18, 0.0), (25, 60, 24, 0, 0.05)])
def test_both_bounds_of_a_cell_hold_in_it(n1, n0, fn, fp, delta):
    square = Rectangle(0.0, 1.0, 0.0, 1.0)
    tail = tail_of(n1, n0, delta, fn, fp, square)
    assert not tail.few.empty
    assert not tail.many.empty
    rng = np.random.default_rng(1)
    checked = 0
    for size in (0.3, 0.1, 0.03) * 15:
        low = rng.uniform(0.01, 0.97 - size, 2)
        width = size * rng.uniform(0.2, 1.0, 2)
        region = EpsRegion(float(rng.choice([0.0, 0.3, 1.5])), delta)
        cell = np.array([[low[0]], [low[0] + width[0]], [low[1]], [low[1] + width[1]]])
        corners = tail.by_corners(cell)
        tangent = tail.by_tangent(cell, region, corners)
        for x, y in low + width * rng.uniform(0, 1, (12, 2)):
            true = plain_probability(tail, n1, n0, x, y)
            assert true <= corners[0]
            if contains(x, y, eps=region.eps, delta=delta):
                assert true <= tangent[0]
                checked += 1
    assert checked > 30


def test_a_cell_is_never_pronounced_improbable_where_one_point_is_not():
    """And the largest value that a search sees is the supremum, to six digits."""
    n1, n0, delta = 30, 20, 0.02
    within = Rectangle(0.1, 0.5, 0.05, 0.6)
    tail = tail_of(n1, n0, delta, 6, 5, within)
    for eps in (0.0, 0.4, 1.0):
        side = np.linspace(0, 1, 121)
        x, y = (q.ravel() for q in np.meshgrid(0.1 + 0.4 * side, 0.05 + 0.55 * side))
        line = EpsRegion(eps, delta).least(0.1 + 0.4 * side)
        x, y = np.concatenate([x, 0.1 + 0.4 * side]), np.concatenate([y, np.clip(line, 0.05, 0.6)])
        inside = contains(x, y, eps=eps, delta=delta)
        x, y = x[inside], y[inside]
        top = (tail.few.probability(x, y) + tail.many.probability(1 - x, 1 - y)).max()
        assert not improbable(tail, EpsRegion(eps, delta), within, top * (1 - 1e-6))
        assert improbable(tail, EpsRegion(eps, delta), within, top * 1.02)
        found = seen(tail, EpsRegion(eps, delta), within)
        assert top * (1 - 1e-6) <= found
        assert improbable(tail, EpsRegion(eps, delta), within, found * (1 + 1e-6))


def test_sums_of_binomial_probabilities_keep_their_digits():
    for n, rate in ((50_000, 0.5), (50_000, 0.02), (50_000, 1e-4), (300, 0.9)):
        rows = cols = window(n, rate, rate)
        whole = DownSet(n, n, rows, cols, np.full(len(rows), cols[-1]))
        x = np.array([rate])
        assert whole.probability(x, x)[0] == pytest.approx(1.0, abs=1e-9)
        half = DownSet(n, n, rows, cols, np.where(rows <= n * rate, cols[-1], cols[0] - 1))
        assert half.probability(x, x)[0] == pytest.approx(stats.binom.cdf(int(n * rate), n, rate), rel=1e-9)
        _, across, up = half.slopes(x, x)
        step = 1e-6 * rate
        ahead, behind = half.probability(x + step, x)[0], half.probability(x - step, x)[0]
        assert across[0] == pytest.approx((ahead - behind) / (2 * step), rel=1e-3)
        assert up[0] == pytest.approx(0.0, abs=1e-6 * abs(across[0]))


def test_windows_leave_out_nothing_that_counts():
    for n, low, high in ((50, 0.0, 0.1), (5000, 0.3, 0.4), (5000, 0.0, 0.001), (400, 0.9, 1.0)):
        counts = window(n, low, high)
        for rate in (low, high, (low + high) / 2):
            assert stats.binom.cdf(counts[0] - 1, n, rate) <= 1e-17
            assert stats.binom.sf(counts[-1], n, rate) <= 1e-17


def test_folding():
    value = bound(40, 45, 15, 10)
    assert value == bound(10, 15, 45, 40)  # the attack that says the opposite
    assert value == pytest.approx(bound(45, 40, 10, 15), abs=2e-5)  # bits exchanged
    assert value <= bound(40, 45, 15, 10, direction="right") + 1e-5
    assert bound(10, 15, 45, 40, direction="right") == 0
    assert bound(0, 0, 90, 90, direction="right") == 0


@pytest.mark.parametrize(
    "cells", [(0, 9, 0, 0), (0, 0, 3, 0), (0, 0, 0, 0), (4, 0, 0, 4), (50, 0, 50, 0), (1, 1, 0, 0)]
)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("delta", [0.0, 0.3, 0.9999])
def test_what_shows_nothing_gives_zero(cells, level, delta):
    assert bound(*cells, level=level, delta=delta) == 0


@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_levels_and_extremes(delta):
    values = [bound(80, 90, 0, 2, level=level, delta=delta) for level in (0.5, 0.9, 0.99, 0.9999, 1 - 1e-9)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 2
    assert bound(80, 90, 0, 2, delta=1 - 1e-9) == 0
    assert bound(200, 1, 0, 0, level=0.9, delta=0.3) == 0 < bound(200, 1, 0, 0, level=0.9, delta=0.0)


def test_where_one_error_fewer_gives_less_is_found():
    """Against both neighbours of every outcome of a table in which it happens, and of one in which it does not."""
    found = []
    for (n1, n0), most in (((2, 40), 14), ((6, 6), 6)):
        low = {(fn, fp): bound(n1 - fn, n0 - fp, fp, fn) for fn in range(n1 + 1) for fp in range(most + 1)}
        for (fn, fp), here in low.items():
            got = lower_with_one_error_fewer(eg.Tally(tp=n1 - fn, tn=n0 - fp, fp=fp, fn=fn), delta=1e-5, level=0.95)
            neighbours = {"miss": low.get((fn - 1, fp), 99.0), "false alarm": low.get((fn, fp - 1), 99.0)}
            lower = [(name, x) for name, x in neighbours.items() if x < here - exact.VISIBLE]
            assert got == (lower[0] if lower and fn / n1 + fp / n0 < 1 else None)
            found += [(n1, fn, fp, got[0])] if got else []
    assert (2, 0, 9, "false alarm") in found
    assert all(n1 == 2 for n1, *_ in found)


def test_many_trials_fall_back_on_clopper_pearson():
    n, errors = exact.MAX_TRIALS + 1, 1000
    cells = {"fp": errors, "fn": errors, "tp": n - errors, "tn": n - errors}
    k, trials, family = np.array([float(errors)]), np.array([float(n)]), EpsAtDelta(np.array([1e-5]))
    args = (rates.clopper_pearson_limits, family, (k, trials), (k, trials), 1 - 0.95)
    assert bound(**cells) == rates.rectangle_interval(*args)[0][0] > 3
    assert bound(**cells, direction="right") == rates.rectangle_lower_bound(*args)[0] > 3


def test_bad_input():
    with pytest.raises(eg.InvalidInput, match="direction must be 'either' or 'right', but got 'left'"):
        bound(1, 2, 3, 4, direction="left")
    with pytest.raises(eg.InvalidInput, match="gamma_share must be above 0 and below 1, but got 1"):
        bound(1, 2, 3, 4, gamma_share=1.0)
    with pytest.raises(eg.InvalidInput, match="delta must be in"):
        bound(1, 2, 3, 4, delta=1.5)
    with pytest.raises(eg.InvalidInput, match="the tally must be one number, but got an array"):
        bound([1, 2], 3, 4, 5)
