"""Whether the default judge is the best of the guaranteed bounds for any training, by N, δ and pairs per model.

    python benchmarks/who_judges.py          # μ = 2, some rows: about ten minutes
    python benchmarks/who_judges.py --full   # all rows, μ = 1, 2 and 4, more draws

Scores are N(μ b, 1) with fair bits, N of them over N/m models; means of one-sided 95 % bounds. A sixth of the models,
or of the pairs of one model, chooses the rule of the bounds that need one. The last column is the default over the
best of the others; rows below 0.97 are marked.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Asked
from epsgauge.methods.table import METHODS, default_method
from epsgauge.scores.rules import Split, SplitPairs, default_fit, default_fit_pairs, judge
from epsgauge.scores.table import Scores

LEVEL = 0.95
OTHERS = ("exact", "pooled", "simultaneous", "clopper-pearson", "anytime")
SMALL = 100_000  # guesses, at least so many in all tables of a row
FEWEST = 20  # models, below which bounds of one pair per model show nothing
ALL = (500, 2_000, 10_000, 100_000), (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), (1.0, 2.0, 4.0)
SOME = (500, 6_000, 100_000), (1e-7, 1e-5, 1e-4, 1e-3, 1e-2), (2.0,)


def drawn(n: int, m: int, mu: float, seed: int, delta: float) -> Evidence:
    rng = np.random.default_rng([seed, n])
    bit, at = rng.integers(0, 2, n), np.arange(n)
    scores = Scores(at // m, at % m, bit, rng.normal(mu * bit, 1.0), "substitute", bits="coins")
    chooses = SplitPairs(default_fit_pairs(m), seed=0) if m == n else Split(default_fit(n // m), seed=None)
    return Evidence(judge(scores, chooses, delta=delta), counting=Counting(delta=delta, level=LEVEL))


def bound(name: str, evidence: Evidence, delta: float) -> float:
    method = METHODS[name].form(evidence, by_mu=False)
    if (method.one_pair and len(evidence.scores.models) < FEWEST) or (
        name == "anytime" and not evidence.can_be_watched
    ):
        return 0.0
    return method.lower_bound(evidence, delta=delta, level=LEVEL)


def row(n: int, m: int, delta: float, mu: float, seeds: range) -> tuple[str, float]:
    default = default_method(Asked("split-pairs" if m == n else "split", m, by_mu=False)).name
    tables = [drawn(n, m, mu, seed, delta) for seed in seeds]
    means = {name: float(np.mean([bound(name, each, delta) for each in tables])) for name in (default, *OTHERS)}
    best = max(means[name] for name in OTHERS)
    share = means[default] / best if best > 0 else np.inf
    models = "one model" if m == n else f"m = {m}"
    cells = " | ".join(f"{means[name]:.2f}" for name in (default, *OTHERS))
    mark = " <" if share < 0.97 else ""
    return f"| {n:,} | {delta:.0e} | {models} | {mu:g} | {cells} | {min(share, 9.99):.2f}{mark} |", share


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all rows")
    parser.add_argument("--draws", type=int, help="tables of each row; more where tables are small")
    parser.add_argument("--mu", type=float, nargs="+", help="how far the scores are apart")
    parser.add_argument("--seed", type=int, default=0, help="of the first table")
    chosen = parser.parse_args(arguments)
    numbers, deltas, mus = ALL if chosen.full else SOME
    draws, mus = chosen.draws or (10 if chosen.full else 3), chosen.mu or mus
    print(f"| N | δ | models | μ | default | {' | '.join(OTHERS)} | default / best |\n|{'---|' * 11}")
    lowest = np.inf
    for mu in mus:
        for of in (1, 20, None):
            for n in numbers:
                for delta in deltas:
                    said, share = row(n, of or n, delta, mu, range(chosen.seed, chosen.seed + max(draws, SMALL // n)))
                    lowest = min(lowest, share)
                    print(said, flush=True)
    print(f"lowest: {lowest:.2f}")


if __name__ == "__main__":
    main()
