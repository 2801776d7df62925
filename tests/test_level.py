"""What takes a guarantee: a δ, a verdict or a rule that was not declared, bits that are no coins, a wrong order."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special
from tiny_runs import Pairs, evidence_of_tally, pairs_plan, plan, played, responses, small_plan, stopped

from epsgauge.auditing.audit import audit, audit_run
from epsgauge.auditing.caveats import failures
from epsgauge.auditing.forecast import forecast
from epsgauge.auditing.judged import evidence_of
from epsgauge.auditing.stopping import StopWhen
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.errors import InvalidInput
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.methods.anytime import Betting
from epsgauge.methods.coins import too_even
from epsgauge.methods.evidence import Evidence, Failed
from epsgauge.methods.facts import GAUSSIAN_CURVE
from epsgauge.methods.table import METHODS, WATCHED
from epsgauge.runner.executors import InProcess
from epsgauge.runner.run import run
from epsgauge.scores.table import Scores
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Fails(Pairs):
    """Model 15 does not train."""

    def train(self, data, *, seed, size=None):
        if seed == training_seed(0, Branch.audited, 15):
            raise RuntimeError("broken")
        return super().train(data, seed=seed, size=size)


GIVEN = {"rule": "given", "threshold": 0.0}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A run whose rule was fixed in the plan."""
    return played(plan(n_models=60, audit=GIVEN), tmp_path_factory.mktemp("given") / "a")


# δ


def test_the_exact_bound_is_for_one_delta(given):
    """Enumerated: whoever picks the δ after the outcome is above ε more often than the level says."""
    n, level, deltas = 6, 0.9, (0.0, 0.1, 0.2, 0.3)
    tallies = [(fn, fp, Tally(tp=n - fn, tn=n - fp, fp=fp, fn=fn)) for fn in range(n + 1) for fp in range(n + 1)]
    low = {
        d: {(x, y): exact_lower_bound(t, delta=d, level=level, direction="right") for x, y, t in tallies}
        for d in deltas
    }
    ways = np.array([1.0, *np.cumprod([(n - k) / (k + 1) for k in range(n)])])
    worst = dict.fromkeys((*deltas, "picked"), 0.0)
    for x in np.linspace(0.02, 0.6, 30):
        for y in np.linspace(0.02, 0.9, 30):
            p, q = (ways * r ** np.arange(n + 1) * (1 - r) ** (n - np.arange(n + 1)) for r in (x, y))
            eps = {d: max(0.0, *(np.log(max((1 - d - b) / a, 1e-300)) for a, b in ((x, y), (y, x)))) for d in deltas}
            above = {d: np.array([[low[d][i, j] > eps[d] for j in range(n + 1)] for i in range(n + 1)]) for d in deltas}
            mass = np.outer(p, q)
            for d in deltas:
                worst[d] = max(worst[d], mass[above[d]].sum())
            worst["picked"] = max(worst["picked"], mass[np.any(list(above.values()), axis=0)].sum())
    assert max(worst[d] for d in deltas) <= 0.1
    assert worst["picked"] > 0.1


def test_another_delta_than_declared_is_judged_by_a_bound_for_all(given):
    a = audit_run(given, {"delta": 0.01})
    assert a.lost is None
    assert a["exact"].promise == "estimate"
    assert "δ is not what the plan declared" in a["exact"].note
    assert a["clopper-pearson"].promise == "guaranteed"
    assert (a.verdict.method, a.verdict.promise) == ("clopper-pearson", "guaranteed")
    assert "which holds at every δ" in a.verdict.sentence


def test_bounds_are_at_the_delta_of_the_claim(given):
    claim = {"claimed_eps": 0.1, "claimed_adjacency": "substitute"}
    a = audit_run(given, {**claim, "claimed_delta": 0.1})
    assert a["exact"].promise == "estimate"  # it is for one δ, and nobody declared this one
    assert (a.verdict.method, a.verdict.promise) == ("clopper-pearson", "guaranteed")
    assert (a["clopper-pearson"].delta, a["bayes"].delta) == (0.1, given.plan.audit.delta)
    same = audit_run(given, {**claim, "claimed_delta": given.plan.audit.delta})
    assert (same.verdict.method, same.verdict.promise) == ("weighted", "guaranteed")


# The verdict's level


def test_a_level_that_was_not_declared_is_no_promise_of_an_unfinished_run_either(tmp_path):
    run = stopped(plan(n_models=60, audit=GIVEN), tmp_path / "a", 30)
    assert audit_run(run).verdict.promise == "guaranteed"
    other = audit_run(run, {"verdict_level": 0.6})
    assert (other.verdict.method, other.verdict.promise) == ("anytime", "estimate")
    assert "not finished" in other.lost.why
    assert "verdict_level differs" in other.lost.why


# Which models choose, and in which order


def test_the_models_that_choose_stay_when_a_run_grows(tmp_path):
    first = played(plan(n_models=60), tmp_path / "a")
    assert first.plan.n_fit == 10
    assert first.log_look("audit")
    grown = played(plan(n_models=120), tmp_path / "a")
    assert grown.plan.n_fit == 10
    assert audit_run(grown).judged.fit_models.tolist() == list(range(10))
    assert audit_run(grown)["anytime"].promise == "guaranteed"


def test_before_results_were_seen_another_number_may_choose(tmp_path):
    played(plan(n_models=60), tmp_path / "a")
    assert played(plan(n_models=120), tmp_path / "a").plan.n_fit == 20


def test_nothing_is_in_order_while_a_model_that_chooses_is_missing(tmp_path):
    run = played(small_plan(), tmp_path / "a")
    judged = audit_run(run).judged
    late = type(run)(**{**vars(run), "done": run.done[1:]})
    assert len(evidence_of(run, judged, 10).in_order.pairs) == 30
    assert len(evidence_of(late, judged, 10).in_order.pairs) == 0
    assert WATCHED.lower_bound(evidence_of(late, judged, 10), delta=1e-5, level=0.9) == 0


def test_at_best_models_that_failed_are_wrong(tmp_path):
    run = played(pairs_plan(4, n_models=30), tmp_path / "a")
    judged = audit_run(run).judged
    failed = [Failed(28, np.array([1, 0, 1, 1])), Failed(29, np.array([0, 0, 0, 1]))]
    evidence = Evidence(judged, failed)
    bets = Betting()
    n = len(evidence.in_order.pairs)
    fn, fp = np.zeros((2, n), int)
    fn[-2:], fp[-2:] = (3, 1), (1, 3)
    assert bets.at_best(evidence, delta=1e-5, level=0.9) == betting_lower_bound(fn, fp, 4, delta=1e-5, level=0.9)
    counted = bets.rests_on(evidence)
    assert counted.tally.n_samples == 4 * n
    assert (counted.failed_ones, counted.failed_zeros) == (4, 4)


def test_what_bets_can_show_is_forecast():
    planned = plan(
        Pairs(),
        n_models=100,
        pairs_per_model=10,
        challenge="average",
        canaries=None,
        train_size=20,
        data={"use": "zeros", "size": 400},
        audit={"verdict_method": "anytime", "fit_models": 10, "attack": "percentile"},
    )
    seen = forecast(planned)
    none = np.zeros(90, int)
    assert seen.largest_verdict == betting_lower_bound(none, none, 10, delta=1e-5, level=0.99)
    assert seen.counts == "every guess"


# Coins


def test_bets_on_bits_that_are_no_coins_promise_nothing():
    rng = np.random.default_rng(0)
    bits = (rng.random(600) < 0.9).astype(int)
    scores = Scores(np.arange(600) // 10, np.arange(600) % 10, bits, rng.normal(size=600), "substitute", bits="coins")
    a = audit(scores, rule="given", threshold=-9.0, verdict_method="anytime")
    row = a["anytime"]
    assert (row.promise, a.verdict.promise) == ("estimate", "estimate")
    assert "it needs bits that are coins, but" in row.note
    assert "each bit is a fair coin that enters one model only" in row.assumptions
    assert row.tally == a.verdict.tally == a.judged.tally


def test_bits_that_were_dealt_evenly_are_no_coins():
    rng = np.random.default_rng(0)
    bits = np.array([rng.permutation([0, 1]) for _ in range(100)]).ravel()
    scores = Scores(np.arange(200) // 2, np.arange(200) % 2, bits, rng.normal(bits, 1.0), "substitute", bits="coins")
    a = audit(scores, rule="given", threshold=0.5)
    assert a["pooled"].promise == "estimate"
    assert "more evenly than coins fall" in a["pooled"].note
    alone = audit(responses(1.0, 200), rule="given", threshold=0.5, verdict_method="pooled")
    assert alone["pooled"].promise == "guaranteed"


def test_the_chance_of_an_even_spread_is_bounded():
    """By enumeration of all numbers of ones of five models of four pairs, each weighed with its chance."""
    chance = np.array([1, 4, 6, 4, 1]) / 16
    squares = (2 * np.arange(5) - 4) ** 2
    law = {0: 1.0}
    for _ in range(5):
        law = {
            s: sum(p * chance[k] for t, p in law.items() for k in range(5) if t + squares[k] == s)
            for s in {t + q for t in law for q in squares}
        }
    pairs = np.full(5, 4)
    for ones, total in ((np.full(5, 2), 0), (np.array([2, 2, 2, 2, 1]), 4), (np.array([2, 2, 1, 2, 3]), 8)):
        exact = sum(p for s, p in law.items() if s <= total)
        assert exact <= too_even(ones, pairs) <= 30 * exact
    assert too_even(np.full(5, 2), pairs) == pytest.approx((6 / 16) ** 5, rel=1e-3)
    rng = np.random.default_rng(0)
    assert min(too_even(rng.binomial(10, 0.5, 50), np.full(50, 10)) for _ in range(40)) > 1e-6


# Stopping


def test_a_violation_cannot_be_waited_for_without_a_claim(tmp_path):
    run = played(plan(Pairs(), n_models=40, audit=GIVEN), tmp_path / "a")
    with pytest.raises(InvalidInput, match="--stop-when violation needs a claim, but there is none to refute"):
        StopWhen.parse("violation", run.plan).check(run)
    StopWhen.parse("width<1", run.plan).check(run)


# Pairs of one model on both sides


def test_a_rule_that_follows_the_models_takes_the_promise_of_bets(tmp_path):
    half = stopped(pairs_plan(6, n_models=40, audit={"rule": "split-pairs", "fit_pairs": 2}), tmp_path / "a", 25)
    v = audit_run(half).verdict
    assert (v.method, v.promise) == ("anytime", "estimate")
    with pytest.raises(InvalidInput, match="needs a rule that stays as it is"):
        StopWhen.parse("violation", half.plan)


def test_pairs_that_were_dealt_are_no_coins_although_one_of_them_chose():
    rng = np.random.default_rng(5)
    bits = np.array([rng.permutation([0, 1]) for _ in range(400)]).ravel()
    scores = Scores(np.arange(800) // 2, np.arange(800) % 2, bits, rng.normal(bits, 1.0), "substitute", bits="coins")
    a = audit(scores, rule="split-pairs", fit_pairs=1)
    assert a["weighted"].promise == a.verdict.promise == "estimate"
    assert "more evenly than coins fall" in a["weighted"].note


def test_ties_and_splits_have_draws_of_their_own():
    """Bits that were drawn as carelessly as can be, with the seed that is the default here too."""
    n = 1000
    bits = np.zeros(n, int)
    bits[np.random.default_rng(0).permutation(n)[: n // 2]] = 1
    tied = Scores(np.zeros(n, int), np.arange(n), bits, np.ones(n), "substitute")
    top = audit(tied, rule="given", threshold=0.5, pooled_guesses="top-positive", pooled_number=100)
    assert top.verdict.bound.value == 0
    coins = (np.random.default_rng(0).random(n) < 0.5).astype(int)
    one = Scores(np.zeros(n, int), np.arange(n), coins, np.random.default_rng(1).normal(size=n), "substitute")
    assert 0.3 < audit(one, rule="split-pairs").judged.fit.bit.mean() < 0.7


# Which bound answers which question


def test_which_guesses_count_does_not_follow_the_delta(tmp_path):
    run = played(pairs_plan(10, n_models=60, audit={"target_fpr": 0.3, "attack": "percentile"}), tmp_path / "a")
    notes = {audit_run(run, {"delta": d})["pooled"].note.partition(";")[0] for d in (1e-9, 1e-5, 0.05)}
    assert len(notes) == 1


def test_a_claim_of_mu_after_results_is_another_verdict(given):
    a = audit_run(given, {"claimed_mu": 0.1, "claimed_adjacency": "substitute"})
    assert (a.verdict.method, a.verdict.promise) == ("gaussian", "estimate")
    assert "verdict_method differs" in a.lost.why


def test_a_claim_of_mu_has_a_bound_for_any_training_too():
    scores = responses(1.0, 800)
    by_mu = audit(scores, claimed_mu=0.1, claimed_adjacency="substitute", rule="given", threshold=0.5).verdict
    assert (by_mu.conditional_bound.method, by_mu.bound.method) == ("gaussian", "weighted")
    alone = audit(scores, rule="given", threshold=0.5).verdict
    assert by_mu.bound.value == alone.bound.value < by_mu.conditional_bound.value


def test_models_played_again_choose_again_where_pairs_of_all_choose(tmp_path):
    game = {"pairs_per_model": 4, "challenge": "average", "canaries": None, "train_size": 20}
    declared = plan(
        Fails(),
        n_models=20,
        data={"use": "zeros", "size": 200},
        audit={"rule": "split-pairs", "fit_pairs": 1, "attack": "percentile"},
        **game,
    )
    first = played(declared, tmp_path / "a")
    assert first.failed_models.tolist() == [15]
    assert first.log_look("audit")
    again = run(declared, out=first.path, executor=InProcess(), retry_failed=True)
    assert again.refit_after_look


def test_a_stopped_run_with_a_claim_of_mu_has_all_its_rows(tmp_path):
    for seed in range(4):
        settings = {"claimed_mu": 3.0, "claimed_adjacency": "substitute", "attack": "percentile"}
        run = stopped(pairs_plan(4, n_models=60, seed=seed, audit=settings), tmp_path / str(seed), 40)
        a = audit_run(run)
        assert a["one-run"].assumptions[-1] == GAUSSIAN_CURVE


def test_a_claim_that_the_game_cannot_judge_is_refused_by_the_plan():
    with pytest.raises(InvalidInput, match=r"audit\.claimed_adjacency must be add-remove in an add-remove game"):
        plan(
            adjacency="add-remove",
            audit={"claimed_eps": 1.0, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"},
        )


# What could have been detected


@pytest.mark.parametrize(("cells", "level"), [((6, 20, 0, 14), 0.95), ((8, 8, 3, 3), 0.95)])
def test_what_could_be_detected_by_enumeration(cells, level):
    """All outcomes of two binomials at the measured rates, weighed; the bound of each is exact."""
    tp, tn, fp, fn = cells
    n1, n0 = tp + fn, tn + fp
    weights = [
        np.array([special.binom(n, k) * (bad / n) ** k * (1 - bad / n) ** (n - k) for k in range(n + 1)])
        for n, bad in ((n1, fn), (n0, fp))
    ]
    low, mass = [], []
    for i, p in enumerate(weights[0]):
        for j, q in enumerate(weights[1]):
            if p * q > 1e-6:
                t = Tally(tp=n1 - i, tn=n0 - j, fp=j, fn=i)
                low.append(exact_lower_bound(t, delta=1e-5, level=level, direction="right"))
                mass.append(p * q)
    order = np.argsort(low)
    truth = np.array(low)[order][np.searchsorted(np.cumsum(np.array(mass)[order]), 0.2)]
    evidence = evidence_of_tally(Tally(tp=tp, tn=tn, fp=fp, fn=fn))
    found = METHODS["exact"].detectable(evidence, delta=1e-5, level=level)
    assert found == pytest.approx(truth, abs=0.05)


def test_at_best_no_more_guesses_are_right_than_there_are_ones():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, 1000)
    scores = Scores(np.zeros(1000), np.arange(1000), bits, rng.normal(bits, 1.0), "substitute")
    a = audit(scores, rule="given", threshold=0.5, pooled_guesses="top-positive", pooled_number=900)
    best = pooled_bound(Guesses(int(bits.sum()), 900, 1000, sides="one"), delta=1e-5, level=0.99).eps
    assert a.verdict.largest == best
    assert "of which 900 count" in a.verdict.sentence
    assert a.to_json()["verdict"]["guesses"]["n_guesses"] == 900


class Sometimes(Fails):
    """Model 15 does not train at first."""

    broken = True

    def train(self, data, *, seed, size=None):
        trains = super() if self.broken else super(Fails, self)
        return trains.train(data, seed=seed, size=size)


@pytest.mark.parametrize("looked", [False, True])
def test_a_model_played_again_after_a_look_counts_as_failed(tmp_path, monkeypatch, looked):
    """Else one could look, play those that failed again, and look again: two chances at one level."""
    declared = plan(Sometimes(), n_models=40, audit={"attack": "difference", "fit_models": 14})
    first = played(declared, tmp_path / "a")
    before = audit_run(first)
    assert [f.index for f in before.evidence.failed] == [15]
    if looked:
        assert first.log_look("audit")
    monkeypatch.setattr(Sometimes, "broken", False)
    again = run(declared, out=first.path, executor=InProcess(), retry_failed=True)
    after = audit_run(again)
    assert (again.n_failed, again.retried_after_look.tolist()) == (0, [15] if looked else [])
    assert ([f.index for f in after.evidence.failed] == [15]) == looked
    assert (after.judged.tally == before.judged.tally) == looked
    said = "trained again after results had been seen: it still counts as failed"
    assert any(said in warning for warning in after.warnings) == looked
    assert after.verdict.promise == "guaranteed"


def test_models_that_failed_and_those_played_again_too_late_are_told_apart():
    of = SimpleNamespace(
        plan=SimpleNamespace(n_models=40), failed_models=np.array([5]), retried_after_look=np.array([3])
    )
    failed, late = failures([Failed(3, np.array([1])), Failed(5, np.array([0]))], of)
    assert failed.startswith(
        "1 of 40 models failed, 1 of them among those to be judged (0 pairs with b = 1, 1 with b = 0)"
    )
    assert late.startswith("1 model that had failed was trained again after results had been seen")
