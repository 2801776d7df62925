"""The answer of `epsgauge estimate`: as a table for the terminal, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from epsgauge.figures.density import density_of
from epsgauge.figures.subject import Subject
from epsgauge.methods.cautions import cautions_of
from epsgauge.methods.intervals import Intervals, intervals_of
from epsgauge.methods.table import BASELINE, POSTERIOR, QUICK, SHARPEST
from epsgauge.numbers import change, interval_text, json_ready, percent, probability, short
from epsgauge.reporting import layout
from epsgauge.reporting.sketch import sketch
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import Posterior
from epsgauge.stats.tally import CELLS

# Points of the curve that is shown in at most 64 columns.
SKETCHED = 200


@dataclass(frozen=True)
class Answer:
    """Everything that one tally says about one quantity."""

    posterior: Posterior
    level: float
    claimed: float | None = None
    eps_if_gaussian: Posterior | None = None  # beside one of μ: ε at a δ under the same assumption
    further: tuple[str, ...] = ()  # methods beside those that are always shown

    @cached_property
    def intervals(self) -> Intervals:
        """The exact bound is of ε alone."""
        proven = (SHARPEST.name,) if isinstance(self.posterior.family, EpsAtDelta) else ()
        methods = dict.fromkeys((*QUICK, *proven, *self.further))
        return intervals_of(self.posterior, level=self.level, methods=methods)

    @property
    def exceeds(self) -> float | None:
        return None if self.claimed is None else float(self.posterior.exceeds(self.claimed))

    @property
    def subject(self) -> Subject:
        return Subject.of(self.intervals, claimed=self.claimed)


def to_json(answer: Answer) -> dict[str, Any]:
    """The structure that `--json` prints; docs/guide.md documents it."""
    post, result = answer.posterior, answer.intervals
    cells = {c: int(getattr(post.tally, c)) for c in CELLS}
    fixed = {"eps": "delta", "delta": "eps", "mu": None}[post.quantity]
    out: dict[str, Any] = {
        "tally": cells,
        "delta": None,
        "level": answer.level,
        "quantity": post.quantity,
        "median": float(post.median()),
        "mass_at_zero": float(post.mass_at_zero),
        "claimed_eps": None,
        "exceeds": answer.exceeds,
        "prior": list(post.prior),
        "methods": [
            {
                "method": row.method,
                "promise": row.promise,
                "assumptions": list(row.assumptions),
                "low": float(row.low),
                "high": float(row.high),
                "width": float(row.width),
                "against_clopper_pearson": float(row.against_baseline),
            }
            for row in result
        ],
        "warnings": list(cautions_of(result)),
    }
    if answer.eps_if_gaussian is not None:
        gaussian, ends = answer.eps_if_gaussian, answer.eps_if_gaussian.interval(answer.level)
        out["delta"] = float(gaussian.family.parameter)
        out["eps_if_gaussian"] = {"median": float(gaussian.median()), "low": float(ends.low), "high": float(ends.high)}
    if fixed is not None:
        out[fixed] = float(post.family.parameter)
    out[f"claimed_{post.quantity}"] = answer.claimed
    ready: dict[str, Any] = json_ready(out)
    return ready


def show(answer: Answer, console: Console) -> None:
    """Print the answer for a person."""
    result = answer.intervals
    console.print(_title(answer))
    console.print(_table(result, console.width))
    console.print(_facts(answer))
    console.print()
    shown = density_of(replace(answer.subject, points=SKETCHED))
    for line in sketch(shown, width=min(64, max(30, console.width - 24))):
        console.print(Text("  " + line), no_wrap=True, crop=True)
    console.print()
    layout.notes(result.rows, console)
    layout.warnings(cautions_of(result), console)


def _title(answer: Answer) -> Text:
    post = answer.posterior
    t = post.tally
    text = Text()
    text.append(f"{post.family.symbol}{post.family.given}", style="bold")
    text.append(f"   TP {t.tp}  TN {t.tn}  FP {t.fp}  FN {t.fn}   N = {t.n_samples}")
    if t.n_positive and t.n_negative:
        text.append(f"   FNR {short(float(t.fnr))}  FPR {short(float(t.fpr))}")
    return text


def _table(result: Intervals, width: int) -> Table:
    """A row per method; a narrow terminal loses what can be spared, never digits."""
    texts = [row.text for row in result]
    needed = max(map(len, texts)) + 52  # of the other columns, without what is between them
    gap = 2 if needed + 20 <= width else 1
    wide = needed + 10 <= width
    table = Table(box=None, pad_edge=False, padding=(0, gap), header_style="dim")
    columns: list[tuple[str, Literal["left", "right"], bool]] = [
        ("", "left", True),
        (f"{percent(result.level)} interval", "left", True),
        ("width", "right", wide),
        ("vs CP", "right", wide),
        ("promise", "left", True),
        ("assumes", "left", needed - 10 <= width),
    ]
    for name, justify, kept in columns:
        if kept:
            table.add_column(name, justify=justify, no_wrap=True)
    letters = layout.letters(result)
    for row, text in zip(result, texts, strict=True):
        style = "bold" if row.method == POSTERIOR.name else ""
        cells: tuple[RenderableType, ...] = (
            Text(row.label, style=style),
            Text(text, style=style),
            short(float(row.width)),
            "" if row.method == BASELINE.name else change(float(row.against_baseline)),
            Text(row.promise, style=layout.PROMISE_STYLE[row.promise]),
            " ".join(letters[a] for a in row.assumptions),
        )
        table.add_row(*(cell for cell, (_, _, kept) in zip(cells, columns, strict=True) if kept))
    return table


def _facts(answer: Answer) -> Text:
    post, symbol = answer.posterior, answer.posterior.family.symbol
    text = Text(f"median {short(float(post.median()))}   Pr[{symbol} = 0] = {probability(float(post.mass_at_zero))}")
    if answer.claimed is not None and answer.exceeds is not None:
        text.append(f"   Pr[{symbol} > {answer.claimed:g}] = ")
        text.append(probability(answer.exceeds), style="bold")
    if answer.eps_if_gaussian is not None:
        gaussian, ends = answer.eps_if_gaussian, answer.eps_if_gaussian.interval(answer.level)
        text.append(f"\nε{gaussian.family.given}: median {short(float(gaussian.median()))}, credible interval ")
        text.append(interval_text(float(ends.low), float(ends.high)), style="bold")
    return text
