"""The quantities a posterior can be of: ε at a δ, δ at an ε, μ of Gaussian DP, and ε at a δ under Gaussian DP.

Each family knows its value at a pair of rates and the mass of the rates at which it is at most θ; everything
else of a posterior follows from these two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epsgauge.stats import gaussian, lines, region, special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.lines import Names

# Tallies worked on at once: few enough that the temporaries stay small.
TALLIES = 512


class Distribution(NamedTuple):
    """cdf, sf and pdf at one θ for each of n tallies."""

    cdf: Floats
    sf: Floats
    pdf: Floats


class Family(ABC):
    """A quantity θ ≥ 0 that is a function of (FNR, FPR)."""

    quantity: str
    symbol: str
    parameter_name: str
    top: float  # the supremum of θ
    assumption: str | None = None

    @property
    @abstractmethod
    def given(self) -> str:
        """What is fixed, as text that follows the symbol: " at δ = 1e-05"."""

    @property
    @abstractmethod
    def parameter(self) -> Floats:
        """The fixed number that defines the family, or one for each tally."""

    @abstractmethod
    def flat(self, shape: tuple[int, ...]) -> Family:
        """The family with one parameter for each tally of an array of this shape."""

    @abstractmethod
    def pick(self, index: Ints) -> Family:
        """The family for some of the tallies of a flat one."""

    @abstractmethod
    def of_rates(self, x: Floats, x_up: Floats, y: Floats, y_up: Floats) -> Floats:
        """θ at FNR = x and FPR = y, both given with their complements."""

    def distribution(self, names: Names, theta: Floats, index: Ints) -> Distribution:
        """Of tallies `index`, at one 0 ≤ theta < top each."""
        n = len(index)
        if n <= TALLIES:
            return self.pick(index).distribution_of_few(names.pick(index), theta)
        blocks = [slice(i, i + TALLIES) for i in range(0, n, TALLIES)]
        found = [self.distribution(names, theta[b], index[b]) for b in blocks]
        return Distribution(*(np.concatenate(q) for q in zip(*found, strict=True)))

    @abstractmethod
    def distribution_of_few(self, names: Names, theta: Floats) -> Distribution:
        """The same for all tallies of `names`."""


@dataclass(frozen=True)
class EpsAtDelta(Family):
    """ε at a fixed δ: Eq. 3 of the paper."""

    delta: Floats
    quantity = "eps"
    symbol = "ε"
    parameter_name = "delta"
    top = np.inf

    @property
    def given(self) -> str:
        return f" at δ = {_text(self.delta)}"

    @property
    def parameter(self) -> Floats:
        return self.delta

    def flat(self, shape: tuple[int, ...]) -> EpsAtDelta:
        return EpsAtDelta(np.full(shape, self.delta).ravel())

    def pick(self, index: Ints) -> EpsAtDelta:
        return EpsAtDelta(self.delta[index])

    def of_rates(self, x: Floats, x_up: Floats, y: Floats, y_up: Floats) -> Floats:
        return region.log_ratio_max(x, x_up, y, y_up, self.delta)

    def distribution_of_few(self, names: Names, theta: Floats) -> Distribution:
        return Distribution(*lines.region_mass(names, theta, self.delta, along="eps"))


@dataclass(frozen=True)
class DeltaAtEps(Family):
    """δ at a fixed ε: the same regions, read along the other parameter."""

    eps: Floats
    quantity = "delta"
    symbol = "δ"
    parameter_name = "eps"
    top = 1.0

    @property
    def given(self) -> str:
        return f" at ε = {_text(self.eps)}"

    @property
    def parameter(self) -> Floats:
        return self.eps

    def flat(self, shape: tuple[int, ...]) -> DeltaAtEps:
        return DeltaAtEps(np.full(shape, self.eps).ravel())

    def pick(self, index: Ints) -> DeltaAtEps:
        return DeltaAtEps(self.eps[index])

    def of_rates(self, x: Floats, x_up: Floats, y: Floats, y_up: Floats) -> Floats:
        return region.largest_gap(x, x_up, y, y_up, self.eps)

    def distribution_of_few(self, names: Names, theta: Floats) -> Distribution:
        return Distribution(*lines.region_mass(names, self.eps, theta, along="delta"))


@dataclass(frozen=True)
class Mu(Family):
    """μ of Gaussian DP."""

    quantity = "mu"
    symbol = "μ"
    parameter_name = "none"
    top = np.inf
    assumption = "the mechanism's trade-off curve is that of Gaussian DP"

    @property
    def given(self) -> str:
        return " of Gaussian DP"

    @property
    def parameter(self) -> Floats:
        return np.zeros(())

    def flat(self, shape: tuple[int, ...]) -> Mu:
        return self

    def pick(self, index: Ints) -> Mu:
        return self

    def of_rates(self, x: Floats, x_up: Floats, y: Floats, y_up: Floats) -> Floats:
        return region.probit_distance(x, x_up, y, y_up)

    def distribution_of_few(self, names: Names, theta: Floats) -> Distribution:
        return Distribution(*gaussian.region_mass(names, theta))


@dataclass(frozen=True)
class GaussianEps(Family):
    """ε at a fixed δ for the μ of Gaussian DP: a monotone function of μ, 0 below some μ."""

    delta: Floats
    quantity = "eps"
    symbol = "ε"
    parameter_name = "delta"
    top = np.inf
    assumption = Mu.assumption

    @property
    def given(self) -> str:
        return f" at δ = {_text(self.delta)} under Gaussian DP"

    @property
    def parameter(self) -> Floats:
        return self.delta

    def flat(self, shape: tuple[int, ...]) -> GaussianEps:
        return GaussianEps(np.full(shape, self.delta).ravel())

    def pick(self, index: Ints) -> GaussianEps:
        return GaussianEps(self.delta[index])

    def of_rates(self, x: Floats, x_up: Floats, y: Floats, y_up: Floats) -> Floats:
        mu, delta = np.broadcast_arrays(Mu().of_rates(x, x_up, y, y_up), self.delta)
        return region.gaussian_eps(mu, delta=delta)

    def distribution_of_few(self, names: Names, theta: Floats) -> Distribution:
        mu = region.gaussian_mu(theta, delta=self.delta)
        at_mu = Mu().distribution_of_few(names, mu)
        # dδ/dε = −e^ε Φ(−ε/μ−μ/2) and dδ/dμ = φ(−ε/μ+μ/2) along δ(ε, μ) = const
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = theta / mu
            down = np.exp(theta + special.log_ndtr(-shift - mu / 2))
            slope = np.where(mu > 0, down * np.sqrt(2 * np.pi) * np.exp(0.5 * (mu / 2 - shift) ** 2), 0.0)
        return Distribution(at_mu.cdf, at_mu.sf, at_mu.pdf * slope)


def _text(parameter: Floats) -> str:
    return f"{float(parameter):g}" if parameter.ndim == 0 else f"<{' × '.join(map(str, parameter.shape))} values>"
