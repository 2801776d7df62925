"""Bounds that hold at every moment: against a grid over all rates, per-rate sequences, and runs that are watched."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import special

import epsgauge as eg
from epsgauge.bounds.anytime import anytime_interval, anytime_lower_bound, anytime_refutes
from epsgauge.bounds.betting import STAKES, betting_lower_bound, log_wealth
from epsgauge.errors import InvalidInput
from epsgauge.stats.region import eps_of_rates, log_ratio_max

CELLS = [
    (65, 75, 25, 35),
    (31, 96, 5, 68),
    (100, 100, 0, 0),
    (30, 100, 0, 5),
    (5, 2, 100, 30),  # reliably wrong
    (0, 30, 0, 30),
    (8, 9, 9, 8),
    (1, 0, 0, 0),
    (0, 5, 1, 0),
    (0, 0, 0, 0),
]


def log_threshold(tp, tn, fp, fn, level):
    norm = special.betaln(fn + 0.5, tp + 0.5) + special.betaln(fp + 0.5, tn + 0.5) - 2 * np.log(np.pi)
    return np.log(1 - level) + norm


def by_grid(cells, delta, level):
    """The smallest and the largest ε over a dense grid of the rates that are kept."""
    tp, tn, fp, fn = cells
    inner = special.expit(np.linspace(-14, 14, 601))
    r, up = np.concatenate([[0], inner, [1]]), np.concatenate([[1], inner[::-1], [0]])
    x, y, x_up, y_up = r[:, None], r[None, :], up[:, None], up[None, :]
    log_l = special.xlogy(fn, x) + special.xlogy(tp, x_up) + special.xlogy(fp, y) + special.xlogy(tn, y_up)
    eps = log_ratio_max(x, x_up, y, y_up, np.asarray(delta))[log_l > log_threshold(tp, tn, fp, fn, level)]
    return eps.min(), eps.max()


@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize(("delta", "level"), [(0.0, 0.9), (1e-5, 0.5), (0.02, 0.99), (0.4, 0.9)])
def test_ends_are_the_extremes_over_a_grid_of_all_rates(cells, delta, level):
    tally = eg.Tally(**dict(zip(("tp", "tn", "fp", "fn"), cells, strict=True)))
    got = anytime_interval(tally, delta=delta, level=level)
    low, high = by_grid(cells, delta, level)
    assert low - 0.08 <= got.low <= low + 1e-9
    assert got.high == high or high - 1e-9 <= got.high <= high + 0.16
    assert got.low == anytime_lower_bound(tally, delta=delta, level=level)
    assert got.kind == "guaranteed"


def test_arrays_give_what_single_tallies_give():
    tp, tn, fp, fn = np.array(CELLS).T
    many = anytime_interval(eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn), delta=[[1e-5], [0.1]], level=0.9)
    assert many.low.shape == (2, len(CELLS))
    for i in range(len(CELLS)):
        one = anytime_interval(eg.Tally(tp=tp[i], tn=tn[i], fp=fp[i], fn=fn[i]), delta=0.1, level=0.9)
        assert (many.low[1, i], many.high[1, i]) == pytest.approx((one.low, one.high), abs=1e-8)


def test_an_attack_that_says_the_opposite_gives_the_same():
    tally = eg.Tally(tp=[65, 900], tn=[75, 990], fp=[25, 10], fn=[35, 100])
    ours, flipped = (anytime_interval(t, delta=1e-5, level=0.9) for t in (tally, tally.flipped()))
    assert ours.low == pytest.approx(flipped.low, abs=1e-9)
    assert ours.high == pytest.approx(flipped.high, abs=1e-9)


def test_large_counts():
    got = anytime_interval(eg.Tally(tp=9 * 10**8, tn=10**9 - 7, fp=7, fn=10**8), delta=1e-9, level=1 - 1e-9)
    assert 0 < got.low < np.log(0.9 * 1e9 / 7) < got.high < 30


def test_refutes_says_whether_the_bound_is_above():
    tally = eg.Tally(tp=[65, 90, 10], tn=[75, 99, 5], fp=[25, 1, 60], fn=[35, 10, 50])
    low = anytime_lower_bound(tally, delta=1e-5, level=0.95)
    assert anytime_refutes(tally, eps=low - 1e-6, delta=1e-5, level=0.95).all()
    assert not anytime_refutes(tally, eps=low + 1e-6, delta=1e-5, level=0.95).any()


def rectangle(tally, delta, level):
    """The slow twin: a sequence for each rate at half of α, and the ε of their rectangle."""
    corners = []
    for k, rest in ((tally.fn, tally.tp), (tally.fp, tally.tn)):
        least = np.log((1 - level) / 2) + special.betaln(k + 0.5, rest + 0.5) - np.log(np.pi)
        r = special.expit(np.linspace(-12, 12, 4001))
        kept = r[special.xlogy(k, r) + special.xlogy(rest, 1 - r) > least]
        corners.append((kept.min(), kept.max()))
    (x0, x1), (y0, y1) = corners
    low = eps_of_rates(x1, y1, delta=delta) if x1 + y1 < 1 else 0.0
    return float(low), max(float(eps_of_rates(x, y, delta=delta)) for x in (x0, x1) for y in (y0, y1))


@pytest.mark.parametrize("scale", [1, 10, 100])
@pytest.mark.parametrize("cells", [(65, 75, 25, 35), (40, 98, 2, 60), (90, 90, 10, 10)])
def test_both_rates_together_are_about_as_sharp_as_each_alone(cells, scale):
    """The low end is sharper where both rates matter. Where one decides, and at the high end, it costs a little."""
    tally = eg.Tally(**dict(zip(("tp", "tn", "fp", "fn"), (scale * c for c in cells), strict=True)))
    got, (low, high) = anytime_interval(tally, delta=1e-5, level=0.9), rectangle(tally, 1e-5, 0.9)
    assert got.width < 1.1 * (high - low)
    assert got.low > (0.99 if cells[2] == 2 else 1.0) * low


def run(rng, x, y, n):
    bit, u = rng.integers(0, 2, n) == 1, rng.random(n)
    miss, alarm = bit & (u < x), ~bit & (u < y)
    cells = {"tp": bit & ~miss, "fn": miss, "fp": alarm, "tn": ~bit & ~alarm}
    return eg.Tally(**{name: np.cumsum(cell) for name, cell in cells.items()})


@pytest.mark.parametrize(("x", "y"), [(0.5, 0.5), (0.4, 0.4), (0.05, 0.05), (0.3, 0.5), (0.95, 1e-3)])
def test_watched_after_every_sample(x, y):
    """Seldom above the true ε at any moment; fixed-N bounds are, as tools/monitoring.py shows at length."""
    rng, level, n, runs = np.random.default_rng(5), 0.8, 2000, 40
    eps = float(eps_of_rates(x, y, delta=1e-5))
    wrong = sum(bool(anytime_refutes(run(rng, x, y, n), eps=eps, delta=1e-5, level=level).any()) for _ in range(runs))
    assert wrong <= 0.2 * runs


def test_clopper_pearson_does_not_survive_being_watched():
    rng, x, n, runs, alpha = np.random.default_rng(6), 0.05, 4000, 100, 0.05
    eps, looks, wrong = float(eps_of_rates(x, x, delta=0)), np.arange(99, n, 50), 0
    for _ in range(runs):
        tally = run(rng, x, x, n)[looks]
        ends = [
            eg.stats.rates.clopper_pearson(k, m, level=1 - alpha / 2, sided="upper").high
            for k, m in ((tally.fn, tally.n_positive), (tally.fp, tally.n_negative))
        ]
        wrong += bool((eps_of_rates(*ends, delta=0) > eps).any())
    assert wrong > 1.5 * alpha * runs


def test_many_moments_are_quick():
    tally = run(np.random.default_rng(7), 0.3, 0.2, 10_000)
    low = anytime_lower_bound(tally, delta=1e-5, level=0.95)
    assert low.shape == (10_000,)
    assert 1.0 < low[-1] < np.log(0.7 / 0.2)


# Betting, for several pairs per model


def test_betting_against_the_product_itself():
    fn, fp, m, delta, alpha = np.array([0, 1, 0, 2, 0] * 8), np.array([1, 0, 0, 0, 1] * 8), 10, 1e-3, 0.05
    low = betting_lower_bound(fn, fp, m, delta=delta, level=1 - alpha)

    def wealth(eps):
        total = 0.0
        for stake in STAKES[STAKES * (2 * np.exp(eps) - (1 - delta)) <= 1]:
            for one, other in ((fn, fp), (fp, fn)):
                total += np.prod(1 - stake * (2 * other / m + 2 * np.exp(eps) * one / m - (1 - delta)))
        return total / (2 * len(STAKES))

    assert wealth(low - 1e-6) >= 1 / alpha > wealth(low + 1e-6)


def test_wealth_does_not_grow_on_average_at_the_true_eps():
    """By enumeration of all outcomes of one model with two pairs that always get the same guess."""
    x, y = 0.3, 0.4
    eps, slack = float(eps_of_rates(x, y, delta=0.01)), 0.99
    mean = 0.0
    for bits in ((0, 0), (0, 1), (1, 0), (1, 1)):
        # one number u decides both guesses: wrong where u < x, or where u < y
        cuts = np.array([0.0, x, y, 1.0])
        for low, high in pairwise(cuts):
            u = (low + high) / 2
            fn, fp = (sum(b == bit and u < r for b in bits) for bit, r in ((1, x), (0, y)))
            mean += 0.25 * (high - low) * np.exp(log_wealth(eps, np.array([[fn], [fp], [2]]), np.array([1]), slack))
    assert mean <= 1 + 1e-12


def test_betting_holds_for_guesses_that_all_depend_on_each_other():
    rng, wrong = np.random.default_rng(8), 0
    for _ in range(60):
        bits = rng.integers(0, 2, (100, 20))
        u = rng.random((100, 1))
        fn, fp = ((bits == 1) & (u < 0.4)).sum(axis=1), ((bits == 0) & (u < 0.4)).sum(axis=1)
        wrong += betting_lower_bound(fn, fp, 20, delta=0, level=0.9) > np.log(0.6 / 0.4)
    assert wrong <= 6


def test_betting_without_evidence():
    assert betting_lower_bound([], [], 10, delta=0) == 0
    assert betting_lower_bound([5] * 100, [5] * 100, 10, delta=0) == 0
    assert betting_lower_bound([1, 0] * 40, [0, 1] * 40, 10, delta=1e-5) > 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: anytime_interval(3, delta=0),
        lambda: anytime_interval(eg.Tally(tp=1, tn=1, fp=1, fn=1), delta=1.5),
        lambda: anytime_lower_bound(eg.Tally(tp=1, tn=1, fp=1, fn=1), delta=0, level=1),
        lambda: anytime_lower_bound(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), delta=[0, 0.1, 0.2]),
        lambda: anytime_refutes(eg.Tally(tp=1, tn=1, fp=1, fn=1), eps=-1, delta=0),
        lambda: betting_lower_bound([3], [8], 10, delta=0),
        lambda: betting_lower_bound([0], [0], 0, delta=0),
        lambda: betting_lower_bound([[0]], [0], 1, delta=0),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidInput, match="must"):
        call()
