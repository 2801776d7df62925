"""RMIA: how many points of the population a point beats, by how much likelier this model makes it than others do.

Zarifzadeh et al. 2024, "Low-cost high-power membership inference attacks" (arXiv:2312.03262). With p(x) = exp(−loss),

    ratio(x) = p(x) / mean of p(x) over models set apart,   score = 100 · #{z: ratio(x) ≥ γ ratio(z)} / #{z},

with γ = 1. As in the paper, models with x and models without it have the same weight in the mean. The points z are the
reference points, on which no model was trained: of them the mean is that of models without z, where the paper also has
models with z. So ratios of x are lower beside those of z than they are there.
"""

from __future__ import annotations

import numpy as np

from epsgauge.attacks.apart import OfPoints, members
from epsgauge.games.signals import Signals
from epsgauge.stats import special
from epsgauge.stats.arrays import Bools, Floats


class Rmia(OfPoints):
    name = "rmia"
    meaning = "how many reference points the pair's points beat, by how much likelier this model makes them than others"
    needs = ("loss", "population")
    axis = "score: reference points that are beaten, in % (RMIA)"

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        known, inside = apart["loss"][..., side], members(apart, side)
        usual = np.logaddexp(_log_mean(known, inside), _log_mean(known, ~inside)) - np.log(2)
        ratio = -signals["loss"][..., side] - usual
        others = apart["population"]
        ratios = np.sort(-signals["population"] - _log_mean(others, np.ones(others.shape, bool)), axis=1)
        beaten = [np.searchsorted(own, of, side="right") for own, of in zip(ratios, ratio, strict=True)]
        out: Floats = 100.0 * np.array(beaten, dtype=np.float64).reshape(ratio.shape) / ratios.shape[1]
        return out

    def sees(self, signals: Signals) -> str:
        return f"{super().sees(signals)}, and those of {signals['population'].shape[1]} reference points"


def _log_mean(losses: Floats, which: Bools) -> Floats:
    """The logarithm of the mean of exp(−loss) over some models for each point, both [k, m]."""
    out: Floats = special.logsumexp(-losses, axis=0, b=which) - np.log(which.sum(axis=0))
    return out
