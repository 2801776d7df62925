"""Joint: the posterior of (FNR, FPR), its density, contours and masses (§3.2 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.stats import beta, checks, special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.law import Law

# Cells a side of the grid, equal in probability, from which the density level of a mass is read.
GRID = 512
EDGE = 1e-12


@dataclass(frozen=True)
class Joint:
    """Independent Beta posteriors of FNR and FPR, given by their shapes (a, b)."""

    fnr: tuple[float, float]
    fpr: tuple[float, float]

    def pdf(self, fnr: ArrayLike, fpr: ArrayLike) -> Floats:
        """Density f(x) f(y); infinite where a rate with a count of 0 is 0 itself."""
        x, y = checks.rate("fnr", fnr), checks.rate("fpr", fpr)
        checks.broadcast(fnr=x, fpr=y)
        with np.errstate(over="ignore", invalid="ignore"):
            density = np.exp(_log_density(self.fnr, x) + _log_density(self.fpr, y))
        return np.where(np.isnan(density), 0.0, density)  # 0 times infinity, at a corner of the square

    def rectangle_mass(self, *, fnr: tuple[float, float], fpr: tuple[float, float]) -> float:
        """Pr[fnr[0] ≤ FNR ≤ fnr[1] and fpr[0] ≤ FPR ≤ fpr[1]]."""
        mass = 1.0
        for name, (a, b), ends in (("fnr", self.fnr, fnr), ("fpr", self.fpr, fpr)):
            x = checks.rate(name, ends)
            if x.shape != (2,) or x[0] > x[1]:
                raise InvalidInput(f"{name} must be two rates, the smaller one first, but got {ends!r}.")
            below = beta.cdf(np.full(2, a), np.full(2, b), x, 1.0 - x)
            mass *= float(below[1] - below[0])
        return mass

    def region_mass(self, *, eps: float, delta: float) -> float:
        """Pr[(FNR, FPR) ∈ R(eps, delta)]; that of R(ε₊) \\ R(ε₋) is a difference of two."""
        theta = np.array([checks.one("eps", checks.eps(eps))])
        family = EpsAtDelta(np.array([checks.one("delta", checks.delta(delta))]))
        law = Law(family, *((np.array([a]), np.array([b])) for a, b in (self.fnr, self.fpr)))
        return float(law.at(theta, np.zeros(1, np.int64)).cdf[0])

    def level_of_mass(self, mass: float) -> float:
        """The density above which this much of the mass lies, to about three digits."""
        wanted = checks.level(mass, "mass")
        return float(np.quantile(self._cell_densities, 1.0 - wanted))

    def contour(self, mass: float, *, points: int = 201) -> Floats:
        """Outline of the highest-density set with this mass, as rows (FNR, FPR), closed."""
        return self.contours((mass,), points=points)[0]

    def contours(self, masses: Sequence[float], *, points: int = 201) -> list[Floats]:
        """The outlines of several masses."""
        if _bathtub(self.fnr) or _bathtub(self.fpr):
            raise InvalidInput("a contour needs at least one sample of each class, but one class has none.")
        wanted = [1.0 - checks.level(mass, "mass") for mass in masses]
        return [self._outline(level, points) for level in np.log(np.quantile(self._cell_densities, wanted))]

    def _outline(self, level: float, points: int) -> Floats:
        """Where the log-density is this high."""

        # at 0 and at 1 a density may be infinite, or 0, or the product of both
        def fnr(x: Floats) -> Floats:
            return _log_density(self.fnr, np.clip(x, EDGE, 1 - EDGE))

        def fpr(y: Floats) -> Floats:
            return _log_density(self.fpr, np.clip(y, EDGE, 1 - EDGE))

        x_mode, y_mode = np.array([_mode(self.fnr)]), _mode(self.fpr)
        x_low, x_high = _reach(fnr, level - fpr(np.array([y_mode])), x_mode)
        # points crowd at both ends, where the outline turns
        x = x_low + (x_high - x_low) * (0.5 - 0.5 * np.cos(np.linspace(0, np.pi, points)))
        y_low, y_high = _reach(fpr, level - fnr(x), np.full(points, y_mode))
        there, back = np.stack([x, y_low], axis=1), np.stack([x, y_high], axis=1)[::-1]
        return np.concatenate([there, back, there[:1]])

    @cached_property
    def _cell_densities(self) -> Floats:
        p = (np.arange(GRID) + 0.5) / GRID
        x, y = (beta.quantile(np.asarray(a), np.asarray(b), p) for a, b in (self.fnr, self.fpr))
        with np.errstate(over="ignore"):
            return np.exp(_log_density(self.fnr, x)[:, None] + _log_density(self.fpr, y)).ravel()


def _log_density(shapes: tuple[float, float], x: Floats) -> Floats:
    a, b = shapes
    out: Floats = special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x)
    return out + _log_norm(a, b)


@lru_cache(maxsize=256)
def _log_norm(a: float, b: float) -> float:
    """Asked for at every step of a contour."""
    return float(beta.log_norm(np.asarray(a), np.asarray(b)))


def _bathtub(shapes: tuple[float, float]) -> bool:
    return shapes[0] < 1 and shapes[1] < 1


def _mode(shapes: tuple[float, float]) -> float:
    a, b = shapes
    if a <= 1:
        return 0.0
    return 1.0 if b <= 1 else (a - 1) / (a + b - 2)


def _reach(density: Callable[[Floats], Floats], level: Floats, start: Floats) -> tuple[Floats, Floats]:
    """How far below and above `start`, its mode, a log-density stays at `level` or above, by bisection."""
    far = np.stack([np.zeros_like(start), np.ones_like(start)])
    near = np.where(density(far) >= level, far, start)
    for _ in range(50):
        middle = 0.5 * (near + far)
        good = density(middle) >= level
        near, far = np.where(good, middle, near), np.where(good, far, middle)
    return near[0], near[1]
