"""A small picture of a posterior density for the terminal, in block characters."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np

from epsgauge.figures.density import Density
from epsgauge.stats.arrays import Floats

BLOCKS = " ▁▂▃▄▅▆▇█"
# With so much mass at 0 the rest of the density is not worth a curve.
MOSTLY_ZERO = 0.99


def sketch(picture: Density, *, width: int = 60, height: int = 6) -> list[str]:
    """Lines of text: the density, its axis, the claimed value, and the intervals below."""
    left, right = float(picture.x[0]), float(picture.x[-1])
    middle = left + (np.arange(width) + 0.5) * (right - left) / width
    density = np.interp(middle, picture.x, picture.pdf)
    heights = _heights(density if picture.mass_at_zero < MOSTLY_ZERO else 0.0 * density, height)
    claim = _column(picture.claimed, left, right, width) if _on_axis(picture.claimed, left, right) else None

    lines = []
    for row in range(height - 1, -1, -1):
        cells = [BLOCKS[int(np.clip(h - 8 * row, 0, 8))] for h in heights]
        if claim is not None and cells[claim] == " ":
            cells[claim] = "┊"
        atom = "┃" if picture.mass_at_zero >= 0.005 and left == 0 and row < height * picture.mass_at_zero else " "
        lines.append(f"{atom}{''.join(cells)}".rstrip())
    lines.append("└" + "─" * width)
    lines.append(_axis(left, right, width, picture.symbol))
    if picture.claimed is not None:
        lines.append(_claim_line(picture.claimed, claim, right, width))
    for bar in picture.bars:
        lines.append(_bar(bar.low, bar.high, left, right, width) + f" {bar.label}")
    return lines


def _on_axis(value: float | None, left: float, right: float) -> TypeGuard[float]:
    return value is not None and left <= value <= right


def _claim_line(claimed: float, column: int | None, right: float, width: int) -> str:
    text = f"claimed {claimed:.4g}"
    if column is None:  # off the axis
        return f"{text} ▸".rjust(width + 1) if claimed > right else f" ◂ {text}"
    if column + len(text) + 3 > width + 12:
        return f"{text} ┊".rjust(column + 2)
    return " " * (column + 1) + f"┊ {text}"


def _heights(density: Floats, height: int) -> Floats:
    top = density.max()
    return np.round(density / top * 8 * height) if top > 0 else np.zeros_like(density)


def _column(value: float, left: float, right: float, width: int) -> int:
    return int(np.clip((value - left) / (right - left) * width, 0, width - 1))


def _axis(left: float, right: float, width: int, symbol: str) -> str:
    step = _round_step((right - left) / 5)
    text = [" "] * (width + 12)
    tick = math.ceil(left / step - 1e-9) * step
    while tick <= right * (1 + 1e-9):
        label = f"{tick:.6g}"
        at = 1 + int((tick - left) / (right - left) * width) - (len(label) > 1) * (len(label) // 2)
        text[max(at, 0) : max(at, 0) + len(label)] = label
        tick += step
    line = "".join(text).rstrip()
    return f"{line:<{width + 2}} {symbol}"


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)


def _bar(low: float, high: float, left: float, right: float, width: int) -> str:
    """An interval as ┣━━┫; ▸ or ◂ where it goes on beyond the axis, ◆ where it is no wider than a cell."""
    cell = (right - left) / width
    start, end = (_column(value, left, right, width) for value in (low, min(high, right)))
    cells = [" "] * width
    cells[start : end + 1] = "━" * (end + 1 - start)
    cells[start], cells[end] = ("┣", "┫") if end > start else ("◆", "◆")
    if high > right + cell:
        cells[end] = "▸"
    if low < left - cell:
        cells[start] = "◂"
    return " " + "".join(cells)
