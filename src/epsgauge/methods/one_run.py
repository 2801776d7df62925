"""One run, f-DP: the guesses of Pooled held against a whole trade-off curve."""

from __future__ import annotations

from typing import ClassVar

from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.one_run import one_run_fdp_eps, one_run_fdp_mu
from epsgauge.bounds.priced import STEPS
from epsgauge.bounds.weighed import weighed_mu
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import GAUSSIAN_CURVE
from epsgauge.methods.method import Asked, Found, Method
from epsgauge.methods.pooled import OfGuesses, at_power
from epsgauge.numbers import at_least
from epsgauge.stats import region


class OneRun(OfGuesses):
    """Against the curve of (ε, δ)-DP; against a claim stated as μ it takes the form of Gaussian DP's."""

    name = "one-run"
    label = "One run, f-DP"
    colour = "purple"
    dashes = (5, 2)
    meaning = "like pooled, from a whole trade-off curve: of (ε, δ)-DP or, against a claim stated as μ, of Gaussian DP"
    fixed_number = True

    def bound(self, guesses: Guesses, *, delta: float, level: float) -> float:
        return one_run_fdp_eps(guesses, delta=delta, level=level)

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        return OneRunGaussian() if by_mu else self

    def called_for(self, asked: Asked) -> bool:
        return asked.several and asked.by_mu

    def judges(self, asked: Asked) -> bool:
        return asked.by_mu and not asked.own_outputs and not asked.same_data

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        low = self.lower_bound(evidence, delta=delta, level=(1 + level) / 2)
        return Found(low, before=f"of {evidence.which.said(evidence.guesses)}")


class OneRunGaussian(OneRun):
    """The form for claims stated as μ: the curve is that of Gaussian DP, and ε is what μ is worth.

    Where only the surest guesses count, those that are surer weigh more.
    """

    assumptions: ClassVar[tuple[str, ...]] = (*OfGuesses.assumptions, GAUSSIAN_CURVE)
    # Prices come from a solver that stops within 1e-7, so the bound may be a step of μ higher or lower on another
    # machine; relative to 1 + ε, ε moves by less than ten times as much as μ if δ is at least 1e-20.
    resolution = 10.0 / STEPS

    def condition(self, evidence: Evidence) -> str | None:
        return GAUSSIAN_CURVE

    def bound(self, guesses: Guesses, *, delta: float, level: float) -> float:
        return float(region.gaussian_eps(one_run_fdp_mu(guesses, level=level), delta=delta))

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return float(region.gaussian_eps(self.mu(evidence, level=level), delta=delta))

    def mu(self, evidence: Evidence, *, level: float) -> float:
        if evidence.which.tallied:
            return one_run_fdp_mu(evidence.guesses, level=level)
        return weighed_mu(evidence.weighed, level=level)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        if evidence.which.tallied:
            return super().detectable(evidence, delta=delta, level=level)
        again = evidence.weighed.with_right(at_power(evidence.guesses).n_right)
        return float(region.gaussian_eps(weighed_mu(again, level=level), delta=delta))

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        mu = self.mu(evidence, level=(1 + level) / 2)
        low = float(region.gaussian_eps(mu, delta=delta))
        return Found(
            low,
            before=f"of {evidence.which.said(evidence.guesses)}",
            after=f"if {GAUSSIAN_CURVE}: μ is at least {at_least(mu)}",
        )
