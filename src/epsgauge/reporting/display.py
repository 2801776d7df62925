"""How objects show themselves: HTML in a notebook, Rich in a terminal. Loaded when one of them is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epsgauge.auditing.audit import Audit
    from epsgauge.runner.view import Run
    from epsgauge.stats.methods import Intervals
    from epsgauge.stats.posterior import Posterior
    from epsgauge.stats.tally import Tally


def html(thing: Audit | Intervals | Posterior | Run | Tally) -> str:
    from epsgauge.reporting import notebook

    return notebook.html(thing)


def rich(thing: Audit | Intervals | Posterior | Run | Tally) -> RenderableType:
    from epsgauge.reporting import printed

    return printed.rich(thing)
