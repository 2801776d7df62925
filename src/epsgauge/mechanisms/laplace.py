"""The Laplace mechanism: the value plus Laplace noise of scale 1/ε (Dwork et al. 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.mechanisms.mechanism import Mechanism, on_grid
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.checks import positive


@dataclass(frozen=True)
class Laplace(Mechanism):
    """
    >>> Laplace(eps=1.0).known()
    KnownPrivacy(eps=1.0, adjacency='substitute', delta=0.0)
    """

    eps: float

    def __post_init__(self) -> None:
        positive("eps", self.eps)

    def sample(self, value: float, rng: np.random.Generator) -> float:
        return on_grid(rng.laplace(value, 1.0 / self.eps))

    def log_density(self, output: ArrayLike, value: ArrayLike) -> Floats:
        out: Floats = math.log(self.eps / 2.0) - self.eps * np.abs(np.asarray(output) - checks.numbers("value", value))
        return out

    def tradeoff(self, fpr: ArrayLike) -> Floats:
        """F(F⁻¹(1 − α) − ε) with the standard Laplace cdf F (Dong, Roth and Su 2022, section 2), in its three pieces.

        The likelihood ratio grows with the output, so that the best tests are thresholds of the output.
        """
        y = checks.rate("fpr", fpr)
        shrunk = math.exp(-self.eps)
        edge = shrunk / 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = 1.0 - y / shrunk if shrunk > 0 else np.ones_like(y)
            out: Floats = np.where((y < edge) | (y == 0), steep, np.where(y <= 0.5, edge / 2.0 / y, shrunk * (1.0 - y)))
        return out

    def eps_at(self, delta: float) -> float:
        """From δ(ε') = 1 − exp((ε' − ε)/2) for ε' ≤ ε (Balle, Barthe and Gaboardi 2018, theorem 3)."""
        d = checks.one("delta", checks.delta(delta))
        return max(0.0, self.eps + 2.0 * math.log1p(-d))
