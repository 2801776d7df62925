"""Updates as frameworks hold them: an array, or arrays in nested lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(tree: Any) -> list[Any]:
    """The arrays in order; those of a dict in the order of its keys, as in JAX.

    >>> leaves({"w": [1.0, 2.0], "b": (3.0,)})
    [3.0, 1.0, 2.0]
    """
    if isinstance(tree, Mapping):
        return [leaf for key in sorted(tree, key=str) for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def paths(tree: Any, prefix: str = "") -> list[str]:
    """The keys under which dicts hold the arrays, in the same order; empty for what is only in lists.

    >>> paths({"dense": {"w": [1.0, 2.0], "b": (3.0,)}})
    ['dense.b', 'dense.w', 'dense.w']
    """
    if isinstance(tree, Mapping):
        return [path for key in sorted(tree, key=str) for path in paths(tree[key], f"{prefix}.{key}".lstrip("."))]
    if isinstance(tree, list | tuple):
        return [path for part in tree for path in paths(part, prefix)]
    return [prefix]


def like(tree: Any, parts: Iterator[Any]) -> Any:
    """A tree of the same form with these leaves.

    >>> like({"w": [1.0, 2.0], "b": (3.0,)}, iter("abc"))
    {'w': ['b', 'c'], 'b': ('a',)}
    """
    if isinstance(tree, Mapping):
        made = {key: like(tree[key], parts) for key in sorted(tree, key=str)}
        return type(tree)({key: made[key] for key in tree})  # type: ignore[call-arg]
    if isinstance(tree, list | tuple):
        made_of = [like(part, parts) for part in tree]
        return type(tree)(*made_of) if hasattr(tree, "_fields") else type(tree)(made_of)
    return next(parts)
