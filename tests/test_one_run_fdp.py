"""f-DP in one run: another implementation's values, the least demanding law by linear programming, coverage."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog
from worst_case import most_right, most_won

import epsgauge as eg
from epsgauge.bounds.guesses import Guesses, surest_right
from epsgauge.bounds.one_run import (
    eps_delta_inverse,
    gaussian_inverse,
    one_run_fdp_eps,
    one_run_fdp_mu,
    published_mu,
    refutes,
)
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.priced import priced_mu, tail_without_delta
from epsgauge.stats.region import gaussian_delta, gaussian_eps


@pytest.mark.parametrize(
    ("right", "guesses", "bits", "eps"),
    [
        (31, 36, 2000, 1.196547),
        (63, 65, 1000, 3.338803),
        (1200, 2000, 2000, 0.609551),
        (2000, 2000, 2000, 13.496206),
        (8000, 10_000, 100_000, 1.720493),
        (1429, 1500, 100_000, 3.299235),
        (60_000, 100_000, 100_000, 0.619028),
    ],
)
def test_another_implementation_says_the_same(right, guesses, bits, eps):
    """jax-privacy 2.0.0, one run with f-DP, significance 0.05, δ = 1e-5; it stops within 1e-6."""
    mu = published_mu(Guesses(right, guesses, bits), level=0.95)
    assert float(gaussian_eps(mu, delta=1e-5)) == pytest.approx(eps, abs=2e-6)
    assert one_run_fdp_mu(Guesses(right, guesses, bits), level=0.95) >= mu


def largest_tail(guesses, lines):
    """sup Pr[K ≥ v] by linear programming, where 1 − f is the least of lines (slope, start)."""
    r, v = guesses.n_guesses, guesses.n_right
    n = guesses.n_bits / (1 if guesses.sides == "both" else 2)
    k = np.arange(r + 1)
    rows, bounds = [], []
    for i in range(v):
        for slope, start in lines:  # E[K; K > i]/n ≤ slope E[r − K; K ≥ i]/n + start
            rows.append((k * (k > i) - slope * (r - k) * (k >= i)) / n)
            bounds.append(start)
    done = linprog(-(k >= v).astype(float), A_ub=np.array(rows), b_ub=bounds, A_eq=np.ones((1, r + 1)), b_eq=[1.0])
    return -done.fun


def lines_of(eps, delta):
    return [(math.exp(eps), delta), (math.exp(-eps), 1 - math.exp(-eps) * (1 - delta)), (0.0, 1.0)]


def test_the_recursion_finds_what_linear_programming_finds():
    rng = np.random.default_rng(2)
    for _ in range(60):
        r = int(rng.integers(1, 25))
        v, n = int(rng.integers(1, r + 1)), r + int(rng.integers(0, 30))
        said = Guesses(v, r, n, sides=str(rng.choice(["both", "one"])))
        eps, delta = float(rng.uniform(0, 3)), float(rng.choice([0.0, 1e-4, 0.01]))
        largest = largest_tail(said, lines_of(eps, delta))
        inverse = eps_delta_inverse(eps, delta)
        if largest < 0.999:
            assert refutes(said, inverse, level=1 - min(0.9999, 1.0001 * largest + 1e-7))
        if largest > 1e-3:
            assert not refutes(said, inverse, level=1 - 0.9999 * largest)


def test_no_mechanism_is_refuted_more_often_than_allowed():
    """Against the exact worst case of (ε, δ)-DP."""
    for n, r in ((8, 8), (25, 10)):
        for eps, delta in ((0.0, 0.01), (1.0, 1e-3), (2.0, 0.0)):
            for v in range(r // 2 + 1, r + 1):
                worst = most_right(n, {r: v}, eps=eps, delta=delta)
                if worst < 0.999:
                    assert not refutes(Guesses(v, r, n), eps_delta_inverse(eps, delta), level=1 - 0.9999 * worst)


def test_for_eps_the_pooled_bound_with_the_tight_term_says_more():
    """It uses all sets of counts, this one upper sets alone."""
    for v, r, n in ((40, 50, 50), (18, 20, 300), (1429, 1500, 100_000), (2000, 2000, 2000)):
        for delta in (0.0, 1e-5):
            pooled = pooled_bound(Guesses(v, r, n), delta=delta, level=0.95).eps
            assert 0.9 * pooled < one_run_fdp_eps(Guesses(v, r, n), delta=delta, level=0.95) < pooled + 1e-6


def test_inverses_are_inverses_and_never_too_large():
    x = np.linspace(0, 1, 201)
    for eps, delta in ((0.0, 0.0), (1.0, 0.01), (3.0, 1e-5)):
        upper = np.minimum.reduce([slope * x + start for slope, start in lines_of(eps, delta)])
        for y in np.linspace(0, 0.999, 50):
            found = eps_delta_inverse(eps, delta)(float(y))
            assert found <= x[upper >= y][0]
            assert np.all(upper[x < found - 1e-9] < y)
    for y in (1e-12, 0.01, 0.5, 0.9999):
        got = gaussian_inverse(1.3)(y)
        assert stats.norm.cdf(stats.norm.ppf(got) + 1.3) == pytest.approx(y, rel=1e-9)


@pytest.mark.parametrize("mu", [*(pytest.param(mu, marks=pytest.mark.long) for mu in (0.3, 1.0)), 2.5])
def test_coverage_by_enumeration_independent_gaussian_noise(mu):
    n = 80
    law = stats.binom.pmf(np.arange(n + 1), n, stats.norm.cdf(mu / 2))
    bounds = np.array([one_run_fdp_mu(Guesses(k, n, n), level=0.9) for k in range(n + 1)])
    assert law[bounds > mu].sum() <= 0.1


def test_coverage_of_one_noise_for_all_bits():
    """All bits are released as one noisy sum; the adversary says the same of all."""
    mu, n, runs, rng = 0.4, 40, 2000, np.random.default_rng(7)
    bounds = np.array([one_run_fdp_mu(Guesses(k, n, n), level=0.8) for k in range(n + 1)])
    ones = rng.integers(0, 2, (runs, n)).sum(axis=1)
    right = np.where(ones + rng.normal(0, 1 / mu, runs) >= n / 2, ones, n - ones)
    assert np.mean(bounds[right] > mu) <= 0.2 + 3 * math.sqrt(0.16 / runs)


# All sets of counts, by prices


def most_of_all(guesses, eps, deltas):
    """sup Pr[K ≥ v] by linear programming over all laws of K: Σ (a Pr[a] − e^ε (r − a + 1) Pr[a − 1])₊ ≤ N δ(ε)."""
    r, v, k = guesses.n_guesses, guesses.n_right, len(eps)
    n = guesses.n_bits / (1 if guesses.sides == "both" else 2)
    rows = []
    for j, e in enumerate(eps):
        for a in range(1, r + 1):
            row = np.zeros(r + 1 + k * r)
            row[a], row[a - 1], row[r + 1 + j * r + a - 1] = a, -math.exp(e) * (r - a + 1), -1.0
            rows.append(row)
    for j in range(k):
        row = np.zeros(r + 1 + k * r)
        row[r + 1 + j * r : r + 1 + (j + 1) * r] = 1.0
        rows.append(row)
    gain, one = np.zeros(r + 1 + k * r), np.zeros((1, r + 1 + k * r))
    gain[v : r + 1], one[0, : r + 1] = -1.0, 1.0
    limits = np.concatenate([np.zeros(k * r), n * np.asarray(deltas)])
    return -linprog(gain, A_ub=np.array(rows), b_ub=limits, A_eq=one, b_eq=[1.0]).fun


def test_no_prices_prove_what_is_not_so():
    """Of any prices, good or bad, the limit is above the largest tail of all laws."""
    rng, near = np.random.default_rng(0), 0
    for _ in range(80):
        r = int(rng.integers(2, 16))
        said = Guesses(int(rng.integers(r // 2 + 1, r + 1)), r, r + int(rng.integers(0, 40)), sides="both")
        mu, eps = float(rng.uniform(0.3, 1.5)), np.sort(rng.uniform(0.05, 4.0, 4))
        deltas = gaussian_delta(eps, mu=mu)
        prices = rng.exponential(0.2, 4) * (rng.random(4) < 0.7)
        limit = tail_without_delta(said, eps, prices) + said.n_bits * prices @ deltas
        largest = most_of_all(said, eps, deltas)
        assert limit >= largest - 1e-7
        near += limit < 1
    assert near > 5


def test_the_best_prices_reach_it():
    for right, r, n in ((17, 20, 60), (13, 14, 200), (30, 40, 40)):
        said = Guesses(right, r, n)
        start = published_mu(said, level=0.9)
        found = priced_mu(said, alpha=0.1, start=start)
        assert found >= start
        eps = np.linspace(0.05, 6.0, 40)
        below, above = (most_of_all(said, eps, gaussian_delta(eps, mu=m)) for m in (found, found + 0.02))
        assert below <= 0.1 + 1e-3 < above


@pytest.mark.parametrize("n_guesses", [2, 3])
def test_no_mechanism_of_three_bits_beats_all_laws_of_counts(n_guesses):
    """Against linear programs over every mechanism with this curve; three points of it are enough to be another one."""
    mu, eps = 0.8, [0.2, 0.8, 1.6]
    curve = [(e, float(gaussian_delta(e, mu=mu))) for e in eps]
    for v in range(1, n_guesses + 1):

        def wins(bits, said, v=v):
            return sum(b == s for b, s in zip(bits, said, strict=True)) >= v

        worst = most_won(3, wins, curve=curve, n_guesses=n_guesses)
        bound = most_of_all(Guesses(v, n_guesses, 3), eps, [d for _, d in curve])
        assert worst <= bound + 1e-7


def test_with_many_bits_it_shows_more_than_the_published_bound():
    """The 632 surest guesses of 100,000 whose scores are N(b, 1); ε is 4.38."""
    rng, gained = np.random.default_rng(4), []
    for _ in range(5):
        bits = rng.integers(0, 2, 100_000)
        right = surest_right(rng.normal(bits, 1.0), bits, threshold=0.5)
        said = Guesses(int(right[632]), 632, 100_000)
        gained.append(gaussian_eps([f(said, level=0.95) for f in (published_mu, one_run_fdp_mu)], delta=1e-5))
    before, after = np.mean(gained, axis=0)
    assert 3.0 < before < after - 0.03 < 4.3


def test_guesses_of_one_value_say_more():
    for counts in ((31, 36, 2000), (180, 200, 1000)):
        both, one = (one_run_fdp_mu(Guesses(*counts, sides=s), level=0.95) for s in ("both", "one"))
        assert both < one


def test_more_bits_of_one_model_stop_helping_under_gaussian_dp():
    """Rare outputs may give away everything: beyond some number only the share of right guesses counts."""
    limit = stats.norm.ppf(0.05 * 0.6) - stats.norm.ppf(0.05 * 0.4)
    for n in (100_000, 1_000_000):
        assert one_run_fdp_mu(Guesses(6 * n // 10, n, n), level=0.95) == pytest.approx(limit, abs=1e-6)


def test_monotone():
    def bound(right=70, guesses=100, bits=500, delta=1e-4, level=0.95):
        return one_run_fdp_eps(Guesses(right, guesses, bits), delta=delta, level=level)

    assert np.all(np.diff([bound(right=v) for v in range(0, 101, 5)]) >= 0)
    assert np.all(np.diff([bound(guesses=r) for r in range(70, 140, 7)]) <= 0)
    assert np.all(np.diff([bound(bits=n) for n in (100, 200, 1000, 5000, 20_000)]) <= 0)
    assert np.all(np.diff([bound(delta=d) for d in (0, 1e-6, 1e-4, 1e-3, 0.01, 0.5)]) <= 0)
    assert np.all(np.diff([bound(level=x) for x in (0.5, 0.8, 0.95, 0.999)]) <= 0)
    assert bound() > 0.4
    mus = [one_run_fdp_mu(Guesses(v, 100, 500), level=0.95) for v in range(0, 101, 5)]
    assert np.all(np.diff(mus) >= 0)


def test_edges():
    for counts in ((0, 0, 0), (0, 0, 7), (0, 50, 50), (25, 50, 50), (1, 1, 1)):
        assert one_run_fdp_eps(Guesses(*counts), delta=1e-5, level=0.95) == 0
        assert one_run_fdp_mu(Guesses(*counts), level=0.95) == 0
    assert one_run_fdp_eps(Guesses(50, 50, 50), delta=0.9, level=0.95) == 0
    assert one_run_fdp_eps(Guesses(10**6, 10**6, 10**6), delta=1e-5, level=0.95) == pytest.approx(12.718, abs=1e-3)
    with pytest.raises(eg.InvalidInput, match="number of guesses must be fixed"):
        one_run_fdp_mu(Guesses(31, 36, 2000, "random", "one"), level=0.95)
