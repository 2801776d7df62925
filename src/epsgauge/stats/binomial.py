"""How likely a count is."""

from __future__ import annotations

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints


def log_mass(k: Floats | Ints, n: Floats | int, rate: float) -> Floats:
    """log Pr[k of n]; −inf where it cannot be.

    >>> import numpy as np
    >>> log_mass(np.arange(3.0), 2, 0.5).round(6).tolist()
    [-1.386294, -0.693147, -1.386294]
    """
    ways = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    out: Floats = ways + special.xlogy(k, rate) + special.xlog1py(n - k, -rate)
    return out
