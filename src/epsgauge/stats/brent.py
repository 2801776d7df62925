"""Brent's root of a function of one number: what `scipy.optimize.brentq` does, step for step.

`scipy.optimize` takes longer to import than all that a command needs of epsgauge, NumPy aside.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_STEPS = 100


def root(f: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float = 2.0**-50) -> float:
    """Where f, whose signs at `low` and `high` differ, is 0, to xtol + rtol |x|.

    >>> round(root(lambda x: x * x - 2.0, 0.0, 2.0, xtol=1e-12), 9)
    1.414213562
    """
    old, new, other = low, high, low  # the last two points; the last and the other one are on both sides of the root
    f_old, f_new = f(old), f(new)
    f_other, last, step = f_old, 0.0, 0.0
    if f_old == 0:
        return old
    if f_new != 0 and (f_old < 0) == (f_new < 0):
        raise ArithmeticError("a function has the same sign at both ends")  # a defect of ours, never of the input
    for _ in range(MAX_STEPS):
        if f_new != 0 and (f_old < 0) != (f_new < 0):
            other, f_other = old, f_old
            last = step = new - old
        if abs(f_other) < abs(f_new):
            old, new, other = new, other, new
            f_old, f_new, f_other = f_new, f_other, f_new
        tolerance, half = (xtol + rtol * abs(new)) / 2, (other - new) / 2
        if f_new == 0 or abs(half) < tolerance:
            return new
        trial = 2 * half  # not to be taken
        if abs(last) > tolerance and abs(f_new) < abs(f_old):
            if old == other:
                trial = -f_new * (new - old) / (f_new - f_old)
            else:
                to_old, to_other = (f_old - f_new) / (old - new), (f_other - f_new) / (other - new)
                trial = -f_new * (f_other * to_other - f_old * to_old) / (to_other * to_old * (f_other - f_old))
        if 2 * abs(trial) < min(abs(last), 3 * abs(half) - tolerance):
            last, step = step, trial
        else:
            last = step = half
        old, f_old = new, f_new
        new += step if abs(step) > tolerance else (tolerance if half > 0 else -tolerance)
        f_new = f(new)
    raise ArithmeticError("a root was not found")  # a defect of ours, never of the input
