"""Tallies for the four panels of Figure 8, of which the paper prints only the intervals.

Panel (a) is "after only 4 trials"; its interval is that of one guess of each kind. The tallies of the others are
not printed and cannot be told from their intervals, since many fit. `FOUND` are the first that `search` finds when
the number of samples grows in round steps; they are ours, not the paper's.
"""

from __future__ import annotations

import numpy as np

from epsgauge.paper.compare import rounds_to
from epsgauge.stats.arrays import Bools
from epsgauge.stats.posterior import estimate
from epsgauge.stats.region import eps_of_rates
from epsgauge.stats.tally import Tally

DELTA = 0.01
LEVEL = 0.95
# (ε−, ε+) of panels (a) to (d), as printed
PRINTED = (("0.0051", "3.1"), ("0.15", "3.5"), ("0.59", "1.5"), ("0.45", "0.80"))
# Panel (a) as the paper says; (b), (c) and (d) found by search(20, …), search(110, …) and search(600, …).
FOUND = (
    Tally(tp=1, tn=1, fp=1, fn=1),
    Tally(tp=11, tn=4, fp=1, fn=4),
    Tally(tp=40, tn=40, fp=15, fn=15),
    Tally(tp=195, tn=195, fp=105, fn=105),
)


def fits(tally: Tally, interval: tuple[str, str]) -> Bools:
    """Whether the 95 % credible interval at δ = 0.01 rounds to the printed one, for each tally of an array."""
    ours = estimate(tally, delta=DELTA).interval(LEVEL)
    ends = zip(np.atleast_1d(ours.low), np.atleast_1d(ours.high), strict=True)
    return np.array([rounds_to(low, interval[0]) and rounds_to(high, interval[1]) for low, high in ends])


def search(n_samples: int, interval: tuple[str, str]) -> list[Tally]:
    """Tallies of `n_samples` that fit, with at least a quarter of the samples on each side.

    Ordered by how balanced the sides are, then by how near the two rates; of the four that differ only in names
    and direction, the one with b = 1 at least as frequent and an attack better than chance.
    """
    low, high = (float(end) for end in interval)
    found = []
    for positives in range((n_samples + 1) // 2, n_samples - n_samples // 4 + 1):
        negatives = n_samples - positives
        fn, fp = (a.ravel() for a in np.meshgrid(np.arange(positives + 1), np.arange(negatives + 1), indexing="ij"))
        x, y = (fn + 0.5) / (positives + 1), (fp + 0.5) / (negatives + 1)
        # the value at the observed rates lies well inside the interval: this leaves few to integrate
        near = (x + y < 1) & (np.abs(eps_of_rates(x, y, delta=DELTA) - (low + high) / 2) < 0.3 * (high - low))
        if not near.any():
            continue
        fn, fp = fn[near], fp[near]
        tally = Tally(tp=positives - fn, tn=negatives - fp, fp=fp, fn=fn)
        found += [tally[i] for i in np.flatnonzero(fits(tally, interval))]
    return sorted(found, key=lambda t: (int(t.n_positive - t.n_negative), abs(float(t.fnr - t.fpr)), int(t.fn)))
