"""The answer of `epsgauge size` for the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from epsgauge.numbers import short
from epsgauge.stats.interval import Kind


@dataclass(frozen=True)
class Plan:
    """What one method needs; None where no number of samples is enough."""

    method: str
    label: str
    promise: Kind
    n_samples: int | None
    largest_eps: float | None


def show(plans: list[Plan], console: Console, *, prior_alone: float | None = None) -> None:
    """Print one row per method; `prior_alone` is the bound that no data at all gives, if that is what is wanted."""
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("", "samples", "promise", "largest ε that so many can show"):
        table.add_column(name, justify="right" if name == "samples" else "left")
    for plan in plans:
        n = "none up to 1e8" if plan.n_samples is None else f"{plan.n_samples}"
        table.add_row(plan.label, n, plan.promise, "" if plan.largest_eps is None else short(plan.largest_eps))
    console.print(table)
    console.print("Half of the samples have b = 1. With one pair per model, a sample is a trained model.")
    if prior_alone is not None:
        console.print(f"! The prior alone, without any sample, has a Bayesian lower bound of {short(prior_alone)}.")
