"""Curve: the noise that DP-SGD can have had at most, by its whole trade-off curve, and the ε that follows from it."""

from __future__ import annotations

import math
from dataclasses import replace

from epsgauge.bounds.noise import SMALLEST, eps_of_noise, least_wrong, noise_at_most
from epsgauge.bounds.ranked import Ranked
from epsgauge.bounds.subsampled import least_eps
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import DIRECTIONS, DPSGD_CURVE, FAIR_BITS, INDEPENDENT, NUMBER_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.power import POWER
from epsgauge.methods.ranks import OfRanks
from epsgauge.numbers import at_most
from epsgauge.stats import brent


class Curve(OfRanks):
    """For a trainer that says it is DP-SGD: its claim is a curve, which is refuted as a whole."""

    name = "curve"
    label = "Curve"
    colour = "purple"
    promise = "guaranteed"
    meaning = "an upper bound on DP-SGD's noise from its whole trade-off curve, and the ε that follows from it"
    assumptions = (INDEPENDENT, FAIR_BITS, NUMBER_FIXED, DPSGD_CURVE)
    remark = "Curve is for DP-SGD alone; the other bounds do not assume it."
    of_dpsgd = True
    instead = WHEN_STOPPED

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        return CurveOfDirections() if evidence.orthogonal else Curve()

    def noise(self, evidence: Evidence, *, level: float) -> float:
        return self._noise(evidence, evidence.whole.ranked, level)

    def condition(self, evidence: Evidence) -> str | None:
        trained = _dpsgd(evidence)
        return f"the training is DP-SGD with sampling rate {trained.sample_rate:.3g} and {trained.steps} steps"

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self._worth(evidence, self.noise(evidence, level=level), delta)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        noise = self.noise(evidence, level=(1 + level) / 2)
        said = f"if {self.condition(evidence)}"
        said += f", its noise multiplier is below {at_most(noise)}" if noise < math.inf else ""
        return Found(self._worth(evidence, noise, delta), before=said)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self._worth(evidence, self._noise(evidence, evidence.whole.ranked.again(POWER), level), delta)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        """At the noise whose ε this is."""
        trained, adjacency = _dpsgd(evidence), evidence.scores.adjacency

        def more(log_noise: float) -> float:
            return least_eps(_with(trained, math.exp(log_noise)), delta=delta, adjacency=adjacency) - eps

        low, high = math.log(2 * SMALLEST), math.log(100.0)
        if delta == 0 or more(low) < 0 or more(high) > 0:
            return None
        noise = math.exp(brent.root(more, low, high, xtol=1e-9))
        return self.without_errors(least_wrong(_with(trained, noise), adjacency).in_all, level)

    def called_for(self, asked: Asked) -> bool:
        return self.judges(asked)

    def judges(self, asked: Asked) -> bool:
        return asked.by_curve

    def bounds_mechanism(self, *, pairs: int) -> bool:
        """Guesses of all ranks show the whole curve."""
        return True

    def _noise(self, evidence: Evidence, guesses: Ranked, level: float) -> float:
        return noise_at_most(guesses, _dpsgd(evidence), adjacency=evidence.scores.adjacency, level=level)

    def _worth(self, evidence: Evidence, noise: float, delta: float) -> float:
        return eps_of_noise(noise, _dpsgd(evidence), delta=delta, adjacency=evidence.scores.adjacency)


class CurveOfDirections(Curve):
    """The same for gradient canaries of one model, each in a direction of its own: all pairs count."""

    assumptions = (DIRECTIONS, FAIR_BITS, NUMBER_FIXED, DPSGD_CURVE)
    one_pair = False


def _with(trained: DPSGD, noise: float) -> DPSGD:
    return replace(trained, noise_multiplier=noise)


def _dpsgd(evidence: Evidence) -> DPSGD:
    privacy = evidence.privacy
    if isinstance(privacy, DPSGD):
        return privacy
    if evidence.scores.adjacency == "label-only":
        raise InvalidInput(
            f'verdict_method = "{Curve.name}" is about replaced or removed records, but this game is label-only: a '
            "label may move an update less. Leave verdict_method out."
        )
    got = "it is not known how these models were trained" if privacy is None else f"it is {privacy!r}"
    raise InvalidInput(
        f'verdict_method = "{Curve.name}" needs a trainer whose privacy(n) is an eg.DPSGD without correlation, but '
        f"{got}. Give the trainer one, or leave verdict_method out."
    )
