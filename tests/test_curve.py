"""DP-SGD's whole trade-off curve: what it spends, the noise that is refuted, and the method that judges by it."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from command_line import ask
from scipy import special, stats
from tiny_runs import Pairs, pairs_plan, plan, played

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.calibration import calibrate
from epsgauge.auditing.forecast import forecast
from epsgauge.bounds import subsampled
from epsgauge.bounds.gaussian import ranked_mu
from epsgauge.bounds.noise import eps_of_noise, least_wrong, noise_at_most
from epsgauge.bounds.ranked import Ranked, last_refuted
from epsgauge.bounds.subsampled import curve, least_eps
from epsgauge.mechanisms.accounting import accountant_eps, composed
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import DPSGD_CURVE, FAIR_BITS, RULE_FIXED

ADJACENCIES = ["add-remove", "substitute"]
# Rate, noise and steps: few and many steps, rare and frequent points, losses that are tiny and huge.
TRAININGS = [(0.1, 1.0, 100), (0.01, 0.8, 1000), (0.5, 2.0, 10), (0.3, 1.0, 1), (0.9, 0.3, 4), (0.002, 0.5, 3000)]


def bells(x, rate, noise, shift):
    """Density of one step: the point, worth `shift`, is in the batch or not."""
    return (1 - rate) * stats.norm.pdf(x, 0, noise) + rate * stats.norm.pdf(x, shift, noise)


def least(privacy, adjacency, fpr):
    """The smallest FNR at each FPR by all lines of the curve."""
    eps, delta = (x[:, None] for x in curve(privacy, adjacency))
    lines = np.maximum(1 - delta - np.exp(eps) * fpr, np.exp(-eps) * (1 - delta - fpr))
    return np.maximum(0, lines.max(axis=0))


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
    got = least(DPSGD(rate, noise, 1), adjacency, fpr)
    exact = [one_step_curve(rate, noise, *pair, fpr) for pair in (shifts, shifts[::-1])]
    assert np.all(got <= np.minimum(*exact) + 1e-5)
    if adjacency == "substitute":  # both curves are one
        np.testing.assert_allclose(got, exact[0], atol=2e-3)
    assert np.all(got >= np.minimum(*exact) - 0.05)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gradients_of_full_norm_and_opposite_dominate_all_others(adjacency):
    """δ of one step by sums over a plane, right to 1e-4, for gradients in any two directions."""
    rng, x, z = np.random.default_rng(7), np.linspace(-7.0, 7.0, 561), np.linspace(-9.0, 9.0, 20_001)
    cell, plane = (x[1] - x[0]) ** 2, np.meshgrid(x, x)
    for _ in range(6):
        rate, noise, eps = rng.uniform(0.05, 0.95), rng.uniform(0.6, 1.0), rng.uniform(0.0, 2.0)

        def step(at, rate=rate, noise=noise):
            one, none = (
                np.exp(-0.5 * ((plane[0] - c[0]) ** 2 + (plane[1] - c[1]) ** 2) / noise**2) for c in (at, (0.0, 0.0))
            )
            return ((1 - rate) * none + rate * one) / (2 * math.pi * noise**2)

        def delta(v, w, step=step, eps=eps):
            other = step(w) if adjacency == "substitute" else step((0.0, 0.0))
            return max(
                float(np.maximum(a - math.exp(eps) * b, 0.0).sum() * cell)
                for a, b in ((step(v), other), (other, step(v)))
            )

        def half_lines(first, second, rate=rate, noise=noise, eps=eps):
            p, q = ((1 - rate) * special.ndtr(z) + rate * special.ndtr(z + side / noise) for side in (first, second))
            return float(np.max(p - math.exp(eps) * q))

        sides = [(1.0, -1.0)] if adjacency == "substitute" else [(1.0, 0.0), (0.0, -1.0)]
        most = max(half_lines(*each) for each in sides)
        assert delta((1.0, 0.0), (-1.0, 0.0)) == pytest.approx(most, abs=1e-4)
        for angle, norms in zip(rng.uniform(0, 2 * math.pi, 3), rng.random((3, 2)) ** 0.2, strict=True):
            assert delta((norms[0], 0.0), norms[1] * np.array([math.cos(angle), math.sin(angle)])) <= most + 1e-4


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("training", TRAININGS)
def test_rounding_leaves_the_number_of_wrong_guesses_rising_and_convex(training, adjacency):
    """In u, with no chance above one half; and less noise never has more wrong guesses by more than rounding."""
    rate, noise, steps = training
    u, before = np.linspace(0, 1, 201), None
    for factor in (1.004, 1.002, 1.0, 0.998):
        found = least_wrong(DPSGD(rate, factor * noise, steps), adjacency)
        slopes = np.diff(found.wrong) / np.diff(found.share)
        assert (np.diff(found.share) > 0).all()
        assert slopes[0] >= 0
        assert (np.diff(slopes) >= -1e-9).all()
        assert slopes[-1] <= 0.5
        assert before is None or (found(u) <= before + 1e-12).all()
        before = found(u)


def test_many_steps_are_nearly_one_gaussian():
    """Small rates and many steps: q √(T (e^(1/σ²) − 1))-Gaussian DP in the limit (Bu et al. 2020)."""
    rate, sigma, steps = 0.01, 1.0, 10_000
    mu = rate * math.sqrt(steps * math.expm1(1 / sigma**2))
    fpr = np.array([0.01, 0.1, 0.3, 0.6])
    got = least(DPSGD(rate, sigma, steps), "add-remove", fpr)
    np.testing.assert_allclose(got, stats.norm.cdf(stats.norm.isf(fpr) - mu), atol=0.02)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("training", [t for t in TRAININGS if t[2] <= 100])
def test_both_roundings_enclose_another_accountant(training, adjacency):
    """dp-accounting, with a fine mesh, rounds upwards: its δ(ε) is between the truth and ours of the same side."""
    privacy, eps = DPSGD(*training), np.array([0.0, 0.3, 1.0, 2.0])
    theirs = np.asarray(composed(privacy, adjacency, width=2e-3).get_delta(eps))
    most, least = (
        np.max([s.deltas(eps) + (s.unsure if more else -s.unsure) for s in found], axis=0)
        for more, found in (
            (more, subsampled._both(privacy, adjacency, subsampled.WIDTH if more else subsampled.FINE, more=more))
            for more in (True, False)
        )
    )
    assert np.all(least <= theirs + 1e-9)
    assert np.all(least <= most)
    np.testing.assert_allclose(most, theirs, atol=2e-3)
    np.testing.assert_allclose(least, theirs, atol=2e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("training", TRAININGS)
def test_the_eps_of_a_noise_is_never_too_large(training, adjacency):
    found = least_eps(DPSGD(*training), delta=1e-5, adjacency=adjacency)
    accounted = accountant_eps(DPSGD(*training), delta=1e-5, adjacency=adjacency)
    assert accounted - 0.003 <= found <= accounted


def test_one_step_by_integration():
    """δ(ε) of one step, from densities on a fine grid: both roundings enclose it."""
    x, (rate, sigma) = np.linspace(-15, 15, 400_001), (0.3, 0.8)
    for adjacency, shifts in (("add-remove", (1.0, 0.0)), ("substitute", (1.0, -1.0))):
        p, q = (bells(x, rate, sigma, s) * (x[1] - x[0]) for s in shifts)
        for eps in (0.1, 0.7, 2.0):
            true = max(np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((p, q), (q, p)))
            for more in (True, False):
                spent = subsampled._both(DPSGD(rate, sigma, 1), adjacency, 0.0025, more=more)
                ours = max(float(s.deltas(np.array([eps]))[0]) for s in spent)
                assert ours == pytest.approx(true, abs=2e-5)
                assert (ours >= true - 1e-7) if more else (ours <= true + 1e-7)


@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
def test_powers_and_probabilities_are_those_of_slow_twins(steps):
    rng = np.random.default_rng(steps)
    z = rng.random(200) * np.exp(2j * np.pi * rng.random(200))
    np.testing.assert_allclose(subsampled._power(z, steps), z**steps, rtol=1e-11, atol=1e-29)
    z = np.concatenate([[-np.inf, -np.inf], np.linspace(-9, 12, 50 + steps), [np.inf]])
    slow = [
        stats.norm.cdf(b) - stats.norm.cdf(a) if a < 0 else stats.norm.sf(a) - stats.norm.sf(b)
        for a, b in itertools.pairwise(z)
    ]
    np.testing.assert_allclose(subsampled._between(z), slow, rtol=1e-13, atol=0)


@pytest.mark.parametrize("training", TRAININGS)
def test_sums_of_losses_are_in_their_window(training):
    """By draws of the sum; the slow twin of its ends is a logarithm of sums for each slope."""
    privacy = DPSGD(*training)
    one = subsampled._bins(privacy, "substitute", subsampled.WIDTH, turned=False, balanced=False).split()
    low, high = subsampled._window(one, privacy.steps)
    losses, mass = one.start + np.arange(len(one.mass)) * one.width, one.mass
    draws = np.random.default_rng(0).choice(losses, (500, min(privacy.steps, 100)), p=mass / mass.sum()).sum(axis=1)
    mean, spread = mass @ losses, math.sqrt(mass @ losses**2 - (mass @ losses) ** 2)
    assert low < privacy.steps * mean - 3 * spread * math.sqrt(privacy.steps)
    assert high > privacy.steps * mean + 3 * spread * math.sqrt(privacy.steps)
    if privacy.steps <= 100:
        assert low < draws.min() < draws.max() < high
    for sign, end in ((-1, -low), (1, high)):
        slopes = np.array(subsampled.CHERNOFF) / (spread * math.sqrt(privacy.steps))
        logs = [special.logsumexp(sign * s * losses, b=mass) for s in slopes]
        twin = np.min((privacy.steps * np.array(logs) - math.log(subsampled.OUTSIDE)) / slopes)
        assert end == pytest.approx(twin, rel=1e-6)
        assert end >= twin - 1e-12 * abs(twin)


def test_little_noise_in_many_steps_takes_wider_bins():
    """Losses are huge there; ε still falls with the noise, and both roundings keep their sides."""
    little = DPSGD(0.002, 0.12, 3000)
    (some,) = subsampled._both(little, "substitute", subsampled.FINE, more=False)
    assert some.losses.size < 1.1 * subsampled.LONGEST_FINE
    (curved,) = subsampled._both(little, "substitute", subsampled.WIDTH, more=True)
    assert curved.losses.size < 1.1 * subsampled.LONGEST
    assert least_eps(little, delta=1e-5, adjacency="substitute") > least_eps(
        DPSGD(0.002, 0.125, 3000), delta=1e-5, adjacency="substitute"
    )
    eps = np.array([0.0, 1.0, 5.0])
    assert np.all(some.deltas(eps) - some.unsure <= curved.deltas(eps) + curved.unsure)


# The noise that guesses refute


def ideal_scores(n, privacy, seed):
    """The log-likelihood ratio of an adversary that sees every step of substitution."""
    rng = np.random.default_rng(seed)
    rate, sigma, steps = privacy.sample_rate, privacy.noise_multiplier, privacy.steps
    bits = rng.integers(0, 2, n)
    x = (rng.random((n, steps)) < rate) * (2 * bits[:, None] - 1) + rng.normal(0, sigma, (n, steps))
    score = (np.log(bells(x, rate, sigma, 1.0)) - np.log(bells(x, rate, sigma, -1.0))).sum(axis=1)
    return eg.Scores(np.arange(n), np.zeros(n), bits, score, "substitute", bits="coins")


def guesses_of(scores):
    return Evidence.of_scores(scores, 0.0).ranked


def test_wider_bins_only_weaken_the_bound(monkeypatch):
    privacy, guesses = DPSGD(0.1, 1.0, 100), guesses_of(ideal_scores(600, DPSGD(0.1, 1.0, 100), 1))
    fine, (eps, delta) = least_wrong(privacy, "substitute"), curve(privacy, "substitute")
    at_most = noise_at_most(guesses, privacy, adjacency="substitute", level=0.95)
    monkeypatch.setattr(subsampled, "WIDTH", 0.5)
    noise_at_most.cache_clear()
    assert np.all(least_wrong(privacy, "substitute").wrong[-1] < fine.wrong[-1])
    assert np.all(np.interp(eps, *curve(privacy, "substitute")) > delta - 1e-9)
    assert at_most < noise_at_most(guesses, privacy, adjacency="substitute", level=0.95) < math.inf
    noise_at_most.cache_clear()


@pytest.mark.parametrize("training", [(0.3, 1.0, 1), (0.1, 1.0, 100), (0.5, 2.0, 10)])
def test_wrong_guesses_of_the_best_attack_are_as_few_as_the_curve_says(training):
    """By a simulation of the ideal adversary, share by share of its surest guesses."""
    privacy, n = DPSGD(*training), 40_000
    scores = ideal_scores(n, privacy, 3)
    surest = np.argsort(-np.abs(scores.score))
    wrong = np.cumsum(((scores.score > 0) != (scores.bit == 1))[surest]) / n
    share = np.arange(1, n + 1) / n
    assert np.all(np.abs(wrong - least_wrong(privacy, "substitute")(share)) < 5 * np.sqrt((wrong + 1e-4) / n) + 1e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_best_attack_with_many_samples_finds_the_noise(adjacency):
    privacy, n = DPSGD(0.1, 1.2, 50), 10**6
    best = least_wrong(privacy, adjacency)
    sizes = Ranked.of(np.zeros(n, bool)).sizes
    wrong = np.round(n * np.diff(best(np.append(0, np.cumsum(sizes)) / n))).astype(int)
    guesses = Ranked(sizes, tuple(wrong.tolist()))
    found = noise_at_most(guesses, privacy, adjacency=adjacency, level=0.95)
    assert 1.2 < found < 1.2 * 1.01
    claimed = DPSGD(0.1, 1.5, 50)  # whose noise does not matter
    assert found == noise_at_most(guesses, claimed, adjacency=adjacency, level=0.95)
    spent = eps_of_noise(found, privacy, delta=1e-5, adjacency=adjacency)
    assert 0.98 < spent / accountant_eps(privacy, delta=1e-5, adjacency=adjacency) < 1


@pytest.mark.parametrize(("adjacency", "distance"), [("add-remove", 1.0), ("substitute", 2.0)])
def test_without_sampling_it_is_one_gaussian_mechanism(adjacency, distance):
    guesses, privacy = Ranked((100, 400), (10, 120)), DPSGD(1.0, 4.0, 9)
    mu = ranked_mu(guesses, level=0.95)
    assert noise_at_most(guesses, privacy, adjacency=adjacency, level=0.95) == pytest.approx(distance * 3 / mu)
    in_all = stats.norm.cdf(-distance * 3 / (2 * 4.0))
    assert least_wrong(privacy, adjacency).in_all == pytest.approx(in_all, abs=1e-9)


def test_a_true_noise_is_refuted_as_seldom_as_the_level_says():
    """240 ideal adversaries at 80 %: 48 expected at most, and more than half of that, as nothing here is very slack."""
    privacy = DPSGD(0.3, 1.0, 4)
    curves = [least_wrong(DPSGD(0.3, 1e4, 4), "substitute"), least_wrong(privacy, "substitute")]
    found = [
        last_refuted(guesses_of(ideal_scores(150, privacy, seed)), curves.__getitem__, 1, alpha=0.2)
        for seed in range(240)
    ]
    assert 20 < found.count(1) < 48 + 3 * math.sqrt(48 * 0.8)


def test_edges():
    some = DPSGD(0.1, 1.0, 10)
    for guesses in (Ranked((10, 10), (5, 5)), Ranked((), ()), Ranked((10, 10), (9, 9))):  # chance, none, worse
        assert noise_at_most(guesses, some, adjacency="substitute", level=0.9) == math.inf
    assert eps_of_noise(math.inf, some, delta=1e-5, adjacency="substitute") == 0
    # with chance 0.9 the point is in no batch: nobody can be right so often
    never = Ranked((1000, 1000), (0, 0))
    assert noise_at_most(never, DPSGD(0.01, 0.0, 10), adjacency="add-remove", level=0.95) == 0
    assert eps_of_noise(0.0, some, delta=1e-5, adjacency="add-remove") > 100
    assert eps_of_noise(1.0, some, delta=0.0, adjacency="add-remove") == math.inf
    with pytest.raises(eg.InvalidInput, match="adjacency must be"):
        noise_at_most(never, some, adjacency="bounded", level=0.9)


# The method


@dataclass(frozen=True)
class Leaky(Pairs):
    """Says that it is DP-SGD with much noise."""

    noise_multiplier: float = 5.0

    def privacy(self, n):
        return DPSGD(sample_rate=0.5, noise_multiplier=self.noise_multiplier, steps=10)


def leaky(tmp_path, *, sigma=5.0, shift=5.0, **audit):
    own = {"pairs_per_model": 1, "n_models": 120, "audit": {"attack": "difference", **audit}}
    return played(pairs_plan(**own).changed(trainer=Leaky(shift, sigma)), tmp_path / "run")


def test_an_audit_holds_the_curve_against_its_rates(tmp_path):
    with pytest.raises(eg.InvalidInput, match="an effective noise is that of DP-SGD"):
        audit_run(played(plan(), tmp_path / "a")).effective_noise()
    a = audit_run(leaky(tmp_path))
    found = a.effective_noise()
    assert found.refuted
    assert found.noise_at_most < 5.0
    at = {"adjacency": "substitute", "level": 0.99}
    assert found.noise_at_most == noise_at_most(a.evidence.whole.ranked, a.privacy, **at)
    assert (found.promise, found.level, found.noise_multiplier) == ("guaranteed", 0.99, 5.0)
    said = ask("audit", tmp_path / "run", "--curve")
    assert "the claimed multiplier 5 is refuted" in " ".join(said.split())


def test_it_judges_like_any_other_method(tmp_path):
    run = leaky(tmp_path, verdict_method="curve")
    a = audit_run(run)
    assert (a.verdict.kind, a.verdict.promise, a.verdict.refutes_curve, a.verdict.above) == (
        "violation",
        "guaranteed",
        True,
        True,
    )
    at = {"adjacency": "substitute", "level": 0.99}
    assert a.verdict.conditional_bound.noise == noise_at_most(a.evidence.whole.ranked, run.privacy, **at) < 5.0
    assert (
        a.verdict.conditional_bound.tally.n_samples == 120 == len(a.judged.judged) + len(a.judged.fit)
    )  # those that chose the rule too
    worth = eps_of_noise(a.verdict.conditional_bound.noise, run.privacy, delta=1e-5, adjacency="substitute")
    assert a.verdict.conditional_bound.value == worth
    assert DPSGD_CURVE in a.verdict.conditional_bound.assumptions
    assert a.verdict.bound.method == "weighted"  # which needs no such thing
    assert DPSGD_CURVE not in a.verdict.bound.assumptions
    condition = "the training is DP-SGD with sampling rate 0.5 and 10 steps"
    assert a.verdict.conditional_bound.condition == a["curve"].condition == condition
    assert a.verdict.detectable > 0
    told = a.to_json()["verdict"]
    assert (told["conditional_bound"]["noise"], told["conditional_bound"]["method"]) == (
        a.verdict.conditional_bound.noise,
        "curve",
    )
    assert told["conditional_bound"]["value"] > a.claim.eps
    assert (told["conditional_bound"]["condition"], told["bound"]["condition"]) == (condition, None)


def test_a_refuted_curve_is_no_refuted_point(tmp_path):
    """Between the bounds: the training is not what was accounted, and whether the point holds is not said."""
    a = audit_run(leaky(tmp_path, shift=1.0))
    v = a.verdict
    assert v.bound.value <= v.claim.eps < v.conditional_bound.value
    assert (v.kind, v.refutes_curve, v.above) == ("violation", True, False)
    assert v.finding.startswith("the training is not what was accounted: its noise multiplier is below ")
    assert "and 5 is stated" in v.finding
    assert "does not hold" not in v.sentence
    assert a.decision.meaning == "Do not release under this claim: its ε was computed for a different training."


def test_of_a_stated_claim_its_eps_needs_dp_sgd(tmp_path):
    stated = {"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
    a = audit_run(leaky(tmp_path, verdict_method="curve", **stated))
    assert a.verdict.kind == "violation"
    assert DPSGD_CURVE in a.verdict.conditional_bound.assumptions


def test_a_claim_that_is_true_is_not_refuted(tmp_path):
    """An attack that sees nothing of a claim that says little, which the control finds out."""
    a = audit_run(leaky(tmp_path, shift=0.0, verdict_method="curve"))
    assert a.verdict.kind == "cannot decide"
    assert a.verdict.conditional_bound.noise > 5.0


def test_without_dp_sgd_it_is_refused(tmp_path):
    needs = r'verdict_method = "curve" needs a trainer whose privacy\(n\) is an eg.DPSGD without correlation'
    run = played(plan(), tmp_path / "a")
    with pytest.raises(eg.InvalidInput, match=f"{needs}, but it is KnownPrivacy"):
        eg.audit(run, verdict_method="curve")
    with pytest.raises(eg.InvalidInput, match=f"{needs}, but it is not known how these models were trained"):
        eg.audit(ideal_scores(100, DPSGD(0.5, 1.0, 2), 0), verdict_method="curve")
    with pytest.raises(eg.InvalidInput, match="curve is for DP-SGD, which no scenario is"):
        calibrate("curve")


def test_it_judges_the_accountants_claim_whatever_the_rule(tmp_path):
    found = {}
    for rule in ({}, {"target_fpr": 0.2}, {"rule": "same-data"}, {"rule": "given", "threshold": 0.3}):
        a = audit_run(leaky(tmp_path / str(len(found)), shift=1.0, **rule))
        assert (a.verdict.method, a.verdict.promise, a.lost) == ("curve", "guaranteed", None)
        assert FAIR_BITS in a["curve"].assumptions
        assert RULE_FIXED not in a["curve"].assumptions
        assert a.verdict.bound.method == "weighted"
        found[str(rule)] = a.verdict.conditional_bound.value
    assert len(set(found.values())) == 1
    stated = {"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
    assert audit_run(leaky(tmp_path / "c", shift=1.0, **stated)).verdict.method == "weighted"


def test_what_a_plan_can_show_by_the_curve(tmp_path):
    """Of a trainer of your own that is known only after its code was imported; a control run is judged too."""
    run = leaky(tmp_path, verdict_method="curve")
    found = forecast(run.plan)
    assert found.method != "curve"
    assert any("Only your code knows what Curve can show" in text for text in found.warnings)
    built_in = run.plan.changed(trainer={"use": "dpsgd", "batch_size": 10, "epochs": 5, "noise_multiplier": 1.0})
    assert (forecast(built_in).method, forecast(built_in).largest_verdict > 5) == ("curve", True)
    control = audit_run(played(run.plan.changed(control=True), tmp_path / "control"))
    assert (control.verdict.kind, control.verdict.method) == ("no claim", "weighted")
    assert forecast(built_in.changed(control=True)).method == "weighted"
    assert control.verdict.bound.value > 0
    page = ask("report", tmp_path / "run", "-o", tmp_path / "report.md") and (tmp_path / "report.md").read_text(
        encoding="utf-8"
    )
    assert "if the training is DP-SGD with sampling rate 0.5 and 10 steps" in page
