"""The answer of `epsgauge check` for the terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from epsgauge.auditing.forecast import Forecast
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.mechanisms.privacy import to_json as privacy_json
from epsgauge.numbers import duration, short
from epsgauge.reporting import layout
from epsgauge.runner.plan import Plan
from epsgauge.runner.trial import Trial

HEAD = 12


def show(seen: Forecast, trial: Trial | None, console: Console) -> None:
    """Print what a plan would do."""
    plan = seen.plan
    facts = {
        "plan": f"{plan.name}, seed {plan.seed}" + (", a control without noise" if plan.control else ""),
        "trains": f"{plan.n_models} models with {_part(plan.trainer.use, plan.trainer.settings)}",
        "data": f"{_part(plan.data.use, plan.data.settings)}; {plan.game.train_size} points per model, "
        f"{plan.game.reference_size} for reference",
        "game": f"{plan.game.experiment}: {_pairs(plan)}, base {plan.game.base}, adjacency {plan.game.adjacency}",
        "adversary": f"{'decided when it runs: ' * plan.adversary.is_open}{plan.powers.preset}: {plan.powers}",
        "guesses": f"N = {seen.n_guesses} of {seen.n_judged} models, m = {plan.game.pairs_per_model}"
        + (f"; the first {seen.n_fit} models choose the rule" if seen.n_fit else "")
        + (f"; the first {plan.n_fit_pairs} pairs of each choose the rule" if plan.n_fit_pairs else ""),
        "can show": _can_show(seen),
        "claim": seen.claim_text,
    }
    if plan.game.challenge == "worst":
        facts["trains"] += f", after {plan.game.ranking_models} that find the worst points"
    if plan.tries_canaries:
        teach = "teach the attack, " if plan.n_learning else ""
        more = seen.n_trained - plan.n_models
        facts["trains"] += f"; about {more} more try canaries, {teach}or have no noise as a control"
    elif plan.n_learning:
        facts["trains"] += f", after {plan.n_learning} that the attack learns on"
    if plan.probes:
        facts["probe"] = (
            "the run begins with a hundred short trainings that test noise, clipping, sampling and steps directly"
        )
    if seen.advice:
        facts["models"] = " ".join(map(str, seen.advice))
    if trial is not None:
        facts["tried"] = (
            f"{duration(trial.seconds)} per model, {duration(seen.n_trained * trial.seconds / seen.workers)} in all "
            f"with {seen.workers} workers"
        )
        if trial.member_loss is not None:
            facts["tried"] += (
                f"; mean loss {trial.member_loss:.3g} on training points, {trial.reference_loss:.3g} on others"
            )
        if isinstance(trial.privacy, DPSGD) and not plan.probes:
            facts["probe"] = (
                "`epsgauge probe` tests in seconds whether noise, clipping, sampling and steps are as accounted"
            )
    for head, text in facts.items():
        console.print(layout.hanging(f"{head:<{HEAD}}", text, "dim"))
    layout.warnings([*seen.warnings, *(() if trial is None else trial.warnings)], console)


def _can_show(seen: Forecast) -> str:
    """At most: for any training, which needs no knowledge of the trainer, and if it is the DP-SGD that is accounted."""
    where = "under Gaussian DP" if seen.plan.audit.by_mu else "for any training"
    conditional, how = seen.label != seen.label_any, f"one-sided, level {seen.plan.audit.verdict_level:g}"
    found = [f"ε of at most {short(seen.largest_any, 2)} {where} ({seen.label_any}, {how})"]
    if conditional:
        found.append(f"at most {short(seen.largest_verdict, 2)} if it is the DP-SGD that is accounted ({seen.label})")
    found.append(f"the verdict counts {seen.counts}")
    return "; ".join([*found, f"the credible interval can begin at {short(seen.largest_credible, 2)} at most"])


def to_json(seen: Forecast, trial: Trial | None) -> dict[str, Any]:
    out = {name: value for name, value in asdict(seen).items() if name != "plan"}
    tried = None if trial is None else {**asdict(trial), "privacy": privacy_json(trial.privacy)}
    (tried or {}).pop("adversary", None)  # the plan has it
    return {"plan": seen.plan.tables(), **out, "tried": tried}


def _pairs(plan: Plan) -> str:
    if plan.adversary.inserts == "gradient":
        return "gradient canaries"
    if plan.adversary.inserts == "adaptive":
        return "records that the adversary chooses at each step"
    if plan.game.auto:
        gradient = ", or a gradient" if plan.adversary.inserts == "auto" else ""
        return f"the best of the canaries that can be made from the data{gradient}"
    if plan.game.canaries is not None:
        return f"canaries {plan.game.canaries}, {plan.game.pairs_are}"
    return f"{plan.game.challenge} pairs, {plan.game.pairs_are}"


def _part(use: str, settings: dict[str, Any]) -> str:
    inside = ", ".join(f"{name} = {value}" for name, value in settings.items())
    return f"{use} ({inside})" if inside else use
