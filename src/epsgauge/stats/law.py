"""Law: the distribution of a quantity when FNR and FPR are independent Betas; flat arrays, input trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsgauge.stats import roots
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.families import Distribution, Family
from epsgauge.stats.guess import rough_quantile
from epsgauge.stats.lines import Names


@dataclass(frozen=True)
class Law:
    """One distribution for each of n pairs of Beta shapes (a, b); the shapes need not come from whole counts."""

    family: Family
    fnr: tuple[Floats, Floats]
    fpr: tuple[Floats, Floats]

    @cached_property
    def _names(self) -> Names:
        return Names.of(self.fnr, self.fpr)

    def at(self, theta: Floats, index: Ints) -> Distribution:
        """cdf, sf and pdf of laws `index` at `theta`, 0 ≤ theta < family.top."""
        return self.family.pick(index).distribution(self._names.pick(index), theta)

    def quantile(self, p: Floats, q: Floats, index: Ints) -> Floats:
        """The smallest θ with cdf ≥ p of laws `index`; q = 1 − p is given too, so that either tail is exact."""
        out = np.where(p == 1, self.family.top, 0.0)
        inner = np.flatnonzero(np.minimum(p, q) > 0)
        if inner.size:
            p, q, laws = p[inner], q[inner], index[inner]
            start = rough_quantile(self.family, self.fnr, self.fpr, laws, roots.probit(p, q))
            out[inner] = roots.solve(
                lambda theta, rows: self.at(theta, laws[rows]), p=p, q=q, start=start, top=self.family.top
            )
        return out

    def ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The α/2 and 1 − α/2 quantiles of every law, solved together (Eq. 4 of the paper)."""
        n = len(self.fnr[0])
        tail, rest = np.full(n, alpha / 2), np.full(n, 1.0 - alpha / 2)
        both = np.tile(np.arange(n), 2)
        out = self.quantile(np.concatenate([tail, rest]), np.concatenate([rest, tail]), both)
        return out[:n], out[n:]
