"""What a plan can show, before anything is trained: how many guesses, the largest ε, the ε that it is held against."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.advice import Advice, Known, advised, best_attack, known_of_run
from epsgauge.auditing.claim import Claim, NoClaim, promises
from epsgauge.auditing.reach import Reach
from epsgauge.data.canaries.table import USUAL
from epsgauge.games.rehearsal import rounds
from epsgauge.mechanisms.privacy import DPSGD, Privacy, judged_by_curve
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Method
from epsgauge.methods.table import METHODS
from epsgauge.runner.executors import worker_count
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import promised, trainer_of
from epsgauge.runner.trial import Trial
from epsgauge.runner.view import Run, unlogged
from epsgauge.settings import AuditSettings
from epsgauge.stats.sizing import largest_eps
from epsgauge.trainers.protocol import has_noise_switch


@dataclass(frozen=True)
class Forecast:
    """The numbers of a plan; each `largest` is a lower bound that a perfect attack would get."""

    plan: Plan
    n_fit: int
    n_judged: int  # models
    n_guesses: int  # of judged models
    n_trained: int  # with those that are not judged
    workers: int
    method: str  # of the verdict
    label: str
    counts: str  # which guesses it counts, in words
    largest_verdict: float  # of that method at its level; if it is of DP-SGD, only for a training that is
    largest_any: float  # of the method that judges any training, at the same level
    label_any: str
    largest_credible: float  # the lower end of the credible interval
    accountant: dict[Adjacency, float | None]
    claim: float | None
    claim_text: str
    advice: tuple[Advice, ...]  # how many models the claim needs, with attacks that are known
    warnings: tuple[str, ...]


def forecast(plan: Plan, trial: Trial | None = None, run: Run | None = None) -> Forecast:
    """From the plan alone, or with what a trial found; a user's own code is not imported here.

    `run` has shown what the attack sees, and what a trainer promises that is not built in.
    """
    settings, m = plan.audit, plan.game.pairs_per_model
    n_judged, m_judged = plan.n_models - plan.n_fit, m - plan.n_fit_pairs
    plan.data.check_names()
    privacy = None if trial is None else trial.privacy
    if privacy is None and plan.trainer.built_in:
        privacy = promised(plan, trainer_of(plan))
    if privacy is None and run is not None:
        privacy = run.privacy
    found = promises(settings, privacy, plan.game.adjacency, control=plan.control)
    privacy = judged_by_curve(privacy, plan.game.adjacency)
    stated = settings.claimed_adjacency is not None
    unknown = trial is None and run is None and not plan.trainer.built_in and not stated and not plan.control
    wanted, warnings = METHODS.get(settings.verdict_method or ""), list(found.notes)
    if wanted is not None and wanted.of_dpsgd and (unknown or plan.control):
        said = f"Only your code knows what {wanted.label} can show: --try imports it. Another method is shown."
        warnings += [said] if unknown else []
        wanted = None
    elif wanted is None and settings.verdict_method is not None:
        warnings.append(
            f"What {settings.verdict_method} can show is not known: it is your own code. Another method is shown."
        )

    reach = Reach(plan, privacy, wanted)
    method, evidence = reach.ideal(plan.n_models)
    largest = method.lower_bound(evidence, delta=found.delta, level=settings.verdict_level)
    any_training = Reach(plan) if method.of_dpsgd else reach
    any_method = any_training.ideal(plan.n_models)[0]
    claim = None if isinstance(found.claim, NoClaim) else found.claim.eps
    hopeless = None if claim is None else reach.hopeless(plan.n_models, claim, found.delta)
    warnings += [f"{hopeless} Or state a smaller claim."] if hopeless else []
    known = _attacks(plan, privacy, found.claim, run) if claim is not None else []
    at = {"eps": claim or 0.0, "delta": found.delta}
    advice = tuple(advised(each, plan, privacy, reach.judge, **at) for each in known)
    if run is not None:
        warnings += _extended(plan, run)
        warnings += [] if not known or run.log_look("check") else [unlogged(run.path)]
    return Forecast(
        plan,
        plan.n_fit,
        n_judged,
        n_judged * m_judged,
        plan.n_models + _apart(plan),
        worker_count(plan),
        method.name,
        method.label,
        _counted(settings, method, evidence),
        largest,
        any_training.largest(plan.n_models, found.delta),
        any_method.label,
        largest_eps(n_judged * m_judged, delta=settings.delta, level=(1 + settings.level) / 2),
        found.accountant,
        claim,
        "only your code knows it: --try imports it" if unknown else _said(found.claim, found.accountant),
        advice,
        tuple(warnings),
    )


def _attacks(plan: Plan, privacy: Privacy | None, claim: Claim | NoClaim, run: Run | None) -> list[Known]:
    """Those of a run, if there is one. Without, the best attack on a trainer whose claim is stated: what the accountant
    says of itself is refuted by none.
    """
    if run is not None:
        return known_of_run(run, plan)
    stated = isinstance(claim, Claim) and claim.source == "stated" and plan.game.pairs_per_model == 1
    if not (stated and isinstance(privacy, DPSGD) and privacy.noise_multiplier > 0):
        return []
    return [best_attack(privacy, plan.game.adjacency)]


def _extended(plan: Plan, run: Run) -> list[str]:
    grows = plan.n_models > run.plan.n_models and plan.fingerprinted() == run.plan.fingerprinted()
    if not grows:
        return []
    return [
        f"If {run.path} is extended to {plan.n_models} models, it is judged by the anytime bound, which is lower: its "
        "results have been seen. Start a new run with another seed instead."
    ]


def _apart(plan: Plan) -> int:
    """Models that are not judged: those that rank points, try canaries or teach the attack, and the control; how many
    canaries the data allow is not known yet.
    """
    ranking = plan.game.ranking_models if plan.game.challenge == "worst" else 0
    trying = rounds(plan.game, plan.n_models, USUAL) if plan.tries_canaries else []
    tried = sum(each.canaries * each.new for each in trying)
    learning = max(plan.n_learning - (trying[-1].models if trying else 0), 0)  # beside those of the canary taken
    quiet = not plan.control and (not plan.trainer.built_in or has_noise_switch(trainer_of(plan)))
    return ranking + tried + learning + (plan.game.n_control(plan.n_models) if quiet else 0)


def _counted(settings: AuditSettings, method: Method, evidence: Evidence) -> str:
    if method.guesses(evidence) is not None and settings.pooled_number is not None:
        return f"{settings.pooled_number} guesses"
    if method.one_pair:
        return "one guess per model"
    n, one_each = (int(t.tally.n_samples) for t in (method.rests_on(evidence), evidence.one_each))
    return "every guess" if method.guesses(evidence) is not None or n > one_each else "one guess per model"


def _said(claim: Claim | NoClaim, accountant: dict[Adjacency, float | None]) -> str:
    known = [f"{eps:.3g} ({adjacency})" for adjacency, eps in accountant.items() if eps is not None]
    beside = f"; the accountant's ε: {', '.join(known)}" if known else ""
    if isinstance(claim, NoClaim):
        return f"none: {claim.reason}{beside}"
    return f"ε = {claim.eps:.3g} at δ = {claim.delta:.3g}, {claim.adjacency} ({claim.source}){beside}"
