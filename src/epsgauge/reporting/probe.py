"""The answer of `epsgauge probe` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from epsgauge.numbers import duration, short
from epsgauge.probing.codes import PAGE
from epsgauge.probing.result import UNSEEN, Probe
from epsgauge.reporting import layout

HEAD = 18
STYLE = {"refuted": "bold red", "consistent": "green", "not tested": "yellow"}


def show(probe: Probe, console: Console, target: str | None = None) -> None:
    """Print the conclusion, the accounted values, and each finding, what is refuted first.

    `target` is the probed plan or script, as words of a command line.
    """

    def part(name: str, text: Text) -> None:
        console.print(layout.hanging(f"{name:<{HEAD}}", text, "dim"))

    style = STYLE["refuted" if probe.refuted else "consistent"]
    console.print(layout.hanging(f"{'probe':<{HEAD}}", layout.said(probe.sentence, style), "bold"))
    if probe.refuted:
        part("next", layout.said(f"{PAGE} explains each code."))
    elif target is not None:
        part("next", layout.said(f"See how much an attack shows: epsgauge run {target} --out DIR"))
    p, eps = probe.privacy, probe.accounted_eps
    said = f"rate {short(p.sample_rate)}, noise {short(p.noise_multiplier)}, {p.steps} steps"
    spent = "" if eps is None else f": ε = {short(eps)} at δ = {probe.delta:g} ({probe.adjacency})"
    spent += "" if probe.other_eps is None else f", {short(probe.other_eps)} ({probe.other_adjacency})"
    part("accounted", Text(said + spent))
    for note in probe.notes:
        part("", layout.said(note))
    console.print()
    for finding in sorted(probe.findings, key=lambda finding: finding.result != "refuted"):
        text = Text(f"{finding.shown}. ", style=STYLE[finding.result])
        text.append(layout.said(finding.sentence))
        if finding.result == "refuted":
            text.append(layout.said(f" Rests on: {finding.rests_on}", "dim"))
        part(finding.name, text)
        if finding.code:
            for more in (finding.where and f"Seen at: {finding.where}.", probe.repeat(finding, target)):
                if more:
                    part("", layout.said(more, "dim"))
    console.print()
    chance = "A pipeline that is what the accountant assumes is refuted with a probability of at most 0.0001."
    took = f"{probe.n_trainings} short trainings, {duration(probe.seconds)}. {chance} {UNSEEN}"
    part("", Text(took, style="dim"))


class Line:
    """One line of progress: the check, and the number of trainings so far."""

    def __init__(self, console: Console) -> None:
        self.console, self.status, self.last = console, console.status("probe: starting"), ""

    def __enter__(self) -> Line:
        if self.console.is_terminal:
            self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.status.stop()

    def __call__(self, name: str, count: int) -> None:
        text = f"probe: {name}, {count} trainings"
        if self.console.is_terminal:
            self.status.update(text)
        elif name != self.last:
            self.console.print(text)
        self.last = name
