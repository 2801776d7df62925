"""The last step of a grid at which a condition holds: a search whose result does not depend on where it begins.

A bound found to a tolerance by a root finder differs between machines by as much as that tolerance, because rounding
decides where it stops. On a grid fixed in advance, rounding matters only if the condition changes within rounding of
a step.
"""

from __future__ import annotations

from collections.abc import Callable


def last_step(holds: Callable[[int], bool], *, near: int, most: int) -> int:
    """The largest k of 0, 1, …, most at which `holds`, which is true up to some k and false beyond; −1 if it never is.

    The search begins at `near` and takes about 2 log2 |k − near| calls.

    >>> [last_step(lambda k: k * k <= 200, near=near, most=100) for near in (0, 14, 90)]
    [14, 14, 14]
    """
    low, high, width = -1, most + 1, 1  # it holds at low, and not at high
    at = min(max(near, 0), most)
    while high - low > 1:
        if holds(at):
            low = at
            at = at + width if high > most else (low + high) // 2
        else:
            high = at
            at = at - width if low < 0 else (low + high) // 2
        width *= 2
        at = min(max(at, low + 1), high - 1)
    return low
