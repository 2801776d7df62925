"""Clusters: a posterior that allows for dependence between the pairs of a model."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.dependence import ClusterInterval, cluster_interval
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import MODELS_INDEPENDENT, RULE_FIXED
from epsgauge.methods.method import Asked, Found, Method


class Clusters(Method):
    """It corrects the variance of several pairs of each model, not their bias, and judges nothing."""

    name = "clusters"
    label = "Bayesian, by model"
    colour = "yellow"
    promise = "estimate"
    meaning = "a posterior that allows for dependence within a model; coverage was simulated, not proven"
    assumptions = (MODELS_INDEPENDENT, RULE_FIXED)
    may_judge = False

    def rests_on(self, evidence: Evidence) -> Tallied:
        return Tallied(evidence.tally)

    def called_for(self, asked: Asked) -> bool:
        return asked.several

    def plays(self, *, pairs: int, delta: float, by_split: bool) -> bool:
        return pairs > 1

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """The low end of the interval that leaves out 1 − level on either side; 0 where there is none."""
        found = _interval(evidence, delta=delta, level=2.0 * level - 1.0)
        return 0.0 if found is None else found.low

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found | None:
        """None for few models and for one bit."""
        if len(np.unique(evidence.scores.bit)) < 2:
            return None
        found = _interval(evidence, delta=delta, level=level)
        if found is None:
            return None
        fnr, fpr = found.design_effect
        says = f"design effects {fnr:.2g} (FNR) and {fpr:.2g} (FPR) in {found.n_models} models"
        bias = "it corrects the variance, not the bias of several pairs per model"
        return Found(found.low, found.high, before=f"{says}; {bias}")


def _interval(evidence: Evidence, *, delta: float, level: float) -> ClusterInterval | None:
    scores = evidence.scores
    one, wrong = scores.bit == 1, scores.bit != (scores.score >= evidence.threshold)
    fn, n1, fp, n0 = (scores.per_model(of) for of in (wrong & one, one, wrong & ~one, ~one))
    return cluster_interval(fn, n1, fp, n0, delta=delta, level=level)
