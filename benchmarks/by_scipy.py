"""The obvious way to the same interval: `scipy.integrate.quad` along the boundary inside `scipy.optimize.brentq`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import integrate, optimize, special
from tallies import Cells

# No rate has mass that counts outside of the quantiles of this and of its complement.
OUTSIDE = 1e-17


@dataclass(frozen=True)
class Tolerance:
    """What quad and brentq are asked for."""

    name: str
    quad: float
    root: float


TIGHT = Tolerance("1e-10", quad=1e-11, root=1e-10)
USUAL = Tolerance("1e-6", quad=1e-7, root=1e-6)


class Rate:
    """A rate that is Beta(a, b)."""

    def __init__(self, a: float, b: float) -> None:
        self.a, self.b = a, b
        self.log_norm = -special.betaln(a, b)
        self.low = special.betaincinv(a, b, OUTSIDE)
        self.high = special.betainccinv(a, b, OUTSIDE)

    def pdf(self, x: float, upper: float) -> float:
        """At x, with upper = 1 − x."""
        return math.exp((self.a - 1) * math.log(x) + (self.b - 1) * math.log(upper) + self.log_norm)

    def cdf(self, x: float) -> float:
        return float(special.betainc(self.a, self.b, x))

    def flipped(self) -> Rate:
        return Rate(self.b, self.a)


def interval(cells: Cells, *, delta: float, level: float, tolerance: Tolerance) -> tuple[float, float]:
    """Both ends of the equal-tailed credible interval of ε under Jeffreys' prior."""
    tp, tn, fp, fn = cells
    fnr, fpr = Rate(fn + 0.5, tp + 0.5), Rate(fp + 0.5, tn + 0.5)
    corners = ((fnr, fpr), (fnr.flipped(), fpr.flipped()))

    def sf(eps: float) -> float:
        return sum(_corner(x, y, eps, delta, tolerance) for x, y in corners)

    tail = (1.0 - level) / 2
    top = 1.0
    while sf(top) > tail:
        top *= 2.0
    at_zero = sf(0.0)  # what is left of 1 is a point mass

    def end(wanted: float) -> float:
        return optimize.brentq(lambda eps: sf(eps) - wanted, 0.0, top, xtol=tolerance.root) if at_zero > wanted else 0.0

    return end(1.0 - tail), end(tail)


def _corner(x: Rate, y: Rate, eps: float, delta: float, tolerance: Tolerance) -> float:
    """The mass of one corner outside of the privacy region: below either of the two lines that meet at x = y = v."""
    v = (1.0 - delta) * special.expit(-eps)
    return x.cdf(v) * y.cdf(v) + _arm(x, y, v, eps, delta, tolerance) + _arm(y, x, v, eps, delta, tolerance)


def _arm(x: Rate, y: Rate, v: float, eps: float, delta: float, tolerance: Tolerance) -> float:
    """∫ f_Y(y) F_X((1−δ−y) e^−ε) dy from v to 1−δ, with y = (1−δ) sin² t."""
    scale, shrink = 1.0 - delta, math.exp(-eps)
    start, end = max(v, y.low), min(scale, y.high)
    if start >= end:
        return 0.0

    def integrand(t: float) -> float:
        s, c = math.sin(t), math.cos(t)
        density = y.pdf(scale * s * s, delta + scale * c * c)
        return 2.0 * scale * s * c * density * x.cdf(scale * c * c * shrink)

    angles = (math.asin(math.sqrt(p / scale)) for p in (start, end))
    value, _ = integrate.quad(integrand, *angles, epsabs=tolerance.quad, epsrel=tolerance.quad, limit=200)
    return float(value)
