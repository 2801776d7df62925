"""How many guesses a verdict needs, for an attack whose rates are assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from epsgauge.methods.counted import Counted
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Asked, Method
from epsgauge.methods.power import needed
from epsgauge.methods.table import BASELINE, SHARPEST, default_method
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.sizing import MAX_SAMPLES, assumed_rates, sample_size
from epsgauge.stats.tally import Tally

Judged = Literal["runs", "scores", "both", "claims of ε", "claims of μ", "gradients"]


@dataclass(frozen=True)
class Need:
    """What the method that judges needs; `n_samples` is None where no number is enough."""

    method: Method
    n_samples: int | None
    largest_eps: float | None
    judges: Judged


def needs_of_verdicts(
    *,
    delta: float,
    level: float,
    half_width: float | None = None,
    lower_bound: float | None = None,
    accuracy: float | None = None,
    fnr: float | None = None,
    fpr: float | None = None,
) -> list[Need]:
    """Of runs with one pair per model, and of scores whose bits are not said to be coins; arguments of `sample_size`.

    The attack says yes or no. Which method judges depends on the number of guesses. Counts are the expected ones,
    rounded, and numbers are right to about 1 %. A width is that of the exact bound: others have no upper end.
    """
    rates = assumed_rates(accuracy, fnr, fpr)
    enough = sample_size(
        delta=delta,
        level=level,
        half_width=half_width,
        lower_bound=lower_bound,
        fnr=rates[0],
        fpr=rates[1],
        method=BASELINE.name,
    )
    if lower_bound is None:
        n = None if enough is None else _narrow(rates, 2 * (half_width or 0.0), delta=delta, level=level)
        return [_need(SHARPEST, n, "scores", delta=delta, level=(1 + level) / 2)]
    found = [_of_bound(rates, lower_bound, enough, coins=coins, delta=delta, level=level) for coins in (False, True)]
    same = found[0].method is found[1].method and found[0].n_samples == found[1].n_samples
    return [replace(found[0], judges="both")] if same else found


def _of_bound(
    rates: tuple[float, float], wanted: float, enough: int | None, *, coins: bool, delta: float, level: float
) -> Need:
    def judge(n: int) -> Method:
        return default_method(Asked(rule="split", pairs_per_model=1, by_mu=False, coins=coins))

    def shows(n: int) -> bool:
        method, tally = judge(n), _expected(n, *rates)
        if isinstance(method, Counted):
            return method.of(tally, delta=delta, level=level) > wanted
        return method.shows(Evidence.of_tally(tally), wanted, delta=delta, level=level)

    n = math.inf if enough is None else needed(shows, MAX_SAMPLES)
    whole = None if math.isinf(n) else int(n)
    return _need(judge(whole or MAX_SAMPLES), whole, "runs" if coins else "scores", delta=delta, level=level)


def _need(method: Method, n: int | None, judges: Judged, *, delta: float, level: float) -> Need:
    best = None if n is None else _bound(method, _expected(n, 0.0, 0.0), delta=delta, level=level)
    return Need(method, n, best, judges)


def _bound(method: Method, tally: Tally, *, delta: float, level: float) -> float:
    if isinstance(method, Counted):
        return method.of(tally, delta=delta, level=level)
    return method.lower_bound(Evidence.of_tally(tally), delta=delta, level=level)


def _narrow(rates: tuple[float, float], width: float, *, delta: float, level: float) -> int | None:
    family = EpsAtDelta(np.array([delta]))

    def narrow(n: int) -> bool:
        low, high = SHARPEST.ends(family, Counts.of(_expected(n, *rates)), 1.0 - level, JEFFREYS)
        return float(high[0] - low[0]) < width

    n = needed(narrow, MAX_SAMPLES)
    return None if math.isinf(n) else int(n)


def _expected(n: int, fnr: float, fpr: float) -> Tally:
    """Whole counts, half of them with b = 1."""
    ones, zeros = n - n // 2, n // 2
    fn, fp = round(ones * fnr), round(zeros * fpr)
    return Tally(tp=ones - fn, tn=zeros - fp, fp=fp, fn=fn)
