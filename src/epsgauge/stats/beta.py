"""Beta posteriors of a rate, accurate for counts from 0 to 1e7 and far into their tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Bools, Floats

# Mass that may be left outside the support window of one rate. It bounds the absolute error that
# the window causes in a cdf, and lies far below the 1e-11 that is promised.
OUTSIDE = 1e-22
# Below this shape, that of a count of 0, the window starts at 0: tails like e^(−ε/2) keep their relative accuracy.
REACHES_ZERO = 1.0
# Above this larger shape the rounding of x or 1 − x, times the shape, is made good.
ROUNDING = 1e3
# Above this smaller shape a log x + b log(1 − x) cancels too much and the deviance form is used.
DEVIANCE = 2e3


def stirling_error(z: Floats) -> Floats:
    """log Γ(z) − [(z − ½) log z − z + ½ log 2π], without the cancellation of that difference."""
    big = np.maximum(z, 16.0)
    square = big * big
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / big
    small = np.minimum(z, 16.0)
    exact = special.gammaln(small) - ((small - 0.5) * np.log(small) - small + 0.5 * np.log(2 * np.pi))
    out: Floats = np.where(z > 16.0, series, exact)
    return out


def log_peak(a: Floats, b: Floats) -> Floats:
    """log of x0^a (1 − x0)^b / B(a, b) at x0 = a / (a + b)."""
    n = a + b
    of_a, of_b, of_n = stirling_error(np.array([a, b, n]))
    out: Floats = 0.5 * np.log(a / n * b / (2 * np.pi)) - (of_a + of_b - of_n)
    return out


def log_norm(a: Floats, b: Floats) -> Floats:
    """−log B(a, b), from the peak so that no digits are lost for large counts."""
    share = np.minimum(a, b) / (a + b)
    of_small, of_large = np.log(share), np.log1p(-share)
    return log_peak(a, b) - a * np.where(a < b, of_small, of_large) - b * np.where(a < b, of_large, of_small)


def quantile(a: Floats, b: Floats, tail: float | Floats, *, upper: bool = False) -> Floats:
    """The x with Pr[Beta(a, b) ≤ x] = tail, or with Pr[Beta(a, b) ≥ x] = tail.

    SciPy's inverse is wrong or NaN for some shapes (a = 1.01, b = 0.99; a = 1000, b = 1e8), so it is checked, and
    what fails is found by bisection.
    """
    inverse, mass = (special.betainccinv, special.betaincc) if upper else (special.betaincinv, special.betainc)
    x: Floats = np.asarray(inverse(a, b, tail))
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(mass(a, b, x) - tail) <= 1e-9 * tail)
    if np.count_nonzero(bad):
        a, b, tail = (q[bad] for q in np.broadcast_arrays(a, b, tail))
        x[bad] = _bisect(lambda x: mass(a, b, x) > tail, len(a), falls=upper)
    return x


def _bisect(above: Callable[[Floats], Bools], n: int, *, falls: bool) -> Floats:
    """Where a monotone function of x in (0, 1) crosses, to the last digit of small x: on a logarithmic scale."""
    low, high = np.full(n, np.log(1e-307)), np.zeros(n)
    for _ in range(100):
        middle = 0.5 * (low + high)
        left = above(np.exp(middle)) != falls  # the crossing is to the left
        low, high = np.where(left, low, middle), np.where(left, middle, high)
    return np.exp(0.5 * (low + high))


def support(a: Floats, b: Floats) -> Floats:
    """The lower end of the window outside of which Beta(a, b) has no mass that counts."""
    inner = a >= REACHES_ZERO
    out = np.zeros(a.shape)
    out[inner] = quantile(a[inner], b[inner], OUTSIDE)
    return out


def cdf(a: Floats, b: Floats, x: Floats, upper: Floats) -> Floats:
    """Pr[Beta(a, b) ≤ x], with `upper` = 1 − x given apart so that neither loses digits."""
    low = x <= upper  # the smaller of the two has more digits
    direct = special.betainc(np.where(low, a, b), np.where(low, b, a), np.where(low, x, upper))
    out: Floats = np.where(low, direct, 1.0 - direct)
    return out


class Shapes(NamedTuple):
    """Beta(a, b) with its norm −log B(a, b), one per row."""

    a: Floats
    b: Floats
    norm: Floats


def density(shapes: Shapes, x: Floats, upper: Floats, log_x: Floats) -> Floats:
    """x f(x): one pair of shapes a row, one row of nodes x each, with upper = 1 − x; `log_x` is used up."""
    a, b, norm = shapes
    core = np.log(upper)
    core *= b[..., None]
    log_x *= a[..., None]
    core += log_x
    core += norm[..., None]
    big = np.maximum(a, b) > ROUNDING
    if np.count_nonzero(big):
        core[big] += _rounding(a[big][:, None], b[big][:, None], x[big], upper[big])
        both = np.minimum(a, b) > DEVIANCE
        if np.count_nonzero(both):
            core[both] = _deviance(a[both][:, None], b[both][:, None], x[both], upper[both])
    np.exp(core, out=core)
    core /= upper
    return core


def _rounding(a: Floats, b: Floats, x: Floats, upper: Floats) -> Floats:
    """What a log x + b log(1 − x) lacks because the larger of x and 1 − x is rounded."""
    big = np.maximum(x, upper)
    out = 1.0 - big
    out -= np.minimum(x, upper)
    out /= big
    out *= np.where(x > upper, a, b)
    return out


def _deviance(a: Floats, b: Floats, x: Floats, upper: Floats) -> Floats:
    """log of x^a (1 − x)^b / B(a, b) around its peak: first-order terms cancel exactly."""
    n = a + b
    d = np.where(a < b, x - a / n, b / n - upper)
    below, above = d * n / a, -d * n / b
    with np.errstate(divide="ignore"):  # far outside, x or 1 − x may be 0
        return a * (np.log1p(below) - below) + b * (np.log1p(above) - above) + log_peak(a, b)
