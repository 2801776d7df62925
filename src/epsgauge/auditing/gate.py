"""Gates for CI: the reasons for which an audit fails a build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.verdict import ABOVE
from epsgauge.errors import InvalidInput
from epsgauge.numbers import number
from epsgauge.stats import checks

FailOn = Literal["violation", "inconclusive"]


@dataclass(frozen=True)
class Gate:
    """Why an audit fails, what is above a limit but does not count, and why the gate could not have failed at all."""

    reasons: tuple[str, ...]
    uncounted: tuple[str, ...]
    idle: tuple[str, ...] = ()


def gate(
    audit: Audit,
    *,
    fail_above: float | None = None,
    fail_on: FailOn | None = None,
    count_estimates: bool = False,
) -> Gate:
    """Hold the audit against gates; what is not guaranteed counts only with `count_estimates`.

    "violation" also fails on a claim that is unsupported: a probe, or the accountant itself, refutes what it rests on.
    "inconclusive" fails on these too, and where the audit could not have found one: the attack sees nothing, or
    the models are too few.

    `fail_above` is compared with the audit's lower bound, one-sided at the verdict's level, at the δ of the audit.
    """
    reasons: list[str] = []
    uncounted: list[str] = []
    if fail_above is not None:
        limit = checks.one("fail_above", checks.eps(fail_above, "fail_above"))
        if audit.lower_bound > limit:
            how = f"{audit.gauge.label}, {audit.gauge.promise}, one-sided, level {audit.verdict.level:g}"
            counts = count_estimates or audit.gauge.promise == "guaranteed"
            (reasons if counts else uncounted).append(
                f"The lower bound of ε is {number(audit.lower_bound)}, above {limit:g} ({how}, δ = "
                f"{audit.settings.delta:g})."
            )
    if fail_on is not None:
        if fail_on not in get_args(FailOn):
            raise InvalidInput(f'fail_on must be "violation" or "inconclusive", but got {fail_on!r}.')
        if audit.verdict.kind == "no claim":
            raise InvalidInput(
                f"fail_on = {fail_on} needs a claim, but there is none, so it could never fail. "
                f"{audit.verdict.sentence} State claimed_eps, claimed_delta and claimed_adjacency, or use fail_above."
            )
        if audit.verdict.kind == "unsupported":
            reasons.append(audit.verdict.sentence)
        elif audit.verdict.kind in ABOVE.values():
            counts = count_estimates or audit.verdict.promise == "guaranteed"
            (reasons if counts else uncounted).append(audit.verdict.sentence)
        elif fail_on == "inconclusive" and audit.verdict.kind in ("inconclusive", "underpowered"):
            reasons.append(audit.verdict.sentence)
    v, idle = audit.verdict, list[str]()
    if (fail_on == "violation" and v.kind == "underpowered") or (fail_above is not None and v.largest <= fail_above):
        idle.append(f"so few models show at most ε = {v.largest:.3g}")
    if fail_on == "violation" and v.kind == "inconclusive":
        blind = v.control is not None and not v.control.sees
        why = "sees nothing even without noise" if blind else "is too weak to refute any claim"
        idle.append(f"the attack {why} (--fail-on inconclusive counts that)")
    return Gate(tuple(reasons), tuple(uncounted), tuple(idle))


def gate_all(
    found: Iterable[tuple[str, Audit]],
    *,
    fail_above: float | None = None,
    fail_on: FailOn | None = None,
    count_estimates: bool = False,
) -> Gate:
    """Hold several audits against the same gates: all that is said of any of them, after its label."""
    said: list[tuple[str, Gate]] = []
    for label, audit in found:
        try:
            one = gate(audit, fail_above=fail_above, fail_on=fail_on, count_estimates=count_estimates)
        except InvalidInput as error:
            raise InvalidInput(f"{label}: {error}") from None
        said.append((label, one))

    def of(name: str) -> tuple[str, ...]:
        return tuple(f"{label}: {text}" for label, one in said for text in getattr(one, name))

    return Gate(of("reasons"), of("uncounted"), of("idle"))
