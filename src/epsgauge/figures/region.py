"""The privacy region R(ε, δ): its corners, and the line of the advantage bound that touches it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.stats import region as privacy
from epsgauge.stats.arrays import Floats


@dataclass(frozen=True)
class Region:
    """R(ε, δ) as a polygon: rows (FNR, FPR), counter-clockwise from the corner on the axis of FPR."""

    eps: float
    delta: float
    corners: Floats


@dataclass(frozen=True)
class Advantage:
    """The line FNR + FPR = 1 − bound (Theorem B.2) and the vertex of R(ε, δ) that it passes through."""

    region: Region
    bound: float
    line: Floats
    vertex: Floats


def region(*, eps: float, delta: float) -> Region:
    """The region as it is drawn."""
    return Region(eps, delta, privacy.vertices(eps=eps, delta=delta))


def advantage(*, eps: float, delta: float) -> Advantage:
    """The region with the line of its advantage bound, from axis to axis."""
    shown, bound = region(eps=eps, delta=delta), float(privacy.advantage_bound(eps=eps, delta=delta))
    rest = 1.0 - bound
    return Advantage(shown, bound, np.array([(0.0, rest), (rest, 0.0)]), shown.corners[1])
