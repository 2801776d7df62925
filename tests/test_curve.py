"""The effective noise of DP-SGD: its curve against integration, its rounding, and its direction."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from command_line import ask
from scipy import stats
from tiny_runs import Pairs, pairs_plan, plan, played

import epsgauge as eg
from epsgauge.auditing import curve
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.curve import effective_noise, trade_off
from epsgauge.mechanisms.privacy import DPSGD


def bells(x, rate, noise, shift):
    """Density of one step: the point, worth `shift`, is in the batch or not."""
    return (1 - rate) * stats.norm.pdf(x, 0, noise) + rate * stats.norm.pdf(x, shift, noise)


def one_step_curve(rate, noise, first, second, fpr):
    """The smallest FNR at each FPR over tests of one density against the other, by the likelihood ratio."""
    x = np.linspace(-1 - 12 * noise, 1 + 12 * noise, 200_001)
    p, q = (bells(x, rate, noise, s) * (x[1] - x[0]) for s in (first, second))
    order = np.argsort(-q / p)
    return np.interp(fpr, np.cumsum(p[order]), 1 - np.cumsum(q[order]))


@pytest.mark.parametrize(("rate", "noise"), [(0.3, 0.8), (0.05, 0.5), (0.7, 2.0)])
@pytest.mark.parametrize(("adjacency", "shifts"), [("add-remove", (0.0, 1.0)), ("substitute", (-1.0, 1.0))])
def test_one_step_is_below_both_curves_and_hardly(rate, noise, adjacency, shifts):
    fpr = np.linspace(0.001, 0.9, 60)
    got = trade_off(DPSGD(rate, noise, 1), fpr, adjacency=adjacency, largest_eps=8.0)
    exact = [one_step_curve(rate, noise, *pair, fpr) for pair in (shifts, shifts[::-1])]
    assert np.all(got <= np.minimum(*exact) + 1e-5)
    if adjacency == "substitute":  # both curves are one
        np.testing.assert_allclose(got, exact[0], atol=2e-3)
    assert np.all(got >= np.minimum(*exact) - 0.05)


def test_many_steps_are_nearly_one_gaussian():
    """Small rates and many steps: q √(T (e^(1/σ²) − 1))-Gaussian DP in the limit (Bu et al. 2020)."""
    rate, noise, steps = 0.01, 1.0, 10_000
    mu = rate * math.sqrt(steps * math.expm1(1 / noise**2))
    fpr = np.array([0.01, 0.1, 0.3, 0.6])
    got = trade_off(DPSGD(rate, noise, steps), fpr, adjacency="add-remove", largest_eps=8.0)
    np.testing.assert_allclose(got, stats.norm.cdf(stats.norm.isf(fpr) - mu), atol=0.02)


def on_the_curve(privacy, adjacency, fpr, n):
    fnr = float(trade_off(privacy, np.array([fpr]), adjacency=adjacency, largest_eps=8.0)[0])
    fn, fp = round(fnr * n), round(fpr * n)
    return eg.Tally(tp=n - fn, fn=fn, fp=fp, tn=n - fp)


@pytest.mark.parametrize("adjacency", ["add-remove", "substitute"])
def test_the_best_attack_with_many_samples_finds_the_noise(adjacency, monkeypatch):
    privacy, built = DPSGD(0.1, 1.2, 50), []
    tally = on_the_curve(privacy, adjacency, 0.05, 10**6)
    build = curve.composed
    monkeypatch.setattr(curve, "composed", lambda *a, **k: built.append(a) or build(*a, **k))
    found = effective_noise(tally, privacy, adjacency=adjacency, level=0.95)
    assert 1.2 < found.noise_at_most < 1.25
    assert not found.refuted
    assert len(built) <= curve.BUILDS
    claimed = effective_noise(tally, DPSGD(0.1, 1.5, 50), adjacency=adjacency, level=0.95)
    assert claimed.refuted
    assert claimed.noise_at_most == pytest.approx(found.noise_at_most, rel=0.006)


def test_wider_buckets_only_weaken_the_bound(monkeypatch):
    privacy, tally = DPSGD(0.1, 1.0, 100), eg.Tally(tp=600, tn=800, fp=200, fn=400)
    fine = trade_off(privacy, np.array([0.2]), adjacency="add-remove", largest_eps=3.0)[0]
    monkeypatch.setattr(curve, "WIDTH", 0.1)
    monkeypatch.setattr(curve, "WIDTH_OF_ALL", 1.0)
    assert 0 < trade_off(privacy, np.array([0.2]), adjacency="add-remove", largest_eps=3.0)[0] < fine
    assert effective_noise(tally, privacy, adjacency="add-remove", level=0.95).noise_at_most < math.inf


@pytest.mark.parametrize(("adjacency", "distance"), [("add-remove", 1.0), ("substitute", 2.0)])
def test_without_sampling_it_is_one_gaussian_mechanism(adjacency, distance):
    tally, privacy = eg.Tally(tp=700, tn=950, fp=50, fn=300), DPSGD(1.0, 4.0, 9)
    found = effective_noise(tally, privacy, adjacency=adjacency, level=0.95)
    limits = [stats.beta.isf(0.025, k + 1, 1000 - k) for k in (300, 50)]
    assert (found.fnr_at_most, found.fpr_at_most) == pytest.approx(limits)
    mu = -stats.norm.ppf(limits).sum()
    assert found.noise_at_most == pytest.approx(distance * 3 / mu)
    assert found.refuted == (found.noise_at_most <= 4.0)


def test_coverage_of_one_gaussian_mechanism():
    """The noise is 2: it is refuted in at most a tenth of the runs."""
    runs, n, rng, missed = 400, 300, np.random.default_rng(1), 0
    rate = stats.norm.cdf(-0.25)
    for fn, fp in rng.binomial(n, rate, (runs, 2)):
        tally = eg.Tally(tp=n - fn, fn=fn, fp=fp, tn=n - fp)
        missed += effective_noise(tally, DPSGD(1.0, 2.0, 1), adjacency="add-remove", level=0.9).refuted
    assert missed / runs <= 0.1 + 3 * math.sqrt(0.09 / runs)


def test_edges():
    nothing = effective_noise(eg.Tally(tp=5, tn=5, fp=5, fn=5), DPSGD(0.1, 1.0, 10), adjacency="substitute", level=0.9)
    assert nothing.noise_at_most == math.inf
    assert not nothing.refuted
    empty = effective_noise(eg.Tally(tp=5, tn=0, fp=0, fn=0), DPSGD(0.1, 1.0, 10), adjacency="substitute", level=0.9)
    assert empty.noise_at_most == math.inf
    # with chance 0.9 the point is in no batch: nobody can be right so often
    never = eg.Tally(tp=1000, tn=1000, fp=0, fn=0)
    impossible = effective_noise(never, DPSGD(0.01, 0.0, 10), adjacency="add-remove", level=0.95)
    assert impossible.noise_at_most == 0
    assert impossible.refuted


def test_bad_input():
    with pytest.raises(eg.InvalidInput, match="must be one tally"):
        effective_noise(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), DPSGD(0.1, 1.0, 10), adjacency="substitute", level=0.9)
    with pytest.raises(eg.InvalidInput, match="adjacency must be"):
        effective_noise(eg.Tally(tp=1, tn=1, fp=1, fn=1), DPSGD(0.1, 1.0, 10), adjacency="bounded", level=0.9)


@dataclass(frozen=True)
class Leaky(Pairs):
    """Says that it is DP-SGD with much noise."""

    def privacy(self, n):
        return DPSGD(sample_rate=0.5, noise_multiplier=5.0, steps=10)


def test_an_audit_holds_the_curve_against_its_rates(tmp_path):
    with pytest.raises(eg.InvalidInput, match="an effective noise is that of DP-SGD"):
        audit_run(played(plan(), tmp_path / "a")).effective_noise()
    own = {"pairs_per_model": 1, "n_models": 200, "audit": {"attack": "difference"}}
    a = audit_run(played(pairs_plan(**own).changed(trainer=Leaky(5.0)), tmp_path / "b"))
    found = a.effective_noise()
    assert found.refuted
    assert found.noise_at_most < 5.0
    assert found == effective_noise(a.guaranteed_tally, a.privacy, adjacency="substitute", level=0.99)
    said = ask("audit", tmp_path / "b", "--curve")
    assert "the claimed multiplier 5.000 is refuted" in " ".join(said.split())
