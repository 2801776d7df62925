"""The bound over all numbers of surest guesses: walks by enumeration, δ by linear programs, the whole by both."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, special
from scipy.stats import binom

from epsgauge.bounds import surest, walk
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.bounds.surest import surest_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.stats.binomial import log_mass


def all_walks(n, eps):
    """Every sequence of right and wrong steps, and its probability."""
    walks, q = np.array(list(product((0, 1), repeat=n))), special.expit(eps)
    return walks, np.where(walks == 1, q, 1 - q).prod(axis=1)


@pytest.mark.parametrize("eps", [0.0, 0.7, 5.0])
@pytest.mark.parametrize(
    ("sizes", "goals"), [([3], [2]), ([1, 4, 6], [2, 4, 5]), ([2, 5, 9], [2, 4, 7]), ([1, 2], [0, 2]), ([4, 8], [5, 9])]
)
def test_reached_against_enumeration(sizes, goals, eps):
    walks, mass = all_walks(sizes[-1], eps)
    counts = np.cumsum(walks, axis=1)[:, np.array(sizes) - 1]
    want = mass[(counts >= goals).any(axis=1)].sum()
    got = walk.reached(np.array(sizes), np.array(goals), eps)
    assert want <= got + 1e-15
    assert got == pytest.approx(want, rel=2e-5, abs=1e-14)


def test_reached_of_a_long_walk_against_one_binomial():
    """Goals that are never met before the last change nothing; steps are far too many to be followed one by one."""
    n = 200_000
    k = np.arange(101_000.0, n + 1)
    want = np.exp(log_mass(k, n, special.expit(0.01))).sum()
    got = walk.reached(np.array([1000, 50_000, n]), np.array([1001, 50_001, 101_000]), 0.01)
    assert want <= got <= want * (1 + 1e-4)


def test_the_influence_of_a_guess_falls_with_eps_and_with_the_first_number():
    at = np.array([[walk.influence(size, eps) for eps in (0.0, 0.1, 0.5, 1.0, 3.0, 8.0)] for size in (1, 2, 8, 50)])
    assert (np.diff(at, axis=1) < 0).all()
    assert (np.diff(at, axis=0) < 0).all()
    assert at[0] == pytest.approx(special.expit(-np.array([0.0, 0.1, 0.5, 1.0, 3.0, 8.0])), rel=2e-5)


def most_likely(event, eps, failing):
    """The largest probability of an event of right guesses, by a linear program over all laws that DP allows.

    `failing` has, for each group of places, how much of the mass above odds of e^ε all its places may have together.
    """
    n = int(np.log2(len(event)))
    size, rows, groups = 2**n, [], [np.zeros(2**n + n * 2 ** (n - 1)) for _ in failing]
    walks = np.array(list(product((0, 1), repeat=n)))
    for place in range(n):
        for j, right in enumerate(np.flatnonzero(walks[:, place] == 1)):
            row = np.zeros(size + n * 2 ** (n - 1))
            slack = size + place * 2 ** (n - 1) + j
            row[right], row[right - 2 ** (n - 1 - place)], row[slack] = 1.0, -np.exp(eps), -1.0
            rows.append(row)
            groups[place * len(failing) // n][slack] = 1.0
    found = optimize.linprog(
        -np.concatenate([event, np.zeros(n * 2 ** (n - 1))]),
        A_ub=np.array([*rows, *groups]),
        b_ub=np.concatenate([np.zeros(len(rows)), failing]),
        A_eq=np.concatenate([np.ones(size), np.zeros(n * 2 ** (n - 1))])[None],
        b_eq=[1.0],
    )
    return -found.fun


@pytest.mark.parametrize("eps", [0.0, 1.0])
@pytest.mark.parametrize(
    ("sizes", "goals"), [([2, 4], [2, 3]), ([2, 5], [2, 4]), ([3, 4, 5], [3, 4, 4]), ([1, 4], [1, 3])]
)
@pytest.mark.parametrize("failing", [0.0, 0.01, 0.1])
def test_no_dp_mechanism_reaches_a_goal_more_often(sizes, goals, eps, failing):
    walks, _ = all_walks(sizes[-1], 0.0)
    event = (np.cumsum(walks, axis=1)[:, np.array(sizes) - 1] >= goals).any(axis=1).astype(float)
    most = most_likely(event, eps, [failing])
    p = walk.reached(np.array(sizes), np.array(goals), eps)
    assert most <= p + failing * walk.influence(sizes[0], eps) + 1e-8
    if failing == 0:
        assert most == pytest.approx(p, rel=1e-4)


@pytest.mark.parametrize("eps", [0.0, 0.8])
@pytest.mark.parametrize("failing", [0.0, 0.05])
def test_no_dp_mechanism_has_a_high_limit_on_some_side_more_often(eps, failing):
    """Three guesses on either side; a value that is guessed has half of what may fail."""
    sizes, z = np.array([2, 3]), 1.0
    walks, _ = all_walks(6, 0.0)
    ones, zeros = (np.cumsum(part, axis=1)[:, sizes - 1] for part in (walks[:, :3], walks[:, 3:]))
    limits = [surest._limit(right, n, z) for right, n in ((ones, sizes), (zeros, sizes), (ones + zeros, 2 * sizes))]
    highest = np.concatenate(limits, axis=1).max(axis=1)
    for limit in np.unique(highest)[-4:]:
        event = (highest >= limit).astype(float)
        p = 2 * walk.reached(sizes, surest._goals(sizes, limit, z), eps)
        p += walk.reached(2 * sizes, surest._goals(2 * sizes, limit, z), eps)
        most = most_likely(event, eps, [failing / 2, failing / 2])
        assert most <= p + surest._price(2, failing, eps) + 1e-8


@pytest.mark.parametrize("level", [0.7, 0.95])
def test_randomised_response_is_never_refuted_too_often(monkeypatch, level):
    """All 1,024 outcomes of ten guesses at each ε: the bound is above it with at most 1 − level, and not far below."""
    monkeypatch.setattr(surest, "FEWEST", 2)
    inverted, known = surest._inverted, {}

    def once(sizes, limit, *rest):
        known[limit] = known.get(limit) or inverted(sizes, limit, *rest)
        return known[limit]

    monkeypatch.setattr(surest, "_inverted", once)
    walks, _ = all_walks(10, 0.0)
    scores, said = np.arange(10.0)[::-1], np.repeat([1, 0], 5)
    bits = np.where(walks == 1, said, 1 - said)
    low = np.array([surest_lower_bound(scores, row, delta=0, level=level).low for row in bits])
    above = [all_walks(10, eps)[1][low > eps].sum() for eps in np.unique(low)[1:] - 1e-9]
    assert max(above) <= 1 - level
    assert max(above) > 0.3 * (1 - level)


@pytest.mark.parametrize("limit", [0.51, 0.7, 0.93, 0.999])
def test_goals_have_at_least_the_limit_and_no_fewer_right_do(limit):
    n, z = np.arange(1, 400), 2.24
    goals = surest._goals(n, limit, z)
    some = goals <= n
    assert (surest._limit(goals[some], n[some], z) >= limit - 1e-6).all()
    assert (surest._limit(goals[some] - 1, n[some], z) < limit).all()
    assert (surest._limit(n[~some], n[~some], z) < limit).all()
    # and what was observed is always among them, although its own limit was rounded
    right = np.arange(200, 401)
    own = surest._limit(right, np.full(201, 400), z)
    assert (np.array([surest._goals(np.array([400]), float(x), z)[0] for x in own]) <= right).all()


@pytest.mark.parametrize("kind", ["no leak", "ties alone", pytest.param("randomised response", marks=pytest.mark.long)])
def test_seldom_above_the_true_eps(kind):
    """Rows of a file sorted by bits. Sizes differ, as few such tables of one size have equal scores alone."""
    rng, runs, wrong = np.random.default_rng(4), 400, 0
    for _ in range(runs):
        n = int(rng.integers(40, 200))
        bits = np.sort(rng.integers(0, 2, n))
        if kind == "randomised response":
            scores, eps = np.where(rng.random(n) < 0.6, bits, 1 - bits), np.log(1.5)
        else:
            scores, eps = (rng.random(n) if kind == "no leak" else np.zeros(n)), 0.0
        wrong += surest_lower_bound(scores, bits, delta=0, level=0.8).low > eps
    assert wrong <= 0.2 * runs


def gaussian(n, seed):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n)
    return rng.normal(bits, 1.0), bits


def test_sharper_than_bands_and_than_all_guesses():
    scores, bits = gaussian(2000, 1)
    found = surest_lower_bound(scores, bits, delta=1e-5)
    bands = simultaneous_lower_bound(scores[bits == 1], scores[bits == 0], delta=1e-5, directions="high")
    right = int(((scores > 0.5) == bits).sum())
    assert found.low > bands.low + 0.3
    assert found.low > pooled_bound(Guesses(right, 2000, 2000), delta=1e-5, level=0.95).eps + 0.3
    # against the guesses that decided, as if their number had been fixed beforehand
    fixed = pooled_bound(Guesses(found.n_right, found.n_guesses, 2000), delta=1e-5, level=0.95).eps
    assert fixed - 0.4 < found.low < fixed


def test_leaks_of_one_side_are_seen_there():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, 2000)
    scores = rng.normal(0, 1, 2000) + 4 * (bits * (rng.random(2000) < 0.1))
    high = surest_lower_bound(scores, bits, delta=1e-5)
    low = surest_lower_bound(-scores, 1 - bits, delta=1e-5)
    assert (high.side, low.side) == ("high", "low")
    assert high.low == pytest.approx(low.low, abs=1e-4)
    assert high.low > 1.5
    assert surest_lower_bound(-scores, bits, delta=1e-5).low == 0  # the attack has a direction


def test_delta_costs_more_with_more_bits_and_never_helps():
    scores, bits = gaussian(1000, 3)
    low = [surest_lower_bound(scores, bits, delta=delta).low for delta in (0.0, 1e-5, 1e-3, 0.1)]
    assert low == sorted(low, reverse=True)
    assert low[0] - low[1] < 0.1
    assert low[-1] == 0


def test_bits_without_a_score_count_as_wrong():
    scores, bits = gaussian(300, 5)
    found = [surest_lower_bound(scores, bits, delta=1e-5, unseen=unseen) for unseen in (0, 1, 150, 5000)]
    assert [f.low for f in found] == sorted((f.low for f in found), reverse=True)


def test_a_perfect_attack_is_near_what_all_guesses_show():
    bits = np.arange(40_000) % 2
    perfect = surest_lower_bound(bits, bits, delta=0)
    assert perfect.n_right == perfect.n_guesses == 40_000
    fixed = pooled_bound(Guesses(40_000, 40_000, 40_000), delta=0, level=0.95).eps
    assert fixed - 0.7 < perfect.low < fixed


@pytest.mark.parametrize("n", [0, 1, 2, 3, 17])
def test_few_scores_refute_nothing_that_they_cannot(n):
    bits = np.arange(n) % 2
    found = surest_lower_bound(bits, bits, delta=1e-5)
    assert (found.low == 0) == (n < 17)


def test_many_scores():
    found = surest_lower_bound(*gaussian(200_000, 6), delta=1e-6)
    assert 2.5 < found.low < 5.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: surest_lower_bound([1.0], [1, 0], delta=0),
        lambda: surest_lower_bound([1.0, 2.0], [1, 2], delta=0),
        lambda: surest_lower_bound([1.0, np.nan], [1, 0], delta=0),
        lambda: surest_lower_bound([1.0, 2.0], [1, 0], delta=2),
        lambda: surest_lower_bound([1.0, 2.0], [1, 0], delta=0, unseen=-1),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidInput, match="must"):
        call()


@pytest.mark.parametrize("kind", ["constant", "yes or no", "rounded"])
def test_the_best_of_many_row_orders_shows_no_more(kind):
    """Without any leak; the highest of 150 orders of equal scores used to be above 0."""
    rng = np.random.default_rng(5)
    bits, n = rng.integers(0, 2, 150), 150
    scores = {"constant": np.zeros(n), "yes or no": 1.0 * rng.integers(0, 2, n), "rounded": rng.normal(size=n).round(0)}
    orders = [rng.permutation(n) for _ in range(150)]
    lows = {surest_lower_bound(scores[kind][o], bits[o], delta=1e-5, level=0.95).low for o in orders}
    assert lows == {0.0}


def test_equal_scores_alone_refute_nothing_at_any_size():
    """Exactly, over all numbers of ones: with one fixed order, all tables of 39 equal scores would be refuted."""
    for n in (39, 126):
        ones = np.arange(n + 1)
        above = [surest_lower_bound(np.zeros(n), ones[1:] <= k, delta=0.0, level=0.9).low > 0 for k in ones]
        assert binom.pmf(ones, n, 0.5) @ above <= 0.1
