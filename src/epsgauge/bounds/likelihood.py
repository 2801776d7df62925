"""The largest likelihood of four counts on the boundary of a privacy region; flat arrays, input trusted.

log L(x, y) = FN log x + TP log(1 − x) + FP log y + TN log(1 − y), with x = FNR and y = FPR, is concave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.region import log_ratio_max

# Relative distance at which a point of a line is found: the largest value itself misses only its square.
CLOSE = 1e-8
# A point of a line this near to its end is the end.
TINY = 1e-25
STEPS = 100


@dataclass(frozen=True)
class Rows:
    """Flat counts in the paper's names of the rates; δ and the largest log-likelihood come along."""

    fn: Floats
    tp: Floats
    fp: Floats
    tn: Floats
    delta: Floats
    peak: Floats

    def pick(self, index: Any) -> Rows:
        return Rows(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def swapped(self) -> Rows:
        """With the names of FNR and FPR exchanged."""
        return Rows(self.fp, self.tn, self.fn, self.tp, self.delta, self.peak)

    def flipped(self) -> Rows:
        """The attack that says the opposite."""
        return Rows(self.tp, self.fn, self.tn, self.fp, self.delta, self.peak)


def facing(rows: Rows) -> Rows:
    """Each tally or its flipped one: that whose guesses are better than chance."""
    n1, n0 = rows.fn + rows.tp, rows.fp + rows.tn
    wrong = rows.fn * n0 + rows.fp * n1 > n1 * n0
    return Rows(*(np.where(wrong, b, a) for a, b in zip(_columns(rows), _columns(rows.flipped()), strict=True)))


def eps_at_peak(rows: Rows) -> Floats:
    """ε at the most likely rates; 0 without a class, as its rate can be whatever makes ε 0."""
    n1, n0 = rows.fn + rows.tp, rows.fp + rows.tn
    one, two = np.maximum(n1, 1.0), np.maximum(n0, 1.0)
    eps = log_ratio_max(rows.fn / one, rows.tp / one, rows.fp / two, rows.tn / two, rows.delta)
    out: Floats = np.where((n1 > 0) & (n0 > 0), eps, 0.0)
    return out


def log_peak(k: Floats, rest: Floats) -> Floats:
    """log of the largest likelihood of k and n − k."""
    n = np.maximum(k + rest, 1.0)
    out: Floats = special.xlogy(k, k / n) + special.xlogy(rest, rest / n)
    return out


def on_boundary(rows: Rows, eps: Floats) -> Floats:
    """The largest log L on the two segments of R's boundary that face (0, 0)."""
    end = special.expit(eps)
    return np.maximum(on_line(rows, eps, end), on_line(rows.swapped(), eps, end))


def on_line(rows: Rows, eps: Floats, end: Floats | float = 1.0) -> Floats:
    """The largest log L on the line y + e^ε x = 1 − δ, for t from 0 to `end`: x = κt, y = (1 − δ)(1 − t)."""
    slack = 1.0 - rows.delta
    kappa = slack * np.exp(-eps)
    t = _stationary(rows.fn, rows.tn, rows.tp, rows.fp, kappa, rows.delta / slack, np.broadcast_to(end, eps.shape))
    out: Floats = (
        special.xlogy(rows.fn, t)
        + rows.fn * (np.log(slack) - eps)
        + special.xlog1py(rows.tp, -kappa * t)
        + special.xlogy(rows.fp, slack * (1.0 - t))
        + special.xlogy(rows.tn, rows.delta + slack * t)
    )
    return out


def _stationary(fn: Floats, tn: Floats, tp: Floats, fp: Floats, kappa: Floats, bend: Floats, end: Floats) -> Floats:
    """Where log L is largest on a line: its slope times t(1 − t) changes sign once, from + to −, or t is an end."""

    def slope(t: Floats, i: Any) -> tuple[Floats, Floats]:
        rest, near, far = 1.0 - t, bend[i] + t, 1.0 - kappa[i] * t
        up, down = tn[i] / near, tp[i] * kappa[i] / far
        value = fn[i] * rest - fp[i] * t + t * rest * (up - down)
        growth = (1.0 - 2.0 * t) * (up - down) - t * rest * (up / near + down * kappa[i] / far) - fn[i] - fp[i]
        return value, growth

    with np.errstate(divide="ignore", invalid="ignore"):
        # at 1 and κ = 1 the slope is −TP, which comes as NaN; at 0 it is endless unless FN is 0, and δ or TN is not
        rises = slope(end, slice(None))[0] >= 0
        falls = (fn == 0) & ((tn == 0) | (tn / bend <= tp * kappa + fp))
        out = np.where(rises, end, 0.0)
        todo = np.flatnonzero(~rises & ~falls)
        low, high = np.zeros(todo.size), end[todo]
        t = 0.5 * high
        for _ in range(STEPS):
            if not todo.size:
                break
            value, growth = slope(t, todo)
            low, high = np.where(value > 0, t, low), np.where(value > 0, high, t)
            step = t - value / growth
            inside = (step >= low) & (step <= high)
            new = np.where(inside, step, 0.5 * (low + high))
            done = (np.abs(new - t) <= CLOSE * t * (1.0 - t)) | (high < TINY)
            t = new
            if done.any():
                out[todo[done]] = np.where(high[done] < TINY, 0.0, t[done])
                keep = ~done
                todo, t, low, high = todo[keep], t[keep], low[keep], high[keep]
        out[todo] = t
    return out


def _columns(rows: Rows) -> tuple[Floats, ...]:
    return tuple(getattr(rows, name) for name in rows.__dataclass_fields__)
