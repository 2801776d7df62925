"""The answer of `epsgauge probe` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from epsgauge.numbers import duration, short
from epsgauge.probing.result import UNSEEN, Probe
from epsgauge.reporting import layout

HEAD = 18
STYLE = {"refuted": "bold red", "consistent": "green", "not tested": "yellow"}


def show(probe: Probe, console: Console) -> None:
    """Print what is accounted, each finding, and what follows."""
    p, eps = probe.privacy, probe.accounted_eps
    said = f"rate {short(p.sample_rate)}, noise {short(p.noise_multiplier)}, {p.steps} steps"
    spent = "" if eps is None else f": ε = {short(eps)} at δ = {probe.delta:g} ({probe.adjacency})"
    console.print(layout.hanging(f"{'accounted':<{HEAD}}", said + spent, "dim"))
    for finding in probe.findings:
        text = Text(f"{finding.result}. ", style=STYLE[finding.result])
        text.append(layout.said(finding.sentence))
        if finding.result == "refuted":
            text.append(layout.said(f" Rests on: {finding.rests_on}", "dim"))
        console.print(layout.hanging(f"{finding.name:<{HEAD}}", text, "dim"))
    console.print()
    style = STYLE["refuted" if probe.refuted else "consistent"]
    console.print(layout.hanging(f"{'probe':<{HEAD}}", layout.said(probe.sentence, style), "bold"))
    chance = "A pipeline that is what the accountant assumes is refuted with a probability of at most 0.0001."
    took = f"{probe.n_trainings} short trainings, {duration(probe.seconds)}. {chance} {UNSEEN}"
    console.print(layout.hanging(" " * HEAD, Text(took, style="dim"), "dim"))
