"""The `[game]` table of a plan: which experiment is played, and with which points."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from epsgauge.adjacency import Adjacency
from epsgauge.games.signals import Sees

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
    challenge: Challenge = "average"
    pool_size: int | None = Field(default=None, ge=1)  # K, from which pairs are drawn; None: all that is left
    ranking_models: int = Field(default=64, ge=32)  # for challenge = "worst"
    canaries: str | None = None  # for challenge = "explicit": a built-in name or "module:attr"
    reference_size: int = Field(default=200, ge=1)
    points_seed: int | None = Field(default=None, ge=0)  # which points play which part; None: the seed of the run

    @property
    def pairs_are(self) -> Literal["fixed", "fresh"]:
        if self.pairs is not None:
            return self.pairs
        return "fixed" if self.challenge == "explicit" else "fresh"

    @property
    def points_per_pair(self) -> int:
        """A pair of an add-remove game is one point, in or out."""
        return 2 if self.adjacency == "substitute" else 1

    @property
    def experiment(self) -> str:
        """The paper's name of the game."""
        if self.sees == "z0":
            return "MIA"
        if self.pairs_are == "fixed" and self.base == "fixed" and self.pairs_per_model == 1:
            return "IND-MIA"
        return f"MIA^{self.pairs_per_model}"

    @model_validator(mode="after")
    def _consistent(self) -> GameSettings:
        if self.pairs_per_model >= self.train_size:
            raise ValueError(f"pairs_per_model must be below train_size = {self.train_size}")
        if self.challenge == "explicit" and self.canaries is None:
            raise ValueError('challenge = "explicit" needs the key canaries, a function as "module:attr"')
        if self.challenge != "explicit" and self.canaries is not None:
            raise ValueError('canaries goes with challenge = "explicit"')
        if self.challenge == "worst" and self.pool_size is None:
            raise ValueError('challenge = "worst" needs pool_size, the number of points that pairs are drawn from')
        if self.challenge == "explicit" and self.pool_size is not None:
            raise ValueError('pool_size goes with challenge = "average" or "worst"')
        if self.sees == "z0" and self.adjacency != "substitute":
            raise ValueError('sees = "z0" is a game of substitution: an add-remove game has no z0')
        if self.sees == "z0" and (self.base, self.pairs_are) != ("resampled", "fresh"):
            raise ValueError('sees = "z0" goes with base = "resampled" and pairs = "fresh"')
        return self
