"""Gates for CI: why an audit fails a build, or why it could not have failed one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.verdict import ABOVE
from epsgauge.errors import InvalidInput
from epsgauge.numbers import at_least
from epsgauge.stats import checks
from epsgauge.stats.interval import Kind

FailOn = Literal["violation"]
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)


@dataclass(frozen=True)
class Gate:
    """Why an audit fails, what is above a limit but does not count, and why the gate could not have failed at all."""

    reasons: tuple[str, ...]
    uncounted: tuple[str, ...]
    idle: tuple[str, ...] = ()

    @property
    def outcome(self) -> Literal["fails", "passes", "cannot decide"]:
        return "fails" if self.reasons else "cannot decide" if self.idle else "passes"

    def to_json(self) -> dict[str, Any]:
        return {"outcome": self.outcome, **asdict(self)}


def gate(
    audit: Audit,
    *,
    fail_above: float | None = None,
    fail_on: str | None = None,
    count_estimates: bool = False,
) -> Gate:
    """Hold the audit against gates; what is not guaranteed counts only with `count_estimates`.

    `fail_on="violation"` fails if the verdict is a violation, or if the claim is unsupported: a probe, or the
    accountant itself, refutes what it rests on. It cannot decide where the verdict cannot.

    `fail_above` fails if any bound that the verdict shows is above the limit, with or without a condition.
    """
    reasons: list[str] = []
    uncounted: list[str] = []
    idle: list[str] = []
    v = audit.verdict
    if fail_above is not None:
        limit = checks.one("fail_above", checks.eps(fail_above, "fail_above"))
        if v.delta != audit.settings.delta:
            raise InvalidInput(
                f"fail_above is a limit at δ = {audit.settings.delta:g}, but the claim is judged at δ = {v.delta:.3g}. "
                "Use fail_on = violation, or audit without the claim."
            )
        counted = [bound for bound in v.bounds if count_estimates or bound.promise == "guaranteed"]
        for bound in v.bounds:
            if bound.value > limit:
                (reasons if bound in counted else uncounted).append(f"{bound}, above the limit {limit:g}.")
        if not counted:
            idle.append(_unproven(v.bound.promise))
        elif v.control is not None and not v.control.sees:
            idle.append("the attack sees nothing even without noise")
        elif v.largest <= limit:
            idle.append(f"a game of this size shows at most ε = {at_least(v.largest)}, even if every guess is right")
    if fail_on is not None:
        if fail_on not in FAIL_ON:
            raise InvalidInput(
                f"fail_on must be violation, but got {fail_on!r}. An audit that cannot decide ends with exit code 4."
            )
        if v.kind == "no claim":
            raise InvalidInput(
                f"fail_on = {fail_on} needs a claim, but there is none, so it could never fail. "
                f"{v.sentence} State claimed_eps, claimed_delta and claimed_adjacency, or use fail_above."
            )
        proven = v.kind in ("violation", "unsupported")
        if proven or (v.kind in ABOVE.values() and count_estimates):
            reasons.append(v.sentence)
        elif v.kind in ABOVE.values():
            uncounted.append(v.sentence)
        elif v.kind == "cannot decide":
            idle.append(str(v.powerless))
        elif v.kind == "in progress":
            idle.append(f"the run is in progress ({v.remaining} models to go)")
        if not proven and not v.basis.tested and v.promise != "guaranteed" and not count_estimates:
            idle.append(_unproven(v.promise))
    return Gate(tuple(reasons), tuple(uncounted), tuple(dict.fromkeys(idle)))


def _unproven(promise: Kind) -> str:
    return f"its bound is {'credible' if promise == 'credible' else 'an estimate'}, not guaranteed"


def gate_all(
    found: Iterable[tuple[str, Audit]],
    *,
    fail_above: float | None = None,
    fail_on: str | None = None,
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
