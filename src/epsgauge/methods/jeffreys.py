"""Jeffreys: the rectangle of the limits of both rates that Beta(½, ½) priors give, of all judged pairs."""

from __future__ import annotations

from epsgauge.methods.facts import INDEPENDENT, RULE_FIXED
from epsgauge.methods.of_quick import OfQuick
from epsgauge.stats import rates
from epsgauge.stats.quick import JEFFREYS_RECTANGLE


class Jeffreys(OfQuick):
    name = "jeffreys"
    label = "Jeffreys"
    colour = "orange"
    dashes = (5, 2)
    promise = "estimate"
    meaning = "coverage is near the level and can be below it"
    assumptions = (INDEPENDENT, RULE_FIXED)
    interval = JEFFREYS_RECTANGLE
    of_one_rate = staticmethod(rates.jeffreys)
    all_pairs = True
