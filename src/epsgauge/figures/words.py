"""Short words that several pictures share."""

from __future__ import annotations

import math

from epsgauge.auditing import verdict

PROMISE_COLOUR = {"credible": "blue", "guaranteed": "green", "estimate": "grey"}


def number(value: float) -> str:
    """In three digits, with a real minus."""
    text = verdict.number(value)
    return "−" + text[1:] if text.startswith("-") else text


def chance(p: float) -> str:
    """A probability after its sign: "= 0.42", "< 0.001"."""
    if p < 0.001:
        return "< 0.001"
    return "> 0.999" if p > 0.999 else f"= {p:.3g}"


def eps_axis(delta: float) -> str:
    return f"ε at δ = {delta:g}"


def percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def span(low: float, high: float) -> str:
    """Both ends, in few digits."""
    if math.isinf(high):
        return f"{number(low)} – ∞"
    width = high - low
    if not width > 0:
        return f"{number(low)} – {number(high)}"
    decimals = max(2 if high < 100 else 0, min(6, 1 - math.floor(math.log10(width))))
    return f"{low:.{decimals}f} – {high:.{decimals}f}" if low else f"0 – {high:.{decimals}f}"


def count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
