"""The Gaussian mechanism: the value plus normal noise of standard deviation σ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.mechanisms.mechanism import Mechanism, on_grid
from epsgauge.stats import brent, checks, special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.checks import positive


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """It is μ-Gaussian DP with μ = 1/σ, and (ε, δ)-DP for no δ = 0.

    >>> round(Gaussian(sigma=1.0).eps_at(1e-5), 4)
    4.3772
    """

    sigma: float

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)

    @property
    def mu(self) -> float:
        return 1.0 / self.sigma

    def sample(self, value: float, rng: np.random.Generator) -> float:
        return on_grid(rng.normal(value, self.sigma))

    def log_density(self, output: ArrayLike, value: ArrayLike) -> Floats:
        z = (np.asarray(output) - checks.numbers("value", value)) / self.sigma
        out: Floats = -0.5 * z * z - math.log(self.sigma * math.sqrt(2.0 * math.pi))
        return out

    def tradeoff(self, fpr: ArrayLike) -> Floats:
        """Φ(Φ⁻¹(1 − α) − μ) (Dong, Roth and Su 2022, Eq. 6)."""
        out: Floats = special.ndtr(-special.ndtri(checks.rate("fpr", fpr)) - self.mu)
        return out

    def delta_at(self, eps: float) -> float:
        """δ(ε) = Φ(a) − e^ε Φ(b), a = μ/2 − ε/μ, b = −μ/2 − ε/μ (Balle and Wang 2018, theorem 8).

        As b² − a² = 2ε, e^ε Φ(b) is e^(−a²/2) erfcx(−b/√2)/2, where nothing overflows.
        """
        e = checks.one("eps", checks.eps(eps))
        a, b = self.mu / 2.0 - e / self.mu, -self.mu / 2.0 - e / self.mu
        small, common = special.erfcx(-b / math.sqrt(2.0)), 0.5 * math.exp(-0.5 * a * a)
        if a > 0:
            return float(special.ndtr(a) - common * small)
        return float(common * (special.erfcx(-a / math.sqrt(2.0)) - small))

    def eps_at(self, delta: float) -> float:
        """The root of δ(ε) = δ: δ(ε) falls with ε."""
        d = checks.one("delta", checks.delta(delta))
        if d == 0:
            return math.inf
        if d >= self.delta_at(0.0):
            return 0.0
        high = self.mu
        while self.delta_at(high) > d:
            high *= 2.0
        # on the scale of logs the curve is nearly a parabola; what underflows is below any δ
        log = math.log(d)
        tiny = 5e-324
        return brent.root(lambda e: math.log(max(self.delta_at(e), tiny)) - log, 0.0, high, xtol=1e-14, rtol=1e-14)
