"""From the signals of a run to evidence: attack, rule, and the models that failed or are missing."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.auditing.basis import orthogonal
from epsgauge.auditing.setup import Setup
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.mechanisms.privacy import judged_by_curve
from epsgauge.methods.evidence import Evidence, Failed
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Choice, Given, Judged, SameData, Split, SplitPairs, judge
from epsgauge.settings import AuditSettings


def check_split(run: Run, settings: AuditSettings, cut: int, fit_pairs: int) -> None:
    """As a plan with these settings would be checked."""
    if settings.rule == "split" and cut >= run.plan.n_models:
        raise InvalidInput(
            f"audit.fit_models must be below n_models = {run.plan.n_models}, so that models are left to be judged, but "
            f"is {cut}."
        )
    if fit_pairs >= run.plan.game.pairs_per_model:
        raise InvalidInput(
            f"audit.fit_pairs must be below game.pairs_per_model = {run.plan.game.pairs_per_model}, so that pairs are "
            f"left to be judged, but is {fit_pairs}."
        )


def judge_signals(signals: Signals, using: Setup, cut: int, fit_pairs: int) -> Judged:
    """Attack and rule of a run; the models below number `cut` choose, as many of them as are done, or the first
    `fit_pairs` pairs of each model.
    """
    settings, fit = using.settings, int(np.sum(signals.models < cut))
    if settings.rule == "split" and fit == 0:
        raise InvalidInput(
            f"the first {cut} models choose the rule, but none of them is done. Wait for them, retry those that "
            'failed, or use rule = "given".'
        )
    if settings.rule == "split" and fit == len(signals):
        raise InvalidInput(
            f"the first {cut} models choose the rule, and no other one is done. Wait for more, or use fewer fit_models."
        )
    scores = Attack.scores(using.attack, signals)  # that of the base, which shows no bits
    choice = choice_of(settings, given_threshold(using, signals), cut, fit_pairs, None)
    return judge(scores, choice, delta=settings.delta, candidates=using.attack.candidates(signals.blind()))


def given_threshold(using: Setup, signals: Signals) -> float | None:
    """The threshold that the settings give, for the percentile too."""
    if using.settings.percentile is None:
        return using.settings.threshold
    return using.attack.threshold_at(using.settings.percentile, signals.blind())


def in_time(run: Run, signals: Signals, cut: int) -> tuple[Signals, Signals]:
    """The signals that count, and those that came too late: of models to be judged that had failed when results were
    seen. Else one could look, play these again, and look again, which would be two chances.
    """
    late = np.isin(signals.models, run.retried_after_look) & (signals.models >= cut)
    return signals[~late], signals[late]


def evidence_of(run: Run, judged: Judged, cut: int, late: Signals | None = None) -> Evidence:
    """What is missing in a run is neither done nor failed; while a model that chooses the rule is, none counts."""
    chose = judged.choice.fit_pairs if isinstance(judged.choice, SplitPairs) else 0
    bits = {f.index: f.bits for f in run.failed}
    if late is not None:
        bits |= dict(zip(late.models.tolist(), late.bits, strict=True))
    failed = tuple(Failed(index, bits[index][chose:]) for index in sorted(bits) if index >= cut)
    again = np.isin(judged.fit.model, run.retried_after_look)
    apart = {index: bits[index][: chose or None] for index in bits if chose or index < cut}
    apart |= {int(i): judged.fit.bit[judged.fit.model == i] for i in np.unique(judged.fit.model[again]) if i < cut}
    failed_apart = tuple(Failed(index, apart[index]) for index in sorted(apart))
    missing = np.setdiff1d(np.arange(run.plan.n_models), np.union1d(run.done, run.failed_models))
    end = float(missing[0]) if len(missing) else math.inf
    end = 0.0 if isinstance(judged.choice, Split) and end < cut else end
    of_curve = judged_by_curve(run.privacy, judged.judged.adjacency)
    return Evidence(judged, failed, failed_apart, end, of_curve, of_directions=orthogonal(run))


def choice_of(
    settings: AuditSettings, threshold: float | None, fit_models: int, fit_pairs: int, seed: int | None
) -> Choice:
    if threshold is not None:  # which the settings have for rule = "given" alone
        return Given(threshold)
    if settings.rule == "same-data":
        return SameData(settings.search, settings.target_fpr)
    if settings.rule == "split-pairs":
        return SplitPairs(fit_pairs, seed, settings.search, settings.target_fpr)
    return Split(fit_models, seed, settings.search, settings.target_fpr)
