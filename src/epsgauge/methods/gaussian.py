"""Gaussian DP: a bound on μ from one pair of each model, and the ε that follows from it; for claims stated as μ."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.bounds.gaussian import gaussian_bound, ranked_mu
from epsgauge.methods.clopper_pearson import ClopperPearson
from epsgauge.methods.counted import OfCounts, covering
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DIRECTIONS, FAIR_BITS, GAUSSIAN_CURVE, INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.power import POWER, tally_at_power_of_posterior
from epsgauge.methods.ranks import OfRanks
from epsgauge.numbers import at_least
from epsgauge.stats import region, special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import Mu
from epsgauge.stats.tally import Tally


class OfMu(Method):
    """What both forms share: 0 for an attack that is worse than chance."""

    name = "gaussian"
    label = "Gaussian DP"
    colour = "green"
    dashes = (5, 2)
    promise = "guaranteed"
    of_claimed_mu = True
    one_pair = True
    instead = WHEN_STOPPED

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        if evidence.orthogonal:
            return GaussianOfDirections()
        return GaussianOfCoins() if evidence.coins else Gaussian()

    def condition(self, evidence: Evidence) -> str | None:
        return GAUSSIAN_CURVE

    def called_for(self, asked: Asked) -> bool:
        return asked.by_mu and (asked.orthogonal or not asked.several)

    def judges(self, asked: Asked) -> bool:
        return asked.by_mu and asked.own_outputs and (asked.coins or not asked.same_data)

    def plays(self, *, pairs: int, delta: float, by_split: bool) -> bool:
        return delta > 0  # at δ = 0 every μ above 0 is an infinite ε

    def bounds_mechanism(self, *, pairs: int) -> bool:
        """One pair of rates shows the whole curve."""
        return True


class Gaussian(OfMu, OfCounts):
    """The form that takes bits from anywhere: an exact bound from the rule's two rates."""

    meaning = "an exact bound on μ, and the ε that follows from it under Gaussian DP"
    assumptions = (INDEPENDENT, RULE_FIXED, NUMBER_FIXED, GAUSSIAN_CURVE)

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.one_each

    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        return np.array([_worth(_mu(tally, level), delta) for tally in counts.tallies()])

    def mu(self, evidence: Evidence, *, level: float) -> float:
        return _mu(evidence.one_each.tally, level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        """The low end of the exact bound of μ and the high end of Clopper-Pearson's rectangle, as ε."""
        low = self.mu(evidence, level=(1 + level) / 2)
        high = covering(ClopperPearson(), evidence.one_each, level=level, family=Mu())[1]
        return Found(_worth(low, delta), _worth(high, delta), before=_of_mu(low))

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """Where the posterior of ε at δ = 0 orders the outcomes."""
        at = tally_at_power_of_posterior(evidence.one_each.tally, delta=0.0, level=level)
        return self.of(at, delta=delta, level=level)


class GaussianOfCoins(OfMu, OfRanks):
    """The form for bits that are coins: from all guesses by the middle of the scores; surer ones weigh more."""

    meaning = "a bound on μ in which surer guesses weigh more, and the ε that follows from it under Gaussian DP"
    assumptions = (INDEPENDENT, FAIR_BITS, NUMBER_FIXED, GAUSSIAN_CURVE)

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return _worth(self.mu(evidence, level=level), delta)

    def mu(self, evidence: Evidence, *, level: float) -> float:
        return ranked_mu(evidence.whole.ranked, level=level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        mu = self.mu(evidence, level=(1 + level) / 2)
        return Found(_worth(mu, delta), before=_of_mu(mu))

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return _worth(ranked_mu(evidence.whole.ranked.again(POWER), level=level), delta)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        mu = float(region.gaussian_mu(eps, delta=delta))
        return self.without_errors(float(special.ndtr(-0.5 * mu)), level)


class GaussianOfDirections(GaussianOfCoins):
    """The same for gradient canaries of one model, each in a direction of its own: all pairs count."""

    assumptions = (DIRECTIONS, FAIR_BITS, NUMBER_FIXED, GAUSSIAN_CURVE)
    one_pair = False


def _mu(tally: Tally, level: float) -> float:
    return gaussian_bound(tally, delta=0.0, level=level).mu


def _of_mu(mu: float) -> str:
    return f"if {GAUSSIAN_CURVE}: μ is at least {at_least(mu)}"


def _worth(mu: float, delta: float) -> float:
    return float(region.gaussian_eps(mu, delta=delta)) if mu < math.inf else math.inf
