"""Who attacked: the attack, its rule, what it saw and what it was allowed to do, in words."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.attacks.attack import Attack
from epsgauge.games.adversary import GRADIENT
from epsgauge.games.powers import Powers
from epsgauge.games.signals import Signals
from epsgauge.runner.view import Run
from epsgauge.scores.rules import Judged, Split, SplitPairs
from epsgauge.stats.arrays import Ints


@dataclass(frozen=True)
class Adversary:
    """What a verdict is relative to."""

    attack: str | None  # None: unknown, the scores were given
    rule: str
    access: str
    percentile: float | None = None  # that the threshold stands for, of the percentile attack
    canary: str | None = None  # the pair that it inserts, where that was made from the data, and why this one
    powers: Powers | None = None  # None: unknown, the scores were given

    def __str__(self) -> str:
        name = "the given scores" if self.attack is None else f"attack {self.attack}"
        with_canary = "" if self.canary is None else f"; {self.canary}"
        return f"{name}, {self.rule}; {self.access}{with_canary}"


def adversary(judged: Judged, attack: Attack | None, signals: Signals | None, run: Run | None) -> Adversary:
    """Of scores (without signals), or of an attack on the signals of a run, with the canary that it took."""
    if attack is None or signals is None or run is None:
        return Adversary(None, _rule(judged, None), "what it sees of a model is not known")
    percentile = attack.percentile_of(judged.threshold, signals)
    rule, access, canary = _rule(judged, percentile), attack.sees(signals), _canary(run)
    return Adversary(attack.name, rule, access, percentile, canary, run.powers)


def _canary(run: Run) -> str | None:
    taken = run.canary
    if taken is None:
        return None
    canary, tried = f"canary {taken['name']} ({taken['meaning']})", len(taken["tried"])
    if run.plan.adversary.inserts != "auto":
        return f"{canary}, the best of {tried} that were tried"
    best: dict[str, float] = taken["best"]
    others = [name for name in best if (name == GRADIENT) != (taken["name"] == GRADIENT)]
    how = f"{tried - 1} records and a gradient were tried on {taken['held_out']} held-out models, and"
    if not others:
        other = "a record" if taken["name"] == GRADIENT else "the gradient"
        return f"{canary}: {how} no model of {other} could be trained"
    record, gradient = (best[name] for name in sorted((taken["name"], others[0]), key=lambda name: name == GRADIENT))
    who = "no record" if taken["name"] == GRADIENT else "this record"
    apart = f"at least {record:.2f} standard deviations apart, against at most {gradient:.2f}"
    return f"{canary}: {how} {who} was surely distinguished better than the gradient ({apart})"


def _rule(judged: Judged, percentile: float | None) -> str:
    at = f"threshold {judged.threshold:.6g}" if percentile is None else f"percentile {percentile:.4g}"
    if judged.same_data:
        return f"{at} chosen on the data that are judged"
    if isinstance(judged.choice, Split):
        return f"{at} chosen on {_models(judged.fit_models)} set apart"
    if isinstance(judged.choice, SplitPairs):
        return f"{at} chosen on {len(judged.fit)} other pairs of the judged models"
    return f"{at} fixed beforehand"


def _models(models: Ints) -> str:
    return f"{len(models)} model{'s' if len(models) != 1 else ''}"
