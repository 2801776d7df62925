"""Bound: a lower bound on ε with its level, δ, method, promise and condition. Every surface shows it in these words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from epsgauge.adjacency import Adjacency
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Method
from epsgauge.methods.rows import bound_of
from epsgauge.numbers import at_least, at_most, percent
from epsgauge.stats.interval import Kind
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Bound:
    """ε at `delta` is at least `value`, one-sided at `level`, if the `condition` holds."""

    value: float
    method: str
    label: str  # of the method
    promise: Kind
    level: float
    delta: float
    adjacency: Adjacency
    condition: str | None  # None: it holds for any training
    assumptions: tuple[str, ...]  # the condition among them
    mu: float | None  # of Gaussian DP, if ε is what that is worth
    noise: float | None  # of DP-SGD, if ε is what that is worth: so large a noise multiplier is refuted
    tally: Tally  # of the guesses that it counts
    counts: str  # which guesses these are, in words
    short_scope: str  # when it holds, where there is little room
    of: str = "training"  # or "mechanism"

    @property
    def text(self) -> str:
        """The value, rounded down."""
        return f"ε ≥ {at_least(self.value)}"

    @property
    def scope(self) -> str:
        """When it holds, in words."""
        return f"for any {self.of}" if self.condition is None else f"if {self.condition}"

    @property
    def how(self) -> str:
        """Method, promise and level."""
        return f"{self.label}, {self.promise}, one-sided {percent(self.level)}"

    @property
    def means(self) -> str:
        """What it follows from, for a bound on μ or on noise."""
        if self.noise is not None and self.noise < math.inf:
            return f"a noise multiplier below {at_most(self.noise)}"
        return "" if self.mu is None else f"μ of at least {at_least(self.mu)}"

    def __str__(self) -> str:
        return f"{self.text} {self.scope} ({self.how}, δ = {self.delta:g}, {self.adjacency})"

    def to_json(self) -> dict[str, Any]:
        """Plain values; infinite numbers are floats still."""
        return {
            "value": self.value,
            "method": self.method,
            "promise": self.promise,
            "level": self.level,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "condition": self.condition,
            "assumptions": list(self.assumptions),
            "mu": self.mu,
            "noise": self.noise,
            "n_samples": int(self.tally.n_samples),
            "sentence": str(self),
        }


def bound_by(
    method: Method,
    evidence: Evidence,
    promise: Kind,
    *,
    delta: float,
    level: float,
    several: bool,
    of: str = "training",
) -> Bound:
    """What a method, in the form that it takes for this evidence, shows."""
    condition = method.condition(evidence)
    return Bound(
        bound_of(method, method.lower_bound(evidence, delta=delta, level=level)),
        method.name,
        method.label,
        promise,
        level,
        delta,
        evidence.scores.adjacency,
        condition,
        method.assumptions,
        method.mu(evidence, level=level),
        method.noise(evidence, level=level),
        method.rests_on(evidence).tally,
        method.counts(evidence, several=several),
        f"any {of}" if condition is None else method.short_condition,
        of,
    )
