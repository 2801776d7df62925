"""What a notebook shows of an object: a small picture, a small table, and the warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from epsgauge.auditing.audit import Audit
from epsgauge.figures import css
from epsgauge.figures.charts import CHARTS, prefix_of
from epsgauge.figures.subject import LEVEL, Subject
from epsgauge.methods.cautions import cautions_of
from epsgauge.methods.intervals import Intervals, intervals_of
from epsgauge.methods.table import BASELINE, POSTERIOR
from epsgauge.numbers import duration, likely, percent, short
from epsgauge.plain import escape
from epsgauge.probing.result import Probe
from epsgauge.reporting.contents import answered
from epsgauge.runner.view import Run
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import Posterior
from epsgauge.stats.tally import Tally


def html(thing: Audit | Intervals | Posterior | Probe | Run | Tally) -> str:
    """For one tally; arrays are shown as their repr."""
    if isinstance(thing, Audit):
        return _boxed(_audit(thing))
    if isinstance(thing, Probe):
        return _boxed(_probe(thing))
    if isinstance(thing, Run):
        return _boxed(_run(thing))
    if isinstance(thing, Tally):
        return _boxed(_plain(thing) if thing.shape else _tally(thing))
    if isinstance(thing, Posterior):
        return _boxed(_plain(thing) if thing.shape else _posterior(thing))
    return _boxed(_plain(thing.posterior) if thing.posterior.shape else _intervals(thing))


def _audit(audit: Audit) -> str:
    said = answered(audit)
    rows = [(row.label, row.text, row.level_text, row.promise) for row in audit.rows]
    kind = audit.verdict.kind.replace(" ", "-")
    return (
        f"<p><b>{escape(audit.name)}</b> · ε at δ = {audit.settings.delta:g}, adjacency {escape(audit.adjacency)}</p>"
        + "".join(f"<p>{escape(text)}</p>" for text in audit.said_of_scores)
        + f'<p class="said {kind}"><b>{escape(said.head)}:</b> {escape(said.headline)}</p>'
        + "".join(f"<p>{escape(text)}</p>" for text in audit.verdict.shown)
        + _picture("ruler", audit)
        + _table(("Method", "ε", "Level", "Promise"), rows)
        + _folded("The verdict in full", [audit.verdict.sentence])
        + _folded(f"Warnings: {len(audit.warnings)}", audit.warnings)
    )


def _probe(probe: Probe) -> str:
    rows = [(finding.name, finding.shown, finding.sentence) for finding in probe.findings]
    kind = "violation" if probe.refuted else "no-objection"
    return f'<p class="said {kind}">{escape(probe.sentence)}</p>' + _table(("Finding", "Result", "What was seen"), rows)


def _posterior(posterior: Posterior) -> str:
    result = intervals_of(posterior, level=LEVEL)
    symbol = posterior.family.symbol
    atom = likely(float(posterior.mass_at_zero))
    zero = f"Pr[{symbol} = 0] {atom}" if atom.startswith(">") else f"Pr[{symbol} = 0] = {atom}"
    facts = f"median {short(float(posterior.median()))}, {zero}"
    return _head(posterior) + _picture("density", result) + f"<p>{escape(facts)}</p>" + _methods(result)


def _intervals(result: Intervals) -> str:
    drawn = ""
    if isinstance(result.posterior.family, EpsAtDelta):
        drawn = _picture("ruler", result)
    return _head(result.posterior) + drawn + _methods(result)


def _tally(tally: Tally) -> str:
    rates = [
        f"{name} {short(float(rate))}" if n else ""
        for name, rate, n in (("FNR", tally.fnr, tally.n_positive), ("FPR", tally.fpr, tally.n_negative))
    ]
    rows = [
        ("b = 1", f"TP {tally.tp}", f"FN {tally.fn}", rates[0]),
        ("b = 0", f"FP {tally.fp}", f"TN {tally.tn}", rates[1]),
    ]
    return _table((f"N = {tally.n_samples}", "said 1", "said 0", "wrong"), rows)


def _run(run: Run) -> str:
    """How it stands. Its results are not looked at."""
    status = run.status()
    facts = [f"{status['n_done']} of {status['n_models']} models done"]
    if status["n_failed"]:
        by_bit = status["failed_pairs_by_bit"]
        facts.append(f"{status['n_failed']} failed ({by_bit['0']} pairs with b = 0, {by_bit['1']} with b = 1)")
    if status["n_left"]:
        facts.append(f"{status['n_left']} to go")
    if status["seconds_per_model"] is not None:
        facts.append(f"{duration(status['seconds_per_model'])} per model")
    facts.append(f"looks at results so far: {status['looks']}")
    if status["running"]:
        facts.append(f"running (process {status['pid']})")
    rows = [("Data", run.plan.data.use), ("Trainer", run.plan.trainer.use), ("Game", run.plan.game.experiment)]
    rows += [("Adjacency", run.plan.game.adjacency), ("Folder", str(run.path))]
    share = f'<progress value="{status["n_done"]}" max="{status["n_models"]}" aria-label="Models done"></progress>'
    notes = _folded(f"Notes: {len(run.notes)}", run.notes)
    return (
        f"<p><b>{escape(run.plan.name)}</b></p>{share}<p>{escape(' · '.join(facts))}</p>{_table(('', ''), rows)}{notes}"
    )


def _methods(result: Intervals) -> str:
    rows = [(row.label, row.text, row.promise) for row in result]
    there = {row.method for row in result}
    warnings = cautions_of(result) if {POSTERIOR.name, BASELINE.name} <= there else ()
    table = _table(("Method", f"{percent(result.level)} interval", "Promise"), rows)
    return table + _folded(f"Warnings: {len(warnings)}", warnings)


def _head(posterior: Posterior) -> str:
    t = posterior.tally
    counts = f"TP {t.tp}, TN {t.tn}, FP {t.fp}, FN {t.fn}, N = {t.n_samples}"
    return f"<p><b>{escape(posterior.family.symbol + posterior.family.given)}</b> · {counts}</p>"


def _picture(name: str, source: Audit | Intervals) -> str:
    """With ids of its own; nothing where the chart makes no sense."""
    of = source.posterior if isinstance(source, Intervals) else source
    return "".join(CHARTS[name].drawn(Subject.of(source), prefix=prefix_of(of)).svgs[:1])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    lines = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if any(head) else ''}<tbody>{body}</tbody></table>"


def _folded(title: str, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<details><summary>{escape(title)}</summary><ul>{items}</ul></details>"


def _plain(thing: Any) -> str:
    return f"<pre>{escape(repr(thing))}</pre>"


def _boxed(inside: str) -> str:
    return f'<div class="epsgauge"><style>{css.NOTEBOOK}{STYLE}</style>{inside}</div>'


# Tables and text beside the pictures.
STYLE = """
.epsgauge p{margin:.35em 0}
.epsgauge table{border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums}
.epsgauge th,.epsgauge td{text-align:left;padding:.2em 1.2em .2em 0;background:none}
.epsgauge th{color:var(--muted);font-weight:500}
.epsgauge .said{border-left:4px solid var(--muted);padding-left:.7em}
.epsgauge .violation,.epsgauge .unsupported{border-color:var(--red-text)}
.epsgauge .no-objection{border-color:var(--blue-text)}
.epsgauge .cannot-decide,.epsgauge .in-progress{border-color:var(--orange-text)}
.epsgauge progress{width:20rem;max-width:100%}
"""
