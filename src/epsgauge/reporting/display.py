"""How objects show themselves: HTML in a notebook, Rich in a terminal, text to print. Loaded when one is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


def html(thing: Any) -> str:
    from epsgauge.reporting import notebook

    return notebook.html(thing)


def rich(thing: Any) -> RenderableType:
    from epsgauge.reporting import printed

    return printed.rich(thing)


def text(thing: Any) -> str:
    from epsgauge.reporting import text as lines

    return lines.text(thing)
