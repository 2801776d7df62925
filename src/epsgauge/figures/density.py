"""The posterior density: the curve, the point mass at 0, the intervals under it and a claimed value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.interval import Kind
from epsgauge.stats.law import Law
from epsgauge.stats.methods import METHODS, intervals_of
from epsgauge.stats.posterior import Posterior

# Beyond this quantile the curve is flat on the page.
TAIL = 5e-3
POINTS = 400
# A claimed value further away than so many widths of the posterior is not on the axis: it would flatten the curve.
FAR = 3.0


@dataclass(frozen=True)
class Bar:
    """One method's interval; `high` may be infinite."""

    method: str
    label: str
    promise: Kind
    low: float
    high: float


@dataclass(frozen=True)
class Density:
    """Density of the continuous part along `x`; it integrates to 1 − mass_at_zero, less what lies outside `x`."""

    quantity: str
    symbol: str
    given: str  # what is fixed: " at δ = 1e-05"
    x: Floats
    pdf: Floats
    cdf: Floats
    prior: Floats | None  # density without any data
    prior_cdf: Floats | None
    mass_at_zero: float
    median: float
    level: float
    bars: tuple[Bar, ...]
    claimed: float | None
    exceeds: float | None  # the probability of more than is claimed


def density(
    posterior: Posterior,
    *,
    level: float = 0.90,
    claimed: float | None = None,
    methods: Sequence[str] = ("clopper-pearson", "bayes"),
    bars: Sequence[Bar] | None = None,
    points: int = POINTS,
) -> Density:
    """The picture of one posterior, of ε, δ or μ; `claimed` is the value that an accountant promises.

    `bars` are intervals that were computed elsewhere, instead of those of `methods`. Fewer `points` are quicker.
    """
    if posterior.shape:
        raise InvalidInput(
            f"a density is drawn of one tally, but the posterior has the shape {posterior.shape}. Index it."
        )
    claimed = claim_of(claimed)
    if bars is None:
        every = intervals_of(posterior, level=level, methods=methods)
        bars = [
            Bar(name, METHODS[name].label, METHODS[name].promise, float(every[name].low), float(every[name].high))
            for name in methods
        ]
    tails = np.linspace(TAIL, 1 - TAIL, points // 2 | 1)
    tails[len(tails) // 2] = 0.5
    quantiles = np.asarray(posterior.quantile(tails))
    x = _grid(posterior.family.top, quantiles, claimed, bars, points)
    pdf, cdf, prior, prior_cdf = _curves(posterior, x)
    good = np.isfinite(pdf)
    return Density(
        quantity=posterior.quantity,
        symbol=posterior.family.symbol,
        given=posterior.family.given,
        x=x[good],
        pdf=pdf[good],
        cdf=cdf[good],
        prior=prior[good],
        prior_cdf=prior_cdf[good],
        mass_at_zero=float(posterior.mass_at_zero),
        median=float(quantiles[len(tails) // 2]),
        level=level,
        bars=tuple(bars),
        claimed=claimed,
        exceeds=None if claimed is None else 0.0 if math.isinf(claimed) else float(posterior.exceeds(claimed)),
    )


def claim_of(claimed: float | None) -> float | None:
    """A claimed value, checked; an infinite one promises nothing and is beyond every axis."""
    if claimed is None or claimed == math.inf:
        return claimed
    return float(checks.eps(claimed, "claimed"))


def _curves(posterior: Posterior, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """pdf and cdf of the posterior, and of the same prior without data, in one go."""
    (a, b), t = posterior.prior, posterior.tally
    fnr = (np.array([t.fn + a, a]), np.array([t.tp + b, b]))
    fpr = (np.array([t.fp + a, a]), np.array([t.tn + b, b]))
    family = posterior.family.flat(()).pick(np.zeros(2, np.int64))
    found = Law(family, fnr, fpr).at(np.tile(x, 2), np.repeat([0, 1], len(x)))
    n = len(x)
    return found.pdf[:n], found.cdf[:n], found.pdf[n:], found.cdf[n:]


def _grid(top: float, quantiles: Floats, claimed: float | None, bars: Sequence[Bar], points: int) -> Floats:
    """From 0, or from where the mass begins if that is far away, to the tail; dense where the mass is."""
    begin, end = float(quantiles[0]), float(quantiles[-1])
    if begin == end:  # practically all mass at 0
        end = min(1.0, top)
    spread = end - begin
    # a bar that ends a little beyond the tail is shown whole, one that goes on for long is not
    shown = [begin, end, *(bar.high for bar in bars if bar.high < end + 0.5 * spread)]
    if claimed is not None and begin - FAR * spread <= claimed <= end + FAR * spread:
        shown.append(claimed)
    left, right = min(shown), max(shown)
    if left < 2 * spread:  # near enough to show 0, which means no leak
        left = 0.0
    right += 0.04 * (right - left)
    even = np.linspace(left, right, points)
    grid = np.unique(np.concatenate([even, quantiles[(quantiles > left) & (quantiles < right)]]))
    return grid[grid < top]
