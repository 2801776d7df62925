"""What a plan could show at best: the bound of a perfect attack, and how many models that takes for a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from epsgauge.mechanisms.privacy import Privacy
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Method
from epsgauge.methods.power import MANY, needed
from epsgauge.methods.table import default_method
from epsgauge.numbers import at_least, at_most
from epsgauge.runner.plan import Plan


@dataclass(frozen=True)
class Reach:
    """Of a plan with any number of models. `privacy`: what it is accounted for, if a whole curve judges it."""

    plan: Plan
    privacy: Privacy | None = None
    method: Method | None = None  # that is named; None: the default

    @property
    def orthogonal(self) -> bool:
        """Whether each pair counts as a model of its own, if the probe with which a run begins finds nothing."""
        return self.plan.orthogonal and self.plan.probes

    def judge(self, evidence: Evidence) -> Method:
        settings = self.plan.audit
        asked = settings.asked(self.plan.game.pairs_per_model, privacy=self.privacy, orthogonal=self.plan.orthogonal)
        return (self.method or default_method(asked)).form(evidence, by_mu=settings.by_mu)

    def ideal(self, n_models: int) -> tuple[Method, Evidence]:
        """Who judges a perfect attack on so many models, and what of it."""
        settings, m = self.plan.audit, self.plan.game.pairs_per_model
        evidence = self._perfect(n_models - settings.n_fit(n_models), m - settings.n_fit_pairs(m))
        method = self.judge(evidence)
        return method, evidence if method.needs_rule else self._perfect(n_models, m)

    def largest(self, n_models: int, delta: float) -> float:
        """The bound that a perfect attack would get at the verdict's level."""
        if self._too_few(n_models):
            return 0.0
        method, evidence = self.ideal(n_models)
        return method.lower_bound(evidence, delta=delta, level=self.plan.audit.verdict_level)

    def _shows(self, n_models: int, eps: float, delta: float) -> bool:
        """Whether that bound is above ε."""
        if self._too_few(n_models):
            return False
        method, evidence = self.ideal(n_models)
        return method.shows(evidence, eps, delta=delta, level=self.plan.audit.verdict_level)

    def _too_few(self, n_models: int) -> bool:
        return n_models - self.plan.audit.n_fit(n_models) < 2

    def fewest(self, eps: float, delta: float) -> float:
        """From about how many models on a perfect attack refutes ε; infinite above `most`."""
        return needed(lambda n: self._shows(n, eps, delta), self.most)

    @property
    def most(self) -> int:
        """The number of models above which none is asked for."""
        return max(1, MANY // self.plan.game.pairs_per_model)

    def hopeless(self, n_models: int, eps: float, delta: float) -> str | None:
        """What is said of a claim that so few models cannot refute, whatever the attack; None if they can."""
        largest = self.largest(n_models, delta)
        if largest > eps:
            return None
        fewest = self.fewest(eps, delta)
        would = f"{self.most:,} are too few too" if math.isinf(fewest) else f"At least {fewest:,.0f} are needed"
        return (
            f"{n_models} models cannot decide this claim: a perfect attack shows at most ε = {at_least(largest)}, and "
            f"ε = {at_most(eps)} is claimed. {would}."
        )

    def _perfect(self, n_models: int, pairs: int) -> Evidence:
        settings = self.plan.audit
        counting = Counting(settings.pooled_guesses, settings.pooled_number)
        ideal = Evidence.ideal(n_models, pairs, counting, self.plan.game.adjacency)
        return replace(ideal, privacy=self.privacy, of_directions=self.orthogonal)
