"""Bets by what was foretold: that wealth does not grow where a claim holds, and what the bound says of it."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from epsgauge.bounds.foretold import (
    Foretold,
    Wealth,
    first_above,
    foretold_at_best,
    foretold_lower_bound,
    log_wealth,
    stakes,
    wanted,
)

WEIGHTS = np.array([0.5, 0.3, 0.2])


def foretold(log_odds, bits, weights=WEIGHTS, claimed=0.0):
    """With a look after each sample."""
    return Foretold(log_odds, bits, weights, np.arange(1, len(bits) + 1), claimed)


def law(eps, delta):
    """The (ε, δ)-DP mechanism that all others are post-processings of: bits by outputs (Kairouz, Oh and Viswanath)."""
    q = math.exp(eps) / (1 + math.exp(eps))
    told = np.array([delta, (1 - delta) * q, (1 - delta) * (1 - q), 0.0])
    return np.stack([told, told[::-1]])


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.01), (2.0, 0.2), (0.1, 1e-5)])
def test_wealth_does_not_grow_on_average_where_the_claim_holds(eps, delta):
    """Over all outcomes of two samples, whatever is foretold of each output, and of the second after the first."""
    rng, chances = np.random.default_rng(1), law(eps, delta)
    for scale in (0.5, 3.0, 30.0):
        first = rng.normal(0, scale, (4, 3))
        second = rng.normal(0, scale, (2, 4, 4, 3))  # depends on the bit and the output before
        mean = 0.0
        for b, y, c, z in itertools.product((0, 1), range(4), (0, 1), range(4)):
            chance = 0.25 * chances[b, y] * chances[c, z]
            seen = foretold(np.stack([first[y], second[b, y, z]]), np.array([b, c]))
            mean += chance * math.exp(log_wealth(seen, eps, delta)[-1])
        assert mean <= 1 + 1e-12


def test_each_stake_is_a_fair_bet_by_itself():
    """At δ = 0 with odds of 30 to 1 the mean is exactly 1: nothing is wasted."""
    eps, chances = 0.7, law(0.7, 0.0)
    for odds in (0.1, 3.4):
        log_odds = np.array([[-odds], [-odds], [odds], [odds]])
        mean = sum(
            0.5 * chances[b, y] * math.exp(log_wealth(foretold(log_odds[[y]], np.array([b]), np.ones(1)), eps, 0.0)[0])
            for b, y in itertools.product((0, 1), range(4))
        )
        assert mean == pytest.approx(1.0)


def test_wealth_is_the_same_in_batches():
    rng = np.random.default_rng(2)
    seen = foretold(rng.normal(0, 2, (100, 3)), rng.integers(0, 2, 100))
    whole, part = log_wealth(seen, 0.3, 0.01), Wealth(WEIGHTS, 0.3, 0.01)
    cuts = ((0, 1), (1, 40), (40, 100))
    parts = [part.add(seen.log_odds[a:b], seen.bits[a:b], np.array([b - a])) for a, b in cuts]
    assert np.allclose(np.concatenate(parts), whole[[0, 39, 99]])
    assert np.allclose(log_wealth(replace(seen, ends=np.array([1, 40, 100])), 0.3, 0.01), whole[[0, 39, 99]])
    assert len(stakes(0.0)) < len(stakes(0.01))


def test_one_good_forecast_is_enough():
    """Wealth is at least that of the best forecast with the best stake, times its weight."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, 400)
    right = rng.random(400) < 0.75
    good = np.where(right, 2 * bits - 1, 1 - 2 * bits) * math.log(3)
    bad = rng.normal(0, 5, 400)
    seen = foretold(np.stack([bad, good, bad], axis=1), bits)
    q = 1 / (1 + math.exp(-0.5))
    alone = np.where(right, 0.75 / q, 0.25 / (1 - q))
    assert log_wealth(seen, 0.5, 0.0)[-1] >= np.log(alone).sum() + math.log(0.3 / 3) - 1e-9


def test_a_bound_goes_upwards_from_a_claim_or_stays_below_it():
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, 3000)
    odds = np.where(rng.random(3000) < 0.75, 2 * bits - 1, 1 - 2 * bits) * math.log(3)  # ε = 1.1
    seen = foretold(np.repeat(odds[:, None], 3, axis=1), bits)
    at = {"delta": 0.0, "level": 0.99}
    refuted, held = (foretold_lower_bound(replace(seen, claimed=eps), **at) for eps in (0.5, 1.5))
    assert 0.8 < refuted < 1.1
    assert 0.8 < held < 1.1
    assert (log_wealth(seen, first_above(0.5), 0.0) >= wanted(0.99)).any()
    assert not (log_wealth(seen, first_above(1.5), 0.0) >= wanted(0.99)).any()
    assert foretold_lower_bound(replace(seen, log_odds=-seen.log_odds, claimed=0.5), **at) == 0.0
    assert foretold_lower_bound(foretold(np.empty((0, 3)), np.empty(0, int), claimed=0.5), **at) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("n", [3, 40, 5000])
def test_what_is_shown_at_best_is_the_bound_of_a_sure_and_right_forecast(n, delta):
    bits = np.random.default_rng(5).integers(0, 2, n)
    most = foretold_at_best(n, delta=delta, level=0.99)
    sides = np.where(bits == 1, 30.0, -30.0)[:, None]
    for claimed, shown in ((0.9 * most, True), (1.1 * most + 0.1, False)):
        seen = foretold(sides, bits, np.ones(1), claimed)
        refuted = log_wealth(seen, claimed, delta)[-1] >= wanted(0.99)
        assert refuted == (shown and most > 0)
