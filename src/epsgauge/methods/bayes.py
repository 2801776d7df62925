"""The posterior of ε: the paper's interval, of all judged pairs."""

from __future__ import annotations

from epsgauge.methods.facts import INDEPENDENT, RULE_FIXED
from epsgauge.methods.of_quick import OfQuick
from epsgauge.stats.quick import POSTERIOR


class Bayes(OfQuick):
    """The posterior; it reads an attack that is worse than chance as its opposite."""

    name = "bayes"
    label = "Bayesian"
    colour = "blue"
    promise = "credible"
    meaning = "a posterior under a stated prior, equal-tailed; no confidence bound"
    assumptions = (INDEPENDENT, RULE_FIXED, "prior Beta(0.5, 0.5) for FNR and FPR")
    interval = POSTERIOR
    all_pairs = True
    folds = True
