"""Counts guaranteed violations of claims that hold, in cases that only look like leaks.

`python tools/false_guarantees.py` prints one line per case. Each count should be 0, but for independent rows, where the
level allows some.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import epsgauge as eg
from epsgauge.bounds.surest import surest_lower_bound

LEVEL = 0.95
TWO, IN_TURN = ([0.05, 1.0], [900, 100]), ([0.05, 1.0], [10, 10])  # clipping norms, and parameters of each


def repeated(times, apart, seed):
    """150 rows that leak nothing, each entered so many times as a model of its own, with noise in the scores."""
    claim = {"claimed_eps": 0.01, "claimed_delta": 1e-5, "claimed_adjacency": "add-remove"}
    found = eg.audit(rows(seed, times, apart), delta=1e-5, verdict_level=LEVEL, direction="kept", **claim)
    return found.verdict.kind == "violation"


def rows(seed, times, apart):
    rng = np.random.default_rng(seed)
    bit, score = (np.tile(column, times) for column in (rng.integers(0, 2, 150), rng.normal(size=150)))
    n = 150 * times
    score = score + apart * rng.normal(size=n)
    return eg.Scores(np.arange(n), np.zeros(n, np.int64), bit, score, "add-remove", bits="coins")


def pasted(seed):
    """The same as answers of yes or no, one copy of the table below the other."""
    claim = {"claimed_eps": 0.01, "claimed_delta": 1e-5, "claimed_adjacency": "add-remove"}
    table = rows(seed, 6, 0.0)
    table = replace(table, score=1.0 * (table.score > 0))
    return eg.audit(table, delta=1e-5, verdict_level=LEVEL, direction="kept", **claim).verdict.kind == "violation"


def row_orders(seed):
    """The best of 150 orders of rows with few values, without any leak."""
    rng = np.random.default_rng(seed)
    bit, score = rng.integers(0, 2, 150), rng.normal(size=150).round(0)
    orders = (rng.permutation(150) for _ in range(150))
    return max(surest_lower_bound(score[o], bit[o], delta=1e-5, level=LEVEL).low for o in orders) > 0


def by_group(folder, canaries, parameters, norms, seed):
    """Gradient canaries where parts are clipped to norms of their own: DP-SGD(0.2, 1.5, 16) for every record."""
    privacy = eg.DPSGD(0.2, 1.5, 16)
    path = Path(folder) / f"{canaries}-{parameters}-{norms}-{seed}.csv"
    coins = eg.coins(path, canaries=canaries, kind="gradient", parameters=parameters, privacy=privacy, seed=seed)
    rng, watch = np.random.default_rng(seed), coins.watch()
    deviation = 1.5 * 2**0.5 * np.resize(np.repeat(*norms), parameters)
    for step in range(privacy.steps):
        watch(step, rng.normal(size=parameters) * deviation, max_grad_norm=1.0)
    scores = dict(zip(coins.ids, watch.channels()["llr"].tolist(), strict=True))
    try:
        return eg.audit(coins.scores(scores), direction="kept").verdict.kind == "violation"
    except eg.InvalidInput:  # all canaries that choose the rule are in, or out
        return False


def remembers(seed):
    """Laplace noise with ε = 1 that is drawn once for each data set."""
    rng = np.random.default_rng(seed)

    @functools.lru_cache
    def memoised(data):
        return data + rng.laplace()

    return refuted(memoised, seed)


def keeps(few, jitter, seed):
    """The same with few draws in turn, and some jitter at each call."""
    rng, calls = np.random.default_rng(seed), [0, 0]
    kept = rng.laplace(size=(2, few))

    def in_turn(data):
        calls[data] += 1
        return data + kept[data, calls[data] % few] + jitter * rng.normal()

    return refuted(in_turn, seed)


def follows(seed):
    """Noise that follows the noise before: AR(1) with 0.99."""
    rng, last = np.random.default_rng(seed), [0.0]

    def autoregressive(data):
        last[0] = 0.99 * last[0] + (1 - 0.99**2) ** 0.5 * rng.laplace()
        return data + last[0]

    return refuted(autoregressive, seed)


def refuted(mechanism, seed):
    game = eg.MechanismGame(mechanism, 0, 1, n_samples=1000, seed=seed, regions=("events", "linear"))
    return eg.audit(game, claimed_eps=1.0, verdict_level=LEVEL).verdict.kind == "violation"


def outcomes(seed):
    """Groups cut by whether the guess was right; refused is no violation."""
    rng = np.random.default_rng(seed)
    bit, score = rng.integers(0, 2, 300), rng.normal(size=300)
    group = np.where((score > 0) == bit, "right", "wrong")
    table = eg.Scores(np.arange(300), np.zeros(300, np.int64), bit, score, "add-remove", group=group, bits="coins")
    claim = {"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "add-remove"}
    try:
        found = eg.cohorts(table, direction="kept", delta=1e-5, verdict_level=LEVEL, **claim)
    except eg.InvalidInput:
        return False
    return any(cohort.audit.verdict.kind == "violation" for cohort in found.cohorts)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tables", type=int, default=40, help="of each case")
    n = asked.parse_args().tables
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "independent rows": (functools.partial(repeated, 1, 0.0), n),
            "rows entered six times": (functools.partial(repeated, 6, 0.0), n),
            "six times, 0.001 apart": (functools.partial(repeated, 6, 1e-3), n),
            "six times, yes or no": (pasted, n),
            "best of 150 row orders": (row_orders, n // 4),
            "clipping by group": (functools.partial(by_group, folder, 600, 1000, TWO), n // 8),
            "the same, 30 canaries": (functools.partial(by_group, folder, 30, 10_000, TWO), n // 8),
            "small groups in turn": (functools.partial(by_group, folder, 600, 1000, IN_TURN), n // 8),
            "groups cut by outcome": (outcomes, n // 4),
            "memoised mechanism": (remembers, n // 4),
            "the same with jitter": (functools.partial(keeps, 1, 1e-9), n // 4),
            "five draws in turn": (functools.partial(keeps, 5, 0.0), n // 4),
            "noise that follows": (follows, n // 4),
        }
        for name, (violated, of) in cases.items():
            bad = sum(violated(seed) for seed in range(of))
            print(f"{name:<24} {bad:>3} of {of} guaranteed violations at {100 * LEVEL:g} %", flush=True)


if __name__ == "__main__":
    main()
