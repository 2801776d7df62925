"""Posterior: what four counts say about ε, about δ at an ε, or about μ of Gaussian DP (§3.2 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.display import Plotted, Printed
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.families import DeltaAtEps, EpsAtDelta, Family, GaussianEps, Mu
from epsgauge.stats.interval import Interval
from epsgauge.stats.joint import Joint
from epsgauge.stats.law import Law
from epsgauge.stats.quadrature import gauss_legendre
from epsgauge.stats.tally import CELLS, Tally

Prior = tuple[float, float]
JEFFREYS: Prior = (0.5, 0.5)


def estimate(tally: Tally, *, delta: ArrayLike, prior: Prior = JEFFREYS) -> Posterior:
    """The posterior of ε at `delta`.

    >>> post = estimate(Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    >>> post.interval(0.90)
    Interval(low=1.086, high=2.655, level=0.9, kind='credible')
    """
    return Posterior(tally, EpsAtDelta(checks.delta(delta)), prior)


def estimate_delta(tally: Tally, *, eps: ArrayLike, prior: Prior = JEFFREYS) -> Posterior:
    """The posterior of δ at `eps`."""
    return Posterior(tally, DeltaAtEps(checks.eps(eps)), prior)


def estimate_mu(tally: Tally, *, prior: Prior = JEFFREYS) -> Posterior:
    """The posterior of μ, under the assumption of Gaussian DP; `eps_at(delta)` turns it into one of ε."""
    return Posterior(tally, Mu(), prior)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Printed, Plotted):
    """Distribution of a quantity given a tally; made by `estimate`, `estimate_delta` and `estimate_mu`.

    Methods broadcast their argument against the shape of the tally, as SciPy's distributions do.
    """

    tally: Tally
    family: Family
    prior: Prior = JEFFREYS
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.prior is not JEFFREYS:
            object.__setattr__(self, "prior", checks.prior(self.prior))
        if not isinstance(self.tally, Tally):
            raise InvalidInput(f"tally must be a Tally, but got {self.tally!r}. Use eg.Tally(tp=, tn=, fp=, fn=).")
        shape = checks.broadcast(tally=self.tally.tp, **{self.family.parameter_name: self.family.parameter})
        object.__setattr__(self, "shape", shape)

    # What it is of

    @property
    def quantity(self) -> str:
        return self.family.quantity

    def __getitem__(self, index: Any) -> Posterior:
        if not self.shape:
            raise InvalidInput("this posterior is of one tally and cannot be indexed.")
        cells = {c: np.broadcast_to(getattr(self.tally, c), self.shape)[index] for c in CELLS}
        picked = np.arange(math.prod(self.shape)).reshape(self.shape)[index]
        return Posterior(Tally(**cells), self.family.flat(self.shape).pick(picked), self.prior)

    def eps_at(self, delta: ArrayLike) -> Posterior:
        """For a posterior of μ: that of ε at `delta`, under the assumption of Gaussian DP."""
        if not isinstance(self.family, Mu):
            raise InvalidInput(f"eps_at needs a posterior of mu, but this is one of {self.quantity}. Use estimate_mu.")
        d = checks.delta(delta)
        checks.within("delta", delta, "above 0, as Gaussian DP with δ = 0 has no finite ε", d > 0)
        return Posterior(self.tally, GaussianEps(d), self.prior)

    # Its distribution

    def cdf(self, value: ArrayLike) -> Any:
        """Pr[θ ≤ value]: Eq. 3 of the paper for ε."""
        return self._at(value, "cdf", below=0.0, beyond=1.0)

    def sf(self, value: ArrayLike) -> Any:
        """Pr[θ > value], accurate where it is small."""
        return self._at(value, "sf", below=1.0, beyond=0.0)

    def pdf(self, value: ArrayLike) -> Any:
        """Density of the continuous part, which integrates to 1 − mass_at_zero; that of δ may be infinite at 0.

        The formula printed in the paper's appendix lacks the length of the boundary element; this one has it.
        """
        return self._at(value, "pdf", below=0.0, beyond=0.0)

    @cached_property
    def mass_at_zero(self) -> Any:
        """Pr[θ = 0]: F(0), a point mass, 0 where δ = 0."""
        return self.cdf(0.0)

    def exceeds(self, value: ArrayLike) -> Any:
        """Pr[θ > value], the posterior probability that a claimed value does not hold against this attack."""
        return self.sf(value)

    def quantile(self, p: ArrayLike) -> Any:
        """The smallest θ with cdf ≥ p."""
        p_array = checks.tail(p, "p")
        return self._quantile(p_array, 1.0 - p_array, "p")

    def isf(self, q: ArrayLike) -> Any:
        """The smallest θ with sf ≤ q: the quantile of 1 − q, for a q that 1 − q would round."""
        q_array = checks.tail(q, "q")
        return self._quantile(1.0 - q_array, q_array, "q")

    def median(self) -> Any:
        return self.quantile(0.5)

    def mean(self) -> Any:
        """∫ sf, to about ten digits."""
        rule = gauss_legendre(24)
        column = (-1,) + (1,) * len(self.shape)
        low = self.quantile(np.reshape([0.0, 1e-6, 0.02, 0.3, 0.8, 0.99], column))
        cuts = np.concatenate([low, self.isf(np.reshape([1e-3, 1e-5, 1e-8, 1e-12], column))])
        width = np.diff(cuts, axis=0)[:, None]
        nodes = rule.nodes.reshape(column)
        sf = self.sf(cuts[:-1, None] + width * nodes)
        return np.sum(width * rule.weights.reshape(column) * sf, axis=(0, 1))[()]

    def interval(self, level: float = 0.90) -> Interval:
        """Equal-tailed credible interval (Eq. 4); its low end is 0 where the mass at 0 exceeds a tail."""
        alpha = 1.0 - checks.level(level)
        low, high = (end.reshape(self.shape)[()] for end in self._law.ends(alpha))
        return Interval(low, high, level, "credible")

    def lower_bound(self, level: float = 0.95) -> Any:
        """One-sided: θ is above it with probability `level`."""
        return self.quantile(1.0 - checks.level(level))

    def hpd(self, level: float = 0.90) -> tuple[Interval, ...]:
        """The smallest set with this probability: the point mass at 0 first, then the highest density.

        It may be a union. [0, 0] stands for the point mass alone. For one tally: index an array first.
        """
        from epsgauge.stats.hpd import highest_density  # it needs this class

        self._only_one("hpd")
        return highest_density(self, checks.level(level))

    @cached_property
    def joint(self) -> Joint:
        """The posterior of (FNR, FPR) itself, for one tally."""
        self._only_one("joint")
        (a, b), (c, d) = self._shapes
        return Joint((float(a[0]), float(b[0])), (float(c[0]), float(d[0])))

    def sample(self, n: int, *, seed: int | np.random.SeedSequence) -> Floats:
        """n draws of θ, along the first axis, from draws of both rates."""
        x, x_up, y, y_up = self.sample_rates(n, seed=seed)
        return self.family.of_rates(x, x_up, y, y_up)

    def sample_rates(self, n: int, *, seed: int | np.random.SeedSequence) -> tuple[Floats, Floats, Floats, Floats]:
        """n draws of FNR, 1 − FNR, FPR and 1 − FPR; the complements keep their digits near 0."""
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise InvalidInput(f"n must be a whole number, 1 or more, but got {n!r}.")
        rng = np.random.default_rng(seed)
        out: list[Floats] = []
        for a, b in self._shapes:
            # a Beta from two Gammas has both x and 1 − x to full relative accuracy
            g, h = (rng.standard_gamma(s.reshape(self.shape), size=(n, *self.shape)) for s in (a, b))
            out += [g / (g + h), h / (g + h)]
        return out[0], out[1], out[2], out[3]

    def __repr__(self) -> str:
        at = f"Posterior of {self.family.symbol}{self.family.given}"
        return f"<{at} given {self.tally!r}>"

    def _only_one(self, what: str) -> None:
        if self.shape:
            raise InvalidInput(
                f"{what} is for one tally, but this posterior has the shape {self.shape}. Index it first."
            )

    # Between the public shape and the flat inside

    @cached_property
    def _shapes(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Shapes of the Beta posteriors of FNR and FPR (Eq. 2 of the paper)."""
        (a, b), t = self.prior, self.tally
        cells: list[Any] = [t.fn + a, t.tp + b, t.fp + a, t.tn + b]
        if t.shape != self.shape:
            cells = [np.broadcast_to(cell, self.shape) for cell in cells]
        fn, tp, fp, tn = (cell.ravel() for cell in cells)
        return (fn, tp), (fp, tn)

    @cached_property
    def _law(self) -> Law:
        return Law(self.family.flat(self.shape), *self._shapes)

    def _index(self, shape: tuple[int, ...]) -> Ints:
        return np.broadcast_to(np.arange(math.prod(self.shape)).reshape(self.shape), shape)

    def _at(self, value: ArrayLike, what: str, *, below: float, beyond: float) -> Any:
        theta = checks.numbers("value", value)
        shape = checks.broadcast(value=theta, posterior=np.empty(self.shape))
        theta = np.broadcast_to(theta, shape)
        out = np.where(theta < 0, below, beyond)
        inside = (theta >= 0) & (theta < self.family.top)
        if inside.any():
            out[inside] = getattr(self._law.at(theta[inside], self._index(shape)[inside]), what)
        return out[()]

    def _quantile(self, p: Floats, q: Floats, name: str) -> Any:
        shape = checks.broadcast(**{name: p, "posterior": np.empty(self.shape)})
        p, q = np.broadcast_to(p, shape).ravel(), np.broadcast_to(q, shape).ravel()
        return self._law.quantile(p, q, self._index(shape).ravel()).reshape(shape)[()]
