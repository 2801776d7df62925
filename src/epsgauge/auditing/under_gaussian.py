"""One pair a model under Gaussian DP: bounds of μ, for claims that are stated as μ."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epsgauge.auditing.one_sided import OneSided
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, promise_of
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.stats import region
from epsgauge.stats.families import Mu
from epsgauge.stats.methods import BASELINE, COUNTED, METHODS
from epsgauge.stats.posterior import estimate_mu
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Gaussian:
    """An attack that is worse than chance shows nothing."""

    one_each: Guaranteed

    def mu(self, level: float) -> float:
        return _mu(self.one_each.tally, level)

    def mu_at_best(self, level: float) -> float:
        return _mu(self.one_each.perfect, level)

    def detectable(self, level: float) -> float:
        """The μ that would be refuted with a probability of `POWER`, where the exact bound of ε orders the outcomes."""
        return _mu(OneSided("exact", level, 0.0).at_power(self.one_each.tally), level)

    def row(self, *, delta: float, level: float, on: Conditions) -> AuditRow:
        """The low end of the exact bound of μ and the high end of Clopper-Pearson's rectangle, as ε."""
        method = METHODS["gaussian"]
        promise, why = promise_of(method, on)
        low, posterior = self.mu((1 + level) / 2), estimate_mu(self.one_each.guesses).interval(level)
        _, high = self.one_each.ends(COUNTED[BASELINE], level=level, family=Mu())
        notes = [f"μ in [{low:.3g}, {high:.3g}]; credible [{posterior.low:.3g}, {posterior.high:.3g}]"]
        notes += [why] if why else []
        if self.one_each.n_failed:
            notes.append(f"{self.one_each.n_failed} failed models count as wrong guesses")
        of, note = self.one_each.tally, "; ".join(notes)
        low, high = (float(region.gaussian_eps(mu, delta=delta)) if mu < math.inf else math.inf for mu in (low, high))
        return AuditRow(method.name, method.label, promise, method.assumptions, low, high, of, note)


def _mu(tally: Tally, level: float) -> float:
    return gaussian_bound(tally, delta=0.0, level=level).mu
