"""The kernel against its slow, obvious twin, for all families and for priors of any shape."""

import numpy as np
import pytest
import twin

import epsgauge as eg

TALLIES = [
    eg.Tally(tp=65, tn=75, fp=25, fn=35),
    eg.Tally(tp=2, tn=487, fp=0, fn=511),
    eg.Tally(tp=7, tn=0, fp=9, fn=0),
    eg.Tally(tp=10, tn=10, fp=0, fn=0),
    eg.Tally(tp=1, tn=12, fp=3, fn=4),
    eg.Tally(tp=3, tn=8, fp=40, fn=50),
    eg.Tally(tp=5, tn=0, fp=0, fn=2),
]


@pytest.mark.parametrize("tally", TALLIES, ids=repr)
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05, 0.4])
def test_eps(tally, delta):
    post = eg.estimate(tally, delta=delta)
    for eps in (0.1, 1.0, 4.0):
        want = twin.region_mass(tally, eps, delta)
        assert post.cdf(eps) == pytest.approx(want, abs=2e-9)
        assert post.sf(eps) == pytest.approx(1 - want, abs=2e-9)


@pytest.mark.parametrize("tally", TALLIES, ids=repr)
def test_delta(tally):
    post = eg.estimate_delta(tally, eps=0.7)
    for delta in (0.0, 0.02, 0.3, 0.9):
        assert post.cdf(delta) == pytest.approx(twin.region_mass(tally, 0.7, delta), abs=2e-9)


@pytest.mark.parametrize("tally", TALLIES, ids=repr)
def test_mu(tally):
    post = eg.estimate_mu(tally)
    for mu in (0.1, 1.0, 3.0):
        assert post.cdf(mu) == pytest.approx(twin.gaussian_mass(tally, mu), abs=2e-9)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.95, 1.05), (2.2, 1.3), (0.6, 3.0)])
def test_priors(prior):
    """Shapes that are no multiples of ½ take other charts."""
    for tally in TALLIES[1:5]:
        for delta in (0.0, 1e-3):
            post = eg.estimate(tally, delta=delta, prior=prior)
            for eps in (0.3, 3.0):
                assert post.cdf(eps) == pytest.approx(twin.region_mass(tally, eps, delta, prior), abs=2e-8)


# Pr[ε > 0.3], Pr[ε > 3] and Pr[ε > 20] at δ = 0 for the prior Beta(a, a) and a tally of tp = fp = k, tn = fn = 0:
# the sum of `docs/statistics.md` in mpmath with 40 digits, where w = u²⁰ tames the end w = 1 − y = 0.
SHARP = {
    (0.1, 0): (0.9831491630867078, 0.83167653616330994, 0.19391734646196448),
    (0.1, 5): (0.9732273395115133, 0.74942856825726857, 0.1370034569097172),
    (0.3, 0): (0.94780690025180983, 0.5265078074489493, 0.0038112695047922102),
    (0.3, 5): (0.93218754914339048, 0.44094888662868934, 0.0027017828572579759),
}


@pytest.mark.parametrize(("a", "k"), SHARP)
def test_sharp_priors(a, k):
    post = eg.estimate(eg.Tally(tp=k, tn=0, fp=k, fn=0), delta=0.0, prior=(a, a))
    np.testing.assert_allclose(post.sf([0.3, 3.0, 20.0]), SHARP[a, k], rtol=0, atol=1e-11)


@pytest.mark.parametrize("prior", [(0.1, 0.1), (0.3, 0.3)])
def test_sharp_priors_agree_with_samples(prior):
    """Below ½ the twin's quadrature fails; draws of both rates do not."""
    for tally in (TALLIES[2], eg.Tally(tp=0, tn=0, fp=0, fn=0)):
        post = eg.estimate(tally, delta=1e-5, prior=prior)
        draws = post.sample(400_000, seed=5)
        for eps in (0.3, 3.0, 20.0):
            assert post.cdf(eps) == pytest.approx(np.mean(draws <= eps), abs=4e-3)


def test_pdf_is_the_slope_of_the_cdf():
    for tally in TALLIES:
        for post in (eg.estimate(tally, delta=1e-3), eg.estimate_delta(tally, eps=0.4), eg.estimate_mu(tally)):
            at, step = post.quantile(0.7), 1e-5
            slope = (post.cdf(at + step) - post.cdf(at - step)) / (2 * step)
            assert post.pdf(at) == pytest.approx(slope, rel=2e-6, abs=1e-8)
