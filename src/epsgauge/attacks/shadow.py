"""Shadow models: a classifier that learned on models set apart to tell members from others, whatever the point.

Shokri et al. 2017, "Membership inference attacks against machine learning models" (arXiv:1610.05820). There one network
per class learns from the probabilities of all classes. Signals hold the loss and the margin of a point alone, and no
labels. So here one logistic regression learns from these, and from where the loss is among the model's own reference
losses. It pools all points of all models set apart, so that they need not have the pairs that are judged.
"""

from __future__ import annotations

import numpy as np

from epsgauge.attacks.apart import OfPoints, members
from epsgauge.attacks.lira import margins
from epsgauge.games.signals import Signals
from epsgauge.stats import special
from epsgauge.stats.arrays import Bools, Floats

# The penalty on each squared weight, where features have the standard deviation 1: it keeps weights finite where
# members and others are apart.
RIDGE = 1.0
ROUNDS = 50  # of Newton's method, which needs fewer


class Shadow(OfPoints):
    name = "shadow"
    meaning = "what a classifier says of the pair's points that learned to tell members of models set apart"
    needs = ("loss", "reference")
    axis = "score: log-odds of a member (shadow models)"
    same_pairs = False

    def score(self, signals: Signals) -> Floats:
        if signals.sees == "z0":
            return -self.of_point(signals, self._apart(signals), 0)
        return super().score(signals)

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        sides = (1,) if apart.adjacency == "add-remove" else (0, 1)
        known = np.concatenate([_features(apart, apart, s).reshape(-1, 4) for s in sides])
        inside = np.concatenate([members(apart, s).ravel() for s in sides])
        mean, std = known.mean(axis=0), known.std(axis=0)
        std = np.where(std > 0, std, 1.0)
        weights = _fitted((known - mean) / std, inside)
        out: Floats = (_features(signals, apart, side) - mean) / std @ weights[1:] + weights[0]
        return out

    def sees(self, signals: Signals) -> str:
        return f"{super().sees(signals)}, and {signals['reference'].shape[1]} reference losses"


def _features(signals: Signals, apart: Signals, side: int) -> Floats:
    """Of each z0 or z1, [n, m, 4]: loss, margin, and the loss by rank and by distance among reference losses."""
    loss, reference = signals["loss"][..., side], signals["reference"]
    above = [np.searchsorted(own, of) for own, of in zip(reference, loss, strict=True)]
    spread = np.maximum(reference.std(axis=1), np.finfo(float).tiny)
    away = (loss - reference.mean(axis=1)[:, None]) / spread[:, None]
    return np.stack([loss, margins(signals, apart, side), np.array(above).reshape(loss.shape), away], axis=-1)


def _fitted(x: Floats, inside: Bools) -> Floats:
    """The weights of a logistic regression, the constant first, by Newton's method."""
    design, penalty = np.column_stack([np.ones(len(x)), x]), RIDGE * np.diag([0.0] + [1.0] * x.shape[1])
    weights = np.zeros(design.shape[1])
    for _ in range(ROUNDS):
        p = special.expit(design @ weights)
        slope = design.T @ (p - inside) + penalty @ weights
        curve = design.T @ (design * np.maximum(p * (1 - p), 1e-9)[:, None]) + penalty
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    return weights
