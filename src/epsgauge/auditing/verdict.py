"""The verdict on a claim: violation, unsupported, no objection, cannot decide; and the bounds that it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.basis import Basis
from epsgauge.auditing.bound import Bound, bound_by
from epsgauge.auditing.claim import Claim, NoClaim
from epsgauge.auditing.control import Control
from epsgauge.bounds.guesses import Guesses
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Method
from epsgauge.methods.power import MANY, POWER
from epsgauge.methods.rows import bound_of
from epsgauge.numbers import at_least, at_most, count, exactly, percent
from epsgauge.stats.interval import Kind
from epsgauge.stats.tally import Tally

# Only a guaranteed bound says that a claim does not hold. "unsupported": a probe refutes what the claim rests on.
Ruling = Literal[
    "violation",
    "violation by an estimate",
    "violation by a credible bound",
    "unsupported",
    "no objection",
    "cannot decide",
    "in progress",
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
class Judge:
    """A method, in the form that it takes for the evidence, and what is left of its promise."""

    method: Method
    promise: Kind


@dataclass(frozen=True)
class Verdict:
    """What lower bounds, one-sided at one level, say about the claim; relative to one adversary.

    `bound` holds for any training. `conditional_bound` is what a whole curve shows, and holds if its condition does;
    there is none where the probe refutes that condition.
    """

    kind: Ruling
    bound: Bound
    conditional_bound: Bound | None
    refutes_curve: bool  # whether the training is not what was accounted, or is not as private as the claimed μ
    decided_by: Bound  # which of the two was held against the claim, shown or not
    meaning: str  # of its promise
    claim: Claim | None
    stated_noise: float | None  # of DP-SGD, as accounted
    largest: float  # what the deciding bound would be if every guess were right, except on models that failed
    without_noise: float | None  # what it would be of models without noise, by the control
    detectable: float | None  # at the measured rates claims below it are refuted with probability `power`, if known
    power: float
    tally: Tally  # that the deciding bound rests on
    failed: int  # guesses about models that failed, which count in it as wrong
    adversary: Adversary
    control: Control | None  # what the attack sees where there is no noise, if that was tried
    basis: Basis  # what the claim rests on, as far as that was tested
    adjacency: Adjacency
    guesses: Guesses | None  # that count, of a pooled bound
    guessed_by: str  # what makes them, where that is not the rule
    needed: float | None  # guesses that a perfect attack would need, where there are too few
    reason: str  # why there is no claim
    folded: bool  # whether a posterior read the attack as its opposite
    caveats: tuple[str, ...]
    remaining: int = 0  # models of the run that are still to come

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """All that is shown: the one for any training, then the conditional one."""
        return (self.bound,) if self.conditional_bound is None else (self.bound, self.conditional_bound)

    @property
    def method(self) -> str:
        """Of the bound that decides."""
        return self.decided_by.method

    @property
    def promise(self) -> Kind:
        """Of the bound that decides."""
        return self.decided_by.promise

    @property
    def level(self) -> float:
        return self.bound.level

    @property
    def delta(self) -> float:
        """Of the claim; without one, of the audit."""
        return self.bound.delta

    @property
    def head(self) -> str:
        """The ruling, which begins the sentence."""
        return _HEADS[self.kind]

    @property
    def above(self) -> bool:
        """Whether the bound for any training is above the claim; what that proves is up to the promise."""
        return self.claim is not None and self.bound.value > self.claim.eps

    @property
    def powerless(self) -> str | None:
        """Why the game could not have refuted the claim, as a part of a sentence; None if it could have."""
        if self.control is not None and not self.control.sees:
            return "the attack sees nothing even without noise"
        if self.claim is not None and self.largest <= self.claim.eps:
            return f"a game of this size shows at most ε = {at_least(self.largest)}, even if every guess is right"
        if self.without_noise is None:
            return "the attack is too weak to refute any claim" if self.detectable == 0 else None
        if self.claim is not None and self.without_noise <= self.claim.eps:
            return f"even without noise this attack shows at most ε = {at_least(self.without_noise)} with so few models"
        return None

    @property
    def finding(self) -> str:
        """What it is about, in one sentence."""
        match self.kind:
            case "violation" if self.refutes_curve and not self.above:
                return self._not_as_accounted
            case "violation":
                return f"{_claimed(self)} does not hold."
            case "violation by an estimate" | "violation by a credible bound":
                above = "contradicts" if self.refutes_curve and not self.above else "is above"
                return f"{self.decided_by.text} {self.decided_by.scope} {above} {_claimed(self)}."
            case "unsupported":
                return f"the {self.basis.of} is not what {_claimed(self)} assumes."
            case "no objection":
                return f"nothing contradicts {_claimed(self)}. This does not verify it."
            case "cannot decide":
                return f"this audit could not have refuted {_claimed(self)}: {self.powerless}."
            case "in progress":
                done = f"those that are done could not have refuted {_claimed(self)}"
                return f"{count(self.remaining, 'model')} to go; {done}."
            case _:
                return self.reason

    @property
    def _not_as_accounted(self) -> str:
        """What a refuted curve says: nothing about the point (ε, δ) of the claim."""
        claim, shown, stated = self.claim, self.conditional_bound, self.stated_noise
        if claim is not None and claim.mu is not None:
            return f"{_claimed(self)} does not hold. Whether its (ε, δ) does is not decided."
        noise = ""
        if shown is not None and shown.noise is not None and stated is not None:
            noise = f": its noise multiplier is below {at_most(shown.noise)}, and {exactly(stated)} is stated"
        return f"the training is not what was accounted{noise}. {_upper(_claimed(self))} has no basis."

    @property
    def shown(self) -> tuple[str, ...]:
        """The bounds, each as a sentence with its condition."""
        said = []
        for bound in self.bounds:
            how = f"{bound.how}, δ = {bound.delta:g}, {bound.adjacency}, N = {int(bound.tally.n_samples)}"
            pooled = self.guesses if bound.method == self.decided_by.method else None
            if pooled is not None and pooled.n_guesses < pooled.n_bits:
                how += f", of which {pooled.n_guesses} count"
            means = f", since it shows {bound.means}" if bound.means else ""
            said.append(f"{bound.text} {bound.scope}{means} ({how}).")
        return tuple(said)

    @property
    def details(self) -> tuple[str, ...]:
        """The sentences behind it: who attacked, and what could have been shown."""
        who = f"The adversary: {self.adversary}."
        match self.kind:
            case "violation" | "violation by an estimate" | "violation by a credible bound":
                found = [who, self.basis.said]
            case "unsupported":
                found = [self.basis.said, who]
            case "no objection":
                found = [
                    who,
                    "" if self.control is None else f"{_upper(str(self.control))}.",
                    "" if self.detectable == 0 and self.powerless is None else _power(self),
                    f"The game adds nothing to the probe: {self.powerless}." if self.powerless else "",
                    "A stronger attack may show more.",
                ]
            case "cannot decide":
                blind = self.control is not None and not self.control.sees
                found = [f"{_upper(str(self.control))}." if blind else _power(self), _needed(self), who]
            case _:
                found = [who]
        return tuple(text for text in (*found, PROMISE[self.promise], OPPOSITE if self.folded else "") if text)

    @property
    def brief(self) -> str:
        """The ruling and the bounds, on one line."""
        at = f"{self.bound.label}, {self.bound.promise}, level {self.level:g}, δ = {self.delta:g}, {self.adjacency}"
        more = "".join(f"; {bound.text} {bound.scope}" for bound in self.bounds[1:])
        return f"{self.kind}, {self.bound.text} ({at}){more}"

    @property
    def sentence(self) -> str:
        """The whole verdict: head, finding, bounds, details and caveats."""
        return " ".join([f"{self.head}: {self.finding}", *self.shown, *self.details, *self.caveats])


def verdict(
    claim: Claim | NoClaim,
    evidence: Evidence,
    *,
    judge: Judge,
    conditional: Judge | None = None,
    several: bool,
    level: float,
    delta: float,
    adversary: Adversary,
    control: Control | None = None,
    basis: Basis | None = None,
    caveats: tuple[str, ...] = (),
    remaining: int = 0,
) -> Verdict:
    """Judge a claim at its own δ, or report the bounds at `delta` where there is none.

    `judge` bounds any training. A claim that is a whole curve is held against `conditional` first. Only if that refutes
    the curve, the bound for any training may exceed the claim: so both hold at one level (docs/guarantees.md).
    `remaining` models of the run are still to come: what cannot be decided yet is in progress.
    """
    judged, basis = claim if isinstance(claim, Claim) else None, basis or Basis()
    at = {"delta": delta if judged is None else judged.delta, "level": level}
    judges = [judge, *([] if conditional is None else [conditional])]
    bound, *curves = (bound_by(j.method, evidence, j.promise, **at, several=several, of=basis.of) for j in judges)
    curve, privacy = curves[0] if curves else None, evidence.privacy
    stated = float(privacy.noise_multiplier) if isinstance(privacy, DPSGD) else None
    refuted = curve is not None and judged is not None and _refutes(curve, judged, stated)
    if curve is not None and judged is not None and curve.promise == "guaranteed" and not refuted:
        bound = replace(bound, value=min(bound.value, judged.eps))
    above = judged is not None and bound.value > judged.eps
    refuting = [each for each, refutes in ((bound, above), (curve, refuted)) if each is not None and refutes]
    proving = [each for each in refuting if each.promise == "guaranteed"]
    decided_by = next(iter((*proving, *refuting, *curves)), bound)
    decider = next(j.method for j in judges if (decided_by is bound) == (j is judge))
    largest = bound_of(decider, decider.at_best(evidence, **at))
    seen = None if control is None else evidence.as_sharp_as(control.right_order)
    tallied = decider.rests_on(evidence)
    out = Verdict(
        kind="no claim",
        bound=bound,
        conditional_bound=None if basis.refuted else curve,
        refutes_curve=refuted,
        decided_by=decided_by,
        meaning=decider.meaning,
        claim=judged,
        stated_noise=stated,
        largest=largest,
        without_noise=None if seen is None else bound_of(decider, decider.lower_bound(seen, **at)),
        detectable=decider.detectable(evidence, **at),
        power=POWER,
        tally=tallied.tally,
        failed=tallied.n_failed,
        adversary=adversary if decider.needs_rule else replace(adversary, rule=f"guesses by {decider.guessed_by}"),
        control=control,
        basis=basis,
        adjacency=evidence.scores.adjacency,
        guesses=decider.guesses(evidence),
        guessed_by=decider.guessed_by,
        needed=None,
        reason=claim.reason if isinstance(claim, NoClaim) else "",
        folded=decider.folds and float(tallied.tally.fnr + tallied.tally.fpr) > 1,
        caveats=caveats,
        remaining=remaining,
    )
    if judged is None:
        return out
    out = replace(out, kind=_ruling(out))
    if out.kind == "cannot decide" and largest <= judged.eps:
        out = replace(out, needed=decider.needed(evidence, judged.eps, **at))
    return out


def _refutes(curve: Bound, claim: Claim, stated: float | None) -> bool:
    """Whether a bound by a whole curve refutes that the training is what was accounted, or the claimed μ."""
    if claim.is_curve:
        return curve.value > claim.eps
    return stated is not None and curve.noise is not None and stated >= curve.noise


def _ruling(v: Verdict) -> Ruling:
    """The one place that decides. A probe that tested what the accountant assumes could have refuted the claim too."""
    refuted = v.above or v.refutes_curve
    if refuted and v.promise == "guaranteed":
        return "violation"
    if v.basis.broken:
        return "unsupported"
    if refuted:
        return ABOVE[v.promise]
    if v.powerless is None or v.basis.tested:
        return "no objection"
    return "in progress" if v.remaining else "cannot decide"


_HEADS = {
    "violation": "Violation",
    "violation by an estimate": "Violation by an estimate, which proves nothing",
    "violation by a credible bound": "Violation by a credible bound, which proves nothing",
    "unsupported": "Unsupported",
    "no objection": "No objection found",
    "cannot decide": "Cannot decide",
    "in progress": "In progress",
    "no claim": "No claim",
}


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
        return f"At {at} this attack refutes claims below ε = {at_least(v.detectable)} with {percent(v.power)} power."
    return f"At {at} this attack is too weak to refute any claim with {percent(v.power)} power."


def _claimed(v: Verdict) -> str:
    if v.claim is None:
        return "no claim"
    c = v.claim
    if c.mu is not None:
        return f"{OWNER[c.source]} μ = {exactly(c.mu)} of Gaussian DP, which is {c.text} ({c.adjacency})"
    of_curve = "" if c.curve is None else f" of the curve {c.curve}"
    return f"{OWNER[c.source]} {c.text}{of_curve} ({c.adjacency})"


def _needed(v: Verdict) -> str:
    """How many guesses a perfect attack would need."""
    if v.needed is None:
        return ""
    if v.failed and v.needed <= v.tally.n_samples:
        return f"{v.failed} guesses about failed models count as wrong: train those models again."
    if math.isinf(v.needed):
        return f"Even a perfect attack needs more than N = {MANY:,}."
    return f"Even a perfect attack needs about N = {v.needed:.0f}."
