"""The joint posterior of both rates: density, contours, masses."""

import numpy as np
import pytest
from scipy import stats

import epsgauge as eg


@pytest.fixture(scope="module")
def joint():
    return eg.estimate(eg.Tally(tp=65, tn=75, fp=25, fn=35), delta=0.05).joint


def test_density_is_the_product_of_betas(joint):
    x, y = np.array([0.2, 0.35, 0.5]), np.array([0.1, 0.25, 0.4])
    want = stats.beta.pdf(x, 35.5, 65.5) * stats.beta.pdf(y, 25.5, 75.5)
    np.testing.assert_allclose(joint.pdf(x, y), want, rtol=1e-11)


def test_masses_of_the_worked_example(joint):
    """§3.2: the Clopper-Pearson rectangle covers 96.3 %, the region between two privacy regions 99.8 %."""
    from epsgauge.stats.rates import clopper_pearson

    fnr, fpr = (clopper_pearson(k, 100, level=0.975) for k in (35, 25))
    rectangle = joint.rectangle_mass(fnr=(fnr.low, fnr.high), fpr=(fpr.low, fpr.high))
    assert rectangle == pytest.approx(0.96301, abs=5e-6)
    rows = eg.intervals(eg.Tally(tp=65, tn=75, fp=25, fn=35), delta=0.05, level=0.95)
    row = rows["clopper-pearson"]
    between = joint.region_mass(eps=row.high, delta=0.05) - joint.region_mass(eps=row.low, delta=0.05)
    assert between == pytest.approx(0.99790, abs=5e-6)


@pytest.mark.parametrize("mass", [0.5, 0.9])
def test_contour_encloses_its_mass(joint, mass):
    level = joint.level_of_mass(mass)
    rng = np.random.default_rng(3)
    x, y = rng.beta(35.5, 65.5, 200_000), rng.beta(25.5, 75.5, 200_000)
    assert np.mean(joint.pdf(x, y) >= level) == pytest.approx(mass, abs=5e-3)
    outline = joint.contour(mass)
    inner = outline[1:-1]
    np.testing.assert_allclose(joint.pdf(inner[:, 0], inner[:, 1]), level, rtol=1e-6)
    assert (outline[0] == outline[-1]).all()


def test_contour_of_a_rate_that_was_never_wrong():
    outline = eg.estimate(eg.Tally(tp=20, tn=30, fp=0, fn=10), delta=0).joint.contour(0.8)
    assert np.isfinite(outline).all()
    assert outline[:, 1].min() == 0


def test_contour_needs_both_classes():
    with pytest.raises(eg.InvalidInput, match="at least one sample of each class"):
        eg.estimate(eg.Tally(tp=5, tn=0, fp=0, fn=3), delta=0).joint.contour(0.9)
