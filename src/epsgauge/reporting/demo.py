"""The answer of `epsgauge demo`: the ε that each adversary shows beside the claim, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from epsgauge.auditing.audit import Audit
from epsgauge.figures.charts import CHARTS
from epsgauge.figures.ladder import Pipelines
from epsgauge.figures.subject import Subject
from epsgauge.files import replace
from epsgauge.reporting import layout, record
from epsgauge.reporting.audit import VERDICT_STYLE
from epsgauge.reporting.contents import answered, bound_cells
from epsgauge.reporting.page import Answered, Beside, Page

HEAD = 16


def show_step(who: str, does: str, console: Console) -> None:
    """Which adversary comes next."""
    console.print(layout.hanging(f"{who:<{HEAD}}", does, "bold"))


def show_finding(audit: Audit, console: Console) -> None:
    """What it shows, on one line."""
    v = audit.verdict
    shown = ", ".join(f"{bound.text} ({bound.short_scope})" for bound in v.bounds)
    console.print(Text(f"{'':<{HEAD}}{shown}, ").append(v.kind, style=VERDICT_STYLE[v.kind]))


def write_page(pipelines: Pipelines, out: Path, *, intro: str, outro: str) -> Path:
    """The same picture as one HTML file, with every verdict below it."""
    from epsgauge.reporting.html import html

    named = [(who, audit) for found in pipelines.values() for who, audit in found.items()]
    rulers = [CHARTS["ruler"].drawn(Subject.of(audit), prefix=f"run{i}-") for i, (_, audit) in enumerate(named)]
    page = Page(
        title="Demo",
        name="From the weakest to the strongest adversary",
        about=tuple(pipelines),
        answer=Answered("comparison", "", intro, outro),
        numbers=(),
        methods=None,
        tallies=(),
        warnings=tuple(dict.fromkeys(f"{audit.name}: {text}" for _, audit in named for text in audit.warnings)),
        ran=record.of_demo(out.parent, [audit for _, audit in named]),
        columns=("adversary", "N", "ε at least", "if DP-SGD", "claimed ε", "verdict"),
        beside=tuple(Beside(audit.name, _cells(who, audit), answered(audit)) for who, audit in named),
    )
    replace(out, html(page, {"verdict": [CHARTS["ladder"].drawn(pipelines)], "comparison": [], "verdicts": rulers}))
    return out


def _cells(who: str, audit: Audit) -> tuple[str, ...]:
    claimed = "none" if audit.claim is None else audit.claim.eps_text
    return (who, str(int(audit.judged.tally.n_samples)), *bound_cells(audit), claimed, audit.verdict.kind)
