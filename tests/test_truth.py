"""The whole path, from game to verdict, against mechanisms whose ε and trade-off curve are known."""

import numpy as np
import pytest
from scipy.stats import binom

import epsgauge as eg
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.laplace import Laplace
from epsgauge.mechanisms.randomised_response import RandomisedResponse
from epsgauge.runner.executors import InProcess

N_MODELS = 1500
MECHANISMS = {
    "randomised-response": ({"eps": 1.5}, RandomisedResponse(1.5)),
    "laplace": ({"eps": 1.5}, Laplace(1.5)),
    "gaussian": ({"noise_multiplier": 1.5}, Gaussian(1.5)),
}


def played(folder, trainer, *, seed=1, n_models=N_MODELS, **game):
    plan = eg.Plan(
        name="truth",
        seed=seed,
        n_models=n_models,
        data={"use": "zeros", "size": 30},
        trainer=trainer,
        game={"train_size": 10, "reference_size": 5, "challenge": "explicit", "canaries": "zeros", **game},
        audit={"attack": "difference", "fit_models": 300},
    )
    return eg.run(plan, out=folder, executor=InProcess())


@pytest.fixture(scope="module", params=MECHANISMS)
def known(request, tmp_path_factory):
    """A mechanism, and a run of it."""
    settings, mechanism = MECHANISMS[request.param]
    return mechanism, played(tmp_path_factory.mktemp("run"), {"use": request.param, **settings})


def test_rates_lie_on_the_known_trade_off_curve(known):
    """The difference of losses is the likelihood ratio, so the judged rates are those of the optimal test."""
    mechanism, run = known
    tally = eg.audit(run).judged.tally
    on_curve = float(mechanism.tradeoff(float(tally.fpr)))
    n1, n0 = int(tally.n_positive), int(tally.n_negative)
    # both rates vary by chance: the curve is met within four standard errors of each
    slack = 4 * np.sqrt(0.25 / n1) + 4 * np.sqrt(0.25 / n0) * 4.5  # the slope is at most e^1.5 < 4.5
    assert abs(float(tally.fnr) - on_curve) < slack
    assert float(tally.fnr + tally.fpr) < 0.85


def test_what_is_true_is_not_refuted_and_what_is_false_is(known):
    mechanism, run = known
    honest = eg.audit(run)
    truth = mechanism.eps_at(1e-5)
    assert honest.claim.eps == pytest.approx(truth, rel=1e-4)  # ε at δ = 0 is a little more than at 1e-5
    assert honest.claim.eps >= truth
    assert honest.verdict.kind == "no objection"
    assert honest.verdict.bound.value <= truth
    assert honest["clopper-pearson"].low > 0.25
    lie = eg.audit(run, claimed_eps=0.2, claimed_delta=1e-5, claimed_adjacency="substitute")
    assert lie.verdict.kind == "violation"
    assert lie.verdict.bound.value > 0.2


def test_the_posterior_finds_the_eps_of_pure_mechanisms(known):
    mechanism, run = known
    found, truth = eg.audit(run).posterior.interval(0.999), mechanism.eps_at(1e-5)
    assert found.low < truth
    if not isinstance(mechanism, Gaussian):  # whose ε at 1e-5 needs rates that no such sample can show
        assert truth < found.high < truth + 1.5


@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
def test_a_mechanism_without_leak_shows_none(tmp_path, adjacency):
    """ε = 0: the guaranteed bound is 0, and the attack is at chance, whichever adjacency is played."""
    run = played(tmp_path / "run", {"use": "randomised-response", "eps": 0.0}, n_models=800, adjacency=adjacency)
    found = eg.audit(run, attack="loss", claimed_eps=0.0, claimed_delta=1e-5, claimed_adjacency=adjacency)
    assert found.verdict.bound.value == 0
    assert found.verdict.kind == "no objection"  # the attack sees models without noise, and could have refuted it
    n, k = int(found.judged.tally.n_samples), int(found.judged.tally.tp + found.judged.tally.tn)
    assert binom.cdf(k, n, 0.5) > 1e-4
    assert binom.sf(k - 1, n, 0.5) > 1e-4


def test_a_control_finds_what_noise_hides(tmp_path):
    quiet = played(tmp_path / "noisy", {"use": "laplace", "eps": 0.05}, n_models=400)
    plan = quiet.plan.changed(control=True)
    control = eg.audit(eg.run(plan, out=tmp_path / "control", executor=InProcess()))
    assert eg.audit(quiet).verdict.bound.value == 0
    assert control.judged.tally.fn == control.judged.tally.fp == 0
    assert control.verdict.kind == "no claim"


def test_many_pairs_a_model_keep_one_for_the_guaranteed_row(tmp_path):
    """Laplace noise on the sum of m canaries: pairs of a model share the noise, so they are not independent."""
    plan = eg.Plan(
        name="many",
        n_models=300,
        data={"use": "zeros", "size": 60},
        trainer={"use": "laplace", "eps": 2.0},
        game={"train_size": 10, "pairs_per_model": 4, "reference_size": 5},
        audit={"attack": "loss", "fit_models": 50},
    )
    found = eg.audit(eg.run(plan, out=tmp_path / "run", executor=InProcess()))
    assert int(found.posterior.tally.n_samples) == 1000
    assert int(found.guaranteed_tally.n_samples) == 250
    assert found["bayes"].promise == "estimate"
    assert found["clopper-pearson"].promise == "guaranteed"
    assert "one pair per model" in found["clopper-pearson"].note
