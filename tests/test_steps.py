"""Bounds on a grid: the same last step wherever the search begins, whatever the last bits of its numbers are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsgauge.bounds import exact, priced
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.ordering import EpsOrdering, Rank
from epsgauge.bounds.priced import prices_at, refuted_mu
from epsgauge.stats.region import gaussian_delta
from epsgauge.stats.steps import last_step
from epsgauge.stats.tally import Tally


@given(last=st.integers(-1, 1000), near=st.integers(-5, 1500))
def test_it_is_found_from_anywhere_in_few_calls(last, near):
    asked = []

    def holds(k):
        asked.append(k)
        return k <= last

    assert last_step(holds, near=near, most=1000) == last
    assert all(0 <= k <= 1000 for k in asked)
    assert len(asked) == len(set(asked)) <= 2 * math.log2(abs(last - min(near, 1000)) + 2) + 3


@pytest.mark.parametrize("off", [1e-7, 2.4e-8])
def test_where_the_rank_was_found_does_not_move_an_exact_bound(monkeypatch, off):
    """A rank is found to about 1e-7, never above it: rounding decides where."""
    tally = Tally(tp=65, tn=75, fp=25, fn=35)
    bound, rank = exact_lower_bound(tally, delta=1e-5, level=0.95), EpsOrdering.rank
    exact._of_counts.cache_clear()

    def moved(self, fn, fp):
        found = rank(self, fn, fp)
        return Rank(found.theta - off, found.probability)

    monkeypatch.setattr(EpsOrdering, "rank", moved)
    assert exact_lower_bound(tally, delta=1e-5, level=0.95) == bound == 0.6138
    exact._of_counts.cache_clear()


def test_the_last_bits_of_prices_do_not_move_a_bound():
    """It is a step of the grid: refuted, and the next one is not."""
    guesses, alpha = Guesses(75, 100, 200), 0.05
    eps = prices_at(guesses, 20)
    prices = np.full(len(eps), 0.02)
    mu = refuted_mu(0.01, 200, eps, prices, alpha)
    nudged = [refuted_mu(0.01, 200, eps, prices * (1.0 + k * 2.0**-52), alpha) for k in (-4, 4)]
    assert nudged == [mu, mu]
    assert mu * priced.STEPS == pytest.approx(round(mu * priced.STEPS), abs=1e-6)
    spent = [0.01 + 200 * prices @ gaussian_delta(eps, mu=at) for at in (mu, mu + 1.0 / priced.STEPS)]
    assert spent[0] <= alpha < spent[1]
