"""Bounds of an audit that need more than counts: pooled guesses, models in order, all thresholds; stopping a run."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tiny_runs import CLAIM, FAILING, Breaks, Pairs, pairs_plan, plan, played, responses, small_plan, stopped

from epsgauge.auditing.audit import audit, audit_run
from epsgauge.auditing.judged import evidence_of
from epsgauge.auditing.stopping import StopWhen
from epsgauge.bounds.anytime import anytime_lower_bound
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.bounds.guesses import guesses_of
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.bounds.surest import surest_lower_bound
from epsgauge.bounds.watched import watched_lower_bound
from epsgauge.cli.run import watched
from epsgauge.errors import InvalidInput
from epsgauge.methods.facts import FAIR_BITS, INDEPENDENT
from epsgauge.runner.executors import InProcess
from epsgauge.runner.run import run
from epsgauge.runner.view import Run
from epsgauge.scores.table import Scores


def grouped(scores, m):
    n = len(scores)
    return Scores(np.arange(n) // m, np.arange(n) % m, scores.bit, scores.score, "substitute", bits="coins")


# Which method judges


def test_one_pair_a_model_is_judged_by_the_exact_bound_where_bits_are_no_coins():
    a = audit(replace(responses(2.0, 600), bits="unknown"), claimed_eps=1.0, **CLAIM)
    v = a.verdict
    assert (v.method, v.promise, v.kind) == ("exact", "guaranteed", "violation")
    assert v.bound.value == exact_lower_bound(a.guaranteed_tally, delta=1e-5, level=0.99, direction="right")
    old = audit(responses(2.0, 600), claimed_eps=1.0, verdict_method="clopper-pearson", **CLAIM).verdict
    assert old.bound.value < v.bound.value
    assert audit(responses(2.0, 600), claimed_eps=1.0, **CLAIM).verdict.method == "weighted"
    assert 0 < v.detectable < v.bound.value


def test_several_pairs_are_judged_by_the_pooled_bound_if_the_settings_say_which_guesses_count():
    scores = grouped(responses(2.0, 800), 8)
    assert audit(scores, rule="given", threshold=0.5).verdict.method == "weighted"
    a = audit(scores, rule="given", threshold=0.5, pooled_guesses="all", claimed_eps=1.0, **CLAIM)
    assert (a.verdict.method, a.verdict.promise, a.verdict.tally) == ("pooled", "guaranteed", a.judged.tally)
    found = pooled_bound(guesses_of(a.judged.tally, "all"), delta=1e-5, level=0.99)
    assert a.verdict.bound.value == found.eps > a["exact"].low
    assert (a["pooled"].promise, a["pooled"].high) == ("guaranteed", math.inf)
    assert a["pooled"].note.startswith("of all guesses")


def test_which_guesses_count_is_chosen_by_the_models_that_chose_the_rule():
    """Only guesses of b = 0 are good: many false alarms and few misses."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, 2000)
    said = np.where(bits == 1, rng.random(2000) < 0.99, rng.random(2000) < 0.9).astype(float)
    scores = Scores(np.arange(2000) // 4, np.arange(2000) % 4, bits, said, "substitute")
    a = audit(scores, fit_models=100)
    assert a["pooled"].note.startswith("of guesses of b = 0")
    assert a["pooled"].low > 1
    fixed = audit(scores, fit_models=100, pooled_guesses="positive")
    assert fixed["pooled"].note.startswith("of guesses of b = 1")
    assert fixed["pooled"].low < 0.2


def test_bits_that_are_not_fair_take_the_promise():
    scores = responses(2.0, 900)
    few = scores[(scores.bit == 1) | (np.arange(900) % 3 == 0)]
    a = audit(grouped(few, 4), rule="given", threshold=0.5)
    assert a["pooled"].promise == "estimate"
    assert "it needs bits that are coins, but" in a["pooled"].note
    rng = np.random.default_rng(2)
    bits, rows = np.arange(320) >= 20, np.arange(320)
    noise = Scores(rows // 4, rows % 4, bits, rng.normal(size=320), "substitute", bits="coins")
    v = audit(noise, rule="given", threshold=-9.0, claimed_eps=0.5, **CLAIM).verdict
    assert v.promise == "estimate"
    assert v.sentence.startswith("Violation by an estimate, which proves nothing")
    assert "The bound promises nothing here: it needs bits that are coins, but 300 of 320 are 1." in v.sentence


def test_pairs_of_failed_models_are_wrong_guesses_in_the_pool(tmp_path):
    class Fails(Pairs):
        def train(self, data, *, seed, size=None):
            if seed % 5 == 0:
                raise RuntimeError("broken")
            return super().train(data, seed=seed, size=size)

    whole = pairs_plan(n_models=40, audit={"attack": "percentile", "rule": "given", "percentile": 20.0})
    done = played(whole.changed(trainer=Fails(2.0)), tmp_path / "a")
    a = audit_run(done)
    bits = np.concatenate([f.bits for f in done.failed])
    assert len(bits)
    t, p = a.judged.tally, a.verdict.tally
    assert (p.fn - t.fn, p.fp - t.fp) == (bits.sum(), len(bits) - bits.sum())
    assert "pairs of failed models count as wrong guesses" in a["pooled"].note


# In the order of their numbers


@pytest.mark.parametrize("m", [1, 4])
def test_a_run_that_was_extended_is_judged_at_every_moment(tmp_path, m):
    """By the same bound that stops a run."""
    small = partial(plan, {"use": "randomised-response", "eps": 3.0}, audit={"fit_models": 10})
    of = small if m == 1 else partial(pairs_plan, m, shift=4.0)
    audit(played(of(n_models=60), tmp_path / "a"))
    a = audit(played(of(n_models=80), tmp_path / "a"))
    assert (a.verdict.method, a.verdict.promise, a["anytime"].promise) == ("anytime", "guaranteed", "guaranteed")
    low = partial(watched_lower_bound, a.evidence.watched)
    assert a.verdict.bound.value == low(delta=a.verdict.delta, level=0.99) > 0
    assert (a["anytime"].low, a["anytime"].high) == (pytest.approx(a.verdict.bound.value), math.inf)
    assert a["clopper-pearson"].promise == a["exact"].promise == "estimate"


def test_with_a_rule_that_was_given_the_counts_are_followed(tmp_path):
    given = partial(plan, audit={"rule": "given", "threshold": 0.0})
    audit(played(given(n_models=40), tmp_path / "a"))
    a = audit(played(given(n_models=80), tmp_path / "a"))
    assert (a.verdict.method, a.verdict.promise) == ("anytime", "guaranteed")
    assert a.verdict.bound.value == anytime_lower_bound(a.guaranteed_tally, delta=a.verdict.delta, level=0.99)
    assert (a["anytime"].low, a["anytime"].high) == (a.verdict.bound.value, math.inf)


def test_models_after_a_gap_wait_for_it(tmp_path):
    """Models come in the order in which they are done; those that take long may depend on the bit."""
    out = stopped(small_plan(), tmp_path / "a", 30)
    with_gap = run(small_plan(), out=tmp_path / "a", executor=InProcess(), watch=None)
    assert with_gap.complete
    a = audit_run(out)
    assert len(evidence_of(out, a.judged, 10).in_order.pairs) == 20
    gap = Run(**{**vars(out), "done": np.setdiff1d(out.done, [15])})
    assert len(evidence_of(gap, a.judged, 10).in_order.pairs) == 5


def test_several_pairs_in_order_are_bets_on_models(tmp_path):
    out = tmp_path / "a"
    given = {"attack": "percentile", "rule": "given", "percentile": 20.0}
    a = audit(stopped(pairs_plan(m=4, shift=4.0, n_models=120, audit=given), out, 100))
    assert a.verdict.method == "anytime"
    scores, wrong = a.judged.judged, a.judged.judged.bit != (a.judged.judged.score >= a.judged.threshold)
    models = a.judged.judged.models
    fn, fp = ([int(np.sum(wrong & (scores.model == i) & (scores.bit == b))) for i in models] for b in (1, 0))
    expected = betting_lower_bound(fn, fp, 4, delta=a.verdict.delta, level=0.99)
    assert a.verdict.bound.value == pytest.approx(expected)
    assert expected > 0
    assert a["anytime"].high == math.inf


def test_dependence_within_a_model_widens_the_posterior():
    """All pairs of a model are right together, or wrong together."""
    rng = np.random.default_rng(1)
    right = np.repeat(rng.random(100) < 0.7, 10)
    bits = rng.integers(0, 2, 1000)
    scores = Scores(np.arange(1000) // 10, np.arange(1000) % 10, bits, np.where(right, bits, 1 - bits), "substitute")
    a = audit(scores, rule="given", threshold=0.5)
    wide, plain = a["clusters"], a["bayes"]
    assert wide.promise == "estimate"
    assert wide.high - wide.low > 2 * (plain.high - plain.low)
    assert "it corrects the variance, not the bias" in wide.note
    assert "are not independent of each other" in a["jeffreys"].note
    assert "are not independent of each other" not in wide.note
    few = scores[scores.model < 9]
    assert "clusters" not in [row.method for row in audit(few, rule="given", threshold=0.5).rows]


# All thresholds


def test_a_rule_chosen_on_the_same_data_has_its_own_bound(tmp_path):
    declared = plan(Breaks(3.0), n_models=120, audit={"rule": "same-data", "verdict_method": "simultaneous"})
    done = played(declared, tmp_path / "a")
    a = audit_run(done)
    assert (a.verdict.method, a.verdict.promise) == ("simultaneous", "guaranteed")
    scores = a.judged.judged
    assert len(done.failed) == len(FAILING)
    found = surest_lower_bound(scores.score, scores.bit, delta=a.verdict.delta, level=0.99, unseen=len(FAILING))
    assert a.verdict.bound.value == found.low
    assert a.verdict.bound.value <= a.verdict.largest
    assert 0 < a.verdict.detectable < a.verdict.largest
    assert FAIR_BITS in a["simultaneous"].assumptions
    assert f"{len(FAILING)} pairs of failed models count as wrong guesses" in a["simultaneous"].note


def test_all_pairs_of_a_model_count_where_bits_are_coins(tmp_path):
    a = audit_run(played(pairs_plan(4, audit={"rule": "same-data"}), tmp_path / "a"))
    row, judged = a["simultaneous"], a.judged.judged
    assert (row.promise, row.counts, row.tally.n_samples) == ("guaranteed", "all judged pairs", len(judged))
    found = surest_lower_bound(judged.score, judged.bit, delta=1e-5, level=0.99)
    assert row.low == pytest.approx(found.low)
    assert f"of the {found.n_guesses // 2} highest scores, guessed b = 1, and as many of the lowest" in row.note


def test_a_table_of_scores_has_the_sharper_form_if_its_bits_are_said_to_be_coins():
    scores = responses(3.0, 200)
    row = audit(scores, rule="same-data")["simultaneous"]
    assert row.low == pytest.approx(surest_lower_bound(scores.score, scores.bit, delta=1e-5, level=0.99).low)
    assert (row.promise, FAIR_BITS in row.assumptions) == ("guaranteed", True)
    ins, outs = (scores.score[scores.bit == bit] for bit in (1, 0))
    bands = pytest.approx(simultaneous_lower_bound(ins, outs, delta=1e-5, level=0.99, directions="high").low)
    for bits in ("dealt", "unknown"):
        row = audit(replace(scores, bits=bits), rule="same-data")["simultaneous"]
        assert (row.low, row.promise) == (bands, "guaranteed")
        assert INDEPENDENT in row.assumptions


# Stopping


@pytest.mark.parametrize("text", ["width<0", "width", "eps>1", "width<x", ""])
def test_what_to_stop_for_must_be_understood(text):
    with pytest.raises(InvalidInput, match="--stop-when must be"):
        StopWhen.parse(text, small_plan())


def test_a_width_needs_one_pair_a_model():
    with pytest.raises(InvalidInput, match="needs one pair per model, but the plan has 4"):
        StopWhen.parse("width < 0.5", pairs_plan())
    assert StopWhen.parse(" violation ", pairs_plan()).text == "violation"


def test_a_run_stops_when_it_has_shown_enough(tmp_path, monkeypatch):
    monkeypatch.setattr("epsgauge.reporting.progress.SECONDS_BETWEEN_LOOKS", 0.0)
    long = plan(
        {"use": "randomised-response", "eps": 3.0}, n_models=2000, audit={"fit_models": 10, "claimed_eps": 0.5, **CLAIM}
    )
    done = watched(long, tmp_path / "a", workers=1, blind=True, stop_when="violation")
    assert 20 < done.n_done < 1000
    a = audit(done)
    assert (a.verdict.kind, a.verdict.method, a.verdict.promise) == ("violation", "anytime", "guaranteed")
    assert {look["kind"] for look in done.looks} == {"stop-when", "audit"}


def test_a_run_that_was_to_stop_and_did_not_is_judged_at_every_moment_too(tmp_path):
    done = watched(small_plan(), tmp_path / "a", workers=1, blind=True, stop_when="width<0.001")
    assert done.complete
    a = audit(done)
    assert "was to stop when its results showed width<0.001" in a.lost.why
    assert a.verdict.method == "anytime"
