"""A canvas for pictures on the web: marks, text, axes and keys, written as one `<svg>`. It knows no statistics.

Colours and sizes of letters are classes, which `css.STYLE` defines, so that a picture follows light and dark and needs
no style attribute. Letters grow on narrow screens: everything is laid out for their largest size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from epsgauge.figures.labels import ARROW, LINE, SIZE, TURNED, WIDTH, Placed, shortened, wide
from epsgauge.figures.scales import Scale, tick_names, ticks
from epsgauge.plain import escape


def number(value: float) -> str:
    """A coordinate, short."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


@dataclass(frozen=True)
class Entry:
    """One entry of a key: a sample of the mark, and what it means."""

    shape: Literal["line", "box", "dot"]
    look: str
    text: str


@dataclass
class Picture:
    """One picture while it is drawn; `done` writes it. Classes are those of `css.STYLE`."""

    kind: str
    height: float
    title: str
    description: str
    prefix: str = ""
    width: float = WIDTH
    parts: list[str] = field(default_factory=list)
    clips: int = 0
    scales: dict[str, str] = field(default_factory=dict)  # what a script needs to read values off the picture

    @property
    def name(self) -> str:
        """The beginning of every id."""
        return re.sub(r"[^A-Za-z0-9_-]", "-", f"{self.prefix}{self.kind}")

    def line(self, x1: float, y1: float, x2: float, y2: float, look: str, tip: str = "") -> None:
        self._mark("line", look, tip, x1=x1, y1=y1, x2=x2, y2=y2)

    def rect(self, x: float, y: float, width: float, height: float, look: str, tip: str = "") -> None:
        self._mark("rect", look, tip, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0))

    def dot(self, x: float, y: float, look: str, r: float = 5.0, tip: str = "") -> None:
        self._mark("circle", look, tip, cx=x, cy=y, r=r)

    def path(
        self, x: Sequence[float], y: Sequence[float], look: str, *, closed: bool = False, tip: str = "", clip: str = ""
    ) -> None:
        """A line through points."""
        steps = _thinned(x, y)
        where = "M" + "L".join(steps) + ("Z" if closed else "")
        self._raw("path", look, f' d="{where}"' + (f' clip-path="url(#{clip})"' if clip else ""), tip)

    def outline(self, rings: Iterable[tuple[Sequence[float], Sequence[float]]], look: str, *, clip: str = "") -> None:
        """An area with holes: every second ring is one."""
        where = "".join("M" + "L".join(_thinned(x, y)) + "Z" for x, y in rings)
        self._raw(
            "path", look, f' fill-rule="evenodd" d="{where}"' + (f' clip-path="url(#{clip})"' if clip else ""), ""
        )

    def band(
        self, x: Sequence[float], low: Sequence[float], high: Sequence[float], look: str, *, clip: str = ""
    ) -> None:
        """The area between two lines."""
        self.path([*x, *reversed(x)], [*low, *reversed(high)], look, closed=True, clip=clip)

    def arrow(self, x: float, y: float, look: str, *, left: bool = False) -> None:
        """A head that points on along a bar."""
        back = ARROW if left else -ARROW
        self.path([x, x + back, x + back], [y, y - 0.7 * ARROW, y + 0.7 * ARROW], look, closed=True)

    def text(
        self, x: float, y: float, text: str, look: str = "", *, anchor: str = "start", turned: bool = False
    ) -> None:
        """y is the baseline."""
        where = f' x="{number(x)}" y="{number(y)}"'
        if anchor != "start":
            where += f' text-anchor="{anchor}"'
        if turned:
            where += f' transform="rotate(-90 {number(x)} {number(y)})"'
        kind = f' class="{look}"' if look else ""
        self.parts.append(f"<text{where}{kind}>{escape(text)}</text>")

    def words(self, x: float, y: float, parts: Sequence[tuple[str, str]], look: str = "") -> None:
        """Words of several looks after each other on one line."""
        spans = " ".join(f'<tspan class="{each}">{escape(text)}</tspan>' for text, each in parts)
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}" class="{look}">{spans}</text>')

    def flags(self, places: Sequence[Placed]) -> None:
        """Texts at the top of the picture, with their stems behind them."""
        for p in places:
            if p.flag.stem is not None:
                self.line(p.flag.x, LINE * (p.row + 1) + 2, p.flag.x, p.flag.stem, p.flag.stem_look)
        for p in places:
            self.text(p.at, LINE * (p.row + 1) - 4, p.flag.text, f"{p.flag.look} halo".strip(), anchor=p.anchor)

    def clip(self, x: float, y: float, width: float, height: float) -> str:
        """What is drawn with this name shows inside the rectangle alone."""
        self.clips += 1
        name = f"{self.name}-clip{self.clips}"
        box = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self.parts.append(f'<clipPath id="{name}"><rect {box}/></clipPath>')
        return name

    def key(self, entries: Sequence[Entry], left: float, right: float, y: float) -> float:
        """What the marks mean, in as many rows as are needed; returns the y below them."""
        x = left
        for entry in entries:
            length = 34 + wide(entry.text)
            if x > left and x + length > right:
                x, y = left, y + LINE
            if entry.shape == "box":
                self.rect(x, y - 12, 24, 12, entry.look)
            elif entry.shape == "dot":
                self.dot(x + 12, y - 6, entry.look)
            else:
                self.line(x, y - 6, x + 24, y - 6, entry.look)
            self.text(x + 30, y, shortened(entry.text, right - x - 30), "label")
            x += length + 12
        return y + 0.4 * LINE

    # Axes

    def value_axis(self, scale: Scale, y: float, label: str, most: int = 8) -> None:
        """An x axis with as many round numbers as there is room for."""
        values = ticks(scale.low, scale.high, most)
        while len(values) > 2 and sum(wide(n) + 14 for n in tick_names(values)) > scale.length:
            most -= 1
            values = ticks(scale.low, scale.high, most)
        self.x_axis(scale, y, values, tick_names(values), shortened(label, self.width - 16))

    def x_axis(self, scale: Scale, y: float, values: Sequence[float], names: Sequence[str], label: str) -> None:
        """A line with ticks and names below it, and the label below them. It is 2.2 lines high."""
        self.scales |= {"x": scale.text, "of": label}
        self.line(scale.start, y, scale.end, y, "axis")
        self._x_names(scale, y, values, names)
        if label:
            half = 0.5 * wide(label)
            middle = min(max((scale.start + scale.end) / 2, half), self.width - half)
            self.text(middle, y + 5 + 2 * LINE, label, "label", anchor="middle")

    def _x_names(self, scale: Scale, y: float, values: Sequence[float], names: Sequence[str]) -> None:
        for value, name in zip(values, names, strict=True):
            x = scale(value)
            self.line(x, y, x, y + 5, "axis")
            half = 0.5 * wide(name)
            self.text(min(max(x, half), self.width - half), y + 5 + 0.85 * LINE, name, "tick", anchor="middle")

    def y_label(self, scale: Scale, text: str) -> None:
        """What a y axis shows, along it."""
        self.text(TURNED, (scale.start + scale.end) / 2, text, "label", anchor="middle", turned=True)

    def y_axis(self, scale: Scale, x: float, values: Sequence[float], names: Sequence[str], *, to: float) -> None:
        """Names left of x, and pale lines from there to `to`."""
        self.scales["y"] = scale.text
        for value, name in zip(values, names, strict=True):
            y = scale(value)
            self.line(x, y, to, y, "grid")
            self.text(x - 6, y + 0.34 * SIZE, name, "tick", anchor="end")

    def done(self) -> str:
        """The whole picture as text."""
        n = self.name
        box = f"0 0 {number(self.width)} {number(self.height)}"
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="eg" viewBox="{box}" role="img" '
        head += f'aria-labelledby="{n}-t {n}-d"'
        head += "".join(f' data-{key}="{escape(text)}"' for key, text in self.scales.items()) + ">"
        about = f'<title id="{n}-t">{escape(self.title)}</title><desc id="{n}-d">{escape(self.description)}</desc>'
        return head + about + "".join(self.parts) + "</svg>"

    def _mark(self, tag: str, look: str, tip: str, **places: float) -> None:
        self._raw(tag, look, "".join(f' {key}="{number(value)}"' for key, value in places.items()), tip)

    def _raw(self, tag: str, look: str, where: str, tip: str) -> None:
        inside = f"><title>{escape(tip)}</title></{tag}>" if tip else "/>"
        self.parts.append(f'<{tag} class="{look}"{where}{inside}')


def _thinned(x: Sequence[float], y: Sequence[float]) -> list[str]:
    """The points as text, without those that are the same on the page."""
    points = np.round(np.stack([np.asarray(x, np.float64), np.asarray(y, np.float64)], axis=1), 1)
    new = np.ones(len(points), bool)
    new[1:] = np.any(points[1:] != points[:-1], axis=1)
    return [f"{a:g} {b:g}" for a, b in points[new].tolist()]
