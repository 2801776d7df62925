"""The `[adversary]` table of a plan: what the adversary sees and knows of a training, and what it may insert."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from epsgauge.games.settings import GameSettings
from epsgauge.trainers.watch import CHANNELS

Preset = Literal[
    "auto",
    "api",
    "static-poisoning",
    "black-box",
    "hidden-state",
    "intermediate-models",
    "adaptive-poisoning",
    "white-box",
]
# From the weakest to the strongest: the hierarchy of Nasr et al. 2021, "Adversary instantiation" (arXiv:2101.04535),
# with two steps more. "black-box" knows the first weights beside what "static-poisoning" knows (Annamalai and De
# Cristofaro 2024), and "hidden-state" sees the last model alone (Cebere et al. 2024).
PRESETS: dict[Preset, dict[str, str]] = {
    "auto": {"sees": "auto", "inserts": "auto"},
    "api": {"sees": "losses", "inserts": "record"},
    "static-poisoning": {"sees": "losses", "inserts": "record", "start": "secret"},
    "black-box": {"sees": "losses", "inserts": "record"},
    "hidden-state": {"sees": "model", "inserts": "gradient"},
    "intermediate-models": {"sees": "updates", "inserts": "record"},
    "adaptive-poisoning": {"sees": "updates", "inserts": "adaptive"},
    "white-box": {"sees": "updates", "inserts": "gradient"},
}
GRADIENT = "gradient"  # the name of the canary that is one
POISONING = ("static-poisoning", "intermediate-models", "adaptive-poisoning")  # with records of the adversary's own


class AdversarySettings(BaseModel):
    """A preset sets `sees` and `inserts`; one that is given beside it counts.

    >>> AdversarySettings(preset="white-box")
    AdversarySettings(sees='updates', inserts='gradient', start=None)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    preset: Preset | None = Field(default=None, exclude=True, repr=False)
    # model: the last one alone; updates: those of every step; auto: updates if the trainer shows those of DP-SGD
    sees: Literal["auto", "losses", "model", "updates"] = "losses"
    # adaptive: records that are chosen anew at each step; gradient: ±C in a coordinate of its own, of no record;
    # auto: a record or a gradient, whichever the attack distinguishes better on held-out models
    inserts: Literal["auto", "record", "adaptive", "gradient"] = "record"

    # the first weights of torch models; None: known where canaries = "auto"
    start: Literal["known", "secret"] | None = None

    @property
    def is_black_box(self) -> bool:
        return self.model_dump() == AdversarySettings().model_dump()

    @property
    def is_open(self) -> bool:
        """Whether the trainer decides what it sees."""
        return self.sees == "auto"

    @property
    def watches(self) -> bool:
        """Whether the trainer is given a watch."""
        return self.sees in ("model", "updates")

    @property
    def inserts_gradients(self) -> bool:
        """Whether it may insert a gradient of its own."""
        return self.inserts in ("gradient", "auto")

    def taking(self, canary: str) -> AdversarySettings:
        """With the canary that was taken of records and a gradient."""
        inserts = "gradient" if canary == GRADIENT else "record"
        return self if self.inserts != "auto" else self.model_copy(update={"inserts": inserts})

    def check_game(self, game: GameSettings) -> str | None:
        """What is wrong with a game for this adversary, as a sentence."""
        if self.watches and game.sees != "pair":
            return f'adversary.sees = "{self.sees}" goes with game.sees = "pair", but got "{game.sees}". Remove it.'
        if self.preset == "api" and game.challenge != "average":
            return (
                'adversary.preset = "api" draws records at random, so challenge must be "average", but got '
                f'"{game.challenge}". Remove it, or use preset = "static-poisoning" or "black-box".'
            )
        if "auto" in (self.sees, self.inserts) and not game.auto:
            which = "pairs_per_model" if game.pairs_per_model != 1 else "challenge"
            return (
                f'adversary.inserts = "auto" tries records and a gradient, so canaries must be "auto", but got '
                f"game.{which} = {getattr(game, which)!r}. Remove it, or name another adversary."
            )
        if "auto" in (self.sees, self.inserts) and game.adjacency == "label-only":
            return (
                'adversary.inserts = "auto" tries a gradient, which belongs to no label, so game.adjacency must be '
                '"substitute" or "add-remove", but got "label-only". Use adversary.inserts = "record".'
            )
        if (self.preset in POISONING or self.inserts == "adaptive") and game.challenge != "explicit":
            who = f'preset = "{self.preset}"' if self.preset in POISONING else 'inserts = "adaptive"'
            return (
                f'adversary.{who} makes records of its own, so challenge must be "explicit", but got '
                f'"{game.challenge}". Remove it, or use preset = "api" or "black-box".'
            )
        if self.inserts == "adaptive" and game.pairs_per_model != 1:
            return (
                f'adversary.inserts = "adaptive" makes one guess per model, but got game.pairs_per_model = '
                f'{game.pairs_per_model}. Remove it, or use inserts = "gradient".'
            )
        if self.inserts == "gradient" and game.adjacency == "label-only":
            return (
                'adversary.inserts = "gradient" belongs to no label, so game.adjacency must be "substitute" or '
                '"add-remove", but got "label-only". Use adversary.inserts = "record".'
            )
        if self.inserts == "gradient" and (game.challenge != "average" or game.pool_size is not None):
            key = "challenge" if game.challenge != "average" else "pool_size"
            return (
                f'adversary.inserts = "gradient" needs no pairs of records, but got game.{key} = '
                f'{getattr(game, key)!r}. Remove it, or use adversary.inserts = "record".'
            )
        return None

    def check_attack(self, name: str, needs: Iterable[str]) -> str | None:
        """What is wrong with a built-in attack for this adversary, as a sentence."""
        wanted = next((sees for channel in needs if (sees := CHANNELS.get(channel)) not in (None, self.sees)), None)
        if wanted is not None:
            inserts = "gradient" if wanted == "model" else self.inserts
            keys = {"sees": wanted, "inserts": inserts}
            preset = next(preset for preset, of in PRESETS.items() if keys.items() <= of.items())
            return (
                f'audit.attack = "{name}" needs adversary.sees = "{wanted}", but got "{self.sees}". Use '
                f'adversary.preset = "{preset}", or another attack.'
            )
        if self.inserts != "record" and "loss" in needs:
            fits = "updates" if self.sees == "updates" else "displacement"
            return (
                f'audit.attack = "{name}" reads losses of records, which adversary.inserts = "{self.inserts}" does not '
                f'have. Use attack = "{fits}".'
            )
        return None

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("preset") not in PRESETS:
            return values
        return {**PRESETS[values["preset"]], **values}

    @model_validator(mode="after")
    def _consistent(self) -> AdversarySettings:
        if self.sees == "auto" and self.inserts != "auto":
            raise ValueError('sees = "auto" goes with inserts = "auto"')
        if self.inserts == "auto" and self.sees not in ("auto", "updates"):
            raise ValueError('inserts = "auto" needs sees = "updates" or "auto"')
        if self.inserts == "gradient" and self.sees == "losses":
            raise ValueError('inserts = "gradient" needs sees = "model" or "updates": a gradient has no loss')
        if self.inserts == "adaptive" and self.sees != "updates":
            raise ValueError('inserts = "adaptive" needs sees = "updates": who chooses at each step sees each step')
        if self.inserts == "record" and self.sees == "model":
            raise ValueError('sees = "model" goes with inserts = "gradient": use sees = "updates" for records')
        return self


# Of a plan that names none, and what it may get: losses alone; updates with the better of records and a gradient; or
# updates with a gradient, where the trainer cannot give gradients of records.
AUTO = AdversarySettings(sees="auto", inserts="auto")
BLACK_BOX = AdversarySettings()
BEST = AdversarySettings(sees="updates", inserts="auto")
GRADIENTS = AdversarySettings(sees="updates", inserts="gradient")
FOUND = (BLACK_BOX, BEST, GRADIENTS)
