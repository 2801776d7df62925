"""Clopper-Pearson: the rectangle of exact limits of both rates, of one pair of each model. It holds at every δ."""

from __future__ import annotations

from epsgauge.methods.facts import INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.method import WHEN_STOPPED
from epsgauge.methods.of_quick import OfQuick
from epsgauge.stats import rates
from epsgauge.stats.quick import CLOPPER_PEARSON


class ClopperPearson(OfQuick):
    name = "clopper-pearson"
    label = "Clopper-Pearson"
    colour = "red"
    dashes = (1.5, 1.5)
    promise = "guaranteed"
    meaning = "covers with at least the level, proven under its assumptions"
    assumptions = (INDEPENDENT, RULE_FIXED, NUMBER_FIXED)
    interval = CLOPPER_PEARSON
    of_one_rate = staticmethod(rates.clopper_pearson)
    one_pair = True
    instead = WHEN_STOPPED
