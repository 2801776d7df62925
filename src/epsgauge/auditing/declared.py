"""What a plan declared and whether that was kept before results were seen: the facts of an audit."""

from __future__ import annotations

from contextlib import suppress

from epsgauge.auditing.basis import orthogonal
from epsgauge.auditing.claim import Claim, stated
from epsgauge.auditing.setup import Setup
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import judged_by_curve
from epsgauge.methods.facts import ChosenOn, Facts, Lost
from epsgauge.methods.table import WATCHED, default_method
from epsgauge.numbers import level_percent
from epsgauge.runner.view import Looks, Run
from epsgauge.scores.rules import Judged
from epsgauge.settings import OF_A_RULE, AuditSettings

# What decides the guesses: whoever chooses one of these after seeing results chooses the result.
RULE = ("attack", "rule", *OF_A_RULE, "search")
# What decides how the guesses are judged.
VERDICT = ("verdict_level", "pooled_guesses", "pooled_number")

# Looks that show a verdict; the progress bar shows none.
VERDICTS = ("audit", "compare", "view")


def chosen_on(judged: Judged) -> ChosenOn:
    return "same data" if judged.same_data else "other pairs" if judged.same_models else "other models"


def facts_of(judged: Judged, pairs_per_model: int, run: Run | None, lost: Lost | None, *, delta: float) -> Facts:
    """For a bound at `delta`; scores without a run declare nothing that could be kept."""
    declared = run is None or delta in _declared_deltas(run)
    return Facts(pairs_per_model, chosen_on(judged), lost, declared, bits=judged.judged.bits)


def level_lost(run: Run, using: Setup, *, from_another: bool = False) -> Lost | None:
    """None where it was kept; `from_another` says that another run chose the rule.

    It is kept where a run was looked at and then played on to the number of models that was planned.
    """
    used = using.settings
    rule, stopping, verdict = _rule(run, used, from_another) or _own(run, using), run.unplanned, _verdict(run, used)
    why = rule or [*([stopping] if stopping else []), *verdict]
    return Lost("; ".join(why), bool(rule), bool(stopping), bool(verdict)) if why else None


def judged_before(run: Run, used: AuditSettings, looks: Looks) -> str | None:
    """What to say where a verdict by another bound was seen: what two may miss adds up.

    Where all models are over and their number was fixed beforehand, the declared bound judges; before, and after the
    run was extended, the one that holds at every moment.
    """
    if verdict_method(run, used) == WATCHED.name:
        return None
    now, shown = run.unplanned is None, [look for look in looks if look.get("kind") in VERDICTS]
    others = [look.get("n_done") for look in shown if look.get("as_planned") is not now]
    if not others:
        return None
    before = run.declared.verdict_level
    both = level_percent(max(0.0, before + used.verdict_level - 1.0))
    return (
        f"With {others[-1]} models done, this run was judged by another bound, at {level_percent(before)}: both "
        f"verdicts hold together at {both} or more."
    )


def verdict_method(run: Run, settings: AuditSettings) -> str:
    """The name of the method that a verdict rests on: the one that is set, else the sharpest for such an audit."""
    game, privacy = run.plan.game, None if run.plan.control else run.privacy
    m, privacy = game.pairs_per_model, judged_by_curve(privacy, game.adjacency)
    return (
        settings.verdict_method or default_method(settings.asked(m, privacy=privacy, orthogonal=orthogonal(run))).name
    )


def _declared_deltas(run: Run) -> list[float]:
    """That of the audit and that of the claim."""
    declared = [run.declared.delta]
    with suppress(InvalidInput):  # of a claim that cannot be judged in this game, which whoever judges it says
        claim = None if run.declared.claimed_adjacency is None else stated(run.declared, run.plan.game.adjacency)
        declared += [claim.delta] if isinstance(claim, Claim) else []
    return declared


def _rule(run: Run, used: AuditSettings, from_another: bool) -> list[str]:
    if run.unsealed:
        return ["the seals of the run's store were not checked (--unsealed)"]
    searched = used.rule != "given" and used.target_fpr is None  # a search maximises ε at a δ
    names = _differing((*RULE, "delta") if searched else RULE, run.declared, used)
    if names and from_another:
        return ["the rule comes from another run, and this one did not declare it"]
    if names:
        return [_differs(names)]
    if run.code_changed:
        return ["the code changed during the run"]
    if run.refit_after_look:
        return ["models that pick the threshold were trained again after results had been seen"]
    return []


def _own(run: Run, using: Setup) -> list[str]:
    """Code of the user's own must be what it was when it was declared, before results were seen."""
    for own in using.own:
        if own.altered:
            return [f"{own.name} was given with other parameters than its class has by itself"]
        if own.code is None or run.declaration.content["code"].get(own.name) != own.code:
            return [f"the code of {own.name} is not known to be what it was before results were seen"]
    return []


def _verdict(run: Run, used: AuditSettings) -> list[str]:
    """A claim of μ brings its own method."""
    names = _differing(VERDICT, run.declared, used)
    if verdict_method(run, run.declared) != verdict_method(run, used):
        names = ["verdict_method", *names]
    return [_differs(names)] if names else []


def _differing(names: tuple[str, ...], declared: AuditSettings, used: AuditSettings) -> list[str]:
    return [name for name in names if getattr(declared, name) != getattr(used, name)]


def _differs(names: list[str]) -> str:
    return f"{', '.join(names)} differs from what the plan declared before results were seen"
