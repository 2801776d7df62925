"""Quantile regression: how far a point's margin is above what is expected of it in a model without it.

Bertran et al. 2023, "Scalable membership inference attacks via quantile regression" (arXiv:2307.03694). There a network
predicts quantiles of the score of a point that is no member from the point itself. Signals hold no points. So here the
prediction is linear in what is known of them: how models set apart without the point see it, and how this model sees
its reference points. It is fitted to models set apart and to points that they were not trained on.

The score is (margin − median) / (upper quantile − median), with both quantiles as they are predicted for this point in
this model. A threshold of 1 is the upper quantile.
"""

from __future__ import annotations

import numpy as np

from epsgauge.attacks.apart import OfPoints, members
from epsgauge.attacks.lira import margins
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Bools, Floats

MEDIAN, UPPER = 0.5, 0.9
ROUNDS = 100
# A residual counts as no smaller, in units of the margins' spread; nor does the distance of both quantiles.
SMALLEST = 1e-4
RIDGE = 1e-9  # of features that say the same


class Quantile(OfPoints):
    name = "quantile"
    meaning = "how far the margins of the pair's points are above their quantiles in models without them, as predicted"
    needs = ("loss", "reference")
    axis = "score: margin above its predicted median, in distances to the upper quantile"

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        known, without = margins(apart, apart, side), ~members(apart, side)
        seen = margins(signals, apart, side)
        unit = float(known.std()) or 1.0
        design = _features(apart, known, without, known=True)[without]
        median, upper = (_fitted(design, known[without], level, unit) for level in (MEDIAN, UPPER))
        here = _features(signals, known, without, known=False)
        above = np.maximum(here @ upper - here @ median, SMALLEST * unit)
        out: Floats = (seen - here @ median) / above
        return out

    def sees(self, signals: Signals) -> str:
        return f"{super().sees(signals)}, and {signals['reference'].shape[1]} reference losses"


def _features(signals: Signals, margins_apart: Floats, without: Bools, *, known: bool) -> Floats:
    """[n, m, 4]: 1, mean and spread of the point's margins in models set apart without it, the model's reference mean.

    `known`: the models are those set apart, and each is left out of the mean and the spread that it is told.
    """
    n, m = signals.bits.shape
    values = np.where(without, margins_apart, 0.0)
    count, total, squares = without.sum(axis=0), values.sum(axis=0), (values**2).sum(axis=0)
    if known:
        count, total, squares = count - without, total - values, squares - values**2
    everything = margins_apart[without]
    mean = np.where(count > 0, total / np.maximum(count, 1), everything.mean())
    spread = np.where(count > 1, np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0.0)), everything.std())
    level = np.log(np.maximum(signals["reference"], 1e-12)).mean(axis=1)  # of a model that fits, losses are tiny
    if (signals["reference"] < 0).any():  # no −log of a probability
        level = signals["reference"].mean(axis=1)
    parts = (1.0, mean, spread, level[:, None])
    return np.stack([np.broadcast_to(part, (n, m)) for part in parts], axis=-1)


def _fitted(x: Floats, y: Floats, level: float, unit: float) -> Floats:
    """The weights with the least check loss, by weighted least squares again and again (Hunter and Lange 2000)."""
    scale = np.sqrt((x**2).mean(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    x, y = x / scale, y / unit
    w, turn = np.ones(len(y)), 0.0  # plain least squares first
    for _ in range(ROUNDS):
        # |r| + (2 level − 1) r is at most r² / 2|r before|, up to a constant, plus the term that is linear in r
        among = (x * w[:, None]).T @ x + RIDGE * w.sum() * np.eye(x.shape[1])
        weights = np.linalg.solve(among, x.T @ (w * y + turn))
        w, turn = 1.0 / np.maximum(np.abs(y - x @ weights), SMALLEST), 2 * level - 1
    out: Floats = unit * weights / scale
    return out
