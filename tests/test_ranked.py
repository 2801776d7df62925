"""Guesses about independent models by rank: how many are wrong at least, the law that bounds all attacks, the bound."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import epsgauge as eg
from epsgauge.bounds import ranked
from epsgauge.bounds.gaussian import STEP, of_gaussian, ranked_mu
from epsgauge.bounds.ranked import NO_LEAK, LeastWrong, Ranked, last_refuted, weights
from epsgauge.bounds.simulated import Simulated, Wager
from epsgauge.methods.evidence import Evidence, Failed


def guessed(mu, n, seed, *, share=1.0):
    """Guesses about normal scores, which a share of the models with b = 1 shows."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n)
    score = rng.normal(mu * bits * (rng.random(n) < share), 1.0)
    return Evidence.of_scores(eg.Scores(np.arange(n), np.zeros(n), bits, score, "substitute", bits="coins"), 0.0)


# How many are wrong at least


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
def test_under_gaussian_dp_it_is_the_closed_form_from_below(mu):
    loss = np.linspace(0, mu * mu / 2 + 5 * mu, 300)
    wrong = stats.norm.cdf(-mu / 2 - loss / mu)
    share = wrong + stats.norm.cdf(mu / 2 - loss / mu)
    found = of_gaussian(mu)(share)
    assert np.all(found <= wrong)
    np.testing.assert_allclose(found, wrong, atol=1e-4)
    assert of_gaussian(mu).in_all == pytest.approx(stats.norm.cdf(-mu / 2), abs=1e-9)
    assert of_gaussian(20 * mu).in_all == pytest.approx(stats.norm.cdf(-10 * mu), abs=1e-9)


def test_it_is_the_highest_of_all_lines():
    eps, delta = np.array([0.0, 0.5, 1.5, 3.0]), np.array([0.5, 0.35, 0.12, 0.01])
    u = np.linspace(0, 1, 401)
    lines = [(u - d) * special.expit(-e) for e, d in zip(eps, delta, strict=True)]
    np.testing.assert_allclose(LeastWrong.of(eps, delta)(u), np.maximum(0, np.max(lines, axis=0)), atol=1e-11)
    all_given_away = LeastWrong.of(np.zeros(1), np.ones(1))
    assert all_given_away.in_all == 0
    np.testing.assert_allclose(LeastWrong.of(np.zeros(1), np.zeros(1))(u), NO_LEAK(u), atol=1e-11)


def test_a_chance_is_the_slope():
    share = np.array([0.02, 0.2, 0.7])
    exact = np.diff(of_gaussian(1.0)(np.stack([share - 0.01, share + 0.01])), axis=0)[0] / 0.02
    np.testing.assert_allclose(of_gaussian(1.0).chance(share), exact, rtol=0.05)


# The law that bounds all attacks


def most_telling(pair, weights, few):
    """sup over every attack on independent models of Pr[the wrong guesses weigh at most `few`], by brute force.

    `pair`: the probabilities of each output with b = 1 and with b = 0. For every outputs of all models, every order and
    every guesses are tried.
    """
    n, total = len(weights), 0.0
    orders = list(itertools.permutations(range(n)))
    for outputs in itertools.product(range(len(pair[0])), repeat=n):
        p = [np.array([pair[0][o], pair[1][o]]) / 2 for o in outputs]
        best = 0.0
        for order, said in itertools.product(orders, itertools.product((0, 1), repeat=n)):
            chance = sum(
                math.prod(p[i][0] if bits[i] else p[i][1] for i in range(n))
                for bits in itertools.product((0, 1), repeat=n)
                if sum(w for w, i in zip(weights, order, strict=True) if bits[i] != said[i]) <= few + 1e-12
            )
            best = max(best, chance)
        total += best
    return total


def of_the_best_attack(pair, weights, few):
    """The same where the guess that is likelier right stands before, by the order of |log-odds|."""
    n, total = len(weights), 0.0
    for outputs in itertools.product(range(len(pair[0])), repeat=n):
        mass = math.prod((pair[0][o] + pair[1][o]) / 2 for o in outputs)
        wrong = sorted(min(pair[0][o], pair[1][o]) / (pair[0][o] + pair[1][o]) for o in outputs)
        for errors in itertools.product((0, 1), repeat=n):
            chance = math.prod(w if e else 1 - w for w, e in zip(wrong, errors, strict=True))
            total += mass * chance * (np.dot(weights, errors) <= few + 1e-12)
    return total


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (3.0, 1.0, 0.5), (1.0, 0.6, 0.0)])
def test_no_attack_beats_the_one_with_its_surest_guesses_first(weights):
    """Outputs of one model: a pair of laws, and one that draws from it with less telling outputs."""
    telling = np.array([[0.55, 0.3, 0.15], [0.05, 0.35, 0.6]])
    dulled = telling @ np.array([[0.7, 0.3, 0.0], [0.2, 0.6, 0.2], [0.1, 0.0, 0.9]])
    sums = {sum(some) for k in range(4) for some in itertools.combinations(weights, k)}
    for few in sorted(sums):
        bound = of_the_best_attack(telling, weights, few)
        assert most_telling(telling, weights, few) == pytest.approx(bound, abs=1e-12)
        assert most_telling(dulled, weights, few) <= bound + 1e-12


def slow_tail(mu, guesses, falling, draws, seed):
    """Pr[the wrong guesses weigh so little] for the best attack on Gaussian noise, drawn guess by guess."""
    rng, n = np.random.default_rng(seed), guesses.n
    of = np.repeat(falling, guesses.sizes)
    odds = np.sort(np.abs(mu * (rng.normal(mu * rng.integers(0, 2, (draws, n)), 1.0) - mu / 2)), axis=1)[:, ::-1]
    wrong = rng.random((draws, n)) < special.expit(-odds)
    return float(np.mean(wrong @ of <= falling @ np.array(guesses.wrong) + 1e-9))


@pytest.mark.parametrize(("mu", "seed"), [(0.4, 1), (1.0, 2), (2.0, 3)])
def test_the_tail_is_that_of_a_slow_twin_from_above(mu, seed):
    """By the level at which it begins to refute: a little above that of the twin, and never below."""
    guesses = guessed(mu + 0.6, 60, seed).ranked
    falling = weights(guesses.middles)
    exact = slow_tail(mu, guesses, falling, 60_000, seed)
    error = 4 * math.sqrt(exact * (1 - exact) / 60_000)
    assert 0.001 < exact < 0.4

    def refutes(alpha):
        return ranked._Test.of(guesses, falling, alpha, 1).refutes(of_gaussian(mu))

    assert not refutes(exact - error)
    assert refutes(1.15 * exact + error)


def test_tails_are_found_at_every_level():
    """The draws are tilted, so that rare events are as easy as frequent ones."""
    guesses = Ranked((20, 80), (0, 0))
    for alpha in (1e-2, 1e-4, 1e-8, 1e-12):
        test = ranked._Test.of(guesses, np.ones(2), alpha, 1)
        wrong = -math.expm1(math.log(alpha) / 100)  # no wrong guess of 100 has then just this probability
        refuted = [test.refutes(LeastWrong(np.array([0.0, 1.0]), np.array([0.0, x * wrong]))) for x in (0.9, 1.1)]
        assert refuted == [False, True]


def test_a_simulated_limit_is_above_the_mean():
    rng, missed = np.random.default_rng(0), 0
    for _ in range(300):
        found = Simulated(1.0, 0.2)
        found.add((rng.random(40) < 0.1).astype(float))
        missed += found.at_most < 0.1
    assert missed <= 60
    many = Simulated(1.0, 1e-6)
    for _ in range(20):
        many.add(np.full(1000, 0.25))
    assert (many.mean, many.deviation) == (0.25, 0.0)
    assert 0.25 < many.at_most < 0.253  # without spread, nearly the mean


@pytest.mark.parametrize("spread", [True, False])
def test_a_wager_is_won_as_seldom_as_it_says_and_soon_enough(spread):
    """400 wagers on a mean that is just reached are asked after every 50 draws; one on a lower mean is won."""
    rng = np.random.default_rng(0)

    def won(mean, allowed, unsure, n):
        wager = Wager(allowed, 1.0, unsure, n)
        for _ in range(n // 50):
            wager.add((rng.random(50) < mean).astype(float) if spread else np.full(50, mean))
            if wager.won:
                return True
        return False

    assert sum(won(0.1, 0.1, 0.2, 500) for _ in range(400)) <= 80
    assert not any(won(0.11, 0.1, 1e-6, 500) for _ in range(20))
    assert won(0.1, 0.15 if spread else 0.11, 1e-9, 2**14)


def test_the_limit_of_a_wager_is_about_where_it_is_won():
    rng = np.random.default_rng(0)
    draws = (rng.random(2**14) < 0.1).astype(float)

    def of(allowed, n):
        wager = Wager(allowed, 1.0, 1e-9, 2**14)
        wager.add(draws[:n])
        return wager

    limit = of(0.12, 2**14).limit()
    assert 0.1 < limit < 0.13
    assert (of(0.98 * limit, 2**14).won, of(1.02 * limit, 2**14).won) == (False, True)
    assert of(limit, 2**10).limit() == pytest.approx(limit, rel=0.15)
    assert (of(0.5 * limit, 2**10).may_win, of(limit, 2**10).may_win) == (False, True)


def test_the_search_finds_the_last_curve_that_is_refuted():
    """Or one within a few of it, wherever it begins."""
    guesses = guessed(1.0, 300, 5).ranked
    curves = [NO_LEAK, *(of_gaussian(0.01 * k) for k in range(1, 201))]
    test = ranked._Test.of(guesses, weights(guesses.middles), ranked.MAIN * 0.05, len(curves))
    refuted = [test.refutes(c) for c in curves]
    last = max(np.flatnonzero(refuted))
    assert 20 < last < 180
    assert all(refuted[: last - 1])
    for near in (0, 1, last - 3, last, last + 1, 200):
        found = ranked._search(test, curves.__getitem__, 0, 200, near)
        assert refuted[found]
        assert last - found <= 1
    assert ranked._search(test, curves.__getitem__, 0, last - 5, 3) == last - 5  # all are refuted
    assert ranked._search(test, curves.__getitem__, last, 200, 3) == last  # no other one is


# The bound


def test_a_true_mu_is_refuted_as_seldom_as_the_level_says():
    """300 runs at 80 %: 60 are expected at most, and more than a third of that."""
    curves = [NO_LEAK, of_gaussian(1.0)]
    found = [last_refuted(guessed(1.0, 100, seed).ranked, curves.__getitem__, 1, alpha=0.2) for seed in range(300)]
    assert 20 < found.count(1) < 60 + 3 * math.sqrt(60 * 0.8)


def test_it_comes_near_to_a_test_that_knows_the_law():
    """The difference of mean scores with b = 1 and b = 0 less 1.645 of its standard errors, on the same scores."""
    lost = []
    for seed in range(8):
        evidence = guessed(1.0, 1000, seed)
        ins, outs = (evidence.scores.score[evidence.scores.bit == bit] for bit in (1, 0))
        knows = ins.mean() - outs.mean() - 1.645 * math.sqrt(1 / len(ins) + 1 / len(outs))
        lost.append(knows - ranked_mu(evidence.ranked, level=0.95))
    assert -0.01 < np.mean(lost) < 0.04


def test_the_bound_is_refuted_and_hardly_more_is():
    guesses = guessed(1.0, 300, 5).ranked
    mu = ranked_mu(guesses, level=0.95)
    found = [last_refuted(guesses, [NO_LEAK, of_gaussian(m)].__getitem__, 1, alpha=0.05) for m in (mu, mu + 20 * STEP)]
    assert found == [1, 0]
    assert ranked_mu(guesses, level=0.99) < mu < ranked_mu(guesses, level=0.8)


def test_a_leak_of_few_models_is_seen_in_the_surest_guesses():
    """A twentieth of the models with b = 1 gives itself away: no weight on all guesses shows it."""
    guesses = guessed(9.0, 2000, 1, share=0.05).ranked
    assert sum(guesses.wrong) > 900
    assert ranked_mu(guesses, level=0.99) > 0.5


def test_models_that_failed_are_the_least_sure_and_wrong():
    whole = guessed(1.5, 60, 3)
    failed = (Failed(60, np.array([1])), Failed(61, np.array([0])))
    with_failed = replace(whole, failed=failed).ranked
    assert (with_failed.n, with_failed.n_wrong) == (62, whole.ranked.n_wrong + 2)
    assert with_failed.wrong[-1] >= 2


def test_equal_scores_stand_in_an_order_that_follows_no_order_of_rows():
    """Rows that are sorted by their bits, as many files are, and scores that say nothing: 200 tables at 80 %."""
    rng, refuted = np.random.default_rng(0), 0
    for _ in range(200):
        n = int(rng.integers(100, 250))
        bits = np.sort(rng.integers(0, 2, n))[::-1]
        table = eg.Scores(np.arange(n), np.zeros(n), bits, np.zeros(n), "substitute", bits="coins")
        guesses = Evidence.of_scores(table, 0.5).ranked
        refuted += last_refuted(guesses, [NO_LEAK].__getitem__, 0, alpha=0.2) is not None
    assert refuted <= 40 + 3 * math.sqrt(32)


def test_useless_and_few_guesses():
    for guesses in (Ranked((), ()), Ranked((1,), (0,)), Ranked((10, 10), (5, 5)), Ranked((10, 10), (10, 10))):
        assert ranked_mu(guesses, level=0.95) == 0
    assert ranked_mu(Ranked((4, 4), (0, 0)), level=0.9) > 0
    assert Ranked.of(np.zeros(0, bool)) == Ranked((), ())
    assert Ranked.of(np.array([False, True])).wrong == (0, 1)
