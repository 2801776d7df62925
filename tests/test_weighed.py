"""The weight of wrong guesses against a whole curve: all laws and all mechanisms by linear programming, coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from worst_case import most_won

from epsgauge.bounds import weighed
from epsgauge.bounds.guesses import Guesses, surest_right
from epsgauge.bounds.one_run import one_run_fdp_mu, published_mu
from epsgauge.bounds.priced import prices_at, refuted_mu
from epsgauge.bounds.weighed import WEIGHTS, Weighed, ends_of, tail_without_delta, weighed_mu
from epsgauge.stats.region import gaussian_delta, gaussian_eps


def most_of_all(n_guesses, lost, n_bits, eps, deltas):
    """sup Pr[S ≤ lost] over all laws of the numbers of wrong guesses in each class."""
    sizes = np.diff(ends_of(n_guesses))
    place = {b: i for i, b in enumerate(itertools.product(*(range(n + 1) for n in sizes)))}
    more = [(b, c, (*b[:c], b[c] + 1, *b[c + 1 :])) for b in place for c in range(len(sizes)) if b[c] < sizes[c]]
    n, width = len(place), len(place) + len(eps) * len(more)
    rows, limits = [], []
    for j, e in enumerate(eps):
        budget = np.zeros(width)
        for i, (b, c, one_more) in enumerate(more):
            row, at = np.zeros(width), n + j * len(more) + i
            row[place[b]], row[place[one_more]], row[at] = sizes[c] - b[c], -math.exp(e) * one_more[c], -1.0
            budget[at] = 1.0
            rows.append(row)
            limits.append(0.0)
        rows.append(budget)
        limits.append(n_bits * deltas[j])
    gain, one = np.zeros(width), np.zeros((1, width))
    one[0, :n] = 1.0
    for b, i in place.items():
        gain[i] = -float(np.dot(b, WEIGHTS) <= lost)
    return -linprog(gain, A_ub=np.array(rows), b_ub=limits, A_eq=one, b_eq=[1.0]).fun


def test_no_prices_and_functions_prove_what_is_not_so():
    """Good and bad ones, against the largest probability of all laws."""
    rng, near = np.random.default_rng(0), 0
    for _ in range(40):
        r = int(rng.integers(3, 11))
        lost, n, mu = int(rng.integers(0, 5)), r + int(rng.integers(0, 20)), float(rng.uniform(0.3, 1.2))
        said = Weighed(Guesses(max(r - lost, 0), r, n), lost)
        eps = np.sort(rng.uniform(0.05, 3.0, 3))
        deltas = gaussian_delta(eps, mu=mu)
        prices, phi = weighed._program(said, eps, deltas)
        if rng.random() < 0.5:
            prices = prices * rng.uniform(0.5, 2.0, 3)
            phi = [p * rng.uniform(0.7, 1.3, len(p)) for p in phi]
        limit = tail_without_delta(ends_of(r), lost, eps, prices, phi) + n * prices @ deltas
        assert limit >= most_of_all(r, lost, n, eps, deltas) - 1e-7
        near += limit < 1
    assert near > 10


def test_a_program_of_weights_alone_is_nearly_as_good():
    """It knows the weight that is lost and not the class; the certificate proves all that the program finds."""
    r, lost, n, eps = 12, 1, 30, np.array([0.3, 0.8, 1.4])
    deltas = gaussian_delta(eps, mu=0.5)
    prices, phi = weighed._program(Weighed(Guesses(11, r, n), lost), eps, deltas)
    limit = tail_without_delta(ends_of(r), lost, eps, prices, phi) + n * prices @ deltas
    assert most_of_all(r, lost, n, eps, deltas) <= limit < 1.15 * most_of_all(r, lost, n, eps, deltas)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_no_mechanism_of_three_bits_beats_all_laws(lost):
    """Against linear programs over every mechanism; the output decides which guess is surest."""
    eps = [0.2, 0.8, 1.6]
    curve = [(e, float(gaussian_delta(e, mu=0.8))) for e in eps]
    assert np.diff(ends_of(3)).tolist() == [0, 1, 2]

    def wins(bits, said):
        wrong = [b != s for b, s in zip(bits, said, strict=True)]
        return sum(wrong) + wrong[sum(said) % 3] <= lost

    worst = most_won(3, wins, curve=curve, n_guesses=3)
    assert worst <= most_of_all(3, lost, 3, eps, [d for _, d in curve]) + 1e-7


def test_rounded_upwards_and_wrong_guesses_of_failed_models_come_last():
    said = Weighed.of(Guesses(7, 16, 40), np.array([0, 1, 1, 2, 2, 3, 4, 5, 6, 7]))
    assert ends_of(16).tolist() == [0, 2, 6, 16]
    assert said.lost == 3 * 1 + 2 * 1 + 1 * 7
    assert said.with_right(7) == said
    assert said.with_right(16).lost == 0


@pytest.mark.parametrize("shared", [pytest.param(False, marks=pytest.mark.long), True])
def test_coverage(shared):
    """Scores with noise of their own, and bits of which one noisy sum is released."""
    mu, n, rng, above = 0.6, 30, np.random.default_rng(3), []
    for _ in range(300):
        bits = rng.integers(0, 2, n)
        score = (bits.sum() - n / 2 + rng.normal(0, 1 / mu)) * np.ones(n) if shared else rng.normal(mu * bits)
        right = surest_right(score, bits, threshold=0.0 if shared else mu / 2)
        above.append(weighed_mu(Weighed.of(Guesses(int(right[24]), 24, n), right), level=0.8) > mu)
    assert np.mean(above) <= 0.2


def test_which_curves_are_tested_by_number_is_known_beforehand():
    """Those up to a μ that depends on how many guesses there are; what is refuted by weight is never below it."""
    few, many = Guesses(900, 1000, 5000), Guesses(800, 1000, 5000)
    least = published_mu(few, level=0.95)
    assert weighed_mu(Weighed(many, 300), level=0.95) == one_run_fdp_mu(many, level=0.95) < least
    just = Guesses(901, 1000, 5000)
    assert weighed_mu(Weighed(just, 290), level=0.95) == least


def test_surer_guesses_that_are_right_show_more():
    g = Guesses(138, 158, 1000)
    bounds = [weighed_mu(Weighed(g, lost), level=0.95) for lost in (20, 26, 32, 44)]
    assert np.all(np.diff(bounds) < 0)
    one = weighed_mu(Weighed(Guesses(138, 158, 1000, sides="one"), 26), level=0.95)
    assert one > bounds[1]


@pytest.mark.long
def test_it_shows_more_than_numbers_do():
    """Scores N(b, 1) of 1,000 bits."""
    rng, found = np.random.default_rng(4), []
    for _ in range(5):
        bits = rng.integers(0, 2, 1000)
        right = surest_right(rng.normal(bits, 1.0), bits, threshold=0.5)
        g = Guesses(int(right[158]), 158, 1000)
        found.append([one_run_fdp_mu(g, level=0.95), weighed_mu(Weighed.of(g, right), level=0.95)])
    number, weight = gaussian_eps(np.mean(found, axis=0), delta=1e-5)
    assert weight > number + 0.03


def test_no_curve_is_refuted_where_nothing_is():
    eps = prices_at(Guesses(5, 10, 10), 15)
    assert refuted_mu(0.2, 10, eps, np.zeros(len(eps)), 0.1) == 0
    for counts in ((0, 0, 7), (0, 50, 50), (25, 50, 50), (1, 1, 1)):
        assert weighed_mu(Weighed(Guesses(*counts), counts[1] - counts[0]), level=0.95) == 0


def test_few_wrong_guesses_that_weigh_much_are_not_lost():
    """The program is solved at lower μ where the weight does not refute what the number does."""
    number = one_run_fdp_mu(Guesses(47, 50, 200), level=0.99)
    assert 0.8 * number < weighed_mu(Weighed(Guesses(47, 50, 200), 6), level=0.99) < number
