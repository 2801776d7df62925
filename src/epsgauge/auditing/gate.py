"""Gates for CI: the reasons for which an audit fails a build."""

from __future__ import annotations

from typing import Literal

from epsgauge.auditing.audit import Audit
from epsgauge.errors import InvalidInput
from epsgauge.numbers import number
from epsgauge.stats import checks


def gate(audit: Audit, *, fail_above: float | None = None, fail_on: Literal["violation"] | None = None) -> list[str]:
    """Why the audit fails these gates; empty if it passes.

    `fail_above` is compared with the audit's lower bound, one-sided at the verdict's level, at the δ of the audit.
    """
    reasons = []
    if fail_above is not None:
        limit = checks.one("fail_above", checks.eps(fail_above, "fail_above"))
        if audit.lower_bound > limit:
            how = f"{audit.gauge.label}, one-sided, level {audit.verdict.level:g}"
            reasons.append(
                f"The lower bound of ε is {number(audit.lower_bound)}, above {limit:g} ({how}, δ = "
                f"{audit.settings.delta:g})."
            )
    if fail_on is not None:
        if fail_on != "violation":
            raise InvalidInput(f'fail_on must be "violation", but got {fail_on!r}.')
        if audit.verdict.kind == "no claim":
            raise InvalidInput(
                f"fail_on = violation needs a claim, but there is none, so it could never fail. "
                f"{audit.verdict.sentence} State claimed_eps, claimed_delta and claimed_adjacency, or use fail_above."
            )
        if audit.verdict.kind == "violation":
            reasons.append(audit.verdict.sentence)
    return reasons
