"""What sliders show: the declared audit with δ, level, threshold or method moved. It changes no verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.beyond import Beyond
from epsgauge.auditing.level import Lost
from epsgauge.auditing.rows import POOLED, AuditRow, Conditions, rows
from epsgauge.auditing.settings import changed
from epsgauge.auditing.verdict import Evidence
from epsgauge.errors import InvalidInput
from epsgauge.reporting.viewer.audits import Declared
from epsgauge.scores.rules import Judged, firsts
from epsgauge.scores.search import tally_at
from epsgauge.stats.methods import METHODS, QUICK, intervals_of
from epsgauge.stats.posterior import Posterior, estimate

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
            _number(query, "level", 0.01, 0.999999),
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
    if not moved:
        return Explored(declared.audit, moved, pending=False)
    placed = _placed(declared, moved)
    stays = moved.delta is None and moved.percentile is None and placed.method == declared.audit.verdict.method
    bound = math.nan
    if stays:  # which the level of the intervals leaves as it is
        bound = declared.audit.verdict.bound
    elif placed.method in QUICK:
        bound = placed.bound
    return Explored(placed.audit(placed.rows(tuple(QUICK)), bound), moved, pending=True)


def late(declared: Declared, moved: Moved) -> Explored:
    """With all bounds, of the same guesses as the quick ones."""
    if not moved:
        return Explored(declared.audit, moved, pending=False)
    placed = _placed(declared, moved)
    found = (*placed.rows((*QUICK, "exact")), *placed.beyond.rows(placed.conditions))
    return Explored(placed.audit(found, placed.bound), moved, pending=False)


@dataclass(frozen=True, eq=False)
class _Placed:
    """The declared audit where the sliders are: the same rows, the same choice of guesses, another place."""

    declared: Declared
    beyond: Beyond
    posterior: Posterior
    delta: float  # of the bound: that of the declared verdict until it is moved

    @property
    def method(self) -> str:
        return self.beyond.method

    @property
    def conditions(self) -> Conditions:
        """No row promises anything here; which rows there are is as declared."""
        base, judged = self.declared.audit, self.beyond.judged
        lost = replace(EXPLORED, stopping=base.lost is not None and base.lost.stopping)
        return Conditions(judged.same_data, base.pairs_per_model, lost, judged.same_models)

    def rows(self, methods: tuple[str, ...]) -> tuple[AuditRow, ...]:
        """Of methods that need the four counts alone."""
        result = intervals_of(self.posterior, level=self.beyond.settings.level, methods=methods)
        return rows(result, self.beyond.one_each, self.conditions)

    @cached_property
    def evidence(self) -> Evidence:
        base = self.declared.audit
        who, at = base.verdict.adversary, f"threshold {self.beyond.judged.threshold:.6g}"
        if who.percentile is not None:
            percentile = percentile_shown(self.declared, self.beyond.judged.threshold)
            who, at = replace(who, percentile=percentile), f"percentile {percentile:.4g}"
        who = replace(who, rule=f"{at} {EXPLORED.why}")
        return self.beyond.evidence(METHODS[self.method], who, base.adjacency, by_mu=self.beyond.by_mu)

    @property
    def bound(self) -> float:
        return self.evidence.bound(self.method, self.beyond.settings.verdict_level, self.delta)

    def audit(self, found: Iterable[AuditRow], bound: float) -> Audit:
        """With these rows, places for those that are pending, this bound, and no verdict on anything."""
        base, there = self.declared.audit, {row.method: row for row in found}
        names = dict.fromkeys((*(row.method for row in base.rows), self.method))  # no picture grows when the last come
        claim = base.verdict.claim
        verdict = replace(
            base.verdict,
            kind="no claim",
            method=self.method,
            promise="estimate",
            delta=self.delta,
            bound=bound,
            claim=claim if claim is not None and claim.delta == self.delta else None,
            tally=self.evidence.tally,
            adversary=self.evidence.adversary,
            mu=None,
            guesses=self.evidence.guesses,
        )
        return replace(
            base,
            settings=self.declared.audit.settings.model_copy(
                update={"delta": self.beyond.settings.delta, "level": self.beyond.settings.level}
            ),
            judged=self.beyond.judged,
            posterior=self.posterior,
            guaranteed=self.beyond.one_each,
            rows=tuple(there.get(name) or _pending(name, self.beyond.judged) for name in names),
            lower_bound=bound,
            lower_bound_method=self.method,
            verdict=verdict,
        )


def _placed(declared: Declared, moved: Moved) -> _Placed:
    base, beyond = declared.audit, declared.beyond
    settings = changed(base.settings, {k: v for k, v in _settings(moved).items() if v is not None})
    judged, method = _judged(declared, moved), moved.method or base.verdict.method
    if base.pairs_per_model > 1 or base.verdict.method in POOLED:  # which guesses count stays as it was chosen
        which = beyond.pool.which
        number = None if beyond.pool.counted else beyond.pool.guesses.n_guesses
        settings = settings.model_copy(update={"pooled_guesses": which.guessed, "pooled_number": number})
    return _Placed(
        declared,
        replace(
            beyond,
            judged=judged,
            one_each=replace(base.guaranteed, guesses=judged.one_per_model),
            settings=settings,
            method=method,
        ),
        estimate(judged.tally, delta=settings.delta),
        base.verdict.delta if moved.delta is None else moved.delta,
    )


def _settings(moved: Moved) -> dict[str, Any]:
    return {"delta": moved.delta, "level": moved.level}


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
    attack = declared.audit.attack
    if attack is not None and _by_percentile(declared):
        return attack.threshold_at(percentile, declared.signals)
    return float(np.quantile(declared.audit.judged.judged.score, percentile / 100.0, method="higher"))


def percentile_shown(declared: Declared, threshold: float) -> float:
    """Where the slider stands for a threshold."""
    attack = declared.audit.attack
    percentile = None if attack is None else attack.percentile_of(threshold, declared.signals)
    if percentile is not None:
        return percentile
    score = declared.audit.judged.judged.score
    return 100.0 * float(np.mean(score < threshold))


def power_shown(delta: float) -> float:
    """Where the slider of δ stands: its logarithm."""
    return math.log10(delta) if delta > 0 else -12.0


def least_percentile(declared: Declared) -> float:
    """The smallest that the slider can mean."""
    if not _by_percentile(declared):
        return 0.0
    return math.ceil(1e3 / (int(declared.signals["reference"].shape[1]) + 1)) / 10.0


def _by_percentile(declared: Declared) -> bool:
    return declared.audit.verdict.adversary.percentile is not None


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
