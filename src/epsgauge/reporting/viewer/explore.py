"""What sliders show: the declared audit with δ, level, threshold or method moved. A reading, which has no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.bound import Bound, bound_by
from epsgauge.auditing.reading import Reading
from epsgauge.errors import InvalidInput
from epsgauge.figures.subject import PENDING
from epsgauge.methods.counted import Counted
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Lost
from epsgauge.methods.method import Method
from epsgauge.methods.rows import MethodRow, Place, row_of
from epsgauge.methods.table import METHODS
from epsgauge.reporting.viewer.audits import Declared
from epsgauge.settings import AuditSettings, changed
from epsgauge.stats.posterior import estimate

EXPLORED = Lost("moved by hand after results were seen", rule=True)
# Methods that a slider can ask for; the others come with the declared audit where it calls for them.
OFFERED = [name for name, method in METHODS.items() if method.sliders]


@dataclass(frozen=True)
class Moved:
    """Where the sliders are; None is where the plan has them."""

    delta: float | None = None
    level: float | None = None
    percentile: float | None = None  # of the losses; of attacks without one, of the judged scores
    method: str | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Moved:
        """From an address. δ comes as its logarithm, as the slider has it."""
        power = _number(query, "log_delta", -15.0, -0.05)
        method = query.get("method") or None
        if method is not None and method not in OFFERED:
            raise InvalidInput(f"method must be one of {', '.join(OFFERED)}, but got {method!r}.")
        return cls(
            None if power is None else float(f"{10.0**power:.3g}"),
            _number(query, "level", 0.01, 0.999999),
            _number(query, "percentile", 0.0, 100.0),
            method,
        )

    def __bool__(self) -> bool:
        return self != Moved()


@dataclass(frozen=True, eq=False)
class Explored:
    """A reading where the sliders are; while `pending`, the bounds that take a moment are not in it."""

    reading: Reading
    moved: Moved
    pending: bool

    label: str = ""  # of the method that the bound is by
    delta: float = 0.0  # of the bound


def quick(declared: Declared, moved: Moved) -> Explored:
    """Everything but the bounds that take a moment."""
    return _explored(declared, moved, late=False)


def late(declared: Declared, moved: Moved) -> Explored:
    """With all bounds, of the same guesses as the quick ones."""
    return _explored(declared, moved, late=True)


def _explored(declared: Declared, moved: Moved, *, late: bool) -> Explored:
    """The same rows and the same choice of guesses as declared, at another place."""
    base = declared.audit
    if not moved:
        return Explored(base, moved, False, base.verdict.decided_by.label, base.verdict.delta)
    evidence = base.evidence
    if moved.percentile is not None:
        evidence = evidence.at(threshold_at(declared, moved.percentile))
    place = {name: value for name, value in (("delta", moved.delta), ("level", moved.level)) if value is not None}
    settings, method = changed(base.settings, place), base.judge if moved.method is None else METHODS[moved.method]
    # no row promises anything here; which rows there are is as declared
    facts = replace(base.facts, lost=replace(EXPLORED, stopping=base.facts.stopped), delta_declared=True)
    shown = [METHODS.get(row.method, base.judge) for row in base.rows]
    rows = []
    for each in dict.fromkeys([*shown, method]):
        form = each.form(evidence, by_mu=settings.by_mu)
        found = None
        if late or _is_quick(each):
            at = Place(settings.delta, settings.level)
            found = row_of(each, evidence, facts, bounds=at, intervals=at, by_mu=settings.by_mu)
        rows.append(
            found or _pending(form, evidence, settings, several=facts.pairs_per_model > 1)
        )  # no picture grows when the last ones come
    delta = base.verdict.delta if moved.delta is None else moved.delta
    claim = base.claim if base.claim is not None and base.claim.delta == delta else None
    reading = Reading(
        settings=settings,
        evidence=evidence,
        facts=facts,
        posterior=estimate(evidence.tally, delta=settings.delta),
        rows=tuple(rows),
        bounds=_bounds(base, moved, evidence, method, delta, late=late),
        claim=claim,
        adversary=base.adversary,
        run=base.run,
        attack=base.attack,
        signals=base.signals,
    )
    return Explored(reading, moved, not late, method.form(evidence, by_mu=settings.by_mu).label, delta)


def _bounds(
    base: Audit, moved: Moved, evidence: Evidence, method: Method, delta: float, *, late: bool
) -> tuple[Bound, ...]:
    """At the δ of the declared verdict until that is moved; the level of the intervals leaves it as it is."""
    if moved.delta is None and moved.percentile is None and method is base.judge:
        return (replace(base.verdict.decided_by, promise="estimate"),)
    if not (late or _is_quick(method)):
        return ()
    form, several = method.form(evidence, by_mu=base.settings.by_mu), base.pairs_per_model > 1
    return (bound_by(form, evidence, "estimate", delta=delta, level=base.verdict.level, several=several),)


def _is_quick(method: Method) -> bool:
    return isinstance(method, Counted) and method.quick


def _pending(method: Method, evidence: Evidence, settings: AuditSettings, *, several: bool) -> MethodRow:
    """A place for a row: it says what the row will rest on."""
    return MethodRow(
        method=method.name,
        label=f"{method.label}, pending",
        meaning=method.meaning,
        promise="estimate",
        assumptions=method.assumptions,
        level=settings.level,
        delta=settings.delta,
        condition=method.condition(evidence),
        short_condition=method.short_condition,
        low=0.0,
        high=math.inf,
        tally=method.rests_on(evidence).tally,
        counts=method.counts(evidence, several=several),
        remark=method.remark,
        note=PENDING,
    )


def threshold_at(declared: Declared, percentile: float) -> float:
    """The threshold of a percentile of the losses, or of the judged scores for an attack that has none."""
    audit = declared.audit
    if by_percentile(audit) and audit.attack is not None:
        return audit.attack.threshold_at(percentile, declared.signals)
    return float(np.quantile(audit.judged.judged.score, percentile / 100.0, method="higher"))


def percentile_shown(declared: Declared, threshold: float) -> float:
    """Where the slider stands for a threshold."""
    audit = declared.audit
    found = None if audit.attack is None else audit.attack.percentile_of(threshold, declared.signals)
    return 100.0 * float(np.mean(audit.judged.judged.score < threshold)) if found is None else float(found)


def power_shown(delta: float) -> float:
    """Where the slider of δ stands: its logarithm."""
    return math.log10(delta) if delta > 0 else -12.0


def least_percentile(declared: Declared) -> float:
    """The smallest that the slider can mean."""
    if not by_percentile(declared.audit):
        return 0.0
    return math.ceil(1e3 / (int(declared.signals["reference"].shape[1]) + 1)) / 10.0


def by_percentile(audit: Audit) -> bool:
    """Whether a rule of the attack is a percentile of the losses."""
    return audit.adversary.percentile is not None


def _number(query: Mapping[str, str], name: str, least: float, most: float) -> float | None:
    text = query.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise InvalidInput(f"{name} must be a number from {least:g} to {most:g}, but got {text!r}.")
    return value
