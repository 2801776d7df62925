"""The joint posterior of (FNR, FPR): contours, the two regions of an interval for ε, and a rectangle of rates."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.errors import InvalidInput
from epsgauge.figures.region import Region, region
from epsgauge.stats import rates
from epsgauge.stats.arrays import Floats
from epsgauge.stats.methods import METHODS, intervals_of
from epsgauge.stats.posterior import Posterior
from epsgauge.stats.tally import Tally

MASSES = (0.2, 0.5, 0.8, 0.95)
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
class Outline:
    """Around the most probable rates that together have this posterior mass: rows (FNR, FPR), closed."""

    mass: float
    points: Floats


@dataclass(frozen=True)
class Contours:
    """A joint posterior of both rates, with what its interval for ε, and another method's, mean there."""

    tally: Tally
    delta: float
    level: float
    outlines: tuple[Outline, ...]
    credible: Between
    other: Between | None
    rectangle: Rectangle | None


def contours(
    posterior: Posterior, *, level: float = 0.95, method: str | None = None, masses: tuple[float, ...] = MASSES
) -> Contours:
    """The joint posterior behind a posterior of ε; `method` adds the rectangle and the regions of that method."""
    if posterior.shape or posterior.quantity != "eps":
        raise InvalidInput(
            f"contours are drawn of one posterior of eps, but got one of {posterior.quantity}, {posterior.shape}."
        )
    if method is not None and method not in _LIMITS:
        raise InvalidInput(f"method must be one of {', '.join(_LIMITS)}, but got {method!r}.")
    return Contours(
        tally=posterior.tally,
        delta=float(posterior.family.parameter),
        level=level,
        outlines=outlines(posterior, masses),
        credible=_between(posterior, "bayes", level),
        other=None if method is None else _between(posterior, method, level),
        rectangle=None if method is None else rectangle(posterior, method=method, level=level),
    )


def outlines(posterior: Posterior, masses: tuple[float, ...] = MASSES) -> tuple[Outline, ...]:
    """Of the joint posterior, which δ and level leave as it is."""
    points = posterior.joint.contours(masses) if masses else []
    return tuple(Outline(mass, line) for mass, line in zip(masses, points, strict=True))


def rectangle(posterior: Posterior, *, method: str, level: float) -> Rectangle:
    """Each rate's two-sided interval at 1 − α/2 (union bound) for an interval of ε at 1 − α."""
    tally, each = posterior.tally, 1.0 - (1.0 - level) / 2
    fnr = _LIMITS[method](tally.fn, tally.n_positive, level=each)
    fpr = _LIMITS[method](tally.fp, tally.n_negative, level=each)
    sides = [(float(side.low), float(side.high)) for side in (fnr, fpr)]
    return Rectangle(method, sides[0], sides[1], posterior.joint.rectangle_mass(fnr=sides[0], fpr=sides[1]))


def _between(posterior: Posterior, method: str, level: float) -> Between:
    row, delta = intervals_of(posterior, level=level, methods=(method,))[method], float(posterior.family.parameter)
    # R(∞) is the whole square; ε = 700 draws it
    low, high = (min(float(end), 700.0) for end in (row.low, row.high))
    mass = float(posterior.cdf(high) - posterior.cdf(low))
    return Between(method, METHODS[method].label, region(eps=low, delta=delta), region(eps=high, delta=delta), mass)
