"""Audits from end to end: mechanisms with a known ε, runs with failures, looks, many pairs, comparisons, gates."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from tiny_runs import CLAIM, FAILING, Breaks, pairs_plan, plan, played, responses, small_plan, stopped

import epsgauge as eg
from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.audit import audit, audit_run
from epsgauge.auditing.compare import compare, largest_difference
from epsgauge.auditing.gate import Gate, gate
from epsgauge.auditing.live import CHOOSING, TOGETHER, Live
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Outcome, Signals
from epsgauge.methods.counted import covering
from epsgauge.methods.evidence import Tallied
from epsgauge.methods.table import METHODS, QUICK
from epsgauge.numbers import json_ready
from epsgauge.runner.progress import Watch
from epsgauge.runner.view import results_of
from epsgauge.scores.table import Scores
from epsgauge.stats.tally import Tally


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return played(plan(), tmp_path_factory.mktemp("whole") / "a")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return played(plan(Breaks(1.0)), tmp_path_factory.mktemp("broken") / "a")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return played(pairs_plan(), tmp_path_factory.mktemp("many") / "a")


# Against the truth


def test_the_true_claim_of_randomised_response_is_not_refuted():
    """With the expected counts the bound is below ε; how often chance puts it above is in test_verdict.py."""
    n, lie = 5000, 1 / (1 + math.exp(1.0))
    wrong = round(n * lie)
    right = np.repeat([1.0, 0.0], [n - wrong, wrong])
    a = audit(
        Scores.from_in_out(right, 1 - right, adjacency="substitute", models="independent"),
        rule="given",
        threshold=0.5,
        claimed_eps=1.0,
        **CLAIM,
    )
    assert a.judged.tally == Tally(tp=n - wrong, fn=wrong, tn=n - wrong, fp=wrong)
    assert a.verdict.kind == "no objection"
    assert 0.85 < a.verdict.detectable < a.verdict.bound.value < 1.0
    assert a.posterior.median() == pytest.approx(1.0, abs=0.05)


def test_a_false_claim_is_found_with_enough_answers():
    a = audit(responses(2.0, 4000), claimed_eps=1.0, **CLAIM)
    assert a.verdict.kind == "violation"
    assert 1.0 < a.verdict.bound.value < 2.0
    low, high = a.posterior.interval(0.99).low, a.posterior.interval(0.99).high
    assert low < 2.0 < high


def test_a_run_of_a_mechanism_is_judged_by_its_proof(whole):
    a = audit_run(whole)
    assert (a.source, a.name, a.adjacency) == ("run", "rr", "substitute")
    assert (a.claim.eps, a.claim.source) == (1.0, "known")
    assert a.accountant == {"substitute": 1.0, "add-remove": None}
    assert a.judged.fit_models.tolist() == list(range(10))  # a sixth
    assert a.judged.n_models == 50
    assert a.posterior.tally == a.judged.tally == a.guaranteed_tally
    signals = whole.signals()
    said = (signals["loss"][..., 0] > signals["loss"][..., 1])[10:, 0]
    assert a.judged.tally == Tally.from_guesses(signals.bits[10:, 0], said)
    assert a.level_kept
    assert a.models.planned == a.models.done == 60
    assert "the losses of z0 and z1" in a.verdict.sentence


def test_rows_are_those_of_the_methods(whole):
    a = audit_run(whole)
    expected = eg.intervals(a.judged.tally, delta=1e-5, level=0.9, methods=(*QUICK, "exact"))
    assert [row.method for row in a.rows] == [*QUICK, "exact", "weighted"]
    for row in a.rows[:-1]:
        if row.promise != "guaranteed":
            assert (row.low, row.high, row.level) == (expected[row.method].low, expected[row.method].high, 0.9)
        assert (row.promise, row.note) == (METHODS[row.method].promise, None)
        assert row.assumptions == expected[row.method].assumptions


def test_guaranteed_rows_are_bounds_at_the_level_of_the_verdict(whole):
    """One-sided; the level of the intervals leaves them as they are."""
    for level in (0.9, 0.8):
        a = audit_run(whole, {"level": level})
        proven = [row for row in a.rows if row.promise == "guaranteed"]
        assert [row.method for row in proven] == ["clopper-pearson", "exact", "weighted"]
        for row in proven:
            expected = METHODS[row.method].lower_bound(a.evidence, delta=1e-5, level=0.99)
            assert (row.low, row.high, row.level, row.delta) == (pytest.approx(expected), math.inf, 0.99, 1e-5)
        assert a["weighted"].low == a.verdict.bound.value
        assert (a.level_kept, a.verdict.promise) == (True, "guaranteed")


# The rule


def test_scores_are_split_at_random_by_seed():
    scores = responses(1.0, 120)
    first, again, other = (audit(scores, seed=s).judged.fit_models.tolist() for s in (0, 0, 1))
    assert first == again != other
    assert len(first) == 20
    assert audit(scores).judged.fit_models.tolist() == first
    assert len(audit(scores, fit_models=50).judged.fit_models) == 50


def test_a_percentile_is_a_threshold_on_ranks(many):
    a = audit_run(many, {"rule": "given", "percentile": 10})
    assert a.judged.threshold == 90.0
    assert "percentile 10 fixed beforehand" in a.adversary.rule
    assert "the loss of z1 and 19 reference losses" in a.verdict.adversary.access
    with pytest.raises(InvalidInput, match="percentile must be at least"):
        audit_run(many, {"rule": "given", "percentile": 1})


def test_a_rule_judged_on_its_own_data_is_an_estimate(whole):
    a = audit(responses(2.0, 300), rule="same-data")
    *others, weighted, proven = a.rows
    assert (weighted.method, weighted.promise) == ("weighted", "guaranteed")  # it looks at scores, not at the rule
    assert {row.promise for row in others} == {"estimate"}
    assert all("chosen on the data that it is judged on" in row.note for row in others)
    assert (proven.method, proven.promise) == ("simultaneous", "guaranteed")
    assert re.fullmatch(r"of the \d+ highest scores, guessed b = 1", proven.note)
    assert a.verdict.method == "weighted"
    late = audit_run(whole, {"rule": "same-data"})  # which was not declared
    assert {row.promise for row in late.rows} == {"estimate"}
    assert "only an estimate" in late.verdict.sentence


def test_target_fpr(many):
    a = audit_run(many, {"target_fpr": 0.2})
    assert a.judged.fit_tally.fpr <= 0.2


# Many pairs per model


def test_guaranteed_rows_take_one_pair_a_model(many):
    a = audit_run(many)
    assert a.judged.tally.n_samples == 200
    assert a.guaranteed_tally.n_samples == 50
    signals = many.signals()
    assert a.guaranteed_tally.n_positive == signals.bits[10:, 0].sum()
    expected = eg.intervals(a.guaranteed_tally, delta=1e-5, level=0.98)["clopper-pearson"]
    row = a["clopper-pearson"]
    assert (row.low, row.high, row.promise) == (pytest.approx(expected.low), math.inf, "guaranteed")
    assert "one pair per model" in row.note
    assert a["bayes"].promise == "estimate"
    assert "not independent" in a["bayes"].note
    assert audit_run(many, {"verdict_method": "exact"}).verdict.tally == a.guaranteed_tally
    assert audit_run(many, {"verdict_method": "bayes"}).verdict.tally == a.judged.tally


def test_a_table_of_scores_with_many_pairs():
    scores = responses(2.0, 400)
    grouped = Scores(np.arange(400) // 4, np.arange(400) % 4, scores.bit, scores.score, "substitute")
    a = audit(grouped, rule="given", threshold=0.5)
    assert (a.pairs_per_model, a.judged.n_models) == (4, 100)
    assert a.guaranteed_tally == Tally.from_guesses(scores.bit[::4], scores.score[::4] >= 0.5)


# Failed models


def test_failed_models_are_wrong_guesses_in_guaranteed_bounds(broken):
    a = audit_run(broken)
    assert (a.models.done, a.models.failed) == (56, 4)
    assert a.judged.fit_models.tolist() == [i for i in range(10) if i not in FAILING]
    assert a.judged.n_models == 47
    bits = {f.index: int(f.bits[0]) for f in broken.failed}
    ones = sum(bits[i] for i in FAILING if i >= 10)
    t, g = a.judged.tally, a.guaranteed_tally
    assert (g.fn - t.fn, g.fp - t.fp, g.tp, g.tn) == (ones, 3 - ones, t.tp, t.tn)
    assert a["bayes"].tally == t
    assert a["clopper-pearson"].tally == g
    assert "3 failed models count as wrong guesses" in a["clopper-pearson"].note
    assert any("4 of 60 models failed, 3 of them among those to be judged" in w for w in a.warnings)
    assert a.level_kept  # every model was played


def test_a_given_rule_counts_every_failure(broken):
    assert audit_run(broken, {"rule": "given", "threshold": 0.0}).evidence.one_each.n_failed == 4


@pytest.mark.parametrize("cells", [(40, 40, 10, 12), (3, 3, 30, 30), (30, 2, 28, 1), (0, 0, 0, 0)])
@pytest.mark.parametrize("failed", [(4, 3), (0, 5)])
def test_the_guaranteed_interval_covers_whatever_failed_models_would_have_shown(cells, failed):
    tp, tn, fp, fn = cells
    tallied = Tallied(Tally(tp=tp, tn=tn, fp=fp, fn=fn), *failed)
    low, high = covering(METHODS["clopper-pearson"], tallied, delta=1e-5, level=0.9)
    possible = [
        eg.intervals(Tally(tp=tp + failed[0] - i, fn=fn + i, tn=tn + failed[1] - j, fp=fp + j), delta=1e-5, level=0.9)[
            "clopper-pearson"
        ]
        for i in range(failed[0] + 1)
        for j in range(failed[1] + 1)
    ]
    assert low <= min(p.low for p in possible) + 1e-12
    assert high >= max(p.high for p in possible) - 1e-12


# The level


def test_a_run_cut_short_does_not_keep_its_level(tmp_path):
    out = tmp_path / "a"
    a = audit(stopped(small_plan(), out, 30))
    assert not a.level_kept
    assert "30 of 40 models" in a.lost.why
    assert a["clopper-pearson"].promise == "estimate"
    assert a["bayes"].promise == "credible"
    # one bound holds at every moment, and judges alone
    assert (a.verdict.method, a.verdict.promise, a["anytime"].promise) == ("anytime", "guaranteed", "guaranteed")
    assert "Judged by the anytime bound alone" in a.verdict.sentence
    # played to its planned end, though it was looked at: the level is kept
    b = audit(played(small_plan(), out))
    assert (b.level_kept, b.looks) == (True, 1)
    assert b["clopper-pearson"].promise == "guaranteed"
    # extended after the looks: not kept, though complete
    c = audit(played(small_plan(45), out))
    assert (c.models.done, c.looks) == (45, 2)
    assert "extended" in c.lost.why


def test_a_rule_that_was_not_declared_does_not_keep_the_level(tmp_path):
    """Whoever may change it after a look picks the result: no row promises anything then."""
    out = played(small_plan(), tmp_path / "a")
    # already at the first look: or there would be two verdicts to pick from
    other = audit_run(out, {"attack": "loss"})
    assert "attack differs from what the plan declared" in other.lost.why
    assert {row.promise for row in other.rows} == {"estimate"}
    assert audit(out).level_kept
    assert audit(out).level_kept  # as declared, however often
    assert audit(out, level=0.5).level_kept  # what is shown does not choose
    assert "delta differs" in audit(out, delta=1e-3).lost.why  # the search maximises ε at this δ
    given = {"rule": "given", "threshold": 0.0}
    fixed = played(small_plan().with_audit(fit_models=None, **given), tmp_path / "b")
    assert audit(fixed, delta=1e-3, level=0.5).level_kept  # bounds on rates hold at every δ and level
    claim = {"claimed_eps": 1.0, "claimed_delta": 1e-3, "claimed_adjacency": "substitute"}
    assert audit(out, **claim).level_kept


def test_another_verdict_than_declared_is_only_an_estimate(tmp_path):
    out = played(small_plan(), tmp_path / "a")
    audit(out)
    later = audit(played(out.plan.with_audit(verdict_level=0.8), tmp_path / "a"))  # a plan edited after the look
    assert "verdict_level differs from what the plan declared" in later.lost.why
    assert [row.promise for row in later.rows] == ["credible", *["estimate"] * 4]
    found = compare([out, played(out.plan.with_audit(verdict_level=0.8), tmp_path / "a")], rule="shared")
    assert not found.runs[1].audit.level_kept


def test_a_look_is_recorded_unless_told_not_to(tmp_path):
    out = played(small_plan(20), tmp_path / "a")
    audit_run(out)
    assert out.looks == []
    audit(out)
    assert [look["kind"] for look in out.looks] == ["audit"]


def test_a_control_run_has_no_claim(tmp_path):
    a = audit(played(plan(n_models=60, control=True), tmp_path / "a"))
    assert a.verdict.kind == "no claim"
    assert "control run" in a.verdict.sentence
    assert any("control run without noise" in w for w in a.warnings)
    assert a.accountant == {"substitute": None, "add-remove": None}
    assert a.verdict.bound.value == a.verdict.largest  # without noise the attack is always right


# While it is played


def test_live_is_the_audit_at_every_moment(tmp_path):
    seen = []

    class Watching(Watch):
        def started(self, run, remaining):
            self.live = Live(run)

        def finished_one(self, outcome, progress):
            self.live.add(outcome)
            seen.append((self.live.text(), self.live.shows_results))

    out = tmp_path / "a"
    watch = Watching()
    final = played(plan(Breaks(1.0)), out, watch)
    assert seen[8] == seen[9] == (CHOOSING, False)  # ten choose, and one of them failed
    assert seen[10][1]
    assert watch.live.posterior().tally == audit_run(final).judged.tally
    ends = watch.live.posterior().interval(0.9)
    assert seen[-1][0] == f"ε {watch.live.posterior().median():.2f} [{ends.low:.2f}, {ends.high:.2f}]"
    assert Live(final).text() == seen[-1][0]  # resumed at the end


@pytest.mark.parametrize("settings", [{"rule": "same-data"}, {"rule": "given", "percentile": 20}, {"fit_models": 30}])
def test_live_with_every_rule(many, settings):
    planned = many.plan.with_audit(**{"fit_models": None, **settings})
    again = replace(many, plan=planned)
    assert Live(again).posterior().tally == audit_run(again).judged.tally


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_that_is_built_in_scores_each_model_by_itself(name):
    """So that live results need the scores of models alone, and not their signals."""
    rng, n, m = np.random.default_rng(0), 12, 2
    shapes = {"loss": (n, m, 2), "margin": (n, m, 2), "trajectory": (n, m, 2, 6), "reference": (n, 9)}
    shapes["population"] = (n, 9)
    shapes |= dict.fromkeys(("llr", "alignment", "displacement"), (n, m))
    channels = {key: np.sort(rng.random(size), axis=-1) for key, size in shapes.items()}
    bits, pairs = rng.integers(0, 2, (n, m)), np.zeros((n, m, 2), int)
    signals = Signals(np.arange(n), bits, pairs, channels, "substitute", "pair")
    signals = replace(signals, rehearsal=signals)
    each = [ATTACKS[name].scores(signals[np.array([i])]).score for i in range(n)]
    assert np.array_equal(np.concatenate(each), ATTACKS[name].scores(signals).score)
    one, all_ = (ATTACKS[name].candidates(some.blind()) for some in (signals[np.array([3])], signals))
    assert np.array_equal(one, all_) if one is not None else all_ is None


def test_live_keeps_scores_and_not_signals(many):
    seen = results_of(many).signals
    live = Live(replace(many, plan=many.plan.with_audit(rule="same-data", fit_models=None)))
    for i in range(600):
        channels = {name: values[i % len(seen)] for name, values in seen.channels.items()}
        live.add(Outcome(10_000 + i, 0, seen.bits[i % len(seen)], seen.pairs[i % len(seen)], 0.0, channels))
        assert len(live._new) < TOGETHER
    posterior = live.posterior()
    assert (live._new, len(live._one)) == ([], 1)
    assert posterior.tally.n_samples == seen.bits.size + 600 * seen.bits.shape[1]


def test_live_waits_where_no_rule_can_be_chosen(whole):
    same = [i for i in range(60) if whole.signals().bits[i, 0] == whole.signals().bits[0, 0]]
    few = replace(whole, plan=whole.plan.with_audit(fit_models=1), done=np.array(same))
    assert Live(few).text() == CHOOSING


# Comparisons


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    ms = {1: 0.5, 2: 0.5, 5: 2.0}
    return [
        played(pairs_plan(m, shift=shift, n_models=40, name=f"m{m}", seed=m), folder / str(m))
        for m, shift in ms.items()
    ]


def test_compare_with_one_rule_for_all(three):
    found = compare(three, rule="shared")
    assert [r.label for r in found.runs] == ["m1", "m2", "m5"]
    assert len({r.audit.judged.threshold for r in found.runs}) == 1
    assert [r.audit.judged.n_models for r in found.runs] == [32, 40, 40]
    assert (found.runs[0].difference, found.adjacency, found.delta) == (0.0, "substitute", 1e-5)
    assert found.runs[2].difference > 0.2
    for r in found.runs:
        x = np.linspace(0, 12, 4_001)
        gap = np.abs(r.audit.posterior.cdf(x) - found.runs[0].audit.posterior.cdf(x))
        assert r.difference == pytest.approx(gap.max(), abs=1e-5)
        assert r.cdf == pytest.approx(r.audit.posterior.cdf(found.grid))
        ends = r.audit.posterior.interval(0.9)
        assert (r.low, r.high) == (ends.low, ends.high)
    assert [r.audit.level_kept for r in found.runs] == [True, False, False]
    for r in found.runs[1:]:  # also with another seed: it was not declared
        assert r.audit.lost.why == "the rule comes from another run, and this one did not declare it"
        assert {row.promise for row in r.audit.rows} == {r.audit.verdict.promise} == {"estimate"}
    assert all(three[i].looks[-1]["kind"] == "compare" for i in range(3))
    assert json.loads(json.dumps(json_ready(found.to_json())))["runs"][1]["label"] == "m2"


def test_models_that_chose_the_rule_are_not_judged_by_it(tmp_path):
    """In a run with the same seed they share bits and noise, however many of them chose."""
    same = {"attack": "difference", "rule": "same-data"}
    few, more = (played(plan(n_models=n, name=str(n), audit=same), tmp_path / str(n)) for n in (40, 60))
    found = compare([few, more])
    assert found.runs[1].audit.judged.judged.models.tolist() == list(range(40, 60))
    assert not found.runs[1].audit.level_kept
    with pytest.raises(InvalidInput, match="no model that is independent of the 60") as refused:
        compare([more, few], rule="shared")
    assert 'rule="best"' in str(refused.value)
    split = played(plan(n_models=60), tmp_path / "split")
    twice = compare([split, split], fit_models=25)
    assert twice.runs[1].audit.judged.judged.models.tolist() == list(range(25, 60))
    assert twice.runs[1].audit.verdict.promise == "estimate"


def test_a_rule_that_is_tried_on_another_run_after_a_look_promises_nothing(tmp_path):
    first, second = (played(plan(seed=s, name=str(s)), tmp_path / str(s)) for s in (1, 2))
    audit(second)
    for fpr in (0.1, 0.3):
        found = compare([first, second], target_fpr=fpr)
        assert [r.audit.verdict.promise for r in found.runs] == ["estimate", "estimate"]


def test_compare_with_the_best_rule_of_each(three):
    found = compare(three, rule="best")
    assert [r.audit.judged.n_models for r in found.runs] == [32, 32, 32]
    assert found.rule == "each run chooses its own rule"
    for r, source in zip(found.runs, three, strict=True):
        assert r.audit.judged.threshold == audit_run(source).judged.threshold


def test_compare_with_a_percentile_or_an_fpr(three):
    fixed = compare(three, percentile=15)
    assert {r.audit.judged.threshold for r in fixed.runs} == {85.0}
    assert {r.audit.judged.n_models for r in fixed.runs} == {40}
    for rule in ("shared", "best"):
        found = compare(three[:2], rule=rule, target_fpr=0.3)
        assert found.runs[0].audit.judged.fit_tally.fpr <= 0.3


def test_the_mass_at_zero_counts_in_a_difference():
    """At δ = 0.5 both posteriors jump at 0, and differ there most."""
    near, far = (eg.estimate(t, delta=0.5) for t in (Tally(tp=9, tn=9, fp=9, fn=9), Tally(tp=40, tn=40, fp=9, fn=9)))
    value, at = largest_difference(near, far)
    assert (value, at) == (pytest.approx(near.mass_at_zero - far.mass_at_zero), 0.0)


def test_what_cannot_be_compared(three, tmp_path):
    with pytest.raises(InvalidInput, match="two runs or more"):
        compare(three[:1])
    with pytest.raises(InvalidInput, match='rule must be "auto", "shared" or "best"'):
        compare(three, rule="worst")
    other = replace(three[1], plan=three[1].plan.with_audit(delta=1e-6))
    with pytest.raises(InvalidInput, match=r"one delta, but have 1e-05, 1e-06\. Pass one delta"):
        compare([three[0], other])
    assert compare([three[0], other], delta=1e-4).delta == 1e-4
    removed = played(pairs_plan(1, n_models=30, adjacency="add-remove"), tmp_path / "a")
    with pytest.raises(InvalidInput, match="one adjacency, but have substitute, add-remove"):
        compare([three[0], removed])


# Gates and what is printed


def test_gates():
    a = audit(responses(2.0, 4000), claimed_eps=1.0, **CLAIM)
    assert gate(a).reasons == ()
    assert gate(a, fail_above=1.9).reasons == ()
    assert len(gate(a, fail_above=0.5).reasons) == 1
    assert gate(a, fail_on="violation").reasons == (a.verdict.sentence,)
    assert len(gate(a, fail_above=0.5, fail_on="violation").reasons) == 2
    fine = audit(responses(1.0, 4000), claimed_eps=3.0, **CLAIM)
    assert fine.verdict.kind == "no objection"
    assert gate(fine, fail_on="violation", fail_above=1.0) == Gate((), ())


@pytest.mark.parametrize(("method", "kind"), [("jeffreys", "an estimate"), ("bayes", "a credible bound")])
def test_a_gate_counts_what_is_guaranteed_unless_asked_for_more(method, kind):
    a = audit(responses(2.0, 4000), claimed_eps=1.0, verdict_method=method, **CLAIM)
    assert a.verdict.kind == f"violation by {kind}"
    assert a.verdict.sentence.startswith(f"Violation by {kind}, which proves nothing: {a.verdict.bound.text} for any")
    assert "does not hold" not in a.verdict.sentence
    assert a.verdict.promise in repr(a)
    assert a.to_json()["verdict"]["bound"]["promise"] == a.verdict.promise
    said = gate(a, fail_on="violation", fail_above=0.5)
    assert (said.reasons, len(said.uncounted), said.outcome) == ((), 2, "cannot decide")
    assert said.idle == (f"its bound is {kind.removesuffix(' bound').removeprefix('a ')}, not guaranteed",)
    assert a.verdict.promise in said.uncounted[0]
    counted = gate(a, fail_on="violation", fail_above=0.5, count_estimates=True)
    assert (len(counted.reasons), counted.uncounted, counted.idle) == (2, (), ())


@pytest.mark.parametrize(
    ("eps", "n", "claimed", "kind"),
    [(2.0, 4000, 1.0, "violation"), (2.0, 60, 5.0, "cannot decide"), (0.0, 400, 1.0, "cannot decide")],
)
def test_a_gate_fails_on_a_violation_and_cannot_decide_where_the_verdict_cannot(eps, n, claimed, kind):
    a = audit(responses(eps, n), claimed_eps=claimed, **CLAIM)
    assert a.verdict.kind == kind
    assert gate(a, fail_on="violation").outcome == ("fails" if kind == "violation" else "cannot decide")
    assert gate(a, fail_above=5.0).outcome == ("passes" if n == 4000 else "cannot decide")


def test_fail_above_is_at_the_delta_of_the_verdict():
    claim = {"claimed_eps": 1.0, "claimed_delta": 0.2, "claimed_adjacency": "substitute"}
    a = audit(responses(2.0, 4000), delta=1e-5, **claim)
    assert a.verdict.delta == 0.2
    with pytest.raises(InvalidInput, match=r"is a limit at δ = 1e-05, but the claim is judged at δ = 0\.2"):
        gate(a, fail_above=1.0)


def test_a_gate_that_can_never_fail_is_an_error():
    with pytest.raises(InvalidInput, match="needs a claim, but there is none"):
        gate(audit(responses(2.0, 400)), fail_on="violation")
    with pytest.raises(InvalidInput, match="fail_on must be"):
        gate(audit(responses(2.0, 400)), fail_on="leak")
    with pytest.raises(InvalidInput, match="fail_above must be finite"):
        gate(audit(responses(2.0, 400)), fail_above=math.inf)


def test_json_is_complete(broken):
    a = audit_run(broken)
    out = json.loads(json.dumps(json_ready(a.to_json())))
    assert out["verdict"]["kind"] == a.verdict.kind
    assert out["verdict"]["sentence"] == a.verdict.sentence
    assert out["guaranteed_tally"] == {c: int(getattr(a.guaranteed_tally, c)) for c in ("tp", "tn", "fp", "fn")}
    assert [row["promise"] for row in out["methods"]] == [row.promise for row in a.rows]
    assert out["accountant"] == {"source": "known", "eps": {"substitute": 1.0, "add-remove": None}}
    assert out["claim"]["eps"] == 1.0
    assert out["warnings"] == list(a.warnings)
    assert out["models"] == {"planned": 60, "done": 56, "failed": 4, "judged": 47, "fit": 9}
    scores = json.loads(json.dumps(json_ready(audit(responses(1.0, 50)).to_json())))
    assert scores["claim"] is None
    assert "none was given" in scores["no_claim_because"]


def test_what_is_printed(broken):
    a = audit_run(broken)
    assert "\n" not in repr(a)
    assert repr(a).startswith(f"<Audit of rr: {a.verdict.kind}, ε ≥ ")
    text = str(a)
    for row in a.rows:
        assert row.label in text
    assert "proven ε at δ = 1e-05: 1 (substitute)" in text
    assert " ".join(a.verdict.sentence.split()) in " ".join(text.split())
    assert all(" ".join(w.split()) in " ".join(text.split()) for w in a.warnings)


# What is wrong


def test_settings_are_checked_as_a_plans_are(whole):
    for source in (whole, responses(1.0, 50)):
        with pytest.raises(InvalidInput, match=r'fit_model is not a setting of an audit\. Did you mean "fit_models"'):
            audit(source, fit_model=3)
        with pytest.raises(InvalidInput, match=r"^delta must be less than 1, but got 1\.5"):
            audit(source, delta=1.5)
        with pytest.raises(InvalidInput, match=r"^a claim needs all of claimed_eps"):
            audit(source, claimed_eps=1.0)
        with pytest.raises(InvalidInput, match="fit_models must be below"):
            audit(source, fit_models=60)
    assert "audit" not in {look["kind"] for look in whole.looks}


def test_another_kind_of_rule_drops_what_belonged_to_the_old_one(whole):
    planned = replace(whole, plan=whole.plan.with_audit(fit_models=20))
    assert audit_run(planned, {"rule": "given", "threshold": 0.0}).judged.n_models == 60
    assert audit_run(planned).judged.n_models == 40


def test_what_goes_with_a_run_or_with_scores(whole):
    with pytest.raises(InvalidInput, match="seed goes with scores"):
        audit(whole, seed=1)
    for wrong in ({"attack": "loss"}, {"rule": "given", "percentile": 5}):
        with pytest.raises(InvalidInput, match="goes with a run"):
            audit(responses(1.0, 50), **wrong)
    with pytest.raises(InvalidInput, match="an audit is of a Run, of Scores or of a MechanismGame, but got str"):
        audit("runs/a")


def test_too_few_models_to_judge(tmp_path):
    out = tmp_path / "a"
    early = stopped(plan(n_models=40), out, 3)
    with pytest.raises(InvalidInput, match="the first 8 models choose the rule, and no other one is done"):
        audit(early)
    none = replace(early, done=np.empty(0, np.int64))
    with pytest.raises(InvalidInput, match=r"no model of .* is done, so there is nothing to audit"):
        audit(none)
    late = replace(played(plan(n_models=40), out), done=np.arange(8, 20))
    with pytest.raises(InvalidInput, match="the first 8 models choose the rule, but none of them is done"):
        audit(late)


def test_code_that_changed_during_a_run_leaves_no_promise(tmp_path):
    run = replace(played(small_plan(), tmp_path / "a"), code_changed=True)
    found = audit_run(run)
    assert found.lost.why == "the code changed during the run"
    assert {row.promise for row in found.rows} == {"estimate"}


def test_a_violation_by_an_estimate_says_that_it_proves_nothing(tmp_path):
    scores = responses(3.0, 400)
    claim = {"claimed_eps": 0.1, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
    assert "does not hold" in audit(scores, **claim).verdict.sentence
    sentence = audit(scores, rule="same-data", verdict_method="exact", **claim).verdict.sentence
    assert sentence.startswith("Violation by an estimate, which proves nothing: ")
    assert "does not hold" not in sentence


def test_scores_that_saturate_are_warned_about():
    rng = np.random.default_rng(0)

    def said(scores, **settings):
        ins, outs = scores
        table = Scores.from_in_out(ins, outs, adjacency="substitute", models="independent")
        return [w for w in audit(table, **settings).warnings if "judged" in w]

    fine = rng.normal(1, 1, 60), rng.normal(0, 1, 60)
    assert said(fine) == []
    few = said((np.minimum(fine[0], 2.0), np.minimum(fine[1], 2.0)))  # less than a third
    assert few == []
    (equal,) = said((np.minimum(fine[0], 0.5), np.minimum(fine[1], 0.5)), rule="given", threshold=0.4)
    n = int(np.count_nonzero(np.concatenate(fine) >= 0.5))
    assert equal == (
        f"{n} of 120 judged scores are equal (0.5): the attack cannot tell these guesses apart. Use one that does not "
        "saturate, such as margin, or points that it tells apart."
    )
    assert said((fine[0] > 0.5, fine[1] > 0.5), rule="given", threshold=0.5) == []  # guesses, not scores
    for threshold, guess in ((-99.0, 1), (99.0, 0)):
        (always,) = said(fine, rule="given", threshold=threshold)
        assert always.startswith(f"The rule guesses {guess} for all 120 judged pairs, so it shows nothing.")
        assert always.endswith("or use another attack, such as margin.")
