"""What a calibration found: shares with their Monte Carlo errors, and whether a promise was kept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from epsgauge.auditing.calibration_scenarios import Scenario
from epsgauge.stats.arrays import Bools, Floats
from epsgauge.stats.interval import Kind

Result = Literal["pass", "fail", "outside", "reported"]
# A bound that is above ε by less than this is not above it.
TOLERANCE = 1e-9
# A share may be above 1 − level by so many standard errors of it.
STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Measured:
    """A number with its Monte Carlo standard error; 0 if nothing was simulated."""

    value: float
    error: float


@dataclass(frozen=True)
class Outcomes:
    """Bounds and the ε of the rules they are about, one per run, or one per outcome with its probability."""

    bounds: Floats
    rule_eps: Floats
    mass: Floats | None = None

    def above(self, eps: Floats | float) -> Measured:
        return self._share(self.bounds > np.asarray(eps) + TOLERANCE)

    def mean(self, values: Floats) -> Measured:
        if self.mass is not None:
            return Measured(float(values @ self.mass), 0.0)
        n = len(values)
        return Measured(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf)

    def _share(self, hits: Bools) -> Measured:
        """The error is that of k + ½ hits of n + 1, which is not 0 where none was seen."""
        if self.mass is not None:
            return Measured(float(self.mass[hits].sum()), 0.0)
        n, k = len(hits), int(np.count_nonzero(hits))
        p = (k + 0.5) / (n + 1)
        return Measured(k / n, math.sqrt(p * (1.0 - p) / n))


@dataclass(frozen=True)
class ScenarioResult:
    """One scenario; `rule_eps` is a mean over runs where rules were chosen."""

    name: str
    delta: float
    n_positive: int
    n_negative: int
    pairs_per_model: int
    looks: int
    rule_eps: float
    mechanism_eps: float
    above_rule: Measured
    above_mechanism: Measured
    mean_bound: Measured
    power: Measured | None  # against half of the rule's ε; None where that is 0
    judged_by: Literal["rule", "mechanism"]
    broken_assumptions: tuple[str, ...]
    result: Result

    @property
    def judged(self) -> Measured:
        """The share that the method promises to be small."""
        return self.above_rule if self.judged_by == "rule" else self.above_mechanism


@dataclass(frozen=True)
class Certificate:
    """A method in every scenario; `passed` is None for a method that promises no coverage."""

    method: str
    label: str
    promise: Kind
    assumptions: tuple[str, ...]
    level: float
    runs: int | None  # None: all outcomes were computed
    seed: int | None
    scenarios: tuple[ScenarioResult, ...]

    @property
    def passed(self) -> bool | None:
        return None if self.promise != "guaranteed" else all(s.result != "fail" for s in self.scenarios)

    def __getitem__(self, name: str) -> ScenarioResult:
        return {s.name: s for s in self.scenarios}[name]

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, **asdict(self)}


def judged(
    scenario: Scenario, found: Outcomes, *, level: float, promise: Kind, by_mechanism: bool, broken: tuple[str, ...]
) -> ScenarioResult:
    """The shares, and pass or fail where the promise applies."""
    mechanism = scenario.source.eps_at(scenario.delta, scenario.pairs)
    above_rule, above_mechanism = found.above(found.rule_eps), found.above(mechanism)
    rule = found.mean(found.rule_eps).value
    alpha, counts = 1.0 - level, above_mechanism if by_mechanism else above_rule
    spare = 0.0 if found.mass is not None else STANDARD_ERRORS * math.sqrt(alpha * level / len(found.bounds))
    result: Result = "outside" if broken else "pass" if counts.value <= alpha + spare + TOLERANCE else "fail"
    return ScenarioResult(
        *(scenario.name, scenario.delta, scenario.n1, scenario.n0, scenario.pairs, scenario.looks),
        rule,
        mechanism,
        above_rule,
        above_mechanism,
        found.mean(found.bounds),
        found.above(found.rule_eps / 2.0) if rule > TOLERANCE else None,
        "mechanism" if by_mechanism else "rule",
        broken,
        result if promise == "guaranteed" or broken else "reported",
    )
