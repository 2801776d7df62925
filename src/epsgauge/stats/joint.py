"""Joint: the posterior of (FNR, FPR), its density, contours and masses (§3.2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsgauge.errors import InvalidInput
from epsgauge.stats import beta, checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.law import Law

# Cells a side of the grid, equal in probability, from which the density level of a mass is read.
GRID = 512


@dataclass(frozen=True)
class Joint:
    """Independent Beta posteriors of FNR and FPR, given by their shapes (a, b)."""

    fnr: tuple[float, float]
    fpr: tuple[float, float]

    def pdf(self, fnr: ArrayLike, fpr: ArrayLike) -> Floats:
        """Density f(x) f(y); infinite where a rate with a count of 0 is 0 itself."""
        x, y = checks.rate("fnr", fnr), checks.rate("fpr", fpr)
        checks.broadcast(fnr=x, fpr=y)
        with np.errstate(over="ignore"):
            return np.exp(_log_density(self.fnr, x) + _log_density(self.fpr, y))

    def rectangle_mass(self, *, fnr: tuple[float, float], fpr: tuple[float, float]) -> float:
        """Pr[fnr[0] ≤ FNR ≤ fnr[1] and fpr[0] ≤ FPR ≤ fpr[1]]."""
        mass = 1.0
        for name, (a, b), ends in (("fnr", self.fnr, fnr), ("fpr", self.fpr, fpr)):
            x = checks.rate(name, ends)
            below = beta.cdf(np.full(2, a), np.full(2, b), x, 1.0 - x)
            mass *= float(below[1] - below[0])
        return mass

    def region_mass(self, *, eps: float, delta: float) -> float:
        """Pr[(FNR, FPR) ∈ R(eps, delta)]; that of R(ε₊) \\ R(ε₋) is a difference of two."""
        theta, family = checks.eps(eps).reshape(1), EpsAtDelta(checks.delta(delta).reshape(1))
        law = Law(family, *((np.array([a]), np.array([b])) for a, b in (self.fnr, self.fpr)))
        return float(law.at(theta, np.zeros(1, np.int64)).cdf[0])

    def level_of_mass(self, mass: float) -> float:
        """The density above which this much of the mass lies, to about three digits."""
        wanted = checks.level(mass, "mass")
        return float(np.quantile(self._cell_densities, 1.0 - wanted))

    def contour(self, mass: float, *, points: int = 201) -> Floats:
        """Outline of the highest-density set with this mass, as rows (FNR, FPR), closed."""
        if min(sum(self.fnr), sum(self.fpr)) <= 1.0 or _bathtub(self.fnr) or _bathtub(self.fpr):
            raise InvalidInput("a contour needs at least one sample of each class, but one class has none.")
        log_level = np.log(self.level_of_mass(mass))
        x_mode, y_mode = _mode(self.fnr), _mode(self.fpr)
        y_top = float(_log_density(self.fpr, np.asarray(y_mode)))
        x_low, x_high = _where(self.fnr, x_mode, log_level - min(y_top, 700.0))
        # points crowd at both ends, where the outline turns
        turn = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, points))
        x = x_low + (x_high - x_low) * turn
        ends = np.array([_where(self.fpr, y_mode, log_level - lx) for lx in _log_density(self.fnr, x)])
        outline = np.concatenate([np.stack([x, ends[:, 0]], 1), np.stack([x, ends[:, 1]], 1)[::-1]])
        return np.concatenate([outline, outline[:1]])

    @cached_property
    def _cell_densities(self) -> Floats:
        p = (np.arange(GRID) + 0.5) / GRID
        x, y = special.betaincinv(*self.fnr, p), special.betaincinv(*self.fpr, p)
        with np.errstate(over="ignore"):
            return np.exp(_log_density(self.fnr, x)[:, None] + _log_density(self.fpr, y)).ravel()


def _log_density(shapes: tuple[float, float], x: Floats) -> Floats:
    a, b = shapes
    out: Floats = special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x)
    return out + float(beta.log_norm(np.asarray(a), np.asarray(b)))


def _bathtub(shapes: tuple[float, float]) -> bool:
    return shapes[0] < 1 and shapes[1] < 1


def _mode(shapes: tuple[float, float]) -> float:
    a, b = shapes
    if a <= 1:
        return 0.0
    return 1.0 if b <= 1 else (a - 1) / (a + b - 2)


def _where(shapes: tuple[float, float], mode: float, log_level: float) -> tuple[float, float]:
    """The ends of {log density ≥ log_level} around the mode, by bisection; both the mode if it is empty."""
    ends = []
    for edge in (0.0, 1.0):
        inner, outer = mode, edge
        if _log_density(shapes, np.asarray(edge)) >= log_level:
            inner = edge
        else:
            for _ in range(60):
                mid = 0.5 * (inner + outer)
                inner, outer = (mid, outer) if _log_density(shapes, np.asarray(mid)) >= log_level else (inner, mid)
        ends.append(inner)
    return ends[0], ends[1]
