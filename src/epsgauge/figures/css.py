"""Stylesheets of the pictures: colours for light and dark, strokes, and letters that fit the screen."""

from __future__ import annotations

import re

from epsgauge.figures import style
from epsgauge.figures.labels import SIZE

# Colours of marks; those that end in -text are dark enough for letters (WCAG AA).
LIGHT = {
    "ink": "#1b1b1b",
    "muted": "#5a5a5a",
    "grid": style.PALE,
    "paper": "#ffffff",
    "blue": style.BLUE,
    "red": style.RED,
    "green": style.GREEN,
    "orange": style.ORANGE,
    "sky": style.SKY,
    "purple": style.PURPLE,
    "grey": style.GREY,
    "blue-text": "#00619a",
    "red-text": "#a84300",
    "green-text": "#00704f",
    "orange-text": "#8a5a00",
    "sky-text": "#1f6f9f",
    "region": style.REGION,
}
DARK = {
    "ink": "#ececec",
    "muted": "#b0b4ba",
    "grid": "#363b42",
    "paper": "#16181c",
    "blue": "#4fb0ee",
    "red": "#ff8b4d",
    "green": "#35c79c",
    "orange": "#f2b53f",
    "sky": "#7cc9f5",
    "purple": "#dd9cc0",
    "grey": "#9aa0a6",
    "blue-text": "#7cc9f5",
    "red-text": "#ff9d69",
    "green-text": "#4fd6ad",
    "orange-text": "#f2b53f",
    "sky-text": "#7cc9f5",
    "region": "#1f3445",
}
COLOURS = ("ink", "muted", "blue", "red", "green", "orange", "sky", "purple", "grey", "grid", "region", "paper")


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def _classes() -> str:
    fills = "".join(f".eg .fill-{c}{{fill:var(--{c});stroke:none}}" for c in COLOURS)
    strokes = "".join(f".eg .line-{c}{{fill:none;stroke:var(--{c})}}" for c in COLOURS)
    texts = "".join(
        f".eg .text-{c}{{fill:var(--{c}{'' if c in ('ink', 'muted') else '-text'})}}"
        for c in ("ink", "muted", "blue", "red", "green", "orange", "sky")
    )
    return fills + strokes + texts


LETTERS = """.eg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:13px;\
fill:var(--ink);font-variant-numeric:tabular-nums}"""
MARKS = f"""{_classes()}
.eg .axis{{stroke:var(--muted);stroke-width:1}}
.eg .grid{{stroke:var(--grid);stroke-width:1}}
.eg .tick,.eg .label{{fill:var(--muted)}}
.eg .strong{{font-weight:600}}
.eg .halo{{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}}
.eg .curve{{stroke-width:2;stroke-linejoin:round}}
.eg .thin{{stroke-width:1.2}}
.eg .thick{{stroke-width:3}}
.eg .broad{{stroke-width:7}}
.eg .claim{{fill:none;stroke:var(--ink);stroke-width:1.6;stroke-dasharray:6 4}}
.eg .dash{{stroke-dasharray:5 4}}
.eg .dots{{stroke-dasharray:2 3}}
.eg .faint{{opacity:.16}}
.eg .pale{{opacity:.35}}
.eg .half{{opacity:.55}}
.eg .ring{{fill:var(--paper);stroke-width:2}}"""

# For pages: put it there once.
STYLE = f""":root{{{_variables(LIGHT)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
.eg{{display:block;width:100%;max-width:620px;height:auto;overflow:visible}}
figure:has(>.eg){{container-type:inline-size}}
{LETTERS}
@media (max-width:480px){{.eg text{{font-size:{SIZE:g}px}}}}
@container (max-width:400px){{.eg text{{font-size:{SIZE:g}px}}}}
@container (min-width:400.01px) and (max-width:470px){{.eg text{{font-size:15px}}}}
@container (min-width:470.01px){{.eg text{{font-size:13px}}}}
@container (min-width:570px){{.eg text{{font-size:12.5px}}}}
{MARKS}
@media print{{.eg{{break-inside:avoid}}}}
@media (forced-colors:active){{.eg{{forced-color-adjust:none;background:var(--paper)}}}}
"""

# For notebooks: colours follow the theme where the notebook says which it has.
NOTEBOOK = f"""{STYLE}
.epsgauge{{{_variables(LIGHT)}max-width:40rem;color:var(--ink)}}
@media screen and (prefers-color-scheme:dark){{.epsgauge{{{_variables(DARK)}}}}}
body[data-jp-theme-light="true"] .epsgauge,.vscode-light .epsgauge{{{_variables(LIGHT)}}}
body[data-jp-theme-light="false"] .epsgauge,.vscode-dark .epsgauge{{{_variables(DARK)}}}
.epsgauge .eg{{max-width:28rem}}
"""

# For files: light colours, without variables, which few programs besides browsers read.
PRINT = re.sub(r"var\(--([a-z-]+)\)", lambda name: LIGHT[name[1]], f"{LETTERS}\n{MARKS}")
