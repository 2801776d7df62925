"""Draws what the other modules of this room compute as `<svg>` texts, for the report and the viewer.

Each function takes one data class and returns one picture. Put `STYLE` once on the page. Pictures of one kind on one
page need a `prefix`, so that ids differ.
"""

from __future__ import annotations

from epsgauge.figures.css import STYLE
from epsgauge.figures.web_attack import histogram, percentiles, roc
from epsgauge.figures.web_models import dependence, half_text, narrowing
from epsgauge.figures.web_posterior import bars, cdf, cdfs, density, ruler
from epsgauge.figures.web_region import contours

__all__ = [
    "STYLE",
    "bars",
    "cdf",
    "cdfs",
    "contours",
    "density",
    "dependence",
    "half_text",
    "histogram",
    "narrowing",
    "percentiles",
    "roc",
    "ruler",
]
