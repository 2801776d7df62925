"""Rules: which threshold is chosen, on which models, and what is judged."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.scores.rules import Given, SameData, Split, default_fit, default_fit_pairs, judge
from epsgauge.scores.search import search, tally_at, threshold_for_fpr
from epsgauge.scores.table import Scores

METHODS = ["bayes", "jeffreys", "clopper-pearson"]


def gaussian(n, shift, *, seed=0, pairs=1, digits=1):
    """Scores with ties: those with b = 1 are `shift` higher on average."""
    rng = np.random.default_rng(seed)
    bit = rng.integers(0, 2, n * pairs)
    score = np.round(rng.normal(size=n * pairs) + shift * bit, digits)
    return Scores(np.repeat(np.arange(n), pairs), np.tile(np.arange(pairs), n), bit, score, "substitute")


def slow_tally(scores, threshold):
    return eg.Tally.from_guesses(scores.bit, [int(s >= threshold) for s in scores.score])


def slow_search(scores, thresholds, method, delta, level):
    """One threshold after the other, as the text says it."""
    seen = []
    for threshold in thresholds:
        tally = slow_tally(scores, threshold)
        if tally.fnr + tally.fpr <= 1 + 1e-12:
            low = eg.intervals(tally, delta=delta, level=level)[method].low
            seen.append((low, 1 - tally.fnr - tally.fpr, -threshold))
    best = max(low for low, _, _ in seen)
    return -max((edge, minus) for low, edge, minus in seen if abs(low - best) < 1e-9)[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.5])
def test_the_search_against_its_twin(method, shift):
    scores = gaussian(80, shift)
    thresholds = sorted(set(scores.score.tolist()))
    found = search(scores, delta=1e-5, level=0.9, method=method)
    assert found.threshold == slow_search(scores, thresholds, method, 1e-5, 0.9)
    assert found.thresholds.tolist() == thresholds
    for i in (0, len(thresholds) // 2, -1):
        tally = slow_tally(scores, thresholds[i])
        assert found.tallies[i] == tally
        if tally.fnr + tally.fpr > 1:
            assert np.isnan(found.lower[i])
        else:
            row = eg.intervals(tally, delta=1e-5, level=0.9)[method]
            assert found.lower[i] == pytest.approx(row.low, abs=1e-9)


def test_of_equal_thresholds_the_smallest_is_taken():
    scores = Scores.from_in_out([3.0, 4.0, 5.0], [0.0, 1.0, 2.0], adjacency="substitute", models="independent")
    found = search(scores, delta=1e-5, level=0.9, candidates=np.array([2.9, 2.5, 2.2, 2.5]))
    assert found.thresholds.tolist() == [2.2, 2.5, 2.9]
    assert found.threshold == 2.2


def test_of_equal_lower_ends_the_largest_edge_is_taken():
    """With so few samples every Clopper-Pearson lower end is 0."""
    scores = Scores.from_in_out([1.0, 3.0, 4.0], [0.0, 2.0, 1.5], adjacency="substitute", models="independent")
    found = search(scores, delta=1e-5, level=0.99, method="clopper-pearson")
    assert not np.nan_to_num(found.lower).any()
    assert found.threshold == 3.0  # TPR 2/3, FPR 0


def test_of_many_scores_none_is_left_out():
    scores = gaussian(2500, 1.0, digits=9)
    found = search(scores, delta=1e-5, level=0.9, method="jeffreys")
    assert found.thresholds.tolist() == sorted(scores.score.tolist())
    assert found.threshold == scores.score[np.argmax(all_lower_ends(scores))]


def all_lower_ends(scores):
    """Jeffreys' at each score."""
    tallies = tally_at(scores, scores.score)
    low = np.asarray(eg.intervals(tallies, delta=1e-5, level=0.9)["jeffreys"].low)
    return np.where(tallies.fnr + tallies.fpr <= 1, low, 0.0)


def test_a_search_that_finds_nothing_better_than_chance_still_gives_a_rule():
    scores = Scores.from_in_out([0.0, 1.0], [2.0, 3.0], adjacency="substitute", models="independent")
    found = search(scores, delta=1e-5, level=0.9, candidates=np.array([0.5, 1.5, 2.5]))
    assert np.isnan(found.lower).all()
    assert found.threshold == 0.5  # FNR + FPR is 1.5 there and at 2.5, and 2 between


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=1, max_size=40),
    st.lists(st.integers(-6, 6), min_size=1),
)
def test_tallies_are_counted_as_the_rule_says(rows, thresholds):
    bits, values = zip(*rows, strict=True)
    n = len(rows)
    scores = Scores(np.arange(n), np.zeros(n), bits, values, "add-remove")
    many = tally_at(scores, np.array(thresholds, float))
    for i, threshold in enumerate(thresholds):
        assert many[i] == slow_tally(scores, threshold) == tally_at(scores, np.asarray(float(threshold)))


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.floats(0.01, 0.99),
)
def test_the_threshold_for_an_fpr(ins, outs, target):
    scores = Scores.from_in_out(ins, outs, adjacency="substitute", models="independent")
    threshold = threshold_for_fpr(scores, target)
    assert slow_tally(scores, threshold).fpr <= target
    smaller = [s for s in ins + outs if s < threshold]
    if smaller:
        assert slow_tally(scores, max(smaller)).fpr > target


def test_an_fpr_that_no_candidate_has():
    scores = Scores.from_in_out([1.0, 2.0], [3.0, 0.0], adjacency="substitute", models="independent")
    assert threshold_for_fpr(scores, 0.1) == np.nextafter(3.0, 4.0)
    assert threshold_for_fpr(scores, 0.5, np.array([2.5, 0.5, -1.0])) == 0.5
    judged = judge(scores, SameData(target_fpr=0.5), delta=1e-5, candidates=np.array([2.5, 0.5, -1.0]))
    assert judged.threshold == 0.5


# Which models choose and which are judged


def test_a_given_rule_judges_everything():
    scores = gaussian(50, 1.0, pairs=3)
    judged = judge(scores, Given(0.5), delta=1e-5)
    assert judged.tally == slow_tally(scores, 0.5)
    assert judged.one_per_model == slow_tally(scores[scores.pair == 0], 0.5)
    assert (judged.n_models, judged.pairs_per_model, judged.same_data) == (50, 3, False)
    assert (judged.fit_tally, judged.fit_models.tolist()) == (None, [])
    assert repr(judged) == f"<Judged: {judged.tally!r} of 50 models at threshold 0.5>"


@pytest.mark.parametrize("seed", [None, 3])
def test_a_split_is_by_model(seed):
    rng = np.random.default_rng(1)
    whole = gaussian(60, 1.0, pairs=4)
    scores = whole[rng.permutation(len(whole))[:200]]  # rows in any order, models with unequal numbers of pairs
    judged = judge(scores, Split(20, seed=seed), delta=1e-5)
    chose, rest = set(judged.fit_models.tolist()), set(judged.judged.models.tolist())
    assert len(chose) == 20
    assert not chose & rest
    assert chose | rest == set(scores.model.tolist())
    assert (chose == set(range(20))) == (seed is None)
    fit = scores[np.isin(scores.model, list(chose))]
    assert judged.threshold == search(fit, delta=1e-5, level=0.9, method="jeffreys").threshold
    assert judged.fit_tally == slow_tally(fit, judged.threshold)
    assert judged.tally == slow_tally(judged.judged, judged.threshold)
    assert judged.tally.n_samples + judged.fit_tally.n_samples == len(scores)
    lowest = {}
    for m, p, b, s in zip(judged.judged.model, judged.judged.pair, judged.judged.bit, judged.judged.score, strict=True):
        if m not in lowest or p < lowest[m][0]:
            lowest[m] = (p, b, s)
    bits, guesses = zip(*((b, int(s >= judged.threshold)) for _, b, s in lowest.values()), strict=True)
    assert judged.one_per_model == eg.Tally.from_guesses(bits, guesses)
    assert judged.pairs_per_model == 4


def test_a_seed_draws_the_same_models_again():
    scores = gaussian(60, 1.0)
    drawn = [judge(scores, Split(20, seed=seed), delta=1e-5).fit_models.tolist() for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    "choice", [Split(30), Split(30, seed=1), Split(30, target_fpr=0.1), Split(30, search="jeffreys")]
)
def test_judged_models_have_no_say_in_the_rule(choice):
    scores = gaussian(90, 1.0, pairs=2)
    before = judge(scores, choice, delta=1e-5)
    others = ~np.isin(scores.model, before.fit_models)
    changed = Scores(
        scores.model,
        scores.pair,
        np.where(others, 1 - scores.bit, scores.bit),
        np.where(others, 7.0 - scores.score, scores.score),
        scores.adjacency,
    )
    after = judge(changed, choice, delta=1e-5)
    assert (after.threshold, after.fit_tally) == (before.threshold, before.fit_tally)
    assert after.fit_models.tolist() == before.fit_models.tolist()
    assert after.tally != before.tally


@pytest.mark.parametrize("choice", [Given(-0.5), Split(100), SameData(target_fpr=0.2)])
def test_nothing_is_folded(choice):
    """A score that points the wrong way gives an attack worse than chance, and not its mirror image."""
    right = gaussian(500, 1.0, digits=6)
    wrong = Scores(right.model, right.pair, right.bit, -right.score, right.adjacency)
    good, bad = (judge(s, choice, delta=1e-5).tally for s in (right, wrong))
    assert good.fnr + good.fpr < 0.95
    assert bad.fnr + bad.fpr > 0.99
    if not isinstance(choice, Split):  # whose search ends where the guesses are all alike
        assert bad.fnr + bad.fpr > 1.1


def test_the_same_data_is_said_to_be_the_same():
    scores = gaussian(40, 1.0)
    judged = judge(scores, SameData("clopper-pearson"), delta=1e-5)
    assert judged.same_data
    assert judged.fit_tally == judged.tally
    assert judged.fit_models.tolist() == list(range(40))


# What is refused


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Given(np.nan), "threshold must not be NaN"),
        (lambda: Given(np.inf), "threshold must be finite, but got inf."),
        (lambda: Given([1.0]), "threshold must be one number, but got an array of shape (1,)."),
        (lambda: Split(0), "fit_models must be a whole number, 1 or more, but got 0."),
        (lambda: Split(2.5), "fit_models must be a whole number, 1 or more, but got 2.5."),
        (lambda: Split(2, seed=-1), "seed must be a whole number, 0 or more, but got -1."),
        (lambda: Split(2, search="wald"), "search must be one of bayes, jeffreys, clopper-pearson, but got 'wald'."),
        (lambda: SameData("wald"), "search must be one of bayes, jeffreys, clopper-pearson, but got 'wald'."),
        (lambda: SameData(target_fpr=0), "target_fpr must be in (0, 1), but got 0.0."),
        (lambda: Split(2, target_fpr=1.0), "target_fpr must be in (0, 1), but got 1.0."),
    ],
)
def test_choices_that_are_refused(make, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        make()


@pytest.mark.parametrize(
    ("choice", "more", "sentence"),
    [
        (
            Split(4),
            {},
            "fit_models must be below the number of models, 4, so that some are left to be judged, but got 4.",
        ),
        (Split(2), {}, "b is 1 in all rows of the 2 models. Take more fit_models, or draw those of a file with a seed"),
        (SameData(), {"candidates": []}, "candidates must be a list of thresholds, but got an array of shape (0,)."),
        (SameData(), {"candidates": [np.nan]}, "candidates must not be NaN"),
        (SameData(), {"delta": 1.0}, "delta must be in [0, 1), but got 1.0."),
        (SameData(), {"level": 1.0}, "level must be in (0, 1), but got 1.0."),
    ],
)
def test_judgements_that_are_refused(choice, more, sentence):
    scores = Scores([0, 1, 2, 3], [0] * 4, [1, 1, 0, 0], [3.0, 2.0, 1.0, 0.0], "substitute")
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        judge(scores, choice, **{"delta": 1e-5, **more})


def test_of_few_models_enough_choose_that_both_bits_are_likely_among_them():
    refused = sum(2.0 ** (1 - default_fit(n)) > 0.01 for n in range(24, 200))
    assert refused == 0
    assert [default_fit(n) for n in (6, 24, 47, 48, 60, 600)] == [2, 8, 8, 8, 10, 100]
    assert all(default_fit(n) <= max(1, n // 3) for n in range(1, 200))


def test_of_very_many_pairs_of_a_model_a_few_thousand_choose():
    assert [default_fit_pairs(m) for m in (1, 4, 600, 30_000, 30_006, 100_000)] == [1, 1, 100, 5000, 5000, 5000]


def test_tables_that_cannot_be_judged():
    scores = gaussian(10, 1.0)
    with pytest.raises(InvalidInput, match=re.escape("scores must have at least one row to be judged, but got none.")):
        judge(scores[:0], Given(0.0), delta=1e-5)
    with pytest.raises(InvalidInput, match=re.escape("must have both bits, but b is 0 in all rows.")):
        judge(scores[scores.bit == 0], SameData(), delta=1e-5)
    with pytest.raises(InvalidInput, match="method must be one of bayes, jeffreys, clopper-pearson, but got 'wald'"):
        search(scores, delta=1e-5, level=0.9, method="wald")
