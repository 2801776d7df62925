"""Method: a way from evidence to a bound of ε, with what it promises, what it assumes and when it is called for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsgauge.bounds.guesses import Guesses
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import NUMBER_FIXED
from epsgauge.methods.power import needed, tally_at_power, tally_at_power_of_posterior
from epsgauge.numbers import count
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta, Family
from epsgauge.stats.interval import Interval, Kind
from epsgauge.stats.posterior import JEFFREYS, Prior
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Asked:
    """What decides which methods an audit calls for, known before there is any evidence."""

    rule: str  # of the settings
    pairs_per_model: int
    by_mu: bool  # whether the claim is stated as μ
    stopped: bool = False  # whether the number of models was not fixed beforehand

    @property
    def same_data(self) -> bool:
        """Whether the judged data choose the rule."""
        return self.rule == "same-data"

    @property
    def several(self) -> bool:
        return self.pairs_per_model > 1

    @property
    def judges_several(self) -> bool:
        """With a split by pair even where one pair of each model is left."""
        return self.several or self.rule == "split-pairs"


@dataclass(frozen=True)
class Found:
    """An interval for ε, and what a reader should know of it."""

    low: float
    high: float = math.inf
    rests_on: str | None = None
    says: str | None = None


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
    remark: ClassVar[str] = ""
    all_pairs: ClassVar[bool] = False  # whether it takes all pairs of a model as independent samples
    one_pair: ClassVar[bool] = False  # whether it takes one pair of each model
    folds: ClassVar[bool] = False  # whether it reads an attack that is worse than chance as its opposite
    may_judge: ClassVar[bool] = True
    of_claimed_mu: ClassVar[bool] = False  # whether it judges claims stated as μ alone
    fixed_number: ClassVar[bool] = False  # whether it needs a number of guesses that the scores do not decide
    sliders: ClassVar[bool] = False  # whether a slider of the viewer can ask for it
    # who judges where an assumption does not hold
    instead: ClassVar[Mapping[str, str]] = {}

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

    def at_best(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """The bound if every guess were right, but of models that failed."""
        return self.lower_bound(evidence.perfect, delta=delta, level=level)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        """Claims below it would be refuted with a probability of POWER by such an audit; None where that is unknown."""
        return None

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        """How many guesses a perfect attack needs for a bound above ε; infinite above 1e8, None where unknown."""
        return None

    def mu(self, evidence: Evidence, *, level: float) -> float | None:
        """The bound as μ of Gaussian DP, for methods that bound that."""
        return None

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
        pairs = "one pair per model, fixed beforehand" if self.one_pair and several else "all judged pairs"
        n = evidence.one_each.n_failed if self.rests_on(evidence).n_failed else 0
        return f"{pairs}, with {count(n, 'failed model')} as wrong guesses" if n else pairs

    def failures(self, evidence: Evidence) -> str | None:
        """What becomes of models that failed."""
        n = self.rests_on(evidence).n_failed
        return f"{count(n, 'failed model')} {'counts' if n == 1 else 'count'} as wrong guesses" if n else None

    def __repr__(self) -> str:
        return f"<Method {self.name}: {self.promise}>"


class OfCounts(Method):
    """A method whose bound four counts give."""

    vectorised: ClassVar[bool] = False  # whether many tallies take little longer than one

    @abstractmethod
    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        """The bound of each tally."""

    def of(self, tally: Tally, *, delta: float, level: float) -> float:
        """The bound of one tally."""
        return float(self.lower_bounds(Counts.of(tally), delta=delta, level=level)[0])

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self.of(self.rests_on(evidence).tally, delta=delta, level=level)


class Counted(OfCounts):
    """A method whose interval four counts give, for one pair of each model or for all pairs."""

    quick: ClassVar[bool] = False  # for counts that are not whole, and for every quantity
    called_for_always: ClassVar[bool] = False
    of_one_rate: ClassVar[Callable[..., Interval] | None] = None  # where it is a rectangle of limits of each rate

    @abstractmethod
    def ends(self, family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
        """Both ends of an interval that misses with `alpha`, for each tally."""

    def rests_on(self, evidence: Evidence) -> Tallied:
        return Tallied(evidence.tally) if self.all_pairs else evidence.one_each

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        return Found(*covering(self, self.rests_on(evidence), level=level, delta=delta))

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        tally = self.rests_on(evidence).tally
        if self.quick:
            at = tally_at_power(tally, lambda counts: self.lower_bounds(counts, delta=delta, level=level))
        else:
            at = tally_at_power_of_posterior(tally, delta=delta, level=level)
        return self.of(at, delta=delta, level=level)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        def bound(n: int) -> float:
            return self.of(Tally(tp=n // 2, tn=n // 2, fp=0, fn=0), delta=delta, level=level)

        return needed(bound, eps, MAX_SAMPLES)

    def called_for(self, asked: Asked) -> bool:
        return self.called_for_always


def covering(
    method: Counted, tallied: Tallied, *, level: float, delta: float = 0.0, family: Family | None = None
) -> tuple[float, float]:
    """An interval, for ε at δ or another quantity, that covers whatever the failed models would have shown.

    The low end takes them as wrong guesses, and is 0 where that is no better than chance. For the high end each
    side's failures are taken as right and as wrong: every corner of the rectangle of rates is in one of the four.
    """
    corners = [(1, 1)] if not tallied.n_failed else [(0, 0), (0, 1), (1, 0), (1, 1)]
    f1, f0 = np.array(corners).T * np.array([[tallied.failed_ones], [tallied.failed_zeros]])
    t = tallied.guesses
    cells = (t.tp + tallied.failed_ones - f1, t.tn + tallied.failed_zeros - f0, t.fp + f0, t.fn + f1)
    counts = Counts(*(np.asarray(cell, np.float64) for cell in cells))
    of = EpsAtDelta(np.full(len(corners), delta)) if family is None else family
    low, high = method.ends(of, counts, 1.0 - level, JEFFREYS)
    if not tallied.n_failed:
        return float(low[0]), float(high[0])
    wrong = tallied.tally
    chance = wrong.tp * wrong.n_negative <= wrong.fp * wrong.n_positive
    return 0.0 if chance else float(low[-1]), float(high.max())


# Who judges instead of a guaranteed bound for a number of samples that was not fixed beforehand.
WHEN_STOPPED = {NUMBER_FIXED: "anytime"}
