"""The page of a report: of an audit, of four counts, of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.bound import Bound
from epsgauge.auditing.claim import NoClaim
from epsgauge.auditing.cohorts import Cohorts
from epsgauge.auditing.compare import Comparison
from epsgauge.auditing.verdict import OWNER
from epsgauge.declaration import words
from epsgauge.methods.cautions import cautions_of
from epsgauge.methods.intervals import Row
from epsgauge.methods.rows import MethodRow
from epsgauge.methods.table import BASELINE, POSTERIOR, SHARPEST
from epsgauge.methods.units import said_of
from epsgauge.numbers import at_least, count, exactly, interval_text, level_percent, likely, percent, short
from epsgauge.plain import plain
from epsgauge.probing.result import Probe
from epsgauge.reporting import layout, record, redo
from epsgauge.reporting.cohorts import grouped
from epsgauge.reporting.estimate import Answer
from epsgauge.reporting.page import Answered, Beside, Counted, Line, Methods, Number, Page
from epsgauge.stats.families import EpsAtDelta

NEIGHBOURS = {
    "substitute": "neighbours differ in one record that is replaced",
    "add-remove": "neighbours differ in one record that is present or absent",
    "label-only": "label DP, where neighbours differ in the label of one record",
}


def of_audit(audit: Audit, probe: Probe | None = None, cohorts: Cohorts | None = None, out: str = redo.OUT) -> Page:
    s, t = audit.settings, audit.judged.tally
    tallies = [Counted(said_of(audit.units, "All judged pairs"), t)]
    for bound in audit.bounds:
        if bound.tally != t:
            tallies.append(Counted(f"Bound {bound.scope} ({bound.label}: {bound.counts})", bound.tally))
    return Page(
        title="Privacy audit",
        name=plain(audit.name),
        about=(
            f"ε at δ = {s.delta:g}",
            f"adjacency {audit.adjacency}: {NEIGHBOURS[audit.adjacency]}",
            "; ".join([_judged(audit), *layout.counted(audit)]),
        ),
        answer=answered(audit),
        numbers=_numbers(audit),
        methods=_methods(audit.rows),
        tallies=tuple(tallies),
        warnings=audit.warnings,
        units=audit.units,
        ran=record.of_audit(audit, out),
        settings=None if audit.run is not None else {"audit": s.model_dump(mode="json", exclude={"attack"})},
        claim=_claim(audit),
        facts=(
            ("Attack", f"{audit.adversary.attack or 'given scores'}; {audit.adversary.access}"),
            *(() if audit.adversary.powers is None else (("Adversary", str(audit.adversary.powers)),)),
            ("Rule", audit.adversary.rule),
            *(() if audit.adversary.canary is None else (("Canary", audit.adversary.canary),)),
            *(() if audit.verdict.control is None else (("Control", str(audit.verdict.control)),)),
            *(() if audit.verdict.basis.probe is None else (("Probe", audit.verdict.basis.probe.brief),)),
            *(("Scores" if audit.sampled is None else "Game", said) for said in audit.said_of_scores),
            *(() if audit.sampled is not None else (("Declared", words(audit.declaration)),)),
        ),
        probe=probe,
        decision=audit.decision,
        cohorts=None if cohorts is None else grouped(cohorts),
    )


def of_counts(answer: Answer, out: str = redo.OUT) -> Page:
    post, result = answer.posterior, answer.intervals
    symbol, row = post.family.symbol, result[POSTERIOR.name]
    proven = _proven(answer)
    level = _percent(answer.level)
    said = f"{symbol}{post.family.given} lies in {interval_text(float(row.low), float(row.high))} with a posterior"
    headline = f"Given these counts, {said} probability of at least {level}."
    rest = (
        "Counts alone carry no verdict: they do not say whether the models were independent, whether the rule was "
        "chosen on the same guesses, or which neighbours were played. What each number assumes is listed below."
    )
    numbers = [
        Number(f"{level} credible interval", interval_text(float(row.low), float(row.high)), f"median {_median(post)}"),
        Number(
            f"{symbol} at least",
            at_least(float(proven.low)),
            f"{proven.label}, one-sided {_percent((1 + answer.level) / 2)}, {proven.promise}",
        ),
        Number(f"Pr[{symbol} = 0]", likely(float(post.mass_at_zero)), "posterior probability"),
    ]
    if answer.claimed is not None and answer.exceeds is not None:
        above = f"Pr[{symbol} > {answer.claimed:g}]"
        numbers.append(
            Number(
                above,
                likely(answer.exceeds),
                "as far as this attack shows: a weak one makes it small, whatever the training did",
            )
        )
    if answer.eps_if_gaussian is not None:
        gaussian = answer.eps_if_gaussian
        ends = gaussian.interval(answer.level)
        text = interval_text(float(ends.low), float(ends.high))
        numbers.append(Number(f"ε{gaussian.family.given}", text, "if the mechanism is Gaussian-DP"))
    return Page(
        title="Privacy estimate",
        name=f"{symbol}{post.family.given}",
        about=(f"N = {int(post.tally.n_samples)} guesses", "adjacency not stated"),
        answer=Answered("counts", "", headline, rest),
        numbers=tuple(numbers),
        methods=_methods(result.rows, answer.level),
        tallies=(Counted("All guesses", post.tally),),
        warnings=cautions_of(result),
        ran=record.of_counts(answer, out),
    )


def of_comparison(found: Comparison, out: str = redo.OUT) -> Page:
    labels = ", ".join(run.label for run in found.runs[1:])
    first, level = found.runs[0], level_percent(found.level).replace(" ", "\u00a0")
    largest = max(found.runs[1:], key=lambda run: run.difference)
    columns = (
        "m",
        "N",
        "FNR",
        "FPR",
        f"Bayesian {level}",
        "promise",
        "median",
        "ε at least",
        "if DP-SGD",
        "claimed ε",
        "CDF vs first",
    )
    headline = (
        f"The posterior of {largest.label} is furthest from that of {first.label}: their distribution functions are up "
        f"to {largest.difference:.2f} apart, at ε = {short(largest.at)}; the medians are {short(largest.median)} and "
        f"{short(first.median)}."
    )
    if found.of_adversaries:
        most = max(found.runs, key=lambda run: run.audit.verdict.bound.value)
        least = min(found.runs, key=lambda run: run.audit.verdict.bound.value)
        headline = (
            f"The adversary of {most.label} shows most, {most.audit.verdict.bound.text}, and that of {least.label} "
            f"least, {least.audit.verdict.bound.text}, both for any training."
        )
    return Page(
        title="Comparison of runs",
        name=f"{first.label} against {labels}",
        about=(f"ε at δ = {found.delta:g}", f"adjacency {found.adjacency}: {NEIGHBOURS[found.adjacency]}", found.rule),
        answer=Answered("comparison", "", headline, found.family.sentence),
        numbers=(),
        methods=None,
        tallies=(),
        warnings=found.warnings,
        ran=record.of_comparison(found, out),
        columns=columns,
        beside=tuple(
            Beside(
                run.label,
                (
                    str(run.audit.pairs_per_model),
                    str(int(run.audit.judged.tally.n_samples)),
                    short(float(run.audit.judged.tally.fnr)),
                    short(float(run.audit.judged.tally.fpr)),
                    interval_text(run.low, run.high),
                    run.audit.credible.promise,
                    short(run.median),
                    *bound_cells(run.audit),
                    "none" if run.audit.claim is None else run.audit.claim.eps_text,
                    "" if run is first else f"{run.difference:.3f}",
                ),
                _with_powers(run.audit) if found.of_adversaries else answered(run.audit),
            )
            for run in found.runs
        ),
    )


def answered(audit: Audit) -> Answered:
    """The verdict's first sentence, and the others."""
    v = audit.verdict
    return Answered(v.kind, v.head, v.finding, " ".join([*v.shown, *v.details, *v.caveats]))


def _with_powers(audit: Audit) -> Answered:
    said = answered(audit)
    return replace(said, rest=f"{said.rest} What its adversary may do: {audit.adversary.powers}")


def bound_cells(audit: Audit) -> tuple[str, str]:
    """Of a table: the bound for any training, and the conditional one."""
    return _marked(audit.verdict.bound), _marked(audit.verdict.conditional_bound)


def _marked(bound: Bound | None) -> str:
    if bound is None:
        return ""
    return at_least(bound.value) + ("" if bound.promise == "guaranteed" else f" ({bound.promise})")


def _claim(audit: Audit) -> str:
    claim = audit.promises.claim
    if isinstance(claim, NoClaim):
        return f"none: {claim.reason}"
    return f"{OWNER[claim.source]}, {claim.text} ({claim.adjacency})"


def _numbers(audit: Audit) -> tuple[Number, ...]:
    v, claim, row, post = audit.verdict, audit.claim, audit.credible, audit.posterior
    out = []
    if claim is None:
        out.append(Number("Claimed ε", "none", "nothing to judge"))
    else:
        owner = OWNER[claim.source].removeprefix("the ")
        of_mu = "" if claim.mu is None else f" of μ = {exactly(claim.mu)}"
        out.append(Number("Claimed ε", claim.eps_text, f"{owner}{of_mu}, at δ = {claim.delta:.3g}"))
    for bound in v.bounds:
        at = "" if v.delta == audit.settings.delta else f", at the claim's δ = {v.delta:.3g}"
        out.append(Number("ε at least", at_least(bound.value), f"{bound.scope}; {bound.how}{at}"))
    level = _percent(audit.settings.level)
    at = "" if v.delta == audit.settings.delta else f", at δ = {audit.settings.delta:.3g}"
    note = f"{row.promise}, median {_median(post)}{at}"
    out.append(Number(f"{level} interval", interval_text(row.low, row.high), note))
    if v.kind == "cannot decide":
        out.append(Number("Largest bound possible", at_least(v.largest), "if every guess were right"))
    elif v.detectable and v.kind == "no objection":
        most = f"ε < {at_least(v.detectable)}"
        out.append(
            Number("Claims it could refute", most, f"with probability {_percent(v.power)}, in an audit like this one")
        )
    return tuple(out)


def _methods(rows: Sequence[MethodRow | Row], level: float | None = None) -> Methods:
    """Rows of an audit have a level each; those of counts share one."""
    letters = layout.letters(rows)
    lines = [
        Line(
            row.label,
            row.text,
            row.level_text if isinstance(row, MethodRow) else _percent(level or 0.0),
            row.promise,
            " ".join(letters[a] for a in row.assumptions),
            getattr(row, "note", None) or "",
        )
        for row in rows
    ]
    listed = tuple((letter, text) for text, letter in letters.items())
    return Methods(tuple(lines), tuple(layout.meanings(rows)), listed)


def _judged(audit: Audit) -> str:
    m, judged = audit.pairs_per_model, count(audit.judged.n_models, f"judged {audit.units.removesuffix('s')}")
    pairs = "" if m == 1 else f" with {m} pairs each"
    failed = f", {audit.models.failed} failed" if audit.models.failed else ""
    return f"{judged}{pairs} of {audit.models.planned}{failed}"


def _proven(answer: Answer) -> Any:
    """The sharpest method that is proven for the quantity; not the larger of two bounds, which would prove less."""
    return answer.intervals[(SHARPEST if isinstance(answer.posterior.family, EpsAtDelta) else BASELINE).name]


def _median(posterior: Any) -> str:
    return short(float(posterior.median()))


def _percent(level: float) -> str:
    """Its sign does not go to the next line alone."""
    return percent(level).replace(" ", "\u00a0")
