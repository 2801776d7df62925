"""StatDP (Ding et al. 2018) on a mechanism of `mechanism_rows.py`, by `pystatdp`, which must be installed.

A sixth of the samples chooses an event, and the others test it, as its defaults divide them. Its p-value is for the
claimed ε. The same counts at other ε give a bound: the smallest ε that is not rejected.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

MOST = 100_000  # events that are tried: it tries all combinations of ten for each number of an output
NEAR = 0.001


class _Here:
    """A pool of this process alone."""

    _processes = 1

    @staticmethod
    def imap_unordered(function: Any, given: Any) -> Any:
        return map(function, given)


class _Algorithm:
    """As StatDP calls one: an output for each call. These are drawn together."""

    def __init__(self, row: Any, n: int) -> None:
        self.row, self.n, self.rng, self.drawn = row, n, np.random.default_rng(0), {}

    def __call__(self, data: Any, epsilon: float) -> list[Any]:
        key = str(data)
        for one in self.drawn.get(key, ()):
            return one
        outputs = np.asarray(self.row.mechanism(data, self.rng, self.n))
        outputs = outputs if outputs.ndim > 1 else outputs[:, None]
        self.drawn[key] = iter([list(one) for one in outputs])
        return next(self.drawn[key])


def figure(row: Any, *, samples: int, level: float) -> str:
    """Its bound of ε at δ = 0, and its p-value for the claim."""
    if row.delta or row.curve:
        return ""
    from pystatdp.core import run_algorithm
    from pystatdp.hypotest import test_statistics
    from pystatdp.selectors import select_event

    n_events, n_tests = samples // 12, 5 * samples // 12
    algorithm = _Algorithm(row, n_tests)
    tried = [np.unique(column) for column in zip(*(algorithm(row.d0, 0.0) for _ in range(n_events)), strict=True)]
    if np.prod([min(len(once), 10) if len(once) >= 0.002 * n_events else len(once) for once in tried]) > MOST:
        return "too many events"
    pair = [(row.d0, row.d1, {"epsilon": row.claim})]
    *_, event = select_event(algorithm, pair, row.claim, n_events, _Here(), quiet=True)
    ((high, low),), _ = run_algorithm(algorithm, row.d0, row.d1, pair[0][2], event, n_tests)
    bound = 0.0
    for steps in itertools.count(1):
        if test_statistics(high, low, steps * NEAR, n_tests) >= 1 - level:
            break
        bound = steps * NEAR
    return f"{bound:.3f} | p = {test_statistics(high, low, row.claim, n_tests):.2g}"
