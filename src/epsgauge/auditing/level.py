"""Whether the level was kept: the number of models, the rule and δ were fixed before results were seen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from epsgauge.auditing.claim import Claim, NoClaim, stated
from epsgauge.auditing.settings import other_rule, other_verdict
from epsgauge.errors import InvalidInput
from epsgauge.runner.plan import AuditSettings
from epsgauge.runner.view import Run


@dataclass(frozen=True)
class Lost:
    """Why the level was not kept, as a part of a sentence.

    Stopping early takes the level from confidence bounds alone, and not from those that hold at every moment. A method
    or level of the verdict that was not declared takes it from all of them. A rule that is not the declared one, or
    was chosen by other models or code, takes it from posteriors too: their data may have chosen it.
    """

    why: str
    rule: bool = False
    stopping: bool = False
    verdict: bool = False


def level_lost(run: Run, used: AuditSettings, *, shared: bool = False) -> Lost | None:
    """None where it was kept; `shared` says that another run chose the rule, with the attack that was declared here.

    To look at a run and then play on to the number of models that was planned does no harm.
    """
    rule, stopping, verdict = _rule(run, used, shared), _stopping(run), _verdict(run, used)
    why = rule or [*stopping, *verdict]
    return Lost("; ".join(why), bool(rule), bool(stopping), bool(verdict)) if why else None


def other_delta(run: Run, delta: float) -> bool:
    """Whether this δ is neither that of the audit nor that of the claim which were declared."""
    declared = [run.declared.delta]
    with suppress(InvalidInput):  # of a claim that cannot be judged in this game, which whoever judges it says
        claim = None if run.declared.claimed_adjacency is None else stated(run.declared, run.plan.game.adjacency)
        declared += [claim.delta] if isinstance(claim, Claim) else []
    return delta not in declared


def claim_delta(claim: Claim | NoClaim, delta: float) -> float:
    """The δ at which a verdict is given."""
    return claim.delta if isinstance(claim, Claim) else delta


def _rule(run: Run, used: AuditSettings, shared: bool) -> list[str]:
    names = [name for name in other_rule(run.declared, used) if not shared or name == "attack"]
    if names:
        return [_differs(names)]
    if run.code_changed:
        return ["the code changed during the run"]
    if run.refit_after_look:
        return ["models that choose the rule were played again after results had been seen"]
    if run.extended_after_look and used.rule == "split" and run.declared.fit_models is None:
        return ["other models choose the rule since the run has grown"]  # in a store of before this was kept
    return []


def _stopping(run: Run) -> list[str]:
    planned, over = run.plan.n_models, run.n_done + run.n_failed
    if over < planned:
        return [f"the run is not finished: {over} of {planned} models have been played"]
    if run.stop_when is not None:
        return [f"the run was to stop when its results showed {run.stop_when}"]
    if run.extended_after_look:
        return ["the run was extended after its results had been seen"]
    return []


def _verdict(run: Run, used: AuditSettings) -> list[str]:
    names = other_verdict(run.declared, used, run.plan.game.pairs_per_model)
    return [_differs(names)] if names else []


def _differs(names: list[str]) -> str:
    return f"{', '.join(names)} differs from what the plan declared before results were seen"
