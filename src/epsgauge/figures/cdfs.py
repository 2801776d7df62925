"""Distribution functions of several posteriors on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats
from epsgauge.stats.posterior import Posterior

POINTS = 300
TAIL = 0.005


@dataclass(frozen=True)
class Curve:
    """One posterior's distribution function along the common axis; it starts with the mass at 0."""

    label: str
    cdf: Floats


@dataclass(frozen=True)
class Cdfs:
    """Curves over one axis, which begins at 0 and ends where all of them are at 1 but for a small tail."""

    symbol: str
    x: Floats
    curves: tuple[Curve, ...]


def cdfs(posteriors: Mapping[str, Posterior]) -> Cdfs:
    """The curves of one or more posteriors of the same quantity, by label."""
    quantities = {p.quantity for p in posteriors.values()}
    if len(quantities) != 1 or any(p.shape for p in posteriors.values()):
        raise InvalidInput(
            f"curves are drawn of single posteriors of one quantity, but got {', '.join(sorted(quantities)) or 'none'}."
        )
    first = next(iter(posteriors.values()))
    right = max(float(p.isf(TAIL)) for p in posteriors.values())
    quantiles = [np.asarray(p.quantile(np.linspace(0.01, 0.99, 50))) for p in posteriors.values()]
    x = np.unique(np.concatenate([np.linspace(0.0, right, POINTS), *quantiles]))
    x = x[x <= right]
    return Cdfs(first.family.symbol, x, tuple(Curve(label, np.asarray(p.cdf(x))) for label, p in posteriors.items()))
