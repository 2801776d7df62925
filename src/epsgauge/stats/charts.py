"""Nodes along the line y + e^ε x = 1 − δ, in coordinates in which Beta densities on it are smooth.

On the line x = κ c² and y = (1 − δ) s² with c² + s² = 1. A chart maps [0, 1] to a piece of it so that c grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.quadrature import Rule

# Where the piece next to the corner x = 0 ends if that corner needs one of its own.
SPLIT = 0.75
# How long a piece may be in τ, and a graded one in log c or log s.
TAU_WIDTH = 9.0
LOG_WIDTH = 5.0


Window = Floats  # (4, n): the part of each line that matters, from c² and s² next to x = 0 to another c² and s²


class Piece(NamedTuple):
    """Nodes on some of the lines."""

    rows: Ints | slice
    squares: Floats  # c² and s²
    speed: Floats  # 2c dc/dnode


def pieces(window: Window, delta: Floats, b: Floats, rule: Rule, *, far: bool) -> list[Piece]:
    """Nodes for each window, in one piece, or in two next to the corner x = 0, y = 1 − δ.

    `b` is the shape of 1 − y = δ + (1 − δ) c², whose power b − 1 has a branch point at c = i √δ. Against the rest of
    the integrand it is of the size (δ/c_end²)^(b − ½), and in the window at most δ/c_start². For a derivative in δ,
    which has a factor 1/c², `far` asks for one power more.
    """
    c_start, _, c_end, _ = window
    ratio = c_end / np.maximum(delta, 1e-300)
    corner = (b - (1.5 if far else 0.5)) * np.log(np.maximum(ratio, 1.0)) < 30.0
    corner &= c_start < np.minimum(1e13 * delta, 0.25)
    if not far:
        corner &= ratio < 1e18
    roots = np.sqrt(window)
    near = corner.nonzero()[0]
    if not near.size:
        return [_half_angle(slice(None), roots, rule)]
    out = []
    plain = (~corner).nonzero()[0]
    if plain.size:
        out.append(_half_angle(plain, roots[:, plain], rule))
    out += _hyperbolic(near, delta[near], roots[0, near], np.minimum(roots[2, near], SPLIT), rule)
    rest = near[roots[2, near] > SPLIT]
    if rest.size:
        beside = roots[:, rest]
        beside[0], beside[1] = SPLIT, np.sqrt(1 - SPLIT**2)
        out.append(_half_angle(rest, beside, rule))
    return out


def graded(window: Window, rule: Rule) -> list[Piece]:
    """The same windows for shapes that are no multiples of ½: many pieces, in log c and then in log s.

    A power of c or s is an exponential there, so that any exponent is as smooth as any other; c_start and s_end
    must be above 0.
    """
    c_start, s_start, c_end, s_end = window
    s_end = np.maximum(s_end, 1e-300)  # the vertex, for an ε beyond what double precision holds
    split = np.minimum(np.maximum(SPLIT**2, c_start), c_end)
    out = []
    for start, end, by_c in (
        (c_start, split, True),
        (np.maximum(np.minimum(1.0 - split, s_start), s_end), s_end, False),
    ):
        first, width = 0.5 * np.log(start)[:, None], 0.5 * np.log(end / start)
        count = max(1, int(np.ceil(np.abs(width).max() / LOG_WIDTH)))
        step = (width / count)[:, None]
        for k in range(count):
            square = np.exp(2.0 * (first + step * (k + rule.nodes)))
            both = (square, 1.0 - square) if by_c else (1.0 - square, square)
            out.append(Piece(slice(None), np.array(both), 2.0 * square * np.abs(step)))
    return out


def _half_angle(rows: Ints | slice, roots: Floats, rule: Rule) -> Piece:
    """c = 2g/(1 + g²), or the same for s: g is counted from whichever end is nearer, where digits matter.

    `roots` are those of the window.
    """
    c, s = roots[::2], roots[1::2]  # at the start and at the end
    from_x = c[0] + c[1] < s[0] + s[1]
    start, end = np.where(from_x, c, s) / (1 + np.where(from_x, s, c))
    length = (end - start)[:, None]
    g = length * rule.nodes
    g += start[:, None]
    g2 = g * g
    q = 1.0 + g2
    np.divide(1.0, q, out=q)
    squares = np.empty((2, *g.shape))
    near, far = squares
    np.multiply(g, q, out=near)
    near *= 2.0
    np.subtract(1.0, g2, out=far)
    far *= q
    speed = np.multiply(near, far, out=g)
    speed *= q
    speed *= 4.0 * np.abs(length)
    squares *= squares
    from_y = (~from_x).nonzero()[0]
    if from_y.size:
        squares[:, from_y] = squares[::-1, from_y]
    return Piece(rows, squares, speed)


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
        out.append(Piece(rows, np.array([c2, (1.0 - c) * (1.0 + c)]), speed))
    return out
