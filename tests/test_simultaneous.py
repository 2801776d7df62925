"""The bound over all thresholds: bands against enumeration and draws, their best threshold against a plain loop."""

from math import comb

import numpy as np
import pytest
from scipy import special

from epsgauge.bounds import bands, crossing
from epsgauge.bounds.simultaneous import fixed_thresholds_lower_bound, simultaneous_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.stats.rates import clopper_pearson
from epsgauge.stats.region import eps_of_rates


def by_enumeration(h):
    """Pr[U_(i) > h_i for some i]: over all ways in which n numbers fall into the cells between the h."""
    n, edges = len(h), np.concatenate([[0.0], h, [1.0]])

    def inside(cell, below):
        """The probability that all is well, from this cell on, times that of the numbers not yet placed."""
        if cell == n:  # what is left lies beyond the last edge, where there must be none
            return 1.0 if below == n else 0.0
        width, total = edges[cell + 1] - edges[cell], 0.0
        for k in range(n - below + 1):
            if below + k >= cell + 1:
                total += comb(n - below, k) * width**k * inside(cell + 1, below + k)
        return total

    return 1.0 - inside(0, 0)


@pytest.mark.parametrize(
    "h", [[0.9], [0.5, 0.8], [0.2, 0.3, 0.95], [0.5, 0.6, 0.7, 0.9, 0.99], [0.3, 0.9, 0.91, 0.92, 0.93]]
)
def test_crossing_against_enumeration(h):
    h = np.array(h)
    want = by_enumeration(h)
    assert crossing.crossing(h, len(h)) == pytest.approx(want, abs=1e-12)
    # every rank is a checkpoint of its own here, so the bound is no more than what it bounds
    assert crossing.crossing_bound(h, np.arange(1, len(h) + 1), len(h)) >= want - 1e-12


def test_crossing_against_draws():
    rng, n = np.random.default_rng(0), 30
    h = bands.band(n, 0.2)[1]
    u = np.sort(rng.random((40_000, n)), axis=1)
    share = (u > h).any(axis=1).mean()
    assert crossing.crossing(h, n) == pytest.approx(0.2, rel=0.011)
    assert share == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 40_000))


@pytest.mark.parametrize("n", [60, 400, 1000])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_the_bound_for_many_samples_is_above_the_exact_probability_and_near(n, alpha):
    ranks, h = bands.band(n, alpha)
    exact = crossing.crossing(h, n)
    assert exact <= crossing.crossing_bound(h, ranks, n) <= 1.2 * exact


@pytest.mark.parametrize(("n", "k"), [(500, 101), (10**5, 250), (10**5, 40_000)])
@pytest.mark.parametrize("p", [0.3, 0.5])
def test_the_quick_binomial_is_a_lower_bound(n, k, p):
    p = k / n * (1 + p / 10)
    exact = special.bdtr(float(k), n, p)
    got = crossing._at_least(np.array([k]), np.array([n]), np.array([p]))[0]
    assert 0.8 * exact <= got <= exact


def test_bands_get_wider_with_more_samples_and_stay_below_a_union_bound():
    local = [bands._local_level(n, 0.025) for n in (1, 10, 100, 1000, 2001, 20_000)]
    assert local == sorted(local, reverse=True)
    assert local[0] == 0.025
    assert local[-1] > 10 * 0.025 / 20_000


def test_bands_of_many_samples_against_draws():
    rng, n, alpha = np.random.default_rng(1), 3000, 0.2
    ranks, h = bands.band(n, alpha)
    missed = np.mean([(np.sort(rng.random(n))[ranks - 1] > h).any() for _ in range(2000)])
    assert 0.6 * alpha < missed <= alpha + 3 * np.sqrt(alpha / 2000)


def test_limits_are_those_of_clopper_pearson_at_the_local_level():
    n, alpha = 200, 0.05
    eta = bands._local_level(n, alpha)
    k = np.array([0, 1, 17, 150, 199, 200])
    want = clopper_pearson(k, n, level=1 - eta, sided="upper").high
    assert bands.upper_limits(k, n, alpha) == pytest.approx(want, abs=1e-9)


def by_loop(ins, outs, delta, level):
    best = 0.0
    alpha = (1 - level) / 4
    for t in np.unique(np.concatenate([ins, outs])):
        for fn, fp in (((ins < t).sum(), (outs >= t).sum()), ((ins > t).sum(), (outs <= t).sum())):
            x, y = (float(bands.upper_limits(np.array(k), len(s), alpha)) for k, s in ((fn, ins), (fp, outs)))
            if x + y < 1:
                best = max(best, float(eps_of_rates(x, y, delta=delta)))
    return best


@pytest.mark.parametrize("digits", [1, 8])
@pytest.mark.parametrize("shift", [1.5, -1.5, 0.0])
def test_the_best_threshold_against_a_loop(digits, shift):
    """With ties where scores have one digit only."""
    rng = np.random.default_rng(2)
    ins, outs = rng.normal(shift, 1, 120).round(digits), rng.normal(0, 1, 90).round(digits)
    got = simultaneous_lower_bound(ins, outs, delta=1e-3, level=0.9)
    assert got.low == pytest.approx(by_loop(ins, outs, 1e-3, 0.9), abs=1e-12)
    if shift == 0:
        assert (got.low, got.threshold, got.direction) == (0.0, None, None)
    else:
        assert got.direction == ("high" if shift > 0 else "low")
        assert float(eps_of_rates(got.fnr, got.fpr, delta=1e-3)) == pytest.approx(got.low)


def by_pairs(ins, outs, delta, level):
    """All intervals, one after the other, and all but each: the largest bound, and its rule."""
    best = (0.0, "", (0.0, 0.0))
    cuts = np.unique(np.concatenate([ins, outs]))

    def limits(scores, t):
        below = np.array([(scores < t).sum(), (scores >= t).sum()])
        return bands.upper_limits(below, len(scores), (1 - level) / 4).tolist()

    at = [(t, *limits(ins, t), *limits(outs, t)) for t in cuts]
    for i, (a, u1a, v1a, u0a, v0a) in enumerate(at):
        for b, u1b, v1b, u0b, v0b in at[i + 1 :]:
            inside, outside = (u1a + v1b, u0b + v0a - 1), (u1b + v1a - 1, u0a + v0b)
            for rule, (x, y) in (("inside", inside), ("outside", outside)):
                if x + y < 1 - delta:
                    eps = np.log(max((1 - x - delta) / y, (1 - y - delta) / x))
                    best = max(best, (eps, rule, (a, b)))
    return best


def bump(rng, n):
    """Uniform scores, and those of which every other one is between 0.45 and 0.55."""
    ins, outs = rng.random(n), rng.random(n)
    return np.where(rng.random(n) < 0.5, 0.45 + 0.1 * ins, ins), outs


@pytest.mark.parametrize(("digits", "swap"), [(2, False), (8, False), (8, True)])
def test_the_best_pair_of_cuts_against_a_loop(digits, swap):
    ins, outs = (scores.round(digits) for scores in bump(np.random.default_rng(7), 150))
    if swap:
        ins, outs = outs, ins
    for delta in (0.0, 0.05):
        got = simultaneous_lower_bound(ins, outs, delta=delta, level=0.5, rules="two-sided")
        low, rule, cuts = by_pairs(ins, outs, delta, 0.5)
        assert got.low == pytest.approx(low, abs=1e-12)
        assert low > simultaneous_lower_bound(ins, outs, delta=delta, level=0.5).low
        assert (got.direction, got.cuts, got.threshold) == (rule, cuts, None)
        assert rule == ("outside" if swap else "inside")
        assert float(eps_of_rates(got.fnr, got.fpr, delta=delta)) == pytest.approx(low)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1.0, 2.0), (1.0, -2.0), (0.2, 0.0), (3.0, 0.0)])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.3])
def test_two_cuts_are_never_worse_than_one(scale, shift, delta):
    rng = np.random.default_rng(8)
    ins, outs = rng.normal(shift, scale, 3000), rng.normal(0, 1, 2500)
    one = simultaneous_lower_bound(ins, outs, delta=delta)
    two = simultaneous_lower_bound(ins, outs, delta=delta, rules="two-sided")
    assert two == one or two.low > one.low
    if scale == 3.0 and delta == 0:  # a ratio of two sums is no larger than that of one pair of terms
        assert two == one


def wide_laplace_eps(delta, scale):
    """P1 is a Laplace distribution `scale` times as wide as P0: the best rule is |score| ≥ t."""
    t = np.linspace(0, 40, 400_001)
    tails = np.exp(-t / scale) - delta
    return float(np.log(tails[tails > 0] / np.exp(-t[tails > 0])).max())


@pytest.mark.parametrize("scores", ["no leak", "both tails", "steps"])
def test_two_cuts_are_seldom_above_the_true_eps(scores):
    """`steps` has three values, at ε = log 1.5 inside and outside: the bound is as tight as it can be."""
    rng, level, runs, wrong, found = np.random.default_rng(9), 0.8, 300, 0, 0
    delta, n = {"no leak": (0.0, 150), "both tails": (0.05, 400), "steps": (0.0, 1000)}[scores]
    eps = {"no leak": 0.0, "both tails": wide_laplace_eps(0.05, 2.0), "steps": np.log(1.5)}[scores]
    for _ in range(runs):
        if scores == "steps":
            ins, outs = (rng.choice(3, n, p=p).astype(float) for p in ([0.2, 0.6, 0.2], [0.3, 0.4, 0.3]))
        else:
            ins, outs = rng.laplace(0, 2 if scores == "both tails" else 1, n), rng.laplace(0, 1, n)
        low = simultaneous_lower_bound(ins, outs, delta=delta, level=level, rules="two-sided").low
        wrong, found = wrong + (low > eps), found + (low > 0)
    assert wrong <= 0.2 * runs
    assert scores == "no leak" or found > 0.1 * runs


def test_one_direction_is_sharper_and_blind_to_the_other():
    rng = np.random.default_rng(3)
    ins, outs = rng.normal(1, 1, 500), rng.normal(0, 1, 500)
    both = simultaneous_lower_bound(ins, outs, delta=1e-5)
    high = simultaneous_lower_bound(ins, outs, delta=1e-5, directions="high")
    assert high.low > both.low > 0
    assert simultaneous_lower_bound(-ins, -outs, delta=1e-5, directions="high").low == 0
    assert simultaneous_lower_bound(-ins, -outs, delta=1e-5).low == pytest.approx(both.low)


@pytest.mark.parametrize("scores", ["no leak", "laplace", "steps"])
def test_seldom_above_the_true_eps(scores):
    """`steps` has two values only, at ε = log 1.5 for each: the bound is as tight as it can be, and ties are all."""
    rng, level, runs, wrong = np.random.default_rng(4), 0.8, 150, 0
    for _ in range(runs):
        if scores == "steps":
            ins, outs, eps = rng.random(150) < 0.6, rng.random(150) < 0.4, np.log(1.5)
        else:
            eps = 0.0 if scores == "no leak" else 1.0
            ins, outs = rng.laplace(eps, 1, 150), rng.laplace(0, 1, 150)
        wrong += (
            simultaneous_lower_bound(np.asarray(ins, float), np.asarray(outs, float), delta=0, level=level).low > eps
        )
    assert wrong <= 0.2 * runs


def test_choosing_the_best_clopper_pearson_bound_is_what_fails():
    """At ε = 0, over all thresholds, a nominal 95 % bound is above 0 far too often: the reason for all this."""
    rng, wrong = np.random.default_rng(5), 0
    k = np.arange(201)
    limits = clopper_pearson(k, 200, level=0.9, sided="upper").high
    for _ in range(200):
        ins, outs = np.sort(rng.random(200)), np.sort(rng.random(200))
        fp = 200 - np.searchsorted(outs, ins)
        wrong += bool((limits[k[:-1]] + limits[fp] < 1).any())
    assert wrong > 0.3 * 200


def test_fixed_thresholds_share_the_error_among_them():
    ins, outs = np.arange(150.0, 350), np.arange(200.0)
    one = fixed_thresholds_lower_bound(ins, outs, [200], delta=1e-5, level=0.95)
    x = clopper_pearson(50, 200, level=1 - 0.025, sided="upper").high
    y = clopper_pearson(0, 200, level=1 - 0.025, sided="upper").high
    assert one.low == pytest.approx(float(eps_of_rates(x, y, delta=1e-5)))
    several = fixed_thresholds_lower_bound(ins, outs, [120, 160, 200, 240], delta=1e-5, level=0.95)
    assert 0 < several.low < one.low
    assert several.threshold == 200
    both = fixed_thresholds_lower_bound(-ins, -outs, [-200], delta=1e-5, level=0.95, directions="both")
    assert (both.direction, both.threshold) == ("low", -200)


def test_many_scores():
    rng = np.random.default_rng(6)
    got = simultaneous_lower_bound(rng.normal(1, 1, 200_000), rng.normal(0, 1, 200_000), delta=1e-5)
    assert 2 < got.low < 4.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: simultaneous_lower_bound([], [1.0], delta=0),
        lambda: simultaneous_lower_bound([1.0], [[1.0]], delta=0),
        lambda: simultaneous_lower_bound([1.0, np.nan], [1.0], delta=0),
        lambda: simultaneous_lower_bound([1.0], [1.0], delta=0, directions="low"),
        lambda: simultaneous_lower_bound([1.0], [1.0], delta=0, rules="both"),
        lambda: simultaneous_lower_bound([1.0], [1.0], delta=0, rules="two-sided", directions="high"),
        lambda: fixed_thresholds_lower_bound([1.0], [1.0], [], delta=0),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidInput, match="must"):
        call()
