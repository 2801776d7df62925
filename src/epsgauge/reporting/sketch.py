"""A small picture of a posterior density for the terminal, in block characters."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.figures.density import Density
from epsgauge.stats.arrays import Floats

BLOCKS = " ▁▂▃▄▅▆▇█"


def sketch(picture: Density, *, width: int = 60, height: int = 6) -> list[str]:
    """Lines of text: the density, its axis, the claimed value, and the intervals below."""
    left, right = float(picture.x[0]), float(picture.x[-1])
    middle = left + (np.arange(width) + 0.5) * (right - left) / width
    heights = _heights(np.interp(middle, picture.x, picture.pdf), height)
    claim = None if picture.claimed is None else _column(picture.claimed, left, right, width)

    lines = []
    for row in range(height - 1, -1, -1):
        cells = [BLOCKS[int(np.clip(h - 8 * row, 0, 8))] for h in heights]
        if claim is not None and cells[claim] == " ":
            cells[claim] = "┊"
        atom = "┃" if picture.mass_at_zero >= 0.005 and left == 0 and row < height * picture.mass_at_zero else " "
        lines.append(f"{atom}{''.join(cells)}".rstrip())
    lines.append("└" + "─" * width)
    lines.append(_axis(left, right, width, picture.symbol))
    if claim is not None and picture.claimed is not None:
        lines.append(" " * (claim + 1) + f"┊ claimed {picture.claimed:g}")
    for bar in picture.bars:
        lines.append(_bar(bar.low, bar.high, left, right, width) + f" {bar.label}")
    return lines


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
    start, end = _column(low, left, right, width), _column(min(high, right), left, right, width)
    cells = [" "] * (width + 1)
    cells[start + 1 : end + 1] = "━" * (end - start)
    cells[start + 1 if start + 1 <= width else width] = "┣" if low > left or low == 0 else "◂"
    cells[min(end + 1, width)] = "▸" if high > right else "┫"
    return "".join(cells)
