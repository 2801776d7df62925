"""The sequential test of González et al. (2025) on a mechanism of `mechanism_rows.py`; its code must be on the path.

Each of its observations is an output of either input. The first twenty of each choose the width of the kernel, as the
median distance, and are not judged. What is printed counts outputs: two for each observation, and forty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

GAMES, MOST, FIRST = 3, 5000, 20
HOPE = 1000  # observations after which a test that has gained nothing is given up


def figure(row: Any, *, samples: int, level: float) -> str:
    """How many outputs it takes until the claim is rejected, in games with seeds from 0 on."""
    if row.curve:
        return ""
    from numerical_experiments import OneSidedTwoSampleSequentialTest

    taken = []
    for seed in range(GAMES):
        rng = np.random.default_rng(seed)
        n = min(MOST, samples // 2)
        one, other = (np.asarray(row.mechanism(d, rng, n), dtype=np.float64).reshape(n, -1) for d in (row.d0, row.d1))
        width = float(np.median(pdist(np.concatenate([one[:FIRST], other[:FIRST]]))))
        test, at = OneSidedTwoSampleSequentialTest(row.claim, row.delta, width or 1.0), FIRST
        with np.errstate(all="ignore"):
            while at < n and not test.wealth >= 1 / (1 - level):
                test.step(one[at], other[at])
                at += 1
                if math.isnan(test.wealth) or (at == HOPE and test.wealth <= 1):
                    break  # it does not grow
        taken.append(2 * at if test.wealth >= 1 / (1 - level) else math.inf)
    return " | ".join(f"{t:,.0f}" if math.isfinite(t) else "not refuted" for t in taken)
