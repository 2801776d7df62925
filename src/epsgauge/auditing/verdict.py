"""The verdict on a claim: violation, unsupported, not refuted by this adversary, inconclusive, and so on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.basis import Basis
from epsgauge.auditing.claim import Claim, NoClaim
from epsgauge.auditing.control import Control
from epsgauge.bounds.guesses import Guesses
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import DPSGD_CURVE, GAUSSIAN_CURVE
from epsgauge.methods.method import Method
from epsgauge.methods.power import POWER
from epsgauge.methods.rows import bound_of
from epsgauge.numbers import number, percent
from epsgauge.stats.interval import Kind
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally

# Only a guaranteed bound says that a claim does not hold. "unsupported": a probe refutes what the claim rests on.
Ruling = Literal[
    "violation",
    "violation by an estimate",
    "violation by a credible bound",
    "unsupported",
    "not refuted",
    "inconclusive",
    "underpowered",
    "no claim",
]
ABOVE: dict[Kind, Ruling] = {
    "guaranteed": "violation",
    "estimate": "violation by an estimate",
    "credible": "violation by a credible bound",
}
OWNER = {"stated": "the stated claim", "accountant": "the accountant's claim", "known": "the proven claim"}
PROMISE = {
    "credible": "The bound is credible: it comes from a posterior and is not a confidence bound.",
    "estimate": "The bound is only an estimate: no level is promised.",
    "guaranteed": "",
}
OPPOSITE = "The attack was worse than chance, and the posterior reads it as its opposite."


@dataclass(frozen=True)
class Verdict:
    """What one method's lower bound, one-sided at `level`, says about the claim; relative to one adversary."""

    kind: Ruling
    method: str
    label: str
    meaning: str
    promise: Kind  # of the bound, in this audit
    assumptions: tuple[str, ...]  # to refute the claim; a bound of μ or of noise may need more for its ε
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
    control: Control | None  # what the attack sees where there is no noise, if that was tried
    basis: Basis  # what the claim rests on, as far as that was tested
    adjacency: Adjacency
    mu: float | None  # the bound as μ of Gaussian DP, where that was held against a claim
    noise: float | None  # the bound as noise of DP-SGD, for methods that bound that: so large a one is refuted
    guesses: Guesses | None  # that count, of a pooled bound
    guessed_by: str  # what makes them, where that is not the rule
    needed: float | None  # guesses that a perfect attack would need, where there are too few
    reason: str  # why there is no claim
    folded: bool  # whether a posterior read the attack as its opposite
    caveats: tuple[str, ...]

    @property
    def head(self) -> str:
        """The ruling, which begins the sentence."""
        return _HEADS[self.kind]

    @property
    def finding(self) -> str:
        """What it is about, in one sentence."""
        with_whom = f"with {self.adversary}."
        match self.kind:
            case "violation":
                return f"{_claimed(self)} does not hold."
            case "violation by an estimate" | "violation by a credible bound":
                return f"{_shown(self)}, above {_claimed(self)}, {with_whom}"
            case "unsupported":
                return f"the {self.basis.of} is not what {_claimed(self)} assumes."
            case "not refuted":
                return f"{_claimed(self)}."
            case "inconclusive":
                return f"the attack is too weak to say anything about {_claimed(self)}."
            case "underpowered":
                return f"this audit cannot refute {_claimed(self)}, whatever the attack."
            case _:
                return self.reason

    @property
    def details(self) -> tuple[str, ...]:
        """The sentences behind it: what was shown, by whom, and what could have been."""
        with_whom = f"with {self.adversary}."
        found = []
        match self.kind:
            case "violation":
                found = [f"{_shown(self)}, {with_whom}", self.basis.said]
            case "unsupported":
                found = [
                    self.basis.said,
                    f"{_shown(self)}, {'above it' if self.above else 'which is not above it'}, {with_whom}",
                ]
            case "not refuted":
                found = [
                    f"{_shown(self)}, which is not above it.",
                    f"The adversary: {self.adversary}.",
                    "" if self.control is None else f"{_upper(str(self.control))}.",
                    _power(self),
                    "A stronger attack may show more.",
                ]
            case "inconclusive":
                blind = self.control is not None and not self.control.sees
                found = [
                    f"Even without noise it can hardly tell what a model was trained on: {self.control}."
                    if blind
                    else "",
                    "" if blind else f"{_shown(self)}. {_power(self)}",
                    f"The adversary: {self.adversary}.",
                    "Give it more: other canaries, another attack, or a look at the updates.",
                ]
            case "underpowered":
                found = [
                    f"With N = {self.tally.n_samples} guesses ({self.tally.n_positive} with b = 1) the bound is at "
                    f"most ε = {number(self.largest)}.",
                    _needed(self),
                    f"{_shown(self)}, {with_whom}",
                ]
            case "no claim":
                found = [f"{_shown(self)} at δ = {self.delta:g} ({self.adjacency}), {with_whom}"]
        return tuple(text for text in (*found, PROMISE[self.promise], OPPOSITE if self.folded else "") if text)

    @property
    def weak(self) -> bool:
        """Whether the attack sees nothing without noise, or could refute no claim."""
        return _weak(self.bound, self.detectable, self.control)

    @property
    def above(self) -> bool:
        """Whether the bound is above the claim; what that proves is up to the promise."""
        return self.claim is not None and self.bound > self.claim.eps

    @property
    def brief(self) -> str:
        """The ruling and the bound, on one line."""
        at = f"{self.label}, {self.promise}, level {self.level:g}, δ = {self.delta:g}, {self.adjacency}"
        return f"{self.kind}, ε ≥ {number(self.bound)} ({at})"

    @property
    def sentence(self) -> str:
        """The whole verdict: head, finding, details and caveats."""
        return " ".join([f"{self.head}: {self.finding}", *self.details, *self.caveats])


def verdict(
    claim: Claim | NoClaim,
    evidence: Evidence,
    *,
    method: Method,
    promise: Kind,
    level: float,
    delta: float,
    adversary: Adversary,
    control: Control | None = None,
    basis: Basis | None = None,
    caveats: tuple[str, ...] = (),
) -> Verdict:
    """Judge a claim at its own δ, or report the bound at `delta` where there is none."""
    judged = claim if isinstance(claim, Claim) else None
    at = {"delta": delta if judged is None else judged.delta, "level": level}
    bound, largest = (bound_of(method, of(evidence, **at)) for of in (method.lower_bound, method.at_best))
    detectable = method.detectable(evidence, **at)
    kind: Ruling = "no claim"
    if judged is not None:
        left: Ruling = "inconclusive" if _weak(bound, detectable, control) else "not refuted"
        kind = ABOVE[promise] if bound > judged.eps else "underpowered" if largest <= judged.eps else left
        if basis is not None and basis.broken and kind != "violation":
            kind = "unsupported"
    tallied = method.rests_on(evidence)
    folded = method.folds and float(tallied.tally.fnr + tallied.tally.fpr) > 1
    unneeded = (
        (GAUSSIAN_CURVE, DPSGD_CURVE) if judged is not None and judged.source == "accountant" else (GAUSSIAN_CURVE,)
    )
    short_of = kind == "underpowered" and judged is not None
    return Verdict(
        kind=kind,
        method=method.name,
        label=method.label,
        meaning=method.meaning,
        promise=promise,
        assumptions=tuple(text for text in method.assumptions if text not in unneeded),
        level=level,
        delta=at["delta"],
        bound=bound,
        claim=judged,
        largest=largest,
        detectable=detectable,
        power=POWER,
        tally=tallied.tally,
        failed=tallied.n_failed,
        adversary=adversary if method.needs_rule else replace(adversary, rule=f"guesses by {method.guessed_by}"),
        control=control,
        basis=basis or Basis(),
        adjacency=evidence.scores.adjacency,
        mu=method.mu(evidence, level=level),
        noise=method.noise(evidence, level=level),
        guesses=method.guesses(evidence),
        guessed_by=method.guessed_by,
        needed=method.needed(evidence, judged.eps, **at) if short_of and judged is not None else None,
        reason=claim.reason if isinstance(claim, NoClaim) else "",
        folded=folded,
        caveats=caveats,
    )


_HEADS = {
    "violation": "Violation",
    "violation by an estimate": "Violation by an estimate, which proves nothing",
    "violation by a credible bound": "Violation by a credible bound, which proves nothing",
    "unsupported": "Unsupported",
    "not refuted": "Not refuted by this adversary",
    "inconclusive": "Inconclusive",
    "underpowered": "Underpowered",
    "no claim": "No claim",
}


def _weak(bound: float, detectable: float | None, control: Control | None) -> bool:
    blind = control is not None and not control.sees
    return blind or (bound <= 0 and detectable == 0)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _power(v: Verdict) -> str:
    if v.detectable is None:
        return ""
    at = f"its measured rates (FNR {float(v.tally.fnr):.3g}, FPR {float(v.tally.fpr):.3g})"
    if v.guesses is not None:
        by = f", by {v.guessed_by}" if v.guessed_by else ""
        at = f"the measured share of right guesses ({v.guesses.n_right} of {v.guesses.n_guesses}{by})"
    if v.detectable > 0:
        return f"At {at} this attack refutes claims below ε = {number(v.detectable)} with {percent(v.power)} power."
    return f"At {at} this attack is too weak to refute any claim with {percent(v.power)} power."


def _claimed(v: Verdict) -> str:
    if v.claim is None:
        return "no claim"
    c = v.claim
    if c.mu is not None:
        worth = f"ε = {number(c.eps)} at δ = {c.delta:.3g}"
        return f"{OWNER[c.source]} μ = {number(c.mu)} of Gaussian DP, which is {worth} ({c.adjacency})"
    of_curve = "" if c.curve is None else f" of the curve {c.curve}"
    return f"{OWNER[c.source]} ε = {number(c.eps)} at δ = {c.delta:.3g}{of_curve} ({c.adjacency})"


def _shown(v: Verdict) -> str:
    how = f"{v.label}, one-sided, level {v.level:g}, N = {v.tally.n_samples}"
    if v.guesses is not None and v.guesses.n_guesses < v.guesses.n_bits:
        how += f", of which {v.guesses.n_guesses} count"
    if v.mu is not None:
        mu, eps = number(v.mu), number(v.bound)
        return f"The attack shows μ of at least {mu}, which means ε of at least {eps} under Gaussian DP ({how})"
    if v.noise is not None and v.noise < math.inf:
        return (
            f"The attack shows a noise multiplier below {number(v.noise)}, which means ε of at least "
            f"{number(v.bound)} if training is DP-SGD with the stated sampling rate and steps ({how})"
        )
    return f"The attack shows ε of at least {number(v.bound)} ({how})"


def _needed(v: Verdict) -> str:
    """How many guesses a perfect attack would need."""
    if v.needed is None:
        return ""
    if v.failed and v.needed <= v.tally.n_samples:
        return f"{v.failed} guesses about failed models count as wrong: train those models again."
    if math.isinf(v.needed):
        return f"No number of guesses up to {MAX_SAMPLES:.0e} is enough."
    return f"Even a perfect attack needs about N = {v.needed:.0f}."
