"""The answer of `epsgauge size` for the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from epsgauge.methods.needs_of_one_run import MOST
from epsgauge.numbers import short
from epsgauge.reporting import layout
from epsgauge.stats.interval import Kind
from epsgauge.stats.sizing import MAX_SAMPLES

HEAD = 12


@dataclass(frozen=True)
class Plan:
    """What one method needs; None where no number of samples is enough."""

    method: str
    label: str
    promise: Kind
    n_samples: int | None
    largest_eps: float | None
    judges: str | None = None  # "runs", "scores" or "both", if verdicts rest on it


def show(plans: list[Plan], console: Console, *, prior_alone: float | None = None) -> None:
    """Print one row per method; `prior_alone` is the bound that no data at all gives, if that is what is wanted."""
    _show(plans, console, "samples", _words(plans))
    if prior_alone is not None:
        console.print(f"! The prior alone, without any sample, has a Bayesian lower bound of {short(prior_alone)}.")


def show_one_run(plans: list[Plan], console: Console) -> None:
    """Print how many canaries of one training each kind of claim needs."""
    none = f" none: {MOST:,} are not enough." if any(plan.n_samples is None for plan in plans) else ""
    words = {
        "canaries": "Of one training, half of them in. The bound is then reached in about 80 % of trainings, if scores "
        f"are normal with these rates.{none}",
        "judges": "claims of ε: any canaries. claims of μ: any canaries, and the claim is stated as μ of Gaussian DP. "
        "gradients: gradient canaries in the updates of DP-SGD, without sampling.",
        "largest ε": "With so many canaries, even a perfect attack shows no more.",
    }
    _show(plans, console, "canaries", words)


def _show(plans: list[Plan], console: Console, counted: str, words: dict[str, str]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for name in ("", counted, "promise", "judges", "largest ε"):
        table.add_column(name, justify="right" if name in (counted, "largest ε") else "left", no_wrap=True)
    for plan in plans:
        n = "none" if plan.n_samples is None else f"{plan.n_samples}"
        most = "" if plan.largest_eps is None else short(plan.largest_eps)
        table.add_row(plan.label, n, plan.promise, plan.judges or "", most)
    console.print(table)
    for head, text in words.items():
        console.print(layout.hanging(f"{head:<{HEAD}}", text, "dim"))


def _words(plans: list[Plan]) -> dict[str, str]:
    """What the columns mean."""
    samples = "Half of them have b = 1. With one pair per model, a sample is a trained model."
    none = f" none: {MAX_SAMPLES:.0e} are not enough." if any(plan.n_samples is None for plan in plans) else ""
    return {
        "samples": samples + none,
        "judges": "The verdict on a run, or on a file of scores, rests on this method. `epsgauge check PLAN` says "
        "which method judges your run, and what it needs.",
        "largest ε": "With that many samples, even a perfect attack shows no more.",
    }
