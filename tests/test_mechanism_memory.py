"""Mechanisms that remember lose the guarantee; those without noise, and honest ones, keep it."""

import functools
import sys

import numpy as np
import pytest
from command_line import ask

import epsgauge as eg
from epsgauge.sampling.memory import Series
from epsgauge.sampling.outputs import Outputs

HONEST = {
    "laplace": lambda rng, n: rng.laplace(size=n),
    "randomised response": lambda rng, n: 1.0 * (rng.random(n) < 0.7),
    "rarely": lambda rng, n: 1.0 * (rng.random(n) < 0.12),
    "geometric": lambda rng, n: 1.0 * rng.geometric(0.6, n),
    "no number": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
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
