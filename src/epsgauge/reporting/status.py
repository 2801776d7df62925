"""The answer of `epsgauge status` and `epsgauge run` for the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from epsgauge.numbers import duration, short
from epsgauge.plain import plain
from epsgauge.reporting import layout


def show(status: dict[str, Any], console: Console) -> None:
    """Print how a run stands; `status` is that of a Run."""
    title = Text(plain(str(status["name"])), style="bold")
    title.append(f"   {status['n_done']} of {status['n_models']} models done", style="")
    if status["n_failed"]:
        title.append(f", {status['n_failed']} failed", style="bold red")
    if status["n_left"]:
        title.append(f", {status['n_left']} to go")
    if status["running"]:
        title.append(f"   running (process {status['pid']})", style="green")
    layout.title(title, console)
    facts = []
    if status["seconds_per_model"] is not None:
        facts.append(f"{duration(status['seconds_per_model'])} a model")
    if status["models_per_second"]:
        rate = status["models_per_second"]
        facts.append(f"{short(rate, 1)} models a second")
        if status["n_left"]:
            facts.append(f"{duration(status['n_left'] / rate)} left at that rate")
    facts.append(f"looks at results so far: {status['looks']}")
    console.print(Text("   ".join(facts), style="dim"))
    console.print(layout.said(status["declared"]["sentence"], "dim"))
    _failures(status, console)
    if status["extended_after_look"]:
        console.print(Text("! n_models was raised after results had been seen: level not kept.", style="yellow"))
    for note in status["notes"]:
        console.print(layout.said(f"! {note}", "yellow"))


def _failures(status: dict[str, Any], console: Console) -> None:
    first = status["first_error"]
    if first is None:
        return
    by_bit = status["failed_pairs_by_bit"]
    console.print(Text(f"! failed pairs: {by_bit['0']} with b = 0, {by_bit['1']} with b = 1. The first error:"))
    lines = str(first["error"]).splitlines()
    for line in lines if len(lines) <= 12 else [*lines[:3], "…", *lines[-6:]]:
        console.print(layout.said(f"    {line}", "dim"), no_wrap=True, overflow="ellipsis")
    console.print(layout.said(f"  model {first['model']}, seed {first['seed']}. Play them again with --retry-failed."))
