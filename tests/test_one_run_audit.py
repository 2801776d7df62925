"""Audits of few models with many pairs: a split by pair, the surest guesses, whole trade-off curves, claims of μ."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_runs import pairs_plan, played, responses

from epsgauge.auditing.audit import audit, audit_run
from epsgauge.auditing.forecast import forecast
from epsgauge.auditing.live import Live
from epsgauge.bounds.gaussian import gaussian_bound, ranked_mu
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.one_run import one_run_fdp_eps, one_run_fdp_mu
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.weighed import weighed_mu
from epsgauge.errors import InvalidInput
from epsgauge.methods.counting import Counting, Which
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import FAIR_BITS, GAUSSIAN_CURVE, INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.table import METHODS
from epsgauge.numbers import at_least
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Split, SplitPairs, judge
from epsgauge.scores.table import Scores
from epsgauge.stats import region

MU = {"claimed_adjacency": "substitute"}


def one_model(n=1200, shift=1.0, seed=0, models=1):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n)
    rows = np.arange(n)
    each = n // models
    return Scores(rows // each, rows % each, bits, rng.normal(shift * bits, 1.0), "substitute", bits="coins")


# A split by pair


def test_pairs_of_one_model_choose_and_others_are_judged():
    scores = one_model()
    judged = judge(scores, SplitPairs(200), delta=1e-5)
    assert sorted(judged.fit.pair) == list(range(200))
    assert sorted(judged.judged.pair) == list(range(200, 1200))
    at_random = judge(scores, SplitPairs(200, seed=3), delta=1e-5)
    assert sorted([*at_random.fit.pair, *at_random.judged.pair]) == list(range(1200))
    assert len(at_random.fit) == 200
    assert at_random.fit.pair.max() > 400


def test_every_model_gives_as_many_pairs_to_choose():
    scores = one_model(models=6)
    rows = np.random.default_rng(0).permutation(1200)
    judged = judge(scores[rows], SplitPairs(20, seed=1), delta=1e-5)
    assert judged.fit.pairs.tolist() == [20] * 6
    assert judged.judged.pairs.tolist() == [180] * 6
    first = judge(scores[rows], SplitPairs(20), delta=1e-5)
    assert set(first.fit.pair) == set(range(20))


def test_only_bounds_that_hold_given_the_other_bits_keep_their_promise():
    a = audit(one_model(), rule="split-pairs")
    assert {row.method: row.promise for row in a.rows} == {
        "bayes": "estimate",
        "jeffreys": "estimate",
        "clopper-pearson": "estimate",
        "exact": "estimate",
        "weighted": "guaranteed",
        "pooled": "guaranteed",
    }
    assert "chosen on other pairs of the judged models" in a["exact"].note
    assert (a.verdict.method, a.verdict.promise) == ("weighted", "guaranteed")
    assert "200 other pairs of the judged models" in a.adversary.rule
    assert "guesses by the middle of the scores" in a.verdict.sentence
    assert a.to_json()["rule"]["chosen"] == "split-pairs"


def test_a_split_by_pair_covers_where_nothing_leaks():
    """The rule is the best of the pairs that chose; a tenth of the runs may be above 0 at 90 %."""
    runs, above = 300, 0
    counting = Counting(delta=1e-5, level=0.9)
    for seed in range(runs):
        judged = judge(one_model(240, shift=0.0, seed=seed), SplitPairs(80), delta=1e-5)
        above += METHODS["pooled"].lower_bound(Evidence(judged, counting=counting), delta=1e-5, level=0.9) > 0
    assert above / runs <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / runs)
    assert above > 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"fit_pairs": 3}, 'fit_pairs goes with rule = "split-pairs"'),
        ({"rule": "split-pairs", "fit_pairs": 1200}, "fit_pairs must be below the number of pairs of a model, 1200"),
        ({"rule": "split-pairs", "fit_models": 3}, 'fit_models goes with rule = "split"'),
        ({"pooled_number": 3}, 'pooled_number goes with pooled_guesses = "top" or "top-positive"'),
        ({"verdict_method": "one-run", "pooled_guesses": "positive"}, "needs a number of guesses that is fixed"),
        ({"verdict_method": "gaussian"}, "judges claims stated as claimed_mu alone"),
        ({"claimed_mu": 1.0}, "claimed_mu needs claimed_adjacency"),
        ({"claimed_mu": 1.0, "claimed_eps": 1.0, "claimed_delta": 0.0, **MU}, "not as both"),
        ({"claimed_mu": 1.0, "delta": 0.0, **MU}, "which must be above 0"),
        ({"claimed_mu": -1.0, **MU}, "claimed_mu must be greater than or equal to 0"),
    ],
)
def test_settings_that_do_not_fit(settings, sentence):
    with pytest.raises(InvalidInput) as error:
        audit(
            one_model(),
            **({"rule": "split-pairs"} if "rule" not in settings and "fit_pairs" not in settings else {}) | settings,
        )
    assert sentence in str(error.value)


def test_pairs_of_one_bit_cannot_choose():
    scores = one_model()
    with pytest.raises(InvalidInput, match="the pairs that choose the rule must have both bits"):
        judge(scores, SplitPairs(1), delta=1e-5)


def test_a_run_is_split_by_pair(tmp_path):
    found = played(pairs_plan(audit={"rule": "split-pairs", "fit_pairs": 2}), tmp_path)
    m = found.plan.game.pairs_per_model
    a = audit_run(found)
    assert a.judged.n_models == found.n_done
    assert int(a.judged.tally.n_samples) == found.n_done * (m - 2)
    assert set(a.judged.fit.pair) == {0, 1}
    assert a.lost is None
    live = Live(Run.open(found.path))
    assert live.posterior().tally == a.judged.tally
    assert forecast(found.plan).n_guesses == int(a.judged.tally.n_samples)
    other = audit_run(found, {"fit_pairs": 1})
    assert other.lost is not None


def test_a_plan_leaves_pairs_to_be_judged():
    with pytest.raises(InvalidInput, match=r"audit\.fit_pairs must be below game\.pairs_per_model"):
        pairs_plan(audit={"rule": "split-pairs", "fit_pairs": 99})


# The surest guesses


def surest(a, number, sides):
    """By sorting; scores without ties."""
    score, bit = a.judged.judged.score, a.judged.judged.bit
    cut = 0.5 * sum(np.quantile(score, (0.25, 0.75)))
    sure = score if sides == "one" else np.abs(score - cut)
    picked = np.argsort(sure)[-number:]
    said = np.ones(number) if sides == "one" else score[picked] >= cut
    return Guesses(int(np.sum(said == bit[picked])), number, len(score), sides=sides)


@pytest.mark.parametrize(("kind", "sides"), [("top", "both"), ("top-positive", "one")])
def test_a_number_of_guesses_that_was_fixed(kind, sides):
    a = audit(one_model(), rule="split-pairs", verdict_method="pooled", pooled_guesses=kind, pooled_number=70)
    expected = surest(a, 70, sides)
    assert a.verdict.bound.value == pooled_bound(expected, delta=1e-5, level=0.99).eps > 0
    assert "70" in a["pooled"].note
    best = pooled_bound(Guesses(70, 70, 1000, sides=sides), delta=1e-5, level=0.99).eps
    assert a.verdict.largest == best


def test_the_number_is_chosen_on_other_pairs():
    """Many bits that say nothing, and a few that say all: fewer guesses are better."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, 4000)
    loud = np.arange(4000) % 20 == 0
    score = np.where(loud, 4.0 * (2 * bits - 1), rng.normal(size=4000))
    scores = Scores(np.zeros(4000, int), np.arange(4000), bits, score, "substitute")
    settings = {"rule": "split-pairs", "seed": 1, "target_fpr": 0.5}
    chosen = audit(scores, **settings)
    assert "surest" in chosen["pooled"].note or "highest" in chosen["pooled"].note
    assert chosen.verdict.bound.value > audit(scores, **settings, pooled_guesses="all").verdict.bound.value + 1


@pytest.mark.parametrize("threshold", [-1.0, 0.5, 3.0])
def test_the_surest_guesses_are_furthest_from_the_middle_wherever_the_threshold_is(threshold):
    a = audit(one_model(), rule="given", threshold=threshold, pooled_guesses="top", verdict_method="pooled")
    assert a.evidence.guesses == surest(a, round(2 * np.sqrt(1200)), "both")


def test_pairs_of_judged_models_pick_among_numbers_that_share_the_level():
    """Whatever they pick, what the bounds of all numbers may miss adds up to 1 − level."""
    for n in (1, 7, 1000, 10**5):
        tried = Counting()._numbers(n)
        assert sum(which.of_alpha for which in tried) == pytest.approx(1.0)
        assert len({(which.guessed, which.number) for which in tried}) == len(tried)
        assert {which.number for which in tried} >= {min(n, round(2 * np.sqrt(n))), n}
    for shift, number in ((1.0, 158), (8.0, 1000)):
        a = audit(one_model(shift=shift), rule="split-pairs", claimed_mu=0.3, **MU)
        g = a.evidence.guesses
        assert (g.n_guesses, g.of_alpha < 0.1) == (number, number == 1000)
        assert a.verdict.conditional_bound.mu == weighed_mu(a.evidence.weighed, level=0.99) > 0.3


def test_scores_of_judged_models_do_not_move_the_numbers():
    """Those that can be picked are the same for all scores."""
    picked = set()
    for seed in range(12):
        judged = judge(one_model(240, shift=seed / 2, seed=seed), SplitPairs(40), delta=1e-5)
        picked.add(Evidence(judged).which)
    assert len(picked) > 1
    assert picked <= set(Counting()._numbers(200))


def test_other_models_choose_nearly_the_best_number():
    """Mean bounds of 30 tables, against the best single number in hindsight."""
    chosen, by_number = [], []
    for seed in range(30):
        judged = judge(one_model(1200, seed=seed, models=1200), Split(200), delta=1e-5)
        evidence = Evidence(judged, counting=Counting(level=0.95, fixed=True))
        chosen.append(pooled_bound(evidence.guesses, delta=1e-5, level=0.95).eps)
        numbers = [replace(evidence, chosen=Which("top", number=n)).guesses for n in (15, 31, 62, 125, 250, 500, 1000)]
        by_number.append([pooled_bound(g, delta=1e-5, level=0.95).eps for g in numbers])
    assert np.mean(chosen) > np.mean(by_number, axis=0).max() - 0.1
    assert np.mean(chosen) > np.mean(by_number, axis=0)[-1] + 0.3


def test_for_a_claim_of_mu_the_bound_of_mu_chooses():
    """It has more to gain from many guesses."""
    numbers, bounds = [], []
    for seed in range(10):
        judged = judge(one_model(2000, seed=seed, models=2000), Split(300), delta=1e-5)
        both = [Evidence(judged, counting=Counting(fixed=True, by_mu=by_mu)).guesses for by_mu in (False, True)]
        numbers.append([g.n_guesses for g in both])
        bounds.append([one_run_fdp_mu(g, level=0.99) for g in both])
    by_eps, by_mu = np.mean(numbers, axis=0)
    assert by_mu > by_eps
    assert np.mean(bounds, axis=0)[1] > np.mean(bounds, axis=0)[0]


def test_the_order_of_rows_with_one_score_says_nothing():
    """All ones first and all scores tied: the surest guesses are drawn, not taken from the top."""
    bits = np.repeat([1, 0], 500)
    scores = Scores(np.zeros(1000, int), np.arange(1000), bits, np.ones(1000), "substitute")
    a = audit(scores, rule="given", threshold=0.5, pooled_guesses="top-positive", pooled_number=100)
    assert a.verdict.bound.value == 0


# Whole trade-off curves


def test_one_run_is_the_bound_of_the_curve():
    a = audit(one_model(), rule="split-pairs", verdict_method="one-run", pooled_guesses="all")
    t = a.judged.tally
    all_of_them = Guesses(int(t.tp + t.tn), 1000, 1000)
    assert a.verdict.bound.value == one_run_fdp_eps(all_of_them, delta=1e-5, level=0.99)
    assert a["one-run"].low == a.verdict.bound.value
    assert (a.verdict.conditional_bound, a.verdict.bound.condition) == (None, None)


def test_a_claim_of_mu_is_judged_in_mu_for_many_pairs():
    for mu, kind in ((0.2, "violation"), (0.9, "no objection"), (9.0, "cannot decide")):
        v = audit(one_model(600), rule="split-pairs", pooled_guesses="all", claimed_mu=mu, **MU).verdict
        assert (v.method, v.kind) == ("one-run", kind)
        assert v.conditional_bound.assumptions == (FAIR_BITS, RULE_FIXED, NUMBER_FIXED, GAUSSIAN_CURVE)
    t, found = v.tally, v.conditional_bound
    assert found.mu == one_run_fdp_mu(Guesses(int(t.tp + t.tn), 500, 500), level=0.99)
    assert found.value == region.gaussian_eps(found.mu, delta=1e-5)
    assert found.condition == GAUSSIAN_CURVE
    assert v.claim.eps == region.gaussian_eps(9.0, delta=1e-5)


def test_a_claim_of_mu_is_judged_by_ranks_where_bits_are_coins():
    scores = one_model(models=1200)
    a = audit(scores, claimed_mu=0.5, **MU)
    v, row = a.verdict, a["gaussian"]
    assert (v.method, v.kind, v.promise) == ("gaussian", "violation", "guaranteed")
    found = v.conditional_bound
    assert found.mu == ranked_mu(a.evidence.whole.ranked, level=0.99) > 0.5
    assert v.tally.n_samples == 1200 > len(a.judged.judged)
    assert found.assumptions == (INDEPENDENT, FAIR_BITS, NUMBER_FIXED, GAUSSIAN_CURVE)
    assert row.low == found.value == region.gaussian_eps(found.mu, delta=1e-5)
    assert row.note.startswith(f"if {GAUSSIAN_CURVE}: μ is at least ")
    assert found.value < v.largest
    assert 0 < v.detectable < v.largest
    assert audit(scores, claimed_mu=0.5, rule="same-data", **MU).verdict.conditional_bound.mu == found.mu
    few = audit(scores[:24], claimed_mu=3.0, **MU).verdict
    assert (few.kind, few.needed > 24) == ("cannot decide", True)


def test_a_claim_of_mu_is_judged_exactly_for_one_pair_a_model():
    scores = replace(one_model(models=1200), bits="unknown")
    a = audit(scores, claimed_mu=0.5, **MU)
    v, found = a.verdict, a.verdict.conditional_bound
    assert (v.method, v.kind, v.promise) == ("gaussian", "violation", "guaranteed")
    assert found.mu == gaussian_bound(a.guaranteed_tally, delta=1e-5, level=0.99).mu > 0.5
    assert "the stated claim μ = 0.5 of Gaussian DP" in v.sentence
    assert f"μ of at least {at_least(found.mu)}" in v.sentence
    row = a["gaussian"]
    assert row.low == found.value == region.gaussian_eps(found.mu, delta=1e-5)
    assert row.assumptions == found.assumptions == (INDEPENDENT, RULE_FIXED, NUMBER_FIXED, GAUSSIAN_CURVE)
    assert audit(scores, claimed_mu=2.0, **MU).verdict.kind == "no objection"
    told = a.to_json()["verdict"]["conditional_bound"]
    assert (told["mu"], told["assumptions"]) == (found.mu, list(found.assumptions))


def test_a_refuted_mu_says_nothing_of_the_point():
    """Randomised response with ε = 1 is not 0.5-GDP, and holds the ε that this μ is worth."""
    table = responses(1.0, 1000)
    a = audit(table, claimed_mu=0.5, **MU)
    v = a.verdict
    assert v.bound.value <= 1.0 < v.claim.eps < v.conditional_bound.value
    assert (v.kind, v.refutes_curve, v.above, v.bound.condition) == ("violation", True, False, None)
    assert v.conditional_bound.condition == GAUSSIAN_CURVE
    assert "Whether its (ε, δ) does is not decided." in v.finding


def test_a_mu_of_add_remove_is_twice_as_much_under_substitution():
    a = audit(one_model(models=1200), claimed_mu=0.25, claimed_adjacency="add-remove")
    assert a.claim.mu == 0.5
    assert any("2μ = 0.5" in text for text in a.warnings)


def test_without_a_claim_of_mu_no_verdict_rests_on_it():
    a = audit(one_model(models=1200), claimed_eps=0.1, claimed_delta=1e-5, **MU)
    assert a.verdict.conditional_bound is None
    assert all(row.method != "gaussian" for row in a.rows)


def test_few_models_leave_mu_without_an_upper_end():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, 60)
    scores = Scores(np.arange(60), np.zeros(60), bits, 4.0 * bits + rng.normal(size=60), "substitute")
    row = audit(scores, rule="given", threshold=2.0, claimed_mu=1.0, **MU)["gaussian"]
    assert 0 < row.low < row.high == np.inf
