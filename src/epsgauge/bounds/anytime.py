"""A lower bound and an interval for ε that hold at every moment of a run, however often one looks.

The likelihood of the guesses is L(x, y) = x^FN (1−x)^TP y^FP (1−y)^TN with x = FNR and y = FPR, and M is its mean under
Beta(½, ½) for both rates. At the true rates M/L is a martingale that starts at 1, so by Ville's inequality it ever
reaches 1/α with a probability of at most α. The set C = {(x, y) : L > αM} therefore contains the true rates at all
times at once with at least 1 − α, and so does [min ε, max ε] over C contain the true ε.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.bounds.likelihood import Rows, eps_at_peak, facing, log_peak, on_boundary, on_line
from epsgauge.errors import InvalidInput
from epsgauge.stats import beta, checks, special
from epsgauge.stats.arrays import Bools, Floats
from epsgauge.stats.interval import Interval
from epsgauge.stats.tally import Tally

# No lower end of a tally within the limits of `checks` is above it.
HIGHEST_LOW = 64.0
# Nor any finite upper end.
HIGHEST = 700.0
TOLERANCE = 1e-10


def anytime_interval(tally: Tally, *, delta: ArrayLike, level: float = 0.90) -> Interval:
    """[low, high] for ε that is right at every moment of a run with probability `level`; for m = 1.

    Both ends come from one region for the rates, so the low end alone is as good a bound as both. A tally of arrays
    gives arrays. The ends of all moments hold together, so the largest low so far, and the smallest high, hold too.

    >>> anytime_interval(Tally(tp=65, tn=75, fp=25, fn=35), delta=1e-5, level=0.90)
    Interval(low=0.3043, high=1.792, level=0.9, kind='guaranteed')
    """
    rows, shape, c = _set(tally, delta, level)
    low, high = _low(rows, c), _high(rows, c)
    return Interval(low.reshape(shape)[()], high.reshape(shape)[()], level, "guaranteed")


def anytime_lower_bound(tally: Tally, *, delta: ArrayLike, level: float = 0.95) -> Any:
    """A number that is above ε at some moment of a run with a probability of at most 1 − `level`; for m = 1.

    It folds: an attack that is reliably wrong counts like one that is reliably right.

    >>> round(float(anytime_lower_bound(Tally(tp=65, tn=75, fp=25, fn=35), delta=1e-5, level=0.95)), 4)
    0.2765
    """
    rows, shape, c = _set(tally, delta, level)
    return _low(rows, c).reshape(shape)[()]


def anytime_refutes(tally: Tally, *, eps: ArrayLike, delta: ArrayLike, level: float = 0.95) -> Any:
    """Whether `anytime_lower_bound` is above `eps`, without computing it; may be asked after every sample.

    >>> bool(anytime_refutes(Tally(tp=65, tn=75, fp=25, fn=35), eps=0.2, delta=1e-5, level=0.95))
    True
    """
    claim = checks.eps(eps)
    rows, shape, c = _set(tally, delta, level, claim)
    rows = facing(rows)
    claim = np.broadcast_to(claim, shape).ravel()
    return ((eps_at_peak(rows) > claim) & (on_boundary(rows, claim) < c)).reshape(shape)[()]


def _set(
    tally: Tally, delta: ArrayLike, level: float, eps: Floats | None = None
) -> tuple[Rows, tuple[int, ...], Floats]:
    """The counts, their shape, and the least log L of a pair of rates that is kept."""
    if not isinstance(tally, Tally):
        raise InvalidInput(f"tally must be a Tally, but got {tally!r}. Use eg.Tally(tp=, tn=, fp=, fn=).")
    d, alpha = checks.delta(delta), 1.0 - checks.level(level)
    shape = checks.broadcast(tally=tally.tp, delta=d, eps=np.zeros(()) if eps is None else eps)
    fn, tp, fp, tn, d = (
        np.broadcast_to(q, shape).ravel().astype(np.float64) for q in (tally.fn, tally.tp, tally.fp, tally.tn, d)
    )
    peak = log_peak(fn, tp) + log_peak(fp, tn)
    # log of the mean of L: B(½, ½) = π
    mean = -beta.log_norm(fn + 0.5, tp + 0.5) - beta.log_norm(fp + 0.5, tn + 0.5) - 2 * np.log(np.pi)
    return Rows(fn, tp, fp, tn, d, peak), shape, mean + np.log(alpha)


def _low(rows: Rows, c: Floats) -> Floats:
    """min ε over the set: where the largest L over the privacy region R(ε, δ) reaches c.

    log L is concave and R convex, so that largest value is at the most likely rates if they are in R, and else on the
    part of R's boundary that faces them: two segments that meet at the vertex x = y.
    """
    rows = facing(rows)
    top = np.minimum(eps_at_peak(rows), HIGHEST_LOW)
    out = np.zeros_like(c)
    some = np.flatnonzero(top > 0)
    some = some[on_boundary(rows.pick(some), np.zeros(some.size)) < c[some]]
    if some.size:
        picked = rows.pick(some)
        out[some] = _cross(
            lambda eps, i: on_boundary(picked.pick(i), eps), picked.peak, c[some], np.zeros(some.size), top[some]
        )
    return out


def _high(rows: Rows, c: Floats) -> Floats:
    """max ε over the set. Beyond each of R's four lines, L is largest on the line, or at the most likely rates."""
    flipped = rows.flipped()
    ends: list[Floats] = [_beyond(r, c) for r in (rows, rows.swapped(), flipped, flipped.swapped())]
    return np.maximum(np.maximum(ends[0], ends[1]), np.maximum(ends[2], ends[3]))


def _beyond(rows: Rows, c: Floats) -> Floats:
    """The largest ε for which some kept rates are beyond the line y + e^ε x = 1 − δ; 0 if there is none."""
    slack, n1, n0 = 1.0 - rows.delta, rows.fn + rows.tp, rows.fp + rows.tn
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = rows.fn / n1, rows.fp / n0
        # a class without samples has every rate as its most likely one: that with the largest ε
        x, y = np.where(n1 > 0, x, 0.0), np.where(n0 > 0, y, 0.0)
        start = np.where(y < slack, np.maximum(0.0, np.log(np.maximum(slack - y, 0.0) / x)), 0.0)
    # never wrong on one side: x = 0 is kept with the most likely y that the line allows
    y = np.minimum(y, slack)
    at_zero = log_peak(rows.fn, rows.tp) + special.xlogy(rows.fp, y) + special.xlogy(rows.tn, 1.0 - y)
    out = np.where((rows.fn == 0) & (at_zero >= c), np.inf, 0.0)
    some = np.flatnonzero((out == 0) & ((start > 0) | (on_line(rows, np.zeros_like(c)) >= c)))
    if some.size:
        rows, c, start = rows.pick(some), c[some], start[some]
        out[some] = _cross(lambda eps, i: on_line(rows.pick(i), eps), rows.peak, c, np.full(some.size, HIGHEST), start)
    return out


def _cross(value: Any, peak: Floats, c: Floats, far: Floats, near: Floats) -> Floats:
    """The ε between `far` (value < c) and `near` (value ≥ c) at which value = c; rows at once.

    In √(2(peak − value)) the function is nearly linear. Regula falsi with halved weights (Illinois), kept safe by
    bisection.
    """
    target = np.sqrt(2.0 * (peak - c))

    def miss(eps: Floats, rows: Any) -> Floats:
        gap = np.maximum(peak[rows] - value(eps, rows), 0.0)
        out: Floats = np.sqrt(2.0 * gap) - target[rows]
        return out

    everything = np.arange(c.size)
    out, todo = near.copy(), everything
    a, b = far.copy(), near.copy()
    fa, fb = np.minimum(miss(a, everything), 1e3), miss(b, everything)
    side = np.zeros(c.size)
    for step in range(200):
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = (a * fb - b * fa) / (fb - fa)
        middle = 0.5 * (a + b)
        inside: Bools = (guess > np.minimum(a, b)) & (guess < np.maximum(a, b)) & (step % 4 != 3)
        eps = np.where(inside, guess, middle)
        f = miss(eps, todo)
        outside = f > 0
        a, b = np.where(outside, eps, a), np.where(outside, b, eps)
        fa, fb = (
            np.where(outside, f, np.where(side < 0, 0.5 * fa, fa)),
            np.where(outside, np.where(side > 0, 0.5 * fb, fb), f),
        )
        side = np.where(outside, 1.0, -1.0)
        done = (np.abs(a - b) <= TOLERANCE * (1.0 + np.abs(a))) | (f == 0)
        if done.any():
            out[todo[done]] = np.where(f == 0, eps, a)[done]
            keep = ~done
            if not keep.any():
                return out
            todo, side = todo[keep], side[keep]
            a, b, fa, fb = a[keep], b[keep], fa[keep], fb[keep]
    raise ArithmeticError("an end of an anytime interval did not converge")  # a defect of ours, never of the input
