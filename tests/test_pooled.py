"""The pooled bound: printed values, a slow twin, the worst mechanism by linear programming, and coverage."""

import math

import numpy as np
import pytest
from scipy import stats
from worst_case import most_right, most_won

import epsgauge as eg
from epsgauge.bounds.guesses import STREAM, Guesses, all_guesses, positive_guesses, top_guesses
from epsgauge.bounds.pooled import p_value, pooled_bound

TERMS = ("published", "tight")


def pooled_lower_bound(n_right, n_guesses, n_bits, *, delta, level, term="tight", **which):
    """The bound alone."""
    return pooled_bound(Guesses(n_right, n_guesses, n_bits, **which), delta=delta, level=level, term=term).eps


def cells(tp, tn, fp, fn):
    return eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn)


@pytest.mark.parametrize(
    ("guesses", "published", "tight"),
    [
        (positive_guesses(cells(31, 996, 5, 968)), 0.976, 0.984),
        (positive_guesses(cells(63, 511, 2, 424)), 2.257, 2.258),
        (all_guesses(cells(600, 600, 400, 400)), 0.329, 0.329),
        (all_guesses(cells(1000, 1000, 0, 0)), 6.449, 6.503),
    ],
)
def test_printed_values(guesses, published, tight):
    assert pooled_bound(guesses, delta=1e-5, level=0.95, term="published").eps == pytest.approx(published, abs=5e-4)
    assert pooled_bound(guesses, delta=1e-5, level=0.95).eps == pytest.approx(tight, abs=5e-4)


@pytest.mark.parametrize(
    ("right", "guesses", "bits", "eps"),
    [(8000, 10_000, 100_000, 1.341055), (1429, 1500, 100_000, 2.668754), (60_000, 100_000, 100_000, 0.394580)],
)
def test_another_implementation_says_the_same(right, guesses, bits, eps):
    """jax-privacy 2.0.0, one run, significance 0.05, δ = 1e-5; it stops within 1e-6."""
    found = pooled_lower_bound(right, guesses, bits, delta=1e-5, level=0.95, term="published")
    assert found == pytest.approx(eps, abs=2e-6)


def published_p_value(right, guesses, bits, eps, delta):
    """β + α m δ with one loop over i."""
    q = math.exp(eps) / (1 + math.exp(eps))
    beta = sum(stats.binom.pmf(k, guesses, q) for k in range(right, guesses + 1))
    alpha, between = 0.0, 0.0
    for i in range(1, right + 1):
        between += stats.binom.pmf(right - i, guesses, q)  # Pr[v > W ≥ v − i]
        alpha = max(alpha, 2 * between / i)
    return beta + alpha * bits * delta


def tight_p_value(right, guesses, bits, eps, delta):
    """f + N δ max over a of f(max(a, v)) (1 − f(min(a, v))) / (a Pr[W = a])."""
    w = stats.binom(guesses, math.exp(eps) / (1 + math.exp(eps)))
    worst = max(
        w.sf(max(a, right) - 1) * w.cdf(min(a, right) - 1) / (a * w.pmf(a))
        for a in range(1, guesses + 1)
        if w.pmf(a) > 1e-200
    )
    return w.sf(right - 1) + bits * delta * worst


def test_p_values_are_those_of_slow_twins():
    rng = np.random.default_rng(3)
    for _ in range(25):
        guesses = int(rng.integers(1, 80))
        right, eps = int(rng.integers(guesses // 2 + 1, guesses + 1)), float(rng.uniform(0, 5))
        bits, delta = guesses + int(rng.integers(0, 100)), float(rng.choice([0.0, 1e-5, 1e-3, 0.01]))
        said = Guesses(right, guesses, bits)
        tight = tight_p_value(right, guesses, bits, eps, delta)
        published = max(published_p_value(right, guesses, bits, eps, delta), tight)
        assert p_value(said, eps=eps, delta=delta, term="tight", level=0.9) == pytest.approx(min(1.0, tight), rel=1e-9)
        assert p_value(said, eps=eps, delta=delta, term="published", level=0.9) == pytest.approx(
            min(1.0, published), rel=1e-9
        )


@pytest.mark.parametrize(("bits", "guesses"), [(6, 6), (9, 5), (30, 12)])
@pytest.mark.parametrize("eps", [0.0, 0.7, 2.5])
@pytest.mark.parametrize("delta", [0.0, 0.002, 0.03])
def test_the_tight_term_is_what_the_worst_mechanism_reaches(bits, guesses, eps, delta):
    w = stats.binom(guesses, math.exp(eps) / (1 + math.exp(eps)))
    for right in range(1, guesses + 1):
        worst = most_right(bits, {guesses: right}, eps=eps, delta=delta)
        p = p_value(Guesses(right, guesses, bits), eps=eps, delta=delta, level=0.9, term="tight")
        assert worst <= p + 1e-9
        if bits * delta * w.sf(right - 1) <= right * w.pmf(right):  # the mechanism that reaches it exists
            assert worst == pytest.approx(p, abs=1e-7)


def right_guesses(bits, output):
    return sum(b == g for b, g in zip(bits, output, strict=True))


def test_the_symmetric_worst_case_is_the_worst_of_all_mechanisms():
    for eps, delta in ((0.5, 0.05), (1.5, 0.01)):
        for guesses, right in ((1, 1), (2, 1), (2, 2)):

            def wins(bits, output, guesses=guesses, right=right):
                return 2 - output.count(None) == guesses and right_guesses(bits, output) >= right

            want = most_right(2, {guesses: right}, eps=eps, delta=delta)
            assert most_won(2, wins, eps=eps, delta=delta) == pytest.approx(want, abs=1e-7)


@pytest.mark.parametrize(("eps", "delta", "alpha"), [(0.0, 0.005, 0.2), (0.4, 0.015, 0.4), (1.0, 0.01, 0.6)])
@pytest.mark.parametrize("sides", ["both", "one"])
def test_where_outputs_decide_how_many_guesses_there_are(eps, delta, alpha, sides):
    """Over every mechanism for three bits: it is refuted with at most alpha."""
    refuted = {
        (v, r)
        for r in (1, 2, 3)
        for v in range(1, r + 1)
        if p_value(Guesses(v, r, 3, "random", sides), eps=eps, delta=delta, level=1 - alpha, term="tight") <= alpha
    }
    assert refuted

    def wins(bits, output):
        if sides == "one" and 0 in output:
            return False
        return (right_guesses(bits, output), 3 - output.count(None)) in refuted

    assert most_won(3, wins, eps=eps, delta=delta) <= alpha + 1e-9


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 2e-4), (0.5, 1e-3), (0.9, 0.01), (1.5, 0.003)])
def test_many_numbers_of_guesses_to_pick_from(eps, delta):
    bits, alpha = 14, 0.1
    needed = {}
    for r in range(bits + 1):
        p = [
            p_value(Guesses(v, r, bits, "random"), eps=eps, delta=delta, level=0.9, term="tight") for v in range(r + 1)
        ]
        needed[r] = next((v for v in range(r + 1) if p[v] <= alpha), r + 1)
    worst = most_right(bits, needed, eps=eps, delta=delta)
    assert 0.03 < worst <= alpha + 1e-9 or all(v > r for r, v in needed.items())


def test_the_published_term_alone_is_too_small_for_some_counts():
    """Two bits, each flipped with chance q, until not both are wrong: (2, δ)-DP, and one is always right."""
    eps = 2.0
    q = 1 / (1 + math.exp(eps))
    delta = q * (1 - q) / (1 - q * q)  # only (right, wrong) can fail: its neighbour is never put out
    assert most_right(2, {2: 1}, eps=eps, delta=delta) == pytest.approx(1.0)
    assert published_p_value(1, 2, 2, eps, delta) < 0.993
    assert p_value(Guesses(1, 2, 2), eps=eps, delta=delta, level=0.9) == 1.0


def test_where_it_matters_the_published_term_is_the_larger():
    rng = np.random.default_rng(0)
    for _ in range(300):
        guesses, eps = int(10 ** rng.uniform(0, 5)), float(rng.uniform(0, 8))
        q = 1 / (1 + math.exp(-eps))
        right = int(np.clip(round(guesses * q + rng.uniform(0, 5) * math.sqrt(guesses * q * (1 - q))), 1, guesses))
        said, f = Guesses(right, guesses, guesses), stats.binom.sf(right - 1, guesses, q)
        if 1e-12 < f < 0.5:
            costs = [p_value(said, eps=eps, delta=1e-9, level=0.9, term=t) - f for t in TERMS]
            assert costs[0] > 2 * costs[1] - 1e-15


def refuted_share(law, eps, guesses, bits, *, delta, level, term):
    """Pr[the bound is above eps] where `law` is the distribution of the number of right guesses."""
    bounds = [pooled_lower_bound(v, guesses, bits, delta=delta, level=level, term=term) for v in range(guesses + 1)]
    return float(law[np.array(bounds) > eps].sum())


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0])
def test_coverage_by_enumeration_independent_bits(eps, term):
    law = stats.binom.pmf(np.arange(41), 40, 1 / (1 + math.exp(-eps)))
    missed = refuted_share(law, eps, 40, 40, delta=1e-5, level=0.95, term=term)
    assert 0.01 < missed <= 0.05


@pytest.mark.parametrize("term", TERMS)
def test_coverage_by_enumeration_one_release_of_all_bits(term):
    """The output is drawn from all bits together, ε more for each right guess between two counts; with δ it is all."""
    eps, delta, n = 0.8, 1e-3, 40
    k = np.arange(n + 1)
    for low, high in ((24, 30), (27, n), (0, 26)):
        law = stats.binom.pmf(k, n, 0.5) * np.exp(eps * np.clip(k, low, high))
        law = (1 - delta) * law / law.sum() + delta * (k == n)
        assert refuted_share(law, eps, n, n, delta=delta, level=0.9, term=term) <= 0.1


def test_the_worst_mechanism_is_refuted_with_hardly_less_than_is_allowed():
    """Right guesses thinned below v: K is Binomial, weighted down below v until nothing more is allowed."""
    eps, delta, n, level = 1.0, 2e-3, 40, 0.95
    w = stats.binom(n, 1 / (1 + math.exp(-eps)))
    right = next(v for v in range(n + 1) if pooled_lower_bound(v, n, n, delta=delta, level=level, term="tight") > eps)
    above = n * delta / (right * w.pmf(right))
    law = w.pmf(np.arange(n + 1)) * (1 - above * w.sf(right - 1) + above * (np.arange(n + 1) >= right))
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1)
    missed = {t: refuted_share(law, eps, n, n, delta=delta, level=level, term=t) for t in TERMS}
    assert 0.02 < missed["tight"] <= 0.05
    assert missed["published"] <= missed["tight"]
    p = p_value(Guesses(right, n, n), eps=eps, delta=delta, level=level, term="tight")
    assert law[right:].sum() == pytest.approx(p, rel=1e-9)


def test_coverage_of_the_surest_guesses():
    """Scores with Laplace noise are ε-DP for each bit; the 20 surest of 100 are guessed."""
    eps, runs, rng = 1.0, 400, np.random.default_rng(5)
    bounds = np.array([pooled_lower_bound(v, 20, 100, delta=0.0, level=0.9) for v in range(21)])
    missed = 0
    for seed in range(runs):
        bits = rng.integers(0, 2, 100)
        said = top_guesses(bits + rng.laplace(0, 1 / eps, 100), bits, n_guesses=20, threshold=0.5, seed=seed)
        missed += bounds[said.n_right] > eps
    assert missed / runs <= 0.1 + 3 * math.sqrt(0.09 / runs)


@pytest.mark.parametrize("term", TERMS)
def test_monotone(term):
    def bound(right=70, guesses=100, bits=500, delta=1e-4, level=0.95):
        return pooled_lower_bound(right, guesses, bits, delta=delta, level=level, term=term)

    assert np.all(np.diff([bound(right=v) for v in range(0, 101, 5)]) >= 0)
    assert np.all(np.diff([bound(right=70, guesses=r) for r in range(70, 140, 7)]) <= 0)
    assert np.all(np.diff([bound(bits=n) for n in (100, 200, 1000, 5000, 20_000)]) <= 0)
    assert np.all(np.diff([bound(delta=d) for d in (0, 1e-6, 1e-4, 1e-3, 0.01, 0.5)]) <= 0)
    assert np.all(np.diff([bound(level=x) for x in (0.5, 0.8, 0.95, 0.999)]) <= 0)
    assert bound() > 0.4


@pytest.mark.parametrize("term", TERMS)
def test_edges(term):
    def bound(*counts, delta=1e-5, level=0.95, **more):
        return pooled_lower_bound(*counts, delta=delta, level=level, term=term, **more)

    assert bound(0, 0, 0) == bound(0, 0, 7) == bound(0, 50, 50) == bound(25, 50, 50) == 0
    assert bound(25, 50, 50, level=0.3) == 0
    assert bound(1, 1, 1) == 0
    assert bound(1, 1, 1, level=0.4, delta=0) == pytest.approx(math.log(0.6 / 0.4))
    assert bound(100, 100, 100, delta=0) == pytest.approx(-math.log(math.expm1(-math.log(0.05) / 100)), abs=1e-6)
    assert bound(100, 100, 100, delta=0.9) == 0
    assert 0.40 < bound(600_000, 10**6, 10**6) < 0.403
    assert bound(10**6, 10**6, 10**6, delta=0) == pytest.approx(12.718, abs=1e-3)


def test_the_bound_is_rounded_down():
    for counts in ((31, 36, 2000), (1200, 2000, 2000), (600_000, 10**6, 10**6)):
        found = pooled_bound(Guesses(*counts), delta=1e-6, level=0.95)
        assert p_value(found.guesses, eps=found.eps, delta=1e-6, level=0.95) <= 0.05
        assert p_value(found.guesses, eps=found.eps + 1e-6, delta=1e-6, level=0.95) > 0.05


def test_what_delta_costs():
    few, many = (pooled_bound(Guesses(80, 100, n), delta=1e-5, level=0.95) for n in (100, 100_000))
    assert few.eps_without_delta == many.eps_without_delta
    assert 0 < few.delta_costs < 0.01 < many.delta_costs
    assert pooled_bound(Guesses(80, 100, 100), delta=0.0, level=0.95).delta_costs == 0


def test_a_number_of_guesses_that_was_not_fixed_costs_more_and_says_so():
    fixed, open_ = (
        pooled_bound(Guesses(900, 1000, 20_000, n), delta=1e-5, level=0.95, term="tight") for n in ("fixed", "random")
    )
    assert 0.99 * fixed.eps < open_.eps < fixed.eps
    few = pooled_bound(Guesses(30, 30, 20_000, "random"), delta=1e-5, level=0.95, term="tight")
    assert few.eps == 0  # no price below 1/30 holds for so few guesses


def test_the_surest_guesses():
    scores, bits = [0.1, 0.9, 0.5, -3.0, 2.0, 0.6], [0, 1, 0, 1, 1, 0]
    two = top_guesses(scores, bits, n_guesses=2, threshold=0.5)
    assert (two.n_right, two.n_guesses, two.n_bits) == (1, 2, 6)
    assert top_guesses(scores, bits, n_guesses=3, threshold=0.5, sides="one").n_right == 2
    assert top_guesses(scores, bits, n_guesses=6, threshold=0.5).n_right == 3
    assert top_guesses([np.inf, -np.inf, np.inf], [1, 0, 1], n_guesses=3, threshold=np.inf).n_right == 3


def test_the_order_of_rows_does_not_pick_among_equal_scores():
    """All ones first, as some tables have them: the first ten of a hundred equal scores would all be right."""
    rng, bits = np.random.default_rng(0), np.repeat([1, 0], 50)
    for seed in range(20):
        right = {
            top_guesses(np.zeros(100), each, n_guesses=10, threshold=0.0, seed=seed).n_right
            for each in (bits, bits[::-1], *(rng.permutation(bits) for _ in range(20)))
        }
        assert len(right) == 1
        assert right.pop() <= 8


def test_equal_scores_are_taken_in_orders_drawn_from_the_seed_alone():
    """The fewest right guesses of four orders, each drawn by a slow twin that deals out the right ones in a group."""
    rng = np.random.default_rng(1)
    scores, bits = rng.integers(0, 3, 30).astype(float), rng.integers(0, 2, 30)
    rows = sorted(range(30), key=lambda i: (-scores[i], bits[i]))
    orders, shuffle = [], np.random.default_rng([7, STREAM])
    for _ in range(4):
        shuffled = [rows[i] for i in shuffle.permutation(30)]
        orders.append(sorted(shuffled, key=lambda i: -scores[i]))
    for r in range(31):
        twin = min(sum(bits[i] for i in order[:r]) for order in orders)
        assert top_guesses(scores, bits, n_guesses=r, threshold=0.0, sides="one", seed=7).n_right == twin


def test_bad_input():
    with pytest.raises(eg.InvalidInput, match="n_right must be at most n_guesses = 4, but got 5"):
        pooled_lower_bound(5, 4, 10, delta=0.0, level=0.95)
    with pytest.raises(eg.InvalidInput, match="n_guesses must be at most n_bits = 3"):
        pooled_lower_bound(2, 4, 3, delta=0.0, level=0.95)
    with pytest.raises(eg.InvalidInput, match="delta must be in"):
        pooled_lower_bound(2, 3, 3, delta=1.0, level=0.95)
    with pytest.raises(eg.InvalidInput, match="term must be"):
        pooled_lower_bound(2, 3, 3, delta=0.0, level=0.95, term="loose")
    with pytest.raises(eg.InvalidInput, match="number must be"):
        Guesses(1, 2, 3, number="some")
    with pytest.raises(eg.InvalidInput, match="sides must be"):
        Guesses(1, 2, 3, sides="left")
    with pytest.raises(eg.InvalidInput, match="must be one tally"):
        all_guesses(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1))
    with pytest.raises(eg.InvalidInput, match="two lists of the same length"):
        top_guesses([1.0, 2.0], [1], n_guesses=1, threshold=0.0)
    with pytest.raises(eg.InvalidInput, match="at most the number of scores, 2"):
        top_guesses([1.0, 2.0], [1, 0], n_guesses=3, threshold=0.0)
