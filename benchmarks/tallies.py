"""The tallies that the benchmarks measure on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Cells = tuple[int, int, int, int]  # tp, tn, fp, fn

DELTA = 1e-5
LEVEL = 0.90

# The 24 rows of the paper's tables, all at DELTA and LEVEL.
PAPER: tuple[Cells, ...] = (
    (31, 996, 5, 968),
    (31, 1002, 6, 961),
    (30, 979, 6, 985),
    (25, 1004, 7, 964),
    (2, 487, 0, 511),
    (0, 510, 1, 489),
    (2, 501, 0, 497),
    (1, 511, 0, 488),
    (63, 511, 2, 424),
    (84, 503, 5, 408),
    (39, 513, 3, 445),
    (21, 534, 2, 443),
    (179, 510, 3, 308),
    (103, 416, 92, 389),
    (81, 451, 65, 403),
    (82, 455, 81, 382),
    (487, 1, 512, 0),
    (492, 0, 508, 0),
    (484, 0, 516, 0),
    (461, 2, 534, 3),
    (175, 325, 188, 312),
    (173, 326, 182, 319),
    (183, 317, 199, 301),
    (177, 327, 209, 287),
)
REGIMES = ("small", "any rates", "near chance", "low FPR", "zeros")


def random_tallies(n: int, *, seed: int) -> NDArray[np.int64]:
    """n rows (tp, tn, fp, fn) that go through REGIMES in turn."""
    rng = np.random.default_rng(seed)
    regime = np.arange(n) % len(REGIMES)
    small, _, near_chance, low_fpr, zeros = (regime == i for i in range(len(REGIMES)))

    def trials() -> NDArray[np.int64]:
        large = np.exp(rng.uniform(np.log(1e2), np.log(1e4), n)).astype(np.int64)
        return np.where(small, rng.integers(1, 30, n), large)

    positives, negatives = trials(), trials()
    fnr, fpr = rng.uniform(0.02, 0.98, (2, n))
    fpr = np.where(near_chance, np.clip(1 - fnr + rng.normal(0, 0.02, n), 0, 1), fpr)
    fpr = np.where(low_fpr, np.exp(rng.uniform(np.log(1e-4), np.log(1e-2), n)), fpr)
    which = rng.integers(0, 3, n)  # no misses, no false alarms, or neither
    fnr = np.where(zeros & (which != 0), 0.0, fnr)
    fpr = np.where(zeros & (which != 1), 0.0, fpr)
    fn, fp = rng.binomial(positives, fnr), rng.binomial(negatives, fpr)
    return np.stack([positives - fn, negatives - fp, fp, fn], axis=1)
