"""A lower bound for μ of Gaussian DP from two rates, and the ε that it is worth (Nasr et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, rates, region
from epsgauge.stats.families import Mu
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class GaussianBound:
    """A one-sided lower bound for μ, guaranteed at `level` under Gaussian DP, and the same as ε at `delta`."""

    mu: float
    eps: float
    delta: float
    level: float
    under: str = str(Mu.assumption)


def gaussian_bound(tally: Tally, *, delta: float, level: float) -> GaussianBound:
    """The μ at Clopper-Pearson's upper limits of FNR and FPR, each missed with half of 1 − level.

    For independent samples and an attack whose direction was fixed beforehand. Where the mechanism's trade-off curve is
    not that of Gaussian DP, the number promises nothing.

    >>> bound = gaussian_bound(Tally(tp=600, tn=600, fp=400, fn=400), delta=1e-5, level=0.95)
    >>> round(bound.mu, 3), round(bound.eps, 3)
    (0.347, 1.329)
    """
    if tally.shape:
        raise InvalidInput(f"tally must be one tally, but got an array of shape {tally.shape}.")
    alpha, d = 1.0 - checks.level(level), checks.one("delta", checks.delta(delta))
    fn, fp, n_1, n_0 = (np.array([float(k)]) for k in (tally.fn, tally.fp, tally.n_positive, tally.n_negative))
    limits = rates.clopper_pearson_limits
    mu = float(rates.rectangle_lower_bound(limits, Mu(), (fn, n_1), (fp, n_0), alpha)[0])
    return GaussianBound(mu, float(region.gaussian_eps(mu, delta=d)), d, level)
