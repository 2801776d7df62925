"""audit(): from a run or a table of scores to a verdict, by attack, rule, tally, posterior and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.attacks.attack import Attack
from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.adversary import adversary
from epsgauge.auditing.beyond import Beyond
from epsgauge.auditing.claim import Claim, NoClaim, Promises, promises
from epsgauge.auditing.in_order import failures
from epsgauge.auditing.judging import judging
from epsgauge.auditing.level import Lost, claim_delta, level_lost, other_delta
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, as_warned, rows
from epsgauge.auditing.settings import changed
from epsgauge.auditing.verdict import Verdict, number, verdict
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.runner.plan import AuditSettings
from epsgauge.runner.view import Failure, Run
from epsgauge.scores.rules import Choice, Given, Judged, SameData, Split, SplitPairs, judge
from epsgauge.scores.table import Scores
from epsgauge.stats.cautions import cautions
from epsgauge.stats.methods import METHODS, QUICK, intervals_of
from epsgauge.stats.posterior import Posterior, estimate
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from epsgauge.auditing.curve import EffectiveNoise


@dataclass(frozen=True)
class Models:
    """How many models there are; a table of scores has only those that are done."""

    planned: int
    done: int
    failed: int


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Everything that one attack with one rule says about ε, with what each number promises."""

    name: str
    source: Literal["run", "scores"]
    settings: AuditSettings
    adjacency: Adjacency
    judged: Judged
    posterior: Posterior  # of all judged pairs; models that failed are left out
    guaranteed: Guaranteed  # one pair a model, and models that failed as wrong guesses
    rows: tuple[AuditRow, ...]
    lower_bound: float  # of ε at the audit's δ, one-sided at the verdict's level
    lower_bound_method: str  # that of the verdict, but where it bounds μ or holds at the claim's δ alone
    promises: Promises
    verdict: Verdict
    models: Models
    pairs_per_model: int
    lost: Lost | None  # where the level was not kept, and why
    privacy: Privacy | None  # what the trainer promises
    looks: int  # at the results before this one
    warnings: tuple[str, ...]
    run: Run | None = None  # that was judged; None for a table of scores
    attack: Attack | None = None  # that made the scores of the run

    @property
    def claim(self) -> Claim | None:
        return None if isinstance(self.promises.claim, NoClaim) else self.promises.claim

    @property
    def accountant(self) -> dict[Adjacency, float | None]:
        """ε at the audit's δ under each adjacency, as the trainer promises it."""
        return self.promises.accountant

    @property
    def guaranteed_tally(self) -> Tally:
        return self.guaranteed.tally

    @property
    def level_kept(self) -> bool:
        return self.lost is None

    def effective_noise(self) -> EffectiveNoise:
        """The noise that DP-SGD can have had at most, by its whole trade-off curve, at the verdict's level.

        It rests on one pair a model and keeps or loses its promise with Clopper-Pearson's row. Takes some seconds.
        """
        if not isinstance(self.privacy, DPSGD):
            raise InvalidInput(
                "an effective noise is that of DP-SGD, but this audit knows of none. Audit a run whose trainer says "
                "what it promises as eg.DPSGD."
            )
        from epsgauge.auditing.curve import effective_noise  # it needs an extra

        level = self.settings.verdict_level
        return effective_noise(self.guaranteed_tally, self.privacy, adjacency=self.adjacency, level=level)

    def __getitem__(self, method: str) -> AuditRow:
        return {row.method: row for row in self.rows}[method]

    def __repr__(self) -> str:
        v = self.verdict
        at = f"{METHODS[v.method].label}, level {v.level:g}, δ = {v.delta:g}, {self.adjacency}"
        return f"<Audit of {self.name}: {v.kind}, ε ≥ {number(v.bound)} ({at})>"

    def __str__(self) -> str:
        from epsgauge.auditing.text import text  # it needs this class

        return text(self)

    def _repr_html_(self) -> str:
        from epsgauge.reporting.display import html  # it needs this class

        return html(self)

    def __rich__(self) -> Any:
        from epsgauge.reporting.display import rich

        return rich(self)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; infinite numbers are floats still."""
        from epsgauge.auditing.record import as_dict  # it needs this class

        return as_dict(self)


def audit(source: Run | Scores, *, seed: int | None = None, **settings: Any) -> Audit:
    """Judge a run as its plan says, or a table of scores; `settings` are those of a plan's `[audit]` table.

    The first `fit_models` models of a run choose its rule, by default a sixth of them. Of a table of scores, whose
    order may mean anything, as many are drawn at random with `seed`, by default 0. With `rule="split-pairs"` it is
    `fit_pairs` pairs of each model, also where there is one model alone. A look at a run is logged.

    >>> rng = np.random.default_rng(0)
    >>> scores = Scores.from_in_out(rng.normal(1, 1, 900), rng.normal(0, 1, 900), adjacency="substitute")
    >>> audit(scores, delta=1e-5, claimed_eps=0.5, claimed_delta=1e-5, claimed_adjacency="substitute")
    <Audit of scores: violation, ε ≥ ... (Exact, level 0.99, δ = 1e-05, substitute)>
    """
    if isinstance(source, Scores):
        return _audit_scores(source, 0 if seed is None else seed, settings)
    if not isinstance(source, Run):
        raise InvalidInput(
            f"an audit is of a Run or of Scores, but got {type(source).__name__}. Use Run.open(path) or "
            "Scores.read(path, adjacency=...)."
        )
    if seed is not None:
        raise InvalidInput(
            f"seed goes with scores, but got {seed!r} for a run, of which the first fit_models choose the rule. Leave "
            "it out."
        )
    out = audit_run(source, settings)
    if source.log_look("audit"):
        return out
    return replace(out, warnings=(*out.warnings, f"This look could not be logged: {source.path} cannot be written."))


def _audit_scores(scores: Scores, seed: int, changes: dict[str, Any]) -> Audit:
    for name in ("attack", "percentile"):
        if name in changes:
            raise InvalidInput(f"{name} goes with a run, but these scores were made already. Use rule and threshold.")
    settings = changed(AuditSettings(), changes)
    n, m = len(scores.models), int(scores.pairs.max()) if len(scores) else 0
    fit_models, fit_pairs = settings.fit_models or max(1, n // 6), settings.fit_pairs or max(1, m // 6)
    choice = _choice(settings, settings.threshold, fit_models, fit_pairs, seed)
    judged = judge(scores, choice, delta=settings.delta)
    claim = promises(settings, None, scores.adjacency, trained=False)
    return _assemble("scores", judged, settings, None, None, claim, Models(n, n, 0))


def audit_run(run: Run, changes: dict[str, Any] | None = None, *, skipped: int | None = None) -> Audit:
    """Without logging a look. `skipped`: models below this number chose the rule elsewhere, and are not judged."""
    settings = changed(run.plan.audit, changes or {})
    cut = run.plan.with_audit(**settings.model_dump()).n_fit if skipped is None else skipped
    signals = run.signals()
    if skipped is not None:
        signals = signals[signals.models >= skipped]
    if not len(signals):
        remedy = "Play those that failed again with --retry-failed." if run.n_failed else "Run it first."
        raise InvalidInput(f"no model of {run.path} is done, so there is nothing to audit. {remedy}")
    judged = judge_signals(signals, settings, cut, run.plan.with_audit(**settings.model_dump()).n_fit_pairs)
    claim = promises(settings, run.privacy, run.plan.game.adjacency, control=run.plan.control)
    models = Models(run.plan.n_models, run.n_done, run.n_failed)
    lost = level_lost(run, settings, shared=skipped is not None)
    return _assemble(run.plan.name, judged, settings, signals, run, claim, models, cut, lost)


def judge_signals(signals: Signals, settings: AuditSettings, cut: int, fit_pairs: int) -> Judged:
    """Attack and rule of a run; the models below number `cut` choose, as many of them as are done, or the first
    `fit_pairs` pairs of each model.
    """
    attack = ATTACKS[settings.attack]
    fit = int(np.sum(signals.models < cut))
    if settings.rule == "split" and fit == 0:
        raise InvalidInput(
            f"the first {cut} models choose the rule, but none of them is done. Wait for them, retry those that "
            'failed, or use rule = "given".'
        )
    if settings.rule == "split" and fit == len(signals):
        raise InvalidInput(
            f"the first {cut} models choose the rule, and no other one is done. Wait for more, or use fewer fit_models."
        )
    choice = _choice(settings, given_threshold(settings, signals), cut, fit_pairs, None)
    candidates = attack.candidates(signals)
    return judge(attack.scores(signals), choice, delta=settings.delta, candidates=candidates)


def given_threshold(settings: AuditSettings, signals: Signals) -> float | None:
    """The threshold that the settings give, for the percentile too."""
    if settings.percentile is None:
        return settings.threshold
    return ATTACKS[settings.attack].threshold_at(settings.percentile, signals)


def _choice(
    settings: AuditSettings, threshold: float | None, fit_models: int, fit_pairs: int, seed: int | None
) -> Choice:
    if threshold is not None:  # which the settings have for rule = "given" alone
        return Given(threshold)
    if settings.rule == "same-data":
        return SameData(settings.search, settings.target_fpr)
    if settings.rule == "split-pairs":
        return SplitPairs(fit_pairs, seed, settings.search, settings.target_fpr)
    return Split(fit_models, seed, settings.search, settings.target_fpr)


def _assemble(
    name: str,
    judged: Judged,
    settings: AuditSettings,
    signals: Signals | None,
    run: Run | None,
    promised: Promises,
    models: Models,
    cut: int = 0,
    lost: Lost | None = None,
) -> Audit:
    adjacency = judged.judged.adjacency
    failed = [] if run is None else failures(run, judged, cut)
    first = [int(f.bits[0]) for f in failed]
    guaranteed = Guaranteed(judged.one_per_model, sum(first), len(first) - sum(first))
    m = judged.pairs_per_model if run is None else run.plan.game.pairs_per_model
    other = run is not None and other_delta(run, settings.delta)
    conditions = Conditions(judged.same_data, m, lost, judged.same_models, other)
    at_claim = claim_delta(promised.claim, settings.delta)
    of_verdict = replace(conditions, other_delta=run is not None and other_delta(run, at_claim))
    posterior = estimate(judged.tally, delta=settings.delta)
    result = intervals_of(posterior, level=settings.level, methods=(*QUICK, "exact"))
    found = rows(result, guaranteed, conditions)
    method, caveats = judging(settings, m, lost, delta=at_claim, other_delta=of_verdict.other_delta)
    # a limit for ε at the audit's δ is no claim of μ, and may be at another δ than the claim
    named = None if settings.verdict_method == "gaussian" else settings.verdict_method
    of_eps = settings.model_copy(update={"claimed_mu": None, "verdict_method": named})
    gauge = judging(of_eps, m, lost, delta=settings.delta, other_delta=other)[0]
    beyond = Beyond(judged, guaranteed, failed, settings, cut, run, method.name)
    found += beyond.rows(conditions)
    promise, unfair = beyond.promise(method, of_verdict)
    caveats += unfair
    attack = None if run is None else ATTACKS[settings.attack]
    who = adversary(judged, attack, signals)
    evidence = beyond.evidence(method, who, adjacency, by_mu=beyond.by_mu)
    ruled = verdict(
        promised.claim,
        evidence,
        method=method.name,
        level=settings.verdict_level,
        delta=settings.delta,
        promise=promise,
        caveats=caveats,
    )
    shown = beyond.evidence(gauge, who, adjacency, by_mu=False)
    same = gauge.name == method.name and at_claim == settings.delta and ruled.mu is None
    warnings = (
        *caveats,
        *_failures(failed, models),
        *promised.notes,
        *cautions(as_warned(result, found)),
        *([] if run is None else run.notes),
    )
    return Audit(
        name=name,
        source="scores" if run is None else "run",
        settings=settings,
        adjacency=adjacency,
        judged=judged,
        posterior=posterior,
        guaranteed=guaranteed,
        rows=found,
        lower_bound=ruled.bound if same else shown.bound(gauge.name, settings.verdict_level, settings.delta),
        lower_bound_method=gauge.name,
        promises=promised,
        verdict=ruled,
        models=models,
        pairs_per_model=m,
        lost=lost,
        privacy=None if run is None or run.plan.control else run.privacy,
        looks=0 if run is None else len(run.looks),
        warnings=warnings,
        run=run,
        attack=attack,
    )


def _failures(judged: list[Failure], models: Models) -> list[str]:
    if not models.failed:
        return []
    bits = np.concatenate([f.bits for f in judged]) if judged else np.empty(0, np.int64)
    ones = int(bits.sum())
    return [
        f"{models.failed} of {models.planned} models failed, {len(judged)} of them among those to be judged ({ones} "
        f"pairs with b = 1, {len(bits) - ones} with b = 0). In guaranteed bounds these count as wrong guesses, or as "
        "none where only the surest count; they are left out of the posterior, which is biased if failing depends on "
        "the bit. Try them again with --retry-failed."
    ]
