"""Numbers as people and JSON read them."""

from __future__ import annotations

import math
from typing import Any


def short(value: float, digits: int = 3) -> str:
    """A few decimals, ∞ for infinity, powers of ten where decimals would show nothing."""
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) < 0.5 * 10.0**-digits or abs(value) >= 1e6:
        return f"{value:.2g}"
    return f"{value:.{digits}f}" if abs(value) >= 0.05 or digits > 3 else f"{value:.3g}"


def interval_text(low: float, high: float) -> str:
    """[low, high] with as many decimals as its width needs."""
    width = high - low
    digits = 3 if not 0 < width < 0.05 else min(9, 2 - math.floor(math.log10(width)))
    return f"[{short(low, digits)}, {short(high, digits)}]"


def probability(p: float) -> str:
    return "0" if p == 0 else f"{p:.3g}"


def likely(p: float) -> str:
    """A probability of something uncertain: one that would round to 1 is said to be above 0.999.

    >>> likely(0.4321), likely(0.99999)
    ('0.432', '> 0.999')
    """
    return "> 0.999" if p >= 0.9995 else probability(p)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> [duration(s) for s in (0.0421, 3.2, 75, 7300)]
    ['42 ms', '3.2 s', '1 min 15 s', '2 h 1 min']
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def percent(ratio: float) -> str:
    """A change as −42 %; nothing where there is nothing to compare."""
    if math.isnan(ratio):
        return ""
    whole = round(100 * ratio)
    return f"{'−' if whole < 0 else '+' if whole > 0 else ''}{abs(whole)} %"


def json_number(value: float | None) -> float | str | None:
    """JSON has no infinity: it is the string "inf"; NaN, which means there is none, is null."""
    if value is None or math.isnan(value):
        return None
    return "inf" if math.isinf(value) else float(value)


def json_ready(value: Any) -> Any:
    """A structure of dicts and lists with every number made fit for JSON."""
    if isinstance(value, dict):
        return {k: json_ready(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(v) for v in value]
    return json_number(value) if isinstance(value, float) else value
