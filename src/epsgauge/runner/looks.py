"""The log of looks beside a store of before schema 3; later ones have it inside, where it cannot be lost by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = "looks.jsonl"


def read_looks(folder: Path) -> list[dict[str, Any]]:
    """All looks, the oldest first; a line that was torn by a crash is left out."""
    try:
        lines = (folder / FILE).read_bytes().splitlines()
    except OSError:
        return []
    looks = []
    for line in lines:
        try:
            look = json.loads(line)
        except ValueError:
            continue
        if isinstance(look, dict):
            looks.append(look)
    return looks
