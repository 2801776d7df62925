"""Every ε has one test, known before any score; the bound is the last ε up to which all are refuted."""

import numpy as np
import pytest
from scipy import special, stats
from tiny_runs import CLAIM, plan, responses

from epsgauge.auditing.audit import audit
from epsgauge.auditing.reach import Reach
from epsgauge.bounds import ways, weighted
from epsgauge.bounds.pooled import pooled_bound, refuted_at
from epsgauge.bounds.weighted import Game, refuted
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.table import METHODS
from epsgauge.methods.weighted import _seen
from epsgauge.scores.table import Scores

WEIGHTED = METHODS["weighted"]


@pytest.fixture(autouse=True)
def _coarse(monkeypatch):
    """A grid of ε that is climbed in no time."""
    monkeypatch.setattr(weighted, "STEP", 0.1)
    ways.lower_bound.cache_clear()
    yield
    ways.lower_bound.cache_clear()


def evidence_of(bits, scores, pairs):
    at = np.arange(len(bits))
    return Evidence.of_scores(Scores(at // pairs, at % pairs, bits, scores, "substitute", bits="coins"), 1.0)


def drawn(n, pairs, mu, seed=1):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n)
    return evidence_of(bits, rng.normal(mu * bits, 1.0), pairs)


@pytest.mark.parametrize(
    ("n_bits", "n_models", "delta", "want"),
    [
        (10**5, 10**5, 1e-2, {0.1: "first", 9.0: "first"}),
        (6000, 300, 1e-5, {0.1: "weigh", 9.0: "weigh"}),
        (6000, 1, 1e-3, {0.1: "count", 4.0: "count", 4.2: "weigh"}),
        (10**5, 5000, 1e-2, {0.1: "first", 5.2: "first", 5.4: "count", 9.1: "count", 9.3: "weigh"}),
        (2000, 100, 1e-2, {0.1: "count", 5.4: "weigh"}),  # too few models
        (240, 60, 1e-2, {0.1: "count"}),
        (240, 60, 4e-2, {0.1: "first", 4.4: "first", 4.8: "weigh"}),  # all guesses are too few to count
    ],
)
def test_which_guesses_test_an_eps(n_bits, n_models, delta, want):
    found = {eps: ways.way(eps, n_bits, n_models, delta=delta, alpha=0.05) for eps in want}
    assert found == want


@pytest.mark.parametrize(("delta", "alpha"), [(1e-4, 0.05), (1e-3, 0.01), (1e-2, 0.05)])
def test_as_eps_grows_delta_costs_less(delta, alpha):
    """And each way comes once, in this order."""
    points = np.arange(0.02, 14.0, 0.02)
    found = [ways.way(float(eps), 20_000, 1000, delta=delta, alpha=alpha) for eps in points]
    assert found == sorted(found, key=("first", "count", "weigh").index)
    assert found[-1] == "weigh"


@pytest.mark.parametrize("mu", [1.0, 2.0, 4.0])
@pytest.mark.parametrize(
    ("n", "pairs", "delta"), [(2000, 20, 1e-2), (8000, 20, 1e-2), (8000, 8000, 1e-3), (600, 3, 1e-5)]
)
def test_the_bound_is_that_of_the_tests_one_by_one(n, pairs, delta, mu):
    seen, alpha = _seen(drawn(n, pairs, mu)), 0.05
    low, started = 0.0, False
    for eps in np.arange(1, 200) * weighted.STEP:
        how = seen.way(eps, delta=delta, alpha=alpha)
        if how == "count":
            counted = seen.counted(eps, delta=delta, alpha=alpha)
            said = refuted_at(counted, eps, delta=delta, level=1 - alpha)
            assert said == (pooled_bound(counted, delta=delta, level=1 - alpha).eps >= eps)
            tried = True
        else:
            game = Game(seen.n_models if how == "first" else seen.n_bits, delta, alpha, how == "first")
            guesses = seen.first if how == "first" else seen.every
            said = next(refuted(guesses, np.array([eps]), game))
            tried = game.may_refute(eps)
        if not tried and not started:
            continue
        started = True
        if not said:
            break
        low = eps
    assert ways.lower_bound(seen, delta=delta, level=1 - alpha) == pytest.approx(low, abs=1e-9)
    assert low > 0 or (mu, n) == (1.0, 2000)


@pytest.mark.parametrize(
    ("eps", "n", "pairs", "delta", "how"),
    [
        (0.5, 2000, 20, 0.02, "count"),
        (4.0, 2000, 20, 0.002, "weigh"),
        pytest.param(1.0, 8000, 20, 0.02, "first", marks=pytest.mark.long),
    ],
)
def test_seldom_above_the_true_eps(eps, n, pairs, delta, how):
    """Randomised response that gives each bit away with δ, as its surest scores."""
    rng, runs, above = np.random.default_rng(5), 120, 0
    for _ in range(runs):
        bits = rng.integers(0, 2, n)
        answer = np.where(rng.random(n) < special.expit(eps), bits, 1 - bits)
        given = rng.random(n) < delta
        size = np.where(given, 3.0, rng.exponential(1.0, n).clip(0, 2.9))
        evidence = evidence_of(bits, size * (2.0 * np.where(given, bits, answer) - 1.0), pairs)
        seen = _seen(evidence)
        assert seen.way(eps, delta=delta, alpha=0.05) == how
        above += ways.lower_bound(seen, delta=delta, level=0.95) > eps + weighted.STEP / 2
    assert above <= stats.binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize(("models", "pairs", "delta"), [(24, 1, 1e-5), (300, 1, 1e-5), (40, 20, 1e-3), (1, 900, 1e-2)])
def test_one_test_says_what_a_perfect_attack_shows(monkeypatch, models, pairs, delta):
    """As the bound that climbs the whole grid does."""
    for step in (0.1, 0.02):
        monkeypatch.setattr(ways, "STEP", step)
        monkeypatch.setattr(weighted, "STEP", step)
        seen = _seen(Evidence.ideal(models, pairs, Counting(), "substitute"))
        ways.lower_bound.cache_clear()
        low = ways.lower_bound(seen, delta=delta, level=0.95)
        for eps in (0.0, 0.3, low - 1.5 * step, low - 0.5 * step, low + 0.5 * step, low + 1.5 * step, 2 * low):
            assert ways.refutes(seen, max(eps, 0.0), delta=delta, level=0.95) == (low > max(eps, 0.0)), eps


def test_check_and_audit_name_the_same_number():
    """Of what a perfect attack needs: by plans of so many models, and by tables like the one at hand."""
    game = {"claimed_eps": 4.0, **CLAIM}
    found = audit(responses(0.0, 24, seed=1), direction="kept", verdict_level=0.99, **game)
    reach = Reach(plan({"use": "randomised-response", "eps": 4.0}, n_models=24, audit=game))
    assert found.verdict.needed == reach.fewest(4.0, 1e-5)


@pytest.mark.parametrize(
    ("n", "delta", "says"), [(8000, 1e-2, "first pair of each model"), (8000, 1e-3, "surest guesses")]
)
def test_a_row_says_which_guesses_decided(n, delta, says):
    evidence = drawn(n, 20, 1.0)
    found = WEIGHTED.found(evidence, delta=delta, level=0.9)
    assert says in found.before
    assert found.low == WEIGHTED.lower_bound(evidence, delta=delta, level=0.95) > 0.3
    assert 0 < WEIGHTED.detectable(evidence, delta=delta, level=0.95) <= found.low


def test_a_perfect_attack_shows_something_at_any_delta():
    """Where all guesses are too few to count, first pairs are not."""
    rng = np.random.default_rng(2)
    for pairs, delta in ((4, 1e-2), (4, 4e-2), (20, 1e-2), (20, 1e-3)):
        bits = rng.integers(0, 2, 2000)
        assert WEIGHTED.lower_bound(evidence_of(bits, bits + 0.0, pairs), delta=delta, level=0.95) > 2.5
