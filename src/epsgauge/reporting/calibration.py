"""The answer of `epsgauge calibrate` for the terminal."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from epsgauge.auditing.calibration_result import STANDARD_ERRORS, Certificate, Measured, ScenarioResult
from epsgauge.numbers import duration, percent, short
from epsgauge.plain import plain
from epsgauge.reporting import layout
from epsgauge.reporting.progress import SECONDS_BETWEEN_LINES

RESULT_STYLE = {"pass": "green", "fail": "bold red", "outside": "yellow", "reported": ""}
COLUMNS = ("δ", "ε", "above ε, %", "mech.", "mean", "power", "")


class Bar:
    """How many scenarios are done, and about how long the others take; a line now and then without a terminal."""

    def __init__(self, method: str, console: Console) -> None:
        self.console, self.method = console, plain(method)
        self.began = self.last = time.monotonic()
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self.progress = Progress(*columns, console=console, transient=True, refresh_per_second=4)
        self.task = self.progress.add_task(f"calibrating {self.method}", total=None, left="")

    def __enter__(self) -> Bar:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *how: object) -> None:
        if self.console.is_terminal:
            self.progress.stop()

    def on_scenario(self, name: str, n_done: int, n: int) -> None:
        now = time.monotonic()
        left = f"{n_done}/{n} scenarios"
        if n_done:
            left += f", about {duration((now - self.began) / n_done * (n - n_done))} left"
        self.progress.update(self.task, completed=n_done, total=n, left=f"{left}: {plain(name)}")
        if not self.console.is_terminal and now - self.last >= SECONDS_BETWEEN_LINES:
            self.last = now
            self.console.print(Text(f"calibrating {self.method}: {left}"), soft_wrap=True)


def show(found: Certificate, console: Console) -> None:
    """Print a line per scenario, and what all of them say."""
    title = Text(f"{found.label}, {found.promise}", style="bold")
    how = "all outcomes of few samples" if found.runs is None else f"{found.runs} runs per scenario, seed {found.seed}"
    title.append(f"   one-sided {found.level:g}; {how}", style="")
    console.print(title)
    letters = _letters(found)
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", overflow="fold")
    for name in COLUMNS:
        table.add_column(name, no_wrap=True, justify="left" if not name else "right")
    for s in found.scenarios:
        table.add_row(
            Text(s.name),
            f"{s.delta:g}",
            short(s.rule_eps, 2),
            _percent(s.above_rule),
            f"{100 * s.above_mechanism.value:.1f}",
            f"{s.mean_bound.value:.2f}",
            "" if s.power is None else f"{100 * s.power.value:.0f}",
            Text(_word(s, letters), style=RESULT_STYLE[s.result]),
        )
    console.print(table)
    for head, text in _notes(found).items():
        console.print(layout.hanging(f"{head:<12}", text, "dim"))
    for assumption, letter in letters.items():
        console.print(layout.hanging(f"{f'outside {letter}':<12}", f"does not hold here: {assumption}", "dim"))
    console.print(Text(_sentence(found), style="bold red" if found.passed is False else "bold"))


def _word(s: ScenarioResult, letters: dict[str, str]) -> str:
    if s.result == "outside":
        return f"outside {' '.join(letters[a] for a in s.broken_assumptions)}"
    if s.result == "reported":
        return ""
    return s.result.upper() if s.result == "fail" else s.result + ("*" if s.judged_by == "mechanism" else "")


def _letters(found: Certificate) -> dict[str, str]:
    """A letter for each assumption that some scenario breaks."""
    out: dict[str, str] = {}
    for s in found.scenarios:
        for assumption in s.broken_assumptions:
            out.setdefault(assumption, chr(ord("a") + len(out)))
    return out


def _percent(share: Measured) -> str:
    return f"{100 * share.value:.2f}" if share.error == 0 else f"{100 * share.value:.1f} ± {100 * share.error:.1f}"


def _notes(found: Certificate) -> dict[str, str]:
    notes = {
        "ε": "of the rule, exactly, from its true rates; a mean where each run chose its own rule",
        "above ε": f"share of bounds above that ε; it should be at most {percent(1 - found.level)}",
        "mech.": "% above the ε of the mechanism itself, which is easier: most rules show less than all of it",
        "power": "% of bounds that refute a claim of half of the rule's ε",
    }
    if found.runs is not None:
        notes["±"] = "Monte Carlo standard error"
    if any(s.judged_by == "mechanism" for s in found.scenarios):
        notes["*"] = "guesses about one model depend on each other: there the bound is on the mechanism's ε"
    return notes


def _sentence(found: Certificate) -> str:
    within = [s for s in found.scenarios if s.result in ("pass", "fail")]
    failed = [s.name for s in within if s.result == "fail"]
    if found.passed is None:
        return f"{found.label} promises no coverage ({found.promise}): nothing to pass or to fail."
    if failed:
        many = f"{len(failed)} of {len(within)} scenarios within its assumptions"
        return f"FAIL: above ε too often in {many}: {'; '.join(failed)}."
    error = "" if found.runs is None else f" (at most {STANDARD_ERRORS:g} standard errors more)"
    share = percent(1 - found.level)
    return f"PASS: above ε in at most {share}{error} in all {len(within)} scenarios within its assumptions."
