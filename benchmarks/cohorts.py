"""Cohorts whose ε is known: how often a bound of any group is above it, and cohorts of real models.

    python benchmarks/cohorts.py [--runs 200]

Groups are attacked by randomised response, whose ε is exact. A run is wrong if the bound of any group is above its ε.
With levels that are divided this may happen in 1 run of 10 here; with each at its own level it happens in more. The
second table has digits by class: models without privacy on 200 digits, 20 of which have a coin each. The third has a
table of patients (scikit-learn's diabetes) by sex: models without privacy on 150 of them, 40 of which have a coin each,
say whether the disease goes on faster than the median.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
from rich.console import Console
from scipy.stats import binomtest
from timing import on_one_thread

import epsgauge as eg
from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.cohorts import grouped
from epsgauge.data.digits import digits
from epsgauge.reporting.cohorts import show
from epsgauge.runner.executors import InProcess

LEVEL = 0.9  # of all bounds together
EPS = (0.0, 0.5, 1.0, 2.0)  # of the groups
ROWS = 240  # of a group
DIGITS = {
    "name": "digits by class",
    "n_models": 400,
    "data": "digits",
    "trainer": {
        "use": "sgd",
        "model": "mlp",
        "epochs": 60,
        "batch_size": 50,
        "learning_rate": 0.5,
        "engine": "stacked",
    },
    "game": {
        "train_size": 200,
        "pairs_per_model": 20,
        "pairs": "fixed",
        "challenge": "average",
        "adjacency": "add-remove",
        "control_models": 0,
    },
    "audit": {"attack": "lira"},
}
PATIENTS = {
    "name": "patients by sex",
    "n_models": 400,
    "trainer": {**DIGITS["trainer"], "epochs": 200},
    "game": {**DIGITS["game"], "train_size": 150, "pairs_per_model": 40, "reference_size": 100},
    "audit": DIGITS["audit"],
}


def table(rng: np.random.Generator) -> eg.Scores:
    """Randomised response: the score is the bit with probability e^ε / (1 + e^ε)."""
    group = np.repeat(np.arange(len(EPS)), ROWS)
    bits = rng.integers(0, 2, len(group))
    eps = np.array(EPS)[group]
    kept = rng.random(len(group)) < np.exp(eps) / (1 + np.exp(eps))
    rows = np.arange(len(group))
    return eg.Scores(rows, 0 * rows, bits, np.where(kept, bits, 1 - bits), "substitute", group=group, bits="coins")


def simulated(runs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = {"verdict_level": LEVEL, "level": LEVEL}
    settings = {"rule": "given", "threshold": 0.5, "delta": 1e-6, "verdict_method": "exact", **levels}
    wrong = {"divided": 0, "each at its own level": 0, "advantages outside their limits": 0}
    for _ in range(runs):
        scores = table(rng)
        found = eg.cohorts(scores, **settings)
        bounds = [cohort.audit.verdict.bound.value for cohort in found.cohorts]
        alone = [eg.audit(scores[scores.group == str(i)], **settings).verdict.bound.value for i in range(len(EPS))]
        true = [(np.exp(eps) - 1) / (np.exp(eps) + 1) for eps in EPS]
        wrong["divided"] += any(bound > eps for bound, eps in zip(bounds, EPS, strict=True))
        wrong["each at its own level"] += any(bound > eps for bound, eps in zip(alone, EPS, strict=True))
        wrong["advantages outside their limits"] += any(
            not cohort.low <= advantage <= cohort.high for cohort, advantage in zip(found.cohorts, true, strict=True)
        )
    print(f"{runs} runs of {len(EPS)} groups with ε = {', '.join(map(str, EPS))}, level {LEVEL:g}, seed {seed}")
    for name, n in wrong.items():
        ends = binomtest(n, runs).proportion_ci()
        print(f"{name:34}{n / runs:7.3f} of runs are wrong [{ends.low:.3f}, {ends.high:.3f}]; allowed {1 - LEVEL:.1f}")


def patients() -> tuple[np.ndarray, np.ndarray]:
    """Ten numbers of each of 442 patients, and whether the disease went on faster than the median."""
    from sklearn.datasets import load_diabetes

    x, target = load_diabetes(return_X_y=True)
    return (x / x.std(axis=0)).astype(np.float32), (target > np.median(target)).astype(np.int64)


def by_group(title: str, plan: eg.Plan, groups: list[str]) -> None:
    """LiRA against models that know their training set by heart, by the group of the point that is in or out."""
    with tempfile.TemporaryDirectory() as folder:
        signals = eg.run(plan, out=folder, executor=InProcess()).signals()
    scores = grouped(ATTACKS["lira"].scores(signals), signals.pairs, dict(enumerate(groups)))
    print(f"\n{title}, no privacy, LiRA")
    show(eg.cohorts(scores), Console(width=100, markup=False, highlight=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    simulated(args.runs, args.seed)
    by_group("Digits by class", eg.Plan(**DIGITS), [str(label) for label in digits()[1].tolist()])
    sexes = ["one sex" if value > 0 else "the other" for value in patients()[0][:, 1]]  # the data do not say which
    by_group("Patients by sex", eg.Plan(data=patients, **PATIENTS), sexes)


if __name__ == "__main__":
    on_one_thread()
    main()
