"""How many models a claim needs: new runs are made up of scores that are known, until their bound is above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.attacks.attack import Attack
from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.control import control_of
from epsgauge.auditing.judged import choice_of, given_threshold, judge_signals
from epsgauge.auditing.setup import Setup, setup_of
from epsgauge.bounds.subsampled import curve, one_gaussian
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Method
from epsgauge.methods.power import POWER, needed
from epsgauge.numbers import number, percent, short
from epsgauge.runner.plan import Plan
from epsgauge.runner.view import Run, results_of
from epsgauge.scores.rules import judge
from epsgauge.scores.table import Scores
from epsgauge.stats import special
from epsgauge.stats.arrays import Ints

# More models are not asked for, and fewer cannot choose a rule.
MOST, FEWEST = 100_000, 24
# Scores of the best attack on DP-SGD: so many of each bit. No FPR is taken to be smaller.
BEST, DRAWN, SMALLEST = "the best attack on this DP-SGD", 2000, 1e-9

Judge = Callable[[Evidence], Method]


@dataclass(frozen=True, eq=False)
class Known:
    """Scores of an attack, and whose they are."""

    attack: str
    scores: Scores
    threshold: float | None = None  # of a rule that was given
    measured: str = ""  # how good the attack is, as the audit of its run says it


@dataclass(frozen=True)
class Advice:
    """With such an attack, this many models refute the claim with a probability of POWER; infinite above MOST."""

    attack: str
    eps: float  # that is claimed
    measured: str  # how good the attack is, as the audit of its run says it; empty where there is none
    n_models: float

    def __str__(self) -> str:
        attack = f"{self.attack} ({self.measured})" if self.measured else self.attack
        if math.isinf(self.n_models):
            none = f"To refute ε = {number(self.eps)} with {attack}, {MOST:,} models are too few"
            return f"{none}." if self.attack == BEST else f"{none}: use a stronger attack."
        n = f"{self.n_models:.0f}"
        return (
            f"To refute ε = {number(self.eps)} with {attack}, about {n} models are needed for a chance of "
            f"{percent(POWER)}: start a new run of {n}."
        )


def advised(known: Known, plan: Plan, privacy: Privacy | None, judge_of: Judge, *, eps: float, delta: float) -> Advice:
    """For a claim of ε at δ and the `[audit]` of a plan."""
    at = {"delta": delta, "level": plan.audit.verdict_level}

    def enough(n: int) -> bool:
        if n < plan.audit.n_fit(n) + FEWEST:
            return False
        evidence = _of_models(n, known, plan, privacy)
        method = judge_of(evidence)
        found = method.detectable(evidence, **at)
        return (method.lower_bound(evidence, **at) if found is None else found) > eps

    return Advice(known.attack, eps, known.measured, needed(enough, MOST))


def known_of_run(run: Run, plan: Plan) -> list[Known]:
    """The attack of a plan on the models of a run and, where there is a control, on those without noise.

    Whoever shows what follows from it logs a look.
    """
    if plan.audit.attack not in ATTACKS:
        raise InvalidInput(
            f"--run needs an attack that is built in, as check imports no code, but the plan's is {plan.audit.attack}. "
            "Take the rates that `epsgauge audit` shows, and give them to `epsgauge size`."
        )
    theirs, ours = (
        f"adjacency {each.game.adjacency}, {each.game.pairs_per_model} pairs per model" for each in (run.plan, plan)
    )
    if theirs != ours:
        raise InvalidInput(f"--run needs a run of the plan's game ({ours}), but {run.path} has {theirs}. Take another.")
    if not run.n_done:
        raise InvalidInput(f"--run needs a run with results, but no model of {run.path} is done. Run it first.")
    using, found = setup_of(plan.audit, {}, control=plan.control), results_of(run)
    threshold, quiet = given_threshold(using, found.signals), found.control
    known = [
        Known(
            f"an attack like that of {run.path}",
            Attack.scores(using.attack, found.signals),
            threshold,
            _rates(run, using, found.signals),
        )
    ]
    if len(quiet):
        scores, of = Attack.scores(using.attack, quiet), control_of(using.attack, quiet)
        known.append(
            Known(f"the attack of {run.path} if there were no noise", scores, threshold, "" if of is None else of.share)
        )
    return [each for each in known if 0 < each.scores.bit.sum() < len(each.scores)]


def _rates(run: Run, using: Setup, signals: Signals) -> str:
    """Of the rule that the run chose, on the models that it judges: those that its audit shows."""
    declared = run.plan.audit if run.plan.audit.attack == using.settings.attack else using.settings
    own, fit_pairs = replace(using, settings=declared), declared.n_fit_pairs(run.plan.game.pairs_per_model)
    try:
        tally = judge_signals(signals, own, declared.n_fit(run.plan.n_models), fit_pairs).tally
    except InvalidInput:  # these models can choose no rule
        return ""
    return f"FNR {short(float(tally.fnr))}, FPR {short(float(tally.fpr))}"


def best_attack(privacy: DPSGD, adjacency: Adjacency) -> Known:
    """The best that anyone can do who sees all of DP-SGD.

    A score is minus the probit of the FPR at which its row is just guessed 1: nearly Gaussian, as log-ratios are.
    """
    share = (np.arange(DRAWN) + 0.5) / DRAWN
    fpr = np.concatenate([[0.0], np.geomspace(SMALLEST, 1.0, DRAWN)])
    if privacy.sample_rate == 1:
        tpr = special.ndtr(special.ndtri(fpr) + one_gaussian(privacy, adjacency).mu)
    else:
        eps, delta = curve(privacy, adjacency)
        grow, shown = np.exp(eps)[:, None], delta[:, None]
        tpr = np.minimum(shown + grow * fpr, 1.0 - (1.0 - shown - fpr) / grow).min(axis=0).clip(0.0, 1.0)
    just = np.concatenate([share, np.interp(share, np.maximum.accumulate(tpr), fpr)])
    score = -special.ndtri(np.clip(just, SMALLEST, 1.0 - SMALLEST))
    bit = np.repeat([0, 1], DRAWN)
    scores = Scores(np.arange(len(bit)), np.zeros_like(bit), bit, score, adjacency, bits="coins")
    return Known(BEST, scores)


def _of_models(n: int, known: Known, plan: Plan, privacy: Privacy | None) -> Evidence:
    """What a run of n models would have, if its scores were spread as those that are known."""
    settings, m = plan.audit, plan.game.pairs_per_model
    fit = settings.n_fit(n)
    taken = np.concatenate([_evenly(known.scores, fit), _evenly(known.scores, n - fit)])
    rows = known.scores.by_model.reshape(-1, m)[taken].ravel()
    model, pair = (index.ravel() for index in np.indices((n, m)))
    whole = Scores(model, pair, known.scores.bit[rows], known.scores.score[rows], known.scores.adjacency, bits="coins")
    choice = choice_of(settings, known.threshold, fit, settings.n_fit_pairs(m), None)
    counting = Counting(settings.pooled_guesses, settings.pooled_number, settings.delta, settings.verdict_level)
    judged = judge(whole, choice, delta=settings.delta)
    return replace(Evidence(judged, privacy=privacy), counting=counting)


def _evenly(scores: Scores, n: int) -> Ints:
    """Places of n models, spread evenly over all of them in the order of bit and score of their first pair."""
    first = scores.first_pairs
    order = np.lexsort((scores.score[first], scores.bit[first]))
    out: Ints = order[((np.arange(n) + 0.5) * len(order) / max(n, 1)).astype(np.int64)]
    return out
