"""Delta-Siege (Lokna et al. 2023) on a mechanism of `mechanism_rows.py`, by its own code, which must be on the path.

It learns, chooses a threshold, compares witnesses and judges the best on four equal parts of the samples. It has two
classifiers: that of its benchmarks, a logistic regression over the bits of floats, and its network over plain numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize, special

from epsgauge.stats import region

SCALES = {"gaussian": (1e-3, 1e3), "laplace": (1e-3, 1e3)}


def _scale(family: str, eps: float, delta: float) -> float:
    """The noise with which this family has just this ε at this δ; less privacy is less noise."""
    if eps <= 0 or not 0 < delta < 1:
        return math.inf if eps < math.inf and delta < 1 else 0.0
    if eps == math.inf:
        return 0.0
    if family == "laplace":
        return 1.0 / (eps - 2.0 * math.log1p(-delta))  # δ(ε) = 1 − e^((ε − 1/b)/2)

    def more(mu: float) -> float:
        return special.ndtr(mu / 2 - eps / mu) - math.exp(eps + special.log_ndtr(-mu / 2 - eps / mu)) - delta

    return 1.0 / optimize.brentq(more, 1e-4, 200.0, xtol=1e-6)


def _of(row: Any) -> Any:
    from deltasiege.mechanism import Mechanism

    family = row.curve.split(":")[0]
    rng = np.random.default_rng(0)

    class Audited(Mechanism):
        """A claim is ε at one δ, or a family of curves with one number, the noise."""

        def __call__(self, data: Any, n: int) -> np.ndarray:
            found = np.asarray(row.mechanism(data, rng, n), dtype=np.float64)
            return found if found.ndim > 1 else found[:, None]

        def guarantee_(self, epsilon: float, delta: float) -> float:
            if family:
                return _scale(family, epsilon, delta)
            return 1.0 / epsilon if epsilon > 0 else math.inf

        def perturb_delta(self, new_delta: float, *_: float) -> float | None:
            if not family:
                return self.epsilon if new_delta == self.delta else None
            return self.epsilon if 1e-9 < new_delta < 0.9 else None  # any that is claimed

    return Audited(epsilon=_claimed_at(family, row), delta=0.1 if family else row.delta)


def _claimed_at(family: str, row: Any) -> float:
    if family == "gaussian":
        return float(region.gaussian_eps(1.0, delta=0.1))
    return 1.0 + 2.0 * math.log1p(-0.1) if family == "laplace" else row.claim


def figure(row: Any, *, samples: int, level: float) -> str:
    """Its bound of ε at the claimed δ; of a curve, the least share of the claimed noise that is refuted."""
    if row.curve and row.curve.split(":")[0] not in SCALES:
        return ""
    import torch
    from deltasiege.attack import LinesearchEstimator, WitnessOptimization
    from deltasiege.classifiers import BitPatternFeatureTransformer
    from deltasiege.classifiers.legacy.multi_layer_perceptron import MultiLayerPerceptron
    from deltasiege.classifiers.legacy.torch_optimizer_factory import AdamOptimizerFactory
    from deltasiege.main import Trial
    from deltasiege.utils import Config

    torch.manual_seed(0)
    torch.set_num_threads(1)
    n, audited = samples // 8, _of(row)
    wide = audited(row.d0, 2).shape[1]
    adam = AdamOptimizerFactory(learning_rate=0.1, step_size=500)
    of_bits = {"hidden_sizes": (), "normalize_input": False, "n_test_batches": 1, "regularization_weight": 0.0001}
    classifiers = [
        MultiLayerPerceptron.get_factory(
            in_dimensions=64 * wide,
            optimizer_factory=adam,
            feature_transform=BitPatternFeatureTransformer(),
            **of_bits,
        ),
        MultiLayerPerceptron.get_factory(in_dimensions=wide, optimizer_factory=adam),
    ]
    deltas = np.exp(np.linspace(math.log(1e-9), 0, 900)) if row.curve else np.array([row.delta])
    trial = Trial(
        config=Config(n_train=n, n_init=n, n_check=n, n_final=n, batch_size=n // 10, confidence=level, n_jobs=1),
        input_pair=(row.d0, row.d1),
        mechanism=audited,
        classifier_factories=classifiers,
        witnesses_factories=WitnessOptimization.get_factory(estimator=LinesearchEstimator(delta_steps=deltas)),
    ).run()
    share = float(trial.witnesses[trial.best_witness_idx].estimate_c)
    if row.curve:
        return f"{share:.3f} of the noise, {'refuted' if share < 1 else 'not refuted'}"
    return f"{row.claim / share:.3f}" if share < math.inf else "0.000"
