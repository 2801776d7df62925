"""What `rich.print` shows of an object: what the command line prints of it; plain text where that is piped."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from epsgauge.auditing.audit import Audit
from epsgauge.methods.intervals import Intervals
from epsgauge.numbers import short
from epsgauge.probing.result import Probe
from epsgauge.reporting import audit, estimate, probe, status
from epsgauge.reporting.estimate import Answer
from epsgauge.runner.view import Run
from epsgauge.stats.posterior import Posterior
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class AsPrinted:
    """What a `show` prints on a console of the same width and colours."""

    show: Callable[[Console], None]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        page = io.StringIO()
        inner = Console(
            file=page,
            width=options.max_width,
            color_system=console.color_system or "auto",  # type: ignore[arg-type]
            force_terminal=console.color_system is not None,
            no_color=console.no_color,
            highlight=False,
        )
        self.show(inner)
        yield Text.from_ansi(page.getvalue().rstrip("\n"), no_wrap=True)


def rich(thing: Audit | Intervals | Posterior | Probe | Run | Tally) -> RenderableType:
    if isinstance(thing, Audit):
        return AsPrinted(lambda console: audit.show(thing, console))
    if isinstance(thing, Probe):
        return AsPrinted(lambda console: probe.show(thing, console))
    if isinstance(thing, Run):
        return AsPrinted(lambda console: status.show(thing.status(), console))
    if isinstance(thing, Tally):
        return Text(repr(thing)) if thing.shape else _tally(thing)
    posterior = thing if isinstance(thing, Posterior) else thing.posterior
    if posterior.shape:
        return Text(repr(thing) if isinstance(thing, Posterior) else f"<Intervals of {posterior!r}>")
    answer = Answer(posterior, 0.90)
    if isinstance(thing, Intervals):
        answer = Answer(posterior, thing.level, further=tuple(row.method for row in thing))
    return AsPrinted(lambda console: estimate.show(answer, console))


def _tally(tally: Tally) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for head in ("", "said 1", "said 0", "wrong"):
        table.add_column(head)
    for bit, right, wrong, n, name in (
        ("b = 1", f"TP {tally.tp}", f"FN {tally.fn}", tally.n_positive, "FNR"),
        ("b = 0", f"FP {tally.fp}", f"TN {tally.tn}", tally.n_negative, "FPR"),
    ):
        rate = tally.fnr if name == "FNR" else tally.fpr
        table.add_row(bit, right, wrong, f"{name} {short(float(rate))}" if n else "")
    return table
