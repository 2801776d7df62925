"""The log-likelihood ratio of all steps: how much likelier they are with one gradient than with the other."""

from __future__ import annotations

import numpy as np

from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.stats.arrays import Floats

_AT_ONCE = 256  # steps that are added up together


class Ratio:
    """Added up over steps, for each of m pairs, with the plain sum beside it.

    A step is u = sum of other gradients + noise + B g, with B = 1 with probability q. With noise of deviation σ C the
    density of u over that without g is (1 − q) + q exp((2⟨u, g⟩ − |g|²) / 2σ²C²). The ratio of a step is the log of
    this for z1 minus the same for z0 (Nasr et al. 2023, arXiv:2302.07956, for the sum of other gradients taken as 0).
    """

    def __init__(self, pairs: int, privacy: Privacy | None) -> None:
        self._known = isinstance(privacy, DPSGD) and privacy.noise_multiplier > 0
        if isinstance(privacy, DPSGD):
            self._rate, self._noise = float(privacy.sample_rate), float(privacy.noise_multiplier)
        self._llr, self._sum = np.zeros(pairs), np.zeros(pairs)
        self._products: list[Floats] = []
        self._squares: list[Floats] = []

    def add(self, products: Floats, squares: Floats) -> None:
        """One step: ⟨u, g⟩ and |g|² for z1 and z0 of each pair, [m, 2], in units of C²; 0 where there is no z0."""
        self._products.append(products)
        self._squares.append(squares)
        if len(self._products) == _AT_ONCE:
            self._add_up()

    def totals(self) -> tuple[Floats, Floats]:
        """The ratio and the plain sum; the ratio is the sum where rate and noise are not known."""
        self._add_up()
        return (self._llr if self._known else self._sum).copy(), self._sum.copy()

    def _add_up(self) -> None:
        if not self._products:
            return
        products = np.stack(self._products)  # [steps, m, 2]
        self._sum += (products[..., 0] - products[..., 1]).sum(axis=0)
        if self._known:
            exponent = (2 * products - np.stack(self._squares)) / (2 * self._noise**2)
            with np.errstate(divide="ignore", invalid="ignore"):  # the log of 0 where every step has every point
                logs = np.logaddexp(np.log1p(-self._rate), np.log(self._rate) + exponent)
            self._llr += (logs[..., 0] - logs[..., 1]).sum(axis=0)
        self._products, self._squares = [], []
