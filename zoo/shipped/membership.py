"""Thousands of outputs with and without a record, and what a score of them says about the claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import epsgauge as eg
from zoo.shipped.cases import MISSES


def judge(
    score: Callable[[int, int], float],
    *,
    n: int,
    seed: int,
    eps: float,
    delta: float = 0.0,
    adjacency: str,
    threshold: float | None = None,
) -> dict[str, Any]:
    """`score(bit, seed)` of one output: higher where the record is in. A sixth choose a threshold that is not given.

    The exact bound judges: at this level, the weighted one is 0 for hundreds of outputs and δ = 1e-5.
    """
    rng = np.random.default_rng(seed)
    bits, seeds = rng.integers(0, 2, n), rng.integers(0, 2**31, n)
    values = np.array([score(int(bit), int(one)) for bit, one in zip(bits, seeds, strict=True)])
    table = eg.Scores(np.arange(n), np.zeros(n, int), bits, values, adjacency, bits="coins")
    rule = {} if threshold is None else {"rule": "given", "threshold": threshold}
    claim = {"claimed_eps": eps, "claimed_delta": delta, "claimed_adjacency": adjacency}
    audit = eg.audit(table, seed=seed, delta=delta, verdict_level=1 - MISSES, verdict_method="exact", **rule, **claim)
    return {
        "judged_by": "membership",
        "caught": audit.verdict.kind == "violation" and audit.verdict.promise == "guaranteed",
        "bound": round(audit.verdict.bound.value, 2),
        "claim": round(eps, 2),
        "n": n,
    }
