"""The joint posterior of (FNR, FPR): contours, the two regions of an interval for ε, and a rectangle of rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from epsgauge.errors import InvalidInput
from epsgauge.figures.region import Region, region
from epsgauge.stats import rates
from epsgauge.stats.arrays import Floats
from epsgauge.stats.methods import METHODS, intervals_of
from epsgauge.stats.posterior import Posterior

POINTS = 240
MASSES = (0.95, 0.8, 0.5, 0.2)
# limits of one rate, by method
_LIMITS = {"clopper-pearson": rates.clopper_pearson, "jeffreys": rates.jeffreys}


@dataclass(frozen=True)
class Between:
    """R(ε+, δ) without R(ε−, δ) for one method's interval [ε−, ε+], and the posterior mass in it."""

    method: str
    label: str
    inner: Region
    outer: Region
    mass: float


@dataclass(frozen=True)
class Rectangle:
    """Both rates' intervals, from which `method` derives its interval for ε, and the posterior mass in it."""

    method: str
    fnr: tuple[float, float]
    fpr: tuple[float, float]
    mass: float


@dataclass(frozen=True)
class Contours:
    """Density on a grid, density[i, j] at (fnr[j], fpr[i]); above levels[k] lies the mass masses[k]."""

    n_samples: int
    delta: float
    level: float
    fnr: Floats
    fpr: Floats
    density: Floats
    masses: tuple[float, ...]
    levels: Floats
    credible: Between
    other: Between | None
    rectangle: Rectangle | None


def contours(
    posterior: Posterior, *, level: float = 0.95, method: str | None = None, masses: tuple[float, ...] = MASSES
) -> Contours:
    """The joint posterior behind a posterior of ε; `method` adds the rectangle and the regions of that method."""
    if posterior.shape or posterior.quantity != "eps":
        raise InvalidInput(f"contours are drawn of one posterior of eps, but got one of {posterior.quantity}, {posterior.shape}.")
    if method is not None and method not in _LIMITS:
        raise InvalidInput(f"method must be one of {', '.join(_LIMITS)}, but got {method!r}.")
    fnr_law, fpr_law = _rates(posterior)
    x, y = (_midpoints(*law.ppf([1e-6, 1 - 1e-6])) for law in (fnr_law, fpr_law))
    grid = np.outer(fpr_law.pdf(y), fnr_law.pdf(x))
    return Contours(
        n_samples=int(posterior.tally.n_samples),
        delta=float(posterior.family.parameter),
        level=level,
        fnr=x,
        fpr=y,
        density=grid,
        masses=masses,
        levels=np.array([_level_of_mass(grid, mass) for mass in masses]),
        credible=_between(posterior, "bayes", level),
        other=None if method is None else _between(posterior, method, level),
        rectangle=None if method is None else rectangle(posterior, method=method, level=level),
    )


def rectangle(posterior: Posterior, *, method: str, level: float) -> Rectangle:
    """Each rate's two-sided interval at 1 − α/2 (union bound) for an interval of ε at 1 − α."""
    tally, each = posterior.tally, 1.0 - (1.0 - level) / 2
    fnr = _LIMITS[method](tally.fn, tally.n_positive, level=each)
    fpr = _LIMITS[method](tally.fp, tally.n_negative, level=each)
    sides = [(float(side.low), float(side.high)) for side in (fnr, fpr)]
    mass = float(np.prod([law.cdf(high) - law.cdf(low) for law, (low, high) in zip(_rates(posterior), sides, strict=True)]))
    return Rectangle(method, sides[0], sides[1], mass)


def _between(posterior: Posterior, method: str, level: float) -> Between:
    row, delta = intervals_of(posterior, level=level)[method], float(posterior.family.parameter)
    # R(∞) is the whole square; ε = 700 draws it
    ends = [min(float(end), 700.0) for end in (row.low, row.high)]
    mass = float(posterior.cdf(ends[1]) - posterior.cdf(ends[0]))
    return Between(method, METHODS[method].label, *(region(eps=e, delta=delta) for e in ends), mass)


def _rates(posterior: Posterior) -> tuple[stats.rv_frozen, stats.rv_frozen]:
    """The posteriors of FNR and FPR (Eq. 2)."""
    (a, b), t = posterior.prior, posterior.tally
    return stats.beta(t.fn + a, t.tp + b), stats.beta(t.fp + a, t.tn + b)


def _midpoints(low: float, high: float) -> Floats:
    """Centres of equal cells: never 0 or 1, where a density may be infinite."""
    return low + (high - low) * (np.arange(POINTS) + 0.5) / POINTS


def _level_of_mass(grid: Floats, mass: float) -> float:
    """The density above which `mass` lies, from the sorted cells."""
    cells = np.sort(grid, axis=None)[::-1]
    total = np.cumsum(cells) / cells.sum()
    return float(cells[np.searchsorted(total, mass)])
