"""Displayed: an object that shows itself in a notebook, in a terminal and to print, each drawn by `reporting`."""

from __future__ import annotations

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
