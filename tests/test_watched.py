"""The anytime bound of guesses that are weighed: twins, all outcomes of tiny runs, and who gets it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import special

from epsgauge.auditing.audit import audit
from epsgauge.bounds.anytime import anytime_lower_bound
from epsgauge.bounds.shapes import EDGES, classes, places
from epsgauge.bounds.watched import MOST_PAIRS, log_ratio, watched, watched_lower_bound
from epsgauge.bounds.weighted import STEP
from epsgauge.methods.anytime import Anytime, AnytimeOfCoins, Betting
from epsgauge.methods.evidence import Evidence, Failed
from epsgauge.scores.rules import Given, SameData, Split, SplitPairs, judge
from epsgauge.scores.table import Scores

WHOLE = slice(None)


def drawn(n=300, m=1, mu=1.5, seed=1):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n * m)
    return bits, rng.normal(size=n * m) + mu * bits


def seen_of(bits, scores, m=1, fit=60):
    n, cut = len(bits) // m - fit, fit * m
    at, sizes = np.repeat(np.arange(n), m), np.full(n, m)
    return watched(scores[cut:], bits[cut:], at, sizes, scores[:cut], bits[:cut])


def all_shapes(seen):
    """Every shape of both sides with its weight: those that belong together, and all pairs of those that do not."""
    both, (up, down) = seen.end.together, seen.end.each
    weights = [np.exp(p.log_weight - special.logsumexp(p.log_weight)) for p in (both, up, down)]
    log_both, log_each = seen.end.log_weights
    apart = [np.concatenate([a, b]) for a, b in product(up.right, down.right)]
    prior = np.concatenate([np.exp(log_both) * weights[0], np.exp(log_each) * np.outer(*weights[1:]).ravel()])
    return np.concatenate([both.right, apart]), prior


@pytest.mark.parametrize("m", [1, 3])
def test_the_ratio_is_the_product_of_bets_whose_stakes_are_refitted_after_every_guess(m):
    """The slow twin: the chance that the next guess is right, by all shapes given those before it."""
    eps, delta = 0.7, 0.01
    bits, scores = drawn(30, m, seed=3)
    seen = seen_of(bits, scores, m, fit=20)
    q, shapes_and_weights = special.expit(eps), all_shapes(seen)
    shapes, weight = np.maximum(shapes_and_weights[0], q), shapes_and_weights[1]
    assert weight.sum() == pytest.approx(1)
    wealth, path = 1.0, []
    of = classes(places(scores[20 * m :], scores[: 20 * m]))
    right = bits[20 * m :] == (of < len(EDGES))
    for i in range(len(of)):
        chance = float(weight @ shapes[:, of[i]])
        stake = (chance - q) / q
        assert 0 <= stake <= np.exp(-eps)
        wealth *= 1 + stake * (1.0 if right[i] else -np.exp(eps))
        weight = weight * (shapes[:, of[i]] if right[i] else 1 - shapes[:, of[i]])
        weight /= weight.sum()
        if i % m == m - 1:
            wealth /= 1 + delta * ((1 + np.exp(-eps)) ** m - 1)
            path.append(np.log(wealth))
    assert log_ratio(seen, eps, delta, WHOLE) == pytest.approx(path, abs=1e-9)


@pytest.mark.parametrize(("m", "seed"), [(1, 4), (2, 5), (1, 6)])
def test_the_bound_is_the_end_of_the_grid_that_was_refuted_at_some_moment(m, seed):
    seen = seen_of(*drawn(200, m, seed=seed), m)
    low = watched_lower_bound(seen, delta=1e-5, level=0.9)
    highest = [log_ratio(seen, i * STEP, 1e-5, WHOLE).max() for i in range(1, round(low / STEP) + 2)]
    assert all(np.array(highest[:-1]) >= np.log(10))
    assert highest[-1] < np.log(10)
    assert low > 0


def sure_shapes():
    """Rows set apart in which sure guesses are right, and all others often are."""
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.normal(size=200), np.full(20, 3.0), np.full(20, -3.0)])
    return score, ((score > 0) ^ ((rng.random(240) < 0.1) & (abs(score) < 2))).astype(np.int64)


def chance_of_a_false_alarm(models, outcomes, eps, delta, alpha):
    """Over all outcomes of so many models, each a list of (score, right) with its probability; and the mean ratio."""
    fit_scores, fit_bits = sure_shapes()
    m = len(outcomes[0][0])
    ever = mean = total = 0.0
    for run in product(outcomes, repeat=models):
        score, right = np.array([guess for outcome, _ in run for guess in outcome]).T
        bit = np.where(right == 1, score > 0, score < 0).astype(np.int64)
        at = np.repeat(np.arange(models), m)
        logs = log_ratio(watched(score, bit, at, np.full(models, m), fit_scores, fit_bits), eps, delta, WHOLE)
        p = np.prod([chance for _, chance in run])
        ever, mean, total = ever + p * (logs.max() >= -np.log(alpha)), mean + p * np.exp(logs[-1]), total + p
    assert total == pytest.approx(1)
    return ever, mean


@pytest.mark.parametrize(("eps", "alpha"), [(0.1, 0.1), (0.5, 0.3), (1.0, 0.4)])
def test_all_outcomes_of_six_models_of_one_pair_at_exactly_eps(eps, alpha):
    q = special.expit(eps)
    outcomes = [(((1.5, 1),), q), (((1.5, 0),), 1 - q)]  # randomised response
    ever, mean = chance_of_a_false_alarm(6, outcomes, eps, 0.0, alpha)
    assert 0 < ever <= alpha
    assert mean == pytest.approx(1)


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_all_outcomes_of_three_models_of_two_pairs_that_are_given_away_together(delta):
    """Randomised response for each pair; with a chance of δ both bits are given away, which the score shows."""
    eps, alpha = 0.3, 0.4
    q = special.expit(eps)
    outcomes = [(((3.5, 1), (-3.5, 1)), delta)]
    for a, b in product((1, 0), repeat=2):
        outcomes.append((((0.8, a), (-1.2, b)), (1 - delta) * (q if a else 1 - q) * (q if b else 1 - q)))
    ever, mean = chance_of_a_false_alarm(3, outcomes, eps, delta, alpha)
    assert 0 < ever <= alpha
    assert mean <= 1 + 1e-12
    if delta:  # and it is δ that is paid for
        assert chance_of_a_false_alarm(3, outcomes, eps, 0.0, alpha)[1] > 1


def test_later_models_change_nothing_that_was_said_before():
    bits, scores = drawn(200)
    whole = log_ratio(seen_of(bits, scores), 0.5, 1e-5, WHOLE)
    scores[150:] = 40.0
    assert log_ratio(seen_of(bits, scores), 0.5, 1e-5, WHOLE)[:90] == pytest.approx(whole[:90])
    lows = [watched_lower_bound(seen_of(*drawn(n, seed=7)), delta=1e-5, level=0.9) for n in (70, 120, 200)]
    assert lows == sorted(lows)


def test_what_was_refuted_once_stays_refuted():
    bits, scores = drawn(200, mu=3.0)
    bits[120:] = scores[120:] < 1.5  # from here on every guess is wrong
    before, after = (
        watched_lower_bound(seen_of(bits[:n], scores[:n]), delta=1e-5, level=0.9) for n in (120, len(bits))
    )
    assert after == before > 0


def test_watched_at_every_moment_it_is_seldom_above_eps():
    """tools/monitoring.py shows it at length."""
    rng, eps, wrong = np.random.default_rng(8), 1.0, 0
    for _ in range(50):
        bits = rng.integers(0, 2, 400)
        right = rng.random(400) < special.expit(eps)
        scores = np.where(right == (bits == 1), 1.0, -1.0) * (1 + rng.random(400))
        wrong += watched_lower_bound(seen_of(bits, scores), delta=1e-5, level=0.8) > eps
    assert wrong <= 10


def test_worse_than_chance_or_nothing_gives_0():
    bits, scores = drawn(400, mu=-2.0)
    assert watched_lower_bound(seen_of(bits, scores), delta=0.0, level=0.9) == 0
    assert watched_lower_bound(seen_of(bits[:60], scores[:60]), delta=0.0, level=0.9) == 0


# In audits


def table(n=300, m=1, mu=1.5, bits="coins"):
    drawn_bits, scores = drawn(n, m, mu)
    return Scores(np.repeat(np.arange(n), m), np.tile(np.arange(m), n), drawn_bits, scores, "substitute", bits=bits)


@pytest.mark.parametrize(
    ("scores", "choice", "form"),
    [
        (table(), Split(50), AnytimeOfCoins),
        (table(m=MOST_PAIRS), Split(50), AnytimeOfCoins),
        (table(m=MOST_PAIRS + 1), Split(50), Betting),
        (table(m=4), SplitPairs(2), Betting),
        (table(), Given(0.5), Anytime),
        (table(), SameData(), Anytime),
        (table(bits="unknown"), Split(50), Anytime),
        (table(m=2, bits="dealt"), Split(50), Betting),
    ],
)
def test_the_form_is_for_coins_and_rows_that_were_set_apart(scores, choice, form):
    assert type(Anytime().form(Evidence(judge(scores, choice, delta=1e-5)), by_mu=False)) is form


def test_it_is_far_sharper():
    evidence = Evidence(judge(table(1200, mu=1.0), Split(200), delta=1e-5))
    low = AnytimeOfCoins().lower_bound(evidence, delta=1e-5, level=0.95)
    assert low > 1.5 * anytime_lower_bound(evidence.in_order.first.tally, delta=1e-5, level=0.95)
    assert low == AnytimeOfCoins().lower_bound(evidence.at(9.0), delta=1e-5, level=0.95)  # whatever the rule
    assert AnytimeOfCoins().at_best(evidence, delta=1e-5, level=0.95) > low


def test_models_that_failed_are_not_guessed_and_their_bits_count_in_their_place():
    scores = table(120, m=2)
    kept = scores[scores.model != 70]
    whole = Evidence(judge(kept, Split(60), delta=1e-5), [Failed(70, np.array([1, 0]))])
    seen, form = whole.watched, AnytimeOfCoins()
    assert (len(seen), seen.bits.sum(), seen.end.n.sum()) == (60, 120, 118)
    assert np.array_equal(seen.right[9], seen.right[10])
    paid = log_ratio(seen, 0.5, 0.01, WHOLE)
    assert paid[10] - paid[9] == pytest.approx(-np.log1p(0.01 * ((1 + np.exp(-0.5)) ** 2 - 1)))
    assert (form.counts(whole, several=True), form.failures(whole)) == (
        "all judged pairs",
        "1 failed model is not guessed",
    )
    cut = replace(whole, complete_below=70)
    assert (len(cut.watched), form.counts(cut, several=True)) == (10, "the first 10 judged models in order")
    assert form.failures(cut) is None
    assert AnytimeOfCoins().detectable(replace(whole, complete_below=0), delta=1e-5, level=0.9) == 0


def test_the_order_of_a_table_may_follow_its_bits():
    """Coins that fell by chance, and rows sorted by them: no model of a table comes before another."""
    rng = np.random.default_rng(0)
    bits = np.sort(rng.integers(0, 2, 600))[::-1]
    table = Scores(np.arange(600), np.zeros(600, int), bits, rng.normal(size=600), "substitute", bits="coins")
    a = audit(table, verdict_method="anytime")
    assert (a.verdict.bound.value, a.evidence.can_be_watched) == (0.0, False)
