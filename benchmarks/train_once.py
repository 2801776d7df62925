"""What one training with gradient canaries shows, by bound, beside the true ε; and how often a bound is too high.

python benchmarks/train_once.py [--runs 120] [--canaries 5000] [--eps 4.08] [--coverage 400]

A linear model is trained by DP-SGD on all records at each step, in NumPy. Half of the canaries, by fair coins, are in
every update. The adversary adds up what it sees in each canary's coordinate, with the gradients of the records in it.
"""

from __future__ import annotations

import argparse

import numpy as np

from epsgauge.bounds.classed import classed
from epsgauge.bounds.gaussian import ranked_mu
from epsgauge.bounds.guesses import Guesses, surest_right
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.ranked import Ranked
from epsgauge.bounds.shapes import places
from epsgauge.bounds.weighed import Weighed, weighed_mu
from epsgauge.bounds.weighted import weighted_lower_bound
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.stats import region
from epsgauge.trainers.watches import GradientCanaries

DELTA, LEVEL, STEPS, RECORDS = 1e-5, 0.95, 10, 50


def trained(n, mu, seed):
    """Bits, and the sum of all updates in each canary's coordinate, of one training."""
    rng = np.random.default_rng(seed)
    size, noise = n + 100, np.sqrt(STEPS) / mu
    bits = rng.integers(0, 2, n)
    x, y = rng.normal(size=(RECORDS, size)), rng.normal(size=RECORDS)
    privacy = DPSGD(sample_rate=1.0, noise_multiplier=float(noise), steps=STEPS)
    watch = GradientCanaries(
        directions=rng.permutation(size)[:n],
        bits=bits,
        adjacency="add-remove",
        privacy=privacy,
        sees="updates",
        seed=np.random.SeedSequence(seed),
    )
    weights = np.zeros(size)
    for step in range(STEPS):
        each = (x @ weights - y)[:, None] * x
        each /= np.maximum(1.0, np.linalg.norm(each, axis=1))[:, None]
        update = watch(step, each.sum(0) + rng.normal(0.0, noise, size), max_grad_norm=1.0)
        weights = weights - 1e-3 * update
    return bits, watch.channels()["alignment"]


def ranked(bits, scores):
    """Whether each guess by the middle of the scores is wrong, from the surest on."""
    return np.diff(surest_right(places(scores), bits, threshold=0.0)) == 0


def bounds_of(bits, scores):
    wrong, n = ranked(bits, scores), len(bits)
    right = np.concatenate([[0], np.cumsum(~wrong)])

    def eps_of(mu):
        return float(region.gaussian_eps(mu, delta=DELTA))

    def steinke(r):
        return pooled_bound(Guesses(int(right[r]), r, n), delta=DELTA, level=LEVEL, term="published").eps

    of_mu = round(10 * n**0.4)
    none = scores[:0], bits[:0]
    return {
        "gradients, by rank (this library)": eps_of(ranked_mu(Ranked.of(wrong), level=LEVEL)),
        "one run, claim of μ, any canaries (this library)": eps_of(
            weighed_mu(Weighed.of(Guesses(int(right[of_mu]), of_mu, n), right), level=LEVEL)
        ),
        "weighted, any canaries (this library)": weighted_lower_bound(
            classed(scores, bits, *none), n_bits=n, delta=DELTA, level=LEVEL
        ),
        "Steinke et al. 2023, all guesses": steinke(n),
        "Steinke et al. 2023, the 2√N surest": steinke(round(2 * np.sqrt(n))),
    }


def table(n, eps, runs):
    mu = float(region.gaussian_mu(eps, delta=DELTA))
    found = [bounds_of(*trained(n, mu, seed)) for seed in range(runs)]
    print(f"ε {eps} at δ = {DELTA:g} (μ = {mu:.3f}), {n} canaries of one training, level {LEVEL}, {runs} trainings\n")
    print("| bound | median | 10 to 90 % of trainings | above the true ε |\n|---|---|---|---|")
    for name in found[0]:
        values = np.array([each[name] for each in found])
        low, high = np.quantile(values, [0.1, 0.9])
        print(f"| {name} | {np.median(values):.2f} | {low:.2f} to {high:.2f} | {np.mean(values > eps):.0%} |")


def coverage(runs, n=300, eps=2.0, level=0.9):
    mu = float(region.gaussian_mu(eps, delta=DELTA))
    above = sum(ranked_mu(Ranked.of(ranked(*trained(n, mu, 10_000 + i))), level=level) > mu for i in range(runs))
    print(f"\n{n} canaries at ε {eps}, level {level}: above the truth in {above} of {runs} trainings")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--canaries", type=int, default=5000)
    parser.add_argument("--eps", type=float, default=4.08)
    parser.add_argument("--coverage", type=int, default=400)
    asked = parser.parse_args()
    table(asked.canaries, asked.eps, asked.runs)
    if asked.coverage:
        coverage(asked.coverage)
