"""The few lines that `print` shows of a posterior, of an audit and of a probe."""

from __future__ import annotations

import io
import textwrap

from rich.console import Console

from epsgauge.auditing.audit import Audit
from epsgauge.declaration import words
from epsgauge.methods.cautions import cautions_of
from epsgauge.methods.intervals import intervals_of
from epsgauge.numbers import at_most, count, number, percent
from epsgauge.plain import SENTENCE, plain
from epsgauge.probing.result import Probe
from epsgauge.reporting import layout, probe
from epsgauge.stats.posterior import Posterior

WIDTH = 100
LEVEL = 0.90  # of a posterior that is printed by itself


def text(thing: Audit | Posterior | Probe) -> str:
    if isinstance(thing, Probe):
        page = io.StringIO()
        probe.show(thing, Console(file=page, width=WIDTH, highlight=False))
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines())
    if isinstance(thing, Audit):
        return _audit(thing)
    return repr(thing) if thing.shape else _posterior(thing)


def _posterior(posterior: Posterior) -> str:
    """Median, mass at 0, every method's interval with its promise, and the warnings that apply."""
    result = intervals_of(posterior, level=LEVEL)
    t = posterior.tally
    lines = [
        f"Posterior of {posterior.family.symbol}{posterior.family.given}, tp={t.tp} tn={t.tn} fp={t.fp} fn={t.fn}",
        f"  median {posterior.median():.4g}, mass at 0 {posterior.mass_at_zero:.3g}",
    ]
    for row in result:
        lines.append(f"  {row.label:<15} {percent(LEVEL)} {row.text}  {row.promise}")
    lines += [f"  ! {caution}" for caution in cautions_of(result)]
    return "\n".join(lines)


def _audit(audit: Audit) -> str:
    """Tally, posterior, every method with its promise, the accountant, the verdict and the warnings."""
    s, t = audit.settings, audit.judged.tally
    lines = [
        f"Audit of {plain(audit.name)}: ε at δ = {s.delta:g}, adjacency {audit.adjacency}",
        *(_wrapped(said, "  ") for said in audit.said_of_scores),
        f"  {count(audit.judged.n_models, audit.units.removesuffix('s'))} judged, tp={t.tp} tn={t.tn} fp={t.fp} "
        f"fn={t.fn}; {plain(str(audit.adversary), SENTENCE)}",
        *(f"  {said}" for said in layout.counted(audit)),
        f"  posterior median {number(float(audit.posterior.median()))}, mass at 0 {audit.posterior.mass_at_zero:.3g}",
    ]
    for row in audit.rows:
        note = f" ({plain(row.note, SENTENCE)})" if row.note else ""
        lines.append(f"  {row.label:<15} {row.text}  {row.promise}, {row.level_text}{note}")
    known = [f"{at_most(eps)} ({adjacency})" for adjacency, eps in audit.accountant.items() if eps is not None]
    if known:
        who = "proven" if audit.promises.source == "known" else "the accountant's"
        lines.append(f"  {who} ε at δ = {s.delta:g}: {', '.join(known)}")
    if audit.sampled is None:
        lines.append(_wrapped(f"declared {words(audit.declaration)}", "  "))
    lines.append(_wrapped(audit.verdict.sentence, "  "))
    lines += [_wrapped(f"! {warning}", "  ") for warning in audit.warnings]
    return "\n".join(lines)


def _wrapped(sentence: str, indent: str) -> str:
    line = plain(sentence, SENTENCE)
    return textwrap.fill(line, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
