"""audit(): from a run, a table of scores or a game to a verdict, by attack, rule, evidence, methods and claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, Literal

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.adversary import Adversary, adversary
from epsgauge.auditing.basis import Basis, basis_of
from epsgauge.auditing.beforehand import (
    check_kept,
    check_of_scores,
    declaration_of,
    direction_of,
    privacy_of,
    tables_judged,
)
from epsgauge.auditing.bound import Bound
from epsgauge.auditing.caveats import (
    beside,
    failures,
    of_coins,
    of_own_attack,
    of_rows,
    of_tables,
    saturated,
    unpromised,
)
from epsgauge.auditing.claim import Claim, Promises, promises
from epsgauge.auditing.control import Control, control_of
from epsgauge.auditing.decision import Decision, decision_of
from epsgauge.auditing.declared import facts_of, level_lost
from epsgauge.auditing.direction import EITHER, Direction, directed
from epsgauge.auditing.judged import check_split, choice_of, evidence_of, in_time, judge_signals
from epsgauge.auditing.reading import Reading
from epsgauge.auditing.setup import Own, Setup, setup_of
from epsgauge.auditing.verdict import Judge, Verdict, verdict
from epsgauge.bounds.noise import EffectiveNoise
from epsgauge.declaration import Declaration
from epsgauge.display import Plotted, Printed
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.mechanisms.privacy import DPSGD, Privacy, judged_by_curve
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Facts, Lost, left
from epsgauge.methods.method import Asked, Method
from epsgauge.methods.rows import MethodRow, Place, row_of
from epsgauge.methods.table import METHODS, OF_NOISE, default_method, judging
from epsgauge.methods.units import Units, rows_of_units, said_of
from epsgauge.plain import plain
from epsgauge.probing.finding import Finding
from epsgauge.references import users_code
from epsgauge.runner.view import Looks, Run, results_of, unlogged
from epsgauge.sampling.game import MechanismGame, Sampled
from epsgauge.scores.rules import default_fit, default_fit_pairs, judge
from epsgauge.scores.table import Scores
from epsgauge.settings import OF_A_RULE, AuditSettings
from epsgauge.stats.posterior import estimate
from epsgauge.stats.tally import Tally

UNDECLARED = (
    "Not declared beforehand: this is guaranteed if rule, δ, level and seed were fixed before the scores were seen."
)
ONE_GAME = "This is guaranteed for one game: if several are tried, each may be wrong at its own level."


@dataclass(frozen=True)
class Models:
    """How many models there are; a table of scores has only those that are done."""

    planned: int
    done: int
    failed: int


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Reading, Printed, Plotted):
    """Everything that one attack with one rule says about ε, with what each number promises, and the verdict."""

    name: str
    source: Literal["run", "scores", "mechanism"]
    judge: Method  # that decides
    own: tuple[Own, ...]  # attack and method of the user's
    verdict: Verdict
    promises: Promises
    models: Models
    privacy: Privacy | None  # what the trainer promises
    looks: int  # at the results before this one
    declaration: Declaration | None  # what was declared beforehand; None of scores without one
    direction: Direction | None  # which way scores were judged, where that was said
    warnings: tuple[str, ...]
    sampled: Sampled | None  # how samples of a mechanism came about

    @property
    def units(self) -> Units:
        """What is judged: of a mechanism each output stands for a model."""
        return units_of(self.sampled)

    @property
    def said_of_scores(self) -> tuple[str, ...]:
        """What was said of a table of scores, or how samples were drawn, in words."""
        return super().said_of_scores if self.sampled is None else self.sampled.sentences

    @property
    def accountant(self) -> dict[Adjacency, float | None]:
        """ε at the audit's δ under each adjacency, as the trainer promises it."""
        return self.promises.accountant

    @property
    def guaranteed_tally(self) -> Tally:
        """One pair of each model, and models that failed as wrong guesses."""
        return self.evidence.one_each.tally

    @property
    def decision(self) -> Decision:
        """What it means for a release, and what to do next."""
        return decision_of(self.verdict, self.run, self.sampled)

    @property
    def level_kept(self) -> bool:
        return self.lost is None

    def effective_noise(self) -> EffectiveNoise:
        """The noise that DP-SGD can have had at most, by its whole trade-off curve, at the verdict's level.

        It rests on one pair per model, as the method `curve` does, which judges by it.
        """
        if not isinstance(self.privacy, DPSGD):
            raise InvalidInput(
                "an effective noise is that of DP-SGD, but this audit knows of none. Audit a run whose trainer says "
                "what it promises as eg.DPSGD, without correlation."
            )
        level, claimed = self.settings.verdict_level, float(self.privacy.noise_multiplier)
        at_most = OF_NOISE.noise(self.evidence, level=level)
        kept = left(OF_NOISE, self.facts, self.evidence, form=OF_NOISE)
        return EffectiveNoise(claimed, at_most, claimed >= at_most, level, self.adjacency, kept.promise)

    def __repr__(self) -> str:
        return f"<Audit of {plain(self.name)}: {self.verdict.brief}>"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; infinite numbers are floats still."""
        from epsgauge.auditing.record import as_dict  # it needs this class

        return as_dict(self)


def audit(
    source: Run | Scores | MechanismGame,
    *,
    seed: int | None = None,
    declared: str | PathLike[str] | None = None,
    direction: Direction | None = None,
    **settings: Any,
) -> Audit:
    """Judge a run as its plan says, a table of scores or a game; `settings` are those of a plan's `[audit]` table.

    The first `fit_models` models of a run choose its rule, by default a sixth of them. Of a table of scores, whose
    order may mean anything, as many are drawn at random with `seed`, by default 0. With `rule="split-pairs"` it is
    `fit_pairs` pairs of each model, also where there is one model alone. A look at a run is logged.

    A `MechanismGame` is played here, by its own seed. Its claim is for its own adjacency, and δ is that of the claim.

    Scores are judged exactly as the file `declared` says, which `declare` wrote before they were seen. Settings that
    contradict it are refused. A run's store has what its plan declared.

    Scores that are clearly lower where b = 1 are an error. With `direction="either"` they are judged as they point:
    both directions are tried, each with half of 1 − level. With "kept" they are judged as they are.

    `attack` and `verdict_method` may be objects of your own: an `Attack`, a `Method`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ins, outs = rng.normal(1, 1, 900), rng.normal(0, 1, 900)
    >>> scores = Scores.from_in_out(ins, outs, adjacency="substitute", models="independent")
    >>> audit(scores, delta=1e-5, claimed_eps=0.5, claimed_delta=1e-5, claimed_adjacency="substitute")
    <Audit of scores: violation, ε ≥ ... (Exact, guaranteed, level 0.99, δ = 1e-05, substitute)>
    """
    if isinstance(source, Scores):
        if declared is None and source.origin is not None:
            declared = source.origin.declaration
        before = None if declared is None else declaration_of(declared)
        tables = 1 if before is None else tables_judged(before, source)
        return audit_scores(source, seed, before, settings, direction=direction, tables=tables)
    if not isinstance(source, Run | MechanismGame):
        raise InvalidInput(
            f"an audit is of a Run, of Scores or of a MechanismGame, but got {type(source).__name__}. Use "
            "Run.open(path) or Scores.read(path, adjacency=...)."
        )
    if isinstance(source, MechanismGame) and not (declared is None and seed is None):
        raise InvalidInput("seed and declared go with scores, but a game has a seed of its own. Leave them out.")
    if isinstance(source, MechanismGame):
        from epsgauge.auditing.mechanism import audit_game  # it needs this module

        return audit_game(source, settings)
    if declared is not None:
        raise InvalidInput(
            f"declared goes with scores, but got {str(declared)!r} for a run, whose plan declares. Leave it out."
        )
    if direction is not None:
        raise InvalidInput(
            f"direction goes with scores, but got {direction!r} for a run, whose attack says which way scores point. "
            "Leave it out."
        )
    if seed is not None:
        raise InvalidInput(
            f"seed goes with scores, but got {seed!r} for a run, of which the first fit_models choose the rule. Leave "
            "it out."
        )
    using = setup_of(source.plan.audit, settings)
    early = bool(using.own) and log_look(source, using, "audit")  # code of the user's may show results by itself
    out = audit_run(source, settings)
    return out if early else logged(out, using, "audit")


def logged(found: Audit, using: Setup, kind: str) -> Audit:
    """The audit of a run once a look at it is logged; it says so where that cannot be done."""
    if found.run is None or log_look(found.run, using, kind):
        return found
    return replace(found, warnings=(*found.warnings, unlogged(found.run.path)))


def log_look(run: Run, using: Setup, kind: str) -> bool:
    """Record that results were seen, with what is not built in; False where the store cannot be written."""
    return run.log_look(kind, [asdict(own) for own in using.own])


def audit_scores(
    scores: Scores,
    seed: int | None,
    declared: Declaration | None,
    changes: Mapping[str, Any],
    *,
    among: int = 1,
    direction: Direction | None = "kept",
    tables: int = 1,
) -> Audit:
    """`among`: so many audits share what may be missed. `tables`: so many were judged as `declared` says."""
    check_of_scores(changes)
    if declared is None and len(scores.models) == 1 and len(scores) > 1 and not {"rule", *OF_A_RULE} & set(changes):
        changes = {**changes, "rule": "split-pairs"}  # there is no other model to choose the rule
    using = setup_of(AuditSettings() if declared is None else declared.audit, changes)
    if declared is not None:
        direction = direction or ("either" if direction_of(declared) == "either" else None)
        check_kept(declared, scores, using, seed, direction)
        seed = declared.content["seed"]
    scores, ways = directed(scores, direction)
    using = replace(using, settings=using.settings.divided(among * ways))
    n, m = len(scores.models), int(scores.pairs.max()) if len(scores) else 0
    fit_models = using.settings.fit_models or default_fit(n)
    fit_pairs = using.settings.fit_pairs or default_fit_pairs(m)
    choice = choice_of(using.settings, using.settings.threshold, fit_models, fit_pairs, seed or 0)
    judged = judge(scores, choice, delta=using.settings.delta)
    privacy = None if declared is None else privacy_of(declared)
    claim = promises(using.settings, privacy, scores.adjacency, trained=privacy is not None)
    of_curve = judged_by_curve(privacy, scores.adjacency)
    m, models, evidence = judged.pairs_per_model, Models(n, n, 0), Evidence(judged, privacy=of_curve)
    case = Case("scores", using, evidence, m, claim, models, beforehand=declared, direction=direction, tables=tables)
    return assemble(case)


def audit_run(
    run: Run, changes: Mapping[str, Any] | None = None, *, skipped: int | None = None, among: int = 1
) -> Audit:
    """Without logging a look. `skipped`: models below this number chose the rule elsewhere, and are not judged.
    `among`: so many audits share what may be missed. That is a function of what was declared, and counts as declared.
    """
    asked = setup_of(run.plan.audit, changes or {}, control=run.plan.control)
    using = replace(asked, settings=asked.settings.divided(among))
    settings, m = using.settings, run.plan.game.pairs_per_model
    cut, fit_pairs = settings.n_fit(run.plan.n_models) if skipped is None else skipped, settings.n_fit_pairs(m)
    check_split(run, settings, cut, fit_pairs)
    found = results_of(run)
    signals, late = in_time(run, found.signals, cut)
    if skipped is not None:
        signals = signals[signals.models >= skipped]
    if not len(signals):
        remedy = "Train the failed ones again with --retry-failed." if run.n_failed else "Run it first."
        raise InvalidInput(f"no model of {run.path} is done, so there is nothing to audit. {remedy}")
    with _guarded(using):
        judged = judge_signals(signals, using, cut, fit_pairs)
        control = control_of(using.attack, found.control)
    claim = promises(settings, run.privacy, run.plan.game.adjacency, control=run.plan.control)
    models = Models(run.plan.n_models, run.n_done, run.n_failed)
    lost = level_lost(run, asked, from_another=skipped is not None)
    evidence = evidence_of(run, judged, cut, late)
    return assemble(Case(run.plan.name, using, evidence, m, claim, models, lost, run, signals, found.looks, control))


@dataclass(frozen=True, eq=False)
class Case:
    """What is to be judged, however it was come by."""

    name: str
    using: Setup
    evidence: Evidence
    pairs_per_model: int
    promised: Promises
    models: Models
    lost: Lost | None = None
    run: Run | None = None
    signals: Signals | None = None
    looks: Looks = ()
    control: Control | None = None
    beforehand: Declaration | None = None  # of scores
    who: Adversary | None = None  # of a game
    sampled: Sampled | None = None
    broken: tuple[Finding, ...] = ()  # of a game: what the claim rests on and was refuted
    direction: Direction | None = None  # of scores
    tables: int = 1  # of scores that were judged by the declaration

    @property
    def settings(self) -> AuditSettings:
        return self.using.settings

    @property
    def declaration(self) -> Declaration | None:
        return self.beforehand if self.run is None else self.run.declaration

    @property
    def undeclared(self) -> str:
        """What a guarantee rests on where nothing was declared."""
        return UNDECLARED if self.sampled is None else ONE_GAME

    def facts(self, delta: float) -> Facts:
        """For a bound at this δ."""
        return facts_of(self.evidence.judged, self.pairs_per_model, self.run, self.lost, delta=delta)

    @property
    def asked(self) -> Asked:
        settings = self.settings
        return settings.asked(
            self.pairs_per_model,
            stopped=self.facts(settings.delta).stopped,
            coins=self.evidence.coins,
            privacy=self.claimed_privacy,
            orthogonal=self.evidence.orthogonal,
        )

    @property
    def claimed_privacy(self) -> Privacy | None:
        """What the trainer promises, or was declared to; a control promises nothing."""
        if self.run is None:
            return self.evidence.privacy
        if self.run.plan.control:
            return None
        return judged_by_curve(self.run.privacy, self.run.plan.game.adjacency)

    @property
    def basis(self) -> Basis:
        """What the claim rests on."""
        if self.sampled is not None:
            return Basis(broken=self.broken, of="mechanism")
        probe, claim = None if self.run is None else self.run.probe, self.promised.claim
        return basis_of(claim, self.claimed_privacy, probe) if isinstance(claim, Claim) else Basis(probe)

    def decider(self, delta: float) -> tuple[Method, tuple[str, ...]]:
        """Who is held against the claim at this δ, and what must be said about it."""
        return judging(self.using.method or default_method(self.asked), self.facts(delta), delta=delta)

    def judge_of_any_training(self, delta: float) -> Method:
        """The default without a whole curve."""
        asked = replace(self.asked, by_mu=False, of_dpsgd=False)
        return judging(default_method(asked), self.facts(delta), delta=delta)[0]

    def judges(self, decider: Method, evidence: Evidence, delta: float) -> tuple[Judge, Judge | None]:
        """Who bounds any training, and who bounds by a whole curve."""
        facts = self.facts(delta)

        def judge(method: Method, by_mu: bool) -> Judge:
            form = method.form(evidence, by_mu=by_mu)
            return Judge(form, left(method, facts, evidence, form=form).promise)

        first = judge(decider, self.settings.by_mu)
        if first.method.condition(evidence) is None:
            return first, None
        return judge(self.judge_of_any_training(delta), False), first

    def counted_by(self, method: Method) -> Evidence:
        """The evidence; which guesses count is chosen for this method, and does not follow a δ that is tried later."""
        s, declared = self.settings, self.settings if self.run is None else self.run.declared
        fixed = method.fixed_number or s.by_mu
        counting = Counting(s.pooled_guesses, s.pooled_number, declared.delta, s.verdict_level, fixed, s.by_mu)
        return replace(self.evidence, counting=counting)


@contextmanager
def _guarded(using: Setup) -> Iterator[None]:
    """Around code of the user's: whatever it raises is one sentence."""
    with users_code(" and ".join(f"{own.what} {own.name}" for own in using.own)) if using.own else nullcontext():
        yield


def assemble(case: Case) -> Audit:
    with _guarded(case.using):
        return _assembled(case)


def _assembled(case: Case) -> Audit:
    settings, claim, run, trained = case.settings, case.promised.claim, case.run, case.sampled is None
    at_claim, by_mu = case.promised.delta, settings.by_mu
    judge_, caveats = case.decider(at_claim)
    evidence = case.counted_by(judge_)
    any_training, by_curve = case.judges(judge_, evidence, at_claim)
    kept = left(judge_, case.facts(at_claim), evidence, form=judge_.form(evidence, by_mu=by_mu))
    attack = None if run is None else case.using.attack
    who = case.who or adversary(evidence.judged, attack, case.signals, run)
    said = (
        *caveats,
        *beside(run, settings, case.looks, kept.promise),
        *unpromised(evidence, kept.why),
        *of_own_attack(case.using),
        *of_coins(case.declaration),
        *(of_tables(case.tables, settings.verdict_level) if kept.promise == "guaranteed" else ()),
        *((EITHER,) if case.direction == "either" else ()),
    )
    units = units_of(case.sampled)
    said = tuple(said_of(units, text) for text in said)
    undeclared = () if case.declaration is not None or kept.promise != "guaranteed" else (case.undeclared,)
    ruled = verdict(
        claim,
        evidence,
        judge=any_training,
        conditional=by_curve,
        several=case.pairs_per_model > 1,
        level=settings.verdict_level,
        delta=settings.delta,
        adversary=who,
        control=case.control,
        basis=case.basis,
        caveats=(*said, *undeclared),
        remaining=0 if run is None else run.progress.n_left,
    )
    posterior = estimate(evidence.tally, delta=settings.delta)
    ruled = ruled if trained else _of_samples(ruled)
    places = (Place(at_claim, settings.verdict_level), Place(settings.delta, settings.level))
    rows = rows_of_units(units, rows_of(case, evidence, (judge_, any_training.method), *places))
    shown = {bound.method: bound.value for bound in ruled.bounds if bound.promise == "guaranteed"}
    rows = tuple(replace(row, low=shown.get(row.method, row.low)) for row in rows)
    warnings = (
        *said,
        *failures(evidence.failed, run),
        *(saturated(evidence) if trained else ()),
        *case.promised.notes,
        *(said_of(units, text) for text in of_rows(posterior, rows, settings, trained=trained)),
        *(() if run is None else run.notes),
        *(() if case.sampled is None else case.sampled.warnings),
    )
    return Audit(
        settings=settings,
        evidence=evidence,
        facts=case.facts(settings.delta),
        posterior=posterior,
        rows=rows,
        bounds=ruled.bounds,
        claim=ruled.claim,
        adversary=who,
        run=run,
        attack=attack,
        signals=case.signals,
        name=case.name,
        source="run" if run is not None else "scores" if case.sampled is None else "mechanism",
        judge=judge_,
        own=case.using.own,
        verdict=ruled,
        promises=case.promised,
        models=case.models,
        privacy=case.claimed_privacy,
        looks=len(case.looks),
        declaration=case.declaration,
        direction=case.direction,
        warnings=warnings,
        sampled=case.sampled,
    )


def units_of(sampled: Sampled | None) -> Units:
    return "models" if sampled is None else "samples"


def rows_of(
    case: Case, evidence: Evidence, judges: tuple[Method, ...], bounds: Place, intervals: Place
) -> tuple[MethodRow, ...]:
    """Those that such an audit calls for, and those of the verdict's methods; none whose condition a probe refuted."""
    asked, facts, by_mu = case.asked, case.facts(bounds.delta), case.settings.by_mu
    names = [method.name for method in judges]
    shown = {name: method for name, method in METHODS.items() if method.called_for(asked) or name in names}
    found = (
        row_of(method, evidence, facts, bounds=bounds, intervals=intervals, by_mu=by_mu)
        for method in (shown | {method.name: method for method in judges}).values()
    )
    return tuple(row for row in found if row is not None and not (row.condition and case.basis.refuted))


def _of_samples(ruled: Verdict) -> Verdict:
    """Its bounds in words for samples of a mechanism."""

    def said(bound: Bound) -> Bound:
        texts = tuple(said_of("samples", text) for text in bound.assumptions)
        return replace(bound, assumptions=texts, counts=said_of("samples", bound.counts))

    curve = None if ruled.conditional_bound is None else said(ruled.conditional_bound)
    return replace(ruled, bound=said(ruled.bound), conditional_bound=curve, decided_by=said(ruled.decided_by))
