"""Which two training sets count as neighbours: one point replaced, or one point added or removed."""

from __future__ import annotations

from typing import Literal, get_args

from epsgauge.errors import InvalidInput

Adjacency = Literal["substitute", "add-remove"]
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)


def check_implied(claimed: Adjacency, game: Adjacency, name: str = "claimed_adjacency") -> None:
    """Refuse a claim that says nothing about the game."""
    if claimed == "substitute" and game == "add-remove":
        raise InvalidInput(
            f"{name} must be add-remove in an add-remove game, but got substitute: a claim about replacing a point "
            "implies nothing about removing one. State the add-remove claim, or play a game of substitution."
        )


def checked(value: str, name: str = "adjacency") -> Adjacency:
    for known in ADJACENCIES:
        if value == known:
            return known
    raise InvalidInput(f'{name} must be "substitute" or "add-remove", but got {value!r}.')
