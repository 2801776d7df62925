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
        facts.append(f"{duration(status['seconds_per_model'])} per model")
    if status["models_per_second"]:
        rate = status["models_per_second"]
        facts.append(f"{short(rate, 1)} models per second")
        if status["n_left"]:
            facts.append(f"{duration(status['n_left'] / rate)} left at that rate")
    if facts:
        console.print(Text("   ".join(facts), style="dim"))
    console.print(layout.said(status["declared"]["sentence"], "dim"))
    if status["digest"] is not None:
        console.print(layout.said(f"digest {status['digest']}", "dim"))
    if status["looks"]:
        console.print(layout.said(_viewed(status), "dim"))
    _failures(status, console)
    if status["extended_after_look"]:
        console.print(Text("! n_models was raised after results had been seen: level not kept.", style="yellow"))
    for note in status["notes"]:
        console.print(layout.said(f"! {note}", "yellow"))


def _viewed(status: dict[str, Any]) -> str:
    often = {1: "once", 2: "twice"}.get(status["looks"], f"{status['looks']} times")
    fine = "" if status["extended_after_look"] else " This is fine as long as the plan stays as it is."
    return f"Results were viewed {often}: the bar of `epsgauge run` and audits show them.{fine}"


def _failures(status: dict[str, Any], console: Console) -> None:
    first = status["first_error"]
    if first is None:
        return
    by_bit = status["failed_pairs_by_bit"]
    console.print(
        layout.said(
            f"! failed pairs: {by_bit['0']} with b = 0, {by_bit['1']} with b = 1. The first error (model "
            f"{first['model']}, seed {first['seed']}):"
        )
    )
    for line in str(first["error"]).splitlines():
        if not line.strip(" ~^"):  # marks below a line, which is folded here
            continue
        indent = " " * (4 + len(line) - len(line.lstrip()))
        console.print(layout.hanging(indent, line.lstrip(), "dim"))
    console.print(layout.said("  Train failed models again with `epsgauge run PLAN --out DIR --retry-failed`."))
