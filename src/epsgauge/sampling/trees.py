"""Boosted trees of a few levels for log-odds, in NumPy: what learns any region of a few numbers.

Values are cut at their quantiles; each tree takes the Newton step of the logistic loss (Friedman 2001, in the form of
Chen and Guestrin 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

LEVELS, ROUNDS, RATE = 3, 30, 0.3
BINS = 64
_NEAR, _EVEN = np.geomspace(1e-3, 0.02, 9), np.linspace(0.02, 0.98, 46)
SHARES = np.concatenate([_NEAR[:-1], _EVEN, 1.0 - _NEAR[-2::-1]])  # below each cut
RIDGE = 1.0  # added to the curvature of a leaf
LEAST = 1.0  # curvature of a leaf: four samples that are quite open
MOST = 10  # columns: those that tell most by one cut
Binned = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Tree:
    """Level by level: the column and the cut of each node; a value above the cut goes right."""

    column: list[Ints]
    cut: list[Ints]
    leaf: Floats


@dataclass(frozen=True, eq=False)
class Trees:
    """Log-odds as a sum of trees."""

    columns: Ints  # of all those that are given
    edges: list[Floats]
    trees: list[Tree]
    start: float

    @classmethod
    def fit(cls, values: Floats, bits: Ints, *, weights: Floats | None = None) -> Trees:
        """Log-odds of b = 1; those of samples that weigh as much as `weights` says."""
        weight = np.ones(len(bits)) if weights is None else weights * len(bits) / weights.sum()
        edges = [_edges(column) for column in values.T]
        binned = _binned(values, edges)
        start = float(special.logit((weight @ bits + 1.0) / (len(bits) + 2.0)))
        columns = _telling(binned, bits, weight)
        binned, edges = binned[:, columns], [edges[c] for c in columns]
        log_odds, trees = np.full(len(bits), start), list[Tree]()
        for _ in range(ROUNDS):
            p = special.expit(log_odds)
            tree, step = _grown(binned, weight * (bits - p), weight * p * (1.0 - p))
            trees.append(tree)
            log_odds = log_odds + step
        return cls(columns, edges, trees, start)

    def log_odds(self, values: Floats) -> Floats:
        binned = _binned(values[:, self.columns], self.edges)
        out = np.full(len(values), self.start)
        for tree in self.trees:
            out += tree.leaf[_leaves(tree, binned)]
        return out


def _edges(column: Floats) -> Floats:
    """Cuts at quantiles, closer to each other at both ends; a column with few values is cut between all of them."""
    finite = column[np.isfinite(column)]
    if not len(finite):
        return np.empty(0)
    once = np.unique(finite)
    if len(once) <= BINS:
        return once[:-1] + 0.5 * np.diff(once)
    return np.unique(np.quantile(finite, SHARES))


def _binned(values: Floats, edges: list[Floats]) -> Binned:
    """What is no number is below all numbers."""
    out = np.zeros(values.shape, np.uint8, order="F")
    for c, cuts in enumerate(edges):
        column = values[:, c]
        out[:, c] = np.where(np.isnan(column), 0, np.searchsorted(cuts, column, side="left") + 1)
    return out


def _telling(binned: Binned, bits: Ints, weight: Floats) -> Ints:
    """The columns whose best cut gains most."""
    share = float(weight @ bits / len(bits))
    slope: Floats = weight * (bits - share)
    curve, node = weight * share * (1.0 - share), np.zeros(len(bits), np.int64)
    gains = [float(_gains(node, 1, column, slope, curve).max()) for column in binned.T]
    return np.sort(np.argsort(-np.array(gains), kind="stable")[:MOST])


def _gains(node: Ints, n_nodes: int, column: NDArray[np.uint8], slope: Floats, curve: Floats) -> Floats:
    """What a cut of this column after each bin would gain, node by bin."""
    width = BINS + 2
    at = node * width + column
    g, h = (
        np.bincount(at, weights=w, minlength=n_nodes * width).reshape(n_nodes, width).cumsum(axis=1)
        for w in (slope, curve)
    )
    all_g, all_h = g[:, -1:], h[:, -1:]
    gain = g**2 / (h + RIDGE) + (all_g - g) ** 2 / (all_h - h + RIDGE) - all_g**2 / (all_h + RIDGE)
    return np.where((h >= LEAST) & (all_h - h >= LEAST), gain, 0.0)


def _grown(binned: Binned, slope: Floats, curve: Floats) -> tuple[Tree, Floats]:
    n, n_columns = binned.shape
    node = np.zeros(n, np.int64)
    columns, cuts = list[Ints](), list[Ints]()
    for level in range(LEVELS):
        n_nodes = 2**level
        best = np.full(n_nodes, 1e-9)
        column, cut = np.zeros(n_nodes, np.int64), np.full(n_nodes, BINS + 2, np.int64)  # no cut: all go left
        for c in range(n_columns):
            gain = _gains(node, n_nodes, binned[:, c], slope, curve)
            where = gain.argmax(axis=1)
            found = gain[np.arange(n_nodes), where]
            better = found > best
            best, column, cut = (np.where(better, new, old) for new, old in ((found, best), (c, column), (where, cut)))
        columns.append(column)
        cuts.append(cut)
        node = 2 * node + (binned[np.arange(n), column[node]] > cut[node])
    g, h = (np.bincount(node, weights=w, minlength=2**LEVELS) for w in (slope, curve))
    leaf = RATE * g / (h + RIDGE)
    return Tree(columns, cuts, leaf), leaf[node]


def _leaves(tree: Tree, binned: Binned) -> Ints:
    node, rows = np.zeros(len(binned), np.int64), np.arange(len(binned))
    for column, cut in zip(tree.column, tree.cut, strict=True):
        node = 2 * node + (binned[rows, column[node]] > cut[node])
    return node
