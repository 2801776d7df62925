"""How mechanisms are called, and what they may return: copies, order, seeds, errors, and outputs of any kind."""

import itertools
import json
import math
import sys
import threading
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from command_line import ask

import epsgauge as eg
from epsgauge.bounds.foretold import Foretold, log_wealth
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.curves import Curve
from epsgauge.sampling.calls import _alike
from epsgauge.sampling.copies import copier, own
from epsgauge.sampling.game import MechanismGame
from epsgauge.sampling.outputs import Outputs

ANY = Curve.point(math.inf, 0.0)


def quick(mechanism, d0=0, d1=1, *, n=400, regions=("events",), eps=1.0, **more):
    return eg.audit(MechanismGame(mechanism, d0, d1, n_samples=n, regions=regions, **more), claimed_eps=eps)


def coarse(x):
    return float(np.round(x * 4) / 4)


# Inputs


def test_no_call_sees_what_another_one_changed():
    """`adds` is a random walk if it keeps its input, and `pops` runs out of records."""

    def adds(data, rng):
        data += rng.integers(0, 2, len(data))
        return data

    def pops(data, rng):
        return coarse(data.pop() + rng.laplace(0, 0.1)) if data else 0.0

    d0, d1 = np.zeros(2, int), np.array([0, 1])
    sample = MechanismGame(adds, d0, d1, n_samples=400).draw(200, part=(1,))
    assert sample.outputs.numbers.max() <= 2
    assert (d0.tolist(), d1.tolist()) == ([0, 0], [0, 1])
    assert quick(pops, [0.0] * 3, [0.0, 0.0, 1.0]).verdict.kind == "violation"


@pytest.mark.parametrize("data", [[1, 2], [[1], [2]], {"a": [1]}, {1, 2}, np.zeros(3), np.array([[1], None], object)])
def test_a_copy_shares_nothing(data):
    for copied in (copier(data)(), own(data)):
        assert copied is not data
        assert repr(copied) == repr(data)
    inner = [one for one in (data.values() if isinstance(data, dict) else data) if isinstance(one, list)]
    again = copier(data)()
    new = [one for one in (again.values() if isinstance(again, dict) else again) if isinstance(one, list)]
    assert not any(one is other for one, other in zip(inner, new, strict=True))


def test_what_cannot_change_or_be_copied_is_given_as_it_is():
    for data in (1, 2.5, "text", (1, (2, 3)), None, np.float64(1), threading.Lock()):
        assert copier(data)() is data


@pytest.mark.parametrize("data", [iter([0, 1]), (x for x in [0]), map(int, "01"), itertools.count()])
def test_inputs_that_can_be_read_once_are_refused(data):
    with pytest.raises(InvalidInput, match=r"d1 must be data that every call can read anew.* Use list\(d1\)"):
        MechanismGame(lambda data: 0, [0, 1], data)


@pytest.mark.parametrize(
    ("d0", "d1", "adjacency", "said"),
    [
        ([0, 0], [0, 0, 1], "substitute", "d0 has 2 and d1 3 records, but adjacency is substitute"),
        ([0, 0], [0, 0, 1], "label-only", "d0 has 2 and d1 3 records, but adjacency is label-only"),
        (np.zeros(2), np.ones(2), "add-remove", "d0 has 2 and d1 2 records, but adjacency is add-remove"),
        ([0, 0], [0, 0, 1], "add-remove", None),
        ([0, 0], [0, 1], "substitute", None),
        (0, 1, "add-remove", None),
        ("a", "ab", "substitute", None),
    ],
)
def test_lengths_that_do_not_fit_the_adjacency_are_said(d0, d1, adjacency, said):
    found = quick(lambda data, rng: int(rng.integers(0, 2)), d0, d1, adjacency=adjacency)
    assert [text for text in found.warnings if "records, but adjacency" in text] == list(found.sampled.cautions)
    assert found.sampled.cautions[0].startswith(said) if said else not found.sampled.cautions


def test_answers_of_queries_have_no_records():
    game = MechanismGame(lambda data, rng: int(rng.integers(0, 2)), pairs="answers:2", adjacency="add-remove")
    assert game.cautions(0) == ()


# Calls


def test_the_order_of_calls_does_not_say_the_bit():
    """Calls with `size` are many, and which data set a call is for is drawn from the seed."""
    called = []

    def noted(data, rng, size):
        called.append(data)
        return rng.integers(0, 2, size)

    game = MechanismGame(noted, 0, 1, n_samples=400)
    orders = []
    for seed in (0, 0, 1):
        called.clear()
        MechanismGame(noted, 0, 1, n_samples=400, seed=seed)
        before = len(called)
        MechanismGame(noted, 0, 1, n_samples=400, seed=seed).draw(300, part=(1,))
        orders.append(called[2 * before :])
    assert orders[0] == orders[1] != orders[2]
    assert len(orders[0]) == 32
    assert sorted(orders[0]) == [0] * 16 + [1] * 16
    assert 0 < sum(orders[0][:16]) < 16
    assert game.call.repeats


def test_a_state_per_call_is_not_taken_for_the_bit():
    """ε = 0 in both cases: the parity of the call's number, alone or added to noise."""

    def parity(noise):
        number = itertools.count()
        return lambda data, rng, size: next(number) % 2 + noise * rng.normal(size=size)

    for noise in (0.0, 1.0):
        for seed in range(3):
            found = quick(parity(noise), n=1000, seed=seed, regions=("events", "linear"))
            assert found.verdict.kind != "violation"
            assert "noise is not" in found.sampled.seeded
            assert "called once per sample" in found.sampled.cautions[0]


@pytest.mark.parametrize(
    "shared",
    [
        lambda data, rng, size: np.full(size, data + rng.laplace()),
        lambda data, rng, size: np.full(size, rng.random() < 0.7),
        lambda data, rng, size: data + np.repeat(rng.laplace(size=size), 5)[:size],
        lambda data, size: ["ab"[int(np.random.random() < 0.5)]] * size,  # noqa: NPY002
    ],
)
def test_noise_that_outputs_of_a_call_share_is_refused(shared):
    with pytest.raises(InvalidInput, match=r"must return independent outputs.* they share noise or a state\. Draw"):
        MechanismGame(shared, 0, 1)


def test_independent_outputs_are_not_taken_for_shared_noise():
    rng = np.random.default_rng(0)
    for law in ([0.5, 0.5], [0.99, 0.01], [1.0], [0.3] + [0.007] * 100, [1e-3] * 1000):
        for _ in range(40):
            assert not _alike(rng.choice(len(law), (16, 16), p=law).astype(np.uint64))


def test_what_is_said_of_the_seed_is_what_was_seen():
    from_system = np.random.default_rng()

    def ignores(data, rng):
        return coarse(data + np.random.laplace())  # noqa: NPY002

    def elsewhere(data, rng):
        return coarse(data + from_system.laplace())

    def without(data):
        return coarse(data + from_system.laplace())

    one, two = (quick(ignores) for _ in range(2))
    assert one.sampled.seeded.startswith("bits and noise are seeded")
    assert one.verdict.bound.value == two.verdict.bound.value
    found = quick(elsewhere)
    assert found.sampled.seeded.startswith("bits are seeded, noise is not")
    assert any("takes rng, but returned other outputs with the same rng" in text for text in found.warnings)
    found = quick(without)
    assert found.sampled.seeded.startswith("bits are seeded, noise is not")
    assert not found.sampled.cautions
    with pytest.raises(InvalidInput, match="returns other outputs with the same rng"):
        MechanismGame(elsewhere, 0, 1, sensitivity=1.0)


def test_a_reused_buffer_is_read_at_each_call():
    buffer = np.zeros(1)

    def alias(data, rng):
        buffer[0] = coarse(data + 0.05 * rng.laplace())
        return buffer

    assert quick(alias).verdict.kind == "violation"


# Errors


def leaves(data, rng):
    if rng.random() < 0.1:
        sys.exit(0)
    return coarse(data + rng.laplace(0, 0.05))


def test_an_exit_is_an_output():
    found = quick(leaves)
    assert found.verdict.kind == "violation"
    assert 10 < found.sampled.raised < 100
    with pytest.raises(InvalidInput, match="the mechanism on d0 failed with SystemExit"):
        MechanismGame(lambda data: sys.exit(0), 0, 1)


def test_errors_of_the_search_for_a_pair_are_counted():
    def fails(data, rng):
        if rng.random() < 0.5:
            raise ValueError
        return 0

    for until in (None, "violation"):
        game = MechanismGame(fails, pairs=[(0, 1), (1, 0)], n_samples=400, regions=("events",), until=until)
        found = eg.audit(game, claimed_eps=1.0).sampled
        assert found.drawn == 2400
        assert 0.4 < found.raised / found.drawn < 0.6


# Outputs


class Hidden:
    """Has no repr of its own."""


class Silent:
    def __repr__(self):
        raise RuntimeError("no repr")


async def awaited(data):
    return data


@pytest.mark.parametrize(
    "output",
    [Hidden, lambda: [Hidden()], lambda: {Hidden(): 1}, lambda: (x for x in [1]), lambda: itertools.repeat(1)],
)
def test_outputs_that_nobody_can_see_are_refused(output):
    for mechanism in (lambda data: output(), lambda data, size: [output() for _ in range(size)]):
        with pytest.raises(InvalidInput, match=r"an output must be a number, a text.* but got an object of type"):
            MechanismGame(mechanism, 0, 1)


def test_coroutines_are_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="but got an object of type coroutine"):
            MechanismGame(awaited, 0, 1)


def test_an_output_that_cannot_be_read_is_one_sentence():
    def itself(data):
        out = [1.0]
        out.append(out)
        return out

    with pytest.raises(InvalidInput, match="one holds itself or is nested too deeply"):
        MechanismGame(itself, 0, 1)
    with pytest.raises(InvalidInput, match=r"the repr of Silent failed with RuntimeError\('no repr'\)"):
        MechanismGame(lambda data: Silent(), 0, 1)


def test_lists_of_any_length_with_size():
    def ragged(data, rng, size):
        return [[data] * n for n in rng.integers(0, 3, size)]

    assert quick(ragged).verdict.kind in ("violation", "cannot decide", "no objection")


@pytest.mark.parametrize("empty", [lambda data: [], lambda data, size: np.zeros((size, 0)), lambda data: {}])
def test_outputs_may_all_be_empty(empty):
    for until in (None, "violation"):
        game = MechanismGame(empty, 0, 1, n_samples=400, until=until)
        assert eg.audit(game, claimed_eps=1.0).verdict.kind != "violation"


@pytest.mark.parametrize(
    "whole",
    [
        lambda data, rng: 2**60 + data,
        lambda data, rng: [2**60 + data, 0.5],
        lambda data, rng: 2**60 + data if rng.random() < 0.9 else 0.5,
        lambda data, rng: 2**20000 + data,
        lambda data, rng, size: np.full(size, 2**63 + data, np.uint64),
        lambda data, rng, size: np.full(size, -(2**62) - data),
    ],
)
def test_whole_numbers_keep_all_digits(whole):
    assert quick(whole).verdict.kind in ("violation", "violation by an estimate")  # without noise, or it remembers


def test_a_whole_number_has_one_key_however_it_comes():
    one = 2**60 + 1
    keys = [
        Outputs.of(found).keys[0, 0]
        for found in ([one], [one, 0.5], [one, "a"], np.array([one]), np.array([one], np.uint64), [np.int64(one)])
    ]
    assert len(set(keys)) == 1
    assert keys[0] != Outputs.of([2**60]).keys[0, 0] == Outputs.of([2.0**60, "a"]).keys[0, 0]
    assert Outputs.of([2**63 - 1]).keys[0, 0] != Outputs.of([2.0**63]).keys[0, 0]


def test_fractions_and_decimals_are_numbers():
    found = Outputs.of([Fraction(1, 3), Decimal("0.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999"), 0.5])
    assert found.numbers[:2, 0].tolist() == [1 / 3, 0.5]
    assert np.isnan(found.numbers[2:4, 0]).all()
    assert found.keys[1, 0] == found.keys[5, 0]
    assert found.keys[0, 0] != Outputs.of([1 / 3]).keys[0, 0]  # which is not a third
    exact = quick(lambda data, rng: Fraction(int(1000 * (data + rng.laplace())), 1000), 0, 9, regions=("linear",))
    assert exact.verdict.kind == "violation"


def test_sets_are_told_by_what_they_hold():
    assert Outputs.of([{0, 8}]).whole == Outputs.of([{8, 0}]).whole != Outputs.of([{0, 1}]).whole


# Large ε, and the command


def test_a_claim_beyond_what_floats_hold_is_judged_without_warnings():
    def response(data, rng, size):
        return np.where(rng.random(size) < 0.7, data, 1 - data)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for until in (None, "violation"):
            assert quick(response, eps=800.0, until=until).verdict.kind != "violation"
        seen = Foretold(np.array([[3.0], [-2.0]]), np.array([1, 1]), np.ones(1), np.array([1, 2]))
        assert log_wealth(seen, 800.0, 0.1).tolist() == pytest.approx([0.0, 0.0])


def test_bets_are_what_their_formula_says():
    """Of a right and a wrong guess: a share (p − q)/q of the wealth is bet, and e^ε times that is lost."""
    eps, odds = 0.5, np.array([[1.2], [-0.9]])
    q, p = (1 / (1 + math.exp(-x)) for x in (eps, 1.2))
    first = [1 + part * (p - q) / q for part in (1.0, 0.5, 0.2)]
    p = 1 / (1 + math.exp(-0.9))
    both = [won * (1 - part * math.exp(eps) * (p - q) / q) for won, part in zip(first, (1.0, 0.5, 0.2), strict=True)]
    seen = Foretold(odds, np.array([1, 1]), np.ones(1), np.array([1, 2]))
    assert np.exp(log_wealth(seen, eps, 0.0)) == pytest.approx([sum(first) / 3, sum(both) / 3])


PRINTS = """
import sys
print("loaded")
def noisy(data, rng):
    print("debug", end=" ")
    return round(data + rng.laplace(), 1)
def leaves(data, rng):
    if rng.random() < 0.1:
        sys.exit(0)
    return round(data + rng.laplace(0, 0.05), 1)
"""


def test_what_a_mechanism_prints_or_how_it_leaves_is_no_part_of_the_answer(tmp_path, monkeypatch):
    (tmp_path / "prints_much.py").write_text(PRINTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    both = ("--d0", 0, "--d1", 1, "--eps", 1, "--samples", 400, "--regions", "events", "--json")
    assert json.loads(ask("mechanism", "prints_much:noisy", *both))["sampled"]["drawn"] == 400
    found = json.loads(ask("mechanism", "prints_much:leaves", *both, "--fail-on", "violation", code=1))
    assert found["verdict"]["kind"] == "violation"
