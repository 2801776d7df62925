"""Which two training sets count as neighbours: a point replaced, added or removed, or its label changed."""

from __future__ import annotations

from typing import Literal, get_args

from epsgauge.errors import InvalidInput

Adjacency = Literal["substitute", "add-remove", "label-only"]
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)
LABEL_DP = (
    "This is label DP: it is about the label of a record alone. It says nothing of how well its features are hidden, "
    "or that it is there."
)


def check_implied(claimed: Adjacency, game: Adjacency, name: str = "claimed_adjacency") -> None:
    """Refuse a claim that says nothing about the game."""
    if implies(claimed, game):
        return
    about = "the label of a point" if claimed == "label-only" else "replacing a point"
    other = "removing one" if game == "add-remove" else "replacing one"
    needed = "add-remove" if game == "add-remove" else "substitute or add-remove"
    kind = "an add-remove game" if game == "add-remove" else "a game of substitution"
    play = "a game of labels" if claimed == "label-only" else "a game of substitution"
    raise InvalidInput(
        f"{name} must be {needed} in {kind}, but got {claimed}: a claim about {about} implies nothing about {other}. "
        f"State the {needed} claim, or play {play}."
    )


def implies(claimed: Adjacency, game: Adjacency) -> bool:
    """Whether a claim says anything of a game: to replace a point is to remove and add one; a label is a part."""
    order: tuple[Adjacency, ...] = ("add-remove", "substitute", "label-only")  # each says something of those after it
    return order.index(claimed) <= order.index(game)


def checked(value: str, name: str = "adjacency") -> Adjacency:
    for known in ADJACENCIES:
        if value == known:
            return known
    raise InvalidInput(f'{name} must be "substitute", "add-remove" or "label-only", but got {value!r}.')
