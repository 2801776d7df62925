"""Whether the level was kept: the number of models and the rule were fixed before results were seen."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.auditing.settings import other_rule, other_verdict
from epsgauge.runner.plan import AuditSettings
from epsgauge.runner.view import Run


@dataclass(frozen=True)
class Lost:
    """Why the level was not kept, as a part of a sentence.

    Stopping early takes the level from confidence bounds alone, and not from those that hold at every moment. A rule
    that is not the declared one, or was chosen by other models or code, takes it from posteriors too: their data may
    have chosen it.
    """

    why: str
    rule: bool = False
    stopping: bool = False


def level_lost(run: Run, used: AuditSettings, *, shared: bool = False) -> Lost | None:
    """None where it was kept; `shared` says that another run chose the rule, with the attack that was declared here.

    To look at a run and then play on to the number of models that was planned does no harm.
    """
    declared = run.declared
    rule = [name for name in other_rule(declared, used) if not shared or name == "attack"]
    if rule:
        return Lost(f"{', '.join(rule)} differs from what the plan declared before results were seen", rule=True)
    if run.code_changed:
        return Lost("the code changed during the run", rule=True)
    if run.refit_after_look:
        return Lost("models that choose the rule were played again after results had been seen", rule=True)
    planned, over = run.plan.n_models, run.n_done + run.n_failed
    if over < planned:
        return Lost(f"the run is not finished: {over} of {planned} models have been played", stopping=True)
    if run.stop_when is not None:
        return Lost(f"the run was to stop when its results showed {run.stop_when}", stopping=True)
    if run.extended_after_look:
        return Lost("the run was extended after its results had been seen", stopping=True)
    verdict = other_verdict(declared, used)
    if verdict:
        return Lost(f"{', '.join(verdict)} differs from what the plan declared before results were seen")
    return None
