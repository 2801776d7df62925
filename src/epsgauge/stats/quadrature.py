"""Gauss–Legendre panels along a curve in the square of rates, with the inner cdf from the same nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from epsgauge.stats.arrays import Floats

# OpenBLAS starts threads above this many rows of 64 × 64; on small blocks they cost more than they give.
BLOCK = 48


@dataclass(frozen=True)
class Rule:
    """Nodes and weights on [0, 1], and the matrix that turns a row of values into integrals from 0 to each node."""

    nodes: Floats
    weights: Floats
    inner: Floats


@cache
def gauss_legendre(n: int) -> Rule:
    """The n-point rule; the inner integral is exact for polynomials up to degree n − 1."""
    x, w = np.polynomial.legendre.leggauss(n)
    p = np.polynomial.legendre.legvander(x, n)  # P_k at the nodes, k = 0..n
    k = np.arange(1, n)
    integral = np.empty((n, n))  # ∫ from −1 to x_i of P_k
    integral[:, 0] = 1.0 + x
    integral[:, 1:] = (p[:, 2:] - p[:, : n - 1]) / (2 * k + 1)
    to_coefficients = (np.arange(n) + 0.5)[:, None] * (p[:, :n] * w[:, None]).T
    return Rule((1.0 + x) / 2, w / 2, 0.5 * (integral @ to_coefficients).T)


def nested(rule: Rule, outer: Floats, inner: Floats) -> Floats:
    """∫ outer(s) ∫_0^s inner(s') ds' ds over [0, 1], row by row."""
    n = len(outer)
    if n > BLOCK:
        return np.concatenate([nested(rule, outer[i : i + BLOCK], inner[i : i + BLOCK]) for i in range(0, n, BLOCK)])
    out: Floats = np.einsum("ij,ij->i", outer * rule.weights, inner @ rule.inner)
    return out


@dataclass(frozen=True)
class Swept:
    """What lies on either side of a panel of a curve along which x grows and y falls."""

    below: Floats  # mass of {y on the panel, x below the curve}
    above: Floats  # mass of {x on the panel, y above the curve}
    x: Floats  # marginal mass of x on the panel
    y: Floats


def sweep(rule: Rule, gx: Floats, gy: Floats, *, x_before: Floats, y_before: Floats) -> Swept:
    """Masses beside a panel from the densities of x and y along it, per unit of the rule's [0, 1].

    `x_before` is Pr[x below its value at the start], `y_before` is Pr[y above its value there].
    """
    x, y = gx @ rule.weights, gy @ rule.weights
    return Swept(x_before * y + nested(rule, gy, gx), y_before * x + nested(rule, gx, gy), x, y)
