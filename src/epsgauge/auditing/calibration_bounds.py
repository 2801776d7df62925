"""A method's one-sided lower bound for each run of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from epsgauge.auditing.calibration_scenarios import Draws, Scenario, table
from epsgauge.methods.counted import OfCounts
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import FAIR_BITS, INDEPENDENT
from epsgauge.methods.method import Method
from epsgauge.methods.table import method_of
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.tally import CELLS


@dataclass(frozen=True)
class Bounder:
    """A method at a one-sided level; counts that were met before are not computed again."""

    method: Method
    level: float
    _seen: dict[tuple[float, ...], float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, method: str | Method, level: float) -> Bounder:
        return cls(method_of(method), level)

    @property
    def fair(self) -> bool:
        """Whether it needs bits that are fair coins."""
        return FAIR_BITS in self.method.assumptions

    def plays(self, scenario: Scenario) -> bool:
        """Whether the scenario has what it needs, and something to show."""
        by_split = scenario.chosen == "split"
        return self.method.plays(pairs=scenario.pairs, delta=scenario.delta, by_split=by_split)

    def broken(self, scenario: Scenario) -> tuple[str, ...]:
        """The method's assumptions that do not hold in the scenario."""
        return tuple(a for a in self._form(scenario.pairs).assumptions if a in scenario.breaks)

    def by_mechanism(self, scenario: Scenario) -> bool:
        """Whether it bounds the ε of the mechanism and not that of the rule."""
        return self._form(scenario.pairs).bounds_mechanism(pairs=scenario.pairs)

    def bounds(self, drawn: Draws, delta: float) -> tuple[Floats, Floats]:
        """Of each run: the bound, and the threshold of the rule that it is about."""
        method = self._form(drawn.bits.shape[2])
        if isinstance(method, OfCounts):
            return self.of_counts(drawn.counts(), delta), drawn.thresholds
        alone, at = INDEPENDENT in method.assumptions, {"delta": delta, "level": self.level}
        low, thresholds = np.zeros(len(drawn)), drawn.thresholds.copy()
        for i in range(len(drawn)):
            evidence = _evidence(drawn, i, alone=alone)
            low[i], picked = method.lower_bound(evidence, **at), method.picks(evidence, **at)
            thresholds[i] = thresholds[i] if picked is None else picked
        return low, thresholds

    def _form(self, pairs: int) -> Method:
        """The form that the method takes for so many pairs of each model."""
        bits, scores = np.indices((2, pairs))
        return self.method.form(Evidence.of_scores(table(bits, scores.astype(np.float64)), 0.5), by_mu=False)

    def of_counts(self, counts: Counts, delta: float) -> Floats:
        """One bound for each tally, of a method that needs no more; each distinct one is computed once."""
        rows = np.stack([getattr(counts, c) for c in CELLS], axis=1)
        once, back = np.unique(rows, axis=0, return_inverse=True)
        keys = [(delta, *row) for row in once.tolist()]
        new = [i for i, key in enumerate(keys) if key not in self._seen]
        if new and isinstance(self.method, OfCounts):
            found = self.method.lower_bounds(Counts(*once[new].T), delta=delta, level=self.level)
            self._seen.update(zip((keys[i] for i in new), found.tolist(), strict=True))
        return np.array([self._seen[key] for key in keys])[back.ravel()]


def _evidence(drawn: Draws, run: int, *, alone: bool) -> Evidence:
    """One run; `alone`: as if each guess were about a model of its own, which the method assumes."""
    bits, scores = drawn.bits[run], drawn.scores[run]
    if alone:
        bits, scores = bits.reshape(-1, 1), scores.reshape(-1, 1)
    return Evidence.of_scores(table(bits, scores), float(drawn.thresholds[run]))
