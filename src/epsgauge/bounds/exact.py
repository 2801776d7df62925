"""A lower bound of ε or μ with proven coverage for independent samples, nearly as high as the posterior's.

It inverts a test: ε is refuted when outcomes at least as telling as the observed one are improbable at all rates that
(ε, δ)-DP allows and that the counts do not rule out; μ likewise. `docs/guarantees.md` has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from epsgauge.bounds.cells import Rectangle, Tail, improbable
from epsgauge.bounds.ordering import EpsOrdering, Ordering, Rank
from epsgauge.bounds.outcomes import DownSet, window
from epsgauge.bounds.peak import seen
from epsgauge.bounds.regions import EpsRegion, Region
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, rates
from epsgauge.stats.arrays import Ints
from epsgauge.stats.families import EpsAtDelta, Family
from epsgauge.stats.steps import last_step
from epsgauge.stats.tally import Tally

Direction = Literal["either", "right"]
Error = Literal["miss", "false alarm"]
# With more trials of one kind than this, Clopper-Pearson is used instead: valid, less tight, and instant.
MAX_TRIALS = 50_000
# The share of α that pays for ruling out rates far from the observed ones.
GAMMA_SHARE = 1 / 50
# Steps in 1 of a grid fixed in advance: the bound lies on it, less than a step below what the test could give.
STEPS = 100_000
# A bound that falls by more than this with an error fewer is said to.
VISIBLE = 0.01
SEARCHED = 5_000
# No counts refute more than this: with 50,000 trials e^ε is below 1e9 at any level that is taken.
LARGEST = 100
# Limits of rates are computed to a relative error of 1e-9 in their probability; they are taken a little wider.
OUTWARD = 1.0 - 1e-8


@dataclass(frozen=True)
class Quantity:
    """What is bounded, θ: its order from (n1, n0, level), its region from (θ, folded), and its value at rates."""

    ordering: Callable[[int, int, float], Ordering]
    region: Callable[[float, bool], Region]
    family: Family


def exact_lower_bound(
    tally: Tally, *, delta: float, level: float, gamma_share: float = GAMMA_SHARE, direction: Direction = "either"
) -> float:
    """A lower bound of ε that is above the true ε with at most 1 − level, whatever the true rates are.

    For independent samples and numbers of samples fixed beforehand. An attack that is reliably wrong counts like one
    that is reliably right, unless its direction was fixed beforehand ("right"): then it gives 0.

    >>> round(exact_lower_bound(Tally(tp=65, tn=75, fp=25, fn=35), delta=1e-5, level=0.95), 4)
    0.6138
    """
    one = float(checks.one("delta", checks.delta(delta)))
    alpha = 1.0 - checks.level(level)
    share = checks.one("gamma_share", checks.numbers("gamma_share", gamma_share))
    checks.within("gamma_share", gamma_share, "above 0 and below 1", np.asarray(0.0 < share < 1.0))
    check_direction(direction)
    cells = tuple(int(checks.one("the tally", getattr(tally, cell))) for cell in ("tp", "tn", "fp", "fn"))
    return _of_counts(cells, one, alpha, float(share), direction)


@lru_cache(maxsize=4096)
def _of_counts(cells: tuple[int, ...], delta: float, alpha: float, share: float, direction: Direction) -> float:
    """Kept, as an audit asks for the same bound more than once: in its row, its verdict and its forecast."""
    tp, tn, fp, fn = cells
    tally = Tally(tp=tp, tn=tn, fp=fp, fn=fn)
    return by_inversion(tally, _eps_at(delta), alpha=alpha, gamma_share=share, direction=direction)


def _eps_at(delta: float) -> Quantity:
    return Quantity(
        ordering=lambda n1, n0, level: EpsOrdering(n1, n0, delta, level),
        region=lambda eps, folded: EpsRegion(eps, delta, folded),
        family=EpsAtDelta(np.array([delta])),
    )


def lower_with_one_error_fewer(tally: Tally, *, delta: float, level: float) -> tuple[Error, float] | None:
    """An error without which the bound would be lower by more than VISIBLE, and that bound; None as a rule.

    The set of plausible rates moves with the counts. An error more can rule out the rates at which little is refuted.
    Beyond SEARCHED trials of one kind nobody looks.

    >>> lower_with_one_error_fewer(Tally(tp=1, tn=92, fp=8, fn=0), delta=1e-5, level=0.8)
    ('false alarm', 0.0)
    """
    alpha, t = 1.0 - checks.level(level), tally
    low = exact_lower_bound(t, delta=delta, level=level)
    if low == 0 or max(int(t.n_positive), int(t.n_negative)) > SEARCHED or float(t.fnr + t.fpr) >= 1:
        return None
    fewer: dict[Error, Tally] = {}
    if t.fn > 0:
        fewer["miss"] = Tally(tp=t.tp + 1, tn=t.tn, fp=t.fp, fn=t.fn - 1)
    if t.fp > 0:
        fewer["false alarm"] = Tally(tp=t.tp, tn=t.tn + 1, fp=t.fp - 1, fn=t.fn)
    for error, other in fewer.items():
        test = inversion_of(other, _eps_at(delta), alpha=alpha, gamma_share=GAMMA_SHARE, direction="either")
        if not test.likely_refutes(max(0.0, low - VISIBLE)):
            return error, exact_lower_bound(other, delta=delta, level=level)
    return None


def by_inversion(
    tally: Tally, quantity: Quantity, *, alpha: float, gamma_share: float = GAMMA_SHARE, direction: Direction
) -> float:
    """The lower bound of a quantity; with more than MAX_TRIALS that of the rectangle."""
    check_direction(direction)
    n1, n0 = int(checks.one("the tally", tally.n_positive)), int(tally.n_negative)
    if n1 == 0 or n0 == 0:  # one rate may be anything, so nothing is refuted
        return 0.0
    if max(n1, n0) > MAX_TRIALS:
        return by_rectangle(tally, quantity.family, alpha=alpha, direction=direction)
    test = inversion_of(tally, quantity, alpha=alpha, gamma_share=gamma_share, direction=direction)
    # a θ is refuted if a larger one is, so the largest is all that has to be proven
    found = _largest(test.likely_refutes, guess=test.rank.theta)
    return found if found == 0 or test.refutes(found) else _largest(test.refutes, guess=test.rank.theta)


@dataclass(frozen=True)
class Inversion:
    """What one outcome refutes: θ where the tail has at most this probability at all plausible rates of its region."""

    rank: Rank
    tail: Tail
    plausible: Rectangle
    most: float
    region: Callable[[float], Region]

    def refutes(self, theta: float) -> bool:
        return improbable(self.tail, self.region(theta), self.plausible, self.most)

    def likely_refutes(self, theta: float) -> bool:
        return seen(self.tail, self.region(theta), self.plausible) <= self.most


def inversion_of(
    tally: Tally, quantity: Quantity, *, alpha: float, gamma_share: float = GAMMA_SHARE, direction: Direction
) -> Inversion:
    """The test of a quantity by one outcome; there are trials of both kinds."""
    ordering = quantity.ordering(int(tally.n_positive), int(tally.n_negative), 1.0 - alpha)
    fn, fp, rank = _more_telling(ordering, int(tally.fn), int(tally.fp), direction)
    gamma, folded = alpha * gamma_share, direction == "either"
    plausible = _plausible(ordering, fn, fp, gamma)
    tail = _tail(ordering, rank, plausible, both=folded)
    return Inversion(rank, tail, plausible, alpha - gamma, lambda theta: quantity.region(theta, folded))


def by_rectangle(tally: Tally, family: Family, *, alpha: float, direction: Direction) -> float:
    """The smallest value over the Clopper-Pearson rectangle at the same α."""
    check_direction(direction)
    fn, fp, n1, n0 = (np.array([float(q)]) for q in (tally.fn, tally.fp, tally.n_positive, tally.n_negative))
    limits = rates.clopper_pearson_limits
    if direction == "right":
        return float(rates.rectangle_lower_bound(limits, family, (fn, n1), (fp, n0), alpha)[0])
    return float(rates.rectangle_interval(limits, family, (fn, n1), (fp, n0), alpha)[0][0])


def check_direction(direction: Direction) -> None:
    if direction not in get_args(Direction):
        raise InvalidInput(f"direction must be 'either' or 'right', but got {direction!r}.")


def _more_telling(ordering: Ordering, fn: int, fp: int, direction: Direction) -> tuple[int, int, Rank]:
    """The outcome itself or, if that is ranked higher, that of the attack which says the opposite."""
    sides = [(fn, fp), (ordering.n1 - fn, ordering.n0 - fp)]
    if direction == "right":
        return fn, fp, ordering.rank(fn, fp)
    if fn / ordering.n1 + fp / ordering.n0 > 1:
        sides.reverse()
    first = ordering.rank(*sides[0])
    if first.theta > 0 and ordering.level > 0.5:  # only one side can have more than half of the probability
        return *sides[0], first
    second = ordering.rank(*sides[1])
    return (*sides[1], second) if second > first else (*sides[0], first)


def _plausible(ordering: Ordering, fn: int, fp: int, gamma: float) -> Rectangle:
    """Rates that miss the true ones with at most gamma: Clopper-Pearson, each of the four limits with gamma/4."""
    tail = gamma / 4 * OUTWARD
    limits = [
        rates.clopper_pearson_limits(np.array([float(k)]), np.array([float(n)]), tail)
        for k, n in ((fn, ordering.n1), (fp, ordering.n0))
    ]
    return Rectangle(*(float(end[0]) for pair in limits for end in pair))


def _tail(ordering: Ordering, rank: Rank, plausible: Rectangle, *, both: bool) -> Tail:
    """All outcomes ranked at least `rank` that have a probability at plausible rates."""
    rows = window(ordering.n1, plausible.x_low, plausible.x_high)
    cols = window(ordering.n0, plausible.y_low, plausible.y_high)
    few = _down_set(ordering, rank, rows, cols)
    many = _down_set(ordering, rank, ordering.n1 - rows[::-1], ordering.n0 - cols[::-1]) if both else None
    return Tail(few, None if many is None or many.empty else many)


def _down_set(ordering: Ordering, rank: Rank, rows: Ints, cols: Ints) -> DownSet:
    return DownSet(ordering.n1, ordering.n0, rows, cols, ordering.ends(rank, rows, cols))


def _largest(refuted: Callable[[float], bool], *, guess: float) -> float:
    """The largest θ of the grid that is refuted; 0 if not even 0 is."""
    last = last_step(lambda k: refuted(k / STEPS), near=round(guess * STEPS), most=LARGEST * STEPS)
    return max(last, 0) / STEPS
