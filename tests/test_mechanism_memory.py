"""Mechanisms that remember lose the guarantee; those without noise, and honest ones, keep it."""

import functools
import sys
from itertools import product

import numpy as np
import pytest
from command_line import ask

import epsgauge as eg
from epsgauge.sampling.memory import Series, few_mixed
from epsgauge.sampling.outputs import Outputs

HONEST = {
    "laplace": lambda rng, n: rng.laplace(size=n),
    "randomised response": lambda rng, n: 1.0 * (rng.random(n) < 0.7),
    "rarely": lambda rng, n: 1.0 * (rng.random(n) < 0.12),
    "geometric": lambda rng, n: 1.0 * rng.geometric(0.6, n),
    "no number": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    "histogram": lambda rng, n: rng.geometric(0.5, (n, 3)) - rng.geometric(0.5, (n, 3)),
    "rounded": lambda rng, n: rng.laplace(size=n).round(1),
    "float16": lambda rng, n: rng.laplace(size=n).astype(np.float16).astype(np.float64),
    "wide": lambda rng, n: rng.normal(size=(n, 20)),
}


def audited(mechanism, *, until=None, n=1000):
    game = eg.MechanismGame(mechanism, 0, 1, n_samples=n, until=until, regions=("events", "linear"))
    return eg.audit(game, claimed_eps=1.0)


class Following:
    """Noise of Laplace's scale and its share of the noise before: AR(1)."""

    def __init__(self, share):
        self.rng, self.share, self.last = np.random.default_rng(0), share, 0.0

    def __call__(self, data):
        self.last = self.share * self.last + (1 - self.share**2) ** 0.5 * self.rng.laplace()
        return data + self.last


def in_one_call(data, rng, size):
    """Outputs of one call follow each other, and no two are equal."""
    steps, out = rng.laplace(size=size), np.empty(size)
    last = 0.0
    for i in range(size):
        out[i] = last = 0.9 * last + 0.4 * steps[i]
    return data + out


@functools.lru_cache
def memoised(data):
    return data + float(np.random.default_rng().laplace())


def without_noise(data):
    return 3 * data


@pytest.mark.parametrize("until", [None, "violation"])
def test_noise_that_is_kept(until):
    """The same answer in every call. It was a guaranteed ε ≥ 4.7 where 1 is true."""
    memoised.cache_clear()
    found = audited(memoised, until=until)
    assert (found.verdict.kind, found.verdict.promise) == ("violation by an estimate", "estimate")
    assert "all outputs on the same data set are equal: the mechanism remembers its first answer" in (
        found.verdict.sentence
    )


@pytest.mark.parametrize("mechanism", [Following(0.9), Following(0.999), in_one_call])
@pytest.mark.parametrize("until", [None, "violation"])
def test_noise_that_follows_the_noise_before(mechanism, until):
    found = audited(mechanism, until=until)
    assert found.verdict.promise == "estimate"
    assert found.verdict.kind != "violation"
    assert "outputs depend on the ones before: the mechanism keeps a state" in found.verdict.sentence


class Kept:
    """A few draws of Laplace noise for each data set, with some jitter at each call."""

    def __init__(self, few, jitter, in_turn, seed):
        self.rng = np.random.default_rng(seed)
        self.kept = self.rng.laplace(size=(2, few))
        self.jitter, self.in_turn, self.calls = jitter, in_turn, [0, 0]

    def __call__(self, data):
        self.calls[data] += 1
        few = self.kept.shape[1]
        at = self.calls[data] % few if self.in_turn else self.rng.integers(few)
        return data + self.kept[data, at] + self.jitter * self.rng.normal()


@pytest.mark.parametrize(("few", "jitter"), [(1, 1e-9), (1, 1e-3), (5, 0.0), (5, 1e-9), (5, 1e-4)])
@pytest.mark.parametrize("in_turn", [True, False])
def test_answers_near_to_few_that_are_kept(few, jitter, in_turn):
    """It was a guaranteed ε ≥ 5.1 where 1 is true."""
    for seed in range(4):
        found = audited(Kept(few, jitter, in_turn, seed))
        assert found.verdict.promise == "estimate"
        assert f"at one of {2 * few} values, or near it" in found.verdict.sentence


def test_answers_of_yes_or_no_that_come_in_turn():
    """Each is an answer that it may give; the order is not."""
    calls, kept = [0, 0], [[0, 1, 0, 0, 1], [1, 1, 0, 1, 1]]

    def in_turn(data):
        calls[data] += 1
        return kept[data][calls[data] % 5]

    assert "outputs depend on the ones before" in audited(in_turn).verdict.sentence


def with_hardly_any_noise(data):
    return data + 1e-3 * np.random.default_rng().laplace()


def test_hardly_any_noise_is_a_violation():
    found = audited(with_hardly_any_noise)
    assert (found.verdict.kind, found.verdict.promise) == ("violation", "guaranteed")


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 4), (4, 4), (5, 5), (8, 5)])
def test_the_chance_of_few_mixed_pairs_by_enumeration(n, m):
    """Over all orders of n outputs above and the others below."""
    every = [np.array(one, bool) for one in product((0, 1), repeat=2 * m) if sum(one) == n]
    mixed = np.array([np.sum(one[::2] != one[1::2]) for one in every])
    for one, found in zip(every, mixed, strict=True):
        said = few_mixed(one[::2], one[1::2])
        assert said == pytest.approx(np.mean(mixed <= found)) or said == 1.0


@pytest.mark.parametrize("until", [None, "violation"])
def test_without_noise_it_is_a_violation(until):
    """Another process says the same."""
    found = audited(without_noise, until=until)
    assert (found.verdict.kind, found.verdict.promise) == ("violation", "guaranteed")


MODULE = """
import random
first = {}
def kept(data):
    return first.setdefault(data, data + random.random())
def plain(data):
    print("debug")
    return data
"""


def test_functions_of_a_module_by_the_command_line(tmp_path, monkeypatch):
    (tmp_path / "answers_again.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    both = ("--d0", 0, "--d1", 1, "--eps", 1, "--samples", 400, "--regions", "events")
    assert "no noise" in ask("mechanism", "answers_again:kept", *both)
    ask("mechanism", "answers_again:plain", *both, "--fail-on", "violation", code=1)


@pytest.mark.parametrize("kind", HONEST)
def test_independent_outputs_are_not_doubted(kind):
    rng = np.random.default_rng(1)
    for _ in range(100):
        series, bits = Series(), rng.integers(0, 2, 800)
        numbers = HONEST[kind](rng, 800)
        shift = bits if numbers.ndim == 1 else bits[:, None]
        for rows in np.array_split(np.arange(800), 3):
            series.add(Outputs.of((numbers + shift)[rows]), bits[rows])
        assert series.dependent(without_noise, (0, 1)) is None
