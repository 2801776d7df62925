"""Bad input: one sentence with name, rule and value."""

import numpy as np
import pytest

import epsgauge as eg

GOOD = {"tp": 31, "tn": 996, "fp": 5, "fn": 968}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"tp": -1}, "tp must be a whole number, 0 or more, but got -1."),
        ({"tn": 1.5}, "tn must be a whole number, 0 or more, but got 1.5."),
        ({"fp": np.nan}, "fp must not be NaN, but got nan."),
        ({"fn": "many"}, "fn must be a number or an array of numbers, but got 'many'."),
        ({"fn": [3, -2]}, "fn must be a whole number, 0 or more, but got -2 at index 1."),
        ({"tp": 10**12}, "tp must be at most 1e+09, but got 1000000000000."),
        ({"tp": 1 + 2j}, "tp must be a number or an array of numbers, but got (1+2j)."),
        ({"tp": np.inf}, "tp must be at most 1e+09, but got inf."),
        ({"tp": [1, 2], "fp": [1, 2, 3]}, "shapes must broadcast together, but got tp (2,), tn (), fp (3,), fn ()."),
    ],
)
def test_tally(cells, message):
    with pytest.raises(eg.InvalidInput) as caught:
        eg.Tally(**{**GOOD, **cells})
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, eg.EpsgaugeError)


def test_counts_are_keyword_only():
    with pytest.raises(TypeError):
        eg.Tally(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: eg.estimate(t, delta=1.5), "delta must be in [0, 1), but got 1.5."),
        (lambda t: eg.estimate(t, delta=-1e-9), "delta must be in [0, 1), but got -1e-09."),
        (lambda t: eg.estimate(t, delta=[0.1, 1.0]), "delta must be in [0, 1), but got 1 at index 1."),
        (lambda t: eg.estimate(t, delta=np.nan), "delta must not be NaN, but got nan."),
        (lambda t: eg.estimate_delta(t, eps=-1), "eps must be finite, 0 or more, but got -1."),
        (
            lambda t: eg.estimate(t, delta=0, prior=(0, 1)),
            "prior must be two shapes from 0.1 to 1e+09, but got 0 at index 0.",
        ),
        (
            lambda t: eg.estimate(t, delta=0, prior=0.5),
            "prior must be the two shapes (a, b) of a Beta distribution, but got 0.5.",
        ),
        (lambda t: eg.estimate(t, delta=0).interval(1.0), "level must be in (0, 1), but got 1.0."),
        (lambda t: eg.estimate(t, delta=0).interval(0), "level must be in (0, 1), but got 0."),
        (lambda t: eg.estimate(t, delta=0).quantile(1.2), "p must be in [0, 1], but got 1.2."),
        (
            lambda t: eg.estimate(t, delta=0).isf(1e-15),
            "q must be 0, 1 or at least 1e-12 away from both, but got 1e-15.",
        ),
        (lambda t: eg.estimate(t, delta=0).cdf(np.nan), "value must not be NaN, but got nan."),
        (lambda t: eg.estimate(t, delta=0).sample(0, seed=1), "n must be a whole number, 1 or more, but got 0."),
        (
            lambda t: eg.estimate(t, delta=0).eps_at(0.1),
            "eps_at needs a posterior of mu, but this is one of eps. Use estimate_mu.",
        ),
        (lambda t: eg.estimate(t, delta=0)[0], "this posterior is of one tally and cannot be indexed."),
        (
            lambda t: eg.estimate_mu(t).eps_at(0),
            "delta must be above 0, as Gaussian DP with δ = 0 has no finite ε, but got 0.",
        ),
        (
            lambda t: eg.intervals(t, delta=0, level=1 - 1e-15),
            "level must be at least 2e-12 away from 0 and 1, but got 0.999999999999999.",
        ),
        (
            lambda t: eg.estimate((1, 2, 3, 4), delta=0),
            "tally must be a Tally, but got (1, 2, 3, 4). Use eg.Tally(tp=, tn=, fp=, fn=).",
        ),
        (
            lambda t: eg.estimate(t, delta=0).joint.rectangle_mass(fnr=(0.9, 0.1), fpr=(0, 1)),
            "fnr must be two rates, the smaller one first, but got (0.9, 0.1).",
        ),
        (
            lambda t: eg.estimate(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), delta=[0, 0.1, 0.2]),
            "shapes must broadcast together, but got tally (2,), delta (3,).",
        ),
        (
            lambda t: eg.sample_size(delta=0, half_width=0.1, accuracy=0.6, prior=(-1, 0.5)),
            "prior must be two shapes from 0.1 to 1e+09, but got -1 at index 0.",
        ),
        (
            lambda t: eg.sample_size(delta=0, half_width=[0.1, 0.2], accuracy=0.6),
            "half_width must be one number, but got an array of shape (2,).",
        ),
        (
            lambda t: eg.sample_size(delta=0, half_width=0.1, accuracy=0.4),
            "accuracy must be at least 0.5, as below it the opposite guess is better, but got 0.4.",
        ),
        (lambda t: eg.intervals(t, delta=0, level=-1), "level must be in (0, 1), but got -1."),
        (lambda t: eg.sample_size(delta=0, accuracy=0.6), "exactly one of half_width and lower_bound must be given."),
        (
            lambda t: eg.sample_size(delta=0, half_width=0.1),
            "the attack must be given by accuracy alone, or by fnr and fpr together.",
        ),
        (
            lambda t: eg.sample_size(delta=0, half_width=0.1, accuracy=0.6, method="wald"),
            "method must be one of bayes, jeffreys, clopper-pearson, but got 'wald'.",
        ),
        (lambda t: eg.sample_size(delta=0, half_width=0, accuracy=0.6), "half_width must be above 0, but got 0."),
        (lambda t: eg.largest_eps(-5, delta=0), "n_samples must be a whole number, 0 or more, but got -5."),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises(eg.InvalidInput) as caught:
        call(eg.Tally(**GOOD))
    assert str(caught.value) == message


def test_from_guesses():
    assert eg.Tally.from_guesses([1, 1, 0, 0, 0], [1, 0, 0, 1, 0]) == eg.Tally(tp=1, tn=2, fp=1, fn=1)
    assert eg.Tally.from_guesses([True, False], [False, False]) == eg.Tally(tp=0, tn=1, fp=0, fn=1)
    with pytest.raises(eg.InvalidInput, match="same length, but got shapes"):
        eg.Tally.from_guesses([1, 0], [1])
    with pytest.raises(eg.InvalidInput, match="guesses must be 0 or 1, but got 2 at index 0"):
        eg.Tally.from_guesses([1, 0], [2, 0])


def test_tallies_are_frozen_values():
    tally = eg.Tally(tp=[1, 2], tn=3, fp=4, fn=5)
    with pytest.raises(ValueError, match="read-only"):
        tally.tp[0] = 9
    assert tally == eg.Tally(tp=[1, 2], tn=[3, 3], fp=4, fn=5)
    assert hash(tally) == hash(eg.Tally(tp=[1, 2], tn=[3, 3], fp=4, fn=5))
    assert tally[1] == eg.Tally(tp=2, tn=3, fp=4, fn=5)
    assert tally.fpr.tolist() == [4 / 7, 4 / 7]
    assert np.isnan(eg.Tally(tp=0, tn=1, fp=0, fn=0).fnr)
