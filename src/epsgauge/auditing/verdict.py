"""The verdict on a claim: violation, not refuted by this adversary, underpowered, or no claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.claim import Claim, NoClaim
from epsgauge.auditing.one_sided import POWER, OneSided
from epsgauge.auditing.rows import perfect
from epsgauge.bounds.guesses import Guessed, Guesses
from epsgauge.stats.interval import Kind
from epsgauge.stats.methods import METHODS
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally

Ruling = Literal["violation", "not refuted", "underpowered", "no claim"]
OWNER = {"stated": "the stated claim", "accountant": "the accountant's claim", "known": "the proven claim"}
PROMISE = {
    "credible": " The bound is credible, that is of a posterior: no confidence bound.",
    "estimate": " The bound is only an estimate: no level is promised.",
    "guaranteed": "",
}


@dataclass(frozen=True)
class Verdict:
    """What one method's lower bound, one-sided at `level`, says about the claim; relative to one adversary."""

    kind: Ruling
    method: str
    promise: Kind  # of the bound, in this audit
    level: float
    delta: float  # of the claim; without one, of the audit
    bound: float
    claim: Claim | None
    largest: float  # what the bound would be if every guess were right, except on models that failed
    detectable: float | None  # at the measured rates claims below it are refuted with probability `power`, if known
    power: float
    tally: Tally  # that the bound rests on
    failed: int  # guesses about models that failed, which count in it as wrong
    adversary: Adversary
    adjacency: Adjacency
    sentence: str
    mu: float | None = None  # the bound as μ of Gaussian DP, where that was held against a claim
    guesses: Guesses | None = None  # that count, of a pooled bound


@dataclass(frozen=True)
class Bounds:
    """A bound that counts alone do not give: (level, delta) -> ε, as measured and if every guess were right."""

    measured: Callable[[float, float], float]
    at_best: Callable[[float, float], float]
    detectable: Callable[[float, float], float | None]  # what would be refuted with a probability of POWER
    mu: Callable[[float], float] | None = None  # level -> μ, of which ε is what it is worth


@dataclass(frozen=True)
class Evidence:
    """The tally that the bound rests on; failed models are in it as wrong guesses, so many with each bit."""

    tally: Tally
    failed_ones: int
    failed_zeros: int
    adversary: Adversary
    adjacency: Adjacency
    guessed: Guessed = "all"  # of the pooled bound
    bounds: Bounds | None = None  # where counts alone do not give it
    guesses: Guesses | None = None  # that count, of a pooled bound

    def bound(self, method: str, level: float, delta: float) -> float:
        if self.bounds is not None:
            return self.bounds.measured(level, delta)
        return OneSided(method, level, delta, self.guessed).of(self.tally)


def verdict(
    claim: Claim | NoClaim,
    evidence: Evidence,
    *,
    method: str,
    level: float,
    delta: float,
    promise: Kind,
    caveats: tuple[str, ...] = (),
) -> Verdict:
    """Judge a claim at its own δ, or report the bound at `delta` where there is none."""
    judged = claim if isinstance(claim, Claim) else None
    bounds = OneSided(method, level, delta if judged is None else judged.delta, evidence.guessed)
    bound, detectable, mu = evidence.bound(method, level, bounds.delta), None, None
    if evidence.bounds is not None:
        largest = evidence.bounds.at_best(level, bounds.delta)
        detectable = evidence.bounds.detectable(level, bounds.delta)
        mu = None if evidence.bounds.mu is None else evidence.bounds.mu(level)
    else:
        largest = bounds.of(perfect(evidence.tally, evidence.failed_ones, evidence.failed_zeros))
        detectable = bounds.detectable(evidence.tally)
    kind: Ruling = "no claim"
    if judged is not None:
        kind = "violation" if bound > judged.eps else "underpowered" if largest <= judged.eps else "not refuted"
    out = Verdict(
        kind,
        method,
        promise,
        level,
        bounds.delta,
        bound,
        judged,
        largest,
        detectable,
        POWER,
        evidence.tally,
        evidence.failed_ones + evidence.failed_zeros,
        evidence.adversary,
        evidence.adjacency,
        "",
        mu,
        evidence.guesses,
    )
    reason = claim.reason if isinstance(claim, NoClaim) else ""
    said = _SENTENCES[kind](out, reason, None if evidence.bounds is not None else bounds) + PROMISE[promise]
    if method == "bayes" and float(evidence.tally.fnr + evidence.tally.fpr) > 1:
        said += " The attack was worse than chance, and the posterior reads it as its opposite."
    return replace(out, sentence=" ".join([said, *caveats]))


def number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"


def _violation(v: Verdict, _: str, __: OneSided | None) -> str:
    if v.promise == "estimate":
        return f"Violation by an estimate, which proves nothing: {_shown(v)}, above {_claimed(v)}, with {v.adversary}."
    return f"Violation: {_claimed(v)} does not hold. {_shown(v)}, with {v.adversary}."


def _not_refuted(v: Verdict, _: str, __: OneSided | None) -> str:
    return (
        f"Not refuted by this adversary: {_claimed(v)}. {_shown(v)}, which is not above it. The adversary: "
        f"{v.adversary}. {_power(v)}A stronger attack may show more."
    )


def _power(v: Verdict) -> str:
    if v.detectable is None:
        return ""
    what = f"only claims below ε = {number(v.detectable)}" if v.detectable > 0 else "no claim, however small,"
    at = f"its measured rates (FNR {float(v.tally.fnr):.3g}, FPR {float(v.tally.fpr):.3g})"
    if v.guesses is not None:
        at = f"the measured share of right guesses ({v.guesses.n_right} of {v.guesses.n_guesses})"
    return f"At {at} such an audit refutes {what} with a probability of {v.power:.0%}. "


def _underpowered(v: Verdict, _: str, bounds: OneSided | None) -> str:
    return (
        f"Underpowered: this audit cannot refute {_claimed(v)}, whatever the attack. With N = {v.tally.n_samples} "
        f"guesses ({v.tally.n_positive} with b = 1) the bound is at most ε = {number(v.largest)}. {_needed(v, bounds)} "
        f"{_shown(v)}, with {v.adversary}."
    )


def _no_claim(v: Verdict, reason: str, __: OneSided | None) -> str:
    return f"No claim: {reason} {_shown(v)} at δ = {v.delta:g} ({v.adjacency}), with {v.adversary}."


_SENTENCES = {
    "violation": _violation,
    "not refuted": _not_refuted,
    "underpowered": _underpowered,
    "no claim": _no_claim,
}


def _claimed(v: Verdict) -> str:
    if v.claim is None:
        return "no claim"
    c = v.claim
    if c.mu is not None:
        worth = f"ε = {number(c.eps)} at δ = {c.delta:.3g}"
        return f"{OWNER[c.source]} μ = {number(c.mu)} of Gaussian DP, which is {worth} ({c.adjacency})"
    return f"{OWNER[c.source]} ε = {number(c.eps)} at δ = {c.delta:.3g} ({c.adjacency})"


def _shown(v: Verdict) -> str:
    how = f"{METHODS[v.method].label}, one-sided, level {v.level:g}, N = {v.tally.n_samples}"
    if v.guesses is not None and v.guesses.n_guesses < v.guesses.n_bits:
        how += f", of which {v.guesses.n_guesses} count"
    if v.mu is not None:
        return f"Under Gaussian DP the attack shows μ of at least {number(v.mu)}, ε of {number(v.bound)} ({how})"
    return f"The attack shows ε of at least {number(v.bound)} ({how})"


def _needed(v: Verdict, bounds: OneSided | None) -> str:
    """How many guesses a perfect attack would need."""
    if bounds is None:
        return ""
    n = bounds.needed(0.0 if v.claim is None else v.claim.eps)
    if v.failed and n is not None and n <= v.tally.n_samples:
        return f"{v.failed} guesses about models that failed count as wrong: try these again."
    if n is None:
        return f"No number of guesses up to {MAX_SAMPLES:.0e} is enough."
    return f"Even a perfect attack needs about N = {n}."
