"""Law: the distribution of a quantity when FNR and FPR are independent Betas; flat arrays, input trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsgauge.stats import roots, special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.families import Distribution, Family
from epsgauge.stats.guess import rough_quantiles
from epsgauge.stats.lines import Names

# Where a search starts, on the scale of probits, around the rough quantile: about as far as that is wrong.
AROUND = np.array([-0.1, 0.1])


@dataclass(frozen=True)
class Law:
    """One distribution for each of n pairs of Beta shapes (a, b); the shapes need not come from whole counts."""

    family: Family
    fnr: tuple[Floats, Floats]
    fpr: tuple[Floats, Floats]

    @cached_property
    def _names(self) -> Names:
        return Names.of(self.fnr, self.fpr)

    @cached_property
    def _shapes(self) -> Floats:
        return np.array([[self.fnr[0], self.fpr[0]], [self.fnr[1], self.fpr[1]]])

    def at(self, theta: Floats, index: Ints) -> Distribution:
        """cdf, sf and pdf of laws `index` at `theta`, 0 ≤ theta < family.top."""
        return self.family.distribution(self._names, theta, index)

    def quantile(self, p: Floats, q: Floats, index: Ints) -> Floats:
        """The smallest θ with cdf ≥ p of laws `index`; q = 1 − p is given too, so that either tail is exact."""
        out = np.where(p == 1, self.family.top, 0.0)
        inner = (np.minimum(p, q) > 0).nonzero()[0]
        if inner.size:
            z, laws = roots.probit(p[inner], q[inner]), index[inner]
            start = rough_quantiles(self.family.pick(laws), self._shapes[..., laws], np.add.outer(AROUND, z))
            out[inner] = self._solve(z, laws, start)
        return out

    def ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The α/2 and 1 − α/2 quantiles of every law, solved together (Eq. 4 of the paper)."""
        n = len(self.fnr[0])
        laws, z = np.arange(n), np.full(n, special.ndtri(alpha / 2))
        both = np.array([z, -z])
        start = rough_quantiles(self.family, self._shapes, np.add.outer(AROUND, both).reshape(4, n))
        out = self._solve(both.ravel(), np.concatenate([laws, laws]), start.reshape(2, 2 * n))
        return out[:n], out[n:]

    def _solve(self, z: Floats, laws: Ints, start: Floats) -> Floats:
        return roots.solve(lambda theta, rows: self.at(theta, laws[rows]), z, start=start, top=self.family.top)
