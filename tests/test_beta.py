"""Beta distributions: quantiles where SciPy's fail, norms and densities for large counts."""

import numpy as np
import pytest
from scipy import special, stats

from epsgauge.stats import beta, rates


@pytest.mark.parametrize(
    ("a", "b", "tail"),
    [
        (1.01, 0.99, 1e-22),  # SciPy 1.17's betaincinv is NaN here
        (1.05, 0.95, 1e-22),
        (1000.0, 149_999_001.0, 0.0125),  # and off by a factor of 2 here
        (1000.0, 1e8, 0.025),
        (0.5, 1e7, 1e-22),
        (3.5, 9.5, 0.3),
    ],
)
@pytest.mark.parametrize("upper", [False, True])
def test_quantile_inverts_the_cdf(a, b, tail, upper):
    x = beta.quantile(np.array([a]), np.array([b]), tail, upper=upper)
    mass = special.betaincc if upper else special.betainc
    assert mass(a, b, x) == pytest.approx(tail, rel=1e-8)


def test_clopper_pearson_of_many_samples_lies_around_the_share():
    k = np.array([998, 999, 1000, 1001, 1002])
    ends = rates.clopper_pearson(k, 150_000_000, level=0.975)
    assert (ends.low < k / 150_000_000).all()
    assert (np.diff(ends.low) > 0).all()
    assert (np.diff(ends.high) > 0).all()
    assert ends.low[2] == pytest.approx(6.2031e-06, rel=1e-4)  # from mpmath


def test_norm_of_large_shapes():
    """−log B(a, b) where differences of log-gammas lose eight digits; the values are from mpmath with 40 digits."""
    got = beta.log_norm(np.array([0.5, 1e7]), np.array([1e7, 3e7]))
    assert got[0] == pytest.approx(7.486682870054459807, rel=1e-13)
    assert got[1] == pytest.approx(22493412.78102058103, rel=1e-14)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (30.5, 970.5), (5e4, 2e6)])
def test_density_is_scipys(a, b):
    x = stats.beta.ppf([0.001, 0.2, 0.5, 0.9], a, b)[None, :]
    shapes = beta.Shapes(*(np.array([q]) for q in (a, b, beta.log_norm(np.array(a), np.array(b)))))
    got = beta.density(shapes, x, 1 - x, np.log(x))
    np.testing.assert_allclose(got, x * stats.beta.pdf(x, a, b), rtol=1e-8)
