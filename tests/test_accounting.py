"""The accountant against slow, obvious twins: integration for one step, convolution for a few, Opacus for many."""

import math
import sys
from enum import Enum

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.mechanisms import accounting
from epsgauge.mechanisms.accounting import accountant_eps, substituted
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.privacy import DPSGD, KnownPrivacy

DELTA = 1e-5


def mixture(x, rate, noise, shift):
    """Density of a Poisson-sampled sum with Gaussian noise: the point, worth `shift`, is in the batch or not."""
    bell = [np.exp(-0.5 * ((x - s) / noise) ** 2) / (noise * math.sqrt(2 * math.pi)) for s in (0.0, shift)]
    return (1 - rate) * bell[0] + rate * bell[1]


def one_step(rate, noise, first, second, delta=DELTA):
    """ε with ∫ max(0, p − e^ε q) = δ, by the trapezium rule."""
    x = np.linspace(-1 - 12 * noise, 1 + 12 * noise, 20_001)
    p, q = mixture(x, rate, noise, first), mixture(x, rate, noise, second)

    def excess(eps):
        return trapezoid(np.maximum(0.0, p - math.exp(eps) * q), x) - delta

    return brentq(excess, 0.0, 60.0, xtol=1e-9) if excess(0.0) > 0 else 0.0


def few_steps(rate, noise, first, second, steps, delta=DELTA, width=2e-3):
    """ε from the distribution of the summed privacy loss, rounded to the nearest bucket and convolved directly."""
    x = np.linspace(-1 - 9 * noise, 1 + 9 * noise, 100_001)
    p, q = mixture(x, rate, noise, first), mixture(x, rate, noise, second)
    loss = np.round(np.log(p / q) / width).astype(int)
    start = loss.min()
    one = np.bincount(loss - start, weights=p * (x[1] - x[0]))
    total = one
    for _ in range(steps - 1):
        total = np.convolve(total, one)
    losses = (np.arange(len(total)) + steps * start) * width

    def excess(eps):
        return float(total @ np.maximum(0.0, -np.expm1(eps - losses))) - delta

    return brentq(excess, 0.0, 60.0, xtol=1e-9)


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.02, 0.6), (0.7, 3.0)])
def test_one_step_is_the_worst_pair_of_neighbours(rate, noise):
    steps = DPSGD(sample_rate=rate, noise_multiplier=noise, steps=1)
    shifts = (-1.0, 0.0, 0.6, 1.0)
    replaced = max(one_step(rate, noise, a, b) for a in shifts for b in shifts)
    assert replaced == one_step(rate, noise, 1.0, -1.0) or replaced == one_step(rate, noise, -1.0, 1.0)
    added = max(one_step(rate, noise, a, b) for a, b in ((0, 1), (1, 0), (0, 0.5), (0.5, 0)))
    assert accountant_eps(steps, delta=DELTA, adjacency="substitute") == pytest.approx(replaced, abs=2e-4)
    assert accountant_eps(steps, delta=DELTA, adjacency="add-remove") == pytest.approx(added, abs=2e-4)
    assert replaced > added


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.2, 1.0, 4), (0.05, 0.7, 3)])
def test_a_few_steps_compose(rate, noise, steps):
    privacy = DPSGD(sample_rate=rate, noise_multiplier=noise, steps=steps)
    replaced = few_steps(rate, noise, 1.0, -1.0, steps)
    added = max(few_steps(rate, noise, a, b, steps) for a, b in ((0.0, 1.0), (1.0, 0.0)))
    assert accountant_eps(privacy, delta=DELTA, adjacency="substitute") == pytest.approx(replaced, abs=2e-3)
    assert accountant_eps(privacy, delta=DELTA, adjacency="add-remove") == pytest.approx(added, abs=2e-3)


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.1, 1.0, 100), (0.01, 0.8, 1000)])
def test_opacus_says_the_same_of_adding_and_removing(rate, noise, steps):
    pytest.importorskip("opacus")
    from opacus.accountants.prv import PRVAccountant

    prv = PRVAccountant()
    prv.history = [(noise, rate, steps)]
    above = prv.get_epsilon(delta=DELTA, eps_error=0.01)
    ours = accountant_eps(
        DPSGD(sample_rate=rate, noise_multiplier=noise, steps=steps), delta=DELTA, adjacency="add-remove"
    )
    assert above - 0.025 < ours < above + 0.002  # its value is an upper end, two errors above its lower one


def test_without_sampling_it_is_one_gaussian_mechanism():
    from dp_accounting import GaussianDpEvent, NeighboringRelation, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    privacy = DPSGD(sample_rate=1.0, noise_multiplier=2.0, steps=5)
    for adjacency, relation in accounting.RELATIONS.items():
        pld = PLDAccountant(NeighboringRelation[relation], 1e-3).compose(SelfComposedDpEvent(GaussianDpEvent(2.0), 5))
        ours = accountant_eps(privacy, delta=DELTA, adjacency=adjacency)
        assert ours == pytest.approx(pld.get_epsilon(DELTA), abs=1e-4)
    assert accountant_eps(privacy, delta=DELTA, adjacency="substitute") == pytest.approx(
        Gaussian(2.0 / (2 * math.sqrt(5))).eps_at(DELTA)
    )


def test_no_noise_or_no_delta_is_no_privacy():
    assert accountant_eps(DPSGD(0.1, 0.0, 10), delta=DELTA, adjacency="substitute") == math.inf
    assert accountant_eps(DPSGD(0.1, 1.0, 10), delta=0.0, adjacency="add-remove") == math.inf


def test_tiny_noise_does_not_take_for_ever():
    """The losses are huge, and so would be the number of buckets if their width were not taken from them."""
    eps = accountant_eps(DPSGD(0.5, 0.01, 1), delta=DELTA, adjacency="add-remove")
    assert eps == pytest.approx(one_step_large(0.5, 0.01), rel=1e-3)


def one_step_large(rate, noise):
    """P[N(1, σ) > x] q = δ gives the largest likely x; the loss there is that of the log ratio."""
    from scipy.stats import norm

    x = 1 + noise * norm.isf(DELTA / rate)
    return math.log(rate) + (2 * x - 1) / (2 * noise**2)


def test_a_known_eps_holds_at_its_delta_and_above():
    known = KnownPrivacy(eps=1.0, delta=1e-6, adjacency="substitute")
    assert accountant_eps(known, delta=1e-6, adjacency="substitute") == 1.0
    assert accountant_eps(known, delta=1e-3, adjacency="substitute") == 1.0
    assert accountant_eps(known, delta=1e-7, adjacency="substitute") is None
    assert accountant_eps(known, delta=1e-3, adjacency="add-remove") is None


def test_a_known_add_remove_eps_is_doubled():
    known = KnownPrivacy(eps=1.0, delta=1e-6, adjacency="add-remove")
    least = 1e-6 * (1 + math.e)
    assert accountant_eps(known, delta=least, adjacency="substitute") == 2.0
    assert accountant_eps(known, delta=0.99 * least, adjacency="substitute") is None
    assert accountant_eps(KnownPrivacy(1.0, "add-remove"), delta=0.0, adjacency="substitute") == 2.0


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
def test_two_steps_of_group_privacy_hold_for_the_gaussian_mechanism(sigma, eps):
    near, far = Gaussian(sigma), Gaussian(sigma / 2)  # one point added, and one replaced by its opposite
    double, delta = substituted(eps, near.delta_at(eps))
    assert double == 2 * eps
    assert far.delta_at(double) <= delta
    assert far.delta_at(double) > near.delta_at(eps)  # so that δ alone would be too little


def test_large_eps_does_not_overflow():
    assert substituted(5000.0, 0.0) == (10_000.0, 0.0)
    assert substituted(5000.0, 1e-300)[1] > 1


def test_without_dp_accounting_it_says_what_to_install(monkeypatch):
    accounting._dpsgd.cache_clear()
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra, match=r"pip install '.\[accounting\]'"):
        accountant_eps(DPSGD(0.11, 1.0, 10), delta=DELTA, adjacency="substitute")


def test_a_version_without_substitution_is_an_error(monkeypatch):
    import dp_accounting

    class Old(Enum):
        ADD_OR_REMOVE_ONE = 1

    accounting._dpsgd.cache_clear()
    monkeypatch.setattr(dp_accounting, "NeighboringRelation", Old)
    with pytest.raises(InvalidInput, match="must know REPLACE_ONE"):
        accountant_eps(DPSGD(0.12, 1.0, 10), delta=DELTA, adjacency="substitute")


def test_a_version_that_rejects_the_event_is_an_error(monkeypatch):
    from dp_accounting import pld

    accounting._dpsgd.cache_clear()
    monkeypatch.setattr(pld.PLDAccountant, "supports", lambda self, event: False)
    with pytest.raises(InvalidInput, match="must know REPLACE_ONE"):
        accountant_eps(DPSGD(0.13, 1.0, 10), delta=DELTA, adjacency="substitute")


def test_bad_input():
    with pytest.raises(InvalidInput, match="delta must be in"):
        accountant_eps(DPSGD(0.1, 1.0, 10), delta=1.0, adjacency="substitute")
    with pytest.raises(InvalidInput, match="adjacency must be"):
        accountant_eps(DPSGD(0.1, 1.0, 10), delta=DELTA, adjacency="bounded")
    with pytest.raises(InvalidInput, match="privacy must be"):
        accountant_eps(1.0, delta=DELTA, adjacency="substitute")
