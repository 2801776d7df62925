"""Properties that every posterior has, on tallies that Hypothesis draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsgauge as eg

counts = st.one_of(st.integers(0, 12), st.integers(0, 2_000), st.integers(0, 1_000_000))
tallies = st.builds(lambda tp, tn, fp, fn: eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn), counts, counts, counts, counts)
deltas = st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.05, 0.3])
# What rounding may do to a cdf.
NOISE = 1e-12


@given(tallies, deltas)
def test_cdf_grows_with_eps_and_with_delta(tally, delta):
    eps = np.array([0.0, 1e-4, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 40.0, 300.0])
    cdf = eg.estimate(tally, delta=delta).cdf(eps)
    assert (np.diff(cdf) >= -NOISE).all()
    assert cdf.min() >= 0
    assert cdf.max() <= 1
    wider = eg.estimate(tally, delta=min(0.9, 2 * delta + 1e-6)).cdf(eps)
    assert (wider >= cdf - NOISE).all()


@given(tallies, deltas)
def test_cdf_and_sf_add_up(tally, delta):
    post = eg.estimate(tally, delta=delta)
    eps = np.geomspace(1e-3, 60, 20)
    np.testing.assert_allclose(post.cdf(eps) + post.sf(eps), 1.0, rtol=0, atol=1e-14)


@given(tallies, deltas)
def test_intervals_nest_with_level(tally, delta):
    post = eg.estimate(tally, delta=delta)
    inner, outer, far = post.interval(0.5), post.interval(0.9), post.interval(0.999)
    slack = 1e-9 * max(1.0, far.high)
    assert far.low <= outer.low + slack <= inner.low + 2 * slack <= post.median() + 3 * slack
    assert post.median() <= inner.high + slack <= outer.high + 2 * slack <= far.high + 3 * slack


@given(tallies, deltas, st.sampled_from([1e-9, 1e-4, 0.03, 0.5, 0.9]))
def test_quantile_and_cdf_invert_each_other(tally, delta, p):
    post = eg.estimate(tally, delta=delta)
    low = post.quantile(p)
    if p > post.mass_at_zero:
        assert post.cdf(low) == pytest.approx(p, rel=1e-6, abs=1e-13)
    else:
        assert low == 0
    high = post.isf(p)
    if high > 0:
        assert post.sf(high) == pytest.approx(p, rel=1e-6, abs=1e-13)


@given(tallies, deltas)
def test_pdf_integrates_to_what_is_not_at_zero(tally, delta):
    post = eg.estimate(tally, delta=delta)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    tails = np.array([1e-11, 1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.3])
    cuts = np.unique(np.concatenate([[0.0], post.quantile(tails), post.isf(tails)]))
    a, b = cuts[:-1, None], cuts[1:, None]
    total = np.sum((b - a) / 2 * weights * post.pdf((a + b) / 2 + (b - a) / 2 * nodes))
    assert total == pytest.approx(1 - post.mass_at_zero, abs=1e-9)


@given(tallies, deltas)
def test_flipped_guesses_leak_as_much(tally, delta):
    eps = np.array([0.0, 0.2, 1.0, 3.0, 9.0])
    want = eg.estimate(tally, delta=delta).cdf(eps)
    np.testing.assert_allclose(eg.estimate(tally.flipped(), delta=delta).cdf(eps), want, rtol=0, atol=NOISE)
    mu = eg.estimate_mu(tally).cdf(eps)
    np.testing.assert_allclose(eg.estimate_mu(tally.flipped()).cdf(eps), mu, rtol=0, atol=NOISE)


@given(tallies, deltas)
def test_classes_may_change_places(tally, delta):
    eps = np.array([0.0, 0.2, 1.0, 3.0, 9.0])
    swapped = eg.Tally(tp=tally.tn, tn=tally.tp, fp=tally.fn, fn=tally.fp)
    want = eg.estimate(tally, delta=delta).cdf(eps)
    np.testing.assert_allclose(eg.estimate(swapped, delta=delta).cdf(eps), want, rtol=0, atol=NOISE)


@given(st.lists(st.tuples(counts, counts, counts, counts), min_size=1, max_size=6), deltas)
def test_broadcasting_equals_a_loop(cells, delta):
    tp, tn, fp, fn = np.array(cells).T
    many = eg.estimate(eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn), delta=delta)
    ends, sf = many.interval(0.9), many.sf(1.0)
    for i, (a, b, c, d) in enumerate(cells):
        one = eg.estimate(eg.Tally(tp=a, tn=b, fp=c, fn=d), delta=delta)
        assert one.interval(0.9).low == pytest.approx(ends.low[i], rel=1e-9, abs=1e-11)
        assert one.interval(0.9).high == pytest.approx(ends.high[i], rel=1e-9, abs=1e-11)
        assert one.sf(1.0) == pytest.approx(sf[i], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    "post",
    [
        eg.estimate(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5),
        eg.estimate(eg.Tally(tp=5, tn=4, fp=6, fn=3), delta=0.2),
        eg.estimate_delta(eg.Tally(tp=60, tn=70, fp=30, fn=40), eps=0.3),
        eg.estimate_mu(eg.Tally(tp=60, tn=70, fp=30, fn=40)),
        eg.estimate_mu(eg.Tally(tp=60, tn=70, fp=30, fn=40)).eps_at(0.01),
    ],
    ids=repr,
)
def test_agreement_with_monte_carlo(post):
    n = 200_000
    draws = post.sample(n, seed=11)
    assert np.mean(draws == 0) == pytest.approx(post.mass_at_zero, abs=5 / np.sqrt(n))
    for p in (0.05, 0.5, 0.95):
        assert np.mean(draws <= post.quantile(p)) == pytest.approx(max(p, post.mass_at_zero), abs=5 / np.sqrt(n))
    assert post.mean() == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(n))


def test_mean_is_that_of_a_known_case():
    """With uniform priors and no data, δ at ε = 0 is |1 − x − y|, which has the mean 1/3."""
    post = eg.estimate_delta(eg.Tally(tp=0, tn=0, fp=0, fn=0), eps=0.0, prior=(1.0, 1.0))
    assert post.mean() == pytest.approx(1 / 3, abs=1e-10)
    np.testing.assert_allclose(post.cdf([0.2, 0.5, 1.0]), [1 - 0.8**2, 1 - 0.5**2, 1.0], atol=1e-13)


def test_no_samples_is_the_prior():
    ends = eg.estimate(eg.Tally(tp=0, tn=0, fp=0, fn=0), delta=1e-5).interval(0.9)
    assert (round(ends.low, 2), round(ends.high, 2)) == (0.18, 6.93)


@pytest.mark.parametrize("cells", [(1000, 1000, 0, 0), (0, 0, 1000, 1000), (10_000_000, 1, 0, 0), (5, 0, 0, 5)])
def test_perfect_attacks(cells):
    post = eg.estimate(eg.Tally(**dict(zip(("tp", "tn", "fp", "fn"), cells, strict=True))), delta=1e-5)
    ends = post.interval(0.9)
    assert 0 <= ends.low < ends.high < 100
    far = post.sf(np.array([200.0, 400.0, 700.0, 1200.0]))
    assert (far > 0).all()  # the tail goes with e^(−ε/2)
    np.testing.assert_allclose(np.diff(np.log(far)), [-100, -150, -250], rtol=1e-6)


def test_without_delta_there_is_no_atom_exactly():
    many = eg.Tally(tp=[0, 1000, 3, 0], tn=[0, 1000, 2, 50], fp=[0, 1000, 9, 0], fn=[0, 1000, 1, 50])
    assert (eg.estimate(many, delta=0).mass_at_zero == 0).all()
    assert (eg.estimate(many, delta=0).sf(0.0) == 1).all()
    assert (eg.estimate_delta(many, eps=0).mass_at_zero == 0).all()
    assert (eg.estimate_mu(many).mass_at_zero == 0).all()


def test_far_values_of_every_quantity():
    """Beyond where Φ, e^ε and e^−ε leave double precision."""
    tally = eg.Tally(tp=31, tn=996, fp=5, fn=968)
    for post, far in (
        (eg.estimate(tally, delta=1e-5), [800.0, 1e6]),
        (eg.estimate(tally, delta=1e-5, prior=(0.1, 2.3)), [800.0, 1e6]),
        (eg.estimate_mu(tally), [37.0, 100.0, 1e6]),
        (eg.estimate_mu(tally).eps_at(1e-5), [800.0, 1e6]),
        (eg.estimate_delta(tally, eps=800.0), [0.0, 0.5]),
        (eg.estimate_delta(tally, eps=800.0, prior=(2.3, 0.7)), [0.0, 0.5]),
    ):
        assert (post.cdf(far) == 1).all()
        assert (post.sf(far) <= 1e-30).all()
        assert np.isfinite(post.pdf(far)).all()


def test_tails_of_sharp_priors_go_with_their_exponent():
    far = eg.estimate(eg.Tally(tp=0, tn=0, fp=5, fn=0), delta=1e-3, prior=(0.1, 0.1)).sf([600.0, 700.0, 720.0, 900.0])
    np.testing.assert_allclose(np.diff(np.log(far)), [-10, -2, -18], rtol=1e-6)


def test_delta_close_to_one():
    post = eg.estimate_delta(eg.Tally(tp=100, tn=100, fp=0, fn=0), eps=1.0)
    draws = post.sample(200_000, seed=2)
    assert post.mean() == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(len(draws)))
    assert 0.999 < eg.estimate_delta(eg.Tally(tp=0, tn=0, fp=209748, fn=7), eps=1.0).isf(1e-12) <= 1


@pytest.mark.parametrize("p", [0.2, 0.5, 0.95])
def test_quantiles_of_delta_where_its_density_at_zero_is_infinite(p):
    post = eg.estimate_delta(eg.Tally(tp=484, tn=0, fp=516, fn=0), eps=0.5)
    assert post.mass_at_zero < p
    assert post.cdf(post.quantile(p)) == pytest.approx(p, rel=1e-10)


def test_density_of_delta_may_be_infinite_at_zero():
    post = eg.estimate_delta(eg.Tally(tp=5, tn=0, fp=9, fn=0), eps=1.0)
    near = post.pdf([1e-12, 1e-100, 1e-300])
    assert post.pdf(0.0) == np.inf
    # it grows with log(1/δ)
    assert (near[2] - near[1]) / (near[1] - near[0]) == pytest.approx(200 / 88, rel=1e-6)


def test_far_outside_the_support():
    post = eg.estimate(eg.Tally(tp=5, tn=5, fp=5, fn=5), delta=0.1)
    assert (post.cdf(-1.0), post.sf(-1.0), post.pdf(-1.0)) == (0, 1, 0)
    assert (post.cdf(np.inf), post.sf(np.inf), post.pdf(np.inf)) == (1, 0, 0)
    assert (post.quantile(0.0), post.quantile(1.0)) == (0, np.inf)
    delta = eg.estimate_delta(eg.Tally(tp=5, tn=5, fp=5, fn=5), eps=0.1)
    assert (delta.cdf(1.0), delta.quantile(1.0)) == (1, 1)


def test_arrays_of_parameters_and_indexing():
    tally = eg.Tally(tp=[31, 63], tn=[996, 511], fp=[5, 2], fn=[968, 424])
    grid = eg.estimate(tally, delta=[[1e-5], [1e-3], [1e-2]])
    assert grid.shape == (3, 2)
    assert grid.median().shape == (3, 2)
    assert grid.mean().shape == (3, 2)
    one = grid[2, 1]
    assert one.shape == ()
    assert one.median() == pytest.approx(grid.median()[2, 1], rel=1e-12)
    assert grid[1].cdf(1.0) == pytest.approx(grid.cdf(1.0)[1], rel=1e-12)
    assert grid.sample(7, seed=1).shape == (7, 3, 2)


def test_exceeds_and_lower_bound():
    post = eg.estimate(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    assert post.exceeds(2.0) == post.sf(2.0)
    assert post.lower_bound(0.95) == pytest.approx(post.interval(0.90).low, rel=1e-12)


def test_text():
    post = eg.estimate(eg.Tally(tp=2, tn=487, fp=0, fn=511), delta=1e-5)
    assert repr(post) == "<Posterior of ε at δ = 1e-05 given Tally(tp=2, tn=487, fp=0, fn=511)>"
    assert "guaranteed" in str(post)
    assert "hardly moved from the prior" in str(post)
    assert repr(post.interval(0.9)) == "Interval(low=0.2192, high=6.993, level=0.9, kind='credible')"


def test_gaussian_dp_is_named_as_an_assumption():
    post = eg.estimate_mu(eg.Tally(tp=60, tn=70, fp=30, fn=40))
    assert "Gaussian DP" in str(post)
    assert "under Gaussian DP" in str(post.eps_at(1e-5))
