"""The answer of `epsgauge audit`, `scores` and `mechanism` for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from epsgauge.auditing.audit import Audit
from epsgauge.bounds.noise import EffectiveNoise
from epsgauge.declaration import words
from epsgauge.figures.density import density_of
from epsgauge.figures.subject import Subject
from epsgauge.methods.table import POSTERIOR
from epsgauge.numbers import at_most, exactly, probability, short
from epsgauge.plain import plain
from epsgauge.reporting import layout
from epsgauge.reporting.sketch import sketch

VERDICT_STYLE = {
    "violation": "bold red",
    "violation by an estimate": "yellow",
    "violation by a credible bound": "yellow",
    "unsupported": "bold red",
    "no objection": "bold blue",
    "cannot decide": "bold yellow",
    "in progress": "bold yellow",
    "no claim": "bold",
}
HEAD = 12


def show(audit: Audit, console: Console, *, explained: bool = False) -> None:
    """Print the audit for a person: the verdict and what to do, then who attacked and what came out.

    `explained`: also what each number promises and assumes.
    """
    layout.title(_title(audit), console)
    for head, said in _decision(audit):
        console.print(layout.hanging(f"{head:<{HEAD}}", said, "dim"))
    console.print()
    for head, text in _facts(audit).items():
        console.print(layout.hanging(f"{head:<{HEAD}}", text, "dim"))
    console.print()
    console.print(_table(audit))
    for note in dict.fromkeys(row.note for row in audit.rows if row.note):
        labels = ", ".join(row.label for row in audit.rows if row.note == note)
        console.print(layout.hanging(f"{labels}: ", note, "dim"))
    post = audit.posterior
    console.print(f"median {short(float(post.median()))}   Pr[ε = 0] = {probability(float(post.mass_at_zero))}")
    console.print()
    for line in sketch(density_of(Subject.of(audit)), width=min(64, max(30, console.width - 24))):
        console.print(Text("  " + line), no_wrap=True, crop=True)
    console.print()
    why = " ".join([*audit.verdict.details, *audit.verdict.caveats])
    if why:
        console.print(layout.hanging(f"{'why':<{HEAD}}", why, "dim"))
    if explained:
        console.print()
        layout.notes(audit.rows, console)
    else:
        console.print(Text("--explain says what each promise means and what the letters stand for.", style="dim"))
    layout.warnings(audit.warnings, console)


def show_noise(noise: EffectiveNoise, console: Console) -> None:
    """What the whole trade-off curve of DP-SGD says."""
    ruling = "refuted" if noise.refuted else "not refuted"
    most = at_most(noise.noise_at_most)
    some = "nor is any other" if math.isinf(noise.noise_at_most) else f"{most} or more is refuted"
    text = (
        f"the claimed multiplier {exactly(noise.noise_multiplier)} is {ruling}, {some} (whole trade-off curve, level "
        f"{noise.level:g}, {noise.promise})"
    )
    console.print(layout.hanging(f"{'noise':<{HEAD}}", text, "dim"))


def _title(audit: Audit) -> Text:
    text = Text(plain(audit.name), style="bold")
    text.append(f"   ε at δ = {audit.settings.delta:g}, adjacency {audit.adjacency}", style="")
    return text


def _facts(audit: Audit) -> dict[str, str]:
    t, models, who = audit.judged.tally, audit.models, audit.adversary
    fit = len(audit.judged.fit_models)
    pairs = "" if audit.pairs_per_model == 1 else f", {audit.judged.pairs_per_model} pairs each"
    if audit.judged.same_data:
        chose = ", which also picked the threshold"
    elif audit.judged.same_models:
        chose = f", {len(audit.judged.fit)} other pairs of these models used to pick the threshold"
    else:
        chose = f", {fit} used to pick the threshold" if fit else ""
    facts = {
        audit.units: f"{audit.judged.n_models} judged{pairs}{chose}",
        "attack": f"{who.attack or 'given scores'}, {who.rule}; {who.access}",
        "tally": f"TP {t.tp}  TN {t.tn}  FP {t.fp}  FN {t.fn}   N = {t.n_samples}   FNR {short(float(t.fnr))}  FPR "
        f"{short(float(t.fpr))}",
    }
    if who.powers is not None:
        facts["adversary"] = f"{who.powers.preset}: {who.powers}"
    if who.canary is not None:
        facts["canary"] = who.canary.removeprefix("canary ")
    if audit.verdict.control is not None:
        facts["control"] = str(audit.verdict.control)
    if audit.verdict.basis.probe is not None:
        facts["probe"] = audit.verdict.basis.probe.brief
    if audit.said_of_scores:
        facts["scores" if audit.sampled is None else "game"] = "; ".join(audit.said_of_scores)
    if audit.sampled is None:
        facts["declared"] = words(audit.declaration)
    if models.failed:
        facts[audit.units] += f", {models.failed} failed"
    facts[audit.units] = "; ".join([facts[audit.units], *layout.counted(audit)])
    known = [f"{at_most(eps)} ({adjacency})" for adjacency, eps in audit.accountant.items() if eps is not None]
    if known:
        source = "proven" if audit.promises.source == "known" else "accountant"
        facts[source] = f"ε = {', '.join(known)} at δ = {audit.settings.delta:g}"
    return facts


def _table(audit: Audit) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for name in ("", "ε", "promise", "level", "assumes"):
        table.add_column(name, no_wrap=True)
    letters = layout.letters(audit.rows)
    for row in audit.rows:
        style = "bold" if row.method == POSTERIOR.name else ""
        table.add_row(
            Text(plain(row.label), style=style),
            Text(row.text, style=style),
            Text(row.promise, style=layout.PROMISE_STYLE[row.promise]),
            row.level_text,
            " ".join(letters[a] for a in row.assumptions),
        )
    return table


def _decision(audit: Audit) -> Iterator[tuple[str, Text]]:
    """The verdict in a sentence, what it means, and what to do next."""
    v = audit.verdict
    yield "verdict", Text(v.head, style=VERDICT_STYLE[v.kind]).append(layout.said(f": {v.finding}"))
    for place, shown in enumerate(v.shown):
        yield "" if place else "shown", layout.said(shown)
    yield "means", layout.said(audit.decision.meaning)
    steps = audit.decision.steps
    for number, step in enumerate(steps, 1):
        text = layout.said(f"{number}. {step.text}" if len(steps) > 1 else step.text)
        if step.command:
            text.append(" ").append(layout.said(step.command, "bold"))
        yield "next" if number == 1 else "", text
