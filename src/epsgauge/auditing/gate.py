"""Gates for CI: the reasons for which an audit fails a build."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.verdict import ABOVE, Ruling, Verdict
from epsgauge.errors import InvalidInput
from epsgauge.numbers import number
from epsgauge.stats import checks
from epsgauge.stats.interval import Kind

Refusal = Literal["violation", "underpowered", "weak"]
REFUSALS: tuple[Refusal, ...] = get_args(Refusal)


@dataclass(frozen=True)
class Gate:
    """Why an audit fails, what is above a limit but does not count, and why the gate could not have failed at all."""

    reasons: tuple[str, ...]
    uncounted: tuple[str, ...]
    idle: tuple[str, ...] = ()

    @property
    def outcome(self) -> Literal["fails", "passes", "could not fail"]:
        return "fails" if self.reasons else "could not fail" if self.idle else "passes"

    def to_json(self) -> dict[str, Any]:
        return {"outcome": self.outcome, **asdict(self)}


def refusals(text: str) -> tuple[Refusal, ...]:
    """Of words with commas between them."""
    words = [word.strip() for word in text.split(",")]
    found = tuple(each for each in REFUSALS if each in words)
    if not set(words) <= set(REFUSALS):
        raise InvalidInput(
            f"fail_on must be one or more of {', '.join(REFUSALS)}, with commas between them, but got {text!r}."
        )
    return found


def gate(
    audit: Audit,
    *,
    fail_above: float | None = None,
    fail_on: str | None = None,
    count_estimates: bool = False,
) -> Gate:
    """Hold the audit against gates; what is not guaranteed counts only with `count_estimates`.

    `fail_on` has words with commas between them. "violation" also fails on a claim that is unsupported: a probe, or the
    accountant itself, refutes what it rests on. "underpowered" fails where there are too few models to find a
    violation, and "weak" where the attack is too weak. Without these words, such a gate could not have failed.

    `fail_above` is compared with the audit's lower bound, one-sided at the verdict's level, at the δ of the audit.
    """
    reasons: list[str] = []
    uncounted: list[str] = []
    idle: list[str] = []
    v, words = audit.verdict, () if fail_on is None else refusals(fail_on)
    if fail_above is not None:
        limit = checks.one("fail_above", checks.eps(fail_above, "fail_above"))
        counts = count_estimates or audit.gauge.promise == "guaranteed"
        if audit.lower_bound > limit:
            how = f"{audit.gauge.label}, {audit.gauge.promise}, one-sided, level {v.level:g}"
            (reasons if counts else uncounted).append(
                f"The lower bound of ε is {number(audit.lower_bound)}, above {limit:g} ({how}, δ = "
                f"{audit.settings.delta:g})."
            )
        elif v.largest <= limit:
            idle.append(_too_few(v))
        elif v.weak:
            idle.append(_too_weak(v))
        if not counts:
            idle.append(_uncounted(audit.gauge.promise))
    if words:
        if v.kind == "no claim":
            raise InvalidInput(
                f"fail_on = {fail_on} needs a claim, but there is none, so it could never fail. "
                f"{v.sentence} State claimed_eps, claimed_delta and claimed_adjacency, or use fail_above."
            )
        counts = count_estimates or v.promise == "guaranteed" or v.kind == "unsupported"
        if v.kind in ("unsupported", *ABOVE.values()):
            if "violation" in words:
                (reasons if counts else uncounted).append(v.sentence)
        elif v.kind in OF_RULING:
            word, why = OF_RULING[v.kind]
            (reasons if word in words else idle).append(v.sentence if word in words else why(v))
        if not counts:
            idle.append(_uncounted(v.promise))
    return Gate(tuple(reasons), tuple(uncounted), tuple(dict.fromkeys(idle)))


def _too_few(v: Verdict) -> str:
    return f"so few models show at most ε = {v.largest:.3g}"


def _too_weak(v: Verdict) -> str:
    blind = v.control is not None and not v.control.sees
    why = "sees nothing even without noise" if blind else "is too weak to refute any claim"
    return f"the attack {why}"


def _uncounted(promise: Kind) -> str:
    return f"its bound is {'credible' if promise == 'credible' else 'an estimate'}, not guaranteed"


# Rulings that could not have been a violation: the word that fails on them, and why.
OF_RULING: dict[Ruling, tuple[Refusal, Callable[[Verdict], str]]] = {
    "underpowered": ("underpowered", _too_few),
    "inconclusive": ("weak", _too_weak),
}


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
