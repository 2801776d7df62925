"""What a plan can show, before anything is trained: how many guesses, the largest ε, the ε that it is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.claim import Claim, NoClaim, promises
from epsgauge.auditing.one_sided import OneSided
from epsgauge.auditing.pool import COUNTED
from epsgauge.auditing.settings import verdict_method
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.bounds.guesses import Guesses, Sides
from epsgauge.bounds.one_run import one_run_fdp_eps, one_run_fdp_mu
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.runner.executors import worker_count
from epsgauge.runner.plan import AuditSettings, Plan
from epsgauge.runner.play import promised, trainer_of
from epsgauge.runner.trial import Trial
from epsgauge.stats import region
from epsgauge.stats.sizing import largest_eps
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Forecast:
    """The numbers of a plan; both `largest` are lower bounds that a perfect attack would get."""

    plan: Plan
    n_fit: int
    n_judged: int  # models
    n_guesses: int  # of judged models
    n_trained: int  # with those that rank points
    workers: int
    method: str  # of the verdict
    counts: str  # which guesses it counts, in words
    largest_verdict: float  # of that method at its level
    largest_credible: float  # the lower end of the credible interval
    accountant: dict[Adjacency, float | None]
    claim: float | None
    claim_text: str
    warnings: tuple[str, ...]


def forecast(plan: Plan, trial: Trial | None = None) -> Forecast:
    """From the plan alone, or with what a trial found; a user's own code is not imported here."""
    settings, m = plan.audit, plan.game.pairs_per_model
    n_judged, m_judged = plan.n_models - plan.n_fit, m - plan.n_fit_pairs
    plan.data.check_names()
    privacy = None if trial is None else trial.privacy
    if privacy is None and plan.trainer.built_in:
        privacy = promised(plan, trainer_of(plan))
    found = promises(settings, privacy, plan.game.adjacency, control=plan.control)
    stated = settings.claimed_adjacency is not None
    unknown = trial is None and not plan.trainer.built_in and not stated and not plan.control
    method = verdict_method(settings, m)
    delta = found.claim.delta if isinstance(found.claim, Claim) else settings.delta
    pooled = method in ("pooled", "one-run")
    bets = method == "anytime" and m_judged > 1
    if bets:
        none, level = np.zeros(n_judged, np.int64), settings.verdict_level
        largest = betting_lower_bound(none, none, m_judged, delta=delta, level=level)
    else:
        largest = _largest(method, n_judged * m_judged if pooled else n_judged, settings, delta)
    claim = None if isinstance(found.claim, NoClaim) else found.claim.eps
    warnings = list(found.notes)
    if claim is not None and largest <= claim:
        warnings.append(
            f"With so many models the verdict can only be underpowered: no attack could refute ε = {claim:.3g}. "
            "Use more models, or hold the posterior against it instead."
        )
    return Forecast(
        plan,
        plan.n_fit,
        n_judged,
        n_judged * m_judged,
        plan.n_models + (plan.game.ranking_models if plan.game.challenge == "worst" else 0),
        worker_count(plan),
        method,
        _counted(settings, pooled or bets),
        largest,
        largest_eps(n_judged * m_judged, delta=settings.delta, level=(1 + settings.level) / 2),
        found.accountant,
        claim,
        "known to your code alone: --try imports it" if unknown else _said(found.claim, found.accountant),
        tuple(warnings),
    )


def _largest(method: str, n: int, settings: AuditSettings, delta: float) -> float:
    """Of a perfect attack on n guesses in equal halves."""
    ones, level = (n + 1) // 2, settings.verdict_level
    tally = Tally(tp=ones, tn=n - ones, fp=0, fn=0)
    if method == "simultaneous":
        if n < 2:
            return 0.0
        ins, outs = np.ones(ones), np.zeros(n - ones)
        return simultaneous_lower_bound(ins, outs, delta=delta, level=level, directions="high").low
    if method == "gaussian":
        return gaussian_bound(tally, delta=delta, level=level).eps
    if method == "one-run" or settings.pooled_number is not None:
        number = min(settings.pooled_number or n, n)
        sides: Sides = "one" if settings.pooled_guesses == "top-positive" else "both"
        guesses = Guesses(min(number, ones) if sides == "one" else number, number, n, sides=sides)
        if method == "pooled":
            return pooled_bound(guesses, delta=delta, level=level).eps
        if settings.claimed_mu is not None:
            return float(region.gaussian_eps(one_run_fdp_mu(guesses, level=level), delta=delta))
        return one_run_fdp_eps(guesses, delta=delta, level=level)
    guessed = settings.pooled_guesses if settings.pooled_guesses in COUNTED else "all"
    return OneSided(method, level, delta, guessed or "all").of(tally)


def _counted(settings: AuditSettings, every: bool) -> str:
    if settings.pooled_number is not None and every:
        return f"{settings.pooled_number} guesses"
    return "every guess" if every else "one guess a model"


def _said(claim: Claim | NoClaim, accountant: dict[Adjacency, float | None]) -> str:
    known = [f"{eps:.3g} ({adjacency})" for adjacency, eps in accountant.items() if eps is not None]
    beside = f"; the accountant's ε: {', '.join(known)}" if known else ""
    if isinstance(claim, NoClaim):
        return f"none: {claim.reason}{beside}"
    return f"ε = {claim.eps:.3g} at δ = {claim.delta:.3g}, {claim.adjacency} ({claim.source}){beside}"
