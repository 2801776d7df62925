"""Whether noise has one size in all parameters, by what a watch sees where its gradient canaries are."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.numbers import number
from epsgauge.stats.arrays import Floats

FACTOR = 1.25  # by which noise may differ
FEWEST, BLOCKS = 20, 50  # canaries of a block of neighbouring parameters, and blocks
SPREADS = 6.0  # by which the least noise of all blocks is off at most, if it is what is stated


class Steady:
    """The deviation of numbers over steps, by their changes from one to the next: records pull about the same way."""

    def __init__(self) -> None:
        self._last: Floats | None = None
        self._squares: Floats | float = 0.0
        self._changes = 0

    def add(self, values: Floats) -> None:
        if self._last is not None:
            self._squares = self._squares + (values - self._last) ** 2
            self._changes += 1
        self._last = values

    @property
    def deviation(self) -> Floats | None:
        """None before the second step."""
        return np.sqrt(self._squares / (2 * self._changes)) if self._changes else None


def uneven(noise: Floats, *, stated: float, steps: int) -> str | None:
    """Why canaries are not worth models of their own, by the noise at each, in clipping norms, in their order.

    Records add to what is seen of noise and take nothing from it. So noise that is nowhere below the stated one is in
    order, and so is noise that is below it by the same factor everywhere, which the audit is to find.
    """
    n_blocks = min(BLOCKS, len(noise) // FEWEST)
    if n_blocks < 2 or steps < 2:
        return None
    squares = [float(np.mean(block**2)) for block in np.array_split(noise, n_blocks)]
    least, most = math.sqrt(min(squares)), math.sqrt(max(squares))
    spread = 0.5 * math.sqrt((3 * steps - 4) / (steps - 1) ** 2 / (len(noise) // n_blocks))
    less = math.exp(-SPREADS * spread) / FACTOR
    if least >= less * stated or least >= less * most:
        return None
    return (
        f"it needs noise of one size in all parameters, but the updates have {number(least)} clipping norms in some "
        f"and {number(most)} in others. Clipping by group or layer does that, as does a layer without noise. Gradient "
        "canaries need one clipping norm for the whole gradient"
    )
