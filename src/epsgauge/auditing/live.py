"""The posterior so far, while a run is played: what the progress bar shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.auditing.judged import choice_of, given_threshold
from epsgauge.auditing.setup import Setup, setup_of
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Outcome, Signals, joined
from epsgauge.runner.view import Run, results_of
from epsgauge.scores.rules import SameData, judge
from epsgauge.scores.search import tally_at
from epsgauge.scores.table import Scores
from epsgauge.stats.posterior import Posterior, estimate
from epsgauge.stats.tally import CELLS, Tally

CHOOSING = "choosing the rule"
ELSEWHERE = "results: epsgauge audit"
TOGETHER = 256  # models that are scored at once
NONE = Tally(tp=0, tn=0, fp=0, fn=0)


class Live:
    """A running tally of the judged models; the posterior is computed when it is asked for.

    It begins with what the run holds and is told of every further model. Whoever shows its text logs a look at the run.
    Of a model its scores are kept and not its signals, which take far more: the attacks that are built in score each
    model by itself.
    """

    def __init__(self, run: Run) -> None:
        self._settings, self._n_fit, self._game = run.plan.audit, run.plan.n_fit, run.plan.game
        self._using = _built_in(run)
        self._fit_pairs = run.plan.n_fit_pairs
        self._over = {int(i) for i in (*run.done, *run.failed_models) if i < self._n_fit}
        signals = results_of(run).signals
        self._rehearsal = signals.rehearsal
        self._new = [signals] if len(signals) else []  # without scores yet
        self._one: Signals | None = None  # what says which channels there are
        self._scores: list[Scores] = []  # not in the tally yet
        self._scored = True  # whether all models could be
        self._threshold: float | None = None
        self._tally = NONE
        self._posterior: Posterior | None = None
        self._score()

    def add(self, outcome: Outcome) -> None:
        """One more model; one that failed is left out."""
        if outcome.index < self._n_fit:
            self._over.add(outcome.index)
        if outcome.channels is not None:
            self._new.append(Signals.of([outcome], self._game.adjacency, self._game.sees, self._rehearsal))
        if len(self._new) >= TOGETHER:
            self._score()

    @property
    def shows_results(self) -> bool:
        """Whether the last text had results in it, and was a look."""
        return self._posterior is not None

    def posterior(self) -> Posterior | None:
        """Of the models judged so far; None while the rule is being chosen, or cannot be."""
        self._score()
        if self._scores and self._one is not None and self._using is not None and self._scored:
            try:
                self._update(_joined(self._scores), self._one.blind(), self._using)
            except InvalidInput:  # these models cannot choose a rule: the audit will say why
                return None
        return self._posterior if self._scored else None

    def text(self) -> str:
        """Median and credible interval."""
        if self._using is None:
            return ELSEWHERE
        posterior = self.posterior()
        if posterior is None:
            return CHOOSING
        ends = posterior.interval(self._settings.level)
        return f"ε {posterior.median():.2f} [{ends.low:.2f}, {ends.high:.2f}]"

    def _score(self) -> None:
        """Keep of new models what the attack makes of them."""
        if self._new and self._using is not None and self._scored:
            signals = joined(self._new)
            try:
                scores = self._using.attack.scores(signals)
            except InvalidInput:  # the audit will say why
                self._scored = False
            else:
                self._one = signals[np.array([0])] if self._one is None else self._one
                self._scores.append(scores)
        self._new = []

    def _update(self, scores: Scores, one: Signals, using: Setup) -> None:
        s, candidates = self._settings, using.attack.candidates(one)
        if s.rule in ("same-data", "split-pairs"):  # every further model may change the rule
            self._scores = [scores]
            choice = choice_of(s, None, 0, self._fit_pairs, None)
            self._tally = judge(scores, choice, delta=s.delta, candidates=candidates).tally
        else:
            threshold = self._threshold
            if threshold is None:
                threshold = given_threshold(using, one)
            if threshold is None:
                if len(self._over) < self._n_fit:
                    return
                choosing = SameData(s.search, s.target_fpr)
                fit = scores[scores.model < self._n_fit]
                threshold = judge(fit, choosing, delta=s.delta, candidates=candidates).threshold
            self._threshold, self._scores = threshold, []
            more = tally_at(scores[scores.model >= self._n_fit], np.asarray(threshold))
            self._tally = Tally(**{c: getattr(self._tally, c) + getattr(more, c) for c in CELLS})
        if int(self._tally.n_samples):
            self._posterior = estimate(self._tally, delta=s.delta)


def _joined(parts: list[Scores]) -> Scores:
    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    first = parts[0]
    rows = (column("model"), column("pair"), column("bit"), column("score"))
    return Scores(*rows, first.adjacency, bits=first.bits)


def _built_in(run: Run) -> Setup | None:
    """None where the plan names an attack or method of the user's own, which nothing but the audit loads."""
    try:
        return setup_of(run.plan.audit, {}, control=run.plan.control)
    except InvalidInput:
        return None
