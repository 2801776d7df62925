"""The screen of a search over many thresholds: it loses none that could be the best."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsgauge.scores import screen
from epsgauge.scores import search as searching
from epsgauge.scores.screen import LowerEnds, contenders
from epsgauge.scores.search import search
from epsgauge.scores.table import Scores
from epsgauge.stats.quick import QUICK


def rectangles(n1, n0):
    """All of counts: the least and the largest FN, the least and the largest FP."""
    fn = [(a, b) for a in range(n1 + 1) for b in range(a, n1 + 1)]
    fp = [(a, b) for a in range(n0 + 1) for b in range(a, n0 + 1)]
    return [(*f, *p) for f, p in product(fn, fp)]


@pytest.mark.parametrize("method", list(QUICK))
@pytest.mark.parametrize(("n1", "n0"), [(1, 1), (14, 2), (2, 10), (5, 5)])
def test_no_rectangle_of_counts_has_more_than_it_may(method, n1, n0):
    every = rectangles(n1, n0)
    a, b, c, d = np.array(every).T
    fn, fp = np.indices((n1 + 1, n0 + 1))
    for delta, tail in [(0.0, 1e-4), (0.0, 0.25), (1e-5, 0.05), (0.02, 0.25), (0.02, 0.49), (0.3, 0.05), (0.3, 0.49)]:
        ends = LowerEnds(QUICK[method], n1, n0, delta, tail)
        values = ends.at((fn.ravel(), fp.ravel())).reshape(fn.shape)
        largest = np.array([values[i : j + 1, k : m + 1].max() for i, j, k, m in every])
        for eps in np.unique(np.quantile(values, [0.3, 0.9])):
            assert ends.may_exceed(float(eps), (a, c), (b, d))[largest > eps].all()


def test_a_row_without_false_alarms_whose_largest_lower_end_is_inside():
    """Its corners alone would leave it out."""
    ends = LowerEnds(QUICK["bayes"], 100, 3, 0.01, 0.25)
    fn, fp = np.arange(88, 100), np.zeros(12, np.int64)
    values = ends.at((fn, fp))
    inside = values.argmax()
    assert (fn[inside], round(values[inside], 4)) == (97, 0.4681)
    assert max(values[0], values[-1]) < 0.432
    assert ends.may_exceed(0.468, (fn[:1], fp[:1]), (fn[-1:], fp[-1:])).all()


@pytest.mark.parametrize("method", list(QUICK))
def test_a_block_of_one_has_its_own_value(method):
    for n1, n0, delta, tail in ((40, 40, 1e-5, 0.05), (60, 3, 0.01, 0.25), (3, 60, 0.0, 0.005)):
        ends = LowerEnds(QUICK[method], n1, n0, delta, tail)
        fn, fp = (grid.ravel() for grid in np.indices((n1 + 1, n0 + 1)))
        values = ends.at((fn, fp))
        eps = float(np.quantile(values, 0.8)) + 1e-4
        sure = np.abs(values - eps) > 1e-4
        np.testing.assert_array_equal(ends.may_exceed(eps, (fn, fp), (fn, fp))[sure], values[sure] > eps)


def table(seed, n1, n0, shift, digits):
    rng = np.random.default_rng(seed)
    ins, outs = rng.normal(shift, 1, n1).round(digits), rng.standard_t(3, n0).round(digits)
    return Scores.from_in_out(ins, outs, adjacency="substitute", models="independent")


def both_ways(scores, **kwargs):
    """The search with a screen that has as little to start from as can be, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "FULL", 10**9)
        full = search(scores, **kwargs)
        patch.setattr(searching, "FULL", 0)
        for name, value in {"BLOCKS": 4, "PARTS": 3, "FEW": 2, "SAMPLE": 2, "START": 1}.items():
            patch.setattr(screen, name, value)
        return search(scores, **kwargs), full


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["bayes", "bayes", "jeffreys", "clopper-pearson"]),
    n1=st.integers(1, 300),
    n0=st.one_of(st.integers(1, 5), st.integers(1, 300)),
    swap=st.booleans(),
    shift=st.sampled_from([-1.0, 0.0, 0.3, 1.0, 3.0, 9.0, 99.0]),
    digits=st.sampled_from([0, 1, 9]),
    delta=st.sampled_from([0.0, 1e-5, 0.01, 0.3]),
    level=st.sampled_from([0.05, 0.5, 0.9, 0.999]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_screen_finds_what_the_full_search_finds(method, n1, n0, swap, shift, digits, delta, level, seed):
    scores = table(seed, *((n0, n1) if swap else (n1, n0)), shift, digits)
    screened, full = both_ways(scores, delta=delta, level=level, method=method)
    assert screened.threshold == full.threshold
    seen = np.isfinite(screened.lower)
    np.testing.assert_allclose(screened.lower[seen], full.lower[seen], atol=1e-9)


@pytest.mark.parametrize("method", list(QUICK))
@pytest.mark.parametrize(("n1", "n0", "shift"), [(800, 800, 1.0), (1200, 3, 0.0), (3, 1200, 0.0), (800, 800, 99.0)])
def test_the_default_search_is_over_all_scores(method, n1, n0, shift):
    scores = table(1, n1, n0, shift, 9)
    found = search(scores, delta=1e-3, level=0.5, method=method)
    assert len(found.thresholds) == n1 + n0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "FULL", 10**9)
        assert search(scores, delta=1e-3, level=0.5, method=method).threshold == found.threshold


def test_few_are_looked_at():
    """Also where nothing leaks, and every lower end is 0."""
    for shift, method in product((0.0, 1.0, 99.0), QUICK):
        found = search(table(0, 40_000, 40_000, shift, 12), delta=1e-5, level=0.9, method=method)
        assert len(found.thresholds) > 79_000
        assert 0 < np.isfinite(found.lower).sum() < 1000


def test_nobody_contends():
    none = np.arange(0)
    assert not len(contenders(none, none, none, LowerEnds(QUICK["jeffreys"], 1, 1, 0.0, 0.05)))
    scores = Scores.from_in_out(np.arange(600.0), np.arange(600.0) + 2000, adjacency="substitute", models="independent")
    found = search(scores, delta=1e-5, level=0.9, method="jeffreys", candidates=scores.score[scores.score > 0])
    assert found.thresholds[found.best] == 1.0  # worse than chance everywhere; nearest to it at both ends
    assert np.isnan(found.lower).all()
