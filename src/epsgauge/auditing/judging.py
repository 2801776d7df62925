"""Which method judges an audit, where the number of models or δ was not fixed beforehand too."""

from __future__ import annotations

from epsgauge.auditing.level import Lost
from epsgauge.auditing.settings import verdict_method
from epsgauge.runner.plan import AuditSettings
from epsgauge.stats.methods import BASELINE, METHODS, Method


def judging(
    settings: AuditSettings, pairs_per_model: int, lost: Lost | None, *, delta: float, other_delta: bool
) -> tuple[Method, tuple[str, ...]]:
    """The method for a verdict at `delta`, and what must be said about it."""
    method = METHODS[verdict_method(settings, pairs_per_model)]
    caveats: tuple[str, ...] = ()
    if lost is not None and lost.stopping and method.promise == "guaranteed":
        method = METHODS["anytime"]
        caveats = (f"Judged by the bound that holds at every moment alone: {lost.why}.",)
    elif lost is not None:
        caveats = (f"The level was not kept: {lost.why}.",)
    if other_delta and method.name == "exact" and not (lost is not None and lost.rule):
        method = METHODS[BASELINE]
        caveats = (
            *caveats,
            f"Judged by {method.label}, which holds at every δ: δ = {delta:.3g} is not what the plan declared before "
            "results were seen.",
        )
    return method, caveats
