"""Looks at results as rows of a store, and as the log that stores of before schema 3 have beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.runner.plain_files import open_plain

FILE = "looks.jsonl"
_MOST = 100_000_000  # bytes


def read_looks(folder: Path) -> list[dict[str, Any]]:
    """All looks, the oldest first; a line that was torn by a crash is left out."""
    try:
        with os.fdopen(open_plain(folder / FILE, os.O_RDONLY), "rb") as file:
            lines = file.read(_MOST).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"{folder / FILE} cannot be read: {error.strerror}. See whether you may read it.") from None
    looks = []
    for line in lines:
        try:
            look = json.loads(line)
        except ValueError:
            continue
        if isinstance(look, dict):
            looks.append(look)
    return looks


def row_of(look: Mapping[str, Any]) -> tuple[Any, ...]:
    """One that another version wrote may lack something."""
    own = look.get("own")
    texts, counts = (str(look.get(key, "")) for key in ("time", "kind")), (look.get(k) for k in ("n_done", "n_models"))
    planned = look.get("as_planned")
    numbers = (*(n if isinstance(n, int) else 0 for n in counts), None if planned is None else int(bool(planned)))
    return (*texts, *numbers, json.dumps(own) if own else None)


def look_of(row: tuple[Any, ...]) -> dict[str, Any]:
    """As it was logged: without what was not known."""
    look = dict(zip(("time", "kind", "n_done", "n_models"), row[1:], strict=False))
    planned, own = row[5:]
    look |= {} if planned is None else {"as_planned": bool(planned)}
    return look | ({"own": json.loads(own)} if own else {})
