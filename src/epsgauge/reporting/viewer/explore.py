"""What sliders show: the declared audit with δ, level, threshold or method moved. It changes no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsgauge.attacks import percentile as percentiles
from epsgauge.auditing.audit import Audit, audit_run
from epsgauge.auditing.level import Lost
from epsgauge.auditing.one_sided import OneSided
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, rows
from epsgauge.auditing.settings import changed
from epsgauge.errors import InvalidInput
from epsgauge.reporting.viewer.audits import Declared
from epsgauge.scores.rules import Judged, firsts
from epsgauge.scores.search import tally_at
from epsgauge.stats.methods import METHODS, QUICK, intervals_of
from epsgauge.stats.posterior import estimate

EXPLORED = Lost("moved by hand after results were seen", rule=True)
# Methods that a slider can ask for; the others come with the declared audit where it calls for them.
OFFERED = ("exact", "clopper-pearson", "jeffreys", "bayes", "anytime")


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
            _number(query, "level", 0.01, 0.9999),
            _number(query, "percentile", 0.0, 100.0),
            method,
        )

    def __bool__(self) -> bool:
        return self != Moved()


@dataclass(frozen=True, eq=False)
class Explored:
    """An audit with some things moved; while `pending`, the bounds that take a moment are not in it."""

    audit: Audit
    moved: Moved
    pending: bool

    @property
    def has_bound(self) -> bool:
        return not math.isnan(self.audit.verdict.bound)


def quick(declared: Declared, moved: Moved) -> Explored:
    """Everything but the bounds that take a moment."""
    base = declared.audit
    if not moved:
        return Explored(base, moved, pending=False)
    settings = changed(base.settings, {k: v for k, v in _settings(moved).items() if v is not None})
    judged = _judged(declared, moved)
    posterior = estimate(judged.tally, delta=settings.delta)
    guaranteed = replace(base.guaranteed, guesses=judged.one_per_model)
    on = Conditions(judged.same_data, base.pairs_per_model, EXPLORED)
    found = rows(intervals_of(posterior, level=settings.level, methods=QUICK), guaranteed, on)
    method = moved.method or base.verdict.method
    bound = math.nan
    if method in QUICK:
        bound = _bound(method, judged, guaranteed, settings.verdict_level, settings.delta)
    quickly = {row.method: row for row in found}
    found = tuple(quickly.get(name) or _pending(name, judged) for name in _shown(base, method))
    audit = replace(base, settings=settings, judged=judged, posterior=posterior, guaranteed=guaranteed, rows=found)
    return Explored(_with_bound(declared, audit, method, bound), moved, pending=True)


def late(declared: Declared, moved: Moved) -> Explored:
    """With all bounds: an audit of the same models at the threshold that is shown."""
    first = quick(declared, moved)
    if not first.pending:
        return first
    base, shown = declared.audit, first.audit
    cut = declared.run.plan.with_audit(**base.settings.model_dump()).n_fit
    method = shown.verdict.method
    changes: dict[str, Any] = {
        "rule": "given",
        "threshold": shown.judged.threshold,
        "delta": shown.settings.delta,
        "level": shown.settings.level,
        "verdict_method": method if method in OFFERED else None,
    }
    whole = audit_run(declared.run, changes, skipped=cut)
    found = {row.method: replace(row, promise="estimate", note=EXPLORED.why) for row in whole.rows}
    ours = tuple(found[name] for name in _shown(base, method) if name in found)
    audit = _with_bound(declared, replace(shown, rows=ours), whole.verdict.method, whole.lower_bound)
    return Explored(audit, moved, pending=False)


def _settings(moved: Moved) -> dict[str, Any]:
    return {"delta": moved.delta, "level": moved.level}


def _shown(base: Audit, method: str) -> tuple[str, ...]:
    """The methods that have a row, early or late: no picture grows when the last numbers come."""
    return tuple(dict.fromkeys((*(row.method for row in base.rows), method)))


def _pending(name: str, judged: Judged) -> AuditRow:
    method = METHODS[name]
    label = f"{method.label}, pending"
    return AuditRow(name, label, "estimate", method.assumptions, 0.0, math.inf, judged.tally, "pending")


def _judged(declared: Declared, moved: Moved) -> Judged:
    """The same rows at the threshold that the slider means."""
    base = declared.audit.judged
    if moved.percentile is None:
        return base
    threshold = threshold_at(declared, moved.percentile)
    at = np.asarray(threshold)
    return replace(
        base,
        threshold=threshold,
        tally=tally_at(base.judged, at),
        one_per_model=tally_at(firsts(base.judged), at),
    )


def threshold_at(declared: Declared, percentile: float) -> float:
    """The threshold of a percentile of the losses, or of the judged scores for an attack that has none."""
    if _by_percentile(declared):
        signals = declared.signals
        return percentiles.threshold(percentile, signals.reference.shape[1], signals.sees)
    return float(np.quantile(declared.audit.judged.judged.score, percentile / 100.0, method="higher"))


def percentile_shown(declared: Declared, threshold: float) -> float:
    """Where the slider stands for a threshold."""
    if _by_percentile(declared):
        return float(percentiles.percentile_of(threshold, declared.signals.sees))
    score = declared.audit.judged.judged.score
    return 100.0 * float(np.mean(score < threshold))


def least_percentile(declared: Declared) -> float:
    """The smallest that the slider can mean."""
    if not _by_percentile(declared):
        return 0.0
    return math.ceil(1e3 / (int(declared.signals.reference.shape[1]) + 1)) / 10.0


def _by_percentile(declared: Declared) -> bool:
    return declared.audit.settings.attack == "percentile"


def _bound(method: str, judged: Judged, guaranteed: Guaranteed, level: float, delta: float) -> float:
    tally = guaranteed.tally if METHODS[method].promise == "guaranteed" else judged.tally
    return OneSided(method, level, delta).of(tally)


def _with_bound(declared: Declared, audit: Audit, method: str, bound: float) -> Audit:
    """The bound of the moved method, and no verdict on anything."""
    base, settings, threshold = declared.audit, audit.settings, audit.judged.threshold
    claim = base.claim if base.claim is not None and base.claim.delta == settings.delta else None
    who = base.verdict.adversary
    if who.percentile is not None:
        who = replace(who, percentile=percentiles.percentile_of(threshold, declared.signals.sees))
    return replace(
        audit,
        lower_bound=bound,
        verdict=replace(
            base.verdict,
            kind="no claim",
            method=method,
            promise="estimate",
            delta=settings.delta,
            bound=bound,
            claim=claim,
            adversary=who,
        ),
    )


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
