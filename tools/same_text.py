"""Whether two texts are the same on different machines: words as words, numbers as numbers."""

from __future__ import annotations

import re

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
DRAWING = re.compile(r"(<svg.*?</svg>)", re.DOTALL)
CLOSE = 1e-9  # relative: what a CPU may round differently is smaller, and a rounded number must be as it is


def same_text(found: str, expected: str) -> bool:
    """Words must be equal, and whole numbers. In a drawing, a place may differ by one in its last digit.

    >>> same_text("ε ≥ 2.5443716636406135", "ε ≥ 2.5443716636406131"), same_text("ε ≥ 2.54", "ε ≥ 2.55")
    (True, False)
    """
    one, other = (DRAWING.split(text) for text in (found, expected))  # every second part is a drawing
    return len(one) == len(other) and all(
        _same(a, b, drawing=bool(i % 2)) for i, (a, b) in enumerate(zip(one, other, strict=True))
    )


def _same(found: str, expected: str, *, drawing: bool) -> bool:
    if NUMBER.split(found) != NUMBER.split(expected):
        return False
    pairs = zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True)
    return all(_close(a, b, drawing=drawing) for a, b in pairs)


def _close(found: str, expected: str, *, drawing: bool) -> bool:
    if found == expected:
        return True
    if not (drawing or ("." in found and "." in expected)):
        return False
    a, b = float(found), float(expected)
    digits = min(len(text.partition(".")[2]) for text in (found, expected))  # a trailing 0 is not written
    allowed = 1.001 * 10.0**-digits if drawing and "e" not in found + expected else 0.0
    return abs(a - b) <= max(allowed, CLOSE * abs(b))
