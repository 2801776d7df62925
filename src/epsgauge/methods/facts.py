"""Facts: how evidence came about. What is left of a promise is derived here, from facts and assumptions alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from epsgauge.scores.said import Bits
from epsgauge.stats.families import Mu
from epsgauge.stats.interval import Kind

if TYPE_CHECKING:
    from epsgauge.methods.evidence import Evidence
    from epsgauge.methods.method import Method

# What methods assume, as readers see it.
INDEPENDENT = "each sample comes from a model trained independently of the others (m = 1)"
DIRECTIONS = (
    "each sample is a gradient in a direction of its own, of at most the clipping norm, and training is DP-SGD: it "
    "clips the whole gradient to one norm and adds independent Gaussian noise of one size in each direction"
)
MODELS_INDEPENDENT = "models are trained independently of each other"
FAIR_BITS = "each bit is a fair coin that enters one model only"
RULE_FIXED = "the attack's rule was not chosen on these samples"
NUMBER_FIXED = "the number of samples was fixed beforehand"
DELTA_FIXED = "δ was fixed beforehand"
GAUSSIAN_CURVE = Mu.assumption
DPSGD_CURVE = "training is DP-SGD with Poisson sampling, with the rate and the steps that the trainer states"
OF_A_CURVE = (GAUSSIAN_CURVE, DPSGD_CURVE)  # what the ε that a curve is worth needs
# What goes without saying, and is not listed: of every method, of every guaranteed one, of those that take the
# pairs of one model as independent samples, and of those that take one pair of each model.
AS_DECLARED = "attack, rule and code are those that were declared"
VERDICT_DECLARED = "the method and level of the verdict are those that were declared"
PAIRS_INDEPENDENT = "the pairs of a model are independent of each other"
OTHER_BITS_APART = "the bit of that pair does not depend on the other bits of its model"
# What does not hold of rows that repeat others or depend on them, nor of gradients larger than a record's.
NEED_ROWS = {INDEPENDENT, DIRECTIONS, MODELS_INDEPENDENT, FAIR_BITS}

SAME_DATA = "the rule was chosen on the data that it is judged on"
SAME_MODELS = "the rule was chosen on other pairs of the judged models"
OTHER_DELTA = "δ is not what the plan declared before results were seen, and this bound is for one δ"
DEPENDENT = (
    "the {m} pairs of a model are not independent of each other; the paper's heuristic treats them as if they were"
)
NOT_COINS: dict[Bits, str] = {
    "unknown": "it needs bits that are coins, and nothing says that these are (if they are, say so: --bits coins, or "
    'bits="coins")',
    "dealt": "it needs bits that are coins, and these were dealt: some of them tell something about the others",
}
NO_PROOF = "a method of your own, for which epsgauge does not vouch"

ChosenOn = Literal["other models", "other pairs", "same data"]


@dataclass(frozen=True)
class Lost:
    """Why the level was not kept, as a part of a sentence.

    Stopping early takes the level from confidence bounds alone, and not from those that hold at every moment. A method
    or level of the verdict that was not declared takes it from all of them. A rule that is not the declared one, or
    was chosen by other models or code, takes it from posteriors too: their data may have chosen it.
    """

    why: str
    rule: bool = False
    stopping: bool = False
    verdict: bool = False


@dataclass(frozen=True)
class Facts:
    """What is known of how the evidence came about, beside what the evidence itself shows."""

    pairs_per_model: int
    chosen_on: ChosenOn = "other models"  # the rule; one that was given was chosen elsewhere too
    lost: Lost | None = None  # where the level was not kept
    delta_declared: bool = True
    bits: Bits = "coins"  # where they come from

    @property
    def stopped(self) -> bool:
        """Whether the number of models was not fixed beforehand."""
        return self.lost is not None and self.lost.stopping


@dataclass(frozen=True)
class Left:
    """What a method still promises, and why it promises no more."""

    promise: Kind
    why: tuple[str, ...] = ()


def left(method: Method, facts: Facts, evidence: Evidence, *, form: Method) -> Left:
    """What a method promises in this form, where these are the facts."""
    assumed = {*form.assumptions, *_unsaid(form)}
    why = [reason for broken, reason in _broken(facts, form) if broken & assumed]
    if facts.bits == "coins" and assumed & _need_coins(facts) and evidence.unfair:
        why.append(evidence.unfair)
    why += evidence.doubts if assumed & NEED_ROWS else ()
    if not (_built_in(method) and _built_in(form)):
        why.append(NO_PROOF)
    return Left("estimate", tuple(why)) if why else Left(form.promise)


def _built_in(method: Method) -> bool:
    """A class of the user's inherits words, and not what stands behind them."""
    kind = type(method)
    home = sys.modules.get(kind.__module__) if kind.__module__.startswith("epsgauge.") else None
    return getattr(home, kind.__name__, None) is kind and not vars(method)


def _unsaid(method: Method) -> set[str]:
    pairs = {PAIRS_INDEPENDENT} if method.all_pairs and INDEPENDENT in method.assumptions else set()
    pairs |= {OTHER_BITS_APART} if method.one_pair else set()
    return {AS_DECLARED, *pairs, *({VERDICT_DECLARED} if method.promise == "guaranteed" else ())}


def _need_coins(facts: Facts) -> set[str]:
    """What does not hold where bits are no coins."""
    return {FAIR_BITS, OTHER_BITS_APART} if facts.pairs_per_model > 1 else {FAIR_BITS}


def _broken(facts: Facts, form: Method) -> list[tuple[set[str], str]]:
    """Assumptions that do not hold, with the reason."""
    out: list[tuple[set[str], str]] = []
    if facts.chosen_on == "same data":
        out.append(({RULE_FIXED}, SAME_DATA))
    if facts.chosen_on == "other pairs":
        models = {MODELS_INDEPENDENT} if form.needs_rule else set()  # else it does not matter who chose one
        out.append(({INDEPENDENT, *models}, SAME_MODELS))
    if facts.lost is not None:
        is_broken = {AS_DECLARED: facts.lost.rule, VERDICT_DECLARED: facts.lost.verdict, NUMBER_FIXED: facts.stopped}
        out.append(({name for name, broken in is_broken.items() if broken}, facts.lost.why))
    if not facts.delta_declared:
        out.append(({DELTA_FIXED}, OTHER_DELTA))
    if facts.pairs_per_model > 1:
        out.append(({PAIRS_INDEPENDENT}, DEPENDENT.format(m=facts.pairs_per_model)))
    if facts.bits != "coins":
        out.append((_need_coins(facts), NOT_COINS[facts.bits]))
    return out
