"""What the pictures of an audit show, against slow and obvious computation."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.errors import InvalidInput
from epsgauge.figures.bars import bars
from epsgauge.figures.density import density
from epsgauge.figures.dependence import dependence
from epsgauge.figures.histogram import histogram
from epsgauge.figures.narrowing import half_width, narrowing
from epsgauge.figures.percentiles import percentiles
from epsgauge.figures.roc import bent, limit_of, rates, roc
from epsgauge.figures.ruler import ruler
from epsgauge.figures.subject import PENDING, Bar, Subject
from epsgauge.methods.evidence import Evidence
from epsgauge.runner.executors import InProcess
from epsgauge.scores.rules import judge
from epsgauge.stats.region import contains

TALLY = eg.Tally(tp=65, tn=75, fp=25, fn=35)
NOTHING = eg.Tally(tp=0, tn=0, fp=0, fn=0)


def claim(eps: float, delta: float = 1e-5) -> dict[str, Any]:
    return {"claimed_eps": eps, "claimed_delta": delta, "claimed_adjacency": "substitute"}


def normal_scores(n: int, shift: float, *, m: int = 1, shared: float = 0.0, seed: int = 0) -> eg.Scores:
    """Pairs of a model share some noise; models come in no order."""
    rng = np.random.default_rng(seed)
    bit = rng.integers(0, 2, (n, m))
    score = rng.normal(size=(n, m)) + shift * bit + shared * rng.normal(size=(n, 1))
    model, pair = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    order = rng.permutation(n * m)
    return eg.Scores(model[order], pair[order], bit.ravel()[order], score.ravel()[order], "substitute")


SCORES = normal_scores(180, 1.0)
MANY = normal_scores(60, 1.0, m=4, shared=1.0)


@pytest.fixture(scope="module")
def one() -> eg.Audit:
    return eg.audit(SCORES, delta=1e-5, fit_models=60, **claim(3.0))


@pytest.fixture(scope="module")
def many() -> eg.Audit:
    return eg.audit(MANY, delta=1e-5, rule="given", threshold=0.5)


def at_threshold(scores: eg.Scores, threshold: float) -> eg.Tally:
    said = [int(score >= threshold) for score in scores.score]
    return eg.Tally.from_guesses(scores.bit.tolist(), said)


def quick(base: eg.Audit, scores: eg.Scores, choice: Any) -> eg.Audit:
    """An audit with other scores, of which only what pictures of scores need is right."""
    judged = judge(scores, choice, delta=1e-5)
    posterior = eg.estimate(judged.tally, delta=1e-5)
    facts = replace(base.facts, pairs_per_model=judged.pairs_per_model)
    return replace(base, evidence=Evidence(judged), posterior=posterior, facts=facts)


# Density


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
def test_the_prior_is_the_posterior_of_nothing(delta: float) -> None:
    shown = density(eg.estimate(TALLY, delta=delta), points=60)
    none = eg.estimate(NOTHING, delta=delta)
    assert shown.prior == pytest.approx(none.pdf(shown.x), rel=1e-9, abs=1e-12)
    assert shown.prior_cdf == pytest.approx(none.cdf(shown.x), rel=1e-9, abs=1e-12)
    rng = np.random.default_rng(0)
    x, y = rng.beta(0.5, 0.5, (2, 100_000))
    drawn = np.log(
        np.maximum.reduce(
            [(1 - delta - x) / y, (1 - delta - y) / x, (x - delta) / (1 - y), (y - delta) / (1 - x), np.ones_like(x)]
        )
    )
    assert np.mean(drawn <= shown.x[-1]) == pytest.approx(shown.prior_cdf[-1], abs=0.006)


def test_the_curves_are_those_of_the_posterior() -> None:
    posterior = eg.estimate(TALLY, delta=1e-5)
    for points in (41, 100, 400):
        shown = density(posterior, claimed=1.0, points=points)
        assert shown.cdf == pytest.approx(posterior.cdf(shown.x), abs=1e-13)
        assert shown.pdf == pytest.approx(posterior.pdf(shown.x), rel=1e-12)
        assert shown.median == pytest.approx(posterior.median(), rel=1e-9)
        assert shown.exceeds == posterior.exceeds(1.0)


# Ruler and bars


def test_the_ruler_is_that_of_the_verdict(one: eg.Audit) -> None:
    shown = ruler(Subject.of(one))
    (bound,) = shown.bounds
    assert (shown.claimed, shown.kind, bound.value, bound.level) == (
        3.0,
        "no objection",
        one.verdict.bound.value,
        0.99,
    )
    assert (shown.low, shown.high, shown.median) == pytest.approx(
        (one["bayes"].low, one["bayes"].high, float(one.posterior.median()))
    )
    assert shown.end > max(shown.high, 3.0)


def test_the_ruler_has_one_delta_that_of_the_claim() -> None:
    found = eg.audit(normal_scores(40, 1.0), delta=0.01, rule="given", threshold=0.5, **claim(1.0, 1e-5))
    shown = ruler(Subject.of(found))
    same = eg.estimate(found.judged.tally, delta=1e-5).interval(0.90)
    assert shown.delta == 1e-5
    assert (shown.low, shown.high) == (same.low, same.high)
    assert shown.low != found["bayes"].low
    assert bars(Subject.of(found)).claimed is None  # its bars are at the δ of the audit


def test_a_claim_far_away_is_not_on_the_ruler() -> None:
    every = eg.intervals(TALLY, delta=1e-5, level=0.9)
    near, far, none = (ruler(Subject.of(every, claimed=claimed)) for claimed in (8.0, 500.0, None))
    assert (near.claim_is_far, far.claim_is_far, none.claim_is_far) == (False, True, False)
    assert far.end == none.end == pytest.approx(1.08 * float(every["bayes"].high))
    (bound,) = none.bounds
    assert (bound.method, bound.value, bound.level) == (
        "clopper-pearson",
        every["clopper-pearson"].low,
        0.95,
    )
    assert ruler(Subject.of(every, claimed=math.inf)).claim_is_far
    with pytest.raises(InvalidInput, match="claimed must be"):
        Subject.of(every, claimed=-1.0)


def test_the_bars_are_the_rows(one: eg.Audit) -> None:
    shown = bars(Subject.of(one))
    assert [(b.method, b.low, b.high, b.promise, b.note) for b in shown.bars] == [
        (row.method, row.low, row.high, row.promise, row.note) for row in one.rows
    ]
    assert shown.claimed == 3.0
    assert all(b.assumptions for b in shown.bars)


def test_the_axis_of_the_bars_is_finite_and_shows_every_low_end() -> None:
    perfect = bars(Subject.of(eg.intervals(eg.Tally(tp=1000, tn=1000, fp=0, fn=0), delta=1e-5)))
    assert math.isfinite(perfect.end)
    assert perfect.end > max(b.low for b in perfect.bars)
    assert any(math.isinf(b.high) for b in perfect.bars)


def test_counts_are_of_one_tally() -> None:
    rows = eg.intervals(eg.Tally(tp=[1, 2], tn=3, fp=4, fn=5), delta=1e-5)
    for source in (rows, rows.posterior):
        with pytest.raises(InvalidInput, match=r"one tally.* \(2,\)"):
            Subject.of(source)


@pytest.mark.parametrize("make", [ruler, bars])
def test_the_ruler_and_the_bars_are_of_eps(make: Any) -> None:
    with pytest.raises(InvalidInput, match="is of eps, but got a posterior of mu"):
        make(Subject.of(eg.estimate_mu(TALLY)))


def test_what_is_pending_bounds_nothing() -> None:
    subject = Subject.of(eg.intervals(TALLY, delta=1e-5))
    waits = Bar("exact", "Exact, pending", "guaranteed", 0.0, math.inf, note=PENDING)
    assert ruler(replace(subject, bars=(*subject.bars, waits))) == ruler(subject)


# The attack


def test_the_histogram_counts_every_judged_score_once(one: eg.Audit) -> None:
    shown, judged = histogram(one), one.judged.judged
    for bit, counts in ((0, shown.zeros), (1, shown.ones)):
        for i, n in enumerate(counts):
            inside = [
                s
                for s, b in zip(judged.score, judged.bit, strict=True)
                if b == bit and shown.edges[i] <= s < shown.edges[i + 1]
            ]
            assert n == len(inside)
    assert shown.zeros.sum() + shown.ones.sum() + sum(shown.below) + sum(shown.above) == len(judged)
    # the threshold is an edge: no bin has guesses of both kinds
    right = shown.edges[:-1] >= shown.threshold
    assert shown.threshold in shown.edges
    assert shown.ones[right].sum() + shown.above[1] == one.judged.tally.tp
    assert shown.zeros[right].sum() + shown.above[0] == one.judged.tally.fp


def test_outliers_are_counted_and_do_not_flatten_the_histogram(one: eg.Audit) -> None:
    score = SCORES.score.copy()
    score[:4] = [1e308, -1e308, 1e4, 1e4]
    table = eg.Scores(SCORES.model, SCORES.pair, SCORES.bit, score, "substitute")
    shown = histogram(quick(one, table, eg.Given(0.5)))
    assert (sum(shown.below), sum(shown.above)) == (1, 3)
    assert shown.edges[-1] < 10
    assert shown.zeros.sum() + shown.ones.sum() == len(score) - 4


def test_bins_hold_whole_steps_of_a_lattice(one: eg.Audit) -> None:
    """Ranks are multiples of a step; bins of uneven numbers of ranks would look like a comb."""
    rank = np.arange(2000) % 200 / 2.0
    scores = eg.Scores(np.arange(2000), np.zeros(2000), np.arange(2000) // 200 % 2, rank, "substitute")
    shown = histogram(quick(one, scores, eg.Given(60.0)))
    assert len(set(shown.ones[1:-1].tolist())) == 1


def test_the_roc_curve_by_counting(one: eg.Audit) -> None:
    judged, shown = one.judged.judged, roc(one)
    expected = [(0.0, 0.0)]
    for threshold in sorted(set(judged.score.tolist()), reverse=True):
        tally = at_threshold(judged, threshold)
        expected.append((float(tally.fpr), 1 - float(tally.fnr)))
    assert np.stack([shown.fpr, shown.tpr], axis=1) == pytest.approx(np.array(expected))
    assert shown.point == pytest.approx((float(one.judged.tally.fpr), 1 - float(one.judged.tally.fnr)))
    assert any(shown.point == pytest.approx(pair) for pair in expected)
    assert shown.least == 0.01  # 60 and 60 guesses, about


def test_ties_are_one_step() -> None:
    scores = eg.Scores(np.arange(6), np.zeros(6), [1, 0, 1, 0, 1, 0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], "substitute")
    fpr, tpr = rates(scores)
    assert fpr == pytest.approx([0, 1 / 3, 1])
    assert tpr == pytest.approx([0, 2 / 3, 1])


def test_a_long_curve_is_thinned_where_no_eye_can_tell(one: eg.Audit) -> None:
    scores = normal_scores(4000, 1.0)
    shown = roc(quick(one, scores, eg.Given(0.5)))
    fpr, tpr = rates(scores)
    assert len(shown.fpr) < 0.4 * len(fpr)
    assert np.all(np.diff(shown.fpr) >= 0)
    there = np.interp(np.linspace(0, 1, 200), shown.fpr, shown.tpr)
    assert there == pytest.approx(np.interp(np.linspace(0, 1, 200), fpr, tpr), abs=0.02)


def test_slopes_are_bent_along_the_same_line() -> None:
    fpr, tpr = np.array([0.0, 0.0, 0.005, 0.006, 1.0]), np.array([0.0, 0.01, 0.03, 0.03, 1.0])
    x, y = bent(fpr, tpr, 1e-3)
    assert np.all(np.diff(x) >= 0)
    inner = x > 0
    assert y[inner] == pytest.approx(np.interp(x[inner], fpr, tpr))
    assert len(x) > 30
    assert set(fpr) <= set(x)


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.0), (1.0, 0.1), (4.0, 1e-5), (50.0, 0.0), (800.0, 1e-5)])
def test_the_line_of_the_claim_is_the_edge_of_its_region(eps: float, delta: float) -> None:
    limit = limit_of(eps, delta)
    inside = np.clip(limit.tpr - 1e-9, limit.fpr, 1)
    assert contains(1 - inside, limit.fpr, eps=eps, delta=delta).all()
    above = limit.tpr < 1 - 1e-3
    assert not contains(1 - limit.tpr[above] - 1e-6, limit.fpr[above], eps=eps, delta=delta).any()


def test_a_roc_curve_needs_both_bits(one: eg.Audit) -> None:
    scores = eg.Scores(np.arange(9), np.zeros(9), np.ones(9), np.arange(9.0), "substitute")
    with pytest.raises(InvalidInput, match="both bits"):
        roc(quick(one, scores, eg.Given(4.0)))


def test_eps_at_every_threshold_is_that_of_its_tally(one: eg.Audit) -> None:
    shown = percentiles(one)
    fit = SCORES[np.isin(SCORES.model, one.judged.fit_models)]
    assert shown.axis == "threshold"
    assert shown.fit is not None
    assert (shown.judged.n_models, shown.fit.n_models) == (120, 60)
    for i in (0, 7, shown.chosen, len(shown.x) - 1):
        for series, table in ((shown.judged, one.judged.judged), (shown.fit, fit)):
            tally = at_threshold(table, float(shown.thresholds[i]))
            assert series.tallies[i] == tally
            ends = eg.estimate(tally, delta=1e-5).interval(0.90)
            assert (series.low[i], series.high[i]) == pytest.approx((ends.low, ends.high), rel=1e-9, abs=1e-12)
            assert series.median[i] == pytest.approx(eg.estimate(tally, delta=1e-5).median(), rel=1e-9)
    assert shown.x[shown.chosen] == one.judged.threshold
    assert shown.fit.tallies[shown.chosen] == one.judged.fit_tally
    assert shown.judged.high[shown.chosen] < shown.ceiling
    assert np.all(np.diff(shown.x) > 0)


@pytest.mark.parametrize(
    ("choice", "who"),
    [
        (eg.Given(0.5), "fixed beforehand"),
        (eg.SameData(), "the judged models themselves"),
        (eg.Split(60, seed=0), "60 models drawn at random"),
        (eg.Split(60), "models 0–59"),
    ],
)
def test_who_chose(one: eg.Audit, choice: Any, who: str) -> None:
    found = quick(one, SCORES, choice)
    shown = percentiles(found)
    assert shown.who == who
    assert (shown.fit is None) == (not isinstance(choice, eg.Split))
    assert shown.judged.median[shown.chosen] == pytest.approx(float(found.posterior.median()))


@dataclass(frozen=True)
class Noisy:
    """Losses with a shift for members."""

    def train(self, data: Any, *, seed: int, size: int | None = None) -> Any:
        return set(np.asarray(data[0]).tolist()), seed

    def losses(self, model: Any, points: Any) -> Any:
        members, seed = model
        ids = np.asarray(points[0])
        return np.random.default_rng(seed).normal(size=len(ids)) - 1.5 * np.isin(ids, list(members))


GAMES = {"pair": {}, "z0": {"sees": "z0", "base": "resampled", "pairs": "fresh"}}


@pytest.mark.parametrize("sees", GAMES)
def test_a_run_is_shown_by_percentile(tmp_path: Path, sees: str) -> None:
    plan = eg.Plan(
        name="<b>noisy</b>",
        seed=0,
        n_models=40,
        data={"use": "zeros", "size": 200},
        trainer=Noisy(),
        game={"train_size": 20, "reference_size": 19, "challenge": "average", **GAMES[sees]},
        audit={"attack": "percentile", "fit_models": 15},
    )
    run = eg.run(plan, out=tmp_path / "a", executor=InProcess())
    found = audit_run(run)
    shown = percentiles(found, run.signals())
    assert shown.axis == "percentile"
    assert shown.who == "models 0–14"
    assert shown.fit is not None
    assert shown.x[shown.chosen] == found.verdict.adversary.percentile
    assert shown.x == pytest.approx(np.arange(5.0, 100.0, 5.0))
    assert shown.judged.tallies[shown.chosen] == found.judged.tally
    assert shown.fit.tallies[shown.chosen] == found.judged.fit_tally
    assert histogram(found).axis.startswith("score: rank")


# Models


def test_the_interval_narrows_to_that_of_the_audit(one: eg.Audit, many: eg.Audit) -> None:
    for found in (one, many):
        shown, judged = narrowing(found), found.judged.judged
        assert shown.n[-1] == found.judged.n_models
        ends = found.posterior.interval(0.90)
        assert (shown.low[-1], shown.median[-1], shown.high[-1]) == pytest.approx(
            (ends.low, found.posterior.median(), ends.high), rel=1e-9
        )
        for i in (0, len(shown.n) // 2):
            first = sorted(set(judged.model.tolist()))[: shown.n[i]]
            tally = at_threshold(judged[np.isin(judged.model, first)], found.judged.threshold)
            assert shown.median[i] == pytest.approx(eg.estimate(tally, delta=1e-5).median(), rel=1e-9)


def test_so_many_models_would_halve_the_width() -> None:
    tally = eg.Tally(tp=650, tn=750, fp=250, fn=350)
    found = half_width(tally, delta=1e-5, level=0.9)
    assert found is not None
    times, (low, high) = found
    grown = eg.Tally(**{c: round(times * float(getattr(tally, c))) for c in ("tp", "tn", "fp", "fn")})
    now, then = (eg.estimate(t, delta=1e-5).interval(0.9) for t in (tally, grown))
    assert then.width == pytest.approx(now.width / 2, rel=2e-3)
    assert (low, high) == pytest.approx((then.low, then.high), abs=2e-3)
    assert times == pytest.approx(4, rel=0.1)


def test_more_perfect_guesses_do_not_halve_the_width() -> None:
    assert half_width(eg.Tally(tp=1000, tn=1000, fp=0, fn=0), delta=1e-5, level=0.9) is None


def test_errors_per_model_against_independence(one: eg.Audit, many: eg.Audit) -> None:
    assert dependence(one) is None
    shown = dependence(many)
    assert shown is not None
    assert (shown.pairs_per_model, shown.n_models) == (4, 60)
    row = many["clusters"]
    assert shown.clustered == (row.low, row.high)
    assert shown.plain == (many["bayes"].low, many["bayes"].high)
    for errors, bit in zip(shown.errors, (1, 0), strict=True):
        counts, sizes = [], []
        for model in range(60):
            own = MANY[MANY.model == model]
            mine = own.bit == bit
            counts.append(int(np.sum(mine & ((own.score >= 0.5) != bit))))
            sizes.append(int(mine.sum()))
        rate = sum(counts) / sum(sizes)
        ends = [0, *errors.edges[1:-1].tolist(), 5]  # the outer bins have the tails
        for i, (a, b) in enumerate(itertools.pairwise(ends)):
            assert errors.models[i] == sum(a <= k < b for k in counts)
            probable = [stats.binom.pmf(np.arange(a, b), n, rate).sum() for n in sizes]
            assert errors.expected[i] == pytest.approx(sum(probable))
        assert errors.models.sum() == 60
        assert errors.variance_ratio > 1.1  # they share noise


def test_many_pairs_a_model_are_binned(one: eg.Audit) -> None:
    shown = dependence(quick(one, normal_scores(20, 1.0, m=200, shared=0.5), eg.Given(0.5)))
    assert shown is not None
    for errors in shown.errors:
        assert len(errors.models) <= 16
        assert errors.models.sum() == 20
        assert errors.expected.sum() == pytest.approx(20)
        assert errors.variance_ratio > 3


def test_one_bit_has_one_kind_of_error(one: eg.Audit) -> None:
    scores = replace(MANY, bit=np.ones(len(MANY), np.int64))
    shown = dependence(quick(one, scores, eg.Given(0.5)))
    assert shown is not None
    assert [errors.kind for errors in shown.errors] == ["FN"]
    assert shown.clustered is None
