"""Runs that are killed at random moments and resumed, as `make soak` does at length."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from faults.count import Count

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import killing

N_MODELS = 300


def campaign(n: int, seed: int, scratch: Path) -> list[Count]:
    """`n` kills of a run of models one by one, and of one of models in groups."""
    return [
        _of(parts, name, n, seed, scratch) for name, parts in (("", killing.ALONE), (" of groups", killing.TOGETHER))
    ]


def _of(parts: killing.Parts, name: str, n: int, seed: int, scratch: Path) -> Count:
    rng, count = random.Random(seed), Count(f"kills of a run{name}")
    killed, alone = scratch / f"killed{name}", scratch / f"alone{name}"
    share = max(1, N_MODELS // (n + 1))
    for i in range(n):
        kill = killing.kill_once(killed, N_MODELS, rng, whole_group=rng.random() < 0.5, share=share, parts=parts)
        count.tried += 1
        if kill.after < kill.before:
            count.bad("lost", f"kill {i} (seed {seed}) lost {kill.before - kill.after} models")
    killing.uninterrupted(killed, N_MODELS, 2, parts)
    killing.uninterrupted(alone, N_MODELS, 1, parts)
    if killing.rows(killed) != killing.rows(alone):
        count.bad("wrong", f"signals differ from those of a run left alone (seed {seed})")
    return count
