"""Plain tables as TOML text, so that a report can show a plan as a file that can be run again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from epsgauge.plain import spelled

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(tables: Mapping[str, Any]) -> str:
    """Single values first, then a table for each mapping; what is None is left out.

    >>> print(to_toml({"name": "a", "n_models": 10, "data": {"use": "digits", "size": None}}), end="")
    name = "a"
    n_models = 10
    <BLANKLINE>
    [data]
    use = "digits"
    """
    single = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    blocks = [_lines(single)] if single else []
    for key, table in tables.items():
        if isinstance(table, Mapping) and any(value is not None for value in table.values()):
            blocks.append(f"[{_key(key)}]\n{_lines(table)}")
    return "\n".join(blocks)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in values.items() if value is not None)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return repr(value) if isinstance(value, (int, float)) else _text(str(value))


def _text(text: str) -> str:
    """JSON's escapes are TOML's."""
    return spelled(json.dumps(text, ensure_ascii=False))
