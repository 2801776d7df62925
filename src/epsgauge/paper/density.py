"""The density of ε as the paper's Appendix C prints it, to show what its formula lacks.

The appendix moves the boundary y = R(ε, x) of the region with ε and integrates f(x, R) v·n, where v = (0, ∂R/∂ε) and
n is the unit normal, over dx. The transport theorem needs dL = √(1 + slope²) dx. So each point of the boundary
counts 1/√(1 + slope²) of what it should, and the mass of the printed density is the posterior mean of that factor.
"""

from __future__ import annotations

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.posterior import estimate
from epsgauge.stats.tally import Tally

# Cells a side, equal in probability; the factor has a kink, so this gives about four digits.
CELLS = 500


def printed_density_mass(tally: Tally, *, delta: float) -> float:
    """∫ of the printed density over ε > 0; it should be 1 − F(0)."""
    joint = estimate(tally, delta=delta).joint
    middles = (np.arange(CELLS) + 0.5) / CELLS
    x, y = special.betaincinv(*joint.fnr, middles)[:, None], special.betaincinv(*joint.fpr, middles)[None, :]
    # The four lines of the boundary; the rates lie on the one with the largest ε. Two are steep, two are flat.
    with np.errstate(divide="ignore"):
        lines = [
            np.log(np.maximum(top, 0.0) / bottom)
            for top, bottom in ((1 - y - delta, x), (y - delta, 1 - x), (1 - x - delta, y), (x - delta, 1 - y))
        ]
    eps = np.stack(np.broadcast_arrays(*lines))
    largest = eps.max(axis=0)
    slope = np.exp(np.where(eps.argmax(axis=0) < 2, largest, -largest))
    return float(np.mean(np.where(largest > 0, 1 / np.sqrt(1 + slope**2), 0.0)))
