"""What a reader must know before believing a posterior: short warnings, each with what to do."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.exact import exact_lower_bound, lower_with_one_error_fewer
from epsgauge.methods.intervals import Intervals
from epsgauge.methods.table import BASELINE, POSTERIOR, SHARPEST
from epsgauge.numbers import at_least
from epsgauge.stats.posterior import Posterior
from epsgauge.stats.tally import CELLS, Tally

# The largest difference of cdfs up to which a posterior has hardly moved from its prior.
HARDLY_MOVED = 0.1
SMALL_CELL = 5


def cautions_of(result: Intervals) -> tuple[str, ...]:
    """The warnings that apply to the posterior of one tally and its intervals."""
    credible, proven = (float(result[method.name].low) for method in (POSTERIOR, BASELINE))
    exact = result.posterior.tally if SHARPEST.name in [row.method for row in result] else None
    one_sided = (1.0 + result.level) / 2.0
    found = {"level": result.level, "one_sided": one_sided, "credible": credible, "proven": proven}
    return cautions(result.posterior, exact=exact, trained=True, **found)


def cautions(
    posterior: Posterior,
    *,
    level: float,
    one_sided: float,
    credible: float,
    proven: float,
    exact: Tally | None,
    trained: bool,
) -> tuple[str, ...]:
    """The warnings that apply to the posterior of one tally, given the low end of its credible interval at `level`, the
    highest guaranteed bound, and the tally of the exact one, which is `one_sided` at this level, where it is shown.
    `trained`: samples are of models, whose number is not far from that of the records that δ is about.
    """
    found = [
        _prior_alone(posterior, level),
        _small_cells(posterior.tally),
        _equal_rates(posterior, credible),
        _large_delta(posterior) if trained else None,
        _worse_than_chance(posterior.tally),
        _no_proof(posterior, credible, proven),
        None if exact is None else _fewer_errors(posterior, exact, one_sided),
        None if posterior.family.assumption is None else f"This holds only if {posterior.family.assumption}.",
    ]
    return tuple(text for text in found if text)


def _prior_alone(posterior: Posterior, level: float) -> str | None:
    none = Posterior(Tally(tp=0, tn=0, fp=0, fn=0), posterior.family, posterior.prior)
    at = none.quantile(np.linspace(0.02, 0.98, 25))
    if none.mass_at_zero > 0.5 or np.abs(posterior.cdf(at) - none.cdf(at)).max() > HARDLY_MOVED:
        return None
    alone = none.interval(level)
    return (
        f"The posterior has hardly moved from the prior, which alone gives [{alone.low:.3g}, {alone.high:.3g}]: "
        f"these counts say next to nothing about {posterior.family.symbol}. Use more samples or another rule."
    )


def _small_cells(tally: Tally) -> str | None:
    small = [f"{cell.upper()} = {int(getattr(tally, cell))}" for cell in CELLS if getattr(tally, cell) < SMALL_CELL]
    if not small:
        return None
    return f"{', '.join(small)}: below {SMALL_CELL} the prior weighs as much as the data. Read the guaranteed row too."


def _equal_rates(posterior: Posterior, credible: float) -> str | None:
    tally = posterior.tally
    if not tally.n_positive or not tally.n_negative or credible == 0:
        return None
    if posterior.family.assumption is not None:  # μ is smooth there: no larger of two to pick
        return None
    x, y = float(tally.fnr), float(tally.fpr)
    if abs(x - y) > 2 * _spread(tally):
        return None
    return (
        f"FNR = {x:.3g} and FPR = {y:.3g} are about equal. The Bayesian lower end is then above the true value more "
        "often than its level says, up to four times as often if both rates are small."
    )


def _large_delta(posterior: Posterior) -> str | None:
    n = int(posterior.tally.n_samples)
    if posterior.quantity != "eps" or float(posterior.family.parameter) * n < 1:
        return None
    return (
        f"δ·N = {float(posterior.family.parameter) * n:.3g} for the N = {n} samples of this audit is not below 1. Such "
        "a large δ forgives leaks that these samples show. Use one below 1/N and below 1/(size of the training set)."
    )


def _worse_than_chance(tally: Tally) -> str | None:
    if not tally.n_positive or not tally.n_negative:
        return None
    both = float(tally.fnr + tally.fpr)
    if both <= 1 + 2 * _spread(tally):
        return None
    return (
        f"The attack is worse than chance (FNR + FPR = {both:.3g} > 1) and was read as its opposite. "
        "Check the direction of its scores."
    )


def _spread(tally: Tally) -> float:
    """Standard error of the sum, and of the difference, of both rates."""
    x, y = float(tally.fnr), float(tally.fpr)
    return float(np.sqrt(x * (1 - x) / int(tally.n_positive) + y * (1 - y) / int(tally.n_negative)))


def _no_proof(posterior: Posterior, credible: float, proven: float) -> str | None:
    if not credible > 0 or proven > 0:
        return None
    text = "The Bayesian interval starts above 0, but the guaranteed bound is 0: this is no proof of a leak."
    if posterior.quantity == "eps":
        text += " Where nothing leaks and δ is small, the Bayesian lower end is above 0 in practically every run."
    return text


def _fewer_errors(posterior: Posterior, tally: Tally, level: float) -> str | None:
    delta = float(posterior.family.parameter)
    found = lower_with_one_error_fewer(tally, delta=delta, level=level)
    if found is None:
        return None
    error, low = found
    here = exact_lower_bound(tally, delta=delta, level=level)
    return (
        f"The exact lower bound is {at_least(here)}, and with one {error} fewer it would be {at_least(low)}. Both are "
        "guaranteed: which rates are ruled out beforehand depends on the counts, and one more error can rule out more."
    )
