"""Displayed: an object that shows itself in a notebook, in a terminal and to print, each drawn by `reporting`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Displayed:
    """What is shown is written where all of it is written, and loaded when it is shown."""

    def _repr_html_(self) -> str:
        from epsgauge.reporting.display import html

        return html(self)

    def __rich__(self) -> Any:
        from epsgauge.reporting.display import rich

        return rich(self)


class Printed(Displayed):
    """Displayed, and a few lines to `print`."""

    def __str__(self) -> str:
        from epsgauge.reporting.display import text

        return text(self)


class Plotted:
    """Has charts: `audit.plot.density()` in a notebook, `audit.plot.roc().save("roc.svg")` elsewhere."""

    @property
    def plot(self) -> Plots:
        """Its charts, each as a method."""
        return Plots(self)


class Plots:
    """The charts of one object; `dir()` names those that can be drawn of it."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from epsgauge.reporting.display import plot

        if name.startswith("_"):
            raise AttributeError(name)
        return plot(name, self._source)

    def __dir__(self) -> list[str]:
        from epsgauge.reporting.display import plots

        return plots(self._source)

    def __repr__(self) -> str:
        return f"<charts: {', '.join(dir(self))}>"
