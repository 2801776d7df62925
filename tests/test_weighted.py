"""The weighted bound: its tail by enumeration, the price of δ by linear programs, edges, and when it judges."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats
from tiny_runs import responses
from worst_case import most_won

import epsgauge as eg
from epsgauge.bounds import shapes, weighted
from epsgauge.bounds.classed import ROOT, Classed, classed
from epsgauge.bounds.given_away import _gained, prices
from epsgauge.bounds.shapes import EDGES, of_both_sides, of_one_side
from epsgauge.bounds.weighted import Game, _ratio, again_at, refuted, weighted_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.methods.evidence import Evidence, Failed
from epsgauge.methods.facts import Facts, Lost, left
from epsgauge.methods.method import Asked
from epsgauge.methods.table import METHODS, default_method
from epsgauge.scores.rules import Given, SameData, Split, SplitPairs, judge
from epsgauge.scores.table import Scores

WIDTH = 2 * len(EDGES)
ZERO = len(EDGES)  # the first class of guesses of 0
NONE = np.zeros(WIDTH, int)
EMPTY = np.zeros(0), np.zeros(0, int)
WEIGHTED = METHODS["weighted"]
# Class: how many judged guesses, and how many right and wrong ones about rows that are set apart.
FLAT = {1: (4, 0, 0), 5: (2, 0, 0), ZERO + 2: (4, 0, 0)}
FITTED = {0: (3, 5, 4), 3: (2, 6, 1), ZERO + 1: (4, 5, 3), ZERO + 8: (1, 3, 0)}
LARGE = {1: (14, 9, 5), 4: (12, 7, 1), ZERO + 2: (16, 8, 6)}


@pytest.fixture(autouse=True)
def _coarse(monkeypatch):
    """A grid of ε that is climbed in no time, for bounds that are computed anew."""
    monkeypatch.setattr(weighted, "STEP", 0.1)
    weighted_lower_bound.cache_clear()
    yield
    weighted_lower_bound.cache_clear()


def columns(table):
    out = np.zeros((3, WIDTH), int)
    for j, counts in table.items():
        out[:, j] = counts
    return out


def guesses_of(table, wrong=NONE):
    n, *fit = columns(table)
    return Classed.of(n, np.asarray(wrong), *fit)


def refutes(guesses, eps, *, n_bits, delta, alpha, independent=False):
    return next(refuted(guesses, np.array([eps]), Game(n_bits, delta, alpha, independent)))


def outcomes(n):
    """Every set of wrong guesses."""
    at = np.flatnonzero(n)
    out = np.array(list(product(*(range(n[j] + 1) for j in at))))
    whole = np.zeros((len(out), len(n)), int)
    whole[:, at] = out
    return whole


def chances(wrong, n, eps):
    """How likely each set is if all guesses are independent coins."""
    return stats.binom.pmf(wrong, n, 1 / (1 + np.exp(eps))).prod(axis=-1)


def exact_tails(table, eps):
    """Of every outcome: how likely a likelihood ratio at least as high is under ε. All products are multiplied out."""
    (n, fit_right, fit_wrong), q = columns(table), np.exp(eps) / (1 + np.exp(eps))
    wrong = outcomes(n)

    def mean_ratio(right, of, beforehand):
        fit = beforehand * (right ** fit_right[of] * (1 - right) ** fit_wrong[of]).prod(axis=1)
        kept = fit > fit.max() * np.exp(-9)
        ratio = np.zeros(len(wrong))
        for row, weight in zip(right[kept], fit[kept] / fit[kept].sum(), strict=True):
            surer = np.maximum(row, q)
            w = wrong[:, of]
            ratio += weight * ((surer / q) ** (n[of] - w) * ((1 - surer) / (1 - q)) ** w).prod(axis=1)
        return ratio, fit.sum()

    # of each of ten means, two shapes that all models show, and eight that some show
    both, as_both = mean_ratio(of_both_sides(), slice(None), np.tile([3.0] * 2 + [1.0] * 8, 10) / (10 * 14))
    (ones, as_ones), (zeros, as_zeros) = (
        mean_ratio(of_one_side(), of, 1 / len(of_one_side())) for of in (slice(0, ZERO), slice(ZERO, 2 * ZERO))
    )
    ratio = (as_both * both + as_ones * as_zeros * ones * zeros) / (as_both + as_ones * as_zeros)
    mass = chances(wrong, n, eps)
    assert (mass * ratio).sum() == pytest.approx(1.0)
    tails = np.array([mass[ratio >= r * (1 - 1e-8)].sum() for r in ratio])
    return wrong, mass, ratio, tails


# Without δ, by enumeration


@pytest.mark.parametrize(
    ("table", "eps", "alphas"),
    [
        (FLAT, 0.02, (0.05,)),
        (FLAT, 0.9, (0.2,)),
        (FITTED, 0.3, (0.1,)),
        (FITTED, 1.1, (0.1, 0.2)),
    ],
)
def test_coins_are_refuted_with_at_most_alpha(table, eps, alphas):
    """All outcomes of ten guesses: none with a tail above α is refuted, and hardly any with a tail below it is not."""
    wrong, mass, ratio, tails = exact_tails(table, eps)
    used = []
    for alpha in alphas:
        asked = [refutes(guesses_of(table, w), eps, n_bits=20, delta=0.0, alpha=alpha) for w in wrong]
        said = np.array(asked)
        assert not said[tails > alpha].any()
        assert said[(tails < 0.85 * alpha) & (ratio > 1)].all()
        used.append(mass[said].sum() / alpha)
    assert 0.3 < max(used) <= 1


def test_the_simulated_tail_is_the_exact_one():
    eps = 0.6
    wrong, _, ratio, tails = exact_tails(LARGE, eps)
    rng = np.random.default_rng(2)
    for alpha in (0.05, 0.2):
        for low, high, want in ((0.5, 0.85, True), (1.0, 1.2, False)):
            some = np.flatnonzero((tails > low * alpha) & (tails < high * alpha) & (ratio > 1))
            for i in rng.choice(some, min(4, len(some)), replace=False):
                assert refutes(guesses_of(LARGE, wrong[i]), eps, n_bits=50, delta=0.0, alpha=alpha) == want


def test_a_right_guess_never_lowers_the_statistic():
    rng = np.random.default_rng(3)
    for _ in range(60):
        table = {int(j): rng.integers(1, 30, 3) for j in rng.choice(WIDTH, 6, replace=False)}
        guesses = guesses_of(table)
        ratio = _ratio(guesses, float(special.expit(-rng.uniform(0.01, 9.9))))
        if ratio is None:
            continue
        wrong = rng.integers(0, ratio.n + 1, (20, len(ratio.n)))
        more = np.minimum(wrong + np.eye(len(ratio.n), dtype=int)[rng.integers(len(ratio.n), size=20)], ratio.n)
        assert (ratio.log(more) <= ratio.log(wrong) + 1e-10).all()


@pytest.mark.parametrize("eps", [0.33, 2.1, 5.3])
def test_nor_where_hardly_a_shape_is_surer_than_eps(eps):
    table = {6: (50, 9, 0), 9: (80, 60, 2), ZERO + 3: (200, 30, 90)}
    ratio = _ratio(guesses_of(table), float(special.expit(-eps)))
    for c, size in enumerate(ratio.n):
        wrong = np.zeros((size + 1, len(ratio.n)), int)
        wrong[:, c] = np.arange(size + 1)
        assert (np.diff(ratio.log(wrong)) <= 1e-11).all()


# Classes that are read first

# Two classes are read, and a third one if these say that it is less sure.
INSIDE = {2: (2, 1, 1), 7: (2, 0, 0), 14: (2, 0, 0), ZERO + 2: (2, 1, 1), ZERO + 10: (2, 0, 0)}


@pytest.fixture
def _few_are_kept(monkeypatch):
    """So that classes of tables this small are read."""
    monkeypatch.setattr("epsgauge.bounds.classed.FEWEST", 1)
    monkeypatch.setattr("epsgauge.bounds.classed.ROOT", 0.5)


@pytest.mark.usefixtures("_few_are_kept")
@pytest.mark.parametrize("eps", [0.7, 0.9])
def test_whatever_was_read_coins_are_refuted_with_at_most_alpha(eps):
    """All outcomes: given those of the classes that were read, which differ from outcome to outcome."""
    n, alpha, limit = columns(INSIDE)[0], 0.25, float(special.expit(eps - weighted.LESS))
    given = {}
    for wrong, mass in zip(outcomes(n), chances(outcomes(n), n, eps), strict=True):
        guesses = guesses_of(INSIDE, wrong)
        rest = guesses.stages[guesses.judged_at(limit)][1]
        read = rest.n != n
        assert not rest.n[read].any()
        said = refutes(guesses, eps, n_bits=20, delta=0.0, alpha=alpha)
        sums = given.setdefault((tuple(read), tuple(wrong[read])), np.zeros(2))
        sums += mass, mass * said
    assert len({read for read, _ in given}) > 1
    shares = np.array([refuted_mass / mass for mass, refuted_mass in given.values()])
    assert (shares <= alpha).all()
    assert shares.max() > 0.2 * alpha


def test_what_is_read_does_not_depend_on_other_bits():
    rng = np.random.default_rng(22)
    guesses = classed(*gaussian(600, 23), *gaussian(60, 24))
    for k in range(1, len(guesses.stages)):
        rest = guesses.stages[k][1]
        other = replace(guesses, wrong=np.where(rest.n > 0, rng.binomial(guesses.n, 0.5), guesses.wrong))
        assert [least for least, _ in other.stages[: k + 1]] == [least for least, _ in guesses.stages[: k + 1]]
        again = other.stages[k][1]
        assert replace(again, wrong=rest.wrong) == rest


def test_classes_are_read_from_the_middle_and_some_are_kept():
    guesses = classed(*gaussian(2000, 25), *EMPTY)
    for _, rest in guesses.stages:
        for side in (slice(0, ZERO), slice(ZERO, WIDTH)):
            n, whole = rest.n[side], guesses.n[side]
            first = int(np.argmax(n > 0))
            assert np.array_equal(n[first:], whole[first:])
            assert n.sum() >= ROOT * np.sqrt(whole.sum())
    assert len(classed(*gaussian(40, 25), *EMPTY).stages) == 1
    assert guesses.judged_at(0.5) == 0 < guesses.judged_at(0.8) < guesses.judged_at(0.95)


def test_what_was_read_tells_which_shapes_are_likely():
    """Bayes' rule, as if the class had been set apart."""
    guesses = guesses_of(FITTED, [0, 0, 0, 1, *NONE[4:]])
    moved = guesses_of({**FITTED, 3: (0, 6 + 1, 1 + 1)})
    rest = guesses.read(3)
    assert rest.chances == pytest.approx(moved.chances, rel=1e-3)  # shapes that are unlikely were rest out
    assert rest.log_weights == pytest.approx(moved.log_weights, rel=1e-3)
    assert np.array_equal(rest.n, moved.n)


def test_less_sure_classes_sharpen_the_bound(monkeypatch):
    """Of a leak that shows in few models, where the inner classes say that most tell nothing."""
    rng, found = np.random.default_rng(26), []
    for _ in range(6):
        bits = rng.integers(0, 2, 1000)
        scores = rng.normal(2.5 * bits * (rng.random(1000) < 0.15))
        guesses = classed(scores, bits, *EMPTY)
        with monkeypatch.context() as patch:
            patch.setattr(weighted, "LESS", 99.0)
            unread = weighted_lower_bound(guesses, n_bits=1000, delta=1e-5, level=0.95)
        weighted_lower_bound.cache_clear()
        found.append((unread, weighted_lower_bound(guesses, n_bits=1000, delta=1e-5, level=0.95)))
    unread, read = np.mean(found, axis=0)
    assert read > unread + 0.1


# With δ, by linear programs


def most_refuted(outputs, *, n_bits, eps, delta):
    """sup Pr[refuted] over all (ε, δ)-DP mechanisms with such outputs, each (sizes of classes, refuted wrong counts).

    Mixing over all bit flips, and all orders of bits, changes neither the wrong counts nor what is private. So a law of
    outputs and wrong counts is enough, and all bits together have N δ for the mass that fails.
    """
    all_of_them = ((y, w) for y, (_, refuted) in enumerate(outputs) for w in np.ndindex(refuted.shape))
    place = {key: i for i, key in enumerate(all_of_them)}
    n, grow = len(place), np.exp(eps)
    rows, cols, values, n_rows = [], [], [], 0
    for (y, w), i in place.items():
        for c, size in enumerate(outputs[y][0]):
            for step, pairs, others in ((1, size - w[c], w[c] + 1), (-1, w[c], size - w[c] + 1)):
                if pairs:  # right guesses against the same with one wrong, and the other way round
                    other = place[y, (*w[:c], w[c] + step, *w[c + 1 :])]
                    rows += [n_rows] * 3
                    cols += [i, other, n + n_rows]
                    values += [pairs, -grow * others, -1.0]
                    n_rows += 1
    rows += [n_rows] * n_rows
    cols += range(n, n + n_rows)
    values += [1.0] * n_rows
    gain = [-float(outputs[y][1][w]) for y, w in place]
    found = optimize.linprog(
        np.concatenate([gain, np.zeros(n_rows)]),
        A_ub=sparse.csr_matrix((values, (rows, cols)), shape=(n_rows + 1, n + n_rows)),
        b_ub=np.append(np.zeros(n_rows), n_bits * delta),
        A_eq=sparse.csr_matrix(np.concatenate([np.ones(n), np.zeros(n_rows)])[None]),
        b_eq=[1.0],
    )
    return -found.fun


def allowed_to_be_refuted(f, n_bits, eps, delta):
    """Theorem 6, for every number j: f / (q^j (1 + j (1 − q))) + N δ (1 − q) / (1 + j (1 − q))."""
    q, j = np.exp(eps) / (1 + np.exp(eps)), np.arange(60)
    return (f / q**j + n_bits * delta * (1 - q)) / (1 + j * (1 - q))


def coins_of(sizes, eps):
    return chances(np.indices([size + 1 for size in sizes]).transpose(*range(1, len(sizes) + 1), 0), sizes, eps)


def drawn(rng, sizes, eps, alpha):
    """The highest values of a statistic that falls with every wrong guess, as many as coins reach with at most α."""
    counts = np.indices([size + 1 for size in sizes])
    slopes = rng.exponential(size=(3, len(sizes))) * (rng.random((3, len(sizes))) < 0.8)
    value = special.logsumexp([-np.tensordot(s, counts, 1) + rng.normal() for s in slopes], axis=0)
    mass = coins_of(sizes, eps)
    reached = np.array([mass[value >= v - 1e-12].sum() for v in value.ravel()]).reshape(value.shape)
    return reached <= alpha


def test_no_mechanism_of_three_bits_is_refuted_more_often():
    """All outputs in {0, 1, no guess}³, each with classes, a statistic and a limit of its own; nothing is symmetric."""
    rng, used = np.random.default_rng(4), []
    for _ in range(16):
        eps, delta, alpha = rng.uniform(0, 1.5), 10 ** rng.uniform(-3, -1), rng.uniform(0.2, 0.9)
        made = {}
        for output in product((0, 1, None), repeat=3):
            guessed = [i for i in range(3) if output[i] is not None]
            of = dict(zip(guessed, np.unique(rng.integers(0, 2, len(guessed)), return_inverse=True)[1], strict=True))
            sizes = [list(of.values()).count(c) for c in range(len(set(of.values())))]
            made[output] = of, sizes, drawn(rng, sizes, eps, alpha) if sizes else np.array(False)

        def wins(bits, output, made=made):
            of, sizes, refuted = made[output]
            wrong = [sum(bits[i] != output[i] for i in of if of[i] == c) for c in range(len(sizes))]
            return bool(refuted[tuple(wrong)])

        f = max(coins_of(sizes, eps)[refuted].sum() for _, sizes, refuted in made.values() if sizes)
        most = most_won(3, wins, eps=eps, delta=delta)
        used.append(most / min(allowed_to_be_refuted(f, 3, eps, delta)))
    assert 0.9 < max(used) <= 1 + 1e-8


def test_no_mechanism_of_more_bits_is_refuted_more_often():
    rng, used = np.random.default_rng(5), []
    for _ in range(40):
        eps, delta, alpha = rng.uniform(0, 2), 10 ** rng.uniform(-4, -1.3), rng.uniform(0.02, 0.5)
        tables = [tuple(rng.integers(2, 7, rng.integers(1, 3))) for _ in range(3)]
        outputs = [(sizes, drawn(rng, sizes, eps, alpha)) for sizes in tables]
        f = max(coins_of(sizes, eps)[refuted].sum() for sizes, refuted in outputs)
        most = most_refuted(outputs, n_bits=12, eps=eps, delta=delta)
        used.append(most / min(allowed_to_be_refuted(f, 12, eps, delta)))
    assert 0.7 < max(used) <= 1 + 1e-8


def test_both_programs_say_the_same():
    refuted = np.array([True, True, False])

    def wins(bits, output):
        return output.count(None) == 1 and sum(b != g for b, g in zip(bits, output, strict=True) if g is not None) < 2

    for eps, delta in ((0.5, 0.02), (1.5, 0.1)):
        most = most_refuted([((2,), refuted)], n_bits=3, eps=eps, delta=delta)
        assert most_won(3, wins, eps=eps, delta=delta) == pytest.approx(most, abs=1e-7)


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.002), (0.1, 0.02), (0.4, 0.035)])
def test_the_worst_mechanism_is_refuted_with_at_most_alpha(eps, delta):
    """What `refutes` says of every outcome of three outputs, at prices with and without a margin."""
    n_bits, alpha, outputs = 14, 0.25, []
    for table in (FLAT, {2: (6, 0, 0), ZERO + 3: (6, 0, 0)}, {0: (3, 2, 1), 2: (5, 5, 2), ZERO + 4: (3, 4, 0)}):
        n = columns(table)[0]
        sizes = tuple(int(x) for x in n[n > 0])
        said = [refutes(guesses_of(table, w), eps, n_bits=n_bits, delta=delta, alpha=alpha) for w in outcomes(n)]
        outputs.append((sizes, np.array(said).reshape([size + 1 for size in sizes])))
    assert any(refuted.any() for _, refuted in outputs)
    assert most_refuted(outputs, n_bits=n_bits, eps=eps, delta=delta) <= alpha


@pytest.mark.usefixtures("_few_are_kept")
@pytest.mark.parametrize(("eps", "delta"), [(0.7, 0.002), (0.9, 0.01)])
def test_nor_is_it_where_classes_are_read(eps, delta):
    n_bits, alpha, outputs, stages = 14, 0.25, [], set()
    for table in (INSIDE, {1: (4, 0, 0), ZERO: (4, 1, 1), ZERO + 5: (4, 3, 0)}):
        n = columns(table)[0]
        sizes = tuple(int(x) for x in n[n > 0])
        asked = [guesses_of(table, w) for w in outcomes(n)]
        stages |= {guesses.judged_at(float(special.expit(eps - weighted.LESS))) for guesses in asked}
        said = [refutes(guesses, eps, n_bits=n_bits, delta=delta, alpha=alpha) for guesses in asked]
        outputs.append((sizes, np.array(said).reshape([size + 1 for size in sizes])))
    assert len(stages) > 1
    assert any(refuted.any() for _, refuted in outputs)
    assert most_refuted(outputs, n_bits=n_bits, eps=eps, delta=delta) <= alpha


# With δ, if each bit has an independent model of its own, by enumeration


def most_refuted_of_models(outputs, *, n_bits, eps, delta):
    """sup Pr[refuted] over independent models, one for each bit: outputs are (sizes, side of each class, refuted).

    A model gives its bit away with δ, else its guess is right with q. Who sees all that picks an output and where the
    guesses that are given away stand in it: those of 1 on the side of ones.
    """
    best, wrong = np.zeros((n_bits + 1, n_bits + 1)), 1 / (1 + np.exp(eps))
    for sizes, sides, said in outputs:
        one = [[stats.binom.pmf(np.arange(size + 1), size - k, wrong) for k in range(size + 1)] for size in sizes]
        for aside in product(*(range(size + 1) for size in sizes)):
            given = tuple(sum(k for k, side in zip(aside, sides, strict=True) if side == each) for each in (0, 1))
            mass = np.ones(())
            for c, k in enumerate(aside):
                mass = np.multiply.outer(mass, one[c][k])
            best[given] = max(best[given], mass[said].sum())
    best = np.maximum.accumulate(np.maximum.accumulate(best, axis=0), axis=1)  # fewer may be used
    law = stats.multinomial(n_bits, [delta / 2, delta / 2, 1 - delta])
    numbers = [(up, down) for up, down in product(range(n_bits + 1), repeat=2) if up + down <= n_bits]
    return sum(law.pmf([up, down, n_bits - up - down]) * best[up, down] for up, down in numbers)


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.005), (0.1, 0.05), (0.5, 0.1), (1.0, 0.2)])
def test_the_worst_models_are_refuted_with_at_most_alpha(eps, delta):
    n_bits, alpha = 12, 0.25

    def most(price_for):
        outputs = []
        for table in (FLAT, {2: (6, 0, 0), ZERO + 3: (6, 0, 0)}, {0: (3, 2, 1), 2: (5, 5, 2), ZERO + 4: (4, 4, 0)}):
            n = columns(table)[0]
            at = np.flatnonzero(n)
            asked = {"n_bits": n_bits, "delta": price_for, "alpha": alpha, "independent": True}
            said = [refutes(guesses_of(table, w), eps, **asked) for w in outcomes(n)]
            outputs.append((tuple(n[at]), tuple(at >= ZERO), np.array(said).reshape([size + 1 for size in n[at]])))
        return most_refuted_of_models(outputs, n_bits=n_bits, eps=eps, delta=delta)

    paid = prices(np.array([eps]), n_bits=n_bits, delta=delta, alpha=alpha, independent=True)
    assert (paid[0].aside > 0) == (delta > 0.01)
    assert 0.05 * alpha < most(delta) <= alpha
    if delta > 0.01:  # without the price it would be too much
        assert most(0.0) > alpha


@pytest.mark.parametrize("eps", [0.02, 1.0, 4.0, 9.0])
@pytest.mark.parametrize(("n", "p"), [(30, 0.1), (2000, 5e-4), (2000, 0.02), (10**5, 1e-6), (10**5, 0.005)])
def test_what_more_given_away_than_set_aside_gains(eps, n, p):
    """Against the sum over all numbers."""
    wrong, k = 1 / (1 + np.exp(eps)), np.unique(np.floor(n * p + np.arange(-3, 8) * np.sqrt(n * p)).clip(0))
    given = np.arange(min(n, int(n * p + 60 * np.sqrt(n * p) + 60)) + 1)
    mass = stats.binom.pmf(given, n, p)
    slow = [mass @ -np.expm1(np.maximum(given - each, 0) * np.log1p(-wrong)) for each in k]
    found = _gained(k, np.array([[wrong]]), n, p)[0]
    assert (found >= np.array(slow) * (1 - 1e-9)).all()
    assert found == pytest.approx(slow, rel=1e-4, abs=1e-9)


def test_shapes_are_surer_further_out():
    """What is set aside rests on it."""
    assert (np.diff(of_one_side(), axis=1) >= 0).all()
    assert all((np.diff(of_both_sides()[:, side], axis=1) >= 0).all() for side in (slice(0, ZERO), slice(ZERO, WIDTH)))


def test_what_is_set_aside():
    n, wrong = NONE.copy(), NONE.copy()
    n[[1, 4, 6, ZERO + 2]], wrong[[1, 4, 6, ZERO + 2]] = (9, 5, 4, 8), (1, 2, 3, 8)
    left = Classed.of(n, wrong, NONE, NONE).without(6)
    assert left.n[[1, 4, 6, ZERO + 2]].tolist() == [9, 3, 0, 2]
    assert left.wrong[[1, 4, 6, ZERO + 2]].tolist() == [3, 3, 0, 2]  # of five that are left outside, two move inwards
    whole = Classed.of(n, wrong, NONE, NONE)
    assert whole.without(0) is whole
    assert whole.without(100).n.sum() == 0


def test_a_wrong_guess_further_out_never_says_more():
    """After some were set aside; so those that are given away are best kept outermost."""
    rng = np.random.default_rng(30)
    for _ in range(200):
        n = rng.integers(0, 5, WIDTH)
        wrong, k, chance = rng.binomial(n, 0.3), int(rng.integers(0, 8)), float(special.expit(-rng.uniform(0.05, 3)))
        side = slice(0, ZERO) if rng.random() < 0.5 else slice(ZERO, WIDTH)
        right, bad = (np.flatnonzero(x[side] > 0) + side.start for x in (n - wrong, wrong))
        if not (len(right) and len(bad)) or bad.max() <= right.min():
            continue
        moved = wrong.copy()
        moved[bad.max()] -= 1
        moved[right.min()] += 1  # inwards
        logs = []
        for w in (wrong, moved):
            ratio = _ratio(Classed.of(n, w, NONE, NONE).without(k), chance)
            logs.append(0.0 if ratio is None else float(ratio.log(ratio.wrong[None])[0]))
        assert logs[0] <= logs[1] + 1e-10


def test_the_price_depends_on_numbers_alone():
    for n_bits, delta, alpha in product((20, 2000, 10**5), (0.0, 1e-6, 1e-4, 0.01), (0.01, 0.2)):
        for independent in (False, True):
            eps = np.array([0.02, 1.0, 4.0])
            for e, price in zip(
                eps, prices(eps, n_bits=n_bits, delta=delta, alpha=alpha, independent=independent), strict=True
            ):
                assert price.cost == np.inf or price.cost <= 0.9 * alpha
                assert price.cost <= n_bits * delta / (1 + np.exp(e)) * (1 + 1e-8) or price.cost == np.inf
                assert (price.aside, price.beyond) == (0, 0.0) if delta == 0 else True


# At the truth


@pytest.mark.parametrize("kind", ["ties", "sure and unsure", "no leak", "one side", "some are read"])
def test_seldom_above_the_true_eps(kind):
    """A bound is above ε only if ε is refuted. Files are sorted by their bits, which tells nothing."""
    rng, runs, n, eps, said = np.random.default_rng(6), 150, 300, 0.0 if kind == "no leak" else 1.0, 0
    for _ in range(runs):
        bits = np.sort(rng.integers(0, 2, n))
        answer = np.where(rng.random(n) < special.expit(eps), bits, 1 - bits)
        scores = {
            "ties": answer,
            "sure and unsure": np.where(rng.random(n) < 0.5, 3.0, 0.3) * (answer - 0.5),
            "no leak": rng.normal(size=n),
            "one side": np.where(rng.random(n) < 0.3, 5.0 * answer, rng.normal(size=n)),
            "some are read": np.where(
                rng.random(n) < 0.6, rng.normal(0, 0.5, n), (2 * answer - 1) * rng.uniform(1, 4, n)
            ),
        }[kind]
        fit = rng.permutation(n) < 50
        guesses = classed(scores[~fit], bits[~fit], scores[fit], bits[fit])
        assert kind != "some are read" or guesses.judged_at(float(special.expit(eps - weighted.LESS))) > 0
        said += refutes(guesses, max(eps, 0.02), n_bits=int((~fit).sum()), delta=1e-5, alpha=0.05)
    assert said <= stats.binom.ppf(0.999, runs, 0.05)


# Edges


def bound(scores, bits, fit=EMPTY, delta=1e-5, level=0.95, n_bits=None):
    guesses = classed(np.asarray(scores, float), np.asarray(bits), *fit)
    return weighted_lower_bound(guesses, n_bits=n_bits or len(bits), delta=delta, level=level)


def gaussian(n, seed, mean=1.5):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n)
    return rng.normal(mean * bits, 1.0), bits


def test_equal_scores_show_nothing():
    bits = np.arange(200) % 2
    for value in (0.0, -7.0, 1e300, np.inf, -np.inf):
        assert bound(np.full(200, value), bits) == 0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows_show_nothing(n):
    assert bound(np.arange(n), np.arange(n) % 2) == 0


def test_infinite_scores():
    found = []
    for seed in range(7, 13):
        scores, bits = gaussian(300, seed)
        clipped = np.where(scores > 2.5, np.inf, np.where(scores < -1, -np.inf, scores))
        found.append((bound(clipped, bits), bound(scores, bits)))
    of_clipped, whole = np.mean(found, axis=0)
    assert of_clipped > 0.8 * whole > 0.5
    assert bound(np.where(bits == 1, np.inf, -np.inf), bits) == bound(bits, bits) > 3
    assert bound(np.where(scores > 0.7, np.inf, 0.0), bits) > 0.3  # one quartile is not finite


@pytest.mark.parametrize("scale", [1e-310, 1e-30, 1e30, 1.7e308])
def test_scores_of_any_size(scale):
    bits = np.arange(100) % 2
    assert bound(scale * bits, bits) == bound(bits, bits)
    outlier = np.where(np.arange(100) == 1, 1.7e308, scale * bits)
    assert bound(outlier, bits) > 1


def test_separated_scores_show_nearly_what_all_right_guesses_can():
    bits = np.arange(300) % 2
    most = special.logit(0.05 ** (1 / 300))  # q^300 = 0.05
    assert most - 0.6 < bound(bits + np.linspace(0, 0.1, 300), bits, delta=0.0) <= most


def test_heavy_ties():
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2, 400)
    scores = np.where(rng.random(400) < 0.2, 2.0 * bits - 1, 0.0)  # four fifths say nothing: both quartiles are 0
    assert bound(scores, bits) > 1.5
    assert bound(np.where(rng.random(400) < 0.9, 0.0, scores), 1 - bits) == 0


def test_order_place_and_unit_of_scores_do_not_matter():
    (scores, bits), fit = gaussian(240, 9), gaussian(60, 10)
    order = np.random.default_rng(0).permutation(240)
    found = classed(scores, bits, *fit)
    assert classed(scores[order], bits[order], *fit) == found
    assert classed(8 * scores + 4, bits, 8 * fit[0] + 4, fit[1]) == found


def test_an_attack_has_a_direction():
    scores, bits = gaussian(240, 12)
    assert bound(scores, 1 - bits) == bound(-scores, bits) == 0
    assert bound(-scores, 1 - bits) > 0.5


def test_more_evidence_shows_more():
    scores, bits = gaussian(150, 13)
    by_delta = [bound(scores, bits, delta=delta) for delta in (0.0, 1e-3, 0.5)]
    assert by_delta == sorted(by_delta, reverse=True)
    assert by_delta[0] > 0.5 > by_delta[-1] == 0
    by_bits = [bound(scores, bits, delta=1e-4, n_bits=n) for n in (300, 10**6)]
    assert by_bits == sorted(by_bits, reverse=True)
    by_level = [bound(scores, bits, level=level) for level in (0.8, 0.999)]
    assert by_level == sorted(by_level, reverse=True)


def test_at_a_high_level_points_are_passed_over_where_delta_leaves_nothing():
    """More perfect guesses never show less."""
    found = []
    for n in (100, 200, 400, 800):
        guesses = guesses_of({0: (n // 2, 20, 0), ZERO: (n // 2, 20, 0)})
        found.append(weighted_lower_bound(guesses, n_bits=n, delta=5e-6, level=0.9999))
        assert not refutes(guesses, 9.0, n_bits=n, delta=5e-6, alpha=1e-4)
    assert found == sorted(found)
    assert found[0] > 1.5
    tried = [
        Game(n, 1e-5, alpha, False).may_refute(weighted.STEP) for n, alpha in ((2000, 0.01), (2000, 1e-4), (5, 1e-7))
    ]
    assert tried == [True, True, False]


def test_nothing_is_shown_if_the_first_point_that_is_tried_holds():
    wrong = np.array([n // 3 for n in columns({0: (200, 0, 0), ZERO: (200, 0, 0)})[0]])
    guesses = guesses_of({0: (200, 20, 0), ZERO: (200, 20, 0)}, wrong)
    assert weighted_lower_bound(guesses, n_bits=400, delta=5e-6, level=0.9999) == 0.0


def test_the_bound_is_the_last_that_is_refuted():
    guesses = classed(*gaussian(200, 21), *EMPTY)
    found = weighted_lower_bound(guesses, n_bits=200, delta=1e-5, level=0.95)
    assert found > 0.3
    for eps, want in ((0.1, True), (found, True), (found + 0.1, False)):
        assert refutes(guesses, eps, n_bits=200, delta=1e-5, alpha=1 - 0.95) == want


def test_bad_input():
    for more in ({"delta": 1.0}, {"delta": -0.1}, {"level": 1.0}):
        with pytest.raises(InvalidInput, match="must be"):
            bound([1.0, 2.0], [0, 1], **more)


def test_what_is_drawn_again_is_less_telling_at_lower_quantiles():
    guesses = classed(*gaussian(300, 14), *EMPTY)
    again = [again_at(guesses, 1.0, quantile) for quantile in (0.05, 0.5, 0.95)]
    found = [weighted_lower_bound(g, n_bits=300, delta=0.0, level=0.95) for g in again]
    assert found == sorted(found)
    assert all((g.wrong <= g.n).all() and (g.n == guesses.n).all() for g in again)


def test_places_are_in_units_of_the_spread():
    place = shapes.places(np.random.default_rng(15).normal(3.0, 2.0, 20_000))
    assert np.quantile(place, [0.025, 0.25, 0.75, 0.975]) == pytest.approx([-1.96, -0.674, 0.674, 1.96], abs=0.06)
    assert shapes.classes(np.array([0.0, 0.6, 99.0, np.inf, -0.05, -np.inf])).tolist() == [
        *(0, 5, ZERO - 1, ZERO - 1),
        *(ZERO, 2 * ZERO - 1),
    ]


# Evidence


def table(n_models=120, pairs=1, seed=16, mean=2.0, bits="coins"):
    scores, bit = gaussian(n_models * pairs, seed, mean)
    model, pair = (index.ravel() for index in np.indices((n_models, pairs)))
    return Scores(model, pair, bit, scores, "substitute", bits=bits)


def test_judged_bits_say_nothing_beforehand():
    scores = table()
    flat = classed(scores.score, scores.bit, *EMPTY)
    assert Evidence(judge(scores, SameData(), delta=0.0)).classed == flat
    assert Evidence(judge(scores, Given(0.3), delta=0.0)).classed == flat
    flipped = replace(scores, bit=1 - scores.bit)
    prior = Evidence(judge(flipped, SameData(), delta=0.0)).classed
    assert replace(prior, wrong=flat.wrong) == flat


@pytest.mark.parametrize(("choice", "n_fit"), [(Split(30), 120), (SplitPairs(1), 120)])
def test_rows_that_chose_the_rule_are_judged_too_and_say_nothing_beforehand(choice, n_fit):
    """It needs no rule, so it does not matter who chose one."""
    scores = table(pairs=4)
    evidence = Evidence(judge(scores, choice, delta=0.0))
    assert (len(evidence.judged.fit), evidence.n_bits, evidence.whole.n_bits) == (n_fit, 480 - n_fit, 480)
    assert evidence.whole.classed == classed(scores.score, scores.bit, *EMPTY)
    assert WEIGHTED.rests_on(evidence).tally.n_samples == 480
    alone = Evidence(judge(scores, Given(0.3), delta=0.0))
    assert alone.whole is alone
    bounds = {WEIGHTED.lower_bound(e, delta=1e-5, level=0.95) for e in (evidence, alone, evidence.at(5.0))}
    assert len(bounds) == 1


def test_models_that_failed_while_they_were_to_choose_count_as_bits():
    """One that came too late is not judged either, although it chose."""
    evidence = Evidence(judge(table(), Split(20), delta=0.0), failed_apart=(Failed(3, np.array([1])),))
    assert 3 in evidence.judged.fit.model
    assert 3 not in evidence.whole.scores.model
    assert (evidence.whole.n_bits, len(evidence.whole.scores)) == (120, 119)
    both = replace(evidence, failed=(Failed(3, np.array([0, 1])),))
    assert [f.bits.tolist() for f in both.whole.failed] == [[1, 0, 1]]


def test_a_perfect_attack_on_the_same_rows():
    evidence = Evidence(judge(table(), Split(20), delta=0.0))
    perfect = evidence.perfect.whole.classed
    assert perfect.wrong.sum() == 0
    assert perfect.n.sum() == evidence.whole.classed.n.sum()


# The method


@pytest.mark.parametrize("pairs", [1, 4])
@pytest.mark.parametrize("rule", ["split", "given", "split-pairs", "same-data"])
def test_it_judges_coins(rule, pairs):
    assert default_method(Asked(rule, pairs, by_mu=False)) is WEIGHTED
    assert default_method(Asked(rule, pairs, by_mu=False, coins=False)) is not WEIGHTED
    assert default_method(Asked(rule, pairs, by_mu=True)) is not WEIGHTED
    if rule == "same-data":
        return
    asked = Asked(rule, pairs, by_mu=False, says_which=True)  # which guesses count, if several are pooled
    assert (default_method(asked) is METHODS["pooled"]) == asked.judges_several


@pytest.mark.parametrize(
    ("pairs", "settings"),
    [(1, {}), (4, {"rule": "given", "threshold": 1.0}), (4, {"rule": "split-pairs"}), (1, {"rule": "same-data"})],
)
def test_an_audit_of_coins_rests_on_it(pairs, settings):
    found = eg.audit(table(80, pairs), delta=1e-5, **settings)
    assert found.judge is WEIGHTED
    assert found.verdict.bound.promise == "guaranteed"
    level = found.settings.verdict_level
    assert found.verdict.bound.value == WEIGHTED.lower_bound(found.evidence, delta=1e-5, level=level) > 0


@pytest.mark.parametrize("mu", [{}, {"claimed_mu": 1.0, "claimed_adjacency": "substitute"}])
def test_an_audit_of_other_bits_or_of_mu_does_not(mu):
    assert eg.audit(table(60, bits="coins" if mu else "unknown"), delta=1e-5, **mu).judge is not WEIGHTED


def test_models_that_failed_are_not_guessed_and_their_bits_count():
    whole = Evidence.of_scores(table(pairs=2), 1.0)
    failed = [Failed(120 + i, np.array([i % 2, 1])) for i in range(30)]
    evidence = replace(whole, failed=failed)
    assert evidence.classed == whole.classed
    assert (whole.n_bits, evidence.n_bits) == (240, 300)
    guesses = WEIGHTED.guesses(evidence)
    assert (guesses.n_guesses, guesses.n_bits) == (240, 300)
    assert guesses.n_right == 240 - whole.classed.wrong.sum()
    assert WEIGHTED.failures(whole) is None
    assert WEIGHTED.failures(evidence) == "60 pairs of failed models are not guessed"
    found = WEIGHTED.lower_bound(evidence, delta=1e-3, level=0.95)
    assert found == weighted_lower_bound(whole.classed, n_bits=300, delta=1e-3, level=0.95)
    assert found <= WEIGHTED.lower_bound(whole, delta=1e-3, level=0.95)


def test_what_it_promises():
    evidence = Evidence.of_scores(table(), 1.0)

    def promise(pairs=1, **facts):
        return left(WEIGHTED, Facts(pairs, **facts), evidence, form=WEIGHTED).promise

    assert promise() == promise(4) == promise(4, chosen_on="other pairs") == promise(chosen_on="same data")
    assert promise() == "guaranteed"
    for lost in (
        {"delta_declared": False},
        {"bits": "unknown"},
        {"bits": "dealt"},
        {"lost": Lost("stopped early", stopping=True)},
        {"lost": Lost("another rule", rule=True)},
        {"lost": Lost("another level", verdict=True)},
    ):
        assert promise(**lost) == promise(4, **lost) == "estimate"


def test_a_row_has_half_of_what_is_missed():
    evidence = Evidence(judge(responses(2.0, 200), Split(30), delta=1e-5))
    found = WEIGHTED.found(evidence, delta=1e-5, level=0.9)
    assert found.low == WEIGHTED.lower_bound(evidence, delta=1e-5, level=0.95) > 0
    assert found.high == np.inf
    assert found.low <= WEIGHTED.at_best(evidence, delta=1e-5, level=0.95)
    assert WEIGHTED.detectable(evidence, delta=1e-5, level=0.95) <= found.low
