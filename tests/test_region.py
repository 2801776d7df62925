"""The privacy region: membership, vertices, and ε, δ, μ of a pair of rates with every corner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsgauge as eg
from epsgauge.stats import region

inf = np.inf
rate = st.floats(0, 1)
open_rate = st.floats(1e-6, 1 - 1e-6)


@pytest.mark.parametrize(
    ("fnr", "fpr", "delta", "eps"),
    [
        (0.5, 0.5, 0.0, 0.0),
        (0.25, 0.25, 0.0, np.log(3)),
        (0.75, 0.75, 0.0, np.log(3)),  # reliably wrong leaks as much
        (0.1, 0.6, 0.0, np.log(0.4 / 0.1)),
        (0.6, 0.1, 0.0, np.log(0.4 / 0.1)),
        (0.0, 0.0, 0.0, inf),
        (1.0, 1.0, 0.0, inf),
        (0.0, 0.5, 0.0, inf),  # never misses
        (0.0, 1.0, 0.0, 0.0),  # always says 1
        (1.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 0.1, 0.0),
        (0.0, 0.95, 0.1, 0.0),  # δ explains it
        (0.0, 0.85, 0.1, inf),
        (0.45, 0.5, 0.1, 0.0),
        (0.2, 0.3, 0.05, np.log((1 - 0.05 - 0.3) / 0.2)),
    ],
)
def test_eps_of_rates(fnr, fpr, delta, eps):
    assert region.eps_of_rates(fnr, fpr, delta=delta) == pytest.approx(eps, abs=1e-12)


@given(rate, rate, st.floats(0, 5), st.floats(0, 0.9))
def test_membership_agrees_with_eps(fnr, fpr, eps, delta):
    least = float(region.eps_of_rates(fnr, fpr, delta=delta))
    if abs(least - eps) > 1e-9:
        assert bool(region.contains(fnr, fpr, eps=eps, delta=delta)) == (eps >= least)


@given(rate, rate, st.floats(0, 5))
def test_delta_of_rates_is_the_smallest_that_explains(fnr, fpr, eps):
    delta = float(region.delta_of_rates(fnr, fpr, eps=eps))
    assert 0 <= delta <= 1
    if delta < 0.999:
        assert region.contains(fnr, fpr, eps=eps, delta=delta + 1e-9)
    if delta > 1e-6:
        assert not region.contains(fnr, fpr, eps=eps, delta=delta - 1e-6)


@given(open_rate, open_rate)
def test_mu_of_rates_lies_on_its_curve(fnr, fpr):
    from scipy.stats import norm

    mu = float(region.mu_of_rates(fnr, fpr))
    x, y = (fnr, fpr) if fnr + fpr <= 1 else (1 - fnr, 1 - fpr)
    assert norm.cdf(norm.ppf(1 - x) - mu) == pytest.approx(y, rel=1e-6, abs=1e-9)


def test_mu_corners():
    np.testing.assert_array_equal(region.mu_of_rates([0, 0, 1, 1, 0.5], [0, 1, 0, 1, 0.5]), [inf, 0, 0, inf, 0])


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 0.0), (1.0, 0.1), (0.0, 0.2), (3.0, 1e-5)])
def test_vertices_are_on_the_boundary_and_in_order(eps, delta):
    corners = region.vertices(eps=eps, delta=delta)
    assert len(corners) == (4 if delta == 0 else 8)
    step = 1e-6
    centre = np.array([0.5, 0.5])
    assert region.contains(*(corners * (1 - step) + centre * step).T, eps=eps, delta=delta).all()
    outwards = np.clip(corners + (corners - centre) * step, 0, 1)
    moved = (outwards != corners).any(axis=1)
    inside_square = (corners > 0).all(axis=1) & (corners < 1).all(axis=1)
    assert not region.contains(*outwards[moved & inside_square].T, eps=eps, delta=delta).any()
    x, y = corners.T
    area = 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
    assert area > 0  # counter-clockwise


@given(rate, st.floats(0, 5), st.floats(0, 0.9))
def test_boundaries(fnr, eps, delta):
    low = float(region.lower_boundary(fnr, eps=eps, delta=delta))
    high = float(region.upper_boundary(fnr, eps=eps, delta=delta))
    assert 0 <= low <= high <= 1
    if high - low > 2e-9:
        assert region.contains(fnr, low + 1e-9, eps=eps, delta=delta)
        assert region.contains(fnr, high - 1e-9, eps=eps, delta=delta)
    if low > 1e-6:
        assert not region.contains(fnr, low - 1e-6, eps=eps, delta=delta)
    if high < 1 - 1e-6:
        assert not region.contains(fnr, high + 1e-6, eps=eps, delta=delta)


@given(st.floats(0, 20), st.floats(0, 0.99))
def test_advantage_bound_is_that_of_the_vertex(eps, delta):
    """Theorem B.2 is tight: it is 1 − FNR − FPR at the vertex."""
    corner = region.vertices(eps=eps, delta=delta)[1]
    assert region.advantage_bound(eps=eps, delta=delta) == pytest.approx(1 - corner.sum(), abs=1e-12)


@given(st.floats(0, 20), st.floats(0, 0.5))
def test_eps_of_advantage_inverts_it(eps, delta):
    advantage = region.advantage_bound(eps=eps, delta=delta)
    assert region.eps_of_advantage(advantage, delta=delta) == pytest.approx(eps, rel=1e-6, abs=1e-6)


def test_advantage_that_delta_alone_explains():
    assert region.eps_of_advantage(0.1, delta=0.2) == 0
    assert region.eps_of_advantage(1.0, delta=0.2) == inf


@given(st.floats(0.05, 6), st.floats(1e-9, 0.4))
def test_gaussian_conversions(mu, delta):
    eps = float(region.gaussian_eps(mu, delta=delta))
    if eps > 0:
        assert region.gaussian_delta(eps, mu=mu) == pytest.approx(delta, rel=1e-9)
        assert region.gaussian_mu(eps, delta=delta) == pytest.approx(mu, rel=1e-7)
    else:
        assert region.gaussian_delta(0.0, mu=mu) <= delta


def test_gaussian_corners():
    assert region.gaussian_eps(0.0, delta=0.0) == 0
    assert region.gaussian_eps(1.0, delta=0.0) == inf
    assert region.gaussian_delta(0.0, mu=0.0) == 0
    # δ(ε) of μ = 1 at ε = 1, from Balle and Wang's formula evaluated with mpmath: 0.126936737507
    assert region.gaussian_delta(1.0, mu=1.0) == pytest.approx(0.126936737507, abs=1e-12)


def test_very_large_eps():
    np.testing.assert_array_equal(
        region.contains([0, 0, 0.1], [0.5, 1, 0.2], eps=1000, delta=[0.1, 0, 0]), [False, True, True]
    )
    np.testing.assert_array_equal(region.delta_of_rates([0, 0, 0.1], [0, 1, 0.2], eps=1000), [1, 0, 0])
    assert region.lower_boundary(0, eps=1000, delta=0) == 1
    assert region.gaussian_mu(1.0, delta=0.0) == 0


def test_bad_rates():
    with pytest.raises(eg.InvalidInput, match=r"fnr must be in \[0, 1\], but got 1.2"):
        region.eps_of_rates(1.2, 0.1, delta=0)
