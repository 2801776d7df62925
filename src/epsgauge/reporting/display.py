"""How objects show themselves: HTML in a notebook, Rich in a terminal, text to print. Loaded when one is shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epsgauge.figures.chart import Drawn


def html(thing: Any) -> str:
    from epsgauge.reporting import notebook

    return notebook.html(thing)


def rich(thing: Any) -> RenderableType:
    from epsgauge.reporting import printed

    return printed.rich(thing)


def text(thing: Any) -> str:
    from epsgauge.reporting import text as lines

    return lines.text(thing)


def plot(name: str, thing: Any) -> Callable[..., Drawn]:
    """What draws a chart of it, with the keywords of `chart`."""
    from epsgauge.figures.charts import CHARTS, chart

    if name not in CHARTS:
        raise AttributeError(f"a chart is one of {', '.join(plots(thing))}, but got {name!r}.")
    return partial(chart, name, thing)


def plots(thing: Any) -> list[str]:
    """The names of its charts."""
    from epsgauge.auditing.compare import Comparison
    from epsgauge.figures.charts import CHARTS, charts_of
    from epsgauge.figures.subject import Subject

    if isinstance(thing, Comparison):
        return [name for name, chart in CHARTS.items() if "comparison" in chart.of]
    return [chart.name for chart in charts_of(Subject.of(thing))]
