"""The `[small]` table of a plan's file: values that replace the plan's own, for a run of minutes instead of days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest

SUFFIX = " (small)"  # of the name, so that no report of a small run passes for one of the plan
PARTS = ("data", "trainer")  # a text stands for a table with that `use`; which keys they have is known to them alone


def check(small: Any, keys: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Raise where the table has a key that the plan could not have. `keys` maps a key to those of its table, if any."""
    _needs_table("small", small)
    if "name" in small:
        raise InvalidInput(f"small.name cannot be set: a small run has the plan's name with{SUFFIX}. Remove it.")
    for key, value in small.items():
        _known(key, keys, "small")
        if key in PARTS:
            if not isinstance(value, str):
                _needs_table(f"small.{key}", value)
            continue
        inner = keys[key]
        if inner is None:
            continue
        _needs_table(f"small.{key}", value)
        for name in value:
            _known(name, inner, f"small.{key}")


def shrunk(values: dict[str, Any], small: dict[str, Any]) -> dict[str, Any]:
    """The plan with the values of its small table, key by key; all others stay, also those beside a replaced `use`.

    >>> shrunk({"name": "a", "n_models": 9, "trainer": {"use": "sgd", "epochs": 5}}, {"trainer": {"epochs": 1}})
    {'name': 'a (small)', 'n_models': 9, 'trainer': {'use': 'sgd', 'epochs': 1}}
    """
    both = merged({k: _table(k, v) for k, v in values.items()}, {k: _table(k, v) for k, v in small.items()})
    if isinstance(both.get("name"), str):
        both["name"] += SUFFIX
    return both


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """`old` with the values of `new`; tables that both have are merged likewise."""
    out = dict(old)
    for key, value in new.items():
        held = out.get(key)
        out[key] = merged(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
    return out


def _table(key: str, value: Any) -> Any:
    return {"use": value} if key in PARTS and isinstance(value, str) else value


def _needs_table(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a table of values, but got {value!r}.")


def _known(name: str, known: Mapping[str, Any], owner: str) -> None:
    if name not in known:
        hint = nearest(name, known) or f" There are: {', '.join(known)}."
        raise InvalidInput(f"{owner}.{name} is not a key of a plan.{hint}")
