"""The one-sided lower bound that a verdict rests on: its value, the largest it can take, the one to be expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.bounds.guesses import Guessed, guesses_of
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.stats.arrays import Floats
from epsgauge.stats.binomial import log_mass
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.methods import CELLS, COUNTED, QUICK, Counts
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally

POWER = 0.8
# As often is a bound that counts do not give drawn again, for what it would detect.
REDRAWN = 25
# Outcomes of the two binomials: those that matter are all computed if they are so few, else so many are drawn.
MAX_CELLS = 20_000
FEW_CELLS = 2_000  # for the posterior's lower end, which takes longer
LOST = 1e-9


@dataclass(frozen=True)
class OneSided:
    """A method's lower bound for ε at `delta`, one-sided at `level`.

    All but one have a direction here: a tally that is worse than chance gives 0. The posterior folds: "bayes" reads an
    attack that is reliably wrong as its opposite.
    """

    method: str
    level: float
    delta: float
    guessed: Guessed = "all"  # of "pooled": the guesses that count, fixed beforehand

    def of(self, tally: Tally) -> float:
        """Its value for one tally."""
        if self.method == "pooled":
            return pooled_bound(guesses_of(tally, self.guessed), delta=self.delta, level=self.level).eps
        return float(self._at(Counts(*(np.array([getattr(tally, c)], np.float64) for c in CELLS)))[0])

    def needed(self, eps: float) -> int | None:
        """N, in equal halves and to about 1 %, from which a perfect attack's bound is above `eps`; None above 1e8."""

        def reached(n: int) -> bool:
            return self.of(Tally(tp=n // 2, tn=n // 2, fp=0, fn=0)) > eps

        low, high = 1, 2
        while not reached(high):
            low, high = high, 2 * high
            if high > MAX_SAMPLES:
                return None
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high

    def detectable(self, tally: Tally, power: float = POWER) -> float:
        """The ε below which every claim would be refuted with at least this probability, at the tally's own rates.

        If FNR and FPR are the measured ones, the counts are two binomials. A claim is refuted where the bound is above
        it, so this is the 1 − power quantile of the bound, over all pairs of counts but a mass of 1e-9. Where these
        are too many it is that of 20,000 draws with a fixed seed. A bound that takes long is computed at one pair of
        counts: the one at that quantile of the posterior's lower end, which orders the outcomes much as it does.
        """
        return self.of(self.at_power(tally, power))

    def at_power(self, tally: Tally, power: float = POWER) -> Tally:
        """The counts at which the bound is at that quantile."""
        quick = self if self.method in QUICK else OneSided("bayes", self.level, self.delta)
        most = MAX_CELLS if quick is self else FEW_CELLS
        n1, n0 = int(tally.n_positive), int(tally.n_negative)
        fn, p_fn = _binomial(n1, int(tally.fn))
        fp, p_fp = _binomial(n0, int(tally.fp))
        if len(fn) * len(fp) <= most:
            cells = np.stack([g.ravel() for g in np.meshgrid(fn, fp, indexing="ij")])
            mass = np.outer(p_fn, p_fp).ravel()
        else:
            rng = np.random.default_rng(0)
            drawn = [rng.choice(k, most, p=p / p.sum()) for k, p in ((fn, p_fn), (fp, p_fp))]
            cells, times = np.unique(np.stack(drawn), axis=1, return_counts=True)
            mass = times / most
        bounds = quick._at(Counts(tp=n1 - cells[0], tn=n0 - cells[1], fp=cells[1], fn=cells[0]))
        if quick is not self:  # which folds, and these have a direction
            bounds = np.where(cells[0] * n0 + cells[1] * n1 >= n1 * n0, -1.0, bounds)
        order = np.argsort(bounds)
        reached = np.searchsorted(np.cumsum(mass[order]), 1.0 - power, side="right")
        at = order[min(int(reached), len(order) - 1)]
        misses, alarms = int(cells[0][at]), int(cells[1][at])
        return Tally(tp=n1 - misses, tn=n0 - alarms, fp=alarms, fn=misses)

    def _at(self, counts: Counts) -> Floats:
        family = EpsAtDelta(np.full(len(counts.tp), self.delta))
        return COUNTED[self.method].lower_bound(family, counts, 1.0 - self.level, JEFFREYS)


def _binomial(n: int, k: int) -> tuple[Floats, Floats]:
    """The outcomes of Binomial(n, k/n) that carry all but LOST/2 of its mass, and their probabilities."""
    rate = k / n if n else 0.0
    reach = 7.0 * np.sqrt(n * rate * (1.0 - rate)) + 20.0  # beyond it there is less than that
    x = np.arange(max(0, int(k - reach)), min(n, int(k + reach)) + 1, dtype=np.float64)
    mass = np.exp(log_mass(x, n, rate))
    below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    keep = (below > LOST / 4) & (above > LOST / 4)
    return x[keep], mass[keep]
