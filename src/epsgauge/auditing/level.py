"""Whether the level was kept: the number of models and the rule were fixed before results were seen."""

from __future__ import annotations

from epsgauge.auditing.settings import redeclared
from epsgauge.runner.plan import AuditSettings
from epsgauge.runner.view import Run


def level_lost(run: Run, settings: AuditSettings) -> str | None:
    """Why the level was not kept, as a part of a sentence; None where it was.

    To look at a run and then play on to the number of models that was planned does no harm.
    """
    planned, over = run.plan.n_models, run.n_done + run.n_failed
    if over < planned:
        return f"the run was cut short: {over} of {planned} models have been played"
    if run.extended_after_look:
        return "the run was extended after its results had been seen"
    other = redeclared(run.declared, settings)
    if other:
        return f"{', '.join(other)} differs from what the plan declared before results were seen"
    return None
