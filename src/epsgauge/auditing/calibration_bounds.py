"""A method's one-sided lower bound for each run of a scenario, from what the method needs of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from epsgauge.auditing.calibration_scenarios import Evidence, Scenario
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.bounds.dependence import cluster_interval
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.one_run import one_run_fdp_eps
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.methods import BETTING, CELLS, FAIR_BITS, METHODS, Counted, Counts, Method
from epsgauge.stats.posterior import JEFFREYS

POOLED = ("pooled", "one-run")


@dataclass(frozen=True)
class Bounder:
    """A method at a one-sided level; counts that were met before are not computed again."""

    method: Method
    level: float
    _seen: dict[tuple[float, ...], float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, method: str | Method, level: float) -> Bounder:
        if isinstance(method, Method):
            if isinstance(method, Counted) or method.name in METHODS:
                return cls(method, level)
        elif method in METHODS:
            return cls(METHODS[method], level)
        raise InvalidInput(f"method must be one of {', '.join(METHODS)}, but got {getattr(method, 'name', method)!r}.")

    @property
    def fair(self) -> bool:
        """Whether it needs bits that are fair coins."""
        return FAIR_BITS in self.method.assumptions

    def plays(self, scenario: Scenario) -> bool:
        """Whether the scenario has what it needs, and something to show."""
        if self.method.name == "clusters":
            return scenario.pairs > 1
        if self.method.name == "gaussian":
            return scenario.delta > 0  # at δ = 0 every μ above 0 is an infinite ε
        return not (self.method.name == "simultaneous" and scenario.chosen == "split")  # it needs no split

    def broken(self, scenario: Scenario) -> tuple[str, ...]:
        """The method's assumptions that do not hold in the scenario."""
        bets = self.method.name == "anytime" and scenario.pairs > 1
        return tuple(a for a in (BETTING if bets else self.method).assumptions if a in scenario.breaks)

    def by_mechanism(self, scenario: Scenario) -> bool:
        """Whether it bounds the ε of the mechanism and not that of the rule.

        The pooled bounds allow guesses about one model to depend on each other in any way that the mechanism's ε
        allows: of dependent guesses, the mean rates can show less than the guesses together. Under Gaussian DP one
        pair of rates shows the whole curve.
        """
        return self.method.name == "gaussian" or (self.method.name in POOLED and scenario.pairs > 1)

    def bounds(self, evidence: Evidence, delta: float) -> tuple[Floats, Floats]:
        """Of each run: the bound, and the threshold of the rule that it is about."""
        several = evidence.bits.shape[2] > 1
        if self.method.name == "simultaneous":
            return self._best_thresholds(evidence, delta)
        if self.method.name == "clusters":
            return self._clusters(evidence, delta), evidence.thresholds
        if self.method.name == "anytime" and several:
            return self._bets(evidence, delta), evidence.thresholds
        return self.of_counts(evidence.counts(), delta), evidence.thresholds

    def of_counts(self, counts: Counts, delta: float) -> Floats:
        """One bound for each tally; each distinct one is computed once."""
        rows = np.stack([getattr(counts, c) for c in CELLS], axis=1)
        if self.method.name in POOLED:  # which know of right and of wrong guesses only
            rows = np.stack([rows[:, 0] + rows[:, 1], rows[:, 2] + rows[:, 3]], axis=1)
        once, back = np.unique(rows, axis=0, return_inverse=True)
        keys = [(delta, *row) for row in once.tolist()]
        new = [i for i, key in enumerate(keys) if key not in self._seen]
        if new:
            found = self._computed(once[new], delta)
            self._seen.update(zip((keys[i] for i in new), found.tolist(), strict=True))
        return np.array([self._seen[key] for key in keys])[back.ravel()]

    def _computed(self, rows: Floats, delta: float) -> Floats:
        if isinstance(self.method, Counted):
            family = EpsAtDelta(np.full(len(rows), delta))
            return self.method.lower_bound(family, Counts(*rows.T), 1.0 - self.level, JEFFREYS)
        if self.method.name == "gaussian":
            return np.array([gaussian_bound(t, delta=delta, level=self.level).eps for t in Counts(*rows.T).tallies()])
        guesses = [Guesses(int(r), int(r + w), int(r + w)) for r, w in rows]
        if self.method.name == "one-run":
            return np.array([one_run_fdp_eps(g, delta=delta, level=self.level) for g in guesses])
        return np.array([pooled_bound(g, delta=delta, level=self.level).eps for g in guesses])

    def _best_thresholds(self, evidence: Evidence, delta: float) -> tuple[Floats, Floats]:
        """Where it finds nothing, the rule is the scenario's own."""
        low, thresholds = np.zeros(len(evidence)), evidence.thresholds.copy()
        for i, (bits, scores) in enumerate(zip(evidence.bits, evidence.scores, strict=True)):
            found = simultaneous_lower_bound(
                scores[bits == 1], scores[bits == 0], delta=delta, level=self.level, directions="high"
            )
            if found.threshold is not None:
                low[i], thresholds[i] = found.low, found.threshold
        return low, thresholds

    def _bets(self, evidence: Evidence, delta: float) -> Floats:
        fn, _, fp, _ = evidence.by_model()
        m = evidence.bits.shape[2]
        each = (betting_lower_bound(a, b, m, delta=delta, level=self.level) for a, b in zip(fn, fp, strict=True))
        return np.array(list(each))

    def _clusters(self, evidence: Evidence, delta: float) -> Floats:
        """The low end of the interval that leaves out 1 − level on either side."""
        low = []
        for fn, n1, fp, n0 in zip(*evidence.by_model(), strict=True):
            found = cluster_interval(fn, n1, fp, n0, delta=delta, level=2.0 * self.level - 1.0)
            low.append(0.0 if found is None else found.low)
        return np.array(low)
