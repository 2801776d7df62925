"""Label DP in the setting of Malek et al. 2021: many records per model with one of two wrong labels.

    python benchmarks/label_dp.py [--models 20] [--pairs 200]

Each row is a trainer on digits. Beside our bounds stands the paper's own estimate, computed as its authors do: a guess
is the label with the higher confidence, guesses below a confidence are left out, the best of seven such thresholds
counts, and its interval of 95 % takes guesses about one model as independent (memorization_attack/attack.py of
facebookresearch/label_dp_antipodes).
"""

from __future__ import annotations

import argparse
import math
import tempfile
from typing import Any

import numpy as np
from timing import on_one_thread

import epsgauge as eg
from epsgauge.runner.executors import InProcess
from epsgauge.stats.arrays import Floats

NEAREST = {"estimator": "sklearn.neighbors:KNeighborsClassifier", "settings": {"n_neighbors": 1}}
BAYES = {"estimator": "sklearn.naive_bayes:GaussianNB", "settings": {"var_smoothing": 0.05}}
TRAINERS: dict[str, dict[str, Any]] = {
    "nearest neighbour, ε = 1": {"use": "label-response", "eps": 1.0, "n_classes": 10, **NEAREST},
    "nearest neighbour, ε = 3": {"use": "label-response", "eps": 3.0, "n_classes": 10, **NEAREST},
    "logistic regression, ε = 3": {"use": "label-response", "eps": 3.0, "n_classes": 10, "settings": {"C": 100.0}},
    "label PATE, ε = 3.5": {"use": "label-pate", "n_classes": 10, "scale": 17.0, "n_teachers": 20, **BAYES},
}
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def authors(trained: Floats, other: Floats) -> tuple[float, float]:
    """The paper's interval of ε: confidences of the label that was trained on, and of the other one."""
    best = (0.0, 0.0)
    for least in CONFIDENCES:
        guessed = np.maximum(trained, other) >= least
        n = int(guessed.sum())
        if not n:
            continue
        right = (trained > other)[guessed].astype(np.float64)
        share = max(right.mean(), 1 - right.mean())
        half = 1.96 * right.std() / math.sqrt(n)
        low, high = max(0.5, share - half), min(1.0, share + half)
        if share == 1:
            low = min(low, 1 - 3 / n) if n > 50 else 0.5
        best = max(best, (_eps(low), _eps(high)))
    return best


def _eps(share: float) -> float:
    return 0.0 if share <= 0.5 else math.inf if share == 1 else math.log(share / (1 - share))


def row(name: str, trainer: dict[str, Any], n_models: int, pairs: int) -> str:
    plan = eg.Plan(
        name=name,
        n_models=n_models,
        data="digits",
        trainer=trainer,
        game={
            "train_size": 500,
            "pairs_per_model": pairs,
            "reference_size": 50,
            "adjacency": "label-only",
            "control_models": 0,
        },
        audit={"attack": "difference", "delta": 1e-5},
    )
    with tempfile.TemporaryDirectory() as folder:
        run = eg.run(plan, out=f"{folder}/run", executor=InProcess())
        audit = eg.audit(run)
        signals = run.signals()
        confidence = np.exp(-signals["loss"])  # [model, pair, side]
        bits = signals.bits
    sides = [np.take_along_axis(confidence, b[..., None], axis=2).ravel() for b in (bits, 1 - bits)]
    low, high = authors(*sides)
    bayes = audit["bayes"]
    return (
        f"| {name} | {audit.claim.eps:.2f} | ≥ {audit.verdict.bound.value:.2f} ({audit.verdict.promise}) "
        f"| [{bayes.low:.2f}, {bayes.high:.2f}] ({bayes.promise}) | [{low:.2f}, {high:.2f}] |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=200)
    on_one_thread()
    given = parser.parse_args()
    print(f"{given.models} models, {given.pairs} pairs each, δ = 1e-5, label-only")
    print(
        "| trainer | promised ε | bound at 99 % | Bayesian at 90 % | as the paper computes it |\n|---|---|---|---|---|"
    )
    for name, trainer in TRAINERS.items():
        print(row(name, trainer, given.models, given.pairs), flush=True)


if __name__ == "__main__":
    main()
