"""Curve: the noise that DP-SGD can have had at most, by its whole trade-off curve, and the ε that it is worth."""

from __future__ import annotations

import math
from functools import lru_cache

from epsgauge.bounds.noise import eps_of_noise, noise_at_most
from epsgauge.bounds.promising import promising
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DPSGD_CURVE, INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.power import needed, tally_at_power_of_posterior
from epsgauge.numbers import number
from epsgauge.scores.rules import Split
from epsgauge.scores.search import threshold_for
from epsgauge.scores.table import Scores
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally


class Curve(Method):
    """For a trainer that says it is DP-SGD: its claim is a curve, which is refuted as a whole. It has no upper end."""

    name = "curve"
    label = "Curve"
    colour = "purple"
    promise = "guaranteed"
    meaning = "an upper bound of DP-SGD's noise by its whole trade-off curve, and the ε that it is worth"
    assumptions = (INDEPENDENT, RULE_FIXED, NUMBER_FIXED, DPSGD_CURVE)
    remark = "Curve is for DP-SGD alone; the other bounds do without that."
    one_pair = True
    of_dpsgd = True
    instead = WHEN_STOPPED

    def picks(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        """The threshold that promises most by the rows that chose the rule, which is another one than for ε at δ."""
        judged = evidence.judged
        if not isinstance(judged.choice, Split) or judged.choice.target_fpr is not None:
            return None
        return _best(judged.fit, _dpsgd(evidence.privacy))

    def rests_on(self, evidence: Evidence) -> Tallied:
        threshold = self.picks(evidence, delta=0.0, level=0.0)
        return (evidence if threshold is None else evidence.at(threshold)).one_each

    def noise(self, evidence: Evidence, *, level: float) -> float:
        return self._noise(evidence, self.rests_on(evidence).tally, level)

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self._of(evidence, self.rests_on(evidence).tally, delta, level)

    def at_best(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self._of(evidence, evidence.perfect.one_each.tally, delta, level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        one_sided, trained = (1 + level) / 2, _dpsgd(evidence.privacy)
        at_most = self.noise(evidence, level=one_sided)
        of = f"DP-SGD with sampling rate {trained.sample_rate:.3g} and {trained.steps} steps"
        said = f"ε of {of}, if its noise multiplier is below {number(at_most)}" if at_most < math.inf else f"ε of {of}"
        return Found(self.lower_bound(evidence, delta=delta, level=one_sided), before=said)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """Where the posterior of ε at δ = 0 orders the outcomes."""
        at = tally_at_power_of_posterior(self.rests_on(evidence).tally, delta=0.0, level=level)
        return self._of(evidence, at, delta, level)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        def bound(n: int) -> float:
            return self._of(evidence, Tally(tp=n // 2, tn=n // 2, fp=0, fn=0), delta, level)

        return needed(bound, eps, MAX_SAMPLES)

    def called_for(self, asked: Asked) -> bool:
        return self.judges(asked)

    def judges(self, asked: Asked) -> bool:
        return asked.by_curve

    def bounds_mechanism(self, *, pairs: int) -> bool:
        """One pair of rates shows the whole curve."""
        return True

    def _noise(self, evidence: Evidence, tally: Tally, level: float) -> float:
        return noise_at_most(tally, _dpsgd(evidence.privacy), adjacency=evidence.scores.adjacency, level=level)

    def _of(self, evidence: Evidence, tally: Tally, delta: float, level: float) -> float:
        trained, at_most = _dpsgd(evidence.privacy), self._noise(evidence, tally, level)
        return eps_of_noise(at_most, trained, delta=delta, adjacency=evidence.scores.adjacency)


@lru_cache(maxsize=4)
def _best(fit: Scores, trained: DPSGD) -> float:
    """An audit asks for it several times."""
    return threshold_for(fit, lambda tallies: promising(tallies, trained, fit.adjacency))


def _dpsgd(privacy: Privacy | None) -> DPSGD:
    if isinstance(privacy, DPSGD):
        return privacy
    got = "it is not known how these models were trained" if privacy is None else f"it is {privacy!r}"
    raise InvalidInput(
        f'verdict_method = "{Curve.name}" needs a trainer whose privacy(n) is an eg.DPSGD, but {got}. Give the trainer '
        "one, or leave verdict_method out."
    )
