"""The log of looks at a run's results, beside the store: what was seen before the end decides what a level is worth."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "looks.jsonl"


def append_look(
    folder: Path,
    kind: str,
    *,
    n_done: int,
    n_models: int,
    as_planned: bool | None = None,
    own: list[dict[str, Any]] | None = None,
) -> bool:
    """Add one look; False where the folder cannot be written, which is no reason to fail an audit.

    `as_planned`: whether all models were over and their number had been fixed before. `own`: the attack or method of
    the user's that it was made with.
    """
    when = datetime.now(UTC).isoformat(timespec="seconds")
    look: dict[str, Any] = {"time": when, "kind": kind, "n_done": n_done, "n_models": n_models}
    look |= {} if as_planned is None else {"as_planned": as_planned}
    look |= {"own": own} if own else {}
    line = json.dumps(look).encode() + b"\n"
    try:
        descriptor = os.open(folder / FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            os.lseek(descriptor, max(size - 1, 0), os.SEEK_SET)
            if size and os.read(descriptor, 1) != b"\n":
                line = b"\n" + line  # the line before was torn: this one must not be lost with it
            return os.write(descriptor, line) == len(line)  # one write, so that two processes cannot interleave
        finally:
            os.close(descriptor)
    except OSError:
        return False


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
