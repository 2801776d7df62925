"""Nodes along the line y + e^ε x = 1 − δ, in coordinates in which Beta densities on it are smooth.

On the line x = κ c² and y = (1 − δ) s² with c² + s² = 1. A chart maps [0, 1] to a piece of it so that c grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.quadrature import Rule

# Where the piece next to the corner x = 0 ends if that corner needs one of its own.
SPLIT = 0.75
# How long a piece may be in τ, and a graded one in log c or log s.
TAU_WIDTH = 9.0
LOG_WIDTH = 5.0


@dataclass(frozen=True)
class Window:
    """The part of each line that matters, from one c² and s² to another; the start is next to x = 0."""

    c_start: Floats
    s_start: Floats
    c_end: Floats
    s_end: Floats

    def pick(self, rows: Ints) -> Window:
        """Some of the lines, flat."""
        return Window(*(w.ravel()[rows] for w in (self.c_start, self.s_start, self.c_end, self.s_end)))


@dataclass(frozen=True)
class Piece:
    """Nodes on some of the lines: c², s² and 2c dc/dnode."""

    rows: Ints
    c2: Floats
    s2: Floats
    speed: Floats


def pieces(window: Window, delta: Floats, b: Floats, rule: Rule, *, far: bool) -> list[Piece]:
    """Nodes for each window, in one piece, or in two next to the corner x = 0, y = 1 − δ.

    `b` is the shape of 1 − y = δ + (1 − δ) c², whose power b − 1 has a branch point at c = i √δ. Against the rest of
    the integrand it is of the size (δ/c_end²)^(b − ½), and in the window at most δ/c_start². For a derivative in δ,
    which has a factor 1/c², `far` asks for one power more.
    """
    ratio = window.c_end / np.maximum(delta, 1e-300)
    felt = ((b - (1.5 if far else 0.5)) * np.log(np.maximum(ratio, 1.0)) < 30.0) & (far | (ratio < 1e18)) & (delta > 0)
    corner = felt & (window.c_start < np.minimum(1e13 * delta, 0.25))
    rows = np.arange(len(corner))
    cs, ss, ce, se = (np.sqrt(w) for w in (window.c_start, window.s_start, window.c_end, window.s_end))
    if not corner.any():
        return [_half_angle(rows, cs, ss, ce, se, rule)]
    out = []
    plain = np.flatnonzero(~corner)
    if plain.size:
        out.append(_half_angle(rows[plain], cs[plain], ss[plain], ce[plain], se[plain], rule))
    near = np.flatnonzero(corner)
    out += _hyperbolic(rows[near], delta[near], cs[near], np.minimum(ce[near], SPLIT), rule)
    rest = near[ce[near] > SPLIT]
    if rest.size:
        c, s = np.full(rest.size, SPLIT), np.full(rest.size, np.sqrt(1 - SPLIT**2))
        out.append(_half_angle(rows[rest], c, s, ce[rest], se[rest], rule))
    return out


def graded(window: Window, rule: Rule) -> list[Piece]:
    """The same windows for shapes that are no multiples of ½: many pieces, in log c and then in log s.

    A power of c or s is an exponential there, so that any exponent is as smooth as any other; c_start and s_end
    must be above 0.
    """
    rows = np.arange(len(window.c_start))
    s_end = np.maximum(window.s_end, 1e-300)  # the vertex, for an ε beyond what double precision holds
    split = np.minimum(np.maximum(SPLIT**2, window.c_start), window.c_end)
    out = []
    for start, end, by_c in (
        (window.c_start, split, True),
        (np.maximum(np.minimum(1.0 - split, window.s_start), s_end), s_end, False),
    ):
        first, width = 0.5 * np.log(start)[:, None], 0.5 * np.log(end / start)
        count = max(1, int(np.ceil(np.abs(width).max() / LOG_WIDTH)))
        step = (width / count)[:, None]
        for k in range(count):
            square = np.exp(2.0 * (first + step * (k + rule.nodes)))
            speed = 2.0 * square * np.abs(step)
            other = 1.0 - square
            out.append(Piece(rows, square, other, speed) if by_c else Piece(rows, other, square, speed))
    return out


def _half_angle(rows: Ints, cs: Floats, ss: Floats, ce: Floats, se: Floats, rule: Rule) -> Piece:
    """c = 2g/(1 + g²), or the same for s: g is counted from whichever end is nearer, where digits matter."""
    from_x = cs + ce < ss + se
    start = np.where(from_x, cs, ss) / (1 + np.where(from_x, ss, cs))
    end = np.where(from_x, ce, se) / (1 + np.where(from_x, se, ce))
    g = start[:, None] + (end - start)[:, None] * rule.nodes
    g2 = g * g
    q = 1.0 / (1.0 + g2)
    near = 2.0 * g * q
    far = (1.0 - g2) * q
    speed = near * far
    speed *= q
    speed *= 4.0 * np.abs(end - start)[:, None]
    near *= near
    far *= far
    if from_x.all():
        return Piece(rows, near, far, speed)
    flag = from_x[:, None]
    return Piece(rows, np.where(flag, near, far), np.where(flag, far, near), speed)


def _hyperbolic(rows: Ints, delta: Floats, cs: Floats, ce: Floats, rule: Rule) -> list[Piece]:
    """c = √η sinh τ with η = δ/(1 − δ): then 1 − y = δ cosh² τ, smooth however small δ is; in pieces if τ goes far."""
    root = np.sqrt(delta / (1.0 - delta))
    start, end = np.arcsinh(cs / root), np.arcsinh(ce / root)
    count = max(1, int(np.ceil((end - start).max() / TAU_WIDTH)))
    width = ((end - start) / count)[:, None]
    out = []
    for k in range(count):
        tau = start[:, None] + width * (k + rule.nodes)
        c = root[:, None] * np.sinh(tau)
        c2 = c * c
        speed = 2.0 * c * np.sqrt(root[:, None] ** 2 + c2) * width
        out.append(Piece(rows, c2, (1.0 - c) * (1.0 + c), speed))
    return out
