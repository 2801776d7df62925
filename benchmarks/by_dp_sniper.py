"""DP-Sniper (Bichsel et al. 2021) on a mechanism of `mechanisms.py`, by its own code, which must be on the path.

Its classifiers are a logistic regression and a small network; each is trained for both orders of the inputs. The best
of the four on some samples is judged on others, and all of them together are as many as an audit of ours draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class _Mechanism:
    """As DP-Sniper calls one: the first output says how many numbers it has."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.rng = function, np.random.default_rng(0)

    def m(self, a: Any, n_samples: int = 1) -> np.ndarray:
        found = np.asarray(self.function(a, self.rng, n_samples), dtype=np.float64)
        return found if found.ndim > 1 else found[:, None]


def lower_bound(function: Callable[..., Any], d0: Any, d1: Any, *, samples: int, level: float, c: float) -> float:
    """DP-Sniper's bound of ε at δ = 0; half of the samples train and choose, the others are judged.

    `c` is the least probability of a region. Its default, 0.01, is meant for ten million samples.
    """
    import torch
    from dpsniper.attack.dpsniper import DPSniper
    from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory, MultiLayerPerceptronFactory
    from dpsniper.classifiers.torch_optimizer_factory import AdamOptimizerFactory, SGDOptimizerFactory
    from dpsniper.probability.estimators import EpsEstimator, PrEstimator
    from dpsniper.search.ddconfig import DDConfig

    torch.manual_seed(0)
    torch.set_num_threads(1)
    mechanism, part = _Mechanism(function), samples // 40
    sizes = {"n_train": part, "n": part, "n_check": part, "n_final": samples // 4}
    config = DDConfig(**sizes, c=c, n_processes=1, confidence=level)
    wide, found = mechanism.m(d0, 2).shape[1], []
    for a1, a2 in ((d0, d1), (d1, d0)):
        for factory in (
            LogisticRegressionFactory(in_dimensions=wide, optimizer_factory=SGDOptimizerFactory()),
            MultiLayerPerceptronFactory(in_dimensions=wide, optimizer_factory=AdamOptimizerFactory()),
        ):
            attack = DPSniper(mechanism, factory, config).best_attack(a1, a2)
            seen, _ = EpsEstimator(PrEstimator(mechanism, config.n_check, config)).compute_eps_estimate(a1, a2, attack)
            found.append((seen, (a1, a2, attack)))
    _, best = max(found, key=lambda one: one[0])
    return float(EpsEstimator(PrEstimator(mechanism, config.n_final, config)).compute_eps_estimate(*best)[1])


def figure(row: Any, *, samples: int, level: float) -> str:
    """Its bounds with c = 0.01 and with c = 0.1; it is for δ = 0."""
    if row.delta or row.curve:
        return ""
    found = [lower_bound(row.mechanism, row.d0, row.d1, samples=samples, level=level, c=c) for c in (0.01, 0.1)]
    return " | ".join(f"{max(bound, 0.0):.3f}" for bound in found)
