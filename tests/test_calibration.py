"""The certificate: shares of bounds above an ε that is known exactly, and the posterior's own calibration."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import ask
from scipy import special, stats

from epsgauge.auditing.calibration import calibrate
from epsgauge.auditing.calibration_bounds import Bounder
from epsgauge.auditing.calibration_exact import enumerated
from epsgauge.auditing.calibration_scenarios import SCENARIOS, Draws
from epsgauge.auditing.calibration_sources import LaplaceScores, NormalScores
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.laplace import Laplace
from epsgauge.methods.clopper_pearson import ClopperPearson
from epsgauge.methods.facts import FAIR_BITS, GAUSSIAN_CURVE, INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.table import METHODS
from epsgauge.stats import region
from epsgauge.stats.posterior import estimate
from epsgauge.stats.tally import Tally

BY_NAME = {s.name: s for s in SCENARIOS}
VERTEX = BY_NAME["randomised response, ε = 1"]
WATCHED = BY_NAME["randomised response, ε = 3, up to 5 looks"]
MODELS = tuple(s for s in SCENARIOS if s.pairs > 1)


# What is drawn


@pytest.mark.parametrize(
    ("source", "mechanism"), [(LaplaceScores(1.5), Laplace(1.5)), (NormalScores(0.8), Gaussian(0.8))]
)
def test_rates_are_those_of_the_mechanisms_trade_off_curve(source, mechanism):
    for fpr in (1e-4, 0.02, 0.3, 0.5, 0.8):
        fnr, up, found, _ = (float(r) for r in source.rates(np.asarray(source.threshold(fpr))))
        assert found == pytest.approx(fpr, rel=1e-9)
        assert fnr == pytest.approx(float(mechanism.tradeoff(fpr)), rel=1e-9)
        assert fnr + up == pytest.approx(1)
    assert source.eps_at(1e-5, 1) == mechanism.eps_at(1e-5)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_draws_have_the_rates_that_are_claimed(scenario):
    """At the rule's threshold, or at 0.5 where each run chooses; models are the independent units."""
    drawn = scenario.draw(60, 1, fair=False)
    at = scenario.threshold if scenario.chosen == "beforehand" else 0.5
    x, _, y, _ = (float(r) for r in scenario.source.rates(np.asarray(at)))
    said = drawn.scores >= at
    for bit, rate, wrong in ((1, x, ~said), (0, y, said)):
        of = drawn.bits == bit
        per_model = ((wrong - rate) * of).sum(axis=2).ravel()
        assert abs(per_model.sum()) < 4.5 * np.sqrt((per_model**2).sum() + 1)


def test_a_rule_chosen_by_a_split_does_not_see_what_it_is_judged_on():
    scenario = BY_NAME["Gaussian, μ = 1, threshold by a split"]
    drawn = scenario.draw(5, 0, fair=False)
    assert drawn.bits.shape == (5, 100, 1)
    assert (drawn.bits.sum(axis=(1, 2)) == 50).all()
    whole = replace(scenario, chosen="beforehand").draw(5, 0, fair=False)
    assert np.array_equal(drawn.scores, whole.scores[:, 100:])
    assert np.isin(drawn.thresholds, whole.scores[:, :100]).all()


def test_eps_of_one_bit_of_a_model_with_shared_noise():
    """By the covariance of a model's scores, inverted."""
    source, m = NormalScores(0.5, leak=2.0, shared=0.7), 6
    inverse = np.linalg.inv(0.25 * np.eye(m) + 0.49)
    assert source.eps_at(1e-5, m) == pytest.approx(Gaussian(1 / (2 * np.sqrt(inverse[0, 0]))).eps_at(1e-5))
    assert NormalScores(0.5, leak=0.0, shared=0.7).eps_at(0.0, m) == 0


def test_what_scenarios_break():
    assert VERTEX.breaks == {GAUSSIAN_CURVE}
    assert WATCHED.breaks == {NUMBER_FIXED, GAUSSIAN_CURVE}
    assert MODELS[0].breaks == {INDEPENDENT}
    assert BY_NAME["no leak, best threshold"].breaks == {RULE_FIXED}
    assert BY_NAME["no leak, FPR 0.1, sizes 3 : 17"].breaks == {FAIR_BITS}
    assert len(BY_NAME) == len(SCENARIOS)
    assert {s.delta for s in SCENARIOS} == {0.0, 1e-5}


# Shares


def test_exact_shares_are_sums_over_all_outcomes():
    """A twin: a loop over outcomes, one bound at a time."""
    small = VERTEX.smaller()
    bounder, lie = Bounder.of("clopper-pearson", 0.95), special.expit(-1.0)
    total = 0.0
    for fn in range(26):
        for fp in range(26):
            x, y = (stats.beta.ppf(0.975, k + 1, 25 - k) if k < 25 else 1.0 for k in (fn, fp))
            bound = float(region.eps_of_rates(x, y, delta=0.0)) if x + y < 1 else 0.0
            total += stats.binom.pmf(fn, 25, lie) * stats.binom.pmf(fp, 25, lie) * (bound > 1)
    assert enumerated(bounder, small).above(1.0).value == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("method", ["clopper-pearson", pytest.param("pooled", marks=pytest.mark.long), "anytime"])
def test_guaranteed_methods_pass_exactly(method):
    found = calibrate(method, exact=True)
    assert found.passed
    within = [s for s in found.scenarios if s.result == "pass"]
    assert len(within) >= 9
    assert all(s.judged.value <= 0.05 and s.judged.error == 0 for s in within)
    assert found.runs is found.seed is None


def test_the_exact_bound_passes_exactly_and_is_sharper():
    few = tuple(replace(BY_NAME[name], n1=10, n0=10) for name in ("no leak, FPR 0.5", VERTEX.name))
    shares = {}
    for method in ("exact", "clopper-pearson"):
        bounder = Bounder.of(method, 0.95)
        outcomes = [enumerated(bounder, scenario) for scenario in few]
        shares[method] = [float(o.above(o.rule_eps).value) for o in outcomes]
        assert all(o.mass.sum() == pytest.approx(1) for o in outcomes)
    assert max(shares["exact"]) <= 0.05
    assert all(a > b for a, b in zip(shares["exact"], shares["clopper-pearson"], strict=True))


def test_the_posterior_is_above_zero_where_nothing_leaks():
    found = calibrate("bayes", exact=True)
    assert found.passed is None
    for s in found.scenarios:
        assert s.result == "reported"
        if s.rule_eps == 0:
            assert s.above_rule.value > 0.99
            assert s.power is None
    assert found[VERTEX.name].above_rule.value == pytest.approx(0.128, abs=1e-3)


@pytest.mark.long
def test_simulated_shares_agree_with_exact_ones():
    for method in ("bayes", "pooled"):
        drawn = calibrate(method, runs=1000, scenarios=(VERTEX,), seed=3).scenarios[0]
        exact = enumerated(Bounder.of(method, 0.95), VERTEX)
        assert abs(drawn.above_rule.value - exact.above(1.0).value) < 4 * drawn.above_rule.error
        assert abs(drawn.mean_bound.value - exact.mean(exact.bounds).value) < 4 * drawn.mean_bound.error
        assert abs(drawn.power.value - exact.above(0.5).value) < 4 * drawn.power.error


def test_the_same_seed_gives_the_same_certificate():
    some = (VERTEX, BY_NAME["Gaussian, μ = 1, best threshold"], MODELS[0])
    one, same, other = (calibrate("pooled", runs=20, seed=seed, scenarios=some) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert one[VERTEX.name] == calibrate("pooled", runs=20, seed=1, scenarios=(VERTEX,))[VERTEX.name]


# What fails


class Lying(ClopperPearson):
    name = "lying"
    label = "Lying"

    def __init__(self, by):
        self.by = by

    def lower_bounds(self, counts, *, delta, level):
        return self.by * super().lower_bounds(counts, delta=delta, level=level)


class Careless(ClopperPearson):
    name = "careless"
    label = "Careless"

    def lower_bounds(self, counts, *, delta, level):
        return np.full(len(counts), 99.0)


def test_a_broken_method_fails(monkeypatch):
    honest = METHODS["clopper-pearson"]
    for factor, how in ((2.0, {"exact": True}), (1.5, {"runs": 200})):
        assert calibrate(honest, scenarios=(VERTEX,), **how).passed
        assert calibrate(Lying(factor), scenarios=(VERTEX,), **how).passed is False
    monkeypatch.setattr(type(METHODS["bayes"]), "promise", "guaranteed")
    out = ask("calibrate", "bayes", "--exact", code=1)
    assert "FAIL: above ε too often in 9 of 13 scenarios" in " ".join(out.split())


def test_nothing_fails_outside_of_its_assumptions():
    found = calibrate(Careless(), runs=5, scenarios=(WATCHED, *MODELS, BY_NAME["no leak, best threshold"]))
    assert {s.result for s in found.scenarios} == {"outside"}
    assert all(s.above_rule.value == 1 for s in found.scenarios)
    assert found.passed


def test_watching_breaks_clopper_pearson_and_not_the_anytime_bound():
    """At a vertex, by all outcomes of up to five looks."""
    found = {m: calibrate(m, exact=True, scenarios=(WATCHED,)).scenarios[0] for m in ("clopper-pearson", "anytime")}
    assert found["clopper-pearson"].above_rule.value == pytest.approx(0.0742, abs=1e-4)
    assert found["clopper-pearson"].result == "outside"
    assert found["clopper-pearson"].broken_assumptions == (NUMBER_FIXED,)
    assert found["anytime"].above_rule.value < 0.001
    assert found["anytime"].result == "pass"
    one_look = enumerated(Bounder.of("clopper-pearson", 0.95), replace(WATCHED, looks=1))
    assert one_look.above(one_look.rule_eps).value < 0.02


@pytest.mark.long
def test_several_bits_a_model():
    """Clopper-Pearson takes them as independent, and is above the rule's ε; what allows for it is not."""
    scenario = BY_NAME["Gaussian, FPR 0.24, 20 models of 50 bits"]
    found = {
        m: calibrate(m, runs=60, scenarios=(scenario,)).scenarios[0]
        for m in ("clopper-pearson", "pooled", "anytime", "simultaneous", "clusters")
    }
    assert found["clopper-pearson"].result == "outside"
    assert found["clopper-pearson"].above_rule.value > 0.12
    for name in ("pooled", "simultaneous"):  # which takes its form for coins
        assert (found[name].judged_by, found[name].judged.value, found[name].result) == ("mechanism", 0, "pass")
    assert found["anytime"].result == "pass"
    assert found["anytime"].above_rule.value == 0
    assert found["clusters"].result == "reported"
    assert found["clusters"].above_rule.value <= found["clopper-pearson"].above_rule.value


def test_the_best_threshold_of_all():
    scenario = BY_NAME["Gaussian, μ = 1, best threshold"]
    naive, honest = (calibrate(m, runs=60, scenarios=(scenario,)).scenarios[0] for m in ("bayes", "simultaneous"))
    assert naive.above_rule.value > 0.25
    assert naive.result == "outside"
    assert honest.above_rule.value < 0.05
    assert honest.result == "pass"
    assert not Bounder.of("simultaneous", 0.95).plays(BY_NAME["no leak, threshold by a split"])


def test_methods_that_do_not_count():
    assert {s.name for s in calibrate("clusters", runs=2).scenarios} == {s.name for s in MODELS}
    assert calibrate("simultaneous", exact=True).scenarios == ()


def test_draws_count_each_model():
    drawn = Draws(np.array([[[1, 0], [1, 1]]]), np.array([[[0.2, 0.9], [0.6, 0.1]]]), np.array([0.5]))
    assert [q.tolist() for q in drawn.by_model()] == [[[1, 1]], [[1, 2]], [[1, 0]], [[1, 0]]]
    counts = drawn.counts()
    assert [float(getattr(counts, c)[0]) for c in ("tp", "tn", "fp", "fn")] == [1, 0, 1, 2]


def test_errors():
    with pytest.raises(InvalidInput, match="method must be one of bayes"):
        calibrate("wald")
    with pytest.raises(InvalidInput, match="runs must be a whole number, 2 or more, but got 1"):
        calibrate("bayes", runs=1)
    with pytest.raises(InvalidInput, match="seed must be"):
        calibrate("bayes", seed=-1)
    with pytest.raises(InvalidInput, match="level"):
        calibrate("bayes", level=1.5)


# The command


def test_command():
    words = " ".join(ask("calibrate", "clopper-pearson", "--exact").split())
    assert "PASS: above ε in at most 5 % in all 11 scenarios" in words
    assert "outside a does not hold here: the number of samples was fixed beforehand" in words
    assert "7.42" in words


def test_command_json():
    found = json.loads(ask("calibrate", "jeffreys", "--runs", 3, "--seed", 5, "--level", 0.9, "--json"))
    assert (found["method"], found["passed"], found["level"], found["runs"], found["seed"]) == (
        "jeffreys",
        None,
        0.9,
        3,
        5,
    )
    assert [s["name"] for s in found["scenarios"]] == [s.name for s in SCENARIOS]
    first = found["scenarios"][3]
    assert first["rule_eps"] == pytest.approx(1)
    assert set(first["above_rule"]) == {"value", "error"}


# The posterior


def test_ranks_of_the_truth_under_the_posterior_are_uniform():
    """Simulation-based calibration (Talts et al. 2018): rates from the prior, counts from the rates.

    At δ = 0.1 the prior has an atom at ε = 0, where the rank is drawn between 0 and the atom.
    """
    rng, n = np.random.default_rng(7), 4000
    for delta in (1e-5, 0.1):
        x, y = rng.beta(0.5, 0.5, n), rng.beta(0.5, 0.5, n)
        fn, fp = rng.binomial(40, x), rng.binomial(25, y)
        truth = region.eps_of_rates(x, y, delta=delta)
        posterior = estimate(Tally(tp=40 - fn, fn=fn, fp=fp, tn=25 - fp), delta=delta)
        ranks = np.where(truth > 0, posterior.cdf(truth), rng.random(n) * posterior.mass_at_zero)
        assert (np.mean(truth == 0) > 0.02) == (delta == 0.1)
        assert stats.kstest(ranks, "uniform").pvalue > 0.01
        assert stats.chisquare(np.histogram(ranks, 20, (0, 1))[0]).pvalue > 0.01
        wrong = posterior.cdf(1.1 * truth)
        assert stats.kstest(wrong, "uniform").pvalue < 0.01
