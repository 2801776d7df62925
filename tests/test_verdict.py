"""Claims and verdicts: which claim is judged, the level at the boundary, power, and what the sentences say."""

import math
import sys
from itertools import product

import numpy as np
import pytest
from scipy import stats
from tiny_runs import evidence_of_tally

from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.claim import Claim, NoClaim, promises
from epsgauge.auditing.verdict import Judge, verdict
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms import accounting
from epsgauge.mechanisms.privacy import DPSGD, KnownPrivacy
from epsgauge.methods.power import MAX_CELLS
from epsgauge.methods.table import METHODS
from epsgauge.numbers import at_least
from epsgauge.settings import AuditSettings
from epsgauge.stats.tally import Tally

WHO = Adversary("loss", "threshold 1 fixed beforehand", "black box: the loss of z1")
TRAINED = DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)


def ruled(tally, claim=None, *, failed=(0, 0), method="clopper-pearson", level=0.99, promise="guaranteed", **kw):
    """`claim` is an ε at δ = 1e-5."""
    about = NoClaim("none.") if claim is None else Claim(claim, 1e-5, "substitute", "stated")
    by = {"judge": Judge(METHODS[method], promise), "several": False, "adversary": WHO}
    return verdict(about, evidence_of_tally(tally, failed), level=level, delta=1e-5, **by, **kw)


def binomial(n, rate):
    return stats.binom.pmf(np.arange(n + 1), n, rate)


def bound_by_hand(fn, fp, n1, n0, delta, alpha=0.01):
    """§3.1 of the paper: one-sided Clopper-Pearson limits at α/2 each, then Eq. 1."""
    x = np.where(fn < n1, stats.beta.isf(alpha / 2, fn + 1, np.maximum(n1 - fn, 1)), 1.0)
    y = np.where(fp < n0, stats.beta.isf(alpha / 2, fp + 1, np.maximum(n0 - fp, 1)), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        eps = np.maximum(np.log((1 - delta - x) / y), np.log((1 - delta - y) / x))
    return np.where(x + y < 1, np.maximum(0.0, eps), 0.0)


# The level


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.5])
def test_a_true_claim_is_called_a_violation_no_more_often_than_the_level_says(eps):
    """Randomised response is as easy to attack as its ε allows; every outcome of 12 + 12 guesses is judged."""
    n, lie = 12, 1 / (1 + math.exp(eps))
    mass = binomial(n, lie)
    wrong = sum(
        mass[fn] * mass[fp]
        for fn, fp in product(range(n + 1), repeat=2)
        if ruled(Tally(tp=n - fn, fn=fn, tn=n - fp, fp=fp), eps, level=0.9).kind == "violation"
    )
    assert 0 < wrong <= 0.1


@pytest.mark.parametrize("n", [40, 150])
@pytest.mark.parametrize("eps", [0.0, 0.5, 1.5, 3.0])
@pytest.mark.parametrize("rates", ["symmetric", "few false positives"])
def test_the_bound_of_the_verdict_keeps_its_level(n, eps, rates):
    """Both corners of the region: FNR = FPR, and FPR near 0; (0, 1) too for ε = 0."""
    x, y = (1 / (1 + math.exp(eps)),) * 2 if rates == "symmetric" else (1 - 0.05, 0.05 * math.exp(-eps))
    fn, fp = (g.ravel() for g in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    bound = bound_by_hand(fn, fp, n, n, 0.0)
    mass = np.outer(binomial(n, x), binomial(n, y)).ravel()
    assert mass[bound > eps].sum() <= 0.01
    some = np.random.default_rng(0).integers(0, len(fn), 40)
    ours = [
        METHODS["clopper-pearson"].of(Tally(tp=n - a, fn=a, tn=n - b, fp=b), delta=0.0, level=0.99)
        for a, b in zip(fn[some], fp[some], strict=True)
    ]
    assert ours == pytest.approx(bound[some].tolist(), abs=1e-9)


def test_the_direction_is_fixed_beforehand():
    wrong = Tally(tp=1, fn=299, tn=2, fp=298)
    for method in ("clopper-pearson", "jeffreys"):
        assert ruled(wrong, 0.1, method=method).bound.value == 0
    folded = ruled(wrong, 0.1, method="bayes", promise="credible")
    assert folded.kind == "violation by a credible bound"
    assert "reads it as its opposite" in folded.sentence
    right = ruled(Tally(tp=299, fn=1, tn=298, fp=2), 0.1, method="bayes", promise="credible")
    assert "opposite" not in right.sentence


# Power


@pytest.mark.parametrize(
    ("n1", "n0", "fn", "fp"), [(260, 240, 80, 60), (30, 40, 3, 1), (500, 500, 0, 2), (20_000, 21_000, 9000, 8000)]
)
def test_detectable_against_simulation(n1, n0, fn, fp):
    tally = Tally(tp=n1 - fn, fn=fn, tn=n0 - fp, fp=fp)
    found = METHODS["clopper-pearson"].detectable(evidence_of_tally(tally), delta=1e-5, level=0.99)
    rng, times = np.random.default_rng(1), 40_000
    bounds = bound_by_hand(rng.binomial(n1, fn / n1, times), rng.binomial(n0, fp / n0, times), n1, n0, 1e-5)
    noise = 4 * math.sqrt(0.16 / times) + (0 if n1 < 1000 else 4 * math.sqrt(0.16 / MAX_CELLS))
    assert np.mean(bounds > found - 1e-9) >= 0.8 - noise  # a claim just below it is refuted as often as that
    assert np.mean(bounds > found + 1e-9) <= 0.8 + noise  # and one above it is not


def test_detectable_of_a_perfect_attack_is_the_largest_bound():
    v = ruled(Tally(tp=50, fn=0, tn=60, fp=0), 8.0)
    assert v.detectable == v.largest == v.bound.value


def test_detectable_without_one_of_the_bits():
    v = ruled(Tally(tp=0, fn=0, tn=60, fp=0), 1.0)
    assert (v.bound.value, v.largest, v.detectable) == (0.0, 0.0, 0.0)
    assert v.kind == "cannot decide"


# The verdicts


def test_violation():
    v = ruled(Tally(tp=280, fn=20, tn=290, fp=10), 1.0)
    assert v.kind == "violation"
    assert v.bound.value == pytest.approx(float(bound_by_hand(20, 10, 300, 300, 1e-5)))
    assert v.sentence.startswith("Violation: the stated claim ε = 1 at δ = 1e-05 (substitute) does not hold.")
    how = "Clopper-Pearson, guaranteed, one-sided 99 %, δ = 1e-05, substitute, N = 600"
    assert v.shown == (f"{v.bound.text} for any training ({how}).",)


def test_no_objection_says_by_whom():
    v = ruled(Tally(tp=180, fn=120, tn=190, fp=110), 3.0)
    assert v.kind == "no objection"
    assert v.detectable <= v.largest
    for part in (
        "No objection found: nothing contradicts the stated claim ε = 3",
        "attack loss",
        "threshold 1 fixed beforehand",
        "black box: the loss of z1",
        "substitute",
        "N = 600",
        f"refutes claims below ε = {at_least(v.detectable)} with 80 % power",
    ):
        assert part in v.sentence


def test_a_bound_equal_to_the_claim_is_no_violation():
    tally = Tally(tp=180, fn=20, tn=190, fp=10)
    bound = METHODS["clopper-pearson"].of(tally, delta=1e-5, level=0.99)
    assert ruled(tally, bound).kind == "no objection"
    assert ruled(tally, math.nextafter(bound, 0)).kind == "violation"


def test_it_cannot_decide_when_even_a_perfect_attack_cannot():
    tally = Tally(tp=45, fn=5, tn=45, fp=5)
    largest = float(bound_by_hand(0, 0, 50, 50, 1e-5))
    assert ruled(tally, largest).kind == "cannot decide"
    assert ruled(tally, math.nextafter(largest, 0)).kind == "no objection"
    v = ruled(tally, largest)
    assert v.largest == pytest.approx(largest)
    assert "needs about N = 102." in v.sentence  # a little more than there is


def test_a_claim_beyond_all_measure():
    assert "Even a perfect attack needs more than N = 100,000" in ruled(Tally(tp=5, fn=5, tn=5, fp=5), 1e4).sentence


def test_failed_models_lower_what_can_be_shown():
    whole, some = Tally(tp=50, fn=0, tn=50, fp=0), Tally(tp=50, fn=10, tn=50, fp=5)
    assert ruled(some, 9.0, failed=(10, 5)).largest == ruled(some, 9.0, failed=(10, 5)).bound.value
    assert ruled(some, 9.0, failed=(10, 5)).largest < ruled(whole, 9.0).largest


def test_failed_models_can_be_why_it_cannot_decide():
    tally = Tally(tp=50, fn=10, tn=50, fp=10)
    v = ruled(tally, 2.0, failed=(10, 10))
    assert v.kind == "cannot decide"
    assert "20 guesses about failed models count as wrong: train those models again." in v.sentence
    assert "needs about N" in ruled(tally, 5.0, failed=(10, 10)).sentence  # too few, failures or not


def test_no_claim_still_reports_the_bound():
    v = ruled(Tally(tp=280, fn=20, tn=290, fp=10))
    assert (v.kind, v.claim) == ("no claim", None)
    assert v.sentence.startswith("No claim: none.")
    assert f"{v.bound.text} for any training" in v.sentence


def test_no_sentence_says_more_than_is_known():
    tallies = [Tally(tp=280, fn=20, tn=290, fp=10), Tally(tp=3, fn=3, tn=3, fp=3)]
    for tally, claim, promise in product(tallies, (None, 0.5, 5.0), ("guaranteed", "credible", "estimate")):
        v = ruled(tally, claim, promise=promise, caveats=("The level was not kept: so.",))
        assert "verified" not in v.sentence.lower()
        assert v.sentence.endswith("The level was not kept: so.")
        assert ("not a confidence bound" in v.sentence) == (promise == "credible")
        assert ("only an estimate" in v.sentence) == (promise == "estimate")


def test_the_claim_is_judged_at_its_own_delta():
    tally = Tally(tp=280, fn=20, tn=290, fp=10)
    claim = Claim(2.0, 0.01, "substitute", "stated")
    by = {"judge": Judge(METHODS["clopper-pearson"], "guaranteed"), "several": False, "adversary": WHO}
    v = verdict(claim, evidence_of_tally(tally), level=0.99, delta=1e-5, **by)
    assert v.delta == 0.01
    assert v.bound.value == pytest.approx(float(bound_by_hand(20, 10, 300, 300, 0.01)))


# Which claim


def settings(**kw):
    return AuditSettings(**kw)


def stated(eps, delta, adjacency, **kw):
    return settings(claimed_eps=eps, claimed_delta=delta, claimed_adjacency=adjacency, **kw)


def test_the_accountants_claim_has_the_adjacency_of_the_game_and_the_other_stands_beside_it():
    for adjacency in ("substitute", "add-remove"):
        found = promises(settings(delta=1e-5), TRAINED, adjacency)
        assert found.claim == Claim(found.accountant[adjacency], 1e-5, adjacency, "accountant")
        assert set(found.accountant) == {"substitute", "add-remove"}
    # dp-accounting with buckets of 1e-4: 10.51638 and 7.04660
    assert found.accountant["substitute"] == pytest.approx(10.5164, abs=1e-3)
    assert found.accountant["add-remove"] == pytest.approx(7.0466, abs=1e-3)


def test_a_stated_claim_wins():
    found = promises(stated(1.5, 1e-6, "substitute"), TRAINED, "substitute")
    assert found.claim == Claim(1.5, 1e-6, "substitute", "stated")
    assert found.accountant["substitute"] > 10
    assert promises(stated(1.5, 1e-6, "add-remove"), None, "add-remove").claim.note is None


def test_a_stated_add_remove_claim_in_a_game_of_substitution():
    found = promises(stated(1.5, 1e-6, "add-remove"), None, "substitute")
    assert (found.claim.eps, found.claim.delta) == (3.0, pytest.approx((1 + math.exp(1.5)) * 1e-6))
    assert found.claim.adjacency == "substitute"
    assert "(2ε, (1 + e^ε)δ)" in found.notes[0]
    nothing = promises(stated(20.0, 1e-6, "add-remove"), None, "substitute").claim
    assert isinstance(nothing, NoClaim)
    assert "promises nothing" in nothing.reason


def test_a_substitution_claim_implies_nothing_about_removing():
    with pytest.raises(InvalidInput, match="State the add-remove claim, or play a game of substitution"):
        promises(stated(1.0, 1e-5, "substitute"), None, "add-remove")


@pytest.mark.parametrize(
    ("privacy", "adjacency", "used", "reason"),
    [
        (None, "substitute", settings(), "does not say what it promises"),
        (DPSGD(0.1, 0.0, 10), "substitute", settings(), "infinite"),
        (TRAINED, "substitute", settings(delta=0.0), "infinite"),
        (KnownPrivacy(1.0, "substitute"), "add-remove", settings(), "implies nothing"),
        (KnownPrivacy(1.0, "substitute", 1e-4), "substitute", settings(delta=1e-5), "implies nothing"),
        (None, "substitute", stated(math.inf, 1e-5, "substitute"), "infinite"),
    ],
)
def test_no_claim_says_why(privacy, adjacency, used, reason):
    claim = promises(used, privacy, adjacency).claim
    assert isinstance(claim, NoClaim)
    assert reason in claim.reason


def test_of_a_control_run_nothing_is_promised():
    claim = promises(stated(1.0, 1e-5, "substitute"), TRAINED, "substitute", control=True).claim
    assert isinstance(claim, NoClaim)
    assert "control run" in claim.reason


def test_a_known_eps():
    known = KnownPrivacy(1.0, "add-remove")
    assert promises(settings(), known, "add-remove").claim == Claim(1.0, 1e-5, "add-remove", "known")
    doubled = promises(settings(), known, "substitute")
    assert (doubled.claim.eps, doubled.source) == (2.0, "known")
    assert "known for add-remove" in doubled.notes[0]


def test_without_dp_accounting_a_stated_claim_is_judged_and_the_rest_is_said(monkeypatch):
    accounting._dpsgd.cache_clear()
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    found = promises(stated(1.5, 1e-6, "substitute"), TRAINED, "substitute")
    assert found.claim == Claim(1.5, 1e-6, "substitute", "stated")
    assert "pip install '.[accounting]'" in found.notes[0]
    alone = promises(settings(), TRAINED, "substitute").claim
    assert isinstance(alone, NoClaim)
    assert "pip install" in alone.reason
