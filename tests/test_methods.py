"""The table of methods, sample sizes, and the statements that the warnings make."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import epsgauge as eg
from epsgauge.methods.cautions import cautions_of
from epsgauge.methods.intervals import intervals_of
from epsgauge.methods.method import Asked
from epsgauge.methods.table import COUNTED, METHODS, QUICK
from epsgauge.stats.region import eps_of_rates


def warnings_of(delta=1e-5, **cells):
    return " ".join(cautions_of(eg.intervals(eg.Tally(**cells), delta=delta, level=0.9)))


def test_every_method_says_what_it_promises():
    assert {name: m.promise for name, m in METHODS.items()} == {
        "bayes": "credible",
        "jeffreys": "estimate",
        "clopper-pearson": "guaranteed",
        "exact": "guaranteed",
        "weighted": "guaranteed",
        "pooled": "guaranteed",
        "one-run": "guaranteed",
        "gaussian": "guaranteed",
        "curve": "guaranteed",
        "anytime": "guaranteed",
        "simultaneous": "guaranteed",
        "clusters": "estimate",
    }
    for row in eg.intervals(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5):
        assert row.assumptions
        assert row.width == row.high - row.low


def test_methods_are_chosen_by_name():
    tally = eg.Tally(tp=31, tn=996, fp=5, fn=968)
    rows = eg.intervals(tally, delta=1e-5, methods=COUNTED)
    assert [row.method for row in rows] == ["bayes", "jeffreys", "clopper-pearson", "exact", "anytime"]
    assert rows["anytime"].low < rows["clopper-pearson"].low < rows["exact"].low < rows["bayes"].low
    assert rows["exact"].high == rows["clopper-pearson"].high
    with pytest.raises(eg.InvalidInput, match=r"methods must be some of bayes, .*, but got 'pooled'"):
        eg.intervals(tally, delta=1e-5, methods=["pooled"])
    with pytest.raises(eg.InvalidInput, match="method exact bounds ε at δ, but was asked for μ"):
        intervals_of(eg.estimate_mu(tally), level=0.9, methods=["exact"])


def test_width_against_clopper_pearson():
    rows = eg.intervals(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5, level=0.9)
    assert rows["bayes"].against_baseline == pytest.approx(-0.4176, abs=1e-4)
    assert rows["clopper-pearson"].against_baseline == 0
    empty = eg.intervals(eg.Tally(tp=2, tn=487, fp=0, fn=511), delta=1e-5, level=0.9)
    assert np.isnan(empty["bayes"].against_baseline)  # the other is infinite: nothing to compare


def test_the_prior_is_named():
    rows = eg.intervals(eg.Tally(tp=3, tn=9, fp=5, fn=8), delta=1e-5, prior=(1.0, 2.0))
    assert "prior Beta(1, 2) for FNR and FPR" in rows["bayes"].assumptions


def test_gaussian_dp_is_an_assumption_of_every_row():
    for row in intervals_of(eg.estimate_mu(eg.Tally(tp=31, tn=996, fp=5, fn=968)), level=0.9):
        assert any("Gaussian DP" in text for text in row.assumptions)


@pytest.mark.parametrize(("method", "n"), [("bayes", 544), ("jeffreys", 1423), ("clopper-pearson", 1478)])
def test_sample_sizes_of_the_papers_figure(method, n):
    assert eg.sample_size(accuracy=0.6, half_width=0.15, delta=1e-5, level=0.90, method=method) == n
    assert eg.sample_size(fnr=0.4, fpr=0.4, half_width=0.15, delta=0.0, level=0.90, method=method) == n


@pytest.mark.parametrize("method", QUICK)
def test_a_lower_bound_is_reached_at_its_sample_size(method):
    n = eg.sample_size(fnr=0.5, fpr=0.05, lower_bound=1.5, delta=1e-5, level=0.95, method=method)

    def bound(n):
        tally = eg.Tally(tp=n // 4, fn=n // 4, fp=n // 40, tn=n // 2 - n // 40)
        rows = eg.intervals(tally, delta=1e-5, level=0.90)
        return rows[method].low

    assert bound(int(1.3 * n)) > 1.5 > bound(int(0.7 * n))


@pytest.mark.parametrize("method", QUICK)
def test_no_number_of_samples_shows_more_than_the_attack_leaks(method):
    assert eg.sample_size(accuracy=0.6, lower_bound=2.0, delta=1e-5, method=method) is None
    assert eg.sample_size(accuracy=0.5, lower_bound=0.1, delta=1e-5, method=method) is None


def test_sample_sizes_of_weak_attacks():
    """Expected counts are not whole, and their shapes reach where SciPy's quantiles fail."""
    for accuracy, bound in ((0.51, 0.03), (0.505, 0.01), (0.55, 0.15)):
        bayes, *others = (eg.sample_size(accuracy=accuracy, lower_bound=bound, delta=1e-5, method=m) for m in QUICK)
        assert 100 < bayes < min(others)


@pytest.mark.parametrize("method", QUICK)
def test_largest_eps_grows_with_n_and_bounds_every_outcome(method):
    largest = [eg.largest_eps(n, delta=1e-5, level=0.95, method=method) for n in (0, 20, 200, 2000)]
    assert largest == sorted(largest)
    k = np.arange(11)
    rows = eg.intervals(eg.Tally(fn=k[:, None], tp=10 - k[:, None], fp=k, tn=10 - k), delta=1e-5, level=0.90)
    assert rows[method].low.max() <= largest[1] + 1e-9


# The statements of the warnings, by enumeration of all outcomes


def enumerate_lower_ends(n, x, y, delta=1e-5, level=0.95):
    k = np.arange(n + 1)
    weight = stats.binom.pmf(k, n, x)[:, None] * stats.binom.pmf(k, n, y)
    low = eg.estimate(eg.Tally(fn=k[:, None], tp=n - k[:, None], fp=k, tn=n - k), delta=delta).lower_bound(level)
    return weight, low


def test_at_equal_rates_the_credible_lower_end_covers_less():
    weight, low = enumerate_lower_ends(60, 0.1, 0.1)
    coverage = (weight * (low <= eps_of_rates(0.1, 0.1, delta=1e-5))).sum()
    assert 0.80 < coverage < 0.86
    weight, low = enumerate_lower_ends(60, 0.4, 0.4)
    assert 0.91 < (weight * (low <= eps_of_rates(0.4, 0.4, delta=1e-5))).sum() < 0.95


def test_where_nothing_leaks_the_credible_lower_end_is_above_zero():
    weight, low = enumerate_lower_ends(60, 0.3, 0.7)
    assert (weight * (low > 0)).sum() > 0.999


# Which warnings apply


def test_posterior_that_is_the_prior():
    assert "hardly moved from the prior, which alone gives [0.178, 6.93]" in warnings_of(tp=2, tn=487, fp=0, fn=511)
    assert "hardly moved" not in warnings_of(tp=31, tn=996, fp=5, fn=968)


def test_small_cells():
    assert "TP = 2, FP = 0: below 5" in warnings_of(tp=2, tn=487, fp=0, fn=511)
    assert "below 5" not in warnings_of(tp=31, tn=996, fp=5, fn=968)


def test_equal_rates():
    assert "are about equal" in warnings_of(tp=65, tn=75, fp=25, fn=35)
    assert "are about equal" not in warnings_of(tp=31, tn=996, fp=5, fn=968)
    assert "are about equal" not in warnings_of(delta=0.3, tp=50, tn=50, fp=50, fn=50)  # the lower end is 0


def test_large_delta():
    assert "δ·N = 2 for the N = 2000 samples of this audit is not below 1" in warnings_of(
        delta=1e-3, tp=31, tn=996, fp=5, fn=968
    )
    assert "δ·N" not in warnings_of(tp=31, tn=996, fp=5, fn=968)


def test_worse_than_chance():
    assert "worse than chance (FNR + FPR = 1.6 > 1)" in warnings_of(tp=20, tn=20, fp=80, fn=80)
    assert "worse than chance" not in warnings_of(tp=80, tn=80, fp=20, fn=20)
    assert "worse than chance" not in warnings_of(tp=175, tn=325, fp=188, fn=312)  # 1.01, which is noise


def test_a_lower_end_above_zero_is_no_proof():
    assert "no proof of a leak" in warnings_of(tp=175, tn=325, fp=188, fn=312)
    assert "no proof of a leak" not in warnings_of(tp=31, tn=996, fp=5, fn=968)


def test_one_error_fewer_gives_less():
    def said(**cells):
        rows = eg.intervals(eg.Tally(**cells), delta=1e-5, level=0.9, methods=["bayes", "clopper-pearson", "exact"])
        return " ".join(cautions_of(rows))

    found = "The exact lower bound is 0.357, and with one false alarm fewer it would be 0.24. Both are guaranteed"
    assert found in said(tp=2, tn=183, fp=17, fn=2)
    assert "fewer it would be" not in said(tp=2, tn=184, fp=16, fn=2)
    assert "fewer it would be" not in warnings_of(tp=2, tn=183, fp=17, fn=2)  # where no exact bound is shown


def test_a_good_tally_has_no_warning():
    assert warnings_of(tp=31, tn=996, fp=5, fn=968) == ""


def test_no_samples_at_all():
    assert "hardly moved" in warnings_of(tp=0, tn=0, fp=0, fn=0)


@pytest.mark.parametrize("rule", ["split", "split-pairs", "given", "same-data"])
def test_one_method_judges_whatever_is_asked(rule):
    for pairs, by_mu, coins, of_dpsgd, says in product((1, 4), *[(False, True)] * 4):
        asked = Asked(rule, pairs, by_mu, False, coins, says, of_dpsgd)
        judges = [name for name, method in METHODS.items() if method.judges(asked)]
        assert len(judges) == 1, (asked, judges)
        assert (judges == ["curve"]) == (of_dpsgd and pairs == 1 and not by_mu and rule != "split-pairs")
