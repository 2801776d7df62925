"""Who attacked: the attack, its rule, what it saw and what it was allowed to do, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epsgauge.attacks.attack import Attack
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
    rule, access, canary = _rule(judged, percentile), attack.sees(signals), _canary(run.canary)
    return Adversary(attack.name, rule, access, percentile, canary, run.plan.powers)


def _canary(taken: Mapping[str, Any] | None) -> str | None:
    if taken is None:
        return None
    return f"canary {taken['name']} ({taken['meaning']}), the best of {len(taken['tried'])} that were tried"


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
