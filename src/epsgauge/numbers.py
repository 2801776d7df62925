"""How a number is written, for people and for JSON."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any


def at_least(value: float) -> str:
    """A lower bound: three digits, rounded down.

    >>> at_least(1.33627), at_least(0.74), at_least(0.0), at_least(math.inf)
    ('1.33', '0.74', '0', '∞')
    """
    return _rounded(value, ROUND_FLOOR)


def at_most(value: float) -> str:
    """An upper bound: three digits, rounded up.

    >>> at_most(1.33127), at_most(7.0), at_most(math.inf)
    ('1.34', '7', '∞')
    """
    return _rounded(value, ROUND_CEILING)


def _rounded(value: float, rounding: str) -> str:
    return number(_digits(value, 3, rounding) if math.isfinite(value) else value)


def exactly(value: float) -> str:
    """All digits that a number was given with.

    >>> exactly(2.7518), exactly(8.0), exactly(1e-05)
    ('2.7518', '8', '1e-05')
    """
    return number(value) if math.isinf(value) else repr(float(value)).removesuffix(".0")


def number(value: float) -> str:
    """Three digits, a real minus, ∞ for infinity.

    >>> number(1.23456), number(-0.5), number(math.inf)
    ('1.23', '−0.5', '∞')
    """
    text = "∞" if math.isinf(value) else f"{abs(value):.3g}"
    return f"−{text}" if value < 0 else text


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers that differ, with as many digits as show it, and three at least.

    >>> told_apart(1.1, 1.0), told_apart(0.70000005, 0.7)
    (('1.1', '1'), ('0.70000005', '0.7'))
    """
    texts = ((f"{one:.{digits}g}", f"{other:.{digits}g}") for digits in range(3, 18))
    return next((both for both in texts if both[0] != both[1]), (number(one), number(other)))


def short(value: float, digits: int = 3, rounding: str | None = None) -> str:
    """A few decimals, ∞ for infinity, powers of ten where decimals would show nothing."""
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) < 0.5 * 10.0**-digits or abs(value) >= 1e6:
        return f"{_digits(value, 2, rounding):.2g}"
    if abs(value) >= 0.05 or digits > 3:
        return f"{_decimals(value, digits, rounding):.{digits}f}"
    return f"{_digits(value, 3, rounding):.3g}"


def interval_text(low: float, high: float, *, outward: bool = False) -> str:
    """[low, high] with as many decimals as its width needs; the ends of a guaranteed one are rounded `outward`.

    >>> interval_text(1.23456, 2.34561), interval_text(1.23456, 2.34561, outward=True)
    ('[1.235, 2.346]', '[1.234, 2.346]')
    """
    width = high - low
    digits = 3 if not 0 < width < 0.05 else min(9, 2 - math.floor(math.log10(width)))
    down, up = (ROUND_FLOOR, ROUND_CEILING) if outward else (None, None)
    return f"[{short(low, digits, down)}, {short(high, digits, up)}]"


def span(low: float, high: float, *, outward: bool = False) -> str:
    """low – high in a picture, where there is less room than in a table.

    >>> span(1.0864, 2.6549), span(1.0884, 2.6549, outward=True), span(0, math.inf)
    ('1.09 – 2.65', '1.08 – 2.66', '0 – ∞')
    """
    if math.isinf(high):
        return f"{at_least(low)} – ∞"
    width = high - low
    if not width > 0:
        return f"{number(low)} – {number(high)}"
    decimals = max(2 if high < 100 else 0, min(6, 1 - math.floor(math.log10(width))))
    down, up = (ROUND_FLOOR, ROUND_CEILING) if outward else (None, None)
    left, right = _decimals(low, decimals, down), _decimals(high, decimals, up)
    return f"{left:.{decimals}f} – {right:.{decimals}f}" if low else f"0 – {right:.{decimals}f}"


def _digits(value: float, n: int, rounding: str | None) -> float:
    """With so many digits; None leaves the rounding to whoever writes it."""
    return value if rounding is None else float(Context(prec=n, rounding=rounding).create_decimal(repr(float(value))))


def _decimals(value: float, n: int, rounding: str | None) -> float:
    """With so many decimals."""
    if rounding is None:
        return value
    return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-n), rounding, Context(prec=400)))


def grouped(value: float) -> str:
    """A whole number with thin gaps between thousands."""
    text = f"{value:,.0f}".replace(",", "\u2009") if abs(value) >= 10_000 else f"{value:.0f}"
    return text.replace("-", "−")


def count(n: int, what: str) -> str:
    """
    >>> count(1, "model"), count(20, "model")
    ('1 model', '20 models')
    """
    return f"{n} {what}{'' if n == 1 else 's'}"


def percent(share: float, digits: int = 12) -> str:
    """
    >>> percent(0.9), percent(0.995), percent(0.94997, digits=4)
    ('90 %', '99.5 %', '95 %')
    """
    return f"{100 * share:.{digits}g} %"


def level_percent(level: float) -> str:
    """A level with two digits of what it may miss.

    >>> level_percent(0.9), level_percent(1 - 0.01 / 3), level_percent(1 - 0.01 / 365)
    ('90 %', '99.67 %', '99.9973 %')
    """
    missed = 100 * (1 - level)
    decimals = max(0, 1 - math.floor(math.log10(missed))) if missed > 0 else 0
    text = f"{100 * level:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if decimals else text} %"


def change(ratio: float) -> str:
    """A change as −42 %; nothing where there is nothing to compare."""
    if math.isnan(ratio):
        return ""
    whole = round(100 * ratio)
    return f"{'−' if whole < 0 else '+' if whole > 0 else ''}{abs(whole)} %"


def probability(p: float) -> str:
    return "0" if p == 0 else f"{p:.3g}"


def likely(p: float) -> str:
    """A probability of something uncertain: one that would round to 1 is said to be above 0.999.

    >>> likely(0.4321), likely(0.99999)
    ('0.432', '> 0.999')
    """
    return "> 0.999" if p >= 0.9995 else probability(p)


def chance(p: float) -> str:
    """A probability after its sign.

    >>> chance(0.42), chance(1e-5), chance(0.99999)
    ('= 0.42', '< 0.001', '> 0.999')
    """
    return "< 0.001" if p < 0.001 else "> 0.999" if p > 0.999 else f"= {p:.3g}"


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
