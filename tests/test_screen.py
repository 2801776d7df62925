"""The screen of a search over many thresholds: it loses none that could be the best."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsgauge.scores import search as searching
from epsgauge.scores.screen import contenders
from epsgauge.scores.search import search
from epsgauge.scores.table import Scores
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.methods import QUICK, Counts
from epsgauge.stats.posterior import JEFFREYS


def lower_ends(method, n1, n0, delta, alpha):
    """At all counts, FN downwards and FP to the right."""
    fn, fp = (grid.ravel().astype(float) for grid in np.meshgrid(np.arange(n1 + 1), np.arange(n0 + 1), indexing="ij"))
    counts = Counts(tp=n1 - fn, tn=n0 - fp, fp=fp, fn=fn)
    found = QUICK[method].lower_bound(EpsAtDelta(np.full(len(fn), delta)), counts, alpha, JEFFREYS)
    return found.reshape(n1 + 1, n0 + 1)


def rises_before_it_falls(values):
    """Whether some entry of a column has smaller ones before it and after it."""
    before = np.minimum.accumulate(values)[:-2]
    after = np.minimum.accumulate(values[::-1])[::-1][2:]
    return bool(np.any(values[1:-1] > np.maximum(before, after) + 1e-9))


@pytest.mark.parametrize("method", list(QUICK))
@pytest.mark.parametrize(("n1", "n0"), [(2, 2), (5, 5), (3, 40), (40, 3), (7, 12), (16, 16)])
def test_no_lower_end_is_larger_inside_a_rectangle_of_counts(method, n1, n0):
    for delta in (0.0, 1e-5, 0.05):
        for alpha in (0.005, 0.05):
            values = lower_ends(method, n1, n0, delta, alpha)
            assert not rises_before_it_falls(values)
            assert not rises_before_it_falls(values.T)


def both_ways(scores, **settings):
    """The search with its screen, and without."""
    every = np.unique(scores.score)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "MAX_CANDIDATES", 10)
        screened = search(scores, candidates=every, **settings)
        patch.setattr(searching, "MAX_CANDIDATES", len(every))
        full = search(scores, candidates=every, **settings)
    return screened, full


@settings(max_examples=40)
@given(
    method=st.sampled_from(list(QUICK)),
    n1=st.integers(1, 400),
    n0=st.integers(1, 400),
    shift=st.sampled_from([-1.0, 0.0, 0.3, 1.0, 3.0, 9.0]),
    digits=st.sampled_from([1, 2, 9]),
    delta=st.sampled_from([0.0, 1e-5, 0.02]),
    level=st.sampled_from([0.5, 0.9, 0.99]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_screen_finds_what_the_full_search_finds(method, n1, n0, shift, digits, delta, level, seed):
    rng = np.random.default_rng(seed)
    ins, outs = np.round(rng.normal(shift, 1, n1), digits), np.round(rng.standard_t(3, n0), digits)
    scores = Scores.from_in_out(ins, outs, adjacency="substitute")
    screened, full = both_ways(scores, delta=delta, level=level, method=method)
    assert screened.threshold == full.threshold
    seen = np.isfinite(screened.lower)
    np.testing.assert_allclose(screened.lower[seen], full.lower[seen], atol=1e-9)


def test_few_are_looked_at():
    """Also where nothing leaks, and every lower end is 0."""
    for shift in (0.0, 1.0):
        rng = np.random.default_rng(0)
        scores = Scores.from_in_out(rng.normal(shift, 1, 40_000), rng.normal(0, 1, 40_000), adjacency="substitute")
        found = search(scores, delta=1e-5, level=0.9, method="clopper-pearson", candidates=scores.score)
        assert len(found.thresholds) == 80_000
        assert 0 < np.isfinite(found.lower).sum() < 1000


def test_nobody_contends():
    none = np.arange(0)
    assert not len(contenders(none, none, none, lambda fn, fp: np.zeros(len(fn))))
    scores = Scores.from_in_out(np.arange(600.0), np.arange(600.0) + 2000, adjacency="substitute")
    found = search(scores, delta=1e-5, level=0.9, method="jeffreys", candidates=scores.score[scores.score > 0])
    assert found.thresholds[found.best] == 1.0  # worse than chance everywhere; nearest to it at both ends
    assert np.isnan(found.lower).all()
