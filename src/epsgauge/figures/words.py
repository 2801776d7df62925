"""Short words that several pictures share."""

from __future__ import annotations

PROMISE_COLOUR = {"credible": "blue", "guaranteed": "green", "estimate": "grey"}


def eps_axis(delta: float) -> str:
    return f"ε at δ = {delta:g}"
