"""How well attacks tell members of an overfitted network: the share found at low false positive rates, and the AUC.

`python benchmarks/attacks.py` trains networks without privacy on digits, each with a coin for each of 400 points (in or
out), and scores the same models with every attack. Those that learn do so on 64 models set apart, or on the first 2.
With `--cifar10 DIR` the points are images of CIFAR-10 (the binary version).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from timing import on_one_thread

from epsgauge.attacks.table import ATTACKS
from epsgauge.games.signals import Signals
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
from epsgauge.runner.view import results_of
from epsgauge.stats.arrays import Floats, Ints

APART, FEW, RATES = 64, 2, (0.01, 0.001)
PLAIN, LEARNING = ("loss", "percentile"), ("attack-r", "lira", "lira-offline", "rmia", "quantile", "shadow")


def plan(n_models: int, epochs: int, cifar10: str | None) -> Plan:
    data: Any = {"use": "digits"} if cifar10 is None else {"use": "cifar10", "path": cifar10}
    rate = 0.2 if cifar10 is None else 0.02
    return Plan(
        name="attacks",
        n_models=n_models,
        data=data,
        trainer={"use": "sgd", "model": "mlp", "epochs": epochs, "batch_size": 50, "learning_rate": rate},
        game={
            "train_size": 600,
            "pairs_per_model": 400,
            "pairs": "fixed",
            "base": "resampled",
            "adjacency": "add-remove",
            "challenge": "average",
            "reference_size": 500,
            "population": True,
            "rehearsal_models": APART,
        },
    )


def found_at(rate: float, scores: Floats, bits: Ints) -> float:
    """The share of members above the lowest threshold that so many others at most are at or above."""
    others = np.sort(scores[bits == 0])[::-1]
    threshold = others[int(rate * len(others))]  # above it are at most as many
    return float(np.mean(scores[bits == 1] > threshold))


def auc(scores: Floats, bits: Ints) -> float:
    others, members = np.sort(scores[bits == 0]), scores[bits == 1]
    below, up_to = (np.searchsorted(others, members, side=side) for side in ("left", "right"))
    return float((below + up_to).mean() / 2 / len(others))


def row(label: str, name: str, signals: Signals) -> str:
    scores, bits = ATTACKS[name].score(signals.blind()).ravel(), signals.bits.ravel()
    rates = "".join(f"{found_at(rate, scores, bits):>14.1%}" for rate in RATES)
    return f"{label:<24}{rates}{auc(scores, bits):>10.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=100, help="that are judged")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--cifar10", metavar="DIR", help="the folder with data_batch_1.bin and so on")
    asked = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = run(plan(asked.models, asked.epochs, asked.cifar10), out=Path(folder) / "run", executor=InProcess())
        signals = results_of(done).signals
    seconds, loss = time.perf_counter() - start, signals["loss"][..., 1]
    inside, outside = (float(np.median(loss[signals.bits == bit])) for bit in (1, 0))
    print(f"{len(signals)} models, {signals.bits.shape[1]} points each; {APART} models set apart; {seconds:.0f} s")
    print(f"median loss: {inside:.2g} of members, {outside:.2g} of others\n")
    print(f"{'attack':<24}" + "".join(f"{f'TPR at {rate:.1%}':>14}" for rate in RATES) + f"{'AUC':>10}")
    for name in PLAIN:
        print(row(name, name, signals))
    known = signals.rehearsal
    if known is None:
        raise SystemExit("the run has no models set apart")
    for n in (APART, FEW):
        some = replace(signals, rehearsal=known[np.arange(n)])
        for name in LEARNING:
            print(row(f"{name}, {n} models", name, some))


if __name__ == "__main__":
    on_one_thread()
    main()
