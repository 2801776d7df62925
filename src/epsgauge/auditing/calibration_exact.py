"""All outcomes of a scenario with their probabilities, instead of draws; for rules fixed beforehand and few samples."""

from __future__ import annotations

import numpy as np

from epsgauge.auditing.calibration_bounds import Bounder
from epsgauge.auditing.calibration_result import TOLERANCE, Outcomes
from epsgauge.auditing.calibration_scenarios import Scenario
from epsgauge.methods.counted import OfCounts
from epsgauge.stats.arrays import Floats
from epsgauge.stats.binomial import log_mass
from epsgauge.stats.counts import Counts

# Outcomes that are less likely than this are left out.
NEGLIGIBLE = 1e-13


def can_enumerate(bounder: Bounder, scenario: Scenario) -> bool:
    """Several looks have too many outcomes for a bound that takes long."""
    method = bounder.method
    if not (isinstance(method, OfCounts) and scenario.counted and bounder.plays(scenario)):
        return False
    return scenario.looks == 1 or method.vectorised


def enumerated(bounder: Bounder, scenario: Scenario) -> Outcomes:
    """Every bound that can come out, and how likely it is."""
    x, _, y, _ = (float(r) for r in scenario.source.rates(np.asarray(scenario.threshold)))
    truth = float(scenario.source.rule_eps(scenario.threshold, scenario.delta))
    n1, n0 = scenario.n1, scenario.n0
    if bounder.fair and n1 == n0:  # the coins decide how many bits are 1
        n = n1 + n0
        coins = _binomial(n, 0.5)
        outcomes = [(k, n - k, p * np.outer(_binomial(k, x), _binomial(n - k, y))) for k, p in enumerate(coins)]
        parts = [_bounds(bounder, *outcome, scenario.delta) for outcome in outcomes]
    else:
        parts = _watched(bounder, scenario, (_binomial(n1, x), _binomial(n0, y)), truth)
    bounds, mass = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return Outcomes(bounds, np.full(len(bounds), truth), mass)


def _watched(
    bounder: Bounder, scenario: Scenario, each: tuple[Floats, Floats], truth: float
) -> list[tuple[Floats, Floats]]:
    """For each look the bounds and the probabilities that it is the last one."""
    going, parts = np.ones((1, 1)), []
    for look in range(1, scenario.looks + 1):
        going = _added(_added(going, each[0]).T, each[1]).T
        bounds, mass = _bounds(bounder, look * scenario.n1, look * scenario.n0, going, scenario.delta)
        over = (bounds > truth + TOLERANCE) | (look == scenario.looks)
        parts.append((bounds[over], mass[over]))
        going[going > NEGLIGIBLE] = np.where(over, 0.0, mass)
    return parts


def _binomial(n: int, rate: float) -> Floats:
    """How likely each count from 0 to n is."""
    out: Floats = np.exp(log_mass(np.arange(n + 1.0), n, rate))
    return out


def _bounds(bounder: Bounder, n1: int, n0: int, mass: Floats, delta: float) -> tuple[Floats, Floats]:
    """The bounds of those pairs (FN, FP) that are not negligible, and their probabilities."""
    fn, fp = (g.astype(np.float64) for g in np.nonzero(mass > NEGLIGIBLE))
    return bounder.of_counts(Counts(tp=n1 - fn, tn=n0 - fp, fp=fp, fn=fn), delta), mass[mass > NEGLIGIBLE]


def _added(one: Floats, other: Floats) -> Floats:
    """The distribution of a pair of counts after an independent count is added to the first."""
    out = np.zeros((len(one) + len(other) - 1, one.shape[1]))
    for k, p in enumerate(other):
        out[k : k + len(one)] += p * one
    return out
