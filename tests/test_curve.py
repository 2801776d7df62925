"""DP-SGD's whole trade-off curve: what it spends, the noise that is refuted, and the method that judges by it."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from command_line import ask
from scipy import stats
from tiny_runs import Pairs, pairs_plan, plan, played

import epsgauge as eg
from epsgauge.auditing.accounting import accountant_eps, composed
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.calibration import calibrate
from epsgauge.auditing.forecast import forecast
from epsgauge.bounds import noise, subsampled
from epsgauge.bounds.cells import improbable
from epsgauge.bounds.exact import Quantity, inversion_of
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.bounds.noise import effective_noise, eps_of_noise, noise_at_most
from epsgauge.bounds.ordering import MuOrdering
from epsgauge.bounds.promising import promising
from epsgauge.bounds.regions import LinesRegion
from epsgauge.bounds.subsampled import curve, least_eps
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.facts import DPSGD_CURVE
from epsgauge.methods.table import OF_NOISE
from epsgauge.scores.rules import SameData, judge
from epsgauge.scores.search import tally_at, threshold_for
from epsgauge.stats.families import Mu

ADJACENCIES = ["add-remove", "substitute"]
# Rate, noise and steps: few and many steps, rare and frequent points, losses that are tiny and huge.
TRAININGS = [(0.1, 1.0, 100), (0.01, 0.8, 1000), (0.5, 2.0, 10), (0.3, 1.0, 1), (0.9, 0.3, 4), (0.002, 0.5, 3000)]


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
    got = curve(DPSGD(rate, noise, 1), adjacency).least(fpr)
    exact = [one_step_curve(rate, noise, *pair, fpr) for pair in (shifts, shifts[::-1])]
    assert np.all(got <= np.minimum(*exact) + 1e-5)
    if adjacency == "substitute":  # both curves are one
        np.testing.assert_allclose(got, exact[0], atol=2e-3)
    assert np.all(got >= np.minimum(*exact) - 0.05)


def test_many_steps_are_nearly_one_gaussian():
    """Small rates and many steps: q √(T (e^(1/σ²) − 1))-Gaussian DP in the limit (Bu et al. 2020)."""
    rate, sigma, steps = 0.01, 1.0, 10_000
    mu = rate * math.sqrt(steps * math.expm1(1 / sigma**2))
    fpr = np.array([0.01, 0.1, 0.3, 0.6])
    got = curve(DPSGD(rate, sigma, steps), "add-remove").least(fpr)
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


def test_wider_bins_only_weaken_the_bound(monkeypatch):
    privacy, tally = DPSGD(0.1, 1.0, 100), eg.Tally(tp=600, tn=800, fp=200, fn=400)
    fine = curve(privacy, "add-remove").least(np.array([0.2]))[0]
    at_most = noise_at_most(tally, privacy, adjacency="add-remove", level=0.95)
    monkeypatch.setattr(subsampled, "WIDTH", 0.5)
    noise._of_counts.cache_clear()
    assert 0 < curve(privacy, "add-remove").least(np.array([0.2]))[0] < fine
    assert at_most < noise_at_most(tally, privacy, adjacency="add-remove", level=0.95) < math.inf
    noise._of_counts.cache_clear()


def test_a_region_of_lines_is_their_envelope():
    eps, delta = np.array([0.0, 0.5, 1.5, 3.0]), np.array([0.5, 0.35, 0.12, 0.01])
    region, y = LinesRegion(eps, delta), np.linspace(0, 1, 501)
    lines = [np.maximum(1 - d - np.exp(e) * y, np.exp(-e) * (1 - d - y)) for e, d in zip(eps, delta, strict=True)]
    np.testing.assert_allclose(region.least(y), np.maximum(0, np.max(lines, axis=0)), atol=1e-12)
    v = region.corner(upper=False)
    assert region.least(np.array([v]))[0] == pytest.approx(v)


def test_a_plane_is_nowhere_higher_over_a_part_of_the_region():
    region, rng = curve(DPSGD(0.1, 1.0, 20), "substitute"), np.random.default_rng(0)
    for _ in range(300):
        (x0, x1), (y0, y1) = np.sort(rng.random((2, 2)) ** 2)
        a, b = rng.normal(size=2) * [1, 3]
        x, y = (q.ravel() for q in np.meshgrid(np.linspace(x0, x1, 40), np.linspace(y0, y1, 40)))
        edge = np.linspace(y0, y1, 400)
        on_it = region.least(edge)
        x, y = np.append(x, on_it), np.append(y, edge)
        inside = (x >= region.least(y)) & (x0 <= x) & (x <= x1)
        if inside.any():
            most = (a * (x - (x0 + x1) / 2) + b * (y - (y0 + y1) / 2))[inside].max()
            cell = np.array([[x0], [x1], [y0], [y1]])
            assert region.highest_plane(cell, np.array([a]), np.array([b]))[0] >= most - 1e-12


def on_the_curve(privacy, adjacency, fpr, n):
    fnr = float(curve(privacy, adjacency).least(np.array([fpr]))[0])
    fn, fp = round(fnr * n), round(fpr * n)
    return eg.Tally(tp=n - fn, fn=fn, fp=fp, tn=n - fp)


@pytest.mark.parametrize(("n", "within"), [(2000, 1.15), (10**6, 1.01)])  # by inversion, and by the rectangle
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_best_attack_with_many_samples_finds_the_noise(adjacency, n, within):
    privacy = DPSGD(0.1, 1.2, 50)
    tally = on_the_curve(privacy, adjacency, 0.05, n)
    found = effective_noise(tally, privacy, adjacency=adjacency, level=0.95)
    assert 1.2 < found.noise_at_most < 1.2 * within
    assert not found.refuted
    claimed = effective_noise(tally, DPSGD(0.1, 1.5, 50), adjacency=adjacency, level=0.95)
    assert claimed.refuted
    assert claimed.noise_at_most == found.noise_at_most
    spent = eps_of_noise(found.noise_at_most, privacy, delta=1e-5, adjacency=adjacency)
    assert 0.6 < spent / accountant_eps(privacy, delta=1e-5, adjacency=adjacency) < 1


def test_the_noise_is_proven_to_be_refuted_and_hardly_less_is():
    tally, privacy = eg.Tally(tp=160, tn=170, fp=30, fn=40), DPSGD(0.1, 1.0, 100)
    found = noise_at_most(tally, privacy, adjacency="substitute", level=0.95)
    test = inversion_of(tally, Quantity(MuOrdering, lambda *_: None, Mu()), alpha=0.05, direction="right")

    def refuted(sigma):
        region = curve(replace(privacy, noise_multiplier=sigma), "substitute")
        return improbable(test.tail, region, test.plausible, test.most)

    assert refuted(found)
    assert refuted(1.3 * found)
    assert not refuted(found / 1.001)


@pytest.mark.parametrize(("adjacency", "distance"), [("add-remove", 1.0), ("substitute", 2.0)])
def test_without_sampling_it_is_one_gaussian_mechanism(adjacency, distance):
    tally, privacy = eg.Tally(tp=700, tn=950, fp=50, fn=300), DPSGD(1.0, 4.0, 9)
    found = effective_noise(tally, privacy, adjacency=adjacency, level=0.95)
    bound = gaussian_bound(tally, delta=1e-5, level=0.95)
    assert found.noise_at_most == pytest.approx(distance * 3 / bound.mu)
    spent = eps_of_noise(found.noise_at_most, privacy, delta=1e-5, adjacency=adjacency)
    assert spent == pytest.approx(bound.eps)
    assert found.refuted == (found.noise_at_most <= 4.0)


@pytest.mark.parametrize(
    ("privacy", "adjacency"), [(DPSGD(1.0, 2.0, 1), "add-remove"), (DPSGD(0.3, 1.0, 3), "substitute")]
)
def test_coverage_over_all_outcomes(privacy, adjacency):
    """At the rates of the curve the true noise is refuted with at most a tenth, whatever the threshold."""
    n, level = 8, 0.9
    k = np.arange(n + 1)
    wrong = np.array(
        [
            [
                effective_noise(
                    eg.Tally(tp=n - a, fn=a, fp=b, tn=n - b), privacy, adjacency=adjacency, level=level
                ).refuted
                for b in k
            ]
            for a in k
        ]
    )
    assert wrong[0, 0]
    for y in (0.02, 0.1, 0.25, 0.5, 0.8):
        if privacy.sample_rate == 1:
            x = stats.norm.cdf(-stats.norm.ppf(y) - 0.5)
        else:
            x = float(curve(privacy, adjacency).least(np.array([y]))[0])
        chance = stats.binom.pmf(k, n, x) @ wrong @ stats.binom.pmf(k, n, y)
        assert chance <= 1 - level


def test_edges():
    some = DPSGD(0.1, 1.0, 10)
    for cells in ((5, 5, 5, 5), (5, 0, 0, 0), (1, 1, 9, 9)):  # chance, one kind alone, worse than chance
        tally = eg.Tally(**dict(zip(("tp", "tn", "fp", "fn"), cells, strict=True)))
        nothing = effective_noise(tally, some, adjacency="substitute", level=0.9)
        assert nothing.noise_at_most == math.inf
        assert not nothing.refuted
        assert eps_of_noise(math.inf, some, delta=1e-5, adjacency="substitute") == 0
    # with chance 0.9 the point is in no batch: nobody can be right so often
    never = eg.Tally(tp=1000, tn=1000, fp=0, fn=0)
    impossible = effective_noise(never, DPSGD(0.01, 0.0, 10), adjacency="add-remove", level=0.95)
    assert impossible.noise_at_most == 0
    assert impossible.refuted
    assert eps_of_noise(0.0, some, delta=1e-5, adjacency="add-remove") > 100
    assert eps_of_noise(1.0, some, delta=0.0, adjacency="add-remove") == math.inf


def test_bad_input():
    with pytest.raises(eg.InvalidInput, match="must be one tally"):
        effective_noise(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), DPSGD(0.1, 1.0, 10), adjacency="substitute", level=0.9)
    with pytest.raises(eg.InvalidInput, match="adjacency must be"):
        effective_noise(eg.Tally(tp=1, tn=1, fp=1, fn=1), DPSGD(0.1, 1.0, 10), adjacency="bounded", level=0.9)


# The choice of the threshold


def ideal_scores(n, privacy, seed):
    """The log-likelihood ratio of an adversary that sees every step of substitution."""
    rng = np.random.default_rng(seed)
    rate, sigma, steps = privacy.sample_rate, privacy.noise_multiplier, privacy.steps
    bits = rng.integers(0, 2, n)
    x = (rng.random((n, steps)) < rate) * (2 * bits[:, None] - 1) + rng.normal(0, sigma, (n, steps))
    score = (np.log(bells(x, rate, sigma, 1.0)) - np.log(bells(x, rate, sigma, -1.0))).sum(axis=1)
    return eg.Scores(np.arange(n), np.zeros(n), bits, score, "substitute", bits="coins")


def test_the_threshold_is_near_the_best_for_the_curve():
    """Of an ideal adversary it is 0, by symmetry; 333 models choose, where ε at δ chooses far out."""
    privacy, chosen, by_eps = DPSGD(0.1, 1.0, 100), [], []
    for seed in range(5):
        fit = ideal_scores(333, privacy, seed)
        chosen.append(threshold_for(fit, lambda tallies: promising(tallies, privacy, "substitute")))
        by_eps.append(judge(fit, SameData(), delta=1e-5).threshold)
    assert np.mean(np.abs(chosen)) < 1.0 < np.mean(np.abs(by_eps))


@pytest.mark.parametrize("privacy", [DPSGD(0.1, 1.0, 40), DPSGD(1.0, 3.0, 4)])
def test_a_promising_threshold_has_the_lowest_noise(privacy):
    """Held against the bound itself at every threshold, of so many models that luck does not matter."""
    table = ideal_scores(2000, DPSGD(0.1, 1.0, 40), 1)
    thresholds = np.quantile(table.score, [0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9])
    tallies = tally_at(table, thresholds)
    best = int(np.argmax(promising(tallies, privacy, "substitute")))
    found = [noise_at_most(tallies[i], privacy, adjacency="substitute", level=0.95) for i in range(len(thresholds))]
    assert found[best] < 1.03 * min(found)


def test_few_thresholds_and_useless_scores():
    privacy, one = DPSGD(0.1, 1.0, 10), np.array([0.0, 1.0])
    for score in ([0.0, 1.0] * 4, [0.5] * 8, [1.0, 0.0] * 4):
        table = eg.Scores(np.arange(8), np.zeros(8), [0, 1] * 4, score, "substitute")
        assert threshold_for(table, lambda tallies: promising(tallies, privacy, "substitute")) in (*score, 0.5)
        assert threshold_for(table, lambda tallies: promising(tallies, privacy, "substitute"), one) in one


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
    assert found == effective_noise(OF_NOISE.rests_on(a.evidence).tally, a.privacy, adjacency="substitute", level=0.99)
    said = ask("audit", tmp_path / "run", "--curve")
    assert "the claimed multiplier 5.000 is refuted" in " ".join(said.split())


def test_it_judges_like_any_other_method(tmp_path):
    run = leaky(tmp_path, verdict_method="curve")
    a = audit_run(run)
    assert (a.verdict.kind, a.verdict.method, a.verdict.promise) == ("violation", "curve", "guaranteed")
    at = {"adjacency": "substitute", "level": 0.99}
    assert a.verdict.noise == noise_at_most(a.verdict.tally, run.privacy, **at) < 5.0
    assert (
        a.verdict.bound
        == a.lower_bound
        == eps_of_noise(a.verdict.noise, run.privacy, delta=1e-5, adjacency="substitute")
    )
    assert DPSGD_CURVE not in a.verdict.assumptions  # the claim is the curve
    assert DPSGD_CURVE in a["curve"].assumptions
    assert "weighted" in [row.method for row in a.rows]  # which needs no such thing
    assert "if training is DP-SGD with the stated sampling rate and steps" in a.verdict.sentence
    assert a.verdict.detectable > 0
    told = a.to_json()
    assert told["verdict"]["noise"] == a.verdict.noise
    assert told["lower_bound_method"] == "curve"
    assert told["lower_bound"] > told["claim"]["eps"]
    (row,) = [row for row in told["methods"] if row["method"] == "curve"]
    assert "DP-SGD with sampling rate 0.5 and 10 steps" in row["note"]


def test_of_a_stated_claim_its_eps_needs_dp_sgd(tmp_path):
    stated = {"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
    a = audit_run(leaky(tmp_path, verdict_method="curve", **stated))
    assert a.verdict.kind == "violation"
    assert DPSGD_CURVE in a.verdict.assumptions


def test_a_claim_that_is_true_is_not_refuted(tmp_path):
    """An attack that sees nothing of a claim that says little, which the control finds out."""
    a = audit_run(leaky(tmp_path, shift=0.0, verdict_method="curve"))
    assert a.verdict.kind == "inconclusive"
    assert a.verdict.noise > 5.0


def test_without_dp_sgd_it_is_refused(tmp_path):
    needs = r'verdict_method = "curve" needs a trainer whose privacy\(n\) is an eg.DPSGD'
    run = played(plan(), tmp_path / "a")
    with pytest.raises(eg.InvalidInput, match=f"{needs}, but it is KnownPrivacy"):
        eg.audit(run, verdict_method="curve")
    with pytest.raises(eg.InvalidInput, match=f"{needs}, but it is not known how these models were trained"):
        eg.audit(ideal_scores(100, DPSGD(0.5, 1.0, 2), 0), verdict_method="curve")
    with pytest.raises(eg.InvalidInput, match="curve is for DP-SGD, which no scenario is"):
        calibrate("curve")


def test_it_judges_the_accountants_claim_at_a_threshold_of_its_own(tmp_path):
    run = leaky(tmp_path, shift=1.0)
    a = audit_run(run)
    assert (a.verdict.method, a.verdict.promise, a.lost) == ("curve", "guaranteed", None)  # of the accountant's claim
    picked = OF_NOISE.picks(a.evidence, delta=1e-5, level=0.99)
    assert picked != a.judged.threshold  # which is the best for ε at δ
    assert a.verdict.tally == a.evidence.at(picked).one_each.tally
    assert a.lower_bound == a.gauge.bound != a.verdict.bound  # a limit for ε is no claim of DP-SGD
    assert a.gauge.method == "weighted"
    given = audit_run(leaky(tmp_path / "b", shift=1.0, target_fpr=0.2))
    assert given.verdict.tally == given.guaranteed_tally  # the rule that was asked for
    stated = {"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
    assert audit_run(leaky(tmp_path / "c", shift=1.0, **stated)).verdict.method == "weighted"


def test_what_a_plan_can_show_by_the_curve(tmp_path):
    """Of a trainer of your own that is known only after its code was imported; a control run is judged too."""
    run = leaky(tmp_path, verdict_method="curve")
    found = forecast(run.plan)
    assert found.method != "curve"
    assert any("What Curve can show is known to your code alone" in text for text in found.warnings)
    built_in = run.plan.changed(trainer={"use": "dpsgd", "batch_size": 10, "epochs": 5, "noise_multiplier": 1.0})
    assert (forecast(built_in).method, forecast(built_in).largest_verdict > 5) == ("curve", True)
    control = audit_run(played(run.plan.changed(control=True), tmp_path / "control"))
    assert (control.verdict.kind, control.verdict.method) == ("no claim", "weighted")
    assert forecast(built_in.changed(control=True)).method == "weighted"
    assert control.lower_bound > 0
    page = ask("report", tmp_path / "run", "-o", tmp_path / "report.md") and (tmp_path / "report.md").read_text()
    assert "ε if training is DP-SGD with the stated sampling rate and steps" in page
