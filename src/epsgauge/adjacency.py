"""Which two training sets count as neighbours: one point replaced, or one point added or removed."""

from __future__ import annotations

from typing import Literal, get_args

from epsgauge.errors import InvalidInput

Adjacency = Literal["substitute", "add-remove"]
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)


def checked(value: str, name: str = "adjacency") -> Adjacency:
    for known in ADJACENCIES:
        if value == known:
            return known
    raise InvalidInput(f'{name} must be "substitute" or "add-remove", but got {value!r}.')
