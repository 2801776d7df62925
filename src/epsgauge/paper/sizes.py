"""How an interval for ε shrinks with the number of samples, method by method, and where it is short enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.methods.table import QUICK
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.sizing import sample_size


@dataclass(frozen=True)
class Ends:
    """One method's interval along `n_samples`; at `reached` samples it is as short as wanted, on average."""

    method: str
    label: str
    low: Floats
    high: Floats
    reached: int | None
    at_reached: tuple[float, float] | None


@dataclass(frozen=True)
class Sizes:
    """Intervals for an attack of fixed balanced accuracy, with a band of ± half_width about `centre`.

    The band is straight, as in the paper, and goes through the middles of the intervals that are as short as wanted;
    so the ends of each method meet its edges where that method has enough samples.
    """

    accuracy: float
    delta: float
    level: float
    half_width: float
    n_samples: Floats
    centre: Floats
    methods: tuple[Ends, ...]


def sizes(n_samples: ArrayLike, *, accuracy: float, half_width: float, delta: float, level: float = 0.90) -> Sizes:
    """From the expected counts at each N in `n_samples`, half of them with b = 1."""
    n = checks.numbers("n_samples", n_samples)
    methods = []
    for name, method in QUICK.items():
        low, high = _ends(name, n, accuracy, delta, level)
        reached = sample_size(accuracy=accuracy, half_width=half_width, delta=delta, level=level, method=name)
        at = None
        if reached is not None:
            a, b = _ends(name, np.array([float(reached)]), accuracy, delta, level)
            at = (float(a[0]), float(b[0]))
        methods.append(Ends(name, method.label, low, high, reached, at))
    return Sizes(accuracy, delta, level, half_width, n, _centre(n, methods), tuple(methods))


def _centre(n: Floats, methods: list[Ends]) -> Floats:
    middles = [
        (m.reached, 0.5 * sum(m.at_reached)) for m in methods if m.reached is not None and m.at_reached is not None
    ]
    if not middles:
        return 0.5 * (methods[0].low + methods[0].high)
    x, y = np.transpose(middles)
    line = np.polynomial.Polynomial.fit(x, y, deg=min(1, len(middles) - 1))
    return np.asarray(line(n))


def _ends(name: str, n: Floats, accuracy: float, delta: float, level: float) -> tuple[Floats, Floats]:
    right, wrong = accuracy * n / 2, (1 - accuracy) * n / 2
    counts = Counts(tp=right, tn=right, fp=wrong, fn=wrong)
    return QUICK[name].ends(EpsAtDelta(np.full(n.shape, delta)), counts, 1.0 - level, JEFFREYS)
