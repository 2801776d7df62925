"""An interval for ε that allows for the dependence of guesses about one model (m > 1).

It widens the posterior by what the models' own counts show of their dependence. It corrects the variance, not the bias:
if several pairs in one training set change what the attack sees of each of them, that is not seen here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.stats import beta, checks, special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.region import log_ratio_max

# Below so many models their counts say too little about dependence.
MIN_MODELS = 10
# The prior is flat: ρ of either rate on (0, 1), and the correlation of a model's two rates on (−1, 1). Points of the
# grid for the logarithm of each design effect 1 + (n̄ − 1)ρ, and for the correlation:
EFFECTS, CORRELATIONS = 10, 9
# So often the grid is drawn in, to where a coordinate has more than this weight.
ROUNDS, NO_WEIGHT = 3, 1e-4
# Points of a fixed lattice, of which the quantiles are taken: the same input gives the same output.
POINTS = 8192
JEFFREYS = 0.5


@dataclass(frozen=True)
class ClusterInterval:
    """A credible interval for ε; `rho` and `design_effect` are posterior means, of FNR and of FPR.

    `correlation` is that of the errors of both rates: negative where models differ by a shared threshold.
    """

    low: float
    high: float
    level: float
    rho: tuple[float, float]
    design_effect: tuple[float, float]
    correlation: float
    n_models: int


def cluster_interval(
    fn: ArrayLike, n_positive: ArrayLike, fp: ArrayLike, n_negative: ArrayLike, *, delta: float, level: float = 0.90
) -> ClusterInterval | None:
    """The interval from each model's wrong guesses and how many it had to make; None below 10 models.

    A model's counts vary around their means with the variance n x(1−x)(1 + (n−1)ρ), and FN and FP of one model covary.
    Both ρ and the correlation are integrated over their prior, weighted by how well they fit the models' counts. Given
    them, FNR and FPR have Beta posteriors of their effective numbers of samples, joined by the correlation.

    >>> rng = np.random.default_rng(0)
    >>> fn, fp = rng.binomial(5, 0.3, 40), rng.binomial(5, 0.4, 40)
    >>> found = cluster_interval(fn, np.full(40, 5), fp, np.full(40, 5), delta=1e-5)
    >>> bool(found.low < np.log(0.6 / 0.3) < found.high)
    True
    """
    cells = _models(fn, n_positive, fp, n_negative)
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    if len(cells[0]) < MIN_MODELS:
        return None
    fn_j, n1, fp_j, n0 = cells
    grid, weights = _posterior(fn_j, n1, fp_j, n0)
    r = grid.error_correlation(n1, n0)
    x, y = _draws(grid, weights, r, (fn_j.sum(), n1.sum()), (fp_j.sum(), n0.sum()))
    eps = log_ratio_max(x, 1.0 - x, y, 1.0 - y, np.asarray(d))
    low, high = np.quantile(eps, [alpha / 2, 1.0 - alpha / 2], method="median_unbiased")
    rho, effect = (
        (float(weights @ a), float(weights @ b))
        for a, b in ((grid.rho_fnr, grid.rho_fpr), (grid.effect_fnr, grid.effect_fpr))
    )
    return ClusterInterval(float(low), float(high), level, rho, effect, float(weights @ r), len(n1))


@dataclass(frozen=True)
class _Grid:
    """All combinations of both design effects and the correlation, with the logarithm of their prior."""

    effect_fnr: Floats
    effect_fpr: Floats
    rho_fnr: Floats
    rho_fpr: Floats
    correlation: Floats
    log_prior: Floats

    @classmethod
    def of(cls, largest: tuple[float, float], ranges: Floats) -> _Grid:
        """Even points of log D for both rates and of the correlation, between the rows (low, high) of `ranges`."""
        points = [
            low + (high - low) * (np.arange(n) + 0.5) / n
            for n, (low, high) in zip((EFFECTS, EFFECTS, CORRELATIONS), ranges, strict=True)
        ]
        log_x, log_y, c = (a.ravel() for a in np.meshgrid(*points, indexing="ij"))
        rho_x, rho_y = (np.expm1(log) / max(m - 1.0, 1e-300) for log, m in zip((log_x, log_y), largest, strict=True))
        # flat in ρ is flat in the design effect D, and ∝ D where log D is the coordinate
        return cls(np.exp(log_x), np.exp(log_y), rho_x, rho_y, c, log_x + log_y)

    def error_correlation(self, n1: Floats, n0: Floats) -> Floats:
        """The correlation of the errors of the pooled FNR and FPR."""
        shared = (n1 * n0).sum() / np.sqrt(n1.sum() * n0.sum())
        both = np.sqrt(self.rho_fnr * self.rho_fpr / (self.effect_fnr * self.effect_fpr))
        out: Floats = self.correlation * both * shared
        return out


def _posterior(fn: Floats, n1: Floats, fp: Floats, n0: Floats) -> tuple[_Grid, Floats]:
    """A grid and its weights; it is drawn in until it fits the part that has any weight."""
    largest = (float((n1 * n1).sum() / n1.sum()), float((n0 * n0).sum() / n0.sum()))  # the design effects of ρ = 1
    ranges = np.array([(0.0, np.log(largest[0])), (0.0, np.log(largest[1])), (-1.0, 1.0)])
    groups = _Groups.of(fn, n1, fp, n0)
    for last in [False] * ROUNDS + [True]:
        grid = _Grid.of(largest, ranges)
        weights = _weights(grid, groups)
        if last:
            break
        cube = weights.reshape(EFFECTS, EFFECTS, CORRELATIONS)
        for axis, others in enumerate(((1, 2), (0, 2), (0, 1))):
            share = cube.sum(axis=others)
            some = np.flatnonzero(share > NO_WEIGHT)
            low, high = ranges[axis]
            width = (high - low) / len(share)
            ranges[axis] = low + max(some[0] - 1, 0) * width, low + min(some[-1] + 2, len(share)) * width
    return grid, weights


@dataclass(frozen=True)
class _Groups:
    """What the likelihood needs of the models: sums over those with the same numbers of samples."""

    rates: tuple[float, float]  # FNR and FPR, a little inside (0, 1)
    n1: Floats
    n0: Floats
    times: Floats
    a: Floats  # sums of what FN and FP have over their means, and of squares and products of that
    b: Floats
    aa: Floats
    bb: Floats
    ab: Floats

    @classmethod
    def of(cls, fn: Floats, n1: Floats, fp: Floats, n0: Floats) -> _Groups:
        a, b = fn - n1 * fn.sum() / n1.sum(), fp - n0 * fp.sum() / n0.sum()
        sizes, which, times = np.unique(np.stack([n1, n0]), axis=1, return_inverse=True, return_counts=True)
        sums: list[Floats] = [
            np.bincount(which.ravel(), weights=w).astype(np.float64) for w in (a, b, a * a, b * b, a * b)
        ]
        x, y = ((k.sum() + JEFFREYS) / (n.sum() + 1.0) for k, n in ((fn, n1), (fp, n0)))
        return cls((float(x), float(y)), sizes[0], sizes[1], times.astype(np.float64), *sums)


def _weights(grid: _Grid, g: _Groups) -> Floats:
    """The posterior of the grid's points: a normal likelihood of the models' counts, both means integrated out."""
    spread_x, spread_y = (r * (1.0 - r) for r in g.rates)
    n1, n0 = g.n1, g.n0
    # variances and covariance of a model's FN and FP, one row per point; 1 stands for that of an empty class
    var_a = np.where(n1 > 0, spread_x * n1 * (1.0 + (n1 - 1.0) * grid.rho_fnr[:, None]), 1.0)
    var_b = np.where(n0 > 0, spread_y * n0 * (1.0 + (n0 - 1.0) * grid.rho_fpr[:, None]), 1.0)
    cov = (grid.correlation * np.sqrt(grid.rho_fnr * grid.rho_fpr * spread_x * spread_y))[:, None] * (n1 * n0)
    det = var_a * var_b - cov * cov
    aa, bb, ab = var_b / det, var_a / det, -cov / det
    fit = aa @ g.aa + bb @ g.bb + 2.0 * (ab @ g.ab)
    # the normal equations of both means, at the pooled rates
    i_aa, i_bb, i_ab = aa @ (g.times * n1 * n1), bb @ (g.times * n0 * n0), ab @ (g.times * n1 * n0)
    u_a, u_b = aa @ (n1 * g.a) + ab @ (n1 * g.b), ab @ (n0 * g.a) + bb @ (n0 * g.b)
    i_det = i_aa * i_bb - i_ab * i_ab
    fit -= (i_bb * u_a * u_a + i_aa * u_b * u_b - 2.0 * i_ab * u_a * u_b) / i_det
    logs = grid.log_prior - 0.5 * (np.log(det) @ g.times + np.log(i_det) + fit)
    out: Floats = special.softmax(logs)
    return out


def _draws(
    grid: _Grid, weights: Floats, r: Floats, fnr: tuple[float, float], fpr: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Points of the posterior of both rates, evenly spread; fnr and fpr are (k, n)."""
    pick, u, v = _lattice(POINTS)
    at = np.minimum(np.searchsorted(np.cumsum(weights), pick), len(weights) - 1)
    z = r[at] * special.ndtri(u) + np.sqrt(1.0 - r[at] ** 2) * special.ndtri(v)
    x, y = (
        beta.quantile(k / effect[at] + JEFFREYS, (n - k) / effect[at] + JEFFREYS, p)
        for (k, n), effect, p in ((fnr, grid.effect_fnr, u), (fpr, grid.effect_fpr, special.ndtr(z)))
    )
    return x, y


def _lattice(n: int) -> Floats:
    """n points of the unit cube that fill it evenly: multiples of powers of the root of g⁴ = g + 1."""
    g = 1.2207440846057596
    out: Floats = (0.5 + np.arange(1, n + 1) * g ** -np.arange(1.0, 4.0)[:, None]) % 1.0
    return out


def _models(fn: ArrayLike, n_positive: ArrayLike, fp: ArrayLike, n_negative: ArrayLike) -> tuple[Floats, ...]:
    """The counts, one entry a model, checked."""
    given = {"fn": fn, "n_positive": n_positive, "fp": fp, "n_negative": n_negative}
    cells = {name: checks.counts(name, value) for name, value in given.items()}
    shape = checks.broadcast(**cells)
    if len(shape) != 1:
        raise InvalidInput(f"fn, n_positive, fp and n_negative must be lists with one entry a model, but got {shape}.")
    full = {name: np.broadcast_to(cell, shape) for name, cell in cells.items()}
    checks.within("fn", full["fn"], "at most n_positive", full["fn"] <= full["n_positive"])
    checks.within("fp", full["fp"], "at most n_negative", full["fp"] <= full["n_negative"])
    for name in ("n_positive", "n_negative"):
        if not full[name].sum():
            raise InvalidInput(f"{name} must not be 0 in all models: both bits are needed.")
    return tuple(cell.astype(np.float64) for cell in full.values())
