"""Mechanisms with a known ε: their curves against numeric twins and simulation, and the same as trainers."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from epsgauge.data import zeros
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.laplace import Laplace
from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.mechanisms.randomised_response import RandomisedResponse
from epsgauge.trainers.mechanism import GaussianTrainer, LaplaceTrainer, RandomisedResponseTrainer
from epsgauge.trainers.protocol import Accountable, Trainer, knows_size, observed

CONTINUOUS = [Laplace(0.3), Laplace(1.0), Laplace(4.0), Gaussian(0.4), Gaussian(1.0), Gaussian(3.0)]
ALL = [RandomisedResponse(0.0), RandomisedResponse(0.5), RandomisedResponse(3.0), *CONTINUOUS]
RATES = np.array([0.0, 1e-4, 0.003, 0.02, 0.1, 0.25, 0.4999, 0.5, 0.7, 0.9, 0.99, 0.9999, 1.0])


def masses(mechanism):
    """Pr[output in a small cell | v] for v = 0 and 1, from the density alone; of randomised response the 2 outcomes."""
    if isinstance(mechanism, RandomisedResponse):
        grid = np.array([0.0, 1.0])
        cells = 1.0
    else:
        reach = 40 / mechanism.eps if isinstance(mechanism, Laplace) else 12 * mechanism.sigma
        grid = np.linspace(-reach, 1 + reach, 400_001)
        grid = (grid[1:] + grid[:-1]) / 2
        cells = grid[1] - grid[0]
    return tuple(np.exp(mechanism.log_density(grid, value)) * cells for value in (0.0, 1.0))


def neyman_pearson(p0, p1, fpr):
    """The best FNR at each FPR: cells in order of their likelihood ratio, the last one taken in part."""
    order = np.argsort(-(p1 / p0), kind="stable")
    taken0, taken1 = (np.concatenate([[0.0], np.cumsum(p[order])]) for p in (p0, p1))
    return 1.0 - np.interp(fpr, taken0 / taken0[-1], taken1 / taken1[-1])


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_tradeoff_is_that_of_the_likelihood_ratio_test(mechanism):
    p0, p1 = masses(mechanism)
    assert p0.sum() == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(mechanism.tradeoff(RATES), neyman_pearson(p0, p1, RATES), atol=2e-5)


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_tradeoff_is_reached_by_simulation(mechanism):
    """Releases of both values, judged by the log-likelihood ratio at a few thresholds; a z-test of 5 sigma each."""
    n, rng = 20_000, np.random.default_rng(7)
    scores = []
    for value in (0.0, 1.0):
        outputs = np.array([mechanism.sample(value, rng) for _ in range(n)])
        scores.append(mechanism.log_density(outputs, 1.0) - mechanism.log_density(outputs, 0.0))
    for threshold in np.quantile(scores[0], [0.2, 0.5, 0.9]):
        fpr, fnr = np.mean(scores[0] > threshold), np.mean(scores[1] <= threshold)
        spread = np.sqrt((fnr * (1 - fnr) + slope(mechanism, fpr) ** 2 * fpr * (1 - fpr)) / n)
        assert abs(fnr - mechanism.tradeoff(fpr)) <= 5 * spread + 1e-9, (threshold, fpr, fnr)


def slope(mechanism, fpr):
    low, high = max(0.0, fpr - 1e-3), min(1.0, fpr + 1e-3)
    return float((mechanism.tradeoff(high) - mechanism.tradeoff(low)) / (high - low))


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=str)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_samples_follow_the_density(mechanism, value):
    rng = np.random.default_rng(3)
    outputs = np.sort([mechanism.sample(value, rng) for _ in range(4000)])
    law = (
        stats.laplace(value, 1 / mechanism.eps)
        if isinstance(mechanism, Laplace)
        else stats.norm(value, mechanism.sigma)
    )
    assert stats.kstest(outputs, law.cdf).pvalue > 1e-4
    np.testing.assert_allclose(mechanism.log_density(outputs, value), law.logpdf(outputs), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mechanism", ALL, ids=str)
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05, 0.3])
def test_eps_at_delta_is_where_the_hockey_stick_divergence_is_delta(mechanism, delta):
    """δ(ε) = ∫ max(0, p1 − e^ε p0), summed over cells, or 0 already at ε = 0."""
    p0, p1 = masses(mechanism)

    def divergence(eps):
        return np.maximum(0.0, p1 - np.exp(eps) * p0).sum()

    eps = mechanism.eps_at(delta)
    if eps == 0:
        assert divergence(0.0) <= delta + 1e-8
    else:
        assert divergence(eps) == pytest.approx(delta, rel=2e-4, abs=2e-10)


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_eps_at_delta_touches_the_tradeoff_curve(mechanism):
    """1 − δ − e^ε α is below the curve f everywhere, and touches it (Dong, Roth and Su 2022, proposition 3)."""
    alpha = np.concatenate([np.linspace(0, 1, 20001), np.logspace(-9, 0, 20001)])
    eps = mechanism.eps_at(1e-3)
    gap = mechanism.tradeoff(alpha) - (1 - 1e-3 - np.exp(eps) * alpha)
    assert gap.min() >= -1e-12
    if eps > 0:
        assert gap.min() < 1e-5


def test_gaussian_curve_by_quadrature_and_by_an_accountant():
    for sigma, eps in [(0.5, 1.0), (1.0, 0.0), (1.0, 3.0), (4.0, 0.2)]:
        exact = integrate.quad(
            lambda t, s=sigma, e=eps: max(0.0, stats.norm.pdf(t, 1, s) - np.exp(e) * stats.norm.pdf(t, 0, s)),
            0.5 + sigma**2 * eps,  # from where the ratio is above e^ε
            1 + 12 * sigma + sigma**2 * eps,
            epsabs=1e-14,
        )[0]
        assert Gaussian(sigma).delta_at(eps) == pytest.approx(exact, rel=1e-8)
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    assert Gaussian(2.0).eps_at(1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("sigma", [1e-6, 0.01, 1.0, 50.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-7])
def test_gaussian_root_is_a_root_at_any_scale(sigma, delta):
    mechanism = Gaussian(sigma)
    # at σ = 1e-6 ε is 5e11, and one part in 1e16 of it moves log δ by 5e-4
    assert np.log(mechanism.delta_at(mechanism.eps_at(delta))) == pytest.approx(np.log(delta), rel=1e-5)


def test_the_ends_of_the_curves():
    for mechanism in [*ALL, Laplace(2000.0), Gaussian(1e-4), RandomisedResponse(2000.0)]:
        np.testing.assert_array_equal(mechanism.tradeoff([0.0, 1.0]), [1.0, 0.0])
        assert np.isfinite(mechanism.log_density(1.0, [0.0, 1.0])).all()
    np.testing.assert_allclose(RandomisedResponse(0.0).tradeoff(RATES), 1 - RATES)


def test_known_privacy():
    assert RandomisedResponse(1.5).known() == KnownPrivacy(1.5, "substitute", 0.0)
    assert Laplace(1.5).known(adjacency="add-remove") == KnownPrivacy(1.5, "add-remove", 0.0)
    assert Gaussian(1.0).known(1e-5).delta == 1e-5
    assert Gaussian(1.0).eps_at(0.0) == np.inf
    assert RandomisedResponse(1.0).eps_at(0.999) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Laplace(0.0), "eps must be above 0, but got 0.0."),
        (lambda: Laplace(np.inf), "eps must be finite, 0 or more, but got inf."),
        (lambda: Gaussian(-1.0), "sigma must be finite, 0 or more, but got -1.0."),
        (lambda: RandomisedResponse([1.0, 2.0]), "eps must be one number, but got an array of shape (2,)."),
        (lambda: RandomisedResponse(1.0).log_density(0.0, [0.0, 2.0]), "0 or 1 for randomised response, but got 2 at"),
        (lambda: Gaussian(1.0).eps_at(1.0), "delta must be in [0, 1), but got 1.0."),
        (lambda: Gaussian(1.0).tradeoff(1.5), "fpr must be in [0, 1], but got 1.5."),
        (lambda: Gaussian(1.0).known(), "eps must be finite, 0 or more, but got inf."),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)


# Mechanisms as trainers


TRAINERS = [RandomisedResponseTrainer(1.0), LaplaceTrainer(1.0), GaussianTrainer(1.5)]


def played(trainer, bit, seed):
    """Losses of z0 and z1 when z_bit is in the training set."""
    data = zeros.zeros(20)
    pair = zeros.canaries(data)
    train = tuple(np.concatenate(c) for c in zip(data, pair[bit], strict=True))
    points = tuple(np.concatenate(c) for c in zip(*pair, strict=True))
    return trainer.losses(trainer.train(train, seed=seed, size=21), points)


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda t: type(t).__name__)
def test_the_difference_of_losses_is_the_best_score(trainer):
    """Guessing by its sign has the two equal rates α = f(α) of the exact curve f, to 5 sigma."""
    n = 1000
    alpha = optimize.brentq(lambda a: float(trainer.mechanism.tradeoff(a)) - a, 0.0, 1.0)
    for bit in (0, 1):
        losses = np.array([played(trainer, bit, 2 * i + bit) for i in range(n)])
        wrong = np.mean((losses[:, 0] > losses[:, 1]) != bit)
        assert abs(wrong - alpha) < 5 * np.sqrt(alpha * (1 - alpha) / n)
    quiet = trainer.without_noise()
    for bit in (0, 1):
        loss0, loss1 = played(quiet, bit, 0)
        assert (loss1 < loss0) == bool(bit)


def test_privacy_of_mechanisms():
    assert RandomisedResponseTrainer(1.0).privacy(10) == KnownPrivacy(1.0, "substitute")
    assert LaplaceTrainer(2.0, adjacency="add-remove").privacy(10) == KnownPrivacy(2.0, "add-remove")
    known = GaussianTrainer(1.0).privacy(10)
    assert (known.delta, round(known.eps, 4)) == (1e-5, 4.3772)
    for trainer in TRAINERS:
        assert observed(trainer, zeros.zeros(5), zeros.zeros(5), 5, seed=0, size=5)["loss"].shape == (5,)
        assert isinstance(trainer, Trainer)
        assert isinstance(trainer, Accountable)
        assert knows_size(trainer)  # nothing in it depends on the number of points


def test_zeros():
    ids, values = zeros.zeros(7)
    assert len(set(ids.tolist())) == 7
    assert not values.any()
    z0, z1 = zeros.canaries((ids, values))
    assert (z0[1].tolist(), z1[1].tolist()) == ([0.0], [1.0])
    assert not {*z0[0].tolist(), *z1[0].tolist()} & {*ids.tolist()}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomisedResponseTrainer(-1.0), "eps must be finite, 0 or more, but got -1.0"),
        (lambda: LaplaceTrainer(0.0), "eps must be above 0, but got 0.0"),
        (lambda: LaplaceTrainer(1.0, adjacency="bounded"), "adjacency must be"),
        (lambda: GaussianTrainer(0.0), "noise_multiplier must be above 0, but got 0.0"),
        (lambda: GaussianTrainer(1.0, delta=0.0), "delta must be above 0 for the Gaussian mechanism, but got 0.0"),
        (lambda: LaplaceTrainer(1.0).train((np.zeros((3, 2)),), seed=0), 'a mechanism trains on the data "zeros"'),
        (lambda: zeros.zeros(-1), "size must be a whole number, 0 or more, but got -1"),
    ],
)
def test_bad_trainers(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)


def test_the_last_digits_of_a_release_betray_nothing():
    """Beyond both values the log-likelihood ratio of Laplace noise is ε or −ε, exactly, whatever was released."""
    law, rng = Laplace(1.0), np.random.default_rng(0)
    for value in (0.0, 1.0):
        released = np.array([law.sample(value, rng) for _ in range(4000)])
        ratio = law.log_density(released, 1.0) - law.log_density(released, 0.0)
        beyond = (released > 1) | (released < 0)
        assert beyond.sum() > 1000
        assert set(np.unique(ratio[beyond])) == {-1.0, 1.0}
    noisy = np.array([rng.laplace(0.0, 1.0) for _ in range(4000)])
    ratio = law.log_density(noisy, 1.0) - law.log_density(noisy, 0.0)
    assert len(np.unique(ratio[(noisy > 1) | (noisy < 0)])) > 2  # without the grid
