"""The best pair of cuts: the largest ratio of the masses that two distributions give an interval, or all but it.

U(t) and V(t) are upper limits of Pr[score < t] and Pr[score ≥ t], right at all t at once. So [a, b) has at least the
mass 1 − U(a) − V(b) and at most U(b) + V(a) − 1, and all but it at least 2 − V(a) − U(b) and at most U(a) + V(b). Each
is a number of a plus a number of b, so the largest ratio over all pairs a ≤ b takes a few passes (Dinkelbach, 1967).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from epsgauge.stats.arrays import Floats

Event = Literal["inside", "outside"]
Limits = tuple[Floats, Floats]  # U and V at each of the ascending cuts
EVENTS: tuple[Event, ...] = ("inside", "outside")
# It takes 3 to 10.
MAX_PASSES = 100


@dataclass(frozen=True)
class Found:
    """An event, the places of its cuts, its least mass under one distribution and its largest under the other."""

    ratio: float
    event: Event
    a: int
    b: int
    least: float
    most: float


def best_pair(top: Limits, bottom: Limits, delta: float, ratio: float) -> Found | None:
    """The event with the largest ratio of its least mass under `top`, less δ, to its most under `bottom`.

    None if no pair of cuts has more than `ratio`, which is 1 or more.
    """
    found = None
    for event in EVENTS:
        least, most = _least(event, *top), _most(event, *bottom)
        for _ in range(MAX_PASSES):
            a, b = _largest_sum(least[0] - ratio * most[0], least[1] - ratio * most[1])
            mass, other = float(least[0][a] + least[1][b]), float(most[0][a] + most[1][b])
            if mass - delta <= ratio * other * (1.0 + 1e-14):
                break
            ratio = (mass - delta) / other
            found = Found(ratio, event, a, b, mass, other)
    return found


def _least(event: Event, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The least mass of the event: its parts of a and of b."""
    return (1.0 - u, -v) if event == "inside" else (1.0 - v, 1.0 - u)


def _most(event: Event, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    return (v - 1.0, u) if event == "inside" else (u, v)


def _largest_sum(first: Floats, second: Floats) -> tuple[int, int]:
    """The places a ≤ b with the largest first[a] + second[b]."""
    before = np.maximum.accumulate(first)
    b = int(np.argmax(before + second))
    return int(np.argmax(first[: b + 1])), b
