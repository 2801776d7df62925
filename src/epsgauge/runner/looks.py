"""The log of looks beside a store of before schema 3; later ones have it inside, where it cannot be lost by itself."""

from __future__ import annotations

import json
import os
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
