"""Rows that repeat others lose the guarantee; scores that are equal for other reasons do not."""

from itertools import product

import numpy as np
import pytest

from epsgauge.auditing.audit import audit
from epsgauge.methods.repeats import PERIODS, Groups, copied, in_a_row, stretch
from epsgauge.scores.table import Scores

KINDS = {
    "continuous": lambda b, x, rng: x,
    "three digits": lambda b, x, rng: x.round(3),
    "one digit": lambda b, x, rng: x.round(1),
    "yes or no": lambda b, x, rng: 1.0 * (x > 0.5),
    "perfect": lambda b, x, rng: 1.0 * b,
    "perfect, rounded": lambda b, x, rng: (20 * b + x).round(2),
    "counts": lambda b, x, rng: 1.0 * rng.poisson(np.exp(2 + 0.3 * x)),
    "percentile ranks": lambda b, x, rng: np.floor(100 * x.argsort().argsort() / len(x)),
    "ranks in parts": lambda b, x, rng: np.concatenate([1.0 * p.argsort().argsort() for p in np.array_split(x, 10)]),
    "saturated": lambda b, x, rng: np.maximum(x, 0.5),
    "half precision": lambda b, x, rng: x.astype(np.float16).astype(np.float64),
    "no order": lambda b, x, rng: 1.0 * rng.integers(0, len(b) // 3 + 1, len(b)),
}


def drawn(rng, n, mean):
    bit = rng.integers(0, 2, n)
    return bit, rng.normal(mean * bit, 1.0)


def table(bit, score, **said):
    n = len(bit)
    return Scores(np.arange(n), np.zeros(n, np.int64), bit, score, "add-remove", bits="coins", **said)


@pytest.mark.parametrize("kind", KINDS)
def test_independent_rows_keep_their_guarantee(kind):
    rng = np.random.default_rng(1)
    for _ in range(100):
        bit, x = drawn(rng, int(rng.choice([30, 100, 300, 1000])), rng.choice([0.0, 1.0, 4.0]))
        assert copied(np.arange(len(bit)), KINDS[kind](bit, x, rng), bit) is None


@pytest.mark.parametrize("kind", ["continuous", "three digits"])
@pytest.mark.parametrize("mean", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("times", "apart"), [(2, 1e-9), (6, 1e-9), (6, 1e-5), (6, 1e-4), (6, 1e-3)])
def test_copies_are_named(kind, mean, times, apart):
    rng = np.random.default_rng(2)
    for _ in range(20):
        bit, x = drawn(rng, 150 if mean < 3 else 600, mean)
        score = np.tile(KINDS[kind](bit, x, rng), times)
        score += apart * rng.normal(size=len(score))
        assert "repeat another one, score and bit" in copied(np.arange(len(score)), score, np.tile(bit, times))


HARD_TO_SEE = {
    "yes or no": lambda x, k, rng: 1.0 * (x > 0),
    "noise": lambda x, k, rng: x + 0.01 * rng.normal(size=len(x)),
    "another scale": lambda x, k, rng: np.sign(x) * np.abs(x) ** (1 + 0.05 * k),
    "nothing of it": lambda x, k, rng: rng.normal(size=len(x)),
}


@pytest.mark.parametrize("kind", HARD_TO_SEE)
@pytest.mark.parametrize("order", ["tables", "rows", "models"])
def test_copies_are_seen_by_their_bits(kind, order):
    """Whatever the scores: table after table, row after row, or shuffled with the numbers of models kept."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        bit, x = drawn(rng, 150, 0.0)
        score = np.concatenate([HARD_TO_SEE[kind](x, k, rng) for k in range(6)])
        at = np.arange(900).reshape(6, 150).T.ravel() if order == "rows" else np.arange(900)
        model, mixed = np.arange(900), rng.permutation(900) if order == "models" else np.arange(900)
        found = copied(model[mixed], score[at][mixed], np.tile(bit, 6)[at][mixed])
        assert "Enter each model once" in found


ORDERS = {
    "by score": lambda b, x: np.argsort(x),
    "by score in parts": lambda b, x: np.lexsort((x, np.arange(len(b)) // 50)),
    "by bit": lambda b, x: np.argsort(b, kind="stable"),
    "by bit in parts": lambda b, x: np.lexsort((b, np.arange(len(b)) // 40)),
    "in turn": lambda b, x: np.argsort(np.where(b, np.cumsum(b), np.cumsum(1 - b)), kind="stable"),
    "two and one in turn": lambda b, x: np.argsort(np.where(b, np.cumsum(b) / 2, np.cumsum(1 - b)), kind="stable"),
    "by guess": lambda b, x: np.argsort(x > 0.5, kind="stable"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mean", [0.0, 1.0, 2.0, 4.0, 100.0])
def test_rows_in_any_usual_order_keep_their_guarantee(order, mean):
    rng = np.random.default_rng(5)
    for _ in range(20):
        bit, x = drawn(rng, int(rng.choice([100, 300, 1000])), mean)
        at = ORDERS[order](bit, x)
        assert copied(np.arange(len(bit)), x[at], bit[at]) is None


@pytest.mark.parametrize("block", [[0, 1], [0, 0, 1, 1], [0, 1, 1, 0, 1, 0]])
def test_one_half_of_each_block_keeps_the_guarantee(block):
    rng = np.random.default_rng(6)
    for _ in range(20):
        bit = np.concatenate([rng.permutation(block) for _ in range(200)])
        assert copied(np.arange(len(bit)), rng.normal(size=len(bit)), bit) is None


def test_the_chance_of_equal_stretches_and_runs_by_enumeration():
    """Of all bits: as long as the length is twice what α asks for, it is far below; runs alone come close."""
    n = 14
    every = np.array(list(product((0, 1), repeat=n)))
    for unlikely in (0.3, 0.1, 1e-2):
        assert np.mean([in_a_row(bits, unlikely) is not None for bits in every]) <= unlikely
    for unlikely in (64.0, 16.0, 2.0):  # above 1, so that there is something to see
        length = 2 * int(np.ceil(np.log2(n**2 / 2 / unlikely)))
        twice = np.mean([stretch(bits, unlikely) is not None for bits in every])
        assert twice <= n**2 / 2 * 2.0**-length


def test_stretches_by_a_slow_twin():
    rng = np.random.default_rng(7)
    for _ in range(30):
        bit = rng.integers(0, 2, 120)
        if rng.random() < 0.7:
            bit[70:110] = bit[10:50]
        length = 2 * int(np.ceil(np.log2(120**2 / 2 / 1.0)))
        words = {}
        for i in range(120 - length + 1):
            word = bit[i : i + length]
            if all(np.sum(word[p:] != word[:-p]) >= length / 4 for p in range(1, PERIODS + 1)):
                words.setdefault(tuple(word), []).append(i)
        assert (stretch(bit, 1.0) is not None) == any(len(at) > 1 for at in words.values())


def test_some_copies_among_others_are_named():
    bit, x = drawn(np.random.default_rng(3), 1000, 0.5)
    some = np.arange(1200) % 1000
    assert copied(np.arange(1200), x[some], bit[some]) is not None


def test_no_guarantee_is_left_of_rows_entered_six_times():
    """Nothing leaks. As 900 models, 17 of 40 such tables were a violation of ε = 0.01 at 95 %."""
    claim = {"claimed_eps": 0.01, "claimed_delta": 1e-5, "claimed_adjacency": "add-remove"}
    for seed in range(8):
        bit, x = drawn(np.random.default_rng(seed), 150, 0.0)
        found = audit(table(np.tile(bit, 6), np.tile(x, 6)), delta=1e-5, verdict_level=0.95, direction="kept", **claim)
        assert {row.promise for row in found.rows} == {"estimate"}
        assert found.verdict.kind != "violation"
        assert "750 of 900 repeat another one" in found.verdict.sentence
        assert "Enter each model once" in found.verdict.sentence


@pytest.mark.parametrize("sizes", [(2, 1), (2, 2), (3, 2), (2, 2, 1, 2, 3)])
def test_the_chance_of_turned_groups_by_enumeration(sizes):
    """Over all bits, if a higher score never makes b = 1 less likely: the tail is at most what is said."""
    n = sum(sizes)
    score, starts = np.arange(n) * 1.0, np.cumsum((0, *sizes[:-1]))
    of_groups = np.repeat(np.linspace(0.3, 0.9, len(sizes)), sizes)
    for one in (np.full(n, 0.5), of_groups, np.linspace(0.3, 0.9, n), np.linspace(0.0, 1.0, n)):
        said, mass = [], []
        for bits in product((0, 1), repeat=n):
            said.append(Groups(score, np.array(bits), starts).turned())
            mass.append(np.where(bits, one, 1 - one).prod())
        said, mass = np.array(said), np.array(mass)
        assert all(mass[said <= p].sum() <= p + 1e-12 for p in said)
