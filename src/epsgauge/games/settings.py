"""The `[game]` table of a plan: which experiment is played, and with which points."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from epsgauge.adjacency import Adjacency
from epsgauge.data.canaries.table import AUTO, WRONG_LABELS
from epsgauge.games.signals import Sees

LEARNING = 64  # models set apart for an attack that learns, half of them with each point

Challenge = Literal["average", "worst", "explicit"]


class GameSettings(BaseModel):
    """IND-MIA (Experiment 1) has fixed pairs, MIA^m (Experiment 2) fresh ones, MIA (appendix) a fresh base too."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    train_size: int = Field(ge=2)  # n, the size of a training set
    pairs_per_model: int = Field(default=1, ge=1)  # m
    adjacency: Adjacency = "substitute"
    base: Literal["fixed", "resampled"] = "fixed"  # S, or the part of it that no pair provides
    pairs: Literal["fixed", "fresh"] | None = None  # None: fixed where the pairs are explicit, else fresh
    sees: Sees = "pair"  # z0: the adversary of the appendix, who gets one point
    # None: canaries where the game is that of one pair, else points drawn at random
    challenge: Challenge | None = None
    pool_size: int | None = Field(default=None, ge=1)  # K, from which pairs are drawn; None: all that is left
    ranking_models: int = Field(default=64, ge=32)  # for challenge = "worst"
    # for challenge = "explicit": a name, "module:attr", or "auto" for the best of those that can be made from the data
    canaries: str | None = None
    # on which "auto" tries canaries; None: a quarter as many. And on which the attack learns; None: 64 if it has to
    rehearsal_models: int | None = Field(default=None, ge=1)
    control_models: int | None = Field(default=None, ge=0)  # without noise; None: a tenth as many, from 8 to 64
    reference_size: int = Field(default=200, ge=1)
    population: bool | None = None  # whether losses on reference points are kept point by point too
    points_seed: int | None = Field(default=None, ge=0)  # which points play which part; None: the seed of the run

    @property
    def auto(self) -> bool:
        """Whether the canary is the best of several, found in a rehearsal."""
        return self.canaries == AUTO

    def n_control(self, n_models: int) -> int:
        """How many models are trained without noise, to see whether the attack finds anything."""
        return min(max(n_models // 10, 8), 64) if self.control_models is None else self.control_models

    def n_learning(self, learns: bool) -> int:
        """How many models are set apart for the attack, beside those that try canaries; `learns`: whether it has to."""
        if learns:
            return LEARNING if self.rehearsal_models is None else self.rehearsal_models
        return 0 if self.auto else self.rehearsal_models or 0

    @property
    def pairs_are(self) -> Literal["fixed", "fresh"]:
        if self.pairs is not None:
            return self.pairs
        return "fixed" if self.challenge == "explicit" else "fresh"

    @property
    def points_per_pair(self) -> int:
        """A pair of an add-remove game is one point, in or out."""
        return 1 if self.adjacency == "add-remove" else 2

    @property
    def experiment(self) -> str:
        """The paper's name of the game."""
        if self.sees == "z0":
            return "MIA"
        if self.pairs_are == "fixed" and self.base == "fixed" and self.pairs_per_model == 1:
            return "IND-MIA"
        return f"MIA^{self.pairs_per_model}"

    @model_validator(mode="before")
    @classmethod
    def _challenged(cls, values: Any) -> Any:
        """A game that names no challenge has the strongest that needs nothing from the user. Only keys that say so
        make it a weaker one.
        """
        if not isinstance(values, dict) or values.get("challenge") is not None:
            return values
        if values.get("canaries") is not None:
            return {**values, "challenge": "explicit"}
        drawn = values.get("pairs_per_model", 1) != 1 or values.get("sees", "pair") != "pair"
        if values.get("adjacency") == "label-only":  # all pairs are made, as no two points of the data are one
            return {**values, "challenge": "explicit", "canaries": WRONG_LABELS if drawn else AUTO}
        if drawn:
            return {**values, "challenge": "average"}
        for key, said in (("pool_size", values.get("pool_size")), ("pairs", values.get("pairs"))):
            if said not in (None, "fixed"):
                raise ValueError(
                    f"{key} = {_spelled(said)} is for pairs that are drawn from ordinary records, a weaker adversary "
                    f'than the default canary: say challenge = "average" or "worst" too, or remove {key}'
                )
        return {**values, "challenge": "explicit", "canaries": AUTO}

    @model_validator(mode="after")
    def _consistent(self) -> GameSettings:
        if self.pairs_per_model >= self.train_size:
            raise ValueError(f"pairs_per_model must be below train_size = {self.train_size}")
        if self.challenge == "explicit" and self.canaries is None:
            raise ValueError('challenge = "explicit" needs the key canaries, a function as "module:attr"')
        if self.challenge != "explicit" and self.canaries is not None:
            raise ValueError('canaries goes with challenge = "explicit"')
        if self.auto and (self.pairs_per_model, self.pairs_are) != (1, "fixed"):
            raise ValueError('canaries = "auto" goes with one pair, which is fixed')
        if self.challenge == "worst" and self.pool_size is None:
            raise ValueError('challenge = "worst" needs pool_size, the number of points that pairs are drawn from')
        if self.challenge == "explicit" and self.pool_size is not None:
            raise ValueError('pool_size goes with challenge = "average" or "worst"')
        if self.adjacency == "label-only" and self.challenge != "explicit":
            raise ValueError(
                f'adjacency = "label-only" needs two labels at one place: remove challenge, or use canaries = '
                f'"{WRONG_LABELS}" or "auto"'
            )
        if self.sees == "z0" and self.adjacency != "substitute":
            raise ValueError('sees = "z0" is a game of substitution: an add-remove game has no z0')
        if self.sees == "z0" and (self.base, self.pairs_are) != ("resampled", "fresh"):
            raise ValueError('sees = "z0" goes with base = "resampled" and pairs = "fresh"')
        return self


def _spelled(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
