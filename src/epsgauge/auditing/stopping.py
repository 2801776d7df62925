"""Stop a run when it has shown enough: `width<0.5`, or a violation, both by the bound that holds at every moment."""

from __future__ import annotations

import re
from dataclasses import dataclass

from epsgauge.auditing.claim import Claim, NoClaim, promises
from epsgauge.auditing.judged import evidence_of, in_time, judge_signals
from epsgauge.auditing.setup import setup_of
from epsgauge.errors import InvalidInput
from epsgauge.methods.table import WATCHED
from epsgauge.runner.plan import Plan
from epsgauge.runner.view import Run, results_of


@dataclass(frozen=True)
class StopWhen:
    """`width`: the interval of the audit's level is to be narrower than this; None: the claim is to be refuted."""

    text: str
    width: float | None

    @classmethod
    def parse(cls, text: str, plan: Plan) -> StopWhen:
        """What a user wrote, for this plan."""
        if text.replace(" ", "") == "violation":
            _check_rule(text, plan)
            return cls("violation", None)
        found = re.fullmatch(r"width<([0-9.eE+-]+)", text.replace(" ", ""))
        try:
            width = float(found[1]) if found else 0.0
        except ValueError:
            width = 0.0
        if not width > 0:
            raise InvalidInput(f'--stop-when must be "violation" or such as "width<0.5", but got {text!r}.')
        _check_rule(text, plan)
        if plan.game.pairs_per_model > 1:
            raise InvalidInput(
                f"--stop-when {text} needs one pair per model, but the plan has {plan.game.pairs_per_model}: of "
                'several the anytime bound has no upper end. Use "violation".'
            )
        return cls(f"width<{width:g}", width)

    def check(self, run: Run) -> None:
        """Refuse what can never be reached."""
        setup_of(run.plan.audit, {})  # which refuses an attack of the user's own: nothing but an audit loads it
        claim = None if self.width is not None else _claim(run)
        if isinstance(claim, NoClaim):
            raise InvalidInput(
                f"--stop-when violation needs a claim, but there is none to refute: {claim.reason} State claimed_eps, "
                "claimed_delta and claimed_adjacency in the plan, or leave out --stop-when."
            )

    def reached(self, run: Run) -> bool:
        """By the models in the order of their numbers, up to the first that is missing."""
        settings, cut = run.plan.audit, run.plan.n_fit
        signals, late = in_time(run, results_of(run).signals, cut)
        try:
            using = setup_of(settings, {}, control=run.plan.control)
            judged = judge_signals(signals, using, cut, run.plan.n_fit_pairs)
        except InvalidInput:  # too few models yet
            return False
        evidence = evidence_of(run, judged, cut, late)
        if self.width is not None:  # of the form that has an upper end
            found = WATCHED.found(evidence, delta=settings.delta, level=settings.level)
            return found is not None and found.high - found.low < self.width
        claim = _claim(run)
        if not isinstance(claim, Claim):
            return False
        method = WATCHED.form(evidence, by_mu=False)
        return method.lower_bound(evidence, delta=claim.delta, level=settings.verdict_level) > claim.eps


def _check_rule(text: str, plan: Plan) -> None:
    if plan.audit.rule == "split-pairs":
        raise InvalidInput(
            f'--stop-when {text} needs a rule that stays as it is, but rule = "split-pairs" is chosen by pairs of '
            'every model. Use rule = "split" or "given".'
        )


def _claim(run: Run) -> Claim | NoClaim:
    return promises(run.plan.audit, run.privacy, run.plan.game.adjacency, control=run.plan.control).claim
