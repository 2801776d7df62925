"""What the adversary of a plan may do, in words, and which claims cover it.

A violation refutes a claim only if the adversary stays inside what is claimed. So this stands beside every verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epsgauge.games.adversary import PRESETS, AdversarySettings, Preset
from epsgauge.games.settings import GameSettings

_SEES = {
    "auto": "sees the noisy update of every step if the trainer shows it, or queries the last model for losses",
    "losses": "queries the last model for losses",
    "model": "sees the first and the last model",
    "updates": "sees the noisy update of every step, and so every intermediate model",
}
_INSERTS = {
    "average": "draws {} at random, {}",
    "worst": "picks {} that leak most, {}",
    "explicit": "makes {} of its own before training, {}",
    "adaptive": "chooses records of its own anew at each step",
    "gradient": "adds a gradient of its own, which need not be that of any record",
    "auto": "makes {} of its own before training, {}, or adds a gradient of its own, whichever held-out models show to "
    "be better",
}
_EVERY = "Every claim of {} covers this."
_IF = "A claim covers this if it holds for {}, as those of DP-SGD's accountants do."


@dataclass(frozen=True)
class Powers:
    """Of an adversary: the preset that it is, or the nearest; what it may do, and which claims cover that."""

    preset: Preset
    may: str
    covered: str

    def __str__(self) -> str:
        return f"{self.may}. {self.covered}"


def powers(adversary: AdversarySettings, game: GameSettings, start: Literal["known", "secret"]) -> Powers:
    """`start`: whether the plan's adversary knows the first weights."""
    how = str(game.challenge) if adversary.inserts == "record" else adversary.inserts
    does = [_INSERTS[how].format(*_records(game)), _SEES[adversary.sees]]
    if start == "known" and adversary.sees == "losses":
        does.insert(1, "knows the first weights")
    may = f"{', '.join(does[:-1])}, and {does[-1]}"
    return Powers(_nearest(adversary, game, start), may, _covered(adversary, game))


def _records(game: GameSettings) -> tuple[str, str]:
    """What it inserts, and what becomes of that."""
    several = game.pairs_per_model > 1
    if game.adjacency == "add-remove":
        return "records" if several else "a record", f"{'each of ' if several else ''}which is trained on or not"
    if game.adjacency == "label-only":
        what = "records with two labels each" if several else "a record with two labels"
        return what, f"one of {'each' if several else 'which'} is trained on"
    return "pairs of records" if several else "two records", f"one of {'each' if several else 'which'} is trained on"


def _nearest(adversary: AdversarySettings, game: GameSettings, start: str) -> Preset:
    if adversary.sees == "losses":
        known: Preset = "black-box" if start == "known" else "static-poisoning"
        return known if game.challenge == "explicit" else "api"
    if adversary.inserts == "auto":
        return "auto"
    keys = {"sees": adversary.sees, "inserts": adversary.inserts}
    return next(name for name, of in PRESETS.items() if keys.items() <= of.items())


def _covered(adversary: AdversarySettings, game: GameSettings) -> str:
    if adversary.inserts_gradients:
        return _IF.format("every gradient of the clipping norm")
    if adversary.inserts == "adaptive":
        return _IF.format("records that are chosen while training goes on")
    if adversary.sees != "losses":
        return _IF.format("all intermediate models")
    return _EVERY.format("label DP" if game.adjacency == "label-only" else "differential privacy")
