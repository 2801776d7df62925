"""Method: a way from evidence to a bound of ε, with what it promises, what it assumes and when it is called for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from epsgauge.bounds.guesses import Guesses
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import NUMBER_FIXED
from epsgauge.numbers import count
from epsgauge.stats.interval import Kind


@dataclass(frozen=True)
class Asked:
    """What decides which methods an audit calls for, known before there is any evidence."""

    rule: str  # of the settings
    pairs_per_model: int
    by_mu: bool  # whether the claim is stated as μ
    stopped: bool = False  # whether the number of models was not fixed beforehand
    coins: bool = True  # whether each bit is said to be a fair coin of its own
    says_which: bool = False  # whether the settings say which guesses of a pooled bound count
    of_dpsgd: bool = False  # whether the claim is what an accountant says of DP-SGD, so that it is a whole curve
    orthogonal: bool = False  # whether pairs are gradient canaries, each in a direction of its own

    @property
    def same_data(self) -> bool:
        """Whether the judged data choose the rule."""
        return self.rule == "same-data"

    @property
    def several(self) -> bool:
        return self.pairs_per_model > 1

    @property
    def weighs(self) -> bool:
        """Whether surer guesses weigh more in a verdict: it needs coins, and no word on which guesses count."""
        return self.coins and not (self.says_which and self.judges_several)

    @property
    def by_curve(self) -> bool:
        """Whether a whole curve is judged, which needs pairs that have their own output each."""
        return self.of_dpsgd and not self.by_mu and self.own_outputs

    @property
    def own_outputs(self) -> bool:
        """Whether each judged pair has an output of its own: that of its model, or the noise in its direction."""
        return self.orthogonal or not self.judges_several

    @property
    def judges_several(self) -> bool:
        """Whether a verdict must hold for several pairs of a model: those that chose the rule count too."""
        return self.several or self.rule == "split-pairs"


@dataclass(frozen=True)
class Found:
    """An interval for ε, and what a reader should know of it."""

    low: float
    high: float = math.inf
    before: str | None = None  # in the note, before the reasons for which it promises less
    after: str | None = None  # and after them


class Method(ABC):
    """Subclass it in one file, and add a row to the table. Bounds are one-sided at `level` unless they say otherwise.

    All but the posterior have a direction: evidence that is worse than chance gives 0.
    """

    texts: ClassVar[tuple[str, ...]] = ("name", "label", "meaning")  # that every method must have
    name: ClassVar[str]
    label: ClassVar[str]
    colour: ClassVar[str] = "grey"  # of figures, a name of their palette
    dashes: ClassVar[tuple[float, ...]] = ()
    promise: ClassVar[Kind]
    meaning: ClassVar[str]
    assumptions: ClassVar[tuple[str, ...]]
    remark: ClassVar[str] = ""  # what sets it apart from the others, as a sentence
    all_pairs: ClassVar[bool] = False  # whether it takes all pairs of a model as independent samples
    one_pair: ClassVar[bool] = False  # whether it takes one pair of each model
    folds: ClassVar[bool] = False  # whether it reads an attack that is worse than chance as its opposite
    may_judge: ClassVar[bool] = True
    of_claimed_mu: ClassVar[bool] = False  # whether it judges claims stated as μ alone
    of_dpsgd: ClassVar[bool] = False  # whether it needs a trainer that says it is DP-SGD
    needs_rule: ClassVar[bool] = True  # whether guesses are those of the rule; else rows that chose it are judged too
    fixed_number: ClassVar[bool] = False  # whether it needs a number of guesses that the scores do not decide
    guessed_by: ClassVar[str] = ""  # what makes the guesses, where that is not the rule
    sliders: ClassVar[bool] = False  # whether a slider of the viewer can ask for it
    instead: ClassVar[Mapping[str, str]] = {}  # who judges where an assumption does not hold
    resolution: ClassVar[float] = 1e-9  # how far bounds may differ between machines, relative to 1 + ε

    # What it says

    @abstractmethod
    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """The bound of ε at δ."""

    @abstractmethod
    def rests_on(self, evidence: Evidence) -> Tallied:
        """The guesses that it counts."""

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found | None:
        """An interval at `level`, each end missed with half of the rest; None where the evidence gives none."""
        return Found(self.lower_bound(evidence, delta=delta, level=(1 + level) / 2))

    def bounded(self, evidence: Evidence, *, delta: float, level: float) -> Found | None:
        """The lower bound, with what a reader should know of it."""
        return self.found(evidence, delta=delta, level=2.0 * level - 1.0)

    def at_best(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """The bound if every guess were right, but of models that failed."""
        return self.lower_bound(evidence.perfect, delta=delta, level=level)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        """Claims below it would be refuted with a probability of POWER; None where that is unknown."""
        return None

    def shows(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> bool:
        """Whether the bound is above ε; of a perfect attack, for which one test may do."""
        return self.lower_bound(evidence, delta=delta, level=level) > eps

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        """How many guesses a perfect attack needs for a bound above ε; infinite above 1e8, None where unknown."""
        return None

    def mu(self, evidence: Evidence, *, level: float) -> float | None:
        """The bound as μ of Gaussian DP, for methods that bound that."""
        return None

    def noise(self, evidence: Evidence, *, level: float) -> float | None:
        """The bound as noise of DP-SGD, for methods that bound that: a multiplier so large is refuted."""
        return None

    def condition(self, evidence: Evidence) -> str | None:
        """What must be so for the bound on ε to hold, as a part of a sentence; None: it holds for any training."""
        return None

    @property
    def short_condition(self) -> str:
        """The condition where there is little room."""
        return "if DP-SGD" if self.of_dpsgd else "if Gaussian DP"

    def picks(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        """The threshold of the rule that the bound is about, for methods that pick one by themselves."""
        return None

    def guesses(self, evidence: Evidence) -> Guesses | None:
        """Those that count, for methods that pool all of them."""
        return None

    # When it is used

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        """The form that it takes for this evidence, under the same name."""
        return self

    def called_for(self, asked: Asked) -> bool:
        """Whether an audit shows it without being asked."""
        return False

    def judges(self, asked: Asked) -> bool:
        """Whether a verdict rests on it where the settings name no other; of all methods one says so."""
        return False

    def plays(self, *, pairs: int, delta: float, by_split: bool) -> bool:
        """Whether a scenario of a calibration has what it needs, and something to show."""
        return True

    def bounds_mechanism(self, *, pairs: int) -> bool:
        """Whether it bounds the ε of the mechanism rather than that of the rule."""
        return False

    # What it shows in an audit

    def counts(self, evidence: Evidence, *, several: bool) -> str:
        """Which guesses it counts, in words."""
        pairs = self.pairs(evidence, several=several)
        n = self.taken(evidence).one_each.n_failed if self.rests_on(evidence).n_failed else 0
        return f"{pairs}, with {count(n, 'failed model')} as wrong guesses" if n else pairs

    def pairs(self, evidence: Evidence, *, several: bool) -> str:
        """The pairs that it judges, in words."""
        if self.one_pair and several:
            return "one pair per model, fixed beforehand"
        judged = self.taken(evidence) is evidence
        return "all judged pairs" if judged else "all pairs, including those used to pick the threshold"

    def taken(self, evidence: Evidence) -> Evidence:
        """The rows that it judges."""
        return evidence if self.needs_rule else evidence.whole

    def failures(self, evidence: Evidence) -> str | None:
        """What becomes of models that failed."""
        n = self.rests_on(evidence).n_failed
        return f"{count(n, 'failed model')} {'counts' if n == 1 else 'count'} as wrong guesses" if n else None

    def __repr__(self) -> str:
        return f"<Method {self.name}: {self.promise}>"


# Who judges instead of a guaranteed bound for a number of samples that was not fixed beforehand.
WHEN_STOPPED = {NUMBER_FIXED: "anytime"}
