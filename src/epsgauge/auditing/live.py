"""The posterior so far, while a run is played: what the progress bar shows."""

from __future__ import annotations

import numpy as np

from epsgauge.auditing.judged import given_threshold, judge_signals
from epsgauge.auditing.setup import Setup, setup_of
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Outcome, Signals, joined
from epsgauge.runner.view import Run, results_of
from epsgauge.scores.rules import SameData, judge
from epsgauge.scores.search import tally_at
from epsgauge.stats.posterior import Posterior, estimate
from epsgauge.stats.tally import CELLS, Tally

CHOOSING = "choosing the rule"
ELSEWHERE = "results: epsgauge audit"
NONE = Tally(tp=0, tn=0, fp=0, fn=0)


class Live:
    """A running tally of the judged models; the posterior is computed when it is asked for.

    It begins with what the run holds and is told of every further model. Whoever shows its text logs a look at the run.
    """

    def __init__(self, run: Run) -> None:
        self._settings, self._n_fit, self._game = run.plan.audit, run.plan.n_fit, run.plan.game
        self._using = _built_in(run)
        self._fit_pairs = run.plan.n_fit_pairs
        self._over = {int(i) for i in (*run.done, *run.failed_models) if i < self._n_fit}
        signals = results_of(run).signals
        self._rehearsal = signals.rehearsal
        self._new = [signals] if len(signals) else []  # not in the tally yet
        self._threshold: float | None = None
        self._tally = NONE
        self._posterior: Posterior | None = None

    def add(self, outcome: Outcome) -> None:
        """One more model; one that failed is left out."""
        if outcome.index < self._n_fit:
            self._over.add(outcome.index)
        if outcome.channels is not None:
            self._new.append(Signals.of([outcome], self._game.adjacency, self._game.sees, self._rehearsal))

    @property
    def shows_results(self) -> bool:
        """Whether the last text had results in it, and was a look."""
        return self._posterior is not None

    def posterior(self) -> Posterior | None:
        """Of the models judged so far; None while the rule is being chosen, or cannot be."""
        if self._new and self._using is not None:
            try:
                self._update(joined(self._new), self._using)
            except InvalidInput:  # these models cannot choose a rule: the audit will say why
                return None
        return self._posterior

    def text(self) -> str:
        """Median and credible interval."""
        if self._using is None:
            return ELSEWHERE
        posterior = self.posterior()
        if posterior is None:
            return CHOOSING
        ends = posterior.interval(self._settings.level)
        return f"ε {posterior.median():.2f} [{ends.low:.2f}, {ends.high:.2f}]"

    def _update(self, signals: Signals, using: Setup) -> None:
        if self._settings.rule in ("same-data", "split-pairs"):
            self._new = [signals]  # every further model may change the rule
            self._tally = judge_signals(signals, using, 0, self._fit_pairs).tally
        else:
            threshold = self._threshold
            if threshold is None:
                threshold = given_threshold(using, signals)
            if threshold is None:
                if len(self._over) < self._n_fit:
                    return
                threshold = _chosen(signals[signals.models < self._n_fit], using)
            self._threshold, self._new = threshold, []
            judged = using.attack.scores(signals[signals.models >= self._n_fit])
            more = tally_at(judged, np.asarray(threshold))
            self._tally = Tally(**{c: getattr(self._tally, c) + getattr(more, c) for c in CELLS})
        if int(self._tally.n_samples):
            self._posterior = estimate(self._tally, delta=self._settings.delta)


def _built_in(run: Run) -> Setup | None:
    """None where the plan names an attack or method of the user's own, which nothing but the audit loads."""
    try:
        return setup_of(run.plan.audit, {}, control=run.plan.control)
    except InvalidInput:
        return None


def _chosen(signals: Signals, using: Setup) -> float:
    """The threshold that these models choose."""
    s, attack = using.settings, using.attack
    choice, candidates = SameData(s.search, s.target_fpr), attack.candidates(signals.blind())
    return judge(attack.scores(signals), choice, delta=s.delta, candidates=candidates).threshold
