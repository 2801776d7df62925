"""Calibration: a method plays scenarios whose ε is known exactly, and is seen to keep its promise or to break it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsgauge.auditing.calibration_bounds import Bounder
from epsgauge.auditing.calibration_exact import can_enumerate, enumerated
from epsgauge.auditing.calibration_result import TOLERANCE, Certificate, Outcomes, ScenarioResult, judged
from epsgauge.auditing.calibration_scenarios import SCENARIOS, Scenario
from epsgauge.errors import InvalidInput
from epsgauge.methods.method import Method
from epsgauge.stats import checks

RUNS = 400


def calibrate(
    method: str | Method,
    *,
    runs: int = RUNS,
    level: float = 0.95,
    seed: int = 0,
    exact: bool = False,
    scenarios: tuple[Scenario, ...] = SCENARIOS,
    on_scenario: Callable[[str, int, int], None] | None = None,
) -> Certificate:
    """How often the method's one-sided lower bound at `level` is above an ε that is known exactly.

    `method` is a name of `METHODS`, or a `Method` of your own. With `exact`, scenarios with a rule that was fixed
    beforehand are made small and all their outcomes are computed; the others are left out, and nothing is random.
    `on_scenario` is told the name of each scenario before it is played, how many were played, and how many there are.

    >>> found = calibrate("clopper-pearson", exact=True, scenarios=SCENARIOS[:4])
    >>> found.passed, round(found["randomised response, ε = 1"].above_rule.value, 4)
    (True, 0.0032)
    """
    one_sided = checks.level(level)
    checks.whole("runs", runs, 2)
    checks.whole("seed", seed, 0)
    bounder = Bounder.of(method, one_sided)
    if bounder.method.of_dpsgd:
        raise InvalidInput(f"{bounder.method.name} is for DP-SGD, which no scenario is. Calibrate another method.")
    found: list[ScenarioResult] = []
    each = [scenario.smaller() if exact else scenario for scenario in scenarios]
    each = [played for played in each if (can_enumerate(bounder, played) if exact else bounder.plays(played))]
    for played in each:
        if on_scenario is not None:
            on_scenario(played.name, len(found), len(each))
        outcomes = enumerated(bounder, played) if exact else play(bounder, played, runs, seed)
        found.append(
            judged(
                played,
                outcomes,
                level=one_sided,
                promise=bounder.method.promise,
                by_mechanism=bounder.by_mechanism(played),
                broken=bounder.broken(played),
            )
        )
    m = bounder.method
    return Certificate(
        *(m.name, m.label, m.promise, m.assumptions, one_sided),
        runs=None if exact else runs,
        seed=None if exact else seed,
        scenarios=tuple(found),
    )


def play(bounder: Bounder, scenario: Scenario, runs: int, seed: int) -> Outcomes:
    """The bounds of all runs; a run that is watched ends when its bound is above the true ε of the rule."""
    drawn = scenario.draw(runs, seed, fair=bounder.fair)
    if scenario.looks == 1:
        bounds, thresholds = bounder.bounds(drawn, scenario.delta)
        return Outcomes(bounds, scenario.source.rule_eps(thresholds, scenario.delta))
    bounds, truth, going = np.zeros(runs), np.zeros(runs), np.arange(runs)
    for look in range(1, scenario.looks + 1):
        seen = drawn.pick(going, slice(0, look * scenario.n_models))
        bounds[going], thresholds = bounder.bounds(seen, scenario.delta)
        truth[going] = scenario.source.rule_eps(thresholds, scenario.delta)
        going = going[bounds[going] <= truth[going] + TOLERANCE]
    return Outcomes(bounds, truth)
