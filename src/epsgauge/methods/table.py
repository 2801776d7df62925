"""The one table of methods, and which of them judges."""

from __future__ import annotations

from collections.abc import Mapping

from epsgauge.methods.anytime import Anytime
from epsgauge.methods.bayes import Bayes
from epsgauge.methods.clopper_pearson import ClopperPearson
from epsgauge.methods.clusters import Clusters
from epsgauge.methods.counted import Counted
from epsgauge.methods.curve import Curve
from epsgauge.methods.exact import Exact
from epsgauge.methods.facts import DELTA_FIXED, NUMBER_FIXED, Facts
from epsgauge.methods.gaussian import Gaussian
from epsgauge.methods.jeffreys import Jeffreys
from epsgauge.methods.method import Asked, Method
from epsgauge.methods.one_run import OneRun
from epsgauge.methods.pooled import Pooled
from epsgauge.methods.simultaneous import Simultaneous
from epsgauge.methods.weighted import Weighted
from epsgauge.references import one_of

POSTERIOR: Counted = Bayes()  # what an audit is about
BASELINE: Counted = ClopperPearson()  # what widths are compared with
SHARPEST: Counted = Exact()  # of the guaranteed bounds that four counts give
WATCHED: Counted = Anytime()  # what holds while a run goes on
OF_NOISE = Curve()  # what the noise of DP-SGD is held against

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        *(POSTERIOR, Jeffreys(), BASELINE, SHARPEST, Clusters()),
        *(Weighted(), Pooled(), OneRun(), Gaussian(), OF_NOISE, Simultaneous(), WATCHED),
    )
}
COUNTED: Mapping[str, Counted] = {name: method for name, method in METHODS.items() if isinstance(method, Counted)}
JUDGES: Mapping[str, Method] = {name: method for name, method in METHODS.items() if method.may_judge}
QUICK: Mapping[str, Counted] = {name: method for name, method in COUNTED.items() if method.quick}


def method_of(value: object, name: str = "method", known: Mapping[str, Method] = METHODS) -> Method:
    """A method of the table by its name, or your own: the object, or the "module:attr" that has it."""
    found: Method = one_of(value, known, Method, name)
    return found


def default_method(asked: Asked) -> Method:
    """The sharpest that is proven for such an audit."""
    return next(method for method in METHODS.values() if method.judges(asked))


def judging(method: Method, facts: Facts, *, delta: float) -> tuple[Method, tuple[str, ...]]:
    """Who judges at δ where these are the facts, and what must be said about it."""
    lost = facts.lost
    caveats: tuple[str, ...] = ()
    if facts.stopped and method.promise == "guaranteed":
        method = METHODS.get(method.instead.get(NUMBER_FIXED, ""), method)
    if lost is not None and lost.stopping and method.name == WATCHED.name:
        caveats = (f"Judged by the anytime bound alone: {lost.why}.",)
    elif lost is not None:
        caveats = (f"The level was not kept: {lost.why}.",)
    if not facts.delta_declared and DELTA_FIXED in method.instead and not (lost is not None and lost.rule):
        method = METHODS[method.instead[DELTA_FIXED]]
        caveats = (
            *caveats,
            f"Judged by {method.label}, which holds at every δ: δ = {delta:.3g} is not what the plan declared before "
            "results were seen.",
        )
    return method, caveats
